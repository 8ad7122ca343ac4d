"""What two entries of trees have to do with each other. Pure, and asked when plans are made."""

import os

from takeback.model import reasons, terms
from takeback.model.difference import judge
from takeback.model.made import Made
from takeback.model.tree import FOLDER, LINK, REGULAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.tree import Entry


def is_same(one: "Entry | None", other: "Entry | None") -> bool:
    """Whether two entries say the same; of a folder only itself counts, not what is in it."""
    if one is None or other is None:
        return one is other
    if one.reason or other.reason or one.kind != other.kind:
        return False
    if one.kind != FOLDER and one.strong != other.strong:
        return False
    return one.kind == LINK or (one.mode ^ other.mode) & 0o7777 == 0


def can_return(state: "Entry | None", before: "Entry | None") -> bool:
    """Whether what was left as something unknown is out of the way, or back but for its mode."""
    if state is None or before is None or state.reason:
        return state is None
    return state.kind == before.kind and (state.kind == FOLDER or state.strong == before.strong)


def is_as_left(state: "Entry | None", after: "Entry | None") -> bool:
    """Whether nobody wrote to a file since it was left so that nobody could read it."""
    if state is None or after is None or state.reason or after.reason != reasons.UNREADABLE:
        return False
    return state.kind == after.kind == REGULAR and state.mtime == after.mtime


def goes_as_folder(state: "Entry | None", after: "Entry | None", before: "Entry | None") -> bool:
    """Whether a folder that was made shall go: then its mode does not matter any more."""
    if before is not None or state is None or after is None or state.reason:
        return False
    return state.kind == after.kind == FOLDER


def is_unknown(entry: "Entry | None") -> bool:
    """Whether nobody knows what is there."""
    return entry is not None and entry.reason != 0


def not_covered(entry: "Entry | None") -> str:
    """Why nobody knows what is there."""
    return f"not covered ({reasons.word(entry.reason if entry is not None else 0)})"


def no_folder(entry: "Entry") -> str:
    """Why something cannot be in an entry."""
    return not_covered(entry) if entry.reason else "no folder any more"


def can_be_captured(now: "Entry", then: "Entry | None") -> bool:
    """Whether something that was left out is captured when it is to be replaced."""
    return now.reason == reasons.TOO_LARGE and now.kind == REGULAR and then is not None


def verb_of(path: bytes, now: "Entry | None", target: "Entry | None") -> str:
    """What is done at a path that becomes something else; empty if it does not."""
    if isinstance(target, Made):
        return terms.MERGE
    if now is not None and now.reason and target is not None:
        return {FOLDER: terms.MKDIR, LINK: terms.LINK}.get(target.kind, terms.WRITE)
    difference = judge(path, now, target)
    return difference.verb if difference is not None else ""


def named(entries: "list[Entry]") -> str:
    """The first of some entries, and how many more there are."""
    first = f"`{os.fsdecode(min(entries, key=lambda entry: entry.name).name)}`"
    more = len(entries) - 1
    return f"{first} and {more:,} more" if more else first


def folders_above(path: bytes) -> "Iterable[bytes]":
    """The folders on the way to a path, from the top."""
    parts = path.split(b"/")
    return (b"/".join(parts[:end]) for end in range(1, len(parts)))


def joined(path: bytes, name: bytes) -> bytes:
    """The path of something in a folder."""
    return path + b"/" + name if path else name
