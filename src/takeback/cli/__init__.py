"""The command line: translates arguments into verbs of `Project` and shows the result."""
