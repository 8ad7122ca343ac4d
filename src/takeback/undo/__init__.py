"""Plans what is taken back, then carries it out."""
