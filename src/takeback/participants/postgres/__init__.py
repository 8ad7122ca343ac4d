"""PostgreSQL databases that move with the files."""
