"""What restores taught: lessons that agents are told, and relapses into what was taken back."""
