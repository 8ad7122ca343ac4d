"""The stack alone, without files: any order of turns and restores leaves what the model says.

Also in two lines of one history, which take turns: each is as its own model says.

`test_restores_random` does the same with real files, and so cannot try as many histories.
"""

import json
from contextlib import closing
from itertools import count
from random import Random

import pytest

from takeback.disk import sqlite
from takeback.ledger import schema, undo_stack
from undo_model import REDO, ROLLBACK, TURN, UNDO, Act, Model, Refused, Tree

ACTS = (TURN, "work", "work", "end", *(UNDO, REDO) * 3, ROLLBACK, ROLLBACK)
EVENTS = count(1)
PATHS: tuple[list[bytes], ...] = ([], [], [], [b"file"])


class Stack:
    """The tables of the stack beside the model; trees are numbers only."""

    def __init__(self, db: sqlite.Connection, chance: Random, line: int = 1) -> None:
        if line == 1:
            schema.make(db, schema.PROJECTIONS)
        self.db = db
        self.line = line
        self.states: list[int] = []
        """The numbers of the model's states."""
        self.chance = chance
        self.trees = count(1)
        self.model = Model(self._tree())
        self.numbers: dict[Act, int] = {}
        self._look()

    def _look(self) -> int:
        """The number of the newest state of the model, which gets a row like those before it."""
        while len(self.states) < len(self.model.states):
            number, parent = self._next("checkpoints"), self.states[-1] if self.states else None
            self._insert("checkpoints", number=number, parent=parent)
            self.states.append(number)
        return self.states[-1]

    def _next(self, table: str) -> int:
        found = self.db.execute(f"SELECT coalesce(max(number), 0) + 1 FROM {table}").fetchone()
        return int(found[0])

    def _tree(self) -> Tree:
        return {b"file": ("file", 0o644, b"%d" % next(self.trees))}

    def happen(self) -> None:
        """Anything that can happen."""
        kind, model = self.chance.choice(ACTS), self.model
        if kind == TURN and not model.running:
            turn = model.begin("", "")
            self.numbers[turn] = self._next("turns")
            self._look()
            self._insert("turns", number=self.numbers[turn], before=self.states[turn.began])
        elif kind == "work":
            self._work()
        elif kind == "end" and model.running:
            model.end(model.running[0])
        elif kind == "end" and model.turns:
            model.go_on(self.chance.choice(model.turns))
        elif kind in (UNDO, REDO, ROLLBACK):
            self._restore(kind)

    def _work(self) -> None:
        self.model.look(self._tree())
        for turn in self.model.running:
            state, number = self._look(), self.numbers[turn]
            self._insert("delta_rows", checkpoint=state, place=number, path=1, turn=number)
            undo_stack.go_on(self.db, [number])

    def _restore(self, kind: str) -> None:
        try:
            act = self._act(kind, self.chance.choice(PATHS))
        except Refused:
            return
        is_empty = kind != ROLLBACK and not act.is_partial and self.chance.random() < 0.1
        before = self._look()
        self.model.done(act, self.model.tree if is_empty else self._tree())
        number = self.numbers[act] = self._next("restores")
        of = self.numbers[act.of] if act.of is not None else None
        is_of_turn = act.of is not None and act.of.kind == TURN
        taken = act.of.of if act.of is not None and kind == REDO else act.of
        is_about_turn = taken is not None and taken.kind == TURN
        self._insert(
            "restores",
            number=number,
            verb=kind,
            turn=of if is_of_turn else None,
            entry=None if is_of_turn else of,
            target=self.states[act.to] if kind == ROLLBACK else None,
            before=before,
            after=self._look(),
            partial=act.is_partial,
            turns=json.dumps([self.numbers[taken]] if taken and is_about_turn else []),
            partly="[]",
            running="[]",
        )
        undo_stack.follow(self.db, number)

    def _act(self, kind: str, scope: list[bytes]) -> Act:
        """What is done, of all that the model allows; here no tree is in the way of anything."""
        model, is_bare = self.model, self.chance.random() < 0.6
        act = model._act(kind)
        act.is_partial = bool(scope)
        if kind == ROLLBACK:
            act.to = self.chance.randrange(len(model.states))
        elif not model.entries():
            raise Refused("nothing")
        else:
            named = self.chance.choice(model.entries())
            bare, by_name = (
                (model.newest_live, model.undoable)
                if kind == UNDO
                else (model.newest_undone, model.undo_of)
            )
            act.of = bare() if is_bare else by_name(named)
        return act

    def _insert(self, table: str, **values: object) -> None:
        """A row; what the stack does not look at is empty."""
        event = next(EVENTS)
        row: dict[str, object] = {"undone": None, "covered": None, "reversed": None}
        row["line"] = self.line
        row |= {"id": str(event), "opened": event, "event": event, **values}
        names = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")]
        marks = ", ".join("?" * len(names))
        given = tuple(row.get(name, "") for name in names)
        self.db.execute(f"INSERT INTO {table} VALUES ({marks})", given)

    def told(self) -> tuple[list[tuple[bool]], list[tuple[bool]]]:
        """Which turns and which restores are live, as the tables tell."""
        live, these = (
            "undone IS NULL AND covered IS NULL",
            f"WHERE line = {self.line} ORDER BY number",
        )
        turns = self.db.execute(f"SELECT {live} FROM turns {these}").fetchall()
        live += " AND reversed IS NULL"
        return turns, self.db.execute(f"SELECT {live} FROM restores {these}").fetchall()

    def require_as_modelled(self) -> None:
        """The tables tell what the model says."""
        is_live = self.model.says.is_live
        turns = [(is_live(turn),) for turn in self.model.turns]
        acts = [(is_live(act),) for act in self.model.restores]
        assert self.told() == (turns, acts)


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_any_history_leaves_the_stack_of_the_model(seed: int, lines: int) -> None:
    """After each act, the tables tell what the model says, and what is made anew is the same."""
    for turn in range(4):
        with closing(sqlite.connect(":memory:", isolation_level=None)) as db:
            chance = Random(f"{seed} {turn}")
            stacks = [Stack(db, chance, line) for line in range(1, lines + 1)]
            for _ in range(30 * lines):
                chance.choice(stacks).happen()
                for stack in stacks:
                    stack.require_as_modelled()
