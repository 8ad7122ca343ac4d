"""Plays a restore with a fault at another step each time; the tree is put back in between."""

import importlib
import pkgutil
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import oracle
import takeback
from faults.children import Ended, Tell, in_child
from faults.folders import put_back
from faults.harness import Fault, Theatre, open_project, settle
from faults.injection import Strike
from faults.judge import Before, Court
from faults.restores import RESTORES, Make, Restore, Verb
from faults.rewound import REQUEST, Plain, RestoreCourt, places
from faults.scenarios import SMALL
from oracle import Picture
from takeback.disk import operations
from takeback.errors import TakebackError
from takeback.project import Project

# What the product imports only when it is needed, each child would import again. No restore needs
# the server of MCP, and only one of its modules fits the SDK that is installed.
for _module in pkgutil.walk_packages(takeback.__path__, "takeback."):
    if not _module.name.startswith(("takeback.cli", "takeback.mcp.", "takeback.__")):
        importlib.import_module(_module.name)


class Rewinding(Theatre):
    """A tree with turns in its history, and the restores that are asked for."""

    def __init__(self, restore: Restore, folder: Path) -> None:
        self.restore = restore
        self.turns: list[str] = []
        self.pictures: list[Picture] = []
        """The tree before the fault, then after each verb."""
        self._copy = folder / "copy"
        self._judged = 0
        super().__init__(SMALL._replace(name=restore.name, history=(), later=()), folder)

    # -- before any fault ------------------------------------------------------------------

    def rehearse(self) -> Before:
        """Let turns make the states, do what comes before, and keep a copy of the tree."""
        states: list[Picture] = []
        earlier: dict[str, Picture] = {}
        for make in self.restore.states:
            id = self._in_prepared(partial(self._turn if states else self._begin, make))
            states.append(oracle.picture(self.tree))
            earlier[id] = states[-1]
        for verb in self.restore.ready:
            id = self._in_prepared(partial(self._do, verb))
            earlier[id] = oracle.picture(self.tree)
            assert earlier[id] == verb.expected(states), "without any fault it went wrong"
        now = oracle.picture(self.tree)
        self.pictures = [now, *(verb.expected(states) for verb in self.restore.verbs)]
        shutil.copytree(self.tree, self._copy, symlinks=True)
        return Before(earlier, now)

    def _begin(self, make: Make, project: Project) -> tuple[str, str]:
        make(self.tree)
        settle(self._folder)
        return project.checkpoint("before any agent").id, ""

    def _turn(self, make: Make, project: Project) -> tuple[str, str]:
        session = project.session("claude", id="own", held=False)
        with session.turn(f"make state {len(self.turns) + 1}") as turn:
            make(self.tree)
            settle(self._folder)
        return next(project.checkpoints()).id, turn.id

    def _do(self, verb: Verb, project: Project) -> tuple[str, str]:
        return verb.do(project, self.turns).after, ""

    def _in_prepared(self, work: Callable[[Project], tuple[str, str]]) -> str:
        """Do something in the store that each fault finds; the checkpoint that it ends with."""

        def play(tell: Tell) -> None:
            with open_project(self.tree, self._prepared) as project:
                checkpoint, turn = work(project)
                tell({"checkpoint": checkpoint, "turn": turn})

        done = in_child(play)
        assert done.status == 0, done
        self.turns += [turn for turn in done.every("turn") if turn]
        return str(done.last("checkpoint"))

    def reset(self, *, cache: bool = True) -> None:
        """Put the store and the tree back to where they were before the fault."""
        super().reset(cache=cache)
        put_back(self.tree, self._copy)

    # -- the fault -------------------------------------------------------------------------

    def act(self, project: Project, label: str) -> Iterator[str]:
        """The restores, each a request, so that it can be tried again."""
        del label
        yield from _perform(self.restore, project, self.turns)

    @property
    def work(self) -> str:
        """The same in one line of a program."""
        name = self.restore.name
        call = f"perform({name!r}, project, {self.turns!r}, tell)"
        return f"from faults.rewinding import perform; {call}"

    def refused(self, tell: Tell) -> None:
        """Tell where a failed call left the tree, before anybody recovers anything."""
        log = Plain(self.home, is_open=True)
        tell({"left": places(self.tree, self.pictures), "restored": log.restored()})

    def court(self) -> Court:
        """The judge of restores, who asks for more now and then."""
        self._judged += 1
        goes_on, is_thorough = (self._judged % often == 0 for often in (2, 4))
        return RestoreCourt(self, goes_on=goes_on, is_thorough=is_thorough)

    def places(self) -> list[str]:
        """Which of the pictures the tree looks like, by number."""
        return places(self.tree, self.pictures)

    # -- faults in recovery ----------------------------------------------------------------

    def interruptions(self, every: int = 1) -> list[Fault]:
        """The kills, or every n-th of them, that leave a restore to be recovered."""
        kills = self.faults("kill", sync=True, cache=True)[::every]
        return [kill for kill in kills if self.interrupt(kill).every("interrupted")]

    def interrupt(self, fault: Fault) -> Ended:
        """Let the fault happen, and nobody recover."""
        self.reset()
        ended = in_child(partial(self._attempt, fault=fault))
        if Plain(self.home, is_open=False).interrupted():
            ended.said.append({"interrupted": True})
        return ended

    def play_recovery(self, first: Fault, kind: str, step: int) -> list[str] | None:
        """Let the start that recovers fail at one of its steps; None when it has fewer."""
        attempts = [self.interrupt(first)]
        attempts.append(in_child(partial(self._recover, kind=kind, step=step)))
        if not attempts[1].every("fired"):
            return None
        return self.judged(attempts, "kill")

    def _recover(self, tell: Tell, kind: str, step: int) -> None:
        operations.hook = Strike(kind, step, tell, lambda _step: None)
        try:
            open_project(self.tree, self.home).close()
        except (TakebackError, KeyboardInterrupt) as problem:
            tell({"refused": f"{type(problem).__name__}: {problem}"})


def perform(name: str, project: Project, turns: Sequence[str], tell: Callable[..., None]) -> None:
    """Do the restores of that name and tell each request with its result."""
    restore = next(restore for restore in RESTORES if restore.name == name)
    for done in _perform(restore, project, turns):
        tell(acked=done)


def _perform(restore: Restore, project: Project, turns: Sequence[str]) -> Iterator[str]:
    for number, verb in enumerate(restore.verbs):
        request = f"{REQUEST}{number}"
        yield f"{request} {verb.do(project, turns, request).id}"
