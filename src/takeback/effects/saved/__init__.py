"""Files that were saved before commands destroyed them: where they lie, and how they come back."""
