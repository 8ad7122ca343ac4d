"""The undo stack as tables: what is undone, what a rollback covers, what was put back.

    turns that changed something, and rollbacks           undo and redo are never entries
    ┌──────────────────────────────┐
    │ R2  rollback to after T2     │  live      ◄── undo takes back the newest live entry
    │ T4                           │  covered by R2 ┐ undoing R2 uncovers them
    │ T3                           │  covered by R2 ┘
    │ T2                           │  live
    │ T1                           │  undone    ◄── redo puts back what was undone last,
    └──────────────────────────────┘                unless a live entry began since

`undone` is the undo that took an entry back, `covered` the rollback that went over it, and
`reversed`, of an undo, the redo that put back what it had taken.

A rollback brings the stack back, too. It covers every restore that came after its goal, also undos
and redos, and what is covered has no say:

    T1   undo T1   rollback to after T1        T1 is live: the undo is covered
    T1   R1 over T1   R2 to after T1           T1 is live: R1 is covered
    …    undo R2                               as before R2, which has no say any more

So an entry is live if no restore that has a say took it back or went over it (`_weigh`). A turn
that went on after that restore is live again, unless a rollback went back over what it did then.
"""

from takeback.disk import operations
from takeback.ledger.checkpoints import Checkpoints
from takeback.ledger.database import Reader, Table
from takeback.model.text import json_text
from takeback.model.words import REDO, ROLLBACK, UNDO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from takeback.disk.sqlite import Connection
    from takeback.ledger.database import Values

    Words = dict[tuple[int, str], int]
    """What is said about a restore: its number, the column that tells it, and by which restore."""

UNDONE, COVERED, REVERSED = "undone", "covered", "reversed"
_NEWEST = 1 << 62
_SELECT = (
    "SELECT number, id, event, at, verb, turn, entry, target, before, after, partial, goal,"
    " because, session, undone, covered, reversed, turns, line, shared, partly, running"
    " FROM restores "
)
_LIVE = (
    "SELECT kind, number FROM (SELECT 'turn' AS kind, number, opened FROM turns"
    " WHERE line = ?2 AND paths > 0 AND undone IS NULL AND covered IS NULL"
    " AND (?1 IS NULL OR session = ?1)"
    " UNION ALL SELECT 'restore', number, event FROM restores"
    " WHERE line = ?2 AND verb = 'rollback' AND undone IS NULL AND covered IS NULL"
    " AND ?1 IS NULL)"
)
"""The entries of a line that are live, in the project or of one session."""
NONE_SHARED, SHARED_AMONG, ALL_SHARED = range(3)
"""What an undo takes along: nothing shared, what only its turns share, or all that they share."""
_STANDING_UNDO = "verb = 'undo' AND reversed IS NULL AND covered IS NULL"
"""It was not put back, and no rollback went over it."""


class RestoreRow:
    """What the ledger holds of a restore.

    `turn` or `entry` is what it took back or put back; a rollback has a `target` instead. `turns`
    are all turns, if it was about several at once; `partly` those of which it left something to be
    decided later, which stay live. All are numbers of rows. `shared` says what an undo took along
    of what its turns share with others. `running` are the sessions in the middle of a turn whose
    files it changed.
    """

    __slots__ = (
        "after",
        "at",
        "because",
        "before",
        "covered",
        "entry",
        "event",
        "goal",
        "id",
        "line",
        "number",
        "partial",
        "partly",
        "reversed",
        "running",
        "session",
        "shared",
        "target",
        "turn",
        "turns",
        "undone",
        "verb",
    )  # fmt: skip

    def __init__(self, row: "tuple[Any, ...]") -> None:
        self.number: int = row[0]
        self.id: str = row[1]
        self.event: int = row[2]
        self.at: int = row[3]
        self.verb: str = row[4]
        self.turn: int | None = row[5]
        self.entry: int | None = row[6]
        self.target: int | None = row[7]
        self.before: int = row[8]
        self.after: int = row[9]
        self.partial = bool(row[10])
        self.goal: str = row[11]
        self.because: str = row[12]
        self.session: int | None = row[13]
        self.undone: int | None = row[14]
        self.covered: int | None = row[15]
        self.reversed: int | None = row[16]
        self.turns: tuple[int, ...] = tuple(json_text.loads(row[17]))
        self.line: int = row[18]
        self.shared: int = row[19]
        self.partly: frozenset[int] = frozenset(json_text.loads(row[20]))
        self.running: frozenset[int] = frozenset(json_text.loads(row[21]))


