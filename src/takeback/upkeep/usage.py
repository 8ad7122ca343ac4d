"""What each session, agent or folder added to the store, in numbers that add up.

Checkpoints are walked from the oldest to the newest. An object belongs to the first that needs it,
and of a file to whoever changed the path then; what describes folders and the git view goes to who
changed most in that checkpoint. What nothing needs, and what packs need besides their objects, is
`other`: with it the parts are exactly what the packs take on disk.
"""

from takeback.model.results import Share
from takeback.model.words import ATTRIBUTING, STEP, YOU
from takeback.upkeep.reachable import Reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.ledger.ledger import Ledger
    from takeback.objects.object_store import ObjectStore
    from takeback.ports import Progress

    Owner = tuple[str, int]
    """Who, and the number of the session or 0."""

SESSION, AGENT, PATH = "session", "agent", "path"
OUTSIDE = "(outside)"
PARTICIPANTS = "participants"
"""Whose are copies of databases, and of other state beside the files."""
CALLS = "(tool calls)"


def shares(
    ledger: "Ledger",
    objects: "ObjectStore",
    by: str,
    progress: "Progress | None" = None,
) -> "list[Share]":
    """What each added, the largest first; in a ledger that stands still."""
    reach = Reach(objects)
    try:
        reach.catalog.follow(ledger.packs())
        rows = sorted(
            (row for row in ledger.checkpoints.of_all_lines() if row.gone is None),
            key=lambda row: row.number,
        )
        for done, row in enumerate(rows):
            if progress is not None:
                progress(ATTRIBUTING, done, len(rows))
            reach.checkpoint(row)
        reach.everything(ledger, ledger.care.lowest_floor())
    finally:
        reach.close()
    beside = ledger.participants.objects()
    count = _ByPath(beside) if by == PATH else _ByOwner(ledger, by, beside)
    names = reach.marks.series()
    for found, _, series, checkpoint in reach.marks:
        count.add(names[series], checkpoint, reach.catalog.sizes[found])
    return sorted(count.shares(), key=lambda share: (-share.bytes, share.name))


class _ByPath:
    """By the folder at the top; files beside them are `.`."""

    def __init__(self, beside: "set[bytes]") -> None:
        self._beside = beside
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, series: bytes, checkpoint: int, size: int) -> None:
        del checkpoint
        kind, path = _path_of(series)
        top, slash, _ = path.partition(b"/")
        if kind == b"o":
            name = OUTSIDE
        elif kind == b"e":
            name = f"({PARTICIPANTS})" if path in self._beside else CALLS
        else:
            is_below = bool(slash) or (kind != b"f" and bool(top))
            name = top.decode("utf-8", "surrogateescape") if is_below else "."
        bytes, objects = self._found.get(name, (0, 0))
        self._found[name] = (bytes + size, objects + 1)

    def shares(self) -> "Iterator[Share]":
        for name, (bytes, objects) in self._found.items():
            yield Share(name, bytes, objects)


class _ByOwner:
    """By who changed what, as the log says."""

    def __init__(self, ledger: "Ledger", by: str, beside: "set[bytes]") -> None:
        self._ledger = ledger
        self._beside = beside
        self._by = by
        self._found: dict[Owner, tuple[int, int]] = {}
        self._checkpoint = -1
        self._owners: dict[bytes, Owner] = {}
        self._most: Owner = (YOU, 0)
        self._outside = {
            path: (STEP, session) for path, session in ledger.outside.sessions_by_path().items()
        }

    def add(self, series: bytes, checkpoint: int, size: int) -> None:
        kind, path = _path_of(series)
        if kind == b"o":
            owner = self._outside.get(path, (YOU, 0))
        elif kind == b"e":
            owner = (PARTICIPANTS if path in self._beside else YOU, 0)
        else:
            self._look_at(checkpoint)
            owner = self._owners.get(path, self._most) if kind == b"f" else self._most
        bytes, objects = self._found.get(owner, (0, 0))
        self._found[owner] = (bytes + size, objects + 1)

    def _look_at(self, checkpoint: int) -> None:
        if checkpoint == self._checkpoint:
            return
        self._checkpoint = checkpoint
        self._owners = {
            path: (who, session if who == STEP and session is not None else 0)
            for path, who, session in self._ledger.deltas.authors(checkpoint)
        }
        found = list(self._owners.values())
        self._most = max(found, key=found.count) if found else (YOU, 0)

    def shares(self) -> "Iterator[Share]":
        sessions = {row.number: row for row in self._ledger.sessions.newest(None)}
        merged: dict[str, tuple[int, int, str, str]] = {}
        for (who, number), (bytes, objects) in self._found.items():
            of = sessions.get(number)
            name = who if of is None else of.agent if self._by == AGENT else of.id
            before = merged.get(name, (0, 0, "", ""))
            shown = ("", "")
            if of is not None and self._by == SESSION:
                shown = (of.agent, of.title or self._last_label(number))
            merged[name] = (before[0] + bytes, before[1] + objects, *shown)
        for name, (bytes, objects, agent, called) in merged.items():
            yield Share(name, bytes, objects, agent=agent, title=called)

    def _last_label(self, session: int) -> str:
        turn = self._ledger.turns.newest_of(session)
        return "" if turn is None else turn.label


def _path_of(series: bytes) -> "tuple[bytes, bytes]":
    """The kind of a thing, and its path: see `reach`."""
    kind = series[:1]
    return (kind, series[2:]) if kind == b"t" else (kind, series[1:])
