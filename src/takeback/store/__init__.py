"""Touch: the only code that reads and writes trees, packs and the ledger."""
