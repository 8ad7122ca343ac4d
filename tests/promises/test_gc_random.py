"""Random histories with gc at random ages: what is kept is as it was, and is never refused.

`FAULTS=full` tries more of them.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import takeback
from faults.report import FULL, stage
from takeback.disk import operations
from takeback.errors import NoLongerKeptError, TakebackError
from takeback.history import retention
from years import Years

NAMES = ("a", "b", "d/c", "d/e/f")
TEXTS = ("one\n", "two\n" * 30, "".join(f"{n}\n" for n in range(40)), "")

Act = tuple[str, int, int]
acts = st.tuples(
    st.sampled_from(
        ("turn", "turn", "turn", "turn", "wait", "yours", "undo", "redo", "back", "keep", "release",
         "beside", "gc", "gc", "full")
    ),
    st.integers(0, 30),
    st.integers(0, 30),
)  # fmt: skip


class History(Years):
    """A history that goes as it is told."""

    _open: "takeback.Turn | None" = None

    def act(self, what: str, one: int, two: int) -> None:
        """One thing that happens; what cannot be done then is not."""
        do: dict[str, Callable[[int, int], None]] = {
            "turn": self._turn, "wait": self._wait, "yours": self._yours, "undo": self._undo,
            "redo": self._redo, "back": self._back, "keep": self._keep, "release": self._release,
            "beside": self._beside, "gc": self._gc, "full": self._gc_full,
        }  # fmt: skip
        try:
            do[what](one, two)
        except NoLongerKeptError:
            if what not in ("undo", "redo", "back", "keep"):
                raise
        except TakebackError:
            if what in ("gc", "full", "turn", "yours", "beside"):
                raise

    def _edit(self, one: int, two: int) -> None:
        name = NAMES[one % len(NAMES)]
        if two % 5 == 0 and self.has(name):
            self.remove(name)
        elif two % 7 == 0 and self.has(name):
            shutil.move(self.tree / name, self.tree / f"moved{two}")
        else:
            self.put(name, TEXTS[two % len(TEXTS)] + f"{one}\n")

    def _turn(self, one: int, two: int) -> None:
        with self.working():
            self._edit(one, two)
            self._edit(one + 1, two + 3)

    def _wait(self, one: int, two: int) -> None:
        del two
        self.wait(one / 2)

    def _yours(self, one: int, two: int) -> None:
        self._edit(one, two)
        self.note(self.checkpoint())

    def _undo(self, one: int, two: int) -> None:
        del two
        self.project.undo(self._some_turn(one), decide="take-back", yes=True)

    def _redo(self, one: int, two: int) -> None:
        del two
        self.project.redo(self._some_turn(one), decide="take-back", yes=True)

    def _some_turn(self, one: int) -> str | None:
        return self.turns[-1 - one % len(self.turns)].id if self.turns and one % 3 else None

    def _back(self, one: int, two: int) -> None:
        del two
        states = list(self.states)
        self.project.rollback(states[one % len(states)] if states else "@", yes=True)

    def _keep(self, one: int, two: int) -> None:
        del two
        states = list(self.states)
        self.project.keep(states[one % len(states)] if states else "@")

    def _release(self, one: int, two: int) -> None:
        del two
        pinned = self.project.kept()
        if pinned:
            self.project.release(pinned[one % len(pinned)].checkpoint)

    def _beside(self, one: int, two: int) -> None:
        """A turn of another session begins, or ends."""
        if self._open is None:
            session = self.project.session("beside", id=f"{one}")
            self._open = session.turn("beside", whole=False)
            with self._open.step("Write", {"file_path": "beside"}):
                self.put("beside", f"{one} {two}\n")
        else:
            self._open.end("done")
            self._open = None

    # -- gc --------------------------------------------------------------------------------

    def _gc(self, one: int, two: int) -> None:
        self._collect(one / 3 + 0.1, two % 6 + 1, full=False)

    def _gc_full(self, one: int, two: int) -> None:
        self._collect(one / 3 + 0.1, two % 6 + 1, full=True)

    def _collect(self, days: float, turns: int, *, full: bool) -> None:
        """What is kept can be planned as before; what is not says so."""
        before = self._plans()
        self.gc(days=days, turns=turns, full=full)
        after = self._plans()
        floor = retention.floor(self.project.workspace.ledger)
        for turn, plans in before.items():
            first = self.project.workspace.ledger._reader.rows(
                "SELECT before FROM turns WHERE id = ?", (turn,)
            )[0][0]
            if first > floor:
                assert after[turn] == plans, f"the plans of {turn} are others now"
            else:
                assert "NoLongerKeptError" in after[turn][0] or after[turn][0] == plans[0]
        assert self.wrong() == []
        assert self.complaints() == []
        assert self.project.upkeep.examine()[0] == ()

    def _plans(self) -> dict[str, tuple[str, str]]:
        """What would be done to take back and to put back each turn."""
        return {turn.id: (self._undo_of(turn.id), self._redo_of(turn.id)) for turn in self.turns}

    def _undo_of(self, turn: str) -> str:
        return _told(lambda: self.project.plan_undo(turn, decide="take-back"))

    def _redo_of(self, turn: str) -> str:
        return _told(lambda: self.project.plan_redo(turn, decide="take-back"))


def _told(make: Callable[[], takeback.Plan]) -> str:
    try:
        plan = make()
    except TakebackError as problem:
        return f"{type(problem).__name__}: {problem}"
    changes = [(c.path, c.verb, getattr(c.after, "strong", None)) for c in plan.changes]
    remarks = [(r.path, r.reason) for r in (*plan.kept, *plan.skipped, *plan.conflicts)]
    return repr((changes, remarks))


@contextmanager
def history(folder: Path) -> Iterator[History]:
    """A history in a folder of its own."""
    (folder / "tree").mkdir()
    (folder / "home").mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "sync", False)
        made = History(folder / "tree", folder / "home", patch)
        made.put("a", TEXTS[1])
        yield made
        made.close()


@settings(
    max_examples=300 if FULL else 10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(acts, min_size=6, max_size=24))
def test_what_is_kept_is_as_it_was(told: list[Act]) -> None:
    """Each kept state extracts as the copy of it, each kept turn is taken back as before."""
    with stage() as folder, history(folder) as years:
        for what, one, two in told:
            years.act(what, one, two)
        years.act("gc", 1, 2)


def test_the_random_histories_let_something_go() -> None:
    """A history as these are has turns that are kept, turns that are not, and pins."""
    with stage() as folder, history(folder) as years:
        for number in range(12):
            years.act("turn", number, number)
            years.act("wait", 2, 0)
            if number == 4:
                years.act("keep", 1, 0)
        years.act("gc", 1, 2)
        assert 0 < len(years.kept_turns()) < 12
        assert len(years.project.kept()) == 1
        assert len(years.kept()) < len(years.states)
