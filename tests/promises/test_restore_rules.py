"""The rules of the protocol by which a restore is carried out, each with the test that guards it.

`test_sabotage` breaks the rules one by one and sees that these tests fail.
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

import oracle
from disturbed import hooked
from faults.children import Child, Tell, in_child
from faults.harness import Fault, impatient, open_project, settle
from faults.injection import die
from faults.report import stage
from faults.restores import MIXED, READ_ONLY
from faults.rewinding import Rewinding
from faults.scenarios import write
from hostile.ground import PLAIN_USER
from hostile.stage import in_child as in_own_world
from moments import Moments
from spoken import spoken
from takeback.disk import operations
from takeback.errors import (
    BusyError,
    ConflictError,
    DamagedStoreError,
    StalePlanError,
    TakebackError,
)
from takeback.model import reasons
from takeback.model.ids import is_stage


class World:
    """A project in which one turn has changed something, and a folder outside of it."""

    def __init__(self, folder: Path, first: dict[str, str], then: dict[str, str | None]) -> None:
        self.tree, self.home, self.outside = folder / "tree", folder / "home", folder / "outside"
        for path in (self.tree, self.outside):
            path.mkdir()
        write(self.outside / "file", b"not ours\n", 0o640)
        self._put(first)
        self.project = open_project(self.tree, self.home)
        self.project.checkpoint("before any agent")
        self.before = oracle.picture(self.tree)
        with self.project.session("claude").turn("change it"):
            self._put(then)
        self.after = oracle.picture(self.tree)
        settle(folder)

    def _put(self, files: "dict[str, str | None] | dict[str, str]") -> None:
        for name, text in files.items():
            if text is None:
                (self.tree / name).unlink()
            else:
                write(self.tree / name, text.encode())

    def is_before(self) -> bool:
        """Whether the turn is taken back."""
        return oracle.picture(self.tree) == self.before

    def is_after(self) -> bool:
        """Whether the tree is as the turn left it."""
        return oracle.picture(self.tree) == self.after

    def save(self, name: str, text: str) -> None:
        """Save a file as an editor does: whole, under another name, then renamed."""
        write(self.outside / "new", text.encode())
        os.rename(self.outside / "new", self.tree / name)

    def holds(self, name: str, text: str) -> bool:
        """Whether a file of the tree holds this."""
        path = self.tree / name
        return path.is_file() and path.read_bytes() == text.encode()


class Once:
    """A hook that does something, once, before the first step that fits."""

    def __init__(self, do: Callable[[], None], step: str, name: bytes = b"") -> None:
        self._do = do
        self._step = step
        self._name = name
        self.done = False

    def __call__(self, step: str, args: tuple[object, ...]) -> None:
        """Look whether this is the step."""
        if not self.done and step == self._step and (not self._name or self._name in args):
            self.done = True
            self._do()


class DieInWriting:
    """A hook that ends the process when a file in our folder was made, and is still empty."""

    def __init__(self) -> None:
        self._made = ""

    def __call__(self, step: str, args: tuple[object, ...]) -> None:
        """Look whether this is the step."""
        if step == "create":
            self._made = os.fsdecode(args[0]) if isinstance(args[0], bytes) else ""
        elif step == "write" and self._made[1:].isdigit():
            die()


# -- journal and recovery --------------------------------------------------------------------


def _killed(*steps: str) -> list[str]:
    """What is wrong after kills before the last of these steps of a restore."""
    with stage() as folder:
        theatre = Rewinding(MIXED, folder)
        fitting = [n for n, step in enumerate(theatre.steps(), 1) if step in steps][-10:]
        return [w for n in fitting for w in theatre.play(Fault(MIXED.name, "kill", n))]


def test_the_journal_comes_before_the_first_change() -> None:
    """A restore that is killed while paths change is taken back."""
    assert _killed("exchange", "move", "rmdir") == []


def test_the_journal_goes_with_the_event() -> None:
    """A restore that is killed around its commit has happened, or is taken back; never neither."""
    assert _killed("sql") == []


def test_opening_recovers(tmp_path: Path) -> None:
    """Whoever opens the project next finds the tree as it was, before he does anything."""
    theatre = Rewinding(MIXED, tmp_path)
    number = theatre.steps().index("exchange") + 2
    theatre.interrupt(Fault(MIXED.name, "kill", number))
    assert theatre.places() == []

    def play(tell: Tell) -> None:
        with open_project(theatre.tree, theatre.home) as project:
            tell({"said": list(spoken(project.recovered))})

    assert in_child(play).last("said")
    assert theatre.places() == ["0"]


def test_an_error_is_taken_back_at_once(tmp_path: Path) -> None:
    """Who gets an error in the middle of a restore has the tree as it was, without a new start."""
    world = World(tmp_path, {"a": "1", "b": "1"}, {"a": "2", "b": "2"})

    def fail() -> None:
        raise OSError(5, "Input/output error")

    with hooked(Once(fail, "exchange", b"b")), pytest.raises(TakebackError, match="Input/output"):
        world.project.undo()
    assert world.is_after()


def test_a_restore_is_verified(tmp_path: Path) -> None:
    """A path that is not as it should be in the end is put right, or told of."""
    world = World(tmp_path, {"a": "1", "b": "1"}, {"a": "2", "b": "2"})
    with hooked(Once(lambda: world.save("a", "2"), "exchange", b"b")) as _:
        try:
            told = [remark.raw_path for remark in world.project.undo().kept]
        except TakebackError:
            told = [b"a"]
            assert world.is_after()
    assert world.holds("a", "1") or told == [b"a"]


# -- nothing is lost -------------------------------------------------------------------------


def test_unsaved_work_is_captured_first(tmp_path: Path) -> None:
    """What nobody saved before a rollback is in the checkpoint before it."""
    world = World(tmp_path, {"a": "1", "mine": "1"}, {"a": "2"})
    write(world.tree / "mine", b"my work\n")
    newest = next(world.project.checkpoints()).id
    first = list(world.project.checkpoints())[-1].id
    report = world.project.rollback(first, yes=True)
    assert world.is_before()
    assert report.before != newest
    assert b"".join(world.project.read(report.before, b"mine")) == b"my work\n"


def test_a_save_before_an_exchange_stays(tmp_path: Path) -> None:
    """Who saves a file in the moment before it is exchanged keeps his save."""
    world = World(tmp_path, {"a": "1"}, {"a": "2"})
    with hooked(Once(lambda: world.save("a", "mine"), "exchange")):
        report = world.project.undo()
    assert world.holds("a", "mine")
    assert [remark.raw_path for remark in report.kept] == [b"a"]


def test_a_save_before_a_removal_stays(tmp_path: Path) -> None:
    """Who saves a file in the moment before it is removed keeps his save."""
    world = World(tmp_path, {}, {"new": "2"})
    with hooked(Once(lambda: world.save("new", "mine"), "move", b"new")):
        report = world.project.undo()
    assert world.holds("new", "mine")
    assert [remark.raw_path for remark in report.kept] == [b"new"]


def test_stamps_are_not_believed(tmp_path: Path) -> None:
    """A save of the same size and with the old time, after the look, is seen and stays."""
    world = World(tmp_path, {"a": "one"}, {"a": "2"})

    def save() -> None:
        was = (world.tree / "a").stat()
        (world.tree / "a").write_text("M")
        os.utime(world.tree / "a", ns=(was.st_atime_ns, was.st_mtime_ns))

    with hooked(Once(save, "mkdir")), suppress(ConflictError):
        world.project.undo()
    assert world.holds("a", "M")


def test_a_late_writer_is_heard(tmp_path: Path) -> None:
    """What is written to a displaced file that was open is in the store in the end, and told."""
    world = World(tmp_path, {"a": "1"}, {"a": "2"})
    with (world.tree / "a").open("ab") as late:
        world.project.undo()
        late.write(b" and more")
    assert world.holds("a", "1")
    world.project.close()
    with open_project(world.tree, world.home) as project:
        project.checkpoint()
        told = " ".join(spoken(project.recovered))
    assert "`a`" in told
    assert not [name for name in os.listdir(os.fsencode(world.tree)) if is_stage(name)]


def test_unknown_is_not_absent(tmp_path: Path) -> None:
    """What a checkpoint did not cover is neither removed nor replaced by going back to it."""
    world = World(tmp_path, {"a": "1"}, {"a": "2"})
    os.mkfifo(world.tree / "was a pipe")
    then = world.project.checkpoint().id
    (world.tree / "was a pipe").unlink()
    write(world.tree / "was a pipe", b"mine")
    write(world.tree / "a", b"3")
    os.mkfifo(world.tree / "is a pipe")
    world.project.rollback(then, yes=True)
    assert world.holds("a", "2")
    assert world.holds("was a pipe", "mine")
    assert stat.S_ISFIFO((world.tree / "is a pipe").lstat().st_mode)


def test_folders_are_never_renamed(tmp_path: Path) -> None:
    """A folder in which somebody makes a file in the last moment stays where it is."""
    world = World(tmp_path, {}, {"folder/new": "2"})
    with hooked(Once(lambda: write(world.tree / "folder/mine", b"mine"), "rmdir", b"folder")):
        report = world.project.undo()
    assert world.holds("folder/mine", "mine")
    assert not (world.tree / "folder/new").exists()
    assert b"folder" in [remark.raw_path for remark in report.kept]


# -- nothing is in between -------------------------------------------------------------------


def test_every_file_is_whole_at_each_step(tmp_path: Path) -> None:
    """Before each step every path holds all of its old or all of its new content."""
    old, new = "old\n" * 50_000, "new\n" * 60_000
    world = World(tmp_path, {"a": old, "b": old}, {"a": new, "b": new})
    seen: set[str] = set()

    def look(_step: str, _args: tuple[object, ...]) -> None:
        seen.update((world.tree / name).read_text() for name in ("a", "b"))

    with hooked(look):
        world.project.undo()
    assert seen <= {old, new}
    assert world.is_before()


def test_folders_are_shut_last() -> None:
    """Files in folders that forbid to write come back, and then the folders are shut again."""
    with stage() as folder:
        folder.chmod(0o755)
        inner = folder / "inner"
        inner.mkdir()
        os.chown(inner, PLAIN_USER, PLAIN_USER)

        def play() -> None:
            theatre = Rewinding(READ_ONLY, inner)
            theatre.reset()
            with open_project(theatre.tree, theatre.home) as project:
                for verb, place in (("undo", "1"), ("redo", "0"), ("undo", "1")):
                    getattr(project, verb)()
                    assert theatre.places() == [place]

        in_own_world(play, plain=os.geteuid() == 0)


def test_only_one_restore_at_a_time(tmp_path: Path) -> None:
    """While one process restores, another one waits, and recovers nothing behind its back."""
    world = World(tmp_path, {"a": "1", "b": "1"}, {"a": "2", "b": "2"})
    world.project.close()
    go, let_go = os.pipe()

    def restore(tell: Tell) -> None:
        def wait() -> None:
            tell({"restoring": True})
            os.read(go, 1)

        os.close(let_go)
        with hooked(Once(wait, "exchange", b"b")), open_project(world.tree, world.home) as project:
            project.undo()

    def meddle(tell: Tell) -> None:
        impatient(0.2)
        try:
            with open_project(world.tree, world.home) as project:
                project.checkpoint()
                tell({"got": "in"})
        except BusyError:
            tell({"got": "refused"})

    first = Child(restore)
    try:
        assert first.hear() == {"restoring": True}
        assert in_child(meddle).last("got") == "refused"
    finally:
        os.close(let_go)  # else it would wait for ever, and hold what it inherited
        ended = first.end()
        os.close(go)
    assert ended.status == 0
    assert world.is_before()


def test_a_plan_for_another_state_is_refused(tmp_path: Path) -> None:
    """A plan that was made before the last change of a path that it touches is not applied."""
    world = World(tmp_path, {"a": "1"}, {"a": "2", "b": "2"})
    plan = world.project.plan_undo()
    (world.tree / "b").unlink()
    now = oracle.picture(world.tree)
    with pytest.raises(StalePlanError):
        world.project.apply(plan)
    assert oracle.picture(world.tree) == now


# -- nobody else gets in ---------------------------------------------------------------------


def test_no_link_is_followed_at_a_path(tmp_path: Path) -> None:
    """A file that becomes a link in the moment before its mode is set leads nobody outside."""
    world = World(tmp_path, {"a": "1"}, {})
    (world.tree / "a").chmod(0o600)
    first = list(world.project.checkpoints())[-1].id

    def swap() -> None:
        (world.tree / "a").unlink()
        (world.tree / "a").symlink_to(world.outside / "file")

    outside = oracle.stamps(world.outside)
    with hooked(Once(swap, "chmod_file")) as _, suppress(TakebackError):
        world.project.rollback(first, yes=True)
    assert oracle.stamps(world.outside) == outside


def test_no_link_is_followed_on_the_way(tmp_path: Path) -> None:
    """A folder that becomes a link to outside when all is staged leads nobody there."""
    world = World(tmp_path, {"d/file": "1", "d/gone": "1"}, {"d/file": "2", "d/gone": None})

    def swap() -> None:
        os.rename(world.tree / "d", world.tree / "elsewhere")
        (world.tree / "d").symlink_to(world.outside)

    outside = oracle.stamps(world.outside)
    for step in ("mkdir", "sql", "exchange", "move"):
        with hooked(Once(swap, step)), suppress(TakebackError):
            world.project.undo()
        if (world.tree / "d").is_symlink():
            (world.tree / "d").unlink()
            os.rename(world.tree / "elsewhere", world.tree / "d")
    assert oracle.stamps(world.outside) == outside


def test_what_is_staged_is_private(tmp_path: Path) -> None:
    """At no step anybody else can read what is staged, or reads more than he could before."""
    world = World(tmp_path, {"secret": "1"}, {})
    (world.tree / "secret").chmod(0o600)
    world.project.checkpoint()
    with world.project.session("claude").turn("overwrite it"):
        (world.tree / "secret").unlink()
        write(world.tree / "secret", b"2", 0o644)
    folders: set[int] = set()
    files: set[int] = set()

    def look(_step: str, _args: tuple[object, ...]) -> None:
        for folder in (path for path in world.tree.iterdir() if is_stage(os.fsencode(path.name))):
            folders.add(stat.S_IMODE(folder.lstat().st_mode))
            staged = [path for path in folder.iterdir() if path.read_bytes() in (b"", b"1")]
            files.update(stat.S_IMODE(path.lstat().st_mode) for path in staged)

    before = os.umask(0)
    try:
        with hooked(look):
            world.project.undo()
    finally:
        os.umask(before)
    assert (folders, files) == ({0o700}, {0o600})
    assert stat.S_IMODE((world.tree / "secret").stat().st_mode) == 0o600


def test_a_forged_journal_leads_nowhere(tmp_path: Path) -> None:
    """A row of the journal that names a path outside is refused, and nothing is touched."""
    theatre = Rewinding(MIXED, tmp_path)
    theatre.interrupt(Fault(MIXED.name, "kill", theatre.steps().index("exchange") + 1))
    outside = tmp_path / "outside"
    write(outside / "file0", b"not ours\n")
    (ledger,) = theatre.home.glob("projects/*/ledger.db")
    with closing(sqlite3.connect(ledger)) as db, db:
        ((said,),) = db.execute("SELECT said FROM journal").fetchall()
        forged = said.replace('"a/file0"', '"../outside/file0"')
        assert forged != said
        db.execute("UPDATE journal SET said = ?", (forged,))
    before = oracle.stamps(outside)

    def play(_tell: Tell) -> None:
        with pytest.raises(DamagedStoreError):
            open_project(theatre.tree, theatre.home).undo()

    ended = in_child(play)
    assert oracle.stamps(outside) == before
    assert ended.status == 0, ended


# -- in the right order ----------------------------------------------------------------------


def _unsynced_at_the_journal(folder: Path, files: int) -> list[str]:
    """What a power cut would have taken of the staged files when the journal was committed."""
    folder.mkdir()
    names = [f"file{number}" for number in range(files)]
    world = World(folder, dict.fromkeys(names, "1"), dict.fromkeys(names, "2"))
    dirty: set[int] = set()
    lost: list[str] = []

    def look(step: str, args: tuple[object, ...]) -> None:
        if step == "write":
            dirty.add(_inode(args[0]))
        elif step == "fsync":
            dirty.discard(_inode(args[0]))
        elif step == "syncfs":
            dirty.clear()
        elif step == "sql" and "INTO journal" in str(args[0]):
            staged = [*world.tree.glob(".takeback-stage-*/n*")]
            assert len(staged) == files
            lost.extend(path.name for path in staged if path.stat().st_ino in dirty)

    with hooked(look):
        world.project.undo()
    assert world.is_before()
    return lost


def _is_stage(name: object) -> bool:
    return isinstance(name, bytes) and is_stage(name)


def _inode(fd: object) -> int:
    assert isinstance(fd, int)
    return os.fstat(fd).st_ino


def test_what_is_staged_is_synced_before_the_journal(tmp_path: Path) -> None:
    """When the journal is committed, a power cut could not take anything that is staged."""
    assert _unsynced_at_the_journal(tmp_path / "few", 2) == []
    assert _unsynced_at_the_journal(tmp_path / "many", 50) == []


def test_modes_are_synced_before_the_event(tmp_path: Path) -> None:
    """When the restore is committed, a power cut could not take a mode that it gave back."""
    world = World(tmp_path, {"a": "1", "sub/b": "1"}, {})
    with world.project.session("claude").turn("open it"):
        (world.tree / "a").chmod(0o600)
        (world.tree / "sub").chmod(0o777)
    dirty: set[int] = set()
    lost: list[set[int]] = []

    def look(step: str, args: tuple[object, ...]) -> None:
        if step == "chmod_file":
            dirty.add((world.tree / "a").stat().st_ino)
        elif step == "fchmod":
            dirty.add(_inode(args[0]))
        elif step == "fsync":
            dirty.discard(_inode(args[0]))
        elif step == "sql" and "FROM journal" in str(args[0]):
            changed = {(world.tree / name).stat().st_ino for name in ("a", "sub")}
            lost.append(dirty & changed)

    with hooked(look):
        world.project.undo()
    assert world.is_before()
    assert lost == [set()]


def test_a_power_cut_leaves_nothing_unmarked(tmp_path: Path) -> None:
    """While our folder is in the tree, the mark that makes the next start look is on the disk."""
    world = World(tmp_path, {"a": "1"}, {"a": "2"})
    (lock,) = world.home.glob("projects/*/lock")
    synced: set[int] = set()
    wrong: list[str] = []

    def look(step: str, args: tuple[object, ...]) -> None:
        if step == "fsync":
            synced.add(_inode(args[0]))
        elif step == "mkdir" and _is_stage(args[0]) and lock.stat().st_ino not in synced:
            wrong.append("the folder is made before the mark is durable")
        elif step == "rmdir" and _is_stage(args[0]):
            synced.discard(world.tree.stat().st_ino)
        elif step == "unlock" and world.tree.stat().st_ino not in synced:
            wrong.append("the mark is taken away before the folder is gone for good")

    with hooked(look):
        world.project.undo()
    assert wrong == []


def _lost_what_was_displaced(tree: Path, home: Path) -> None:
    """Undo, die after the first exchange, and let somebody remove our folder."""

    def undo(_tell: Tell) -> None:
        operations.hook = Once(
            lambda: setattr(operations, "hook", Moments(1, die).step), "exchange"
        )
        open_project(tree, home).undo()

    in_child(undo)
    for left in tree.glob(".takeback-stage-*"):
        shutil.rmtree(left)


def test_what_recovery_wrote_is_nobodys_save(tmp_path: Path) -> None:
    """Recovery that is killed while it writes does not take its own half file for a save."""
    world = World(tmp_path, {"a": "1", "b": "1"}, {"a": "2", "b": "2"})
    world.project.close()
    _lost_what_was_displaced(world.tree, world.home)

    def recover(_tell: Tell) -> None:
        operations.hook = DieInWriting()
        open_project(world.tree, world.home).checkpoint()

    in_child(recover)
    with open_project(world.tree, world.home) as project:
        told = " ".join(spoken(project.recovered))
        assert "everything is as it was before" in told
        assert "left as found" not in told
        assert world.is_after()
        assert not list(project.workspace.ledger.events_of("SavesRescued"))


def test_damage_is_found_before_the_first_change(tmp_path: Path) -> None:
    """If one of the old contents cannot be read, nothing is touched."""
    noise = Random(1).randbytes(5000).hex()
    world = World(tmp_path, {"a": noise, "b": "1"}, {"a": "2", "b": "2"})
    first = min(world.home.glob("projects/*/git/objects/pack/*.pack"), key=_age)
    whole = bytearray(first.read_bytes())
    middle = len(whole) // 2
    whole[middle - 8 : middle + 8] = bytes(16)
    first.chmod(0o600)
    first.write_bytes(whole)
    steps: set[str] = set()
    with hooked(lambda step, _args: steps.add(step)), pytest.raises(DamagedStoreError):
        world.project.undo()
    assert world.is_after()
    assert not steps & {"exchange", "move", "chmod_file"}


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


def test_what_is_right_already_is_left_alone(tmp_path: Path) -> None:
    """A file that is as it shall be is not written again: its stamps stay."""
    world = World(tmp_path, {"a": "1", "same": "1"}, {"a": "2"})
    stamps = oracle.stamps(world.tree)[b"same"]
    world.project.undo()
    assert oracle.stamps(world.tree)[b"same"] == stamps


def test_what_was_written_in_private_is_not_opened(tmp_path: Path) -> None:
    """A turn closed a file, and you wrote into it: others get to read that only if you say so."""
    world = World(tmp_path, {"key": "1", "run": "1"}, {})
    for name, closed in (("key", 0o600), ("run", 0o644)):
        (world.tree / name).chmod(0o755 if name == "run" else 0o644)
        with world.project.session("claude").turn("close it"):
            (world.tree / name).chmod(closed)
        write(world.tree / name, b"mine", closed)
    world.project.undo()
    assert stat.S_IMODE((world.tree / "run").stat().st_mode) == 0o755
    with pytest.raises(ConflictError) as refused:
        world.project.undo()
    assert [reason.code for _, reason in refused.value.conflicts] == [reasons.CLOSED_AND_CHANGED]
    assert stat.S_IMODE((world.tree / "key").stat().st_mode) == 0o600
    assert [(world.tree / name).read_bytes() for name in ("key", "run")] == [b"mine", b"mine"]
