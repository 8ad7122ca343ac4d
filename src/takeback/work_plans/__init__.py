"""Plans of work: steps that a program takes one by one, and takes back when they fail."""
