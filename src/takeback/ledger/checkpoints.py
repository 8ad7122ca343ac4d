"""Checkpoints, their deltas and what was lost outside cover: what is asked about them."""

from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.ledger.database import Group, Table
from takeback.ledger.log.events import CheckpointRow
from takeback.ledger.schema import path_hash
from takeback.model import words
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.database import Reader, Values
    from takeback.ledger.schema import Tables
    from takeback.model.beyond.losses import Loss
    from takeback.model.history import Author

    Authors = list[tuple[object, ...]]

_MOST_PASSED_OVER = 100
_SELECT = (
    "SELECT number, id, event, tree, root, view, created, label, entries, changed, gone,"
    " checkpoints.line, parent FROM checkpoints "
)


class DeltaRow(Value):
    """What changed at a path with a checkpoint, and who did it; `sessions` if that is shared.

    `session`, `turn` and `step` are numbers of rows.
    """

    checkpoint: int
    path: bytes
    verb: str
    origin: "bytes | None"
    who: str
    how: str
    session: "int | None"
    turn: "int | None"
    step: "int | None"
    sessions: str


class NamedDelta(Value):
    """A delta with the names of those it belongs to: ids, the label of the turn, the agent.

    `is_live` tells that its turn was not taken back since.
    """

    checkpoint: int
    path: bytes
    verb: str
    origin: "bytes | None"
    who: str
    how: str
    session: "str | None"
    turn: "str | None"
    step: "str | None"
    sessions: str
    agent: "str | None"
    label: "str | None"
    is_live: int
    turn_number: "int | None"


class TouchRow(Value):
    """Who changed a path: a turn, or at a checkpoint you, a restore, or one of some sessions."""

    who: str
    turn: "int | None"
    checkpoint: "int | None"
    sessions: str


_DELTA = f"SELECT {', '.join(DeltaRow._fields)} FROM deltas "
_NAMED = (
    "SELECT d.checkpoint, d.path, d.verb, d.origin, d.who, d.how, z.id, t.id, s.id, d.sessions,"
    " z.agent, t.label, t.undone IS NULL AND t.covered IS NULL, d.turn FROM deltas d"
    " LEFT JOIN sessions z ON z.number = d.session LEFT JOIN turns t ON t.number = d.turn"
    " LEFT JOIN steps s ON s.number = d.step "
)
_THESE = "(SELECT value FROM json_each(?))"
_NEWEST = 1 << 62


_COORDINATES = (
    "coordinates c LEFT JOIN steps s ON s.number = c.step"
    " LEFT JOIN turns t ON t.number = coalesce(c.turn, s.turn)"
)


