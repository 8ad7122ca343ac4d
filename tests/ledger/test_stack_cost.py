"""To make the undo stack anew costs as much as there are turns and rollbacks, not their product."""

import json
import sys
from contextlib import closing

from takeback.disk import sqlite
from takeback.ledger import undo_stack
from takeback.ledger.ledger import Ledger


def history(db: sqlite.Connection, count: int) -> None:
    """Turns, each taken back by a rollback that nothing covers."""
    for number in range(1, count + 1):
        event, before = 10 * number, 2 * number
        insert(db, "turns", number=number, opened=event, before=before)
        for state in (before, before + 1):
            insert(db, "checkpoints", number=state, id=str(state), parent=state - 1)
        insert(db, "delta_rows", checkpoint=before, place=number, path=1, turn=number)
        states = {"target": before, "before": before + 1, "after": before + 2}
        insert(db, "restores", number=number, verb="rollback", event=event + 5, **states)


def insert(db: sqlite.Connection, table: str, **values: object) -> None:
    """A row; what the stack does not look at is empty."""
    empty = {"undone": None, "covered": None, "reversed": None, "entry": None}
    row: dict[str, object] = {
        **empty,
        "turns": "[]",
        "partly": "[]",
        "running": "[]",
        "id": str(values.get("number")),
        "partial": 0,
    }
    row |= {"line": 1, **values}
    names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
    marks = ", ".join("?" * len(names))
    db.execute(f"INSERT INTO {table} VALUES ({marks})", tuple(row.get(n, "") for n in names))


def work_of_an_undo(count: int) -> tuple[int, int]:
    """What SQLite and Python do when the newest of many rollbacks is undone, in small steps."""
    steps, calls = [0], [0]

    def step() -> int:
        steps[0] += 1
        return 0

    def count_lines(*_: object) -> object:
        calls[0] += 1
        return count_lines

    with closing(Ledger.in_memory()) as ledger:
        db = ledger._db
        history(db, count)
        undo = {"verb": "undo", "entry": count, "turns": json.dumps([]), "target": None}
        states = {"before": 2 * count + 2, "after": 2 * count + 3}
        insert(db, "restores", number=count + 1, event=20 * count, **undo, **states)
        db.set_progress_handler(step, 100)
        before = sys.gettrace()
        sys.settrace(count_lines)  # type: ignore[arg-type]
        try:
            undo_stack.follow(db, count + 1)
        finally:
            sys.settrace(before)
        db.set_progress_handler(None, 0)
        covered = db.execute("SELECT number, covered FROM turns ORDER BY number").fetchall()
        wanted = [(number, number) for number in range(1, count)]
        assert covered == [*wanted, (count, None)]
    return steps[0], calls[0]


def test_an_undo_over_many_rollbacks_costs_what_they_are() -> None:
    """Four times as many turns and rollbacks are at most some five times the work."""
    few, many = work_of_an_undo(100), work_of_an_undo(400)
    assert many[0] < 6 * few[0], (few, many)
    assert many[1] < 6 * few[1], (few, many)
