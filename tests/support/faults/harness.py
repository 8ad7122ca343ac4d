"""Plays one scenario again and again, with a fault at another step each time."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import oracle
from faults import injection
from faults.children import Child, Ended, Tell, in_child
from faults.injection import Strike
from faults.judge import Before, Court, judge
from faults.scenarios import Scenario
from takeback.capture.workspace import Workspace
from takeback.disk import operations
from takeback.disk.lock import Held
from takeback.errors import TakebackError
from takeback.project import Project

_SETTLED = 30_000_000
_IMPATIENT = 3.0


class Fault(NamedTuple):
    """One fault: which scenario, what breaks, at which step, and how the store was set up."""

    scenario: str
    kind: str
    step: int
    sync: bool = True
    cache: bool = True
    """Whether the stat cache of the checkpoint before is there."""

    def __str__(self) -> str:
        words = (
            self.scenario,
            self.kind,
            str(self.step),
            "sync" if self.sync else "nosync",
            "cache" if self.cache else "nocache",
        )
        return ":".join(words)

    @property
    def replay(self) -> str:
        """The command that plays this fault alone."""
        return f"FAULT={self} pytest tests/promises/test_*faults.py -k replay"


def parse(text: str) -> Fault:
    """A fault from its text."""
    name, kind, step, sync, cache = text.split(":")
    return Fault(name, kind, int(step), sync == "sync", cache == "cache")


class Theatre:
    """A tree, the store as it was before the fault, and what the oracle saw of each checkpoint."""

    def __init__(self, scenario: Scenario, folder: Path, home: Path | None = None) -> None:
        self.scenario = scenario
        self._folder = folder
        self.tree = folder / "tree"
        self.home = home or folder / "home"
        self._prepared = folder / "prepared"
        self._steps: dict[bool, list[str]] = {}
        self.tree.mkdir()
        self.before = self.rehearse()

    def rehearse(self) -> Before:
        """Make the tree, its history and the store that each fault finds."""
        earlier = {}
        for make in self.scenario.history:
            make(self.tree)
            settle(self._folder)
            earlier[self._checkpoint(self._prepared)] = oracle.picture(self.tree)
        self.prepare(self._prepared)
        self.scenario.edit(self.tree)
        return Before(earlier, oracle.picture(self.tree))

    def prepare(self, home: Path) -> None:
        """What else happened in a store before the fault; for those who need more."""

    def act(self, project: Project, label: str) -> Iterator[str]:
        """What the fault strikes; each part of it that was acknowledged, in words."""
        yield project.checkpoint(label).id

    def refused(self, tell: Tell) -> None:
        """Called in the process in which it failed; for those who have more to tell."""

    @property
    def work(self) -> str:
        """The same in one line of a program, which has a `project` and can `tell`."""
        return 'tell(acked=project.checkpoint("traced").id)'

    def steps(self, *, cache: bool = True) -> list[str]:
        """The steps of what is done when nothing goes wrong, by name."""
        if cache in self._steps:
            return self._steps[cache]
        self.reset(cache=cache)
        recorder = injection.Recorder()

        def play(tell: Tell) -> None:
            operations.hook = recorder
            with open_project(self.tree, self.home) as project:
                for _ in self.act(project, "counted"):
                    pass
            tell({"steps": [step for step, _ in recorder.steps]})

        steps = in_child(play).last("steps")
        assert isinstance(steps, list), "without any fault it failed"
        self._steps[cache] = steps
        return steps

    def faults(self, kind: str, *, sync: bool, cache: bool) -> list[Fault]:
        """One fault of a kind at each step where it can strike."""
        steps = enumerate(self.steps(cache=cache), 1)
        fitting = (n for n, s in steps if kind not in injection.WRITES_ONLY or s == "write")
        return [Fault(self.scenario.name, kind, number, sync, cache) for number in fitting]

    def play(self, fault: Fault) -> list[str]:
        """Let a fault happen; return what is wrong afterwards, nothing if all is well."""
        self.reset(cache=fault.cache)
        if self.scenario.name == "second-process-waiting":
            attempts = self._with_somebody_waiting(fault)
        else:
            attempts = [in_child(lambda tell: self._attempt(tell, fault))]
        return self.judged(attempts, fault.kind)

    def play_twice(self, fault: Fault, step: int) -> list[str] | None:
        """Kill also the next start, at one of its steps; None when it has fewer steps."""
        self.reset(cache=fault.cache)
        attempts = [in_child(lambda tell: self._attempt(tell, fault))]
        again = fault._replace(kind="kill", step=step)
        attempts.append(in_child(lambda tell: self._attempt(tell, again)))
        if not attempts[1].every("fired"):
            return None
        return self.judged(attempts, "kill")

    def judged(self, attempts: list[Ended], kind: str) -> list[str]:
        """What is wrong with the store after these attempts; nothing if all is well."""
        with _changing_later(self.tree, self.scenario) as change:
            return judge(attempts, kind, change, self.court())

    def court(self) -> Court:
        """Who judges what is left."""
        return Court(self.tree, self.home, self.before)

    # -- the faulty checkpoint -------------------------------------------------------------

    def try_once(self, tell: Tell) -> None:
        """Make the checkpoint, whatever comes, and end without tidying up."""
        impatient()
        _try_checkpoint(tell, self, None)

    def _attempt(self, tell: Tell, fault: Fault, gate: "Gate | None" = None) -> None:
        """Make a checkpoint with a fault in it; half of the errors are followed by a retry."""
        moment = gate.pass_through if gate else _no_moment
        operations.sync = fault.sync
        strike = operations.hook = Strike(fault.kind, fault.step, tell, moment)
        impatient()
        project = _try_checkpoint(tell, self, None)
        if fault.kind == "full":
            _try_checkpoint(tell, self, project)
            _try_verify(tell, project)
        tell({"steps": strike.steps})
        operations.hook = None
        if (fault.step + fault.sync) % 2:
            _try_checkpoint(tell, self, project, after=True)

    def _with_somebody_waiting(self, fault: Fault) -> list[Ended]:
        """The faulty process holds the lock until a second one is seen waiting for it."""
        steps = self.steps(cache=fault.cache)
        self.reset(cache=fault.cache)
        gate = Gate(steps)
        first = Child(lambda tell: self._attempt(tell, fault, gate))
        gate.wait_for_holder()
        second = Child(lambda tell: self._wait_in_line(tell, gate))
        second.hear()
        gate.open()
        return [first.end(), second.end()]

    def _wait_in_line(self, tell: Tell, gate: "Gate") -> None:
        tried = 0

        def hook(step: str, _args: tuple[object, ...]) -> None:
            nonlocal tried
            tried += step == "lock"
            if tried == gate.turns:
                tried += 1
                tell({"waiting": True})

        gate.leave()
        operations.hook = hook
        _try_checkpoint(tell, self, None)

    # -- the stage -------------------------------------------------------------------------

    def reset(self, *, cache: bool = True) -> None:
        """Put the store back to where it was before the fault."""
        if self.scenario.must_be_still:
            settle(self._folder)
            self._checkpoint(self._prepared)
        if self.home.exists():
            shutil.rmtree(self.home)
        if self._prepared.exists():
            shutil.copytree(self._prepared, self.home, symlinks=True)
        if not cache:
            for known in self.home.glob("projects/*/index"):
                known.unlink()

    def _checkpoint(self, home: Path) -> str:
        def play(tell: Tell) -> None:
            with open_project(self.tree, home) as project:
                tell({"id": project.checkpoint().id})

        made = in_child(play)
        assert made.status == 0, made
        return str(made.last("id"))


class Gate:
    """Holds a process that has the lock until somebody else is waiting for it."""

    def __init__(self, steps: list[str]) -> None:
        self._locked = len(steps) - steps[::-1].index("lock")
        self.turns = steps.count("lock") + 1
        """How many times a second process asks for locks before it is surely waiting."""
        self._holder, self._held = os.pipe()
        self._go, self._open = os.pipe()

    def pass_through(self, step: int) -> None:
        """Called by the holder before each step."""
        if step == self._locked + 1:
            os.close(self._holder)
            os.close(self._open)
            os.write(self._held, b"h")
            os.read(self._go, 1)

    def wait_for_holder(self) -> None:
        """Return when the first process has the lock or is gone."""
        os.close(self._held)
        os.read(self._holder, 1)

    def leave(self) -> None:
        """Called by the second process, which must not keep the gate shut."""
        os.close(self._open)

    def open(self) -> None:
        """Let the holder go on."""
        for fd in (self._open, self._go, self._holder):
            os.close(fd)


def settle(folder: Path) -> None:
    """Let the file system's own clock pass what is written already by more than its slack."""
    probe = folder / "probe"
    probe.touch()
    start = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns < start + _SETTLED:
        probe.touch()
    probe.unlink()


