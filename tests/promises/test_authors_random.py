"""Right author, by chance: random schedules of two agents, their sub-agents and you.

`TAKEBACK_TEST_EXAMPLES=2000` tries so many histories instead of the few of `./check`.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import oracle
from chance import examples
from hostile.ground import new_ground
from play import APART, Agent, Hands, Play, Tool
from schedules import Span, Truth, Window, now
from takeback.disk import operations
from takeback.ledger.log import audit

EXAMPLES = examples(25)
PATHS = ("p", "q", "d/r", "d/s", "d/e/t", "new/u")
KINDS = ("edit", "edit", "shell", "shell", "other", "read", "agent")

Script = list[tuple[bool, str, str]]
"""Changes: of a path that the tool names or of another, and how."""
Action = tuple[str, dict[str, Any]]


class Running:
    """A step that runs: for the product, and for the model."""

    def __init__(self, tool: Tool, window: Window) -> None:
        self.tool = tool
        self.window = window


class Actor:
    """What the model knows of one agent."""

    def __init__(self, agent: Agent, safe_points: str) -> None:
        self.agent = agent
        self.safe_points = safe_points
        self.turns = 0
        self.is_awake = True
        self.is_running = False
        self.is_whole = False
        self.has_steps = False
        self.whole: Window | None = None
        self.steps: list[Running] = []

    def looks_at(self, kind: str) -> bool:
        """Whether a step of this kind is a safe point."""
        return self.safe_points == "call" or (self.safe_points == "step" and kind != "read")


class Schedule:
    """Plays a history, and asks after each look who changed what."""

    def __init__(self, play: Play, often: tuple[str, str]) -> None:
        self.play = play
        self.tree = play.tree
        self.hands = Hands(self.tree)
        self.truth = Truth()
        self.actors: dict[str, Actor] = {}
        self.mark: int | None = None
        self.checkpoints = 1
        self.hands.write(*PATHS[:4])
        for letter, safe_points in zip("ab", often, strict=True):
            agent = play.agent(letter, safe_points=safe_points)
            self.actors[letter] = Actor(agent, safe_points)
        play.look()
        self.picture = oracle.picture(self.tree)

    # -- agents ----------------------------------------------------------------------------------

    def prompt(self, letter: str, whole: bool, marked: bool) -> None:
        """A prompt, perhaps after an interrupt that the transcript tells of."""
        actor = self.actors[letter]
        mark = self.mark if marked and actor.is_running else None
        started = [step.window.started[1] for step in actor.steps]
        if mark is not None and (actor.whole or started):
            started += [actor.whole.started[1]] if actor.whole else []
            mark = mark if mark > max(started) else None
        at = None if mark is None else mark / 1e9
        with self._looking() as call:
            actor.agent.prompt(whole=whole, interrupted_at=at)
            call.close(self._of_turns(actor), (mark, mark) if mark is not None else None)
        actor.turns += 1
        actor.is_awake = actor.is_running = True
        actor.is_whole, actor.has_steps = whole, False
        self._open_turn(actor, call)

    def stop(self, letter: str) -> None:
        """The agent stops, perhaps with tools that never told their end."""
        actor = self.actors[letter]
        if actor.is_running:
            with self._looking() as call:
                actor.agent.stop()
                turn = actor.turns
                call.close(w for w in self._of_turns(actor) if w.turn == turn or w.kind == "turn")
            actor.is_running = False

    def wake(self, letter: str) -> None:
        """A prompt that no human wrote."""
        actor = self.actors[letter]
        if actor.turns:
            with self._looking() as call:
                actor.agent.session.resume()
            actor.is_awake = True
            if not actor.is_running:
                actor.is_running = True
                self._open_turn(actor, call)

    def leave(self, letter: str) -> None:
        """The session ends; what comes after wakes it."""
        actor = self.actors[letter]
        if actor.is_awake:
            with self._looking() as call:
                actor.agent.session.end()
                whole = [actor.whole] if actor.whole else []
                call.close([*whole, *(step.window for step in actor.steps)])
            actor.is_running = actor.is_awake = False

    def start(self, letter: str, kind: str, names: list[str], inside: int | None) -> None:
        """A tool starts, perhaps inside another, perhaps after its turn has ended."""
        actor = self.actors[letter]
        if not actor.turns or len(actor.steps) > 3:
            return
        above = [step for step in actor.steps if step.window.turn == actor.turns]
        parent = above[inside % len(above)] if inside is not None and above else None
        around = parent.tool if parent else None
        first = actor.is_whole and not actor.has_steps
        with self._calling(look=first or actor.looks_at(kind)) as call:
            tool = self._start(actor.agent, kind, names, around)
        if actor.whole is not None:
            # The first step ends the time in which the turn was its own window.
            self.truth.windows.remove(actor.whole)
            actor.whole = None
        actor.is_awake = actor.has_steps = True
        named = names if kind in {"edit", "other"} else []
        window = Window(self.play.names[tool.step.id], letter, kind, named, call.when)
        window.turn, window.parent = actor.turns, parent.window if parent else None
        window.background = parent is not None and parent.window.background
        self.truth.windows.append(window)
        actor.steps.append(Running(tool, window))

    def _start(self, agent: Agent, kind: str, names: list[str], around: Tool | None) -> Tool:
        if kind == "edit":
            return agent.edit(*names, inside=around)
        given: dict[str, object] = {"paths": names} if kind == "other" else {}
        tools = {"shell": "Bash", "other": "grow", "read": "Read", "agent": "Task"}
        return agent.use(tools[kind], given, inside=around)

    def work(
        self,
        letter: str,
        kind: str,
        names: list[str],
        inside: int | None,
        script: "Script",
        after: str,
    ) -> None:
        """A tool starts and does something, or you do; then it is done, or goes on."""
        actor = self.actors[letter]
        if not actor.turns:
            self.prompt(letter, whole=False, marked=False)
        running = len(actor.steps)
        self.start(letter, kind, names, inside)
        is_new = len(actor.steps) > running
        for is_named, path, how in script:
            self.change(0 if how == "you" else -1, names[0] if is_named else path, how)
        if is_new and after == "end":
            self.end(letter, len(actor.steps) - 1)
        elif is_new and after == "detach":
            self.detach(letter, len(actor.steps) - 1)

    def you(self, script: "Script", wait: bool) -> None:
        """You do something, at once or after a while."""
        if wait:
            self.wait()
        for _, path, how in script:
            self.change(0, path, how)

    def end(self, letter: str, pick: int) -> None:
        """A tool is done, and with it what is inside it."""
        actor = self.actors[letter]
        if not actor.steps:
            return
        step = actor.steps[pick % len(actor.steps)]
        is_over = step.window.turn != actor.turns or not actor.is_running
        with self._calling(look=is_over or actor.looks_at(step.window.kind)) as call:
            step.tool.end()
            inner = [s.window for s in actor.steps if s.window.is_inside(step.window)]
            call.close([step.window, *inner])

    def detach(self, letter: str, pick: int) -> None:
        """A tool returns while what it started goes on."""
        actor = self.actors[letter]
        if not actor.steps:
            return
        step = actor.steps[pick % len(actor.steps)]
        with self._calling(look=actor.looks_at(step.window.kind)):
            step.tool.detach()
        for other in actor.steps:
            if other.window.is_inside(step.window):
                other.window.background = True
        step.window.detached = step.window.background = True

    def look(self) -> None:
        """Somebody asks for a checkpoint."""
        with self._looking():
            self.play.look()

    def wait(self) -> None:
        """Time goes by; you may have interrupted an agent in the middle of it."""
        time.sleep(APART)
        self.mark = now()
        time.sleep(APART)

    # -- files -----------------------------------------------------------------------------------

    def change(self, by: int, path: str, how: str) -> None:
        """You, or a tool, write or remove a file, or set its permissions; or time goes by."""
        if how == "wait":
            self.wait()
            return
        exists = (self.tree / path).exists()
        if how == "remove" and not exists:
            return
        with self._doing(by, path):
            if how == "chmod" and exists:
                mode = (self.tree / path).stat().st_mode & 0o777
                self.hands.chmod(path, mode ^ 0o100)
            else:
                known = exists and how not in {"you", "chmod"}
                getattr(self.hands, how if known else "write")(path)

    def move(self, by: int, path: str, to: str) -> None:
        """You, or a tool, move a file, perhaps over another."""
        if (self.tree / path).exists() and path != to and (self.tree / to).parent.is_dir():
            with self._doing(by, path, to):
                self.hands.move(path, to)

    def move_folder(self, by: int) -> None:
        """You, or a tool, move a folder there, or back."""
        path, to = ("d", "moved") if (self.tree / "d").exists() else ("moved", "d")
        if (self.tree / path).exists() and not (self.tree / to).exists():
            below = [str(p.relative_to(self.tree)) for p in (self.tree / path).rglob("*")]
            there = [to + name.removeprefix(path) for name in below]
            with self._doing(by, path, to, *below, *there):
                self.hands.move(path, to)

    @contextmanager
    def _doing(self, by: int, *touched: str) -> Iterator[None]:
        """Note what is done, when and by whom: mostly by a tool, if one runs."""
        running = [step for actor in self.actors.values() for step in actor.steps]
        choices = [None, *(step.window for step in running)]
        before = now()
        yield
        when = (before, now())
        # What is moved brings along what was done to it before.
        spans = [self.truth.changes[p].when for p in touched if p in self.truth.changes]
        first = min([when[0], *(span[0] for span in spans)]) if len(touched) > 1 else when[0]
        for path in touched:
            self.truth.changed(path, (first, when[1]), choices[by % len(choices)])

    # -- looks -----------------------------------------------------------------------------------

    def _of_turns(self, actor: Actor) -> list[Window]:
        """What a new prompt closes: all of the session but what is in the background."""
        whole = [actor.whole] if actor.whole else []
        return [*whole, *(s.window for s in actor.steps if not s.window.background)]

    def _open_turn(self, actor: Actor, call: "Call") -> None:
        if actor.is_whole and not actor.has_steps:
            letter = actor.agent.letter
            window = Window(f"{letter.upper()}{actor.turns}", letter, "turn", (), call.when)
            actor.whole = window
            self.truth.windows.append(window)

    @contextmanager
    def _calling(self, *, look: bool) -> "Iterator[Call]":
        """A call to the product, which looks at the tree or does not."""
        call = Call()
        yield call
        call.done()
        for actor in self.actors.values():
            actor.steps = [step for step in actor.steps if step.window.ended is None]
            if actor.whole is not None and actor.whole.ended is not None:
                actor.whole = None
        if look:
            self._compare()
            self.truth.look(call.when)
        else:
            assert self._count() == self.checkpoints, "nobody should have looked"

    def _looking(self) -> "AbstractContextManager[Call]":
        return self._calling(look=True)

    def _count(self) -> int:
        ((count,),) = self.play.project.workspace.ledger._reader.rows(
            "SELECT count(*) FROM checkpoints"
        )
        return int(count)

    def _compare(self) -> None:
        """What the newest checkpoint says, with what the model knows and pictures tell."""
        before, self.picture = self.picture, oracle.picture(self.tree)
        expected = oracle.deltas(before, self.picture)
        is_new = bool(oracle.differences(before, self.picture))
        assert self._count() == self.checkpoints + is_new
        self.checkpoints += is_new
        rows = self.play.project.workspace.ledger._reader.rows(
            "SELECT path, verb, origin FROM deltas WHERE checkpoint = ?", (self._count(),)
        )
        found = {path: (verb, origin) for path, verb, origin in rows} if is_new else {}
        assert found == expected
        told = self.play.authors(since=self.checkpoints - 1) if is_new else {}
        for path, author in told.items():
            verb = expected[os.fsencode(path)][0]
            assert author in self.truth.authors(path, verb), f"{verb} {path}"
            assert author.split(" ")[0] not in self.truth.told_apart(path, verb)


class Call:
    """One call to the product: between which moments it was, and what it closes."""

    def __init__(self) -> None:
        self.when = (now(), 0)
        self._closing: list[tuple[Window, Span | None]] = []

    def close(self, windows: Iterable[Window], when: Span | None = None) -> None:
        """Let windows end with this call, or at a mark before it."""
        self._closing += [(window, when) for window in windows]

    def done(self) -> None:
        """The call returned."""
        self.when = (self.when[0], now())
        for window, when in self._closing:
            window.close(when or self.when)


# -- histories -------------------------------------------------------------------------------------

agents = st.sampled_from("ab")
paths = st.sampled_from(PATHS)
picks = st.integers(0, 1000)
ways = st.sampled_from(["write", "write", "save", "unpack", "chmod", "remove", "you", "wait"])
scripts = st.lists(st.tuples(st.booleans(), paths, ways), min_size=1, max_size=4)
names = st.lists(paths, min_size=1, max_size=2, unique=True)
kinds = st.sampled_from(KINDS)
often = st.sampled_from(["step", "step", "turn", "call"])


def _action(name: str, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Action]:
    return st.tuples(st.just(name), st.fixed_dictionaries(given))


_work = _action(
    "work",
    letter=agents,
    kind=kinds,
    names=names,
    inside=st.none() | picks,
    script=scripts,
    after=st.sampled_from(["end", "end", "detach", "nothing"]),
)
_you = _action("you", script=scripts, wait=st.booleans())
actions = st.one_of(
    _work,
    _work,
    _work,
    _work,
    _you,
    _you,
    _action("prompt", letter=agents, whole=st.booleans(), marked=st.booleans()),
    _action("stop", letter=agents),
    _action("wake", letter=agents),
    _action("leave", letter=agents),
    _action("start", letter=agents, kind=kinds, names=names, inside=st.none() | picks),
    _action("end", letter=agents, pick=picks),
    _action("end", letter=agents, pick=picks),
    _action("detach", letter=agents, pick=picks),
    _action("look"),
    _action("wait"),
    _action("change", by=picks, path=paths, how=ways),
    _action("move", by=picks, path=paths, to=paths),
    _action("move_folder", by=picks),
)


@pytest.mark.timeout(600 if EXAMPLES < 100 else 0)
@given(looks=st.tuples(often, often), history=st.lists(actions, min_size=10, max_size=30))
@settings(
    max_examples=EXAMPLES,
    # No shrinking: histories take time, and what fails may depend on it.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
def test_no_history_has_a_wrong_author(looks: tuple[str, str], history: list[Action]) -> None:
    """After each look every path has an author that can be right; afterwards the log is sound."""
    with pytest.MonkeyPatch.context() as patch, new_ground() as ground:
        patch.setattr(operations, "sync", False)
        home = Path(os.fsdecode(ground.base)) / "home"
        play = Play(Path(os.fsdecode(ground.root)), home)
        schedule = Schedule(play, looks)
        for name, given in history:
            getattr(schedule, name)(**given)
        assert play.project.upkeep.examine()[0] == ()
        assert list(audit.differences(play.project.workspace.ledger._db)) == []
        before = play.tables()
        play.project.rebuild()
        assert play.tables() == before
        play.close()
