"""What the ledger holds beside files: a module for each kind, with its tables and its queries."""
