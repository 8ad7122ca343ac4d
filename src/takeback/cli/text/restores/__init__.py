"""Sentences about plans and restores."""
