"""Text: lines, JSON, what is safe to print, and what has to be masked."""
