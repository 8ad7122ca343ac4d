"""Content by its hash: packs and the git view of them."""
