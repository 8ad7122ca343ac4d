"""The log of some paths: what is said of them, and of each turn only what it did there."""

from takeback.cli import screen as layout
from takeback.cli.screen import ago
from takeback.cli.text import now_text
from takeback.model import words as terms
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe, shell_word
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.cli.screen import Screen
    from takeback.model.history import Log, PathHistory, RecordedTurn, Unrecorded
    from takeback.model.text.json_text import Json

_MOST = 3
_FOLDERS = (terms.MKDIR, terms.RMDIR)


def covers(log: "Log", path: bytes) -> bool:
    """Whether the log was asked for a path."""
    return any(each.covers(path) for each in log.paths)


def state(log: "Log", seen: "Unrecorded", now: float) -> str:
    """How these paths are, on one line."""
    if seen.changes or seen.problem is not None or log.made is None:
        return now_text.state(log.replace(yours=0), seen, now)
    if not any(each.is_there for each in log.paths):
        return f"{_named(log)}: not there"
    if all(each.left_out for each in log.paths):
        return f"{_named(log)}: not covered"
    return f"{_named(log)}: nothing changed since checkpoint {log.here[:6]}, {ago(log.made, now)}"


def _named(log: "Log") -> str:
    named = " and ".join(_name(each) for each in log.paths[:_MOST])
    more = f" and {len(log.paths) - _MOST:,} more" if len(log.paths) > _MOST else ""
    return named + more


def _name(path: "PathHistory") -> str:
    return safe(path.raw_path or b".") + ("/" if path.is_folder else "")


def of_paths(log: "Log") -> "Log":
    """The log with only those changes of each turn that are at these paths."""
    return log.replace(turns=tuple(_narrowed(turn, log) for turn in log.turns))


def _narrowed(turn: "RecordedTurn", log: "Log") -> "RecordedTurn":
    changes = [
        each
        for each in turn.changes
        if covers(log, each.raw_path) or (each.raw_origin and covers(log, each.raw_origin))
    ]
    files = [each for each in changes if each.verb not in _FOLDERS]
    return turn.replace(
        changes=tuple(changes),
        files=len(files),
        added=sum(each.added or 0 for each in files),
        removed=sum(each.removed or 0 for each in files),
        uncounted=sum(each.added is None for each in files),
        shared=tuple(each for each in turn.shared if covers(log, each.raw_path)),
        left_out=tuple(each for each in turn.left_out if covers(log, each.raw_path)),
        losses=tuple(each for each in turn.losses if covers(log, each.raw_path)),
        outside=tuple(each for each in turn.outside if covers(log, each.raw_path)),
        git=(),
    )


def notes(log: "Log", short: "Mapping[str, str]", screen: "Screen") -> None:
    """What is worth knowing of each path: other names, your own changes, how to see the lines."""
    for each in log.paths:
        marks = layout.marks(screen)
        if each.left_out:
            said = f"{_name(each)} is not covered ({each.left_out}): changes there are not recorded"
            screen.note(said)
        if each.raw_names:
            names = f" {marks.arrow} ".join(map(safe, (*reversed(each.raw_names), each.raw_path)))
            screen.note(f"renamed: {names}")
        if each.raw_renamed_to is not None:
            to = safe(each.raw_renamed_to)
            screen.note(f"renamed to {to}: `takeback log {_operand(to)}` goes on")
        if each.yours:
            too = " yourself, too" if log.turns else ""
            screen.note(f"you changed {_name(each)}{too}: {count(each.yours, 'time')}")
    turn = next((turn for turn in log.turns if turn.changes), None)
    if turn is not None and len(log.paths) == 1:
        path = _operand(safe(log.paths[0].raw_path or b"."))
        screen.note(f"`takeback show -p {short[turn.id]} {path}` shows the lines")


def _operand(path: str) -> str:
    """A path as one types it, which is no option even if it begins like one."""
    return ("-- " if path.startswith("-") else "") + shell_word(path)


def as_json(path: "PathHistory") -> "dict[str, Json]":
    to = path.raw_renamed_to
    return {
        **path_fields(path.raw_path),
        "folder": path.is_folder,
        "names": [path_fields(name) for name in path.raw_names],
        "renamed_to": path_fields(to) if to is not None else None,
        "yours": path.yours,
        "there": path.is_there,
        "left_out": path.left_out or None,
    }
