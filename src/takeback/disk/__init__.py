"""The machine below: the one room that loads libraries and, later, changes the disk."""
