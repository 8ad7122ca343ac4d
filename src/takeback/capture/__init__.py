"""A checkpoint, and whose change it is."""
