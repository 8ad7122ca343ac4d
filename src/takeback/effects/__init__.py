"""What happened outside the files: the ledger of effects, and what the guard says before one."""
