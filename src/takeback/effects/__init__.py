"""What happens outside the files of checkpoints: what is saved just before, and its record."""
