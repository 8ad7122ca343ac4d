"""A store that is put in order, again and again, with a fault at another step each time."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import oracle
from faults import injection
from faults.children import Ended, Tell, in_child
from faults.harness import Fault, impatient, open_project
from faults.injection import Strike
from faults.judge import verified
from takeback.disk import operations
from takeback.errors import TakebackError
from takeback.history.retention import Rules
from takeback.ledger.log import archive
from takeback.model.results import Cleanup
from takeback.project import Project
from takeback.session import Turn
from takeback.upkeep import gc

TURNS = 12
KEPT = 4
PINNED = 2
NAME = "gc"
SEGMENT = 16
"""Events; so this history has something to archive."""
_ENDS = ("idx", "keep", "pack")


def tidy(project: Project, *, full: bool = False) -> Cleanup:
    """Let everything go but the newest turns, and put packs together."""
    wish = gc.Wish(Rules(1e-9, KEPT), full=full)
    with project.workspace.store.hold_gc(patience=3):
        return gc.run(project.workspace.store, project.workspace.held, wish, time.time_ns)


class Tidying:
    """A tree, its store as each fault finds it, and what the oracle saw of each state."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.home = folder / "tree", folder / "home"
        self._folder = folder
        self._prepared = folder / "prepared"
        self._away = folder / "outside.txt"
        self.states: dict[str, oracle.Picture] = {}
        self.turns: list[str] = []
        self._pictures: dict[str, oracle.Picture] = {}
        self._steps: list[str] = []
        self._of_archive: list[str] = []
        self.tree.mkdir()
        self._rehearse()
        self.will_go = self._try_without_fault()

    def _rehearse(self) -> None:
        (self.tree / "same").write_bytes(b"never changed\n" * 10)
        with open_project(self.tree, self._prepared) as project:
            for number in range(TURNS):
                with project.session("agent") as agent:
                    self._work(agent.turn(f"turn {number}", whole=False), number)
            project.keep(self.turns[PINNED])
            # The first packs were put together before.
            with project.workspace.store.hold_gc():
                wish = gc.Wish(Rules(None, KEPT))
                gc.run(project.workspace.store, project.workspace.held, wish, time.time_ns)
            for number in range(TURNS, TURNS + 3):
                with project.session("agent") as agent:
                    self._work(agent.turn(f"turn {number}", whole=False), number)
            for turn in self.turns:
                self.states[project.turn(turn).after] = self._pictures[turn]
        self._leave_litter()

    def _work(self, turn: Turn, number: int) -> None:
        with turn:
            with turn.step("Write", {"file_path": str(self._away)}):
                self._away.write_text(f"outside {number}\n")
            with turn.step("Bash", {"command": "make"}):
                place = self.tree / f"part{number % 3}"
                place.mkdir(exist_ok=True)
                (place / "file").write_text(f"{number}\n" * 20)
                (self.tree / "log").write_text("".join(f"line {n}\n" for n in range(number)))
        self.turns.append(turn.id)
        self._pictures[turn.id] = oracle.picture(self.tree)

    def _leave_litter(self) -> None:
        """As if somebody had died before."""
        (packs,) = self._prepared.glob("projects/*/git/objects/pack")
        (packs / "tmp-1-1").write_bytes(b"half a pack")

    def _try_without_fault(self) -> set[str]:
        """Which states go when nothing goes wrong."""
        self.reset()

        def play(tell: Tell) -> None:
            with open_project(self.tree, self.home) as project:
                self._tidy(project)
                query = "SELECT id FROM checkpoints WHERE gone IS NOT NULL"
                tell({"gone": [str(id) for (id,) in project.workspace.ledger._reader.rows(query)]})

        gone = in_child(play).last("gone")
        assert isinstance(gone, list)
        assert len(gone) > TURNS / 2
        return set(gone)

    # -- faults ----------------------------------------------------------------------------

    def steps(self) -> list[str]:
        """The steps of a run in which nothing goes wrong, by name."""
        if not self._steps:
            self.reset()
            recorder = injection.Recorder()

            def play(tell: Tell) -> None:
                with open_project(self.tree, self.home) as project:
                    operations.hook = recorder
                    self._tidy(project)
                statements = [str(args[:1]) for _, args in recorder.steps]
                tell({"steps": [step for step, _ in recorder.steps]})
                tell(
                    {
                        "archive": [
                            str(n) for n, s in enumerate(statements, 1) if "INTO archive" in s
                        ]
                    }
                )

            ended = in_child(play)
            steps, archived = ended.last("steps"), ended.last("archive")
            assert isinstance(steps, list)
            assert isinstance(archived, list)
            self._steps, self._of_archive = steps, archived
        return self._steps

    def faults(self, kind: str, *, sync: bool) -> list[Fault]:
        """One fault of a kind at each step where it can strike."""
        steps = enumerate(self.steps(), 1)
        fitting = [n for n, s in steps if kind not in injection.WRITES_ONLY or s == "write"]
        return [Fault(NAME, kind, number, sync) for number in fitting]

    def steps_of_archive(self) -> list[range]:
        """The steps of each transaction that archives: BEGIN to COMMIT, and one more."""
        assert self.steps()
        assert self._of_archive, "nothing was archived"
        return [range(int(step) - 1, int(step) + 4) for step in self._of_archive]

    def play(self, fault: Fault) -> list[str]:
        """Let a fault happen; return what is wrong afterwards, nothing if all is well."""
        self.reset()
        ended = in_child(lambda tell: self._attempt(tell, fault))
        return self.judged(ended)

    def play_twice(self, fault: Fault, step: int) -> list[str] | None:
        """Kill also the next run, at one of its steps; None when it has fewer steps."""
        self.reset()
        in_child(lambda tell: self._attempt(tell, fault))
        again = in_child(lambda tell: self._attempt(tell, fault._replace(kind="kill", step=step)))
        return self.judged(again) if again.every("fired") else None

    def _attempt(self, tell: Tell, fault: Fault) -> None:
        impatient()
        operations.sync = fault.sync
        with open_project(self.tree, self.home) as project:
            operations.hook = Strike(fault.kind, fault.step, tell, lambda _: None)
            try:
                self._tidy(project)
            except (Exception, KeyboardInterrupt) as problem:
                tell({"refused": f"{type(problem).__name__}: {problem}"})
            operations.hook = None
            if fault.kind not in injection.LASTING and fault.step % 2:
                # The same process goes on.
                project.checkpoint()

    def _tidy(self, project: Project) -> None:
        """In a process of its own: there segments are short."""
        archive.SEGMENT = SEGMENT
        tidy(project)

    def reset(self) -> None:
        """Put the store back to where it was before the fault."""
        if self.home.exists():
            shutil.rmtree(self.home)
        shutil.copytree(self._prepared, self.home, symlinks=True)

    # -- judging ---------------------------------------------------------------------------

    def judged(self, ended: Ended) -> list[str]:
        """What is wrong with the store now."""
        found = [f"crashed: {what}" for what in ended.every("crashed")]

        def look(tell: Tell) -> None:
            with open_project(self.tree, self.home) as project:
                for what in self._judge(project):
                    tell({"wrong": what})

        looked = in_child(look)
        return found + looked.every("wrong") + [f"judge: {w}" for w in looked.every("crashed")]

    def _judge(self, project: Project) -> Iterator[str]:
        yield from verified(project, "after the fault")
        yield from self._extract_all(project, "after the fault")
        yield from self._take_back(project)
        self._tidy(project)
        yield from verified(project, "after the next run")
        yield from self._extract_all(project, "after the next run")
        gone = self._gone(project)
        if not self.will_go <= gone:
            yield f"the next run did not let go: {self.will_go - gone}"
        yield from self._litter(project)
        if len([*project.workspace.ledger.events()]) != project.workspace.ledger.last_event():
            yield "the log is not whole"
        if project.workspace.ledger._reader.value("SELECT min(seq) FROM events") == 1:
            yield "the next run archived nothing"

    def _gone(self, project: Project) -> set[str]:
        query = "SELECT id FROM checkpoints WHERE gone IS NOT NULL"
        return {str(id) for (id,) in project.workspace.ledger._reader.rows(query)}

    def _extract_all(self, project: Project, when: str) -> Iterator[str]:
        gone = self._gone(project)
        for id in gone & self.states.keys() - self.will_go:
            yield f"{when}: {id} is gone"
        for id, state in self.states.items():
            if id in gone:
                continue
            target = self._folder / "extracted"
            try:
                project.extract(id, target)
                yield from oracle.differences(state, oracle.picture(target))
            except TakebackError as problem:
                yield f"{when}: {id} cannot be extracted: {problem}"
            finally:
                shutil.rmtree(target, ignore_errors=True)

    def _take_back(self, project: Project) -> Iterator[str]:
        """The kept turns are undone and put back, with the file outside."""
        away = self._away.read_bytes()
        for place in range(len(self.turns) - 1, len(self.turns) - 1 - KEPT, -1):
            project.undo(self.turns[place], yes=True)
            if oracle.picture(self.tree) != self._pictures[self.turns[place - 1]]:
                yield f"the undo of turn {place} is not exact"
            if self._away.read_text() != f"outside {place - 1}\n":
                yield f"the undo of turn {place} is not exact outside"
        for turn in self.turns[-KEPT:]:
            project.redo(turn, yes=True)
        if oracle.picture(self.tree) != self._pictures[self.turns[-1]]:
            yield "what was undone is not as it was when it is put back"
        if self._away.read_bytes() != away:
            yield "the file outside is not as it was"

    def _litter(self, project: Project) -> Iterator[str]:
        known = {f"{name}.{end}" for name in project.workspace.ledger.packs() for end in _ENDS}
        there = set(os.listdir(os.fsdecode(project.workspace.store.packs_dir)))
        yield from (f"litter: {name}" for name in sorted(there - known))
        yield from (f"missing: {name}" for name in sorted(known - there))
