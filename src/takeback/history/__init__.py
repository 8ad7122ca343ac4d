"""Reads the log and the states it leads to."""
