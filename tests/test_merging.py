"""What becomes of a path that was changed after the turn that is taken back."""
