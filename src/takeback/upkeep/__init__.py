"""Keeps the store small, private and healthy."""
