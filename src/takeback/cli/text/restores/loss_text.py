"""Sentences for what was lost outside cover: what became of it, and what makes it again."""

from takeback.cli.screen import size
from takeback.model import words
from takeback.model.beyond import losses
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.model.beyond.losses import Loss
    from takeback.model.text.json_text import Json

CANNOT_COME_BACK = "Cannot be restored: it was not covered"
NOT_KEPT = "Not covered, so no old version is kept"
_NOTABLE = 1_000_000
"""Bytes of a folder that are worth a word."""
_LOST = {losses.GONE: "deleted", losses.REPLACED: "overwritten", losses.SHRUNK: "mostly deleted"}


def sentence(lost: "Loss") -> str:
    """What became of something outside cover, and what makes it again."""
    said = f"{_lost(lost)}{_again(lost)}"
    return f"{said}; may be another session's" if lost.is_shared else said


def in_short(lost: "Loss") -> str:
    return _LOST.get(lost.what, "changed")


def _lost(lost: "Loss") -> str:
    had = _had(lost)
    if lost.what == losses.CHANGED:
        return f"changed during this turn ({had} before)"
    if lost.what == losses.SHRUNK:
        return f"mostly deleted, had {had}; what is left is covered from now on"
    if lost.what == losses.REPLACED and lost.is_folder:
        return "deleted and created again; the old one was not kept"
    if lost.what == losses.REPLACED:
        return f"overwritten; its old content{f' ({had})' if had else ''} was not kept"
    return f"deleted, {had}" if had else "deleted"


def _had(lost: "Loss") -> str:
    """How much there was, as far as it is known."""
    if lost.reason == words.word(words.SPECIAL):
        return ""
    if not lost.is_folder:
        return "" if lost.size is None else size(lost.size)
    if not lost.entries:
        return ""
    in_bytes = f", {size(lost.size)}" if lost.size and lost.size >= _NOTABLE else ""
    return f"at least {count(lost.entries, 'entry', 'entries')}{in_bytes}"


def _again(lost: "Loss") -> str:
    if lost.command and lost.what in (losses.GONE, losses.SHRUNK):
        where = f" in {safe(lost.where)}" if lost.where else ""
        return f"; `{lost.command}`{where} rebuilds it"
    if lost.reason == words.word(words.ANOTHER_PROJECT):
        return "; it has a history of its own: `takeback projects` lists it"
    if lost.reason == words.word(words.SPECIAL):
        return f"; {words.EXPLAINED[words.SPECIAL]}"
    return ""


def as_json(lost: "Loss") -> "dict[str, Json]":
    return {
        **path_fields(lost.raw_path),
        "what": lost.what,
        "reason": lost.reason,
        "folder": lost.is_folder,
        "size": lost.size,
        "entries": lost.entries,
        "shared": lost.is_shared,
        "command": lost.command or None,
        "in": path_fields(lost.where or b".") if lost.command else None,
        "text": sentence(lost),
    }


def parts(found: "Sequence[Loss]") -> "list[tuple[str, list[tuple[str, str]]]]":
    """Losses under their heads, each with its path; what may be missed comes first."""
    grave = [each for each in beside_git(found) if each.is_grave]
    rest = [each for each in found if not each.is_grave]
    headed = ((CANNOT_COME_BACK, grave), (NOT_KEPT, rest))
    return [(head, [(path(x), sentence(x)) for x in part]) for head, part in headed if part]


def beside_git(found: "Sequence[Loss]") -> "list[Loss]":
    """Losses without the user's own `.git`, which is told with what else happened to git."""
    return [each for each in found if each.raw_path != b".git"]


def path(lost: "Loss") -> str:
    return safe(lost.raw_path) + ("/" if lost.is_folder else "")
