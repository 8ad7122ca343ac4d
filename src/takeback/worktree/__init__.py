"""How the user's files are looked at, read and swapped."""
