"""Judges a tool call before it runs. It decides, and touches nothing."""
