"""The append-only log: its events, the tables that follow from it, its archive and its audit."""
