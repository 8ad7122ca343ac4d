"""Random histories over files, memory, SQLite and mutations, against a model of a stack.

`TAKEBACK_TEST_EXAMPLES=2000 ./check tests/participants/test_random.py` plays more of them. Another
place joins by an entry in `PLACES`: what reads it, and what writes it.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import takeback
from takeback.disk import operations
from takeback.model.beyond.participants import Mutation
from takeback.participants.sqlite.participant import SqliteDatabase
from takeback.session import Session, Turn
from toys import Box

EXAMPLES = int(os.environ.get("TAKEBACK_TEST_EXAMPLES", "12"))
State = tuple[int, ...]


class World:
    """A project with everything that moves, each place holding a number."""

    def __init__(self, folder: Path) -> None:
        for name in ("tree", "home", "box"):
            (folder / name).mkdir(mode=0o700)
        self.file = folder / "tree" / "file"
        self.file.write_text("0")
        self.box = Box(folder / "box" / "text")
        self.box.write("0")
        self.app = 0
        self.project = takeback.open(folder / "tree", home=folder / "home")
        self.project.register(self.box)
        # The harness has its database open all the time.
        self.database = sqlite3.connect(folder / "app.db", isolation_level=None)
        self.database.execute("CREATE TABLE t (n INTEGER)")
        self.database.execute("INSERT INTO t VALUES (0)")
        self.project.register(SqliteDatabase("db", folder / "app.db"))
        self.session: Session = self.project.session("agent")
        self.session.memory["k"] = 0

    def put_back(self, mutation: Mutation) -> None:
        assert isinstance(mutation.before, int)
        self.app = mutation.before

    def do_again(self, mutation: Mutation) -> None:
        assert isinstance(mutation.after, int)
        self.app = mutation.after

    def mutate(self, turn: Turn, value: int) -> None:
        before, self.app = self.app, value
        turn.mutate(
            "app",
            before,
            value,
            inverse=self.put_back,
            read=lambda _target: self.app,
            redo=self.do_again,
        )

    def row(self) -> int:
        return int(self.database.execute("SELECT n FROM t").fetchone()[0])

    def state(self) -> State:
        return tuple(read(self) for read, _ in PLACES)


Read = Callable[[World], int]
Write = Callable[[World, Turn, int], object]
PLACES: tuple[tuple[Read, Write], ...] = (
    (lambda w: int(w.file.read_text()), lambda w, _, n: w.file.write_text(str(n))),
    (lambda w: int(w.box.text), lambda w, _, n: w.box.write(str(n))),
    (lambda w: int(w.session.memory["k"]), lambda w, _, n: w.session.memory.update(k=n)),
    (lambda w: w.row(), lambda w, _, n: w.database.execute("UPDATE t SET n = ?", (n,))),
    (lambda w: w.app, lambda w, turn, n: w.mutate(turn, n)),
)


class Entry(NamedTuple):
    """A live turn or rollback of the model."""

    turn: str
    before: State
    after: State


class Played:
    """One history, in the world and in the model."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stack: list[Entry] = []
        self.undone: list[Entry] = []
        self.now = world.state()
        self.number = 0

    def turn(self, places: set[int]) -> None:
        before = self.now
        with self.world.session.turn("go") as turn:
            for place in sorted(places):
                self.number += 1
                PLACES[place][1](self.world, turn, self.number)
        self.now = self.world.state()
        self.stack.append(Entry(turn.id, before, self.now))
        self.undone.clear()

    def undo(self) -> None:
        if self.stack:
            self.world.project.undo()
            entry = self.stack.pop()
            self.undone.append(entry)
            self.now = entry.before

    def redo(self) -> None:
        if self.undone:
            self.world.project.redo()
            entry = self.undone.pop()
            self.stack.append(entry)
            self.now = entry.after

    def rollback(self, back: int) -> None:
        recent: list[Entry] = []
        for entry in reversed(self.stack):
            if not entry.turn:
                break
            recent.append(entry)
        if not recent or recent[back % len(recent)].before == self.now:
            return
        target = recent[back % len(recent)]
        self.world.project.rollback(f"{target.turn}-")
        self.stack.append(Entry("", self.now, target.before))
        self.undone.clear()
        self.now = target.before


ACTS = st.one_of(
    st.tuples(st.just("turn"), st.sets(st.integers(0, len(PLACES) - 1), min_size=1)),
    st.tuples(st.just("undo"), st.none()),
    st.tuples(st.just("redo"), st.none()),
    st.tuples(st.just("rollback"), st.integers(0, 5)),
)


@pytest.mark.timeout(3600 if EXAMPLES > 100 else 120)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTS, min_size=2, max_size=9))
def test_random_histories(acts: list[tuple[str, object]]) -> None:
    """After each act all places hold what the model says."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(dir=place) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "sync", False)
        world = World(Path(folder))
        played = Played(world)
        for name, given_ in acts:
            method = getattr(played, name)
            method(*(() if given_ is None else (given_,)))
            assert world.state() == played.now, name
        assert not world.box.prepared
        world.project.close()
        world.database.close()