class Checkpoints(Table):
    """What is asked about checkpoints."""

    __slots__ = ("_parents",)
    table = "checkpoints"
    what, time, label = "'checkpoint'", "created", "label"

    def __init__(self, reader: "Reader") -> None:
        super().__init__(reader)
        self._parents: dict[int, int] = {}

    def newest(self, back: int = 0, line: "int | None" = None) -> "CheckpointRow | None":
        """The newest checkpoint of the line, or the one `back` steps before it.

        A damaged row is passed over, so that it does not end the protection; `verify` tells.
        """
        of = self._here if line is None else f"line = {line}"
        where = f"WHERE {of} ORDER BY number DESC LIMIT 1 OFFSET ?"
        while True:
            try:
                return next(iter(self._some(where, (back,))), None)
            except DamagedStoreError:
                back += 1
                if back > _MOST_PASSED_OVER:
                    raise

    def first(self) -> "CheckpointRow | None":
        """The oldest checkpoint of the line whose files are kept."""
        where = f"WHERE {self._here} AND gone IS NULL ORDER BY number LIMIT 1"
        return next(iter(self._some(where)), None)

    def numbered(self, number: int) -> "CheckpointRow | None":
        """The checkpoint with this number."""
        return next(iter(self._some("WHERE number = ?", (number,))), None)

    def parent_of(self, number: int) -> int:
        """The number of the state before a checkpoint; 0 if it is the first."""
        if number not in self._parents:
            query = "SELECT parent FROM checkpoints WHERE number = ?"
            self._parents[number] = int(self._reader.value(query, (number,)) or 0)
        return self._parents[number]

    def start(self) -> "CheckpointRow | None":
        """The checkpoint of another line at which this one began."""
        where = f"WHERE number = (SELECT parent FROM lines WHERE number = {self._reader.line})"
        return next(iter(self._some(where)), None)

    def with_prefix(self, prefix: str) -> "list[CheckpointRow]":
        """The checkpoints whose id begins with `prefix`."""
        upper = prefix + "{"  # the character after `z`
        return self._some("WHERE id >= ? AND id < ? LIMIT 20", (prefix, upper))

    def all(self) -> "Iterator[CheckpointRow]":
        """The checkpoints of the line, newest first."""
        return self._pages(self._here)

    def listed(self, limit: int) -> "list[CheckpointRow]":
        """The newest that no turn made by itself, or that have a name, or that somebody keeps."""
        where = (
            "LEFT JOIN coordinates k ON k.cursor = checkpoints.event"
            f" WHERE checkpoints.{self._here} AND (k.session IS NULL"
            " OR number IN (SELECT checkpoint FROM names UNION SELECT checkpoint FROM kept))"
            " ORDER BY number DESC LIMIT ?"
        )
        return self._some(where, (limit,))

    def newest_of_lines(self) -> "dict[str, CheckpointRow]":
        """The newest checkpoint of each line, by the id of the line."""
        lines = self._reader.rows("SELECT id, number FROM lines ORDER BY number")
        found = {str(id): self.newest(line=number) for id, number in lines}
        return {id: row for id, row in found.items() if row is not None}

    def of_all_lines(self) -> "Iterator[CheckpointRow]":
        """All checkpoints of the store, newest first."""
        return self._pages("1")

    def _pages(self, these: str) -> "Iterator[CheckpointRow]":
        """No cursor stays open while the caller thinks."""
        before, order = 1 << 62, "ORDER BY number DESC LIMIT 200"
        while True:
            rows = self._some(f"WHERE {these} AND number < ? {order}", (before,))
            if not rows:
                return
            yield from rows
            before = rows[-1].number

    def last_look(self) -> "tuple[int, int]":
        """The event that last named what the tree was, and when that look began."""
        query = f"SELECT cursor, looked FROM coordinates WHERE {self._here}"
        cursor, looked = self._reader.one(query + " ORDER BY cursor DESC LIMIT 1") or (0, 0)
        return int(cursor), int(looked)

    def seen_by(self, event: int) -> "int | None":
        """The number of the checkpoint that held what the tree was at an event."""
        query = f"SELECT checkpoint FROM coordinates WHERE cursor <= ? AND {self._here}"
        number: int | None = self._reader.value(query + " ORDER BY cursor DESC LIMIT 1", (event,))
        return number

    def taken_for(self, event: int) -> "tuple[str | None, str | None, str | None]":
        """The session, turn and step for which an event took a checkpoint, or named one again."""
        query = (
            f"SELECT z.id, t.id, s.id FROM {_COORDINATES}"
            " LEFT JOIN sessions z ON z.number = coalesce(c.session, t.session) WHERE c.cursor = ?"
        )
        session, turn, step = self._reader.one(query, (event,)) or (None, None, None)
        return session, turn, step

    def of_session(self, session: int) -> "Iterator[tuple[CheckpointRow, int]]":
        """The checkpoints that a session took or named again, newest first, and by which event."""
        query = (
            "SELECT c.checkpoint, coalesce(max(CASE WHEN t.id IS NOT NULL THEN c.cursor END),"
            f" max(c.cursor)) FROM {_COORDINATES} WHERE coalesce(c.session, t.session) = ?"
            f" AND c.{self._here} GROUP BY c.checkpoint ORDER BY c.checkpoint DESC"
        )
        for number, event in self._reader.rows(query, (session,)):
            row = self.numbered(int(number))
            if row is not None:
                yield row, int(event)

    def has_commit(self, commit: bytes) -> bool:
        """Whether a commit of the git view belongs to a checkpoint."""
        return self._reader.has("SELECT 1 FROM checkpoints WHERE view = ? LIMIT 1", (commit,))

    def _some(self, where: str, values: "Values" = ()) -> "list[CheckpointRow]":
        return [CheckpointRow.checked(row) for row in self._reader.rows(_SELECT + where, values)]


