"""What became of a turn, in words: failed, undone, partly undone, shared with whom."""

from takeback.cli.screen import cut, safe_line, title
from takeback.model import words as terms
from takeback.model.text.masking import CLOSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.history import RecordedTurn
    from takeback.model.text.masking import Masker

_LONGEST = 40
"""Columns of what another turn is called."""


def state(turn: "RecordedTurn") -> str:
    """How a turn ended, and what became of it: `failed, exit code 2`, `undone`."""
    if turn.undone:
        return "undone"
    failed = f", exit code {turn.exit_code}" if turn.exit_code else ""
    parts = [turn.status + failed] if turn.status != terms.DONE else []
    return ", ".join([*parts, "partly undone"] if turn.undone_in_part else parts)


def undone(found: "RecordedTurn") -> str:
    """By which restore a turn was taken back, or a part of it."""
    if found.undone:
        return f"by {found.undone[:8]}"
    return f"in part, by {found.undone_in_part[:8]}" if found.undone_in_part else ""


def shared_with(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> str:
    """With whom a turn shares changes: `shared with "Tidy up" (codex)`."""
    with_whom = [
        f'"{cut(title(masker.words(each.label)), _LONGEST)}" ({each.agent})'
        for each in turn.shared_with
    ]
    from takeback.cli.text import reason_text

    undone = ", taken back since" if turn.is_shared_undone else ""
    return safe_line(f"shared with {reason_text.names(with_whom) or 'another session'}{undone}")
