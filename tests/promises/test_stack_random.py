"""The stack alone, without files: any order of turns and restores leaves what the model says.

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
PATHS: tuple[list[bytes], ...] = ([], [], [], [b"file"])


class Stack:
    """The tables of the stack beside the model; trees are numbers only."""

    def __init__(self, db: sqlite.Connection, chance: Random) -> None:
        schema.make(db, schema.PROJECTIONS)
        self.db = db
        self.chance = chance
        self.trees = count(1)
        self.model = Model(self._tree())
        self.numbers: dict[Act, int] = {}
        self.events = count(1)

    def _tree(self) -> Tree:
        return {b"file": ("file", 0o644, b"%d" % next(self.trees))}

    def happen(self) -> None:
        """Anything that can happen."""
        kind, model = self.chance.choice(ACTS), self.model
        if kind == TURN and not model.running:
            turn = model.begin("", "")
            self.numbers[turn] = len(model.turns)
            self._insert("turns", number=len(model.turns), before=turn.began + 1)
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
            state, number = len(self.model.states), self.numbers[turn]
            self._insert("delta_rows", checkpoint=state, place=number, path=1, turn=number)
            undo_stack.go_on(self.db, [number])

    def _restore(self, kind: str) -> None:
        try:
            act = self._act(kind, self.chance.choice(PATHS))
        except Refused:
            return
        is_empty = kind != ROLLBACK and not act.is_partial and self.chance.random() < 0.1
        before = len(self.model.states)
        self.model.done(act, self.model.tree if is_empty else self._tree())
        number = self.numbers[act] = len(self.model.restores)
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
            target=act.to + 1 if kind == ROLLBACK else None,
            before=before,
            after=len(self.model.states),
            partial=act.is_partial,
            turns=json.dumps([self.numbers[taken]] if taken and is_about_turn else []),
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
        event = next(self.events)
        row: dict[str, object] = {"undone": None, "covered": None, "reversed": None}
        row |= {"id": str(event), "opened": event, "event": event, **values}
        names = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")]
        marks = ", ".join("?" * len(names))
        given = tuple(row.get(name, "") for name in names)
        self.db.execute(f"INSERT INTO {table} VALUES ({marks})", given)

    def told(self) -> tuple[list[tuple[bool]], list[tuple[bool]]]:
        """Which turns and which restores are live, as the tables tell."""
        live = "undone IS NULL AND covered IS NULL"
        turns = self.db.execute(f"SELECT {live} FROM turns ORDER BY number").fetchall()
        live += " AND reversed IS NULL"
        return turns, self.db.execute(f"SELECT {live} FROM restores ORDER BY number").fetchall()


@pytest.mark.parametrize("seed", range(40))
def test_any_history_leaves_the_stack_of_the_model(seed: int) -> None:
    """After each act, the tables tell what the model says, and what is made anew is the same."""
    for turn in range(5):
        with closing(sqlite.connect(":memory:", isolation_level=None)) as db:
            stack = Stack(db, Random(f"{seed} {turn}"))
            for _ in range(30):
                stack.happen()
                is_live = stack.model.says.is_live
                turns = [(is_live(turn),) for turn in stack.model.turns]
                acts = [(is_live(act),) for act in stack.model.restores]
                assert stack.told() == (turns, acts)
