"""Any history, taken back in any way: the tree is what plain copies of it say, to the byte.

Agents and you change files, turns begin and end, and anything is undone, redone and rolled back:
whole or in part, here or by another process, which may be killed at any step. `undo_model` tells
what has to come of it, from whole copies of the tree.

`TAKEBACK_TEST_EXAMPLES=2500` tries so many histories instead of the few of `./check`;
`--hypothesis-seed=1` makes them the same ones again.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import takeback
from chance import examples
from faults.children import Tell, in_child
from hostile.ground import new_ground
from takeback import errors
from takeback.disk import operations
from takeback.ledger import schema
from takeback.ledger.log import audit
from takeback.session import Turn
from tree_edits import CONTENTS, PARTS, PATHS, Edit, perform
from undo_model import Act, Model, Outlook, Refused, Tree, copy_of, differing

EXAMPLES = examples(12)
pytestmark = pytest.mark.timeout(600 if EXAMPLES < 100 else 0)

STAGE = b".takeback-stage-"

Action = tuple[str, dict[str, Any]]
Shown = tuple["int | None", list[tuple[bytes, object, object]]]
Way = tuple[str, int, int]
"""Here, or in another process: perhaps killed at a step, and its recovery at another."""


# -- restores ------------------------------------------------------------------------------


class Wish:
    """An undo, a redo or a rollback: of what, of which paths, and how."""

    def __init__(
        self, verb: str, ref: str | None, session: str, scope: list[bytes], keep_mtime: bool
    ) -> None:
        self.verb = verb
        self.ref = ref
        self.session = session
        self.scope = scope
        self.keep_mtime = keep_mtime

    def plan(self, project: takeback.Project) -> "takeback.Plan":
        """Ask for the plan only."""
        if self.verb == "rollback":
            assert self.ref is not None
            return project.plan_rollback(self.ref, paths=self.scope)
        ask = project.plan_undo if self.verb == "undo" else project.plan_redo
        return ask(self.ref, session=self.session or None, paths=self.scope)

    def resolved(self, plan: "takeback.Plan") -> "Wish":
        """The same, with what the plan found for the newest."""
        ref = self.ref if self.verb == "rollback" else plan.turn or plan.target
        return Wish(self.verb, ref, "", self.scope, self.keep_mtime)

    def fulfil(self, project: takeback.Project) -> "takeback.Report":
        """Have it done."""
        if self.verb == "rollback":
            assert self.ref is not None
            return project.rollback(self.ref, paths=self.scope, keep_mtime=self.keep_mtime)
        act = project.undo if self.verb == "undo" else project.redo
        session = self.session or None
        return act(self.ref, session=session, paths=self.scope, keep_mtime=self.keep_mtime)


def _steps(now: Tree, then: Tree) -> list[tuple[bytes, object, object]]:
    """What becomes of each path that differs."""
    return [(path, now.get(path), then.get(path)) for path in sorted(differing(now, then))]


REFUSALS: dict[type[Exception], str] = {
    errors.ConflictError: "conflict",
    errors.StalePlanError: "stale",
    errors.DecisionNeededError: "decision",
    errors.NothingToTakeBackError: "nothing",
    errors.UnknownReferenceError: "unknown",
}


def told(act: "Callable[[], takeback.Report]") -> tuple[str, set[bytes]]:
    """What came of a restore: `done` with the paths it changed, or which error refused it."""
    try:
        report = act()
    except errors.TakebackError as refusal:
        known = REFUSALS.get(type(refusal))
        if known is None:
            raise
        return known, set()
    return "done", {change.raw_path for change in report.plan.changes}


def dying_at(step: int) -> Callable[[str, tuple[object, ...]], None]:
    """A hook that kills this process at a step."""
    left = step

    def hook(_name: str, _given: tuple[object, ...]) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    return hook


# -- the machine ---------------------------------------------------------------------------

picks = st.integers(0, 1000)
nothing: st.SearchStrategy[list[int]] = st.builds(list)
edits = st.tuples(
    st.sampled_from(["write", "write", "write", "remove", "move", "chmod", "link", "mkdir"]),
    st.sampled_from(PATHS),
    picks,
)
scripts = st.lists(edits, min_size=1, max_size=4)
agents = st.sampled_from([0, 0, 1])
verbs = (
    *("undo", "undo", "undo", "undo", "undo turn", "undo turn", "undo session"),
    *("redo", "redo", "redo", "redo turn", "redo session", "rollback", "rollback"),
)


def weighted(*choices: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of several, some more often than others; `one_of` would drop what it has twice."""
    drawn = [number for number, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(drawn).flatmap(lambda number: choices[number][1])


def _action(name: str, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Action]:
    return st.tuples(st.just(name), st.fixed_dictionaries(given))


_wish = {
    "verb": st.sampled_from(verbs),
    "pick": picks,
    "scope": weighted((3, nothing), (1, st.lists(picks, min_size=1, max_size=2))),
}
_ways = weighted(
    (5, st.just(("here", 0, 0))),
    (1, st.just(("child", -1, -1))),
    (2, st.tuples(st.just("child"), st.integers(0, 150), st.integers(-60, 60))),
)
_three = st.lists(st.integers(0, 7), min_size=3, max_size=3)
_stays = st.sampled_from([False, False, True])
actions = weighted(
    (6, _action("turn", agent=agents, script=scripts, stays=_stays)),
    (4, _action("somebody_works", script=scripts)),
    (4, _action("both_edit", agent=agents, path=st.sampled_from(PATHS), picks=_three)),
    (9, _action("restore", **_wish, way=_ways, keep_mtime=st.booleans())),
    (1, _action("make_plan", **_wish)),
    (1, _action("apply_plan")),
    (2, _action("end", agent=agents)),
    (1, _action("go_on", agent=agents)),
    (1, _action("look")),
    (1, _action("reopen")),
)


class Restores(RuleBasedStateMachine):
    """A project in which anything happens, beside the model of it."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        patch = self.cleanup.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(operations, "sync", False)
        ground = self.cleanup.enter_context(new_ground())
        self.root, self.home = ground.root, os.fsdecode(ground.home)
        self.base = Path(os.fsdecode(ground.base))
        for path, content in ((b"a", 1), (b"d/a", 2), (b"d/e/a", 3)):
            perform(self.root, ("write", path, content))
        # Who records and who restores do not share a process's memory of the tree.
        self.recording = self._opened()
        self.project = self._opened()
        self.sessions = [self.recording.session(agent=name) for name in ("one", "two")]
        self.running: list[tuple[Act, Turn] | None] = [None, None]
        self.ended_in: dict[Act, int] = {}
        self.plan: tuple[Wish, takeback.Plan, Tree, Shown] | None = None
        self.checkpoints = [self.project.checkpoint().id]
        self.model = Model(copy_of(self.root))

    def _opened(self) -> takeback.Project:
        return takeback.open(os.fsdecode(self.root), home=self.home)

    @rule(action=actions)
    def happens(self, action: Action) -> None:
        """Anything that can happen to a project."""
        name, given = action
        getattr(self, name)(**given)
        self._same_stack()

    # -- files and turns -------------------------------------------------------------------

    def somebody_works(self, script: list[Edit]) -> None:
        """Whoever is at work, or you, change files."""
        for edit in script:
            perform(self.root, edit)

    def turn(self, agent: int, script: list[Edit], stays: bool) -> None:
        """A prompt, and what the agent does; the turn ends or goes on."""
        self._begin(agent)
        self.somebody_works(script)
        if not stays:
            self._end(agent)

    def both_edit(self, agent: int, path: bytes, picks: list[int]) -> None:
        """A long text, which an agent and then you change: its parts, or its mode."""
        texts = [CONTENTS.index(text) for text in PARTS]
        perform(self.root, ("write", path, texts[picks[0] % 4]))
        perform(self.root, ("chmod", path, 0))
        self._begin(agent)
        for pick in picks[1:]:
            perform(
                self.root, ("chmod", path, pick) if pick > 5 else ("write", path, texts[pick % 4])
            )
            if self.running[agent] is not None:
                self._end(agent)

    def end(self, agent: int) -> None:
        """A turn ends, if one runs."""
        if self.running[agent] is not None:
            self._end(agent)

    def go_on(self, agent: int) -> None:
        """The newest turn of an agent goes on without a new prompt."""
        turn = self.sessions[agent].resume()
        if turn is None:
            return
        self._looked()
        if self.running[agent] is None:
            act = next(act for act in self.model.turns if act.name == turn.id)
            self.model.go_on(act)
            self.running[agent] = (act, turn)
            del self.ended_in[act]

    def look(self) -> None:
        """Somebody asks for a checkpoint."""
        self.project.checkpoint()
        self._looked()

    def reopen(self) -> None:
        """Everything that the process knew is forgotten."""
        self.project.close()
        self.project = self._opened()

    def _begin(self, agent: int) -> None:
        turn = self.sessions[agent].turn(f"turn of {agent}")
        self._looked()
        before = self.running[agent]
        if before is not None:
            self._ended(before[0])
        self.running[agent] = (self.model.begin(turn.id, self.sessions[agent].id), turn)

    def _end(self, agent: int) -> None:
        running = self.running[agent]
        assert running is not None
        running[1].end()
        self._looked()
        self._ended(running[0])
        self.running[agent] = None

    def _ended(self, act: Act) -> None:
        self.model.end(act)
        self.ended_in[act] = len(self.model.states) - 1

    def _looked(self) -> None:
        self.model.look(copy_of(self.root))
        self._same_states()

    def _same_states(self) -> None:
        """There is a checkpoint for each different tree, and no other."""
        new = []
        for checkpoint in self.project.checkpoints():
            if checkpoint.id == self.checkpoints[-1]:
                break
            new.append(checkpoint.id)
        self.checkpoints += reversed(new)
        assert len(self.checkpoints) == len(self.model.states)
        self._same_authors(len(new))

    def _same_stack(self) -> None:
        """What is live, and which undos stand, is what the model says."""
        model, rows = self.model, self.project.workspace.ledger._reader.rows
        turns = rows("SELECT id, undone IS NULL AND covered IS NULL FROM turns ORDER BY number")
        assert turns == [(turn.name, model.says.is_live(turn)) for turn in model.turns]
        out = "coalesce(undone, covered, reversed)"
        restores = rows(f"SELECT verb, {out} IS NULL FROM restores ORDER BY number")
        assert restores == [(act.kind, model.says.is_live(act)) for act in model.restores]

    def _same_authors(self, count: int) -> None:
        """What is new is by whom the model says; between two looks nothing is in doubt."""
        query = (
            "SELECT d.path, d.who, t.id FROM deltas d LEFT JOIN turns t ON t.number = d.turn"
            " WHERE d.checkpoint > ? ORDER BY d.checkpoint, d.path"
        )
        told = self.project.workspace.ledger._reader.rows(query, (len(self.checkpoints) - count,))
        ours = self.model.changes[-len(told) :] if told else []
        for (path, who, turn), change in zip(told, ours, strict=True):
            by = change.by
            expected = {None: "", "turn": "step"}.get(by.kind if by else None, "restore")
            assert (path, turn) == (change.path, by.name if expected == "step" and by else None)
            assert who == expected or (not expected and who in ("you", "shared")), path

    # -- taking back -----------------------------------------------------------------------

    def make_plan(self, verb: str, pick: int, scope: list[int]) -> None:
        """Ask for a plan, which writes nothing in the tree."""
        now = copy_of(self.root)
        self.model.look(now)
        wish = self._wish(verb, pick, scope)
        expected, tree = self._predict(wish)
        if expected not in ("done", "conflict"):
            with pytest.raises(errors.TakebackError) as refusal:
                wish.plan(self.project)
            assert REFUSALS[refusal.type] == expected
        else:
            plan = wish.plan(self.project)
            if not self.model.doubt.paths:
                assert ("conflict" if plan.conflicts else "done") == expected
                changed = differing(now, tree)
                assert plan.conflicts or {change.raw_path for change in plan.changes} == changed
            shown = (self._target(wish), _steps(now, tree))
            self.plan = (wish.resolved(plan), plan, now, shown)
        assert copy_of(self.root) == now
        self._same_states()

    def apply_plan(self) -> None:
        """Apply a plan: it does what it said, or is refused because what it touches moved."""
        if self.plan is None:
            return
        (wish, plan, base, shown), self.plan = self.plan, None
        now = copy_of(self.root)
        self.model.look(now)
        expected, tree = self._predict(wish)
        is_whole = wish.verb == "rollback" and not wish.scope
        target, steps = self._target(wish), _steps(now, tree)
        is_same = (target, [] if is_whole else steps) == (shown[0], [] if is_whole else shown[1])
        outcome, changed = told(lambda: self.project.apply(plan))
        event(f"plan of {wish.verb}, {'same' if now == base else 'other'} tree: {outcome}")
        if outcome == "stale":
            in_doubt = plan.conflicts or self.model.doubt.paths
            assert in_doubt or expected != "done" or not is_same, "nothing that it touches moved"
        else:
            tree = self._outcome(expected, outcome, tree)
        if outcome == "done" and not is_whole:
            assert {path: now.get(path) for path in changed} == {
                path: base.get(path) for path in changed
            }
            assert changed == {change.raw_path for change in plan.changes}
        self._judge(wish, now, tree, changed, done=outcome == "done")

    def _target(self, wish: Wish) -> "int | None":
        return self._states_of_turns().get(wish.ref or "")

    def _wish(self, verb: str, pick: int, scope: list[int], keep: bool = False) -> Wish:
        """What is asked for: of the turns, states and paths that there are, by their numbers."""
        entries, ref = [entry.name for entry in self.model.entries()], None
        if verb == "redo" and pick % 4 and not self.model.can_redo():
            verb = "undo"
        if verb == "rollback":
            states = [*self.checkpoints, *self._states_of_turns()]
            ref = states[pick % len(states)]
        elif verb.endswith("turn") and entries:
            ref = entries[pick % len(entries)]
        # Sometimes one that the tree never had.
        known = sorted({b"f/a", *self.model.tree, *(c.path for c in self.model.changes)})
        paths = [known[number % len(known)] for number in scope]
        session = self.sessions[pick % 2].id if verb.endswith("session") else ""
        return Wish(verb.split(maxsplit=1)[0], ref, session, paths, keep)

    def _states_of_turns(self) -> dict[str, int]:
        before = {f"{turn.name}-": turn.began for turn in self.model.turns}
        return before | {turn.name: state for turn, state in self.ended_in.items()}

    def _act(self, wish: Wish) -> tuple[Act, Outlook]:
        """What the model does with a wish, or `Refused`."""
        model, ref = self.model, wish.ref
        if wish.verb == "rollback":
            state = self._states_of_turns().get(ref or "")
            state = self.checkpoints.index(ref or "") if state is None else state
            return model.rollback(state, wish.scope)
        named = next((entry for entry in model.entries() if entry.name == ref), None)
        if wish.verb == "undo":
            entry = model.newest_live(wish.session) if named is None else model.undoable(named)
            return model.undo(entry, wish.scope)
        undo = model.newest_undone(wish.session) if named is None else model.undo_of(named)
        return model.redo(undo, wish.scope)

    def _predict(self, wish: Wish) -> tuple[str, Tree]:
        try:
            return "done", self._act(wish)[1]()
        except Refused as refusal:
            return refusal.why, self.model.tree

    def restore(
        self, verb: str, pick: int, scope: list[int], way: Way, *, keep_mtime: bool
    ) -> None:
        """Undo, redo or roll back, here or in another process, which may be killed."""
        now, stamps = copy_of(self.root), self._stamps()
        self.model.look(now)
        wish = self._wish(verb, pick, scope, keep_mtime)
        expected, tree = self._predict(wish)
        where, dies_at, dies_again_at = way
        if where == "here":
            outcome, changed = told(lambda: wish.fulfil(self.project))
            tree = self._outcome(expected, outcome, tree)
        else:
            said = self._in_child(wish, dies_at)
            if said is None:
                is_touched = any(
                    not p.startswith(STAGE) for p in differing(now, copy_of(self.root))
                )
                outcome = "done" if self._recovered(dies_again_at) else "killed"
                tree = self._outcome(expected, outcome, tree)
                changed = differing(now, tree)
                if is_touched and outcome == "killed" and dies_again_at < 0:
                    assert self.project.recovered, "what was taken back is told"
            else:
                outcome, changed = said
                tree = self._outcome(expected, outcome, tree)
        event(f"{wish.verb}{' of paths' if wish.scope else ''} {where}: {outcome}")
        self._judge(wish, now, tree, changed, done=outcome == "done")
        kept = {path for path in stamps if now[path] == tree.get(path)}
        after = self._stamps()
        assert {path: after[path] for path in kept} == {path: stamps[path] for path in kept}

    def _outcome(self, expected: str, outcome: str, tree: Tree) -> Tree:
        """What the tree has to be by now; where that is in doubt, what it is, if it may be that."""
        if outcome == "killed":
            return tree
        found = copy_of(self.root)
        doubt, is_as_told = self.model.doubt, {expected, outcome} <= {"done", "conflict"}
        if doubt.paths and is_as_told and (outcome, found) != (expected, tree):
            event("in doubt")
            if outcome == "done":
                doubt.require(tree if expected == "done" else None, found)
            return found
        assert outcome == expected
        return tree

    def _judge(self, wish: Wish, now: Tree, tree: Tree, changed: set[bytes], *, done: bool) -> None:
        """The tree is as predicted, or as before; the model goes on from there."""
        found = copy_of(self.root)
        if done:
            assert found == tree
            assert changed == differing(now, tree)
            act = self._act(wish)[0]
            self.model.done(act, tree)
            ids = self.project.workspace.ledger._reader.rows(
                "SELECT id FROM restores ORDER BY number DESC LIMIT 1"
            )
            act.name = ids[0][0] if ids else ""
        else:
            assert found == now
            self.project.checkpoint()  # a refusal before the first look may not have looked
        self._same_states()

    def _stamps(self) -> dict[bytes, tuple[int, int]]:
        """The inode and the time of what is no folder: both stay if nothing has to change."""
        found = {}
        for path, entry in copy_of(self.root).items():
            if entry[0] != "folder":
                status = os.lstat(os.path.join(self.root, path))
                found[path] = (status.st_ino, status.st_mtime_ns)
        return found

    # -- other processes -------------------------------------------------------------------

    def _in_child(self, wish: Wish, dies_at: int) -> tuple[str, set[bytes]] | None:
        """What came of it in another process; None if it was killed."""

        def play(tell: Tell) -> None:
            operations.hook = dying_at(dies_at)
            with self._opened() as project:
                outcome, changed = told(lambda: wish.fulfil(project))
                operations.hook = None
                tell({"outcome": outcome, "changed": [path.hex() for path in changed]})

        ended = in_child(play)
        if os.WIFSIGNALED(ended.status):
            return None
        assert ended.status == 0, ended.last("crashed")
        changed = ended.last("changed")
        assert isinstance(changed, list)
        return str(ended.last("outcome")), {bytes.fromhex(path) for path in changed}

    def _recovered(self, dies_at: int) -> bool:
        """Let the next process find what a killed one left; tell whether the restore was done."""

        def play(_tell: Tell) -> None:
            operations.hook = dying_at(dies_at)
            self._opened().checkpoint()

        if dies_at >= 0:
            in_child(play)
        self.reopen()
        self.project.checkpoint()
        ((count,),) = self.project.workspace.ledger._reader.rows("SELECT count(*) FROM restores")
        return int(count) > len(self.model.restores)

    # -- what always holds -----------------------------------------------------------------

    @invariant()
    def nothing_is_left_in_the_tree(self) -> None:
        """No staging folder outlives its restore."""
        assert not [path for path in os.listdir(self.root) if path.startswith(b".takeback")]

    def teardown(self) -> None:
        """The log is sound, the store whole, and every state that was comes out again."""
        try:
            if sys.exc_info()[0] is None:
                self._settle()
        finally:
            self.project.close()
            self.recording.close()
            self.cleanup.close()

    def _settle(self) -> None:
        project = self.project
        assert project.upkeep.examine()[0] == ()
        assert list(audit.differences(project.workspace.ledger._db)) == []
        before = self._tables()
        project.rebuild()
        assert self._tables() == before
        assert project.verify().problems == ()
        for number, (name, tree) in enumerate(
            zip(self.checkpoints, self.model.states, strict=True)
        ):
            folder = self.base / f"state-{number}"
            project.extract(name, folder)
            assert copy_of(os.fsencode(folder)) == tree

    def _tables(self) -> dict[str, list[tuple[Any, ...]]]:
        rows = self.project.workspace.ledger._reader.rows
        return {table: rows(f"SELECT * FROM {table}") for table in schema.TABLES}


Restores.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    # No shrinking: histories take time. `Phase.shrink` makes a small one of what fails.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
TestRestores = Restores.TestCase
