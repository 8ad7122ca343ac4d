"""Ids: letters k to z, so that none is ever mistaken for a git hash."""

ALPHABET = "zyxwvutsrqponmlk"
LENGTH = 12

_TO_LETTERS = str.maketrans("0123456789abcdef", ALPHABET)


def from_entropy(entropy: bytes) -> str:
    """The id that `entropy` (at least 6 bytes) spells."""
    return entropy.hex()[:LENGTH].translate(_TO_LETTERS)


def is_prefix(text: str) -> bool:
    """Whether `text` could be an id or the beginning of one."""
    return 0 < len(text) <= LENGTH and all(letter in ALPHABET for letter in text)