class UndoStack(Table):
    """What is asked about restores and the stack that they make."""

    __slots__ = ()
    table = "restores"
    what, time = "verb", "at"

    def find(self, id: str) -> "RestoreRow | None":
        """The restore with an id."""
        return self._first("WHERE id = ?", (id,))

    def numbered(self, number: "int | None") -> "RestoreRow | None":
        """The restore with a number."""
        return self._first("WHERE number = ?", (number,))

    def newest_rollback(self) -> "RestoreRow | None":
        """The newest rollback that is live."""
        where = f"WHERE {self._here} AND verb = ? AND undone IS NULL AND covered IS NULL"
        return self._first(where + " ORDER BY number DESC", (ROLLBACK,))

    def newest_undo(self, session: "int | None" = None) -> "RestoreRow | None":
        """The newest undo that still stands: of the project, or of one session."""
        where = f"WHERE {self._here} AND {_STANDING_UNDO} AND (?1 IS NULL OR session = ?1)"
        return self._first(where + " ORDER BY number DESC", (session,))

    def undo_of_turn(self, turn: int) -> "RestoreRow | None":
        """The newest undo of a turn, or of paths of it, that still stands."""
        of = "EXISTS (SELECT 1 FROM json_each(turns) WHERE value = ?)"
        return self._first(f"WHERE {of} AND {_STANDING_UNDO} ORDER BY number DESC", (turn,))

    def undo_of_rollback(self, number: int) -> "RestoreRow | None":
        """The newest undo of a rollback that still stands."""
        where = f"WHERE entry = ? AND {_STANDING_UNDO} ORDER BY number DESC"
        return self._first(where, (number,))

    def put_back(self, undo: RestoreRow) -> "set[int]":
        """The turns of an undo that were put back, by one redo or by several."""
        where = "WHERE entry = ? AND verb = ? AND NOT partial AND covered IS NULL"
        return {turn for row in self._some(where, (undo.number, REDO)) for turn in row.turns}

    def with_markers(self) -> "list[RestoreRow]":
        """The restores that wrote both versions into files, with conflict markers."""
        return self._some(f"WHERE {self._here} AND marks AND covered IS NULL ORDER BY number")

    def between(self, first: int, last: int, limit: int) -> "list[RestoreRow]":
        """The restores whose events lie between two, the newest first."""
        where = f"WHERE {self._here} AND event > ? AND event < ? ORDER BY number DESC LIMIT ?"
        return self._some(where, (first, last, limit))

    def entry_back(self, back: int, session: "int | None") -> "tuple[str, int] | None":
        """The live turn or rollback so many entries below the newest: kind and number."""
        query = f"{_LIVE} ORDER BY opened DESC LIMIT 1 OFFSET ?3"
        row = self._reader.one(query, (session, self._reader.line, back))
        return (str(row[0]), int(row[1])) if row else None

    def count_entries(self, session: "int | None") -> int:
        """How many live turns and rollbacks there are."""
        values = (session, self._reader.line)
        return int(self._reader.value(f"SELECT count(*) FROM ({_LIVE})", values))

    def places(self, turn: int) -> "dict[tuple[str, int], int]":
        """How far back the live entries are from a turn on, by kind and number: their `@~N`."""
        live = f"{self._here} AND undone IS NULL AND covered IS NULL"
        query = (
            "SELECT kind, number FROM (SELECT 'turn' AS kind, number, opened FROM turns"
            f" WHERE number >= ?1 AND paths > 0 AND +{live}"
            " UNION ALL SELECT 'restore', number, event FROM restores"
            f" WHERE verb = 'rollback' AND {live}"
            " AND event > coalesce((SELECT opened FROM turns WHERE number = ?1), 0))"
            " ORDER BY opened DESC"
        )
        rows = self._reader.rows(query, (turn,))
        return {(str(kind), int(number)): back for back, (kind, number) in enumerate(rows)}

    def newest_to(self, checkpoint: int) -> "RestoreRow | None":
        """The newest restore that ended in a checkpoint."""
        return self._first("WHERE after = ? ORDER BY number DESC", (checkpoint,))

    def all(self) -> "list[RestoreRow]":
        """All restores, the newest first."""
        return self._some(f"WHERE {self._here} ORDER BY number DESC")

    def rollbacks_since(self, moment: int) -> "list[RestoreRow]":
        """The live rollbacks since a time, the newest first."""
        where = "WHERE verb = ? AND undone IS NULL AND covered IS NULL AND at >= ?"
        return self._some(f"{where} AND {self._here} ORDER BY number DESC", (ROLLBACK, moment))

    def with_shared(self) -> "list[RestoreRow]":
        """The undos that still stand and took along what turns share."""
        return self._some(f"WHERE {self._here} AND shared > 0 AND {_STANDING_UNDO}")

    def undone_in_part(self) -> "dict[int, RestoreRow]":
        """The newest undo that took back something of a turn and left some, by the turn."""
        where = f"WHERE {self._here} AND (partial OR partly <> '[]') AND {_STANDING_UNDO}"
        found: dict[int, RestoreRow] = {}
        for undo in self._some(f"{where} ORDER BY number"):
            turns = undo.turns if undo.partial else undo.partly - self.put_back(undo)
            found |= dict.fromkeys(turns, undo)
        return found

    def sharing(self, session: "int | None", opened: int) -> "list[int]":
        """Live turns that began after an event, in whose time nothing but what they share changed.

        Newest first, also those whose shared changes were taken back.
        """
        shared = (
            "EXISTS (SELECT 1 FROM sessions z, delta_rows d WHERE z.number = t.session"
            " AND d.who = 'shared' AND d.verb <> 'omit' AND d.checkpoint > t.before"
            " AND d.checkpoint <= coalesce(t.after, d.checkpoint)"
            " AND instr(' ' || d.sessions || ' ', ' ' || z.id || ' '))"
        )
        query = (
            "SELECT number FROM turns t WHERE paths = 0 AND undone IS NULL AND covered IS NULL"
            f" AND (?1 IS NULL OR session = ?1) AND opened > ?2 AND {self._here} AND {shared}"
            " ORDER BY number DESC"
        )
        return self._reader.column(query, (session, opened))

    def turn_during(self, session: str, checkpoint: int) -> "int | None":
        """The turn of a session that ran when a checkpoint was made."""
        query = (
            "SELECT number FROM turns WHERE session = (SELECT number FROM sessions WHERE id = ?1)"
            f" AND before < ?2 AND coalesce(after, ?2) >= ?2 AND {self._here}"
            " ORDER BY number DESC LIMIT 1"
        )
        number: int | None = self._reader.value(query, (session, checkpoint))
        return number

    def is_about(self, restore: RestoreRow, session: int) -> bool:
        """Whether a restore took back, put back or went over turns of a session."""
        query = (
            "SELECT 1 FROM turns WHERE session = ?1 AND (covered = ?2"
            " OR number IN (SELECT value FROM json_each(?3))) LIMIT 1"
        )
        turns = json_text.dumps(list(restore.turns))
        return self._reader.has(query, (session, restore.number, turns))

    def about(self, turn: int) -> "list[RestoreRow]":
        """The undos and redos of a turn that have a say, alone or with others, newest first."""
        return self.about_each((turn,))[turn]

    def about_each(self, turns: "Collection[int]") -> "dict[int, list[RestoreRow]]":
        """The same of several turns, turn by turn."""
        where = (
            "WHERE verb <> ? AND covered IS NULL AND EXISTS (SELECT 1 FROM json_each(turns)"
            " WHERE value IN (SELECT value FROM json_each(?))) ORDER BY number DESC"
        )
        found: dict[int, list[RestoreRow]] = {turn: [] for turn in turns}
        for act in self._some(where, (ROLLBACK, json_text.dumps(list(turns)))):
            for turn in found.keys() & set(act.turns):
                found[turn].append(act)
        return found

    def _first(self, where: str, values: "Values" = ()) -> "RestoreRow | None":
        return next(iter(self._some(where + " LIMIT 1", values)), None)

    def _some(self, where: str, values: "Values" = ()) -> "list[RestoreRow]":
        return [RestoreRow(row) for row in self._reader.rows(_SELECT + where, values)]


