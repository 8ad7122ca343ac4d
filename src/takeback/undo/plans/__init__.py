"""What a restore would do, as a value: which turns, what each path gets, and what conflicts."""
