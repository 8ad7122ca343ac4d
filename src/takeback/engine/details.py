"""What one turn or one checkpoint consists of: changes with their authors, steps, left out."""

from takeback.errors import DamagedStoreError
from takeback.model import jsontext, terms
from takeback.model.difference import judge
from takeback.model.history import Author, Change, GitState, RecordedStep
from takeback.model.values import LeftOut, OutsideFile
from takeback.store import history, outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.store.ledger import Ledger
    from takeback.store.rows import CheckpointRow

CHANGES = "SELECT path, verb, origin, added, removed, how FROM changes WHERE turn = ? ORDER BY path"
DELTAS = (
    "SELECT step, path, verb, origin, how FROM deltas WHERE turn = ? AND who = 'step'"
    " AND verb <> 'omit' ORDER BY checkpoint, path"
)
SHARED = (
    "SELECT path, verb, origin, sessions FROM deltas"
    " WHERE who = 'shared' AND verb <> 'omit' AND checkpoint > ? AND checkpoint <= ?"
    " ORDER BY checkpoint, path"
)
LEFT_OUT = "SELECT path, origin FROM deltas WHERE verb = 'omit' AND turn = ? ORDER BY path"
STEPS = (
    "SELECT s.number, s.id, p.id, s.tool, s.kind, s.summary, s.paths, s.status, s.background,"
    " s.started, s.ended FROM steps s LEFT JOIN steps p ON p.number = s.parent"
    " WHERE s.turn = ? ORDER BY s.number"
)
OF_CHECKPOINT = (
    "SELECT d.path, d.verb, d.origin, d.who, d.how, z.id, t.id, s.id, d.sessions FROM deltas d"
    " LEFT JOIN sessions z ON z.number = d.session LEFT JOIN turns t ON t.number = d.turn"
    " LEFT JOIN steps s ON s.number = d.step WHERE d.checkpoint = ? ORDER BY d.path"
)
PLACE = (
    "SELECT z.id, t.id, s.id FROM coordinates c LEFT JOIN sessions z ON z.number = c.session"
    " LEFT JOIN turns t ON t.number = c.turn LEFT JOIN steps s ON s.number = c.step"
    " WHERE c.cursor = ?"
)
_NEWEST = 1 << 62


class Sound:
    """Turns what goes wrong with values of the wrong kind into damage: a flipped bit makes them."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, TypeError | ValueError | AttributeError):
            raise DamagedStoreError(
                f"a row of the log holds values of the wrong kind: {problem}",
                hint="`takeback doctor` tells more, and `takeback doctor --rebuild` may mend it",
            ) from problem


class Turn:
    """Looks up what belongs to one turn."""

    def __init__(self, ledger: "Ledger", number: int, id: str, session: str) -> None:
        self._ledger = ledger
        self._number = number
        self._id = id
        self._session = session

    def changes(self) -> "tuple[Change, ...]":
        """Its own changes, as its end told them."""
        return tuple(
            _change(path, verb, origin, self._author(how), added=added, removed=removed)
            for path, verb, origin, added, removed, how in self._ledger.rows(
                CHANGES, (self._number,)
            )
        )

    def went_back(self) -> "str | None":
        """The turn before which somebody went back inside the agent; None if nobody did."""
        event = self._ledger.requested(history.rewind_request(self._id))
        return str((event.payload or {}).get("to") or "") if event is not None else None

    def so_far(self) -> "tuple[Change, ...]":
        """Its own changes while it runs; nobody has counted lines yet."""
        rows = self._ledger.rows(DELTAS, (self._number,))
        return fold(
            _change(path, verb, origin, self._author(how)) for _, path, verb, origin, how in rows
        )

    def shared(self, before: int, after: "int | None") -> "tuple[Change, ...]":
        """What changed while it ran and may be its own or another session's."""
        rows = self._ledger.rows(SHARED, (before, _NEWEST if after is None else after))
        return fold(
            _change(path, verb, origin, Author(terms.SHARED, sessions=tuple(sessions.split())))
            for path, verb, origin, sessions in rows
            if self._session in sessions.split()
        )

    def left_out(self) -> "tuple[LeftOut, ...]":
        """What appeared by its doing and is not covered."""
        rows = self._ledger.rows(LEFT_OUT, (self._number,))
        found = {path: LeftOut(_path(path), _text(reason)) for path, reason in rows}
        return tuple(found.values())

    def outside(self) -> "tuple[OutsideFile, ...]":
        """What its edit tools named outside the project: what was done, or why nobody knows."""
        if not self._ledger.rows("SELECT 1 FROM outside WHERE turn = ? LIMIT 1", (self._number,)):
            return ()
        rows = outside.of_turns(self._ledger, (self._number,))
        found = {row.path: OutsideFile(row.path, reason=row.reason) for row in rows if row.reason}
        for path, runs in outside.runs(rows).items():
            changed = judge(path, runs[-1][0], runs[0][1])
            found[path] = OutsideFile(path, changed.verb if changed is not None else terms.WRITE)
        return tuple(found[path] for path in sorted(found))

    def steps(self, *, interrupted: bool) -> "tuple[RecordedStep, ...]":
        """Its steps in their order, each with its own changes."""
        found: dict[int | None, list[Change]] = {}
        for step, path, verb, origin, how in self._ledger.rows(DELTAS, (self._number,)):
            change = _change(path, verb, origin, self._author(how))
            found.setdefault(step, []).append(change)
        return tuple(
            RecordedStep(
                id=id,
                parent=parent or "",
                tool=tool,
                kind=kind,
                summary=summary,
                paths=_names(paths),
                status=terms.INTERRUPTED if interrupted and status == terms.RUNNING else status,
                started=started / 1e9,
                ended=None if ended is None else ended / 1e9,
                background=bool(background),
                changes=fold(found.get(number, ())),
            )
            for (
                number,
                id,
                parent,
                tool,
                kind,
                summary,
                paths,
                status,
                background,
                started,
                ended,
            ) in self._ledger.rows(STEPS, (self._number,))
        )

    def _author(self, how: str) -> Author:
        return Author(terms.STEP, session=self._session, turn=self._id, how=how)