def follow(db: "Connection", number: int) -> None:
    """Let the stack follow the newest restore."""
    act = numbered(db, number)
    assert act is not None, "its row is there"
    undo = numbered(db, act.entry) if act.verb == REDO else act
    if act.verb == ROLLBACK:
        is_simple = act.partial or _is_first_since_its_goal(db, act)
    else:
        is_about_turn = undo is None or undo.entry is None
        is_simple = is_about_turn and not (act.verb == REDO and _has_older(db, undo))
    if not is_simple:
        _begin_anew(db, act.line)
    elif act.verb == ROLLBACK:
        _cover(db, act, _Rolled([]))
    elif act.verb != REDO:
        _take_back(db, act, _Rolled([]))
    elif undo is not None:
        _put_back(db, act, undo)


def _has_older(db: "Connection", undo: "RestoreRow | None") -> bool:
    """Whether an older undo that stands took back some of the same turns, too."""
    if undo is None:
        return False
    query = (
        f"SELECT 1 FROM restores r WHERE {_STANDING_UNDO} AND NOT partial AND number < ?"
        " AND EXISTS (SELECT 1 FROM json_each(r.turns) WHERE value IN"
        " (SELECT value FROM json_each(?))) LIMIT 1"
    )
    values = (undo.number, json_text.dumps(list(undo.turns)))
    return db.execute(query, values).fetchone() is not None


