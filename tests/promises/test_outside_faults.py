"""Whatever breaks while files outside are restored: before or after, never between."""

import os
import shutil
from pathlib import Path

import pytest

import oracle
from faults.children import Ended, Tell, in_child
from faults.folders import put_back
from faults.harness import impatient, open_project, settle
from faults.injection import Recorder, Strike
from faults.report import FULL, SECONDS, noted, stage
from oracle import Picture
from spoken import spoken
from takeback import Project, Turn
from takeback.disk import operations
from takeback.effects import rescue
from takeback.errors import TakebackError
from takeback.model.beyond.effects import DELETE, Judgement, Target
from takeback.model.ids import is_stage
from takeback.model.reasons import Reason

KINDS = ("kill", "ENOSPC", "EIO", "EACCES", "interrupt")
SHARE = {"kill": 8, "ENOSPC": 4, "EIO": 3, "EACCES": 3, "interrupt": 3}
REQUEST = "undo-it"
Places = tuple[Picture, ...]


class World:
    """A project with a turn that changed one file inside and two outside, in folders of their own.

    One outside was edited, the other one made. Each fault finds the same world.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.folders = [folder / name for name in ("tree", "one", "two")]
        self.tree, one, _ = self.folders
        for each in self.folders:
            each.mkdir(exist_ok=True)
        (self.tree / "inside").write_bytes(b"inside\n")
        (one / "rc").write_bytes(b"old\n" * 9)
        (one / "rc").chmod(0o640)
        settle(folder)
        self.before: Places = ()
        self.after: Places = ()
        ended = in_child(self._work)
        assert ended.status == 0, ended
        self.after = self.now()
        self._copies = folder / "copies"
        for each in (*self.folders, self.home):
            shutil.copytree(each, self._copies / each.name, symlinks=True)
        ended = in_child(lambda tell: self._undo(tell, None))
        assert ended.every("acked"), ended
        self.before = self.now()
        assert all(a != b for a, b in zip(self.before, self.after, strict=True))

    def _work(self, tell: Tell) -> None:
        del tell
        tree, one, two = self.folders
        with open_project(self.tree, self.home) as project:
            project.checkpoint()
            session = project.session("claude", id="own", held=False)
            paths = [str(one / "rc"), str(two / "made"), "inside"]
            with session.turn("edit", whole=False) as turn:
                with turn.step("Edit", {"files": paths}):
                    (tree / "inside").write_bytes(b"changed\n")
                    (one / "rc").write_bytes(b"new\n")
                    (one / "rc").chmod(0o600)
                    (two / "made").write_bytes(b"made\n")
                self._destroy(project, turn)

    def _destroy(self, project: Project, turn: Turn) -> None:
        """Nothing more in this one."""

    def now(self) -> Places:
        """What is in the three folders, but for what is staged."""
        found = []
        for folder in self.folders:
            picture = oracle.picture(folder)
            staged = [path for path in picture if is_stage(path)]
            entries = [(p, e) for p, e in picture.items() if p.split(b"/")[0] not in staged]
            # The root itself is there, too; its mode is of no interest.
            found.append(dict(entries))
        return tuple(found)

    def redone(self) -> Places:
        """What a redo makes of it."""
        return self.after

    def reset(self) -> None:
        """Put everything back to where it was before the undo."""
        for each in self.folders:
            put_back(each, self._copies / each.name)
        shutil.rmtree(self.home)
        shutil.copytree(self._copies / "home", self.home, symlinks=True)

    def steps(self) -> list[str]:
        """The steps of the undo when nothing goes wrong."""
        self.reset()
        recorder = Recorder()

        def play(tell: Tell) -> None:
            self._undo(tell, recorder)
            tell({"steps": [step for step, _ in recorder.steps]})

        told = in_child(play).last("steps")
        assert isinstance(told, list)
        return told

    def _undo(self, tell: Tell, hook: "Strike | Recorder | None") -> None:
        impatient()
        operations.hook = hook
        try:
            with open_project(self.tree, self.home) as project:
                tell({"acked": project.undo(yes=True, request=REQUEST).id})
        except (TakebackError, KeyboardInterrupt) as problem:
            tell({"refused": f"{type(problem).__name__}: {problem}"})
        except OSError as problem:
            tell({"broken": repr(problem)})
        finally:
            operations.hook = None

    # -- a fault -----------------------------------------------------------------------------

    def play(self, kind: str, step: int) -> list[str]:
        """What is wrong after one fault."""
        self.reset()
        ended = in_child(lambda tell: self._undo(tell, _strike(kind, step, tell)))
        return self.judged(ended)

    def play_twice(self, first: int, step: int) -> "list[str] | None":
        """What is wrong if the start that recovers is killed, too; None if it has fewer steps."""
        self.reset()
        in_child(lambda tell: self._undo(tell, _strike("kill", first, tell)))

        def recover(tell: Tell) -> None:
            operations.hook = _strike("kill", step, tell)
            open_project(self.tree, self.home).close()

        ended = in_child(recover)
        return self.judged(ended) if ended.every("fired") else None

    def judged(self, ended: Ended) -> list[str]:
        """What is wrong: the files against the log, litter, and whether one can go on."""
        wrong = [*ended.every("broken"), *ended.every("crashed")]
        told = in_child(self._judge)
        return [*wrong, *told.every("wrong"), *told.every("crashed")] + (
            [] if told.every("judged") else ["nobody could judge"]
        )

    def _judge(self, tell: Tell) -> None:
        with open_project(self.tree, self.home) as project:
            done = project.workspace.ledger.requested(REQUEST) is not None
            wanted, other = (self.before, self.after) if done else (self.after, self.before)
            if self.now() != wanted:
                where = "the other side" if self.now() == other else "between"
                tell({"wrong": f"the log says done={done}, and the files are {where}"})
            for folder in self.folders:
                for name in os.listdir(folder):
                    if is_stage(os.fsencode(name)):
                        tell({"wrong": f"litter: {folder.name}/{name}"})
            if project.workspace.ledger.has_journal():
                tell({"wrong": "the journal still has a row"})
            for damage in project.verify().damage:
                tell({"wrong": f"damage: {damage.what}"})
            project.undo(yes=True, request=REQUEST)
            if self.now() != self.before:
                tell({"wrong": "trying again did not take it back"})
            project.redo(yes=True)
            if self.now() != self.redone():
                tell({"wrong": "redo did not put it back"})
        tell({"judged": True})


class Destroyed(World):
    """The same, and the turn destroyed a large file, `.git`, and a folder beside the project."""

    def __init__(self, folder: Path) -> None:
        big, git, beside = (folder / each for each in ("tree/big", "tree/.git", "one/beside"))
        for each in (git / "refs" / "heads", beside / "deep"):
            each.mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (beside / "deep" / "notes").write_bytes(b"notes\n")
        (beside / "link").symlink_to("deep/notes")
        big.touch()
        os.truncate(big, 17 << 20)
        super().__init__(folder)

    def _destroy(self, project: Project, turn: Turn) -> None:
        tree, one, _ = self.folders
        doomed = [tree / "big", tree / ".git", one / "beside"]
        targets = [Target(os.fsencode(path), DELETE, is_recursive=True) for path in doomed]
        judged = Judgement("destructive", "test", Reason("test"), targets=tuple(targets))
        work = project.workspace
        with turn.step("Bash", {}) as step:
            with work.held():
                rescue.before(work, step.id, judged)
            doomed[0].unlink()
            for folder in doomed[1:]:
                shutil.rmtree(folder)
        with work.held():
            rescue.after(work, step.id)

    def redone(self) -> Places:
        """What came from the rescue stays: nothing else would have it."""
        for path in ("tree/big", "tree/.git/HEAD", "one/beside/deep/notes", "one/beside/link"):
            assert (self.folder / path).lstat()
        return self.now()


def _strike(kind: str, step: int, tell: Tell) -> Strike:
    return Strike(kind, step, tell, lambda _step: None)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", KINDS)
def test_before_or_after(kind: str) -> None:
    """After a fault at any step, inside and outside are both before or both after the undo."""
    wrong, played = [], 0
    with stage() as folder, noted(scenario="outside", fault=kind, sync=True) as note:
        world = World(folder)
        steps = len(world.steps())
        apart = 1 if FULL else max(1, steps // SHARE[kind])
        for step in range(1 + KINDS.index(kind) % apart, steps + 1, apart):
            wrong += [f"{kind} at {step}: {what}" for what in world.play(kind, step)]
            played += 1
        note["steps"], note["faults"], note["wrong"] = steps, played, len(wrong)
    assert played
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", ["kill", "ENOSPC"])
def test_before_or_after_with_what_was_rescued(kind: str) -> None:
    """What no checkpoint held comes back with the rest, or nothing does."""
    wrong, played = [], 0
    with stage() as folder, noted(scenario="rescue", fault=kind, sync=True) as note:
        world = Destroyed(folder)
        steps = len(world.steps())
        apart = 1 if FULL else max(1, 2 * steps // SHARE[kind])
        for step in range(1, steps + 1, apart):
            wrong += [f"{kind} at {step}: {what}" for what in world.play(kind, step)]
            played += 1
        note["steps"], note["faults"], note["wrong"] = steps, played, len(wrong)
    assert played
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(SECONDS)
def test_recovery_may_be_killed_too() -> None:
    """Whoever recovers may be killed at any step: the next one ends in before or after."""
    wrong, played = [], 0
    with stage() as folder, noted(killed_twice="outside, kill in recovery") as note:
        world = World(folder)
        steps = world.steps()
        moves = [n for n, step in enumerate(steps, 1) if step in ("exchange", "move")]
        for first in (moves[0] + 1, moves[-1] + 1):
            for step in range(1, 1000, 1 if FULL else 5):
                found = world.play_twice(first, step)
                if found is None:
                    break
                played += 1
                wrong += [f"kill at {first}, then at {step}: {what}" for what in found]
        note["faults"] = played
    assert played > 5
    assert not wrong, "\n".join(wrong)


def test_a_folder_that_is_gone_blocks_nobody() -> None:
    """If a folder outside is gone when a restore is taken back, that is said, and work goes on."""
    with stage() as folder:
        world = World(folder)
        steps = world.steps()
        last = max(n for n, step in enumerate(steps, 1) if step in ("exchange", "move"))
        world.reset()
        in_child(lambda tell: world._undo(tell, _strike("kill", last + 1, tell)))
        shutil.rmtree(world.folders[2])

        def look(tell: Tell) -> None:
            with open_project(world.tree, world.home) as project:
                tell(
                    {
                        "told": list(spoken(project.recovered)),
                        "open": project.workspace.ledger.has_journal(),
                    }
                )
                project.checkpoint()

        ended = in_child(look)
        assert ended.status == 0, ended
        told = ended.last("told")
        assert isinstance(told, list)
        assert "its folder is gone or cannot be opened" in told[0]
        assert ended.last("open") is False
        assert (world.tree / "inside").read_bytes() == b"changed\n"
        assert (world.folders[1] / "rc").read_bytes() == b"new\n"