def of_checkpoint(ledger: "Ledger", row: "CheckpointRow") -> "tuple[Change, ...]":
    """What changed between a checkpoint and the one before, and who did it."""
    with Sound():
        return tuple(
            _of_checkpoint(*values) for values in ledger.rows(OF_CHECKPOINT, (row.number,))
        )


def _of_checkpoint(
    path: object,
    verb: object,
    origin: object,
    who: str,
    how: str,
    session: "str | None",
    turn: "str | None",
    step: "str | None",
    sessions: str,
) -> Change:
    author = Author(
        who,
        session=session or "",
        turn=turn or "",
        step=step or "",
        how=how,
        sessions=tuple(sessions.split()),
    )
    return _change(path, verb, origin, author)


def place(ledger: "Ledger", row: "CheckpointRow") -> "tuple[str | None, str | None, str | None]":
    """The session, turn and step that a checkpoint was taken for."""
    for session, turn, step in ledger.rows(PLACE, (row.event,)):
        return session, turn, step
    return None, None, None


def fold(changes: "Iterable[Change]") -> "tuple[Change, ...]":
    """Changes in their order as one per path; what was made and removed again is none."""
    found: dict[bytes, Change] = {}
    for change in changes:
        before = found.pop(change.path, None)
        verb = _joined(before.verb, change.verb) if before is not None else change.verb
        if not verb:
            continue
        origin = before.origin if before is not None and before.origin else change.origin
        found[change.path] = Change(change.path, verb, author=change.author, origin=origin)
    for path, change in list(found.items()):
        # A renamed file is one change, not two.
        gone = found.get(change.origin) if change.origin is not None else None
        if gone is not None and (change.verb, gone.verb) == (terms.CREATE, terms.DELETE):
            del found[gone.path]
            found[path] = Change(path, terms.RENAME, author=change.author, origin=change.origin)
    return tuple(found[path] for path in sorted(found))


_MADE = (terms.CREATE, terms.MKDIR, terms.RENAME)
_GONE = (terms.DELETE, terms.RMDIR)


def _joined(first: str, second: str) -> str:
    """Two changes of one path as one; empty if they cancel out."""
    if first in _MADE and second in _GONE:
        return ""
    if first in _MADE and second in (terms.WRITE, terms.MODE):
        return first
    if first in _GONE and second == terms.CREATE:
        return terms.WRITE
    return terms.WRITE if (first, second) == (terms.WRITE, terms.MODE) else second


def _change(
    path: object,
    verb: object,
    origin: object,
    author: Author,
    *,
    added: "int | None" = None,
    removed: "int | None" = None,
) -> Change:
    came = None if origin is None else _path(origin)
    return Change(_path(path), str(verb), author=author, added=added, removed=removed, origin=came)


def _path(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a path is not made of bytes")
    return value


def git(text: "str | None") -> "GitState | None":
    """The user's git as a turn's boundary recorded it."""
    if text is None:
        return None
    return GitState(*jsontext.loads(text))


def _names(paths: str) -> "tuple[bytes, ...]":
    if paths == "[]":
        return ()
    return tuple(str(path).encode("utf-8", "surrogateescape") for path in jsontext.loads(paths))


def _text(reason: "bytes | None") -> str:
    return "" if reason is None else reason.decode("utf-8", "replace")
