"""State beside the files: memory, databases, what commands capture and restore."""
