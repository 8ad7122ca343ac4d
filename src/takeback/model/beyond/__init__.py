"""Values of what is beyond the covered files: effects, participants, rescues, losses, git."""