def _put_back(db: "Connection", redo: RestoreRow, undo: RestoreRow) -> None:
    """If only some paths or turns were put back, the undo stays: the others still can be."""
    if not redo.partial and _put_back_by(db, undo) >= set(undo.turns):
        change = "UPDATE restores SET reversed = ? WHERE number = ?"
        operations.sql(db, change, (redo.number, undo.number))
    if not undo.partial:
        for turn in redo.turns:
            operations.sql(db, "UPDATE turns SET undone = NULL WHERE number = ?", (turn,))


def _put_back_by(db: "Connection", undo: RestoreRow) -> "set[int]":
    """The turns of an undo that were put back, by one redo or by several."""
    where = "WHERE entry = ? AND verb = ? AND NOT partial AND covered IS NULL"
    rows = db.execute(_SELECT + where, (undo.number, REDO)).fetchall()
    return {turn for row in rows for turn in RestoreRow(row).turns}


def numbered(db: "Connection", number: "int | None") -> "RestoreRow | None":
    """The restore with a number."""
    row = db.execute(_SELECT + "WHERE number = ?", (number,)).fetchone()
    return RestoreRow(row) if row is not None else None


def _is_first_since_its_goal(db: "Connection", act: RestoreRow) -> bool:
    """Whether a rollback goes over turns only, none of which had begun before its goal."""
    query = (
        "SELECT 1 FROM restores WHERE after > ?1 AND number < ?2 AND line = ?3 UNION ALL"
        " SELECT 1 FROM deltas d JOIN turns t ON t.number = d.turn"
        " WHERE d.checkpoint > ?1 AND t.before < ?1 AND t.line = ?3 LIMIT 1"
    )
    return db.execute(query, (act.target, act.number, act.line)).fetchone() is None


def _begin_anew(db: "Connection", line: int) -> None:
    """Make the stack of a line from all its restores."""
    rows = db.execute(_SELECT + "WHERE line = ? ORDER BY number DESC", (line,)).fetchall()
    acts = [RestoreRow(row) for row in rows]
    words, heard, back = _weigh(acts)
    for act in acts:
        said = [words.get((act.number, column)) for column in (UNDONE, COVERED, REVERSED)]
        if said != [act.undone, act.covered, act.reversed]:
            change = "UPDATE restores SET undone = ?, covered = ?, reversed = ? WHERE number = ?"
            operations.sql(db, change, (*said, act.number))
    change = (
        "UPDATE turns SET undone = NULL, covered = NULL"
        " WHERE line = ? AND (undone IS NOT NULL OR covered IS NOT NULL)"
    )
    operations.sql(db, change, (line,))
    _cover_all(db, line, heard)
    rolled = _Rolled(heard)
    for act in reversed(heard):
        if act.verb == UNDO:
            _take_back(db, act, rolled, back.get(act.number, ()))


