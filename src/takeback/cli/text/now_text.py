"""The files as they are: what changed since the newest checkpoint, by whom; what undo would do.

Checkpoints as lines of a list.
"""

import time

from takeback.cli import screen as layout
from takeback.cli.screen import ago, safe_line
from takeback.cli.text import turn_text
from takeback.cli.text.turn_text import age
from takeback.model import words as terms
from takeback.model.text.json_text import path_fields
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from takeback.cli.screen import Screen
    from takeback.model.history import (
        Author,
        Change,
        ListedCheckpoint,
        Log,
        NamedCheckpoint,
        NextUndo,
        RecordedTurn,
        Unrecorded,
    )
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

MOST = 5
"""Paths that are listed of what changed just now; `takeback show @` lists more."""


def state(log: "Log", seen: "Unrecorded", now: float) -> str:
    """How the files are, on one line."""
    if seen.problem is not None:
        from takeback.cli.text.reason_text import sentence

        return f"{_recorded(log, now)}; the files were not read: {sentence(seen.problem)}"
    if log.made is None or (log.yours and not seen.changes):
        return _recorded(log, now)
    if not seen.changes:
        return f"nothing changed since checkpoint {log.here[:6]}, {ago(log.made, now)}"
    since = f"since the last checkpoint, {ago(log.made, now)}"
    by = _by(seen.changes, log.turns)
    paths = count(len(seen.changes), "path")
    if len(by) == 1:
        return f"{paths} changed by {next(iter(by))} {since}"
    return f"{paths} changed {since}: {', '.join(f'{n:,} by {who}' for who, n in by.items())}"


def _recorded(log: "Log", now: float) -> str:
    if log.made is None:
        return "no checkpoint yet"
    if log.yours:
        return f"{count(log.yours, 'path')} changed by you since the last turn"
    return f"checkpoint {log.here[:6]}, {age(log.made, now)} old"


def _by(changes: "Iterable[Change]", turns: "Iterable[RecordedTurn]") -> "dict[str, int]":
    """Who changed how many paths."""
    known = {turn.id: turn for turn in turns}
    found: dict[str, int] = {}
    for change in changes:
        who = _called(change.author, known)
        found[who] = found.get(who, 0) + 1
    return found


def _called(author: "Author", turns: "Mapping[str, RecordedTurn]") -> str:
    if author.who == terms.SHARED:
        return "one of several sessions"
    if author.how == terms.UNKNOWN:
        return "an unknown author"
    if not author.turn:
        return "you"
    turn = turns.get(author.turn)
    agent = f"{safe_line(turn.agent)}, " if turn is not None else ""
    perhaps = " or you" if author.how in (terms.PERHAPS, terms.UNREPORTED) else ""
    return f"{agent}turn {author.turn[:6]}{perhaps}"


def show_changes(log: "Log", seen: "Unrecorded", screen: "Screen", most: int = MOST) -> None:
    """The paths that changed since the newest checkpoint; who did it, unless it is all you."""
    known = {turn.id: turn for turn in log.turns}
    by_you = all(change.author.who == terms.YOU for change in seen.changes)
    told = None if by_you else lambda change: _called(change.author, known)
    for line in turn_text.change_lines(seen.changes, most, told, layout.marks(screen)):
        screen.say(screen.style(f"   {line}", "dim"))


def note_undo(undo: "NextUndo | None", short: "Mapping[str, str]", screen: "Screen") -> bool:
    """Say what a bare undo would do; whether there is anything to say."""
    if undo is None:
        return False
    title = screen.title(undo.title)
    what = f"the rollback to {title} ({short[undo.id]})"
    if undo.agent:
        what = f'"{title}" ({short[undo.id]}, {safe_line(undo.agent)})'
    if undo.is_shared:
        screen.note(f"`takeback undo` asks first: what {what} did is shared with others")
    elif undo.kept and undo.agent == terms.UNKNOWN:
        screen.note(f"`takeback undo` asks first: it would take back {what}")
    elif undo.kept:
        screen.note(f"`takeback undo` takes back {what}")
    else:
        screen.note(f"`takeback undo` cannot take back {what}: its files are no longer kept")
    return True


