"""Decide: what a checkpoint holds, what comes back, what is left out."""
