"""A recorded turn, in words and as JSON."""

from takeback.cli.render import count, path_fields, safe_line, timestamp
from takeback.model.safetext import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.model.history import Change, RecordedTurn
    from takeback.model.jsontext import Json

_MINUS = "\N{MINUS SIGN}"
_WIDEST_PATH = 60


def headline(turn: "RecordedTurn") -> str:
    """A turn on one line: what it is called and how much it changed."""
    if not turn.files:
        amount = "nothing changed"
    else:
        amount = f"{count(turn.files, 'file')}  {_lines(turn.added, turn.removed)}"
        if turn.uncounted:
            amount += f"  {turn.uncounted:,} without lines"
    if turn.ended is not None:
        amount += f"  ({max(turn.ended - turn.started, 0):.1f} s)"
    return f'turn {turn.id[:6]}  "{safe_line(turn.label)}"  {amount}'


def change_lines(changes: "Iterable[Change]", most: int) -> "Iterator[str]":
    """A line for each change, and one that counts those not shown."""
    listed = list(changes)
    rows = [(change.verb, _named(change), change) for change in listed[:most]]
    width = min(max((len(name) for _, name, _ in rows), default=0), _WIDEST_PATH)
    for verb, name, change in rows:
        yield f"  {verb:<6}  {name:<{width}}  {_lines(change.added, change.removed)}".rstrip()
    if len(listed) > most:
        yield f"  and {len(listed) - most:,} more"


def as_json(turn: "RecordedTurn") -> "dict[str, Json]":
    """A turn as documented in docs/json.md."""
    return {
        "id": turn.id,
        "session": turn.session,
        "agent": turn.agent,
        "label": turn.label,
        "status": turn.status,
        "started": timestamp(turn.started),
        "ended": timestamp(turn.ended) if turn.ended is not None else None,
        "before": turn.before,
        "after": turn.after,
        "files": turn.files,
        "added": turn.added,
        "removed": turn.removed,
        "uncounted": turn.uncounted,
        "changes": [_change(change) for change in turn.changes],
        "shared": [_change(change) for change in turn.shared],
        "left_out": [{**path_fields(x.path), "reason": x.reason} for x in turn.left_out],
    }


def _change(change: "Change") -> "dict[str, Json]":
    return {
        **path_fields(change.path),
        "verb": change.verb,
        "added": change.added,
        "removed": change.removed,
        "origin": path_fields(change.origin) if change.origin is not None else None,
    }


def _named(change: "Change") -> str:
    name = safe(change.path)
    return f"{safe(change.origin)} → {name}" if change.origin is not None else name


def _lines(added: "int | None", removed: "int | None") -> str:
    return "" if added is None or removed is None else f"+{added:,} {_MINUS}{removed:,}"
