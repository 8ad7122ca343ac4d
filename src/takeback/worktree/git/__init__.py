"""The user's git, read as plain files. Nothing here writes."""
