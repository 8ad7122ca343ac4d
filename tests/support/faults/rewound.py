"""Looks at a tree and its store after a fault in a restore, and says everything that is wrong."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import oracle
from faults import injection
from faults.children import Ended
from faults.judge import SECONDS_TO_RECOVER, Court, verified
from oracle import Picture
from takeback.project import Project

if TYPE_CHECKING:
    from faults.rewinding import Rewinding

REQUEST = "restore-"
STAGING = b".takeback-stage-"

_PHRASES = {
    "ENOSPC": ("No space left on device", "full"),
    "EIO": ("Input/output error", "I/O error"),
    "EACCES": ("Permission denied", "readonly"),
}


class RestoreCourt(Court):
    """One tree and its store after one fault."""

    def __init__(self, play: "Rewinding", *, goes_on: bool, is_thorough: bool) -> None:
        super().__init__(play.tree, play.home, play.before)
        self._play = play
        self._goes_on = goes_on
        self._is_thorough = is_thorough
        self._pictures = play.pictures
        self._plain = Plain(play.home, is_open=True)

    def hold(
        self,
        acked: set[str],
        kind: str,
        attempts: Collection[Ended],
        change: Callable[[], None],
    ) -> Iterator[str]:
        """Open, which recovers; compare; do what is left to be done, and take it back."""
        del change
        for attempt in attempts:
            yield from self._failed_well(attempt, kind)
        waiting = Plain(self._home, is_open=False).interrupted()
        started = time.monotonic()
        with self._open() as project:
            took = time.monotonic() - started
            if took > SECONDS_TO_RECOVER:
                yield f"opening took {took:.1f} s"
            yield from self._recovered(project, waiting, attempts)
            yield from self._compare(_ids(project), acked, kind, attempts)
            yield from verified(project, "right after the fault")
            if self._is_thorough:
                yield from self._checkpoints_are_whole(project)
                yield from self._follows_from_events(project)
            if self._goes_on:
                yield from self._go_on(project, sorted(acked), _nothing_else)
        yield from self._locked()
        yield from self._events()

    # -- the call that failed --------------------------------------------------------------

    def _failed_well(self, attempt: Ended, kind: str) -> Iterator[str]:
        """An error says what failed, and when it comes the tree is as the log says."""
        for said in attempt.every("refused"):
            if not any(phrase in said for phrase in _PHRASES.get(kind, ("",))):
                yield f"{kind} at {attempt.every('fired')} was told as {said!r}"
        if kind in injection.LASTING:
            # Nothing could be written any more, so nothing could be put back either.
            return
        for word in attempt.said:
            left, number = word.get("left"), word.get("restored")
            if isinstance(left, list) and str(number) not in left:
                where = f"{number} restores are in the log"
                yield f"the call failed, {where}, and the tree is {left or 'between'}"

    # -- right after the fault -------------------------------------------------------------

    def _recovered(
        self, project: Project, waiting: bool, attempts: Collection[Ended]
    ) -> Iterator[str]:
        """An interrupted restore was taken back or finished, and that is said and recorded."""
        if self._plain.interrupted():
            yield "the restore is still open"
        if waiting and not project.recovered:
            yield "recovery said nothing"
        was_open = waiting or any(attempt.every("interrupted") for attempt in attempts)
        if was_open and self._plain.ended() <= len(self._play.restore.ready):
            yield "recovery is not in the log"
        for name in os.listdir(os.fsencode(self._tree)):
            if name.startswith(STAGING):
                yield f"litter in the tree: {name!r}"

    def _compare(
        self, present: list[str], acked: set[str], kind: str, attempts: Collection[Ended]
    ) -> Iterator[str]:
        """The tree is where the log says, and what was acknowledged is in the log."""
        for lost in self._before.checkpoints.keys() - set(present):
            yield f"checkpoint {lost} is lost"
        number = self._plain.restored()
        if not len(acked) <= number <= len(acked) + 1:
            yield f"{len(acked)} restores were acknowledged, {number} are in the log"
        del kind, attempts
        yield from self._is(number, "after the fault")
        more = len(present) - len(self._before.checkpoints)
        if more != number:
            yield f"{number} restores, and {more} checkpoints more than before"

    def _is(self, number: int, when: str) -> Iterator[str]:
        """Whether the tree is as it shall be after so many of the restores."""
        now = oracle.picture(self._tree)
        for difference in oracle.differences(self._pictures[number], now)[:3]:
            others = places(self._tree, self._pictures)
            yield f"{when} the tree is {others or 'between'}, not {number}: {difference}"

    def _checkpoints_are_whole(self, project: Project) -> Iterator[str]:
        made = [id for id in _ids(project) if id not in self._before.checkpoints]
        for id, picture in self._before.checkpoints.items():
            yield from self._extract(project, id, picture)
        for number, id in enumerate(reversed(made), 1):
            yield from self._extract(project, id, self._pictures[number])

    def _follows_from_events(self, project: Project) -> Iterator[str]:
        """The tables are what the events make of them."""
        before = self._plain.tables()
        project.rebuild()
        for table, rows in self._plain.tables().items():
            if rows != before[table]:
                yield f"the table `{table}` does not follow from the events"

    # -- going on --------------------------------------------------------------------------

    def _go_on(
        self, project: Project, present: list[str], change: Callable[[], None]
    ) -> Iterator[str]:
        """The same requests give the same answers and complete it; then it is taken back."""
        del change
        again = set(self._play.act(project, ""))
        for first in set(present) - again:
            yield f"the first answer was {first!r}, trying again gave {sorted(again)}"
        yield from self._is(len(self._pictures) - 1, "after trying again")
        getattr(project, self._play.restore.reverse)(yes=True)
        yield from self._is(len(self._pictures) - 2, "after taking it back")
        yield from self._litter(project)
        if not self._is_thorough:
            return
        (self._tree / "later").write_bytes(b"later\n")
        later = project.checkpoint("later")
        yield from self._extract(project, later.id, oracle.picture(self._tree))
        yield from verified(project, "after going on")


def _ids(project: Project) -> list[str]:
    return [checkpoint.id for checkpoint in project.checkpoints()]


def _nothing_else() -> None:
    return


# -- what is told without the product --------------------------------------------------------


def places(tree: Path, pictures: Sequence[Picture]) -> list[str]:
    """Which of the pictures the tree looks like, by number; what is staged does not count."""
    now = oracle.picture(tree)
    staged = [path for path in now if path.startswith(STAGING)]
    now = {path: entry for path, entry in now.items() if path.split(b"/")[0] not in staged}
    return [str(number) for number, picture in enumerate(pictures) if picture == now]


class Plain:
    """The ledger as SQLite itself sees it.

    In a process that has the ledger open, reading any of its files but through SQLite would
    drop its locks; everywhere else a copy is read, so that looking changes nothing.
    """

    def __init__(self, home: Path, *, is_open: bool) -> None:
        self._home = home
        self._is_open = is_open

    def restored(self) -> int:
        """How many of the restores that were asked for are in the log."""
        return len(self._ask(f"SELECT 1 FROM events WHERE request LIKE '{REQUEST}%'"))

    def interrupted(self) -> bool:
        """Whether a restore was begun and neither finished nor taken back."""
        return bool(self._ask("SELECT 1 FROM journal WHERE phase = 'applying'"))

    def ended(self) -> int:
        """How many restores were finished or taken back."""
        return len(self._ask("SELECT 1 FROM events WHERE kind LIKE 'Restore%'"))

    def tables(self) -> dict[str, list[str]]:
        """All tables, row by row."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        tables = [str(name) for (name,) in self._ask(names)]
        return {table: sorted(map(repr, self._ask(f"SELECT * FROM {table}"))) for table in tables}

    def _ask(self, query: str) -> list[tuple[object, ...]]:
        ledgers = list(self._home.glob("projects/*/ledger.db"))
        if not ledgers:
            return []
        if self._is_open:
            return _read(ledgers[0], query)
        copy = self._home.parent / "read"
        copy.mkdir()
        try:
            for file in ledgers[0].parent.glob("ledger.db*"):
                shutil.copy(file, copy)
            return _read(copy / "ledger.db", query)
        finally:
            shutil.rmtree(copy)


def _read(ledger: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(ledger)) as db:
        return db.execute(query).fetchall()
