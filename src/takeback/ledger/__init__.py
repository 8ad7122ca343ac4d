"""The event log and what follows from it: all SQL."""
