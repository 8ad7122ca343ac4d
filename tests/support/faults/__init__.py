"""The fault harness: stops the program at every step, breaks every step, and judges what is left.

`injection` fails one step of a checkpoint, `scenarios` say which checkpoint, `harness` plays each
fault in a child process on a fresh copy of the store, and `judge` looks at what the fault left
behind, in another process, with the plain-copy oracle. `scripts/faults` runs all of it.
"""
