"""Random histories in which conflicts are decided hunk by hunk, against a model of slots.

Turns and you write lines of two files; turns are taken back and put back, each hunk that conflicts
is decided by itself or left for later, hunks are left out, and processes change in between. After
each act the files, and what a bare undo means, are as the model says (`hunk_model`).

`TAKEBACK_TEST_EXAMPLES=2000 ./check tests/promises/test_hunks_random.py` tries so many histories
instead of the few of `./check`; `--hypothesis-seed=1` makes them the same ones again.
"""

import os
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import takeback
from chance import examples
from hostile.ground import new_ground
from hunk_model import BACK, KEEP, SKIP, Conflict, Model, Slot, Turn, Undo
from takeback.disk import operations
from takeback.model.plan import Hunk

EXAMPLES = examples(10)
pytestmark = pytest.mark.timeout(600 if EXAMPLES < 100 else 0)

FILES = ("f", "g")
SLOTS = 4
STRIDE = 6
"""Lines from one slot to the next, so that no two are one hunk."""
Act = Callable[[Any], Any]

slots = st.tuples(st.sampled_from(FILES), st.integers(0, SLOTS - 1))
some_slots = st.sets(slots, min_size=1, max_size=4)
choices = st.lists(st.sampled_from([BACK, KEEP, SKIP]), min_size=1, max_size=4)
picks = st.integers(0, 30)


def _act(verb: str, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Any]]:
    return st.tuples(st.just(verb), st.fixed_dictionaries(given))


acts = st.one_of(
    _act("turn", where=some_slots),
    _act("turn", where=some_slots),
    _act("write", where=some_slots, old=st.booleans()),
    _act("write", where=some_slots, old=st.booleans()),
    _act("undo", which=picks, choices=choices, for_all=st.booleans()),
    _act("undo", which=st.just(0), choices=choices, for_all=st.booleans()),
    _act("leave", which=picks, choices=choices, left=some_slots),
    _act("together", first=picks, second=picks, choices=choices),
    _act("redo", which=st.just(0), choices=choices),
    _act("redo", which=picks, choices=choices),
)