class NameRow(Value):
    """A name, the checkpoint that it means, and when it was given.

    `gone` tells that the files of the checkpoint are not kept any more.
    """

    name: str
    number: int
    checkpoint: str
    at: int
    gone: bool


_NAMES = (
    "SELECT n.name, n.checkpoint, c.id, n.at, c.gone IS NOT NULL FROM names n"
    " JOIN checkpoints c ON c.number = n.checkpoint WHERE n."
)


class Names(Group):
    """What is asked about the names of checkpoints."""

    __slots__ = ()

    def find(self, name: str) -> "NameRow | None":
        """What a name means."""
        row = self._reader.one(f"{_NAMES}{self._here} AND n.name = ?", (name,))
        return NameRow(*row) if row else None

    def of(self, checkpoint: int) -> "list[str]":
        """The names of a checkpoint, the newest first."""
        query = f"SELECT name FROM names WHERE checkpoint = ? AND +{self._here}"
        return self._reader.column(query + " ORDER BY event DESC", (checkpoint,))

    def since(self, moment: int, limit: int) -> "list[NameRow]":
        """The names that were given since a time, the newest first."""
        query = f"{_NAMES}{self._here} AND n.at >= ? ORDER BY n.event DESC LIMIT ?"
        return [NameRow(*row) for row in self._reader.rows(query, (moment, limit))]