def impatient(seconds: float = _IMPATIENT) -> None:
    """Let this process, which is thrown away, wait for locks only for so long."""
    defaults = Held.__init__.__defaults__ or ()
    Held.__init__.__defaults__ = (*defaults[:-1], seconds)
    Workspace.held.__defaults__ = (seconds,)


def _no_moment(_step: int) -> None:
    return


def open_project(tree: Path, home: Path) -> Project:
    """The project of a tree."""
    return Project.open(os.fsencode(tree), home=os.fsencode(home))


def _try_checkpoint(
    tell: Tell, stage: Theatre, project: Project | None, *, after: bool = False
) -> Project | None:
    """Make a checkpoint and tell how that ended; `after` the fault it has to succeed."""
    try:
        project = project or open_project(stage.tree, stage.home)
        for done in stage.act(project, "again" if after else "faulty"):
            tell({"acked": done})
    except (TakebackError, KeyboardInterrupt) as problem:
        word = "broken" if after else "refused"
        tell({word: f"{type(problem).__name__}: {problem}"})
        stage.refused(tell)
    except BaseException as problem:
        tell({"broken": f"not one of our errors: {problem!r}"})
    return project


def _try_verify(tell: Tell, project: Project | None) -> None:
    try:
        if project is not None and not project.verify().ok:
            tell({"broken": "verify finds damage while the disk is full"})
    except TakebackError:
        return
    except BaseException as problem:
        tell({"broken": f"verify: not one of our errors: {problem!r}"})


@contextmanager
def _changing_later(tree: Path, scenario: Scenario) -> Iterator[Callable[[], None]]:
    """A way for the judge to change the tree once more, which is taken back afterwards."""
    changes = [(tree / name, data) for name, data in scenario.later]
    before = [(path, path.read_bytes() if path.exists() else None) for path, _ in changes]
    yield lambda: _put(changes)
    _put(before)


def _put(contents: list[tuple[Path, bytes | None]]) -> None:
    for path, data in contents:
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(data)


def every_nth(faults: list[Fault], count: int) -> Iterator[Fault]:
    """At most `count` of the faults, evenly spread, always the same."""
    for number in range(min(count, len(faults))):
        yield faults[number * len(faults) // min(count, len(faults))]