class Desk:
    """A project beside its model."""

    def __init__(self, cleanup: ExitStack) -> None:
        patch = cleanup.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(operations, "sync", False)
        ground = cleanup.enter_context(new_ground())
        self.root = Path(os.fsdecode(ground.root))
        self.model = Model({(f, n): f"{f} {n}" for f in FILES for n in range(SLOTS)})
        self.seen: dict[Slot, list[str]] = {slot: [line] for slot, line in self.model.lines.items()}
        self._write_files()
        self.project = cleanup.enter_context(
            takeback.open(self.root, home=os.fsdecode(ground.home))
        )
        self.project.checkpoint()
        self.session = self.project.session("agent")

    def _write_files(self) -> None:
        for name in FILES:
            (self.root / name).write_text(self._text(name))

    def _text(self, name: str) -> str:
        parts = []
        for slot in range(SLOTS):
            parts += [f"{name} {slot} around {line}" for line in range(STRIDE - 1)]
            parts.append(self.model.lines[name, slot])
        return "".join(f"{part}\n" for part in parts)

    def _new(self, where: set[Slot], who: str) -> dict[Slot, str]:
        lines = {slot: f"{who} {slot} {len(self.seen[slot])}" for slot in where}
        for slot, line in lines.items():
            self.seen[slot].append(line)
        return lines

    def check(self) -> None:
        """The files are as the model says, and so is what a bare undo takes back."""
        for name in FILES:
            assert (self.root / name).read_text() == self._text(name), name
        live = [turn.name for turn in self.model.turns if turn.is_live]
        found = [turn.id for turn in self.project.log(limit=100).turns if not turn.undone]
        assert sorted(found) == sorted(live)

    # -- work ------------------------------------------------------------------------------

    def turn(self, where: set[Slot]) -> None:
        """The agent writes lines."""
        with self.session.turn("work") as turn:
            self.model.edit(self._new(where, "agent"), turn.id)
            self._write_files()

    def write(self, where: set[Slot], old: bool) -> None:
        """You write lines: new ones, or some that were there before."""
        if old:
            lines = {slot: self.seen[slot][len(self.seen[slot]) // 2] for slot in where}
        else:
            lines = self._new(where, "you")
        self.model.edit(lines)
        self._write_files()
        self.project.checkpoint()

    # -- undo ------------------------------------------------------------------------------

    def _live(self) -> list[Turn]:
        return [turn for turn in reversed(self.model.turns) if turn.is_live and not turn.is_mixed]

    def undo(self, which: int, choices: list[str], for_all: bool) -> None:
        """One turn is taken back; each hunk is decided by itself, or all are alike."""
        live = self._live()
        if live:
            turn = live[which % len(live)]
            self._undo([turn], [choices[0]] if for_all else choices, for_all=for_all)

    def leave(self, which: int, choices: list[str], left: set[Slot]) -> None:
        """One turn is taken back, but for some hunks that do not conflict."""
        live = self._live()
        if live:
            self._undo([live[which % len(live)]], choices, left=left)

    def together(self, first: int, second: int, choices: list[str]) -> None:
        """Two turns are taken back together that wrote different lines."""
        live = self._live()
        turns = [live[pick % len(live)] for pick in (first, second) if live]
        touched = [{claim.slot for claim in turn.standing(anew=True)} for turn in turns]
        if len({turn.name for turn in turns}) == 2 and touched[0].isdisjoint(touched[1]):
            self._undo(turns, [choices[0]], for_all=True)

    def _undo(
        self,
        turns: list[Turn],
        choices: list[str],
        *,
        for_all: bool = False,
        left: Collection[Slot] = (),
    ) -> None:
        names, project = [turn.name for turn in turns], self.project
        event(f"undo of {len(turns)}{' for all' if for_all else ''}{', some left' if left else ''}")
        if for_all:
            self._compare(
                lambda _: self.model.undo(turns, lambda _: choices[0], anew=True),
                lambda _: project.undo(names, decide=choices[0], yes=True),
                {},
            )
            return
        skipped = {os.fsencode(name): SKIP for name in FILES}
        changes = project.plan_undo(names, decide=skipped, by_hunk=True).changes
        hunks = [(c.raw_path, hunk) for c in changes for hunk in c.hunks if not hunk.clashes]
        out = {(p, hunk.index): SKIP for p, hunk in hunks if _slot(p, hunk) in left}
        gone = {_slot(p, hunk) for p, hunk in hunks if _slot(p, hunk) in left}
        self._decide(
            lambda decide: self.model.undo(turns, decide, left=gone),
            lambda decide: project.plan_undo(names, decide=out | decide),
            lambda decide: project.undo(names, decide=out | decide, yes=True),
            choices,
        )

    # -- redo ------------------------------------------------------------------------------

    def redo(self, which: int, choices: list[str]) -> None:
        """The newest undo is put back, or that of a turn."""
        undos = self.model.undos
        if not undos:
            return
        undo = undos[-1]
        if which:
            single = [each for each in undos if len(each.turns) == 1]
            if not single:
                return
            turn = single[which % len(single)].turns[0]
            undo = [each for each in undos if turn in each.turns][-1]
            if len(undo.turns) > 1:
                return
        self._redo(undo, undo.turns[0].name if which else None, choices)

    def _redo(self, undo: Undo, name: str | None, choices: list[str]) -> None:
        try:
            self.project.plan_redo(name)
        except takeback.DecisionNeededError:
            event("new work came since")
            return
        event("redo")
        self._decide(
            lambda decide: self.model.redo(undo, decide),
            lambda decide: self.project.plan_redo(name, decide=decide),
            lambda decide: self.project.redo(name, decide=decide, yes=True),
            choices,
        )

    # -- decisions -------------------------------------------------------------------------

    def _decide(self, model: Act, plan: Act, product: Act, choices: list[str]) -> None:
        """Let each hunk that is asked about be decided, by both alike."""
        by_slot: dict[Slot, str] = {}
        by_hunk: dict[tuple[bytes, int], str] = {}
        while True:
            found = plan(by_hunk)
            hunks = [(c.path, hunk) for c in found.conflicts for hunk in c.hunks]
            new = {_slot(*each) for each in hunks} - by_slot.keys()
            hunks = [each for each in hunks if (each[0], each[1].index) not in by_hunk]
            if not hunks:
                break
            for number, slot in enumerate(sorted(new)):
                by_slot[slot] = choices[(len(by_slot) + number) % len(choices)]
            by_hunk |= {(path, hunk.index): by_slot[_slot(path, hunk)] for path, hunk in hunks}
        event(f"{'decided' if by_slot else 'plain'}: {', '.join(sorted(set(by_slot.values())))}")
        self._compare(
            lambda decided: model(lambda slot: decided.get(slot, "")),
            lambda _: product(by_hunk),
            by_slot,
        )

    def _compare(self, model: Act, product: Act, by_slot: dict[Slot, str]) -> None:
        """Both ask about the same, and then do the same."""
        if by_slot:
            with pytest.raises(Conflict) as conflict:
                model({})
            assert conflict.value.slots <= by_slot.keys()
        model(by_slot)
        product(by_slot)


def _slot(path: bytes, hunk: Hunk) -> Slot:
    return os.fsdecode(path), (hunk.line - 1) // STRIDE


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
@given(history=st.lists(acts, min_size=4, max_size=14))
def test_each_hunk_is_as_it_was_decided(history: list[tuple[str, Any]]) -> None:
    """The files, and which turns are live, are as the model says after each act."""
    with ExitStack() as cleanup:
        desk = Desk(cleanup)
        desk.turn({("f", 0), ("f", 1), ("g", 0)})
        for name, given in history:
            getattr(desk, name)(**given)
            desk.check()
