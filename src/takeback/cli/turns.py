"""A recorded turn, in words and as JSON."""

from takeback.cli.layout import Marks, columns, pad
from takeback.cli.render import safe_line, timestamp
from takeback.model.counting import count
from takeback.model.jsontext import path_fields
from takeback.model.masking import CLOSED
from takeback.model.safetext import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from takeback.model.history import Change, RecordedRestore, RecordedTurn
    from takeback.model.jsontext import Json
    from takeback.model.masking import Masker
    from takeback.model.values import OutsideFile

    Told = Callable[[Change], str]

_WIDEST_PATH = 60


def headline(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> str:
    """A turn on one line: what it is called and how much it changed."""
    if not turn.files:
        amount = "nothing changed"
    else:
        amount = (
            f"{count(turn.files, 'file')}  {_lines(turn.added, turn.removed, Marks(plain=False))}"
        )
        if turn.uncounted:
            amount += f"  {turn.uncounted:,} without lines"
    if turn.ended is not None:
        amount += f"  ({max(turn.ended - turn.started, 0):.1f} s)"
    return f'turn {turn.id[:6]}  "{safe_line(masker.words(turn.label))}"  {amount}'


def change_lines(
    changes: "Iterable[Change]",
    most: int,
    told: "Told | None" = None,
    marks: "Marks | None" = None,
) -> "Iterator[str]":
    """A line for each change, and one that counts those not shown; `told` adds a remark."""
    listed = list(changes)
    marks = marks or Marks(plain=False)
    rows = [(change, named(change, marks)) for change in listed[:most]]
    width = min(max((columns(name) for _, name in rows), default=0), _WIDEST_PATH)
    counts = [_lines(change.added, change.removed, marks) for change, _ in rows]
    wide = max(map(len, counts), default=0)
    for (change, name), counted in zip(rows, counts, strict=True):
        remark = told(change) if told is not None else ""
        parts = [change.verb.ljust(6), pad(name, width)]
        parts += [counted.ljust(wide)] if wide else []
        yield f"  {'  '.join([*parts, remark])}".rstrip()
    if len(listed) > most:
        yield f"  and {len(listed) - most:,} more"


def as_json(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> "dict[str, Json]":
    """A turn as documented in docs/json.md."""
    return {
        "id": turn.id,
        "session": turn.session,
        "agent": turn.agent,
        "label": masker.words(turn.label),
        "status": turn.status,
        "undone": turn.undone or None,
        "kept": turn.kept,
        "started": when(turn.started),
        "ended": when(turn.ended),
        "before": turn.before or None,
        "after": turn.after or None,
        "files": turn.files,
        "added": turn.added,
        "removed": turn.removed,
        "uncounted": turn.uncounted,
        "changes": [change_json(change) for change in turn.changes],
        "shared": [change_json(change) for change in turn.shared],
        "left_out": [{**path_fields(x.path), "reason": x.reason} for x in turn.left_out],
        "outside": [outside_json(file) for file in turn.outside],
        "authors": _authors((*turn.changes, *turn.shared)),
        "check": None,
        "effects": [],
    }


def restore_json(restore: "RecordedRestore", masker: "Masker" = CLOSED) -> "dict[str, Json]":
    """A restore in the log as documented in docs/json.md."""
    return {
        "id": restore.id,
        "verb": restore.verb,
        "title": masker.words(restore.title),
        "at": when(restore.at),
        "turn": restore.turn or None,
        "before": restore.before,
        "after": restore.after,
        "partial": restore.partial,
        "because": masker.words(restore.because) or None,
        "undone": restore.undone or None,
    }


def _authors(changes: "Iterable[Change]") -> "list[Json]":
    """Whose the changes are and how that is known, each with the number of paths."""
    paths: dict[tuple[str, str], int] = {}
    for change in changes:
        key = (change.author.who, change.author.how)
        paths[key] = paths.get(key, 0) + 1
    return [{"who": who, "how": how or None, "paths": n} for (who, how), n in paths.items()]


def change_json(change: "Change") -> "dict[str, Json]":
    """A change as documented in docs/json.md."""
    return {
        **path_fields(change.path),
        "verb": change.verb,
        "added": change.added,
        "removed": change.removed,
        "how": change.author.how or None,
        "origin": path_fields(change.origin) if change.origin is not None else None,
    }


def outside_json(file: "OutsideFile") -> "dict[str, Json]":
    """A file outside the project as documented in docs/json.md."""
    return {**path_fields(file.path), "verb": file.verb or None, "reason": file.reason or None}


def when(seconds: "float | None") -> "str | None":
    """A time for JSON; null if there is none yet."""
    return None if seconds is None else timestamp(seconds)


def named(change: "Change", marks: "Marks") -> str:
    """The path of a change, and before it the one that a renamed file had."""
    name = safe(change.path or b".")
    return f"{safe(change.origin)} {marks.arrow} {name}" if change.origin is not None else name


def _lines(added: "int | None", removed: "int | None", marks: "Marks") -> str:
    return "" if added is None or removed is None else f"+{added:,} {marks.minus}{removed:,}"