class Deltas(Group):
    """What is asked about the changes between two checkpoints."""

    __slots__ = ()

    def of_turns(self, turns: "Iterable[int]") -> "list[DeltaRow]":
        """What steps of turns changed, by path, in the order in which they did."""
        where = f"WHERE turn IN {_THESE} AND who = 'step' AND verb <> 'omit'"
        return self._some(where + " ORDER BY path, checkpoint", (_listed(turns),))

    def paths_of_session(self, session: int) -> "set[bytes]":
        """The paths that steps of a session changed."""
        query = (
            "SELECT DISTINCT path FROM deltas WHERE who = 'step'"
            " AND turn IN (SELECT number FROM turns WHERE session = ?)"
        )
        return set(self._reader.column(query, (session,)))

    def of_checkpoint(self, checkpoint: int) -> "list[NamedDelta]":
        """What changed with a checkpoint."""
        return self._named("WHERE d.checkpoint = ? ORDER BY d.path", (checkpoint,))

    def shared(self, session: str, before: int, after: "int | None") -> "list[DeltaRow]":
        """What a session or another one changed between two checkpoints, in their order."""
        where = (
            f"WHERE {self._here} AND who = 'shared' AND verb <> 'omit' AND checkpoint > ?"
            " AND checkpoint <= ? AND instr(' ' || sessions || ' ', ?) ORDER BY checkpoint, path"
        )
        return self._some(where, (before, _NEWEST if after is None else after, f" {session} "))

    def left_out(self, turns: "Iterable[int]") -> "list[DeltaRow]":
        """What turns made and is not covered; `origin` is the reason."""
        where = f"WHERE verb = 'omit' AND turn IN {_THESE} ORDER BY path"
        return self._some(where, (_listed(turns),))

    def restored(self, checkpoint: int) -> "list[DeltaRow]":
        """What a restore changed that made a checkpoint; what came from the rescue stays."""
        where = "WHERE checkpoint = ? AND who = 'restore' AND verb <> 'omit' ORDER BY path"
        return self._some(where, (checkpoint,))

    def since(self, checkpoint: int, but: "Iterable[int]" = ()) -> "list[NamedDelta]":
        """What changed after a checkpoint, in its order, but for some turns."""
        where = (
            f"WHERE d.{self._here} AND d.checkpoint > ?"
            f" AND (d.turn IS NULL OR d.turn NOT IN {_THESE}) ORDER BY d.checkpoint"
        )
        return self._named(where, (checkpoint, _listed(but)))

    def places_between(
        self, first: int, last: int, but: "Iterable[int]"
    ) -> "list[tuple[bytes, int]]":
        """Path and checkpoint of what others than some turns changed between two checkpoints."""
        query = (
            f"SELECT path, checkpoint FROM deltas WHERE {self._here} AND checkpoint > ?"
            f" AND checkpoint < ? AND (turn IS NULL OR turn NOT IN {_THESE})"
        )
        return self._reader.rows(query, (first, last, _listed(but)))

    def yours_since(self, checkpoint: int) -> "list[bytes]":
        """The paths that you changed after a checkpoint."""
        query = "SELECT DISTINCT path FROM deltas WHERE checkpoint > ? AND who = 'you'"
        these = f" AND verb <> 'omit' AND {self._here}"
        return self._reader.column(query + these, (checkpoint,))

    def count_yours_since(self, checkpoint: int) -> int:
        """How many paths you changed after a checkpoint, also those that are left out."""
        query = "SELECT count(DISTINCT path) FROM deltas WHERE checkpoint > ? AND who = 'you'"
        return int(self._reader.value(f"{query} AND {self._here}", (checkpoint,)))

    # -- doubts ----------------------------------------------------------------------------

    def behind(self, turn: int) -> "list[bytes]":
        """What a command of a turn changed in the background, after the turn had ended."""
        query = (
            "SELECT DISTINCT d.path FROM deltas d JOIN steps s ON s.number = d.step"
            " JOIN turns t ON t.number = d.turn WHERE d.turn = ? AND s.background AND s.kind = ?"
            " AND d.checkpoint > t.after ORDER BY d.path"
        )
        return self._reader.column(query, (turn, words.SHELL))

    def perhaps(self, turn: int) -> "list[bytes]":
        """What changed when it is not known whether a command of a turn ran."""
        return self._doubtful(turn)

    def at_terminal(self, turn: int) -> "list[bytes]":
        """What changed while a command of a turn had the user's terminal."""
        return self._doubtful(turn, words.PERHAPS, interactive=True)

    def unreported(self, turn: int) -> "list[bytes]":
        """What changed in a turn of an agent that reported no tool."""
        return self._doubtful(turn, words.UNREPORTED)

    def by_unknown(self, turn: int) -> "list[bytes]":
        """What only `takeback watch` saw."""
        return self._doubtful(turn, words.UNKNOWN)

    def _doubtful(
        self, turn: int, how: str = words.PERHAPS, *, interactive: bool = False
    ) -> "list[bytes]":
        query = (
            "SELECT DISTINCT d.path FROM deltas d LEFT JOIN steps s ON s.number = d.step"
            " WHERE d.turn = ? AND d.how = ? AND coalesce(s.interactive, 0) = ? ORDER BY d.path"
        )
        return self._reader.column(query, (turn, how, interactive))

    # -- renames ---------------------------------------------------------------------------

    def made_since(self, checkpoint: int, but: "Iterable[int]") -> "dict[bytes, bytes | None]":
        """What others than some turns made after a checkpoint, and each from what."""
        query = (
            "SELECT path, origin FROM deltas"
            f" WHERE {self._here} AND checkpoint > ? AND verb IN ('create', 'rename', 'link')"
            " AND (who <> 'restore' OR origin IS NOT NULL)"
            f" AND (turn IS NULL OR turn NOT IN {_THESE}) ORDER BY checkpoint"
        )
        return dict(self._reader.rows(query, (checkpoint, _listed(but))))

    def brought_back_since(self, checkpoint: int) -> "set[bytes]":
        """What restores made after a checkpoint."""
        query = (
            "SELECT DISTINCT path FROM deltas"
            f" WHERE {self._here} AND checkpoint > ? AND who = 'restore' AND verb = 'create'"
        )
        return set(self._reader.column(query, (checkpoint,)))

    def made_instead(self, path: bytes, checkpoint: int) -> "list[bytes]":
        """What restores after a checkpoint made when they removed a path."""
        query = (
            "SELECT made.path FROM deltas gone"
            " JOIN deltas made ON made.checkpoint = gone.checkpoint"
            f" WHERE gone.{self._here} AND gone.checkpoint > ? AND gone.path = ?"
            " AND gone.verb = 'delete'"
            " AND gone.who = 'restore' AND made.who = 'restore' AND made.verb = 'create'"
        )
        return self._reader.column(query, (checkpoint, path))

    def renames(self) -> "list[tuple[bytes, bytes]]":
        """All new names with the old ones."""
        query = "SELECT DISTINCT path, origin FROM deltas WHERE origin IS NOT NULL"
        return self._reader.rows(f"{query} AND {self._here}")

    # -- the past of a path ----------------------------------------------------------------

    def number_of_path(self, path: bytes) -> "int | None":
        """By which number a path is known; None if nothing ever changed there."""
        query = "SELECT number FROM paths WHERE hash = ? AND path = ?"
        number: int | None = self._reader.value(query, (path_hash(path), path))
        return number

    def numbers_below(self, folder: bytes) -> "list[int]":
        """The numbers of all paths below a folder. Paths have no order, so all are looked at."""
        lower, upper = folder + b"/", folder + b"0"  # the character after `/`
        return self._reader.column(
            "SELECT number FROM paths WHERE path >= ? AND path < ?", (lower, upper)
        )

    def paths_ending(self, name: bytes, limit: int) -> "list[bytes]":
        """Some paths with this name at their end, in whatever folder."""
        query = "SELECT path FROM paths WHERE substr(path, ?) = ? LIMIT ?"
        return self._reader.column(query, (-len(name) - 1, b"/" + name, limit))

    def origins(self, paths: "Iterable[int]") -> "list[tuple[int, int, int, bytes]]":
        """Each rename to one of these paths, oldest first: path, checkpoint, old path and name."""
        query = (
            "SELECT d.path, d.checkpoint, d.origin, p.path FROM delta_rows d JOIN checkpoints c"
            f" ON c.number = d.checkpoint AND +c.{self._here} JOIN paths p ON p.number = d.origin"
            f" WHERE d.path IN {_THESE} AND d.verb <> 'omit' ORDER BY d.checkpoint"
        )
        return self._reader.rows(query, (_listed(paths),))

    def renamed_to(self, path: int) -> "bytes | None":
        """The name that a file got when it last left a path."""
        left = "SELECT checkpoint FROM delta_rows WHERE path = ?1 AND verb = 'delete'"
        query = (
            "SELECT p.path FROM delta_rows d JOIN paths p ON p.number = d.path JOIN checkpoints c"
            f" ON c.number = d.checkpoint AND +c.{self._here} WHERE d.checkpoint IN ({left})"
            " AND d.origin = ?1 AND d.verb <> 'omit' ORDER BY d.checkpoint DESC LIMIT 1"
        )
        name: bytes | None = self._reader.value(query, (path,))
        return name

    def touched(self, until: "Mapping[int, int]") -> "list[TouchRow]":
        """Who changed some paths, each up to a checkpoint; each turn is told once."""
        query = (
            "SELECT DISTINCT d.who, d.turn, CASE WHEN d.turn IS NULL THEN d.checkpoint END,"
            " d.sessions FROM json_each(?) s CROSS JOIN delta_rows d"
            " ON d.path = json_extract(s.value, '$[0]')"
            " AND d.checkpoint <= json_extract(s.value, '$[1]')"
            f" JOIN checkpoints c ON c.number = d.checkpoint AND +c.{self._here}"
            " WHERE d.who <> 'you' OR d.verb <> 'omit'"
        )
        spans = json_text.dumps([[path, last] for path, last in until.items()])
        return [TouchRow(*row) for row in self._reader.rows(query, (spans,))]

    def authors(self, checkpoint: int) -> "list[tuple[bytes, str, int | None]]":
        """Who changed each path of a checkpoint, and the session."""
        query = "SELECT path, who, session FROM deltas WHERE checkpoint = ?"
        return self._reader.rows(query, (checkpoint,))

    def _some(self, where: str, values: "Values") -> "list[DeltaRow]":
        return [DeltaRow(*row) for row in self._reader.rows(_DELTA + where, values)]

    def _named(self, where: str, values: "Values") -> "list[NamedDelta]":
        return [NamedDelta(*row) for row in self._reader.rows(_NAMED + where, values)]


