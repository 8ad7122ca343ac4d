"""The table of docs/guard.md is made from the guard itself (UPDATE_SCREENS=1)."""

import os
from pathlib import Path

from takeback.effects.verdict import MODES, table

PAGE = Path(__file__).parents[2] / "docs/guard.md"


def test_the_table_is_made_from_the_guard() -> None:
    """UPDATE_SCREENS=1 writes it anew."""
    rows = [("class", *MODES), ("---",) * (1 + len(MODES)), *table()]
    wanted = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    text = PAGE.read_text()
    head = wanted.partition("\n")[0]
    assert text.count(head) == 1
    start = text.index(head)
    end = text.index("\n\n", start)
    if os.environ.get("UPDATE_SCREENS"):
        PAGE.write_text(text[:start] + wanted + text[end:])
        return
    assert text[start:end] == wanted, "UPDATE_SCREENS=1 ./check tests/house/test_guard_page.py"