def as_json(seen: "Unrecorded", masker: "Masker") -> "dict[str, Json]":
    """What changed since the newest checkpoint, and what a bare undo would take back."""
    from takeback.cli.text import reason_text

    return {
        "looked": seen.problem is None,
        "problem": reason_text.as_json(seen.problem, masker),
        "changes": [
            {**turn_text.change_json(change), "author": author_json(change.author)}
            for change in seen.changes
        ],
        "undo": _undo_json(seen.undo, masker),
        "marked": [path_fields(path) for path in seen.raw_marked],
    }


def _undo_json(undo: "NextUndo | None", masker: "Masker") -> "Json":
    if undo is None:
        return None
    return {
        "id": undo.id,
        "kind": "turn" if undo.agent else "rollback",
        "title": masker.words(undo.title),
        "agent": undo.agent or None,
        "kept": undo.kept,
        "shared": undo.is_shared,
    }


def name_json(named: "NamedCheckpoint", masker: "Masker") -> "dict[str, Json]":
    return {
        "name": masker.words(named.name),
        "checkpoint": named.checkpoint,
        "at": turn_text.when(named.at),
        "kept": named.kept,
    }


def author_json(author: "Author") -> "dict[str, Json]":
    return {
        "who": author.who,
        "session": author.session or None,
        "turn": author.turn or None,
        "step": author.step or None,
        "sessions": list(author.sessions),
    }


# -- checkpoints -------------------------------------------------------------------------------


def show_checkpoints(
    found: "Iterable[ListedCheckpoint]", short: "Mapping[str, str]", screen: "Screen", now: float
) -> None:
    """A line for each checkpoint: names, what it was made for, how much changed with it."""
    marks, room = layout.marks(screen), layout.width(screen)
    rows = [
        (each, short[each.checkpoint.id], _when(each.checkpoint.created, now)) for each in found
    ]
    ids = max((len(id) for _, id, _ in rows), default=0)
    whens = max((len(when) for _, _, when in rows), default=0)
    for each, id, when in rows:
        made = each.checkpoint
        mark = marks.name if made.names else marks.of(terms.DONE)
        line = f"{mark}  {id:<{ids}}  {when:>{whens}}  {'  '.join(_told(each, screen))}"
        line = layout.cut(line, room, marks.cut)
        at = len(mark) + 2
        shown = line[:at] + screen.id(id) + line[at + len(id) :]
        screen.say(shown if each.kept else screen.style(line, "dim"))


def _told(each: "ListedCheckpoint", screen: "Screen") -> "list[str]":
    made = each.checkpoint
    told = [safe_line(screen.words(", ".join(made.names)))] if made.names else []
    if each.restore is not None:
        told.append(f"after {each.restore.verb} {each.restore.id[:6]}")
    elif made.turn or made.session:
        told.append(f"turn {made.turn[:6]}" if made.turn else f"session {str(made.session)[:6]}")
    told.append(f"{made.changed:,} changed")
    if each.pinned:
        told.append("kept")
    if not each.kept:
        told.append("files no longer kept")
    return told


def _when(then: float, now: float) -> str:
    is_today = time.localtime(then)[:3] == time.localtime(now)[:3]
    return age(then, now) if is_today else time.strftime("%Y-%m-%d %H:%M", time.localtime(then))


def checkpoint_json(each: "ListedCheckpoint", masker: "Masker") -> "dict[str, Json]":
    made = each.checkpoint
    return {
        "id": made.id,
        "created": turn_text.when(made.created),
        "names": [masker.words(name) for name in made.names],
        "entries": made.entries,
        "changed": made.changed,
        "session": made.session,
        "turn": made.turn,
        "step": made.step,
        "restore": each.restore.id if each.restore is not None else None,
        "kept": each.kept,
        "pinned": each.pinned,
    }