# -- what was lost outside cover -----------------------------------------------------------------

_PATH = "(SELECT p.path FROM paths p WHERE p.number = {})"
_LOST = (
    f"SELECT l.event, {_PATH.format('l.path')} AS path, l.what, l.reason, l.folder, l.size,"
    f" l.entries, {_PATH.format('l.source')}, l.who = 'shared' FROM losses l "
)
_OF_TURNS = (
    f"{_LOST} WHERE l.who = 'step' AND l.turn IN {_THESE}"
    f" UNION ALL {_LOST} JOIN turns t ON l.event > t.opened AND l.event < coalesce(t.closed, ?2)"
    " JOIN sessions z ON z.number = t.session WHERE l.who = 'shared'"
    f" AND t.number IN {_THESE} AND instr(' ' || l.sessions || ' ', ' ' || z.id || ' ')"
    f" UNION ALL SELECT c.event, {_PATH.format('d.path')}, 'made', '', 0, NULL, NULL, NULL, 0"
    " FROM delta_rows d JOIN checkpoints c ON c.number = d.checkpoint"
    f" WHERE d.verb = 'omit' AND d.turn IN {_THESE} ORDER BY 1, 2"
).replace("?)", "?1)")
"""What turns lost, and what they made that is not covered, in the order in which it was seen."""
_INSERT_LOSS = "INSERT INTO losses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Losses(Group):
    """What is asked about what was lost outside cover."""

    __slots__ = ()

    def of_turns(self, turns: "Iterable[int]") -> "tuple[Loss, ...]":
        """What turns lost in the end, or another session at the same time; by path."""
        if not self._reader.has("SELECT 1 FROM losses LIMIT 1"):
            return ()
        return _folded(self._reader.rows(_OF_TURNS, (_listed(turns), _NEWEST)))

    def turns_at(self, paths: "Iterable[int]") -> "list[int]":
        """The turns that lost something at one of these paths."""
        query = f"SELECT DISTINCT turn FROM losses WHERE turn IS NOT NULL AND path IN {_THESE}"
        return self._reader.column(query, (_listed(paths),))

    def between(self, first: int, last: int = _NEWEST) -> "tuple[Loss, ...]":
        """What anybody lost after an event and before another."""
        where = f"WHERE l.event > ? AND l.event < ? AND l.who <> 'restore' AND l.{self._here}"
        return _folded(self._reader.rows(f"{_LOST}{where} ORDER BY l.number", (first, last)))

    def is_known(self, loss: "Loss", author: "Author") -> bool:
        """Whether the same was recorded for the same turn, or, if shared, since a turn began."""
        of_turn = "WHERE l.turn = (SELECT number FROM turns WHERE id = ?)"
        shared = "WHERE l.who = 'shared' AND l.event > (SELECT max(opened) FROM turns)"
        rows = self._reader.rows(
            _LOST + (of_turn if author.turn else f"{shared} AND l.sessions = ?"),
            (author.turn or " ".join(author.sessions),),
        )
        return any((path, what) == (loss.raw_path, loss.what) for _, path, what, *_ in rows)