class _Rolled:
    """The states that rollbacks went back over."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, acts: "Iterable[RestoreRow]") -> None:
        spans = sorted((a.target or 0, a.before) for a in acts if a.verb == ROLLBACK)
        self._starts = [start for start, _ in spans]
        self._ends: list[int] = []
        for _, end in spans:
            self._ends.append(max([end, *self._ends[-1:]]))

    def has(self, state: int) -> bool:
        """Whether a state is among them."""
        from bisect import bisect_left

        earlier = bisect_left(self._starts, state)
        return earlier > 0 and self._ends[earlier - 1] >= state


def _weigh(acts: "list[RestoreRow]") -> "tuple[Words, list[RestoreRow], dict[int, set[int]]]":
    """What is said about restores, the restores that have a say about turns, newest first, and
    of undos the turns that were put back without the others.

    Only later restores speak about one, so whoever is reached knows whether it has a say.
    """
    words: Words = {}
    heard: list[RestoreRow] = []
    in_part: set[int | None] = set()
    back: dict[int, set[int]] = {}
    known = {act.number: act for act in acts}
    redone = {act.entry: act.number for act in reversed(acts) if act.verb == REDO}
    for place, act in enumerate(acts):
        if any((act.number, column) in words for column in (UNDONE, COVERED, REVERSED)):
            continue
        undo = known.get(act.entry or 0) if act.verb == REDO else None
        if act.verb == REDO and act.partial:
            in_part.add(act.entry)
        elif undo is not None and not set(act.turns) >= set(undo.turns):
            some = back.setdefault(undo.number, set())
            some |= set(act.turns)
            if some >= set(undo.turns):
                words[undo.number, REVERSED] = redone[undo.number]
        elif not act.partial and act.number not in in_part:
            heard.append(act)
            _hear(act, acts, place, words)
    return words, heard, back


def _hear(act: RestoreRow, acts: "list[RestoreRow]", place: int, words: "Words") -> None:
    """Note what a restore says about others; it stands at a place among all, newest first."""
    if act.verb != ROLLBACK and act.entry is not None:
        words.setdefault((act.entry, UNDONE if act.verb == UNDO else REVERSED), act.number)
    elif act.verb == ROLLBACK and act.target is not None:
        # The further back, the older is what a restore left.
        place += 1
        while place < len(acts) and acts[place].after > act.target:
            words.setdefault((acts[place].number, COVERED), act.number)
            place += 1


def _take_back(
    db: "Connection", act: RestoreRow, rolled: _Rolled, back: "Collection[int]" = ()
) -> None:
    """What an undo says about turns."""
    for turn in act.turns if not act.partial else ():
        if turn not in act.partly and turn not in back and not _goes_on(db, turn, act, rolled):
            change = "UPDATE turns SET undone = ? WHERE number = ?"
            operations.sql(db, change, (act.number, turn))


def _cover_all(db: "Connection", line: int, heard: "list[RestoreRow]") -> None:
    """What the rollbacks of a line say about turns: of several, the newest counts.

    So each turn is looked at once, however many rollbacks there are. A turn that goes on after the
    newest one goes on after the others, too.
    """
    from bisect import bisect_left

    query = "SELECT before, number FROM turns WHERE line = ? ORDER BY before, number"
    rows = db.execute(query, (line,)).fetchall()
    befores, numbers = [row[0] for row in rows], [row[1] for row in rows]
    rolled, newer = _Rolled(heard), _NEWEST
    for act in heard:
        if act.verb != ROLLBACK or act.target is None:
            continue
        some = numbers[bisect_left(befores, act.target) : bisect_left(befores, newer)]
        if some:
            _cover(db, act, rolled, newer, (min(some), max(some)))
        newer = min(newer, act.target)


def _cover(
    db: "Connection",
    act: RestoreRow,
    rolled: _Rolled,
    newer: int = _NEWEST,
    numbers: "tuple[int, int]" = (0, _NEWEST),
) -> None:
    """A rollback covers the turns that began at or after its goal, and before it.

    From the goal `newer` on, a newer rollback covers them. `numbers` are those of the turns.
    """
    if act.partial or act.target is None:
        return
    over = (
        f"line = {act.line} AND number BETWEEN ?5 AND ?6"
        " AND before >= ?1 AND before < ?7 AND opened < ?2 AND"
    )
    later = "EXISTS (SELECT 1 FROM deltas d WHERE d.turn = turns.number AND d.checkpoint > ?3)"
    values = (act.target, act.event, _done_by(db, act), act.number, *numbers, newer)
    query = f"SELECT number FROM turns WHERE {over} {later}"
    goes_on = [turn for (turn,) in db.execute(query, values).fetchall()]
    change = f"UPDATE turns SET covered = ?4 WHERE {over} NOT {later}"
    operations.sql(db, change, values)
    for turn in goes_on:
        if not _goes_on(db, turn, act, rolled):
            operations.sql(db, "UPDATE turns SET covered = ? WHERE number = ?", (act.number, turn))


def _goes_on(db: "Connection", turn: int, act: RestoreRow, rolled: _Rolled) -> bool:
    """Whether a turn did something since a restore, or while it was made, that still counts."""
    query = "SELECT DISTINCT checkpoint FROM deltas WHERE turn = ? AND checkpoint > ?"
    states = db.execute(query, (turn, _done_by(db, act))).fetchall()
    return any(not rolled.has(state) for (state,) in states)


def _done_by(db: "Connection", act: RestoreRow) -> int:
    """The last state of which a restore knew; if nothing changed, that is what it left."""
    if act.before == act.after:
        return act.after
    return Checkpoints(Reader(lambda: db)).parent_of(act.after)


def go_on(db: "Connection", turns: "Iterable[object]") -> None:
    """Turns that change something after they were taken back are live again."""
    for turn in sorted(turns):  # type: ignore[type-var]
        change = (
            "UPDATE turns SET undone = NULL, covered = NULL"
            " WHERE number = ? AND (undone IS NOT NULL OR covered IS NOT NULL)"
        )
        operations.sql(db, change, (turn,))  # type: ignore[arg-type]
