"""Two agents and you work on the same files; any turns are taken back, and nothing else is.

What has to come of it, a model of lines tells (`merge_model`): the edits that were not taken back,
as if the others had never been. The tree is that, to the byte; or it is a conflict, and then
nothing was changed. Each line is written once and only once, so no diff has a choice of its own.

`TAKEBACK_TEST_EXAMPLES=5000` tries so many histories instead of the few of `./check`;
`--hypothesis-seed=1` makes them the same ones again.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import takeback
from chance import examples
from hostile.ground import new_ground
from merge_model import Edit, Files, Model, Unclear
from takeback.disk import operations
from takeback.session import Session, Turn

EXAMPLES = examples(25)
pytestmark = pytest.mark.timeout(600 if EXAMPLES < 1000 else 0)

YOU = 2
NAMES = tuple("fghijklmn")
LINES = 20
FEWEST = 2
"""Lines that are left in a file: an empty one has no identity, and no rename would be found."""

Action = tuple[str, dict[str, Any]]

picks = st.sampled_from(range(240))
"""Evenly: small numbers, which `integers` prefers, would all be the first lines."""
actors = st.integers(0, 2)


def _action(verb: str, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Action]:
    return st.tuples(st.just(verb), st.fixed_dictionaries(given))


def weighted(*choices: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of several, some more often than others; `one_of` would drop what it has twice."""
    drawn = [number for number, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(drawn).flatmap(lambda number: choices[number][1])


_lines = st.lists(
    st.tuples(st.sampled_from(["insert", "replace", "delete"]), picks), min_size=1, max_size=2
)
works = weighted(
    (12, _action("write", actor=actors, file=picks, script=_lines)),
    (1, _action("create", actor=actors, name=picks)),
    (1, _action("remove", actor=actors, file=picks)),
    (2, _action("rename", actor=actors, file=picks, name=picks)),
    (4, _action("end", actor=st.integers(0, 1))),
)
restores = weighted(
    (3, _action("undo", chosen=picks, then_redo=st.booleans())),
    (2, _action("undo_several", chosen=picks, then_redo=st.booleans())),
    (1, _action("undo_session", actor=st.integers(0, 1), then_redo=st.booleans())),
    (2, _action("redo", chosen=picks)),
)
histories = st.tuples(
    st.lists(works, min_size=3, max_size=12),
    st.lists(weighted((3, works), (2, restores)), max_size=6),
    st.lists(restores, min_size=1, max_size=2),
)


class Shop:
    """A project in which two agents and you work, beside the model of it."""

    def __init__(self, cleanup: ExitStack) -> None:
        patch = cleanup.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(operations, "sync", False)
        ground = cleanup.enter_context(new_ground())
        self.root = Path(os.fsdecode(ground.root))
        self.model = Model()
        self._written = 0
        self.taken_back: tuple[str, ...] = ()
        nobody = self.model.edit("")
        for name in NAMES[:2]:
            self.model.create(nobody, name, [self._line("before") for _ in range(LINES)])
        self._write_files()
        self.project = cleanup.enter_context(
            takeback.open(self.root, home=os.fsdecode(ground.home))
        )
        self.project.checkpoint()
        self.sessions: list[Session] = [self.project.session(name) for name in ("one", "two")]
        self.running: dict[int, Turn] = {}
        self.ended: list[tuple[int, str]] = []
        """Turns that are over, with their agent."""
        self.undone: set[str] = set()

    def _line(self, who: object) -> str:
        self._written += 1
        return f"line {self._written} of {who}"

    def _write_files(self) -> None:
        files = self.model.files()
        for name in NAMES:
            place = self.root / name
            if name not in files:
                place.unlink(missing_ok=True)
            elif self._read(name) != files[name]:
                place.write_text("".join(f"{line}\n" for line in files[name]))

    def _read(self, name: str) -> list[str] | None:
        place = self.root / name
        return place.read_text().splitlines() if place.exists() else None

    def tree(self) -> Files:
        """What is really there."""
        return {path.name: path.read_text().splitlines() for path in self.root.iterdir()}

    def content(self) -> dict[str, bytes]:
        """What is really there, to the byte."""
        return {path.name: path.read_bytes() for path in self.root.iterdir()}

    # -- work ------------------------------------------------------------------------------

    def _edit(self, actor: int, paths: list[str]) -> "Doing":
        return Doing(self, actor, paths)

    def _name(self, pick: int) -> str | None:
        names = sorted(self.model.files())
        return names[pick % len(names)] if names else None

    def _free(self) -> list[str]:
        """Names that no file ever had: whose edit is whose is told by names."""
        known = {name for text in self.model.texts for _, name in text.names}
        return [name for name in NAMES if name not in known]

    def write(self, actor: int, file: int, script: list[tuple[str, int]]) -> None:
        """Somebody changes lines of a file."""
        name = self._name(file)
        if name is None:
            return
        with self._edit(actor, [name]) as first:
            for verb, pick in script:
                edit = self.model.edit(first.turn)
                count = len(self.model.files()[name])
                if verb == "insert":
                    self.model.insert(edit, name, pick % (count + 1), self._line(actor))
                elif verb == "replace":
                    self.model.replace(edit, name, pick % count, self._line(actor))
                elif count > FEWEST:
                    self.model.replace(edit, name, pick % count, None)
            self._write_files()

    def create(self, actor: int, name: int) -> None:
        """Somebody makes a file."""
        free = self._free()
        if free:
            path = free[name % len(free)]
            with self._edit(actor, [path]) as edit:
                self.model.create(edit, path, [self._line(actor) for _ in range(5)])
                self._write_files()

    def remove(self, actor: int, file: int) -> None:
        """Somebody deletes a file."""
        name = self._name(file)
        if name is not None:
            with self._edit(actor, [name]) as edit:
                self.model.delete(edit, name)
                self._write_files()

    def rename(self, actor: int, file: int, name: int) -> None:
        """Somebody renames a file."""
        old = self._name(file)
        free = self._free()
        if old is not None and free:
            new = free[name % len(free)]
            with self._edit(actor, [old, new]) as edit:
                self.model.rename(edit, old, new)
                (self.root / old).rename(self.root / new)

    def end(self, actor: int) -> None:
        """A turn ends, if one runs."""
        turn = self.running.pop(actor, None)
        if turn is not None:
            turn.end()
            self.ended.append((actor, turn.id))

    # -- taking back -----------------------------------------------------------------------

    def _live(self) -> list[str]:
        return [turn for _, turn in self.ended if turn not in self.undone]

    def undo(self, chosen: int, then_redo: bool) -> None:
        """One turn is taken back, wherever it is."""
        live = self._live()
        if live:
            turn = live[chosen % len(live)]
            self._undo([turn], {"turn": turn}, then_redo=then_redo)

    def undo_several(self, chosen: int, then_redo: bool) -> None:
        """Several turns are taken back at once."""
        live = [turn for number, turn in enumerate(self._live()) if chosen >> number & 1]
        if live:
            self._undo(live, {"turn": live}, then_redo=then_redo)

    def undo_session(self, actor: int, then_redo: bool) -> None:
        """All that one agent did is taken back."""
        self.end(actor)
        own = {turn for who, turn in self.ended if who == actor}
        live = [turn for turn in self._live() if turn in own]
        if live:
            session = self.sessions[actor].id
            self._undo(live, {"whole_session": session}, then_redo=then_redo)

    def _undo(self, turns: list[str], given: dict[str, Any], *, then_redo: bool) -> None:
        before = self.content()
        dropped = self.model.dropped | self.model.of(turns)
        if not self._restore("undo", given, dropped):
            return
        # Of a whole session, only the turns that changed something are taken back.
        turns = [turn for turn in turns if turn in self.taken_back]
        self.undone |= set(turns)
        if then_redo and turns:
            self.project.redo()
            assert self.content() == before, "undo and redo without anything in between"
            self.undone -= set(turns)
            self.model.dropped = dropped - self.model.of(turns)

    def redo(self, chosen: int) -> None:
        """One turn that was taken back is put back, whatever happened since."""
        undone = [turn for _, turn in self.ended if turn in self.undone]
        undone = [turn for turn in undone if not self.model.is_elsewhere(turn)]
        if undone:
            turn = undone[chosen % len(undone)]
            dropped = self.model.dropped - self.model.of([turn])
            if self._restore("redo", {"turn": turn}, dropped):
                self.undone.discard(turn)

    def _restore(self, verb: str, given: dict[str, Any], dropped: set[Edit]) -> bool:
        """Take back or put back: as the model says, or as a conflict that changes nothing."""
        before = self.content()
        try:
            report = getattr(self.project, verb)(**given)
        except takeback.ConflictError:
            event(f"{verb}: conflict")
            self._unchanged(before)
            return False
        try:
            expected = self.model.without(dropped)
        except Unclear:
            expected = {"": ["somebody should have been asked"]}
        found = self.tree()
        said = {os.fsdecode(remark.path) for remark in report.plan.kept}
        orphans = {n: text for n, text in self.model.orphans(dropped).items() if n in said}
        for name in found.keys() | expected.keys():
            if name not in orphans:
                assert found.get(name) == expected.get(name), name
        if orphans:
            for text in orphans.values():
                lines = {line for name in orphans for line in found.get(name, ())}
                assert set(self.model.own_lines(text, dropped)) <= lines
            raise Told
        self.taken_back = report.plan.turns
        merged = any(change.verb == "merge" for change in report.plan.changes)
        event(f"{verb}: {'merged' if merged else 'exact'}")
        self.model.dropped = dropped - self.model.overruled(dropped)
        return True

    def _unchanged(self, before: dict[str, bytes]) -> None:
        assert self.content() == before, "a conflict changes nothing"


class Told(Exception):
    """A file stays that would have gone, and it is said: here the model ends."""


class Doing:
    """An edit that runs: a step that names its paths, or you, whom nobody announces."""

    def __init__(self, shop: Shop, actor: int, paths: list[str]) -> None:
        self._shop = shop
        self._actor = actor
        self._paths = paths

    def __enter__(self) -> Edit:
        shop = self._shop
        if self._actor == YOU:
            return shop.model.edit("")
        if self._actor not in shop.running:
            session = shop.sessions[self._actor]
            shop.running[self._actor] = session.turn("work", whole=False)
        turn = shop.running[self._actor]
        self._step = turn.step("edit", {}, kind="edit", paths=self._paths)
        return shop.model.edit(turn.id)

    def __exit__(self, *_: object) -> None:
        if self._actor == YOU:
            self._shop.project.checkpoint()
        else:
            self._step.end()


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
@given(history=histories)
def test_what_is_left_is_what_the_others_did(history: tuple[list[Action], ...]) -> None:
    """Without the turns that are taken back, the files are what the other edits make of them."""
    with ExitStack() as cleanup:
        shop = Shop(cleanup)
        begun, middle, last = history
        try:
            for name, given in [*begun, *middle]:
                getattr(shop, name)(**given)
                assert shop.tree() == shop.model.files()
            for actor in (0, 1):
                shop.end(actor)
            for name, given in last:
                getattr(shop, name)(**given)
        except Told:
            event("a file was kept")
