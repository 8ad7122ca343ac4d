"""Numbers in sentences."""


def count(number: int, one: str, many: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