def _folded(rows: "list[tuple[Any, ...]]") -> "tuple[Loss, ...]":
    if not rows:
        return ()
    from takeback.model.beyond.losses import Loss, fold

    return fold(
        Loss(path, what, reason, bool(folder), size, entries, source or b"", bool(is_shared))
        for _, path, what, reason, folder, size, entries, source, is_shared in rows
    )


def follow_losses(
    to: "Tables",
    event: "tuple[int, int]",
    line: "int | None",
    lost: "list[Any]",
    authors: "Authors",
) -> "set[object]":
    """Let the table follow an event, given by number and time; the turns that lost much."""
    from takeback.model.beyond import losses

    numbers = to.paths(name for row in lost for name in (row[0], row[7]) if name)
    turns = set()
    for path, what, author, reason, is_folder, size, entries, source in lost:
        by = authors[int(author)]
        is_grave = losses.is_grave(what, reason)
        counts = (bool(is_folder), size, entries, numbers.get(source), is_grave)
        values = (to.next("losses"), *event, numbers[path], what, reason, *counts, *by, line)
        operations.sql(to.db, _INSERT_LOSS, values)
        turns |= {by[3]} if is_grave else set()
    return turns - {None}


def count_losses(db: "Connection", turn: "int | None") -> None:
    """Add what a turn lost, in the end, to the paths that it changed."""
    rows = db.execute(_OF_TURNS, (_listed([turn or 0]), _NEWEST)).fetchall()
    number = sum(loss.is_grave and not loss.is_shared for loss in _folded(rows))
    operations.sql(db, "UPDATE turns SET paths = paths + ? WHERE number = ?", (number, turn))


def _listed(numbers: "Iterable[int]") -> str:
    return json_text.dumps(list(numbers))
