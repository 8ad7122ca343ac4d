"""SQLite databases that move with the files."""
