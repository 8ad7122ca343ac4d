"""What a reviewer of undo, redo and rollback found at the edges, and how it ends now."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from types import FrameType, FunctionType

import pytest

from cases import Work, paths_of
from faults.children import Tell, in_child
from faults.injection import die
from takeback.errors import BlockedError, BusyError, DamagedStoreError
from takeback.store import events, fsops
from takeback.store.lock import Held, Lock

# -- a journal that cannot be read ---------------------------------------------------------

DAMAGES = {
    "cut short": ("said", b'{"verb": "un'),
    "no text any more": ("said", b'{"verb":"\xff\xfe\x00","title":"","parents":[],"ops":[]}'),
    "a path that leads out": (
        "said",
        b'{"verb":"undo","title":"","parents":[],"ops":[["../x",null,null]]}',
    ),
    "an unknown phase": ("phase", b"appl\xe9ing"),
    "an id that is none": ("id", b"../outside"),
}


def _interrupt(work: Work) -> None:
    """Kill an undo between two files."""
    work.write(a="0", b="0")
    with work.turn():
        work.write(a="1", b="1")
    work.close()

    def play(_tell: Tell) -> None:
        def kill(step: str, args: tuple[object, ...]) -> None:
            if step == "exchange" and b"b" in args:
                die()

        fsops.hook = kill
        work.project.undo()

    in_child(play)


def _damage(work: Work, column: str, value: bytes) -> None:
    """Kill an undo, with a save of yours in our folder, and damage its row."""
    _interrupt(work)
    (folder,) = work.tree.glob(".takeback-stage-*")
    (folder / "n0").write_bytes(b"a save that is nowhere else")
    (ledger,) = work.home.glob("projects/*/ledger.db")
    with closing(sqlite3.connect(ledger)) as db, db:
        db.execute(f"UPDATE journal SET {column} = CAST(? AS TEXT)", (value,))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_journal_is_no_dead_end(work: Work, damage: str) -> None:
    """Checkpoints go on, `verify` lists it, and setting it aside loses no byte of anything."""
    column, value = DAMAGES[damage]
    _damage(work, column, value)
    tree_was = work.text("a"), work.text("b")
    work.write(c="yours")
    assert work.project.checkpoint().new
    (note,) = work.project.recovered
    assert "verify --set-aside" in note
    with pytest.raises(DamagedStoreError) as told:
        work.project.undo()
    assert ".takeback-stage-" in told.value.hint
    found = work.project.verify()
    assert [each.what for each in found.damage] == [note]
    assert list(work.tree.glob(".takeback-stage-*")), "our folder was swept"

    found = work.project.verify(set_aside=True)
    assert (found.ok, len(found.repaired)) == (True, 1)
    (folder,) = work.tree.glob("takeback-found-*")
    assert (folder / "n0").read_bytes() == b"a save that is nowhere else"
    (event,) = work.project.ledger.events("WHERE kind = ?", (events.RESTORE_SET_ASIDE,))
    name = {"id": "restore", "phase": "phase", "said": "row"}[column]
    kept = str((event.payload or {})[name]).encode("utf-8", "surrogateescape")
    assert kept == value
    assert (work.text("a"), work.text("b")) == tree_was
    work.close()
    made = work.project.checkpoint()
    assert work.project.recovered == ()
    inside = os.fsencode(f"{folder.name}/n0")
    assert b"".join(work.project.read(made.id, inside)) == b"a save that is nowhere else"


def test_setting_aside_may_be_killed_anywhere(work: Work) -> None:
    """Whenever it is killed, the save is in one of the two folders and the row is not lost."""
    _damage(work, "said", b"{")

    def play(number: int, _tell: Tell) -> None:
        left = iter(range(number))

        def strike(_step: str, _args: tuple[object, ...]) -> None:
            if next(left, None) is None:
                die()

        project = work.project
        fsops.hook = strike
        project.verify(set_aside=True)
        fsops.hook = None

    for number in count(0):
        if in_child(partial(play, number)).status == 0:
            break
        saves = [*work.tree.glob(".takeback-stage-*/n0"), *work.tree.glob("takeback-found-*/n0")]
        assert [save.read_bytes() for save in saves] == [b"a save that is nowhere else"]
    assert number > 5
    kept = [*work.project.ledger.events("WHERE kind = ?", (events.RESTORE_SET_ASIDE,))]
    assert [(event.payload or {})["row"] for event in kept] == ["{"]
    assert work.project.verify().ok


def test_what_cannot_be_taken_back_yet_is_damage_to_verify(work: Work) -> None:
    """A restore whose way back fails is listed by `verify`, which goes on with the rest."""
    _interrupt(work)

    def refuse(step: str, _: tuple[object, ...]) -> None:
        if step == "exchange":
            raise OSError(5, os.strerror(5))

    fsops.hook = refuse
    try:
        found = work.project.verify()
    finally:
        fsops.hook = None
    assert "could not be taken back yet" in found.damage[0].what
    assert found.objects > 0
    assert work.project.verify().ok


def test_the_command_line_sets_a_journal_aside(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """`takeback verify` ends with 4 while a journal is damaged, and with 0 when it is set aside."""
    from takeback.cli.app import main

    _damage(work, "said", b"{")
    monkeypatch.chdir(work.tree)
    monkeypatch.setenv("TAKEBACK_HOME", str(work.home))
    assert main(["verify"]) == 4
    assert main(["undo"]) == 4
    assert main(["verify", "--set-aside"]) == 0
    assert main(["undo"]) in (0, 3)


# -- one side of a rename ------------------------------------------------------------------


@pytest.mark.parametrize("named", ["old", "d/new"])
def test_both_sides_of_a_rename_belong_together(work: Work, named: str) -> None:
    """Undo and redo of one side take the other along, say so, and leave other files alone."""
    work.write(old="precious", other="0")
    with work.turn():
        work.move("old", "d/new")
        work.write(other="1")
    plan = work.project.plan_undo(paths=[named])
    assert paths_of(plan) == {"old": "create", "d/new": "delete"}
    along = {os.fsdecode(change.path): change.along for change in plan.changes}
    assert along.pop(named) == ""
    assert list(along.values()) == [f"together with `{named}` (a rename)"]
    work.undo(named)
    assert (work.text("old"), work.text("other")) == ("precious", "1")
    assert work.has_none("d/new")
    work.redo(named)
    assert (work.has("d/new"), work.has("old")) == (True, False)


def test_a_chain_of_renames_goes_back_to_its_beginning(work: Work) -> None:
    """A file that a turn renamed twice and then edited comes back under its first name."""
    work.write(a="precious")
    with work.turn() as turn:
        for name, to in (("a", "b"), ("b", "c")):
            with turn.step("bash"):
                work.move(name, to)
        with turn.step("bash"):
            work.write(c="edited")
    work.undo("c")
    assert work.text("a") == "precious"
    assert work.has_none("b", "c")


def test_a_renamed_file_that_was_changed_since_goes_back_with_the_change(work: Work) -> None:
    """Whichever name is named; but nothing goes whose old name cannot come back."""
    work.write(old="precious")
    with work.turn():
        work.move("old", "new")
    work.write(new="yours")
    for name in ("new", "old"):
        work.undo(name)
        assert work.text("old") == "yours"
        assert not (work.tree / "new").exists()
        work.redo()
        assert work.text("new") == "yours"
        assert not (work.tree / "old").exists()
    work.write(new="precious", old="mine")
    for paths in ((), ("new",)):
        plan = work.project.plan_undo(paths=paths)
        assert [conflict.path for conflict in plan.conflicts] == [b"new", b"old"]
        assert plan.conflicts[0].reason == "its old name `old` conflicts"


# -- commits that stay ---------------------------------------------------------------------


def test_the_command_for_commits_below_others_works_with_merges(work: Work) -> None:
    """What the report prints takes back a merge and the commits around it, and nothing else."""
    work.repository(a="0", theirs="0")
    work.git("switch", "-q", "-c", "side")
    work.write(b="side")
    work.git("add", "-A")
    work.git("commit", "-q", "-m", "side")
    work.git("switch", "-q", "main")
    with work.turn():
        work.write(a="1")
        work.git("commit", "-q", "-a", "-m", "one")
        work.git("merge", "-q", "--no-edit", "--no-ff", "side")
        work.write(a="2")
        work.git("commit", "-q", "-a", "-m", "two")
    work.write(theirs="1")
    work.git("commit", "-q", "-a", "-m", "yours")
    its, _ = work.project.plan_undo().stays
    assert its.startswith("3 commits stay")
    for command in its.split("`")[1].split(" && "):
        assert command.startswith("git revert --no-commit ")
        work.git(*command.split()[1:])
    assert (work.text("a"), work.text("theirs")) == ("0", "1")
    assert work.has_none("b")


@pytest.mark.parametrize("with_turn", [False, True])
def test_a_rollback_names_the_commits_since_its_target(work: Work, with_turn: bool) -> None:
    """Commits that you made since stay and have their command, also if no turn is gone over."""
    work.repository(a="0")
    first = work.checkpoint()
    for text in "12":
        work.write(a=text)
        work.git("commit", "-q", "-a", "-m", text)
    if with_turn:
        with work.turn():
            work.write(a="3")
    (stays,) = work.project.plan_rollback(first).stays
    assert stays.startswith("2 commits stay")
    base = work.git("rev-parse", "HEAD~2").strip()
    assert f"`git reset --soft {base[:10]}` takes them back" in stays
    (now, files) = work.checkpoint(), ["a"]
    assert work.project.plan_rollback(now).stays == ()
    assert work.project.plan_rollback(first, paths=files).stays == ()


def test_commits_of_a_copied_repository_are_as_old_as_they_say(work: Work) -> None:
    """That a copy made the file of an old commit anew does not let it be named."""
    work.repository(a="0")
    first = work.checkpoint()
    who = "A <a@example.org> 1577836800 +0000"
    tree, head = (work.git("rev-parse", name).strip() for name in ("HEAD^{tree}", "HEAD"))
    written = f"tree {tree}\nparent {head}\nauthor {who}\ncommitter {who}\n\nold\n"
    (work.tree.parent / "old").write_text(written)
    old = work.git("hash-object", "-t", "commit", "-w", "../old").strip()
    work.git("update-ref", "HEAD", old)
    work.write(a="1")
    assert work.project.plan_rollback(first).stays == ()
    work.git("commit", "-q", "-a", "-m", "new")
    (stays,) = work.project.plan_rollback(first).stays
    assert f"`git reset --soft {old[:10]}` takes it back" in stays


def test_a_first_commit_since_the_target_has_its_command(work: Work) -> None:
    """After a rollback to before the first commit, the command that takes that back is told."""
    work.git("init", "-q")
    work.write(a="0")
    first = work.checkpoint()
    work.write(a="1")
    work.git("add", "-A")
    work.git("commit", "-q", "-m", "first")
    (stays,) = work.rollback(first).plan.stays
    assert "`git update-ref -d HEAD`" in stays


# -- what nobody may change ----------------------------------------------------------------


@contextmanager
def _marked(place: Path, mark: str) -> Iterator[None]:
    """Let a file or folder be marked for a while, if that can be done here."""
    chattr = shutil.which("chattr")
    tried = chattr and subprocess.run([chattr, f"+{mark}", place], check=False, capture_output=True)
    if not chattr or not tried or tried.returncode:
        pytest.skip("files cannot be marked here")
    try:
        yield
    finally:
        subprocess.run([chattr, f"-{mark}", place], check=True)


@pytest.mark.parametrize(("name", "mark"), [("d/a", "i"), ("d/a", "a"), ("d", "i"), (".", "a")])
def test_what_nobody_may_change_is_seen_before(work: Work, name: str, mark: str) -> None:
    """A file or folder that `chattr` froze is named with the way out before anything is staged."""
    work.write(d__a="0", b="0")
    with work.turn():
        work.write(d__a="1", b="1")
    steps: list[str] = []
    with _marked(work.tree / name, mark):
        fsops.hook = lambda step, _: steps.append(step)
        try:
            with pytest.raises(BlockedError, match=f"`{name}`") as told:
                work.undo()
        finally:
            fsops.hook = None
        assert "chattr -ia" in told.value.hint
        assert "mkdir" not in steps, "something was staged"
        if name != ".":
            work.undo("b")
            assert (work.text("b"), work.text("d/a")) == ("0", "1")


# -- how it is known whose change it is ----------------------------------------------------


def test_redo_and_rollback_tell_how_a_change_is_known(work: Work) -> None:
    """What a shell did is marked when it is put back or rolled back, too; what you did is not."""
    work.write(named="0", shell="0", both="0", yours="0")
    first = work.checkpoint()
    with work.turn() as turn:
        with turn.step("Write", {"file_path": str(work.tree / "named")}):
            work.write(named="1")
        with turn.step("Bash", {"command": "make"}):
            work.write(shell="1", both="1")
        with turn.step("Write", {"file_path": str(work.tree / "both")}):
            work.write(both="2")
    work.write(yours="1")
    rolled = {c.path: c.how for c in work.project.plan_rollback(first).changes}
    assert rolled == {b"named": "named", b"shell": "shell", b"both": "shell", b"yours": ""}
    undone = {c.path: c.how for c in work.undo().plan.changes}
    assert undone == {b"named": "named", b"shell": "shell", b"both": "named"}
    assert {c.path: c.how for c in work.project.plan_redo().changes} == undone


# -- an interrupt when the lock is given back ----------------------------------------------


@pytest.mark.parametrize("moment", [Held.__exit__, Held._give_back, Held._let_go, Lock.release])
def test_an_interrupt_before_the_lock_is_given_back_does_not_keep_it(
    tmp_path: Path, moment: FunctionType
) -> None:
    """Ctrl-C before the first step of leaving the block leaves lock and mutex to others."""
    lock = Lock(os.fsencode(tmp_path / "lock"))

    def interrupt(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is moment.__code__:
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    with pytest.raises(KeyboardInterrupt), Held(lock):
        sys.settrace(interrupt)
    sys.settrace(before)
    assert lock.depth == 0
    taken: list[bool] = []
    other = Thread(target=lambda: taken.append(lock.mutex.acquire(blocking=False)))
    other.start()
    other.join()
    assert taken == [True]
    Lock(lock.path).acquire(patience=0)


def test_a_lock_that_an_interrupt_left_is_not_taken_from_who_took_it_since(tmp_path: Path) -> None:
    """What is given back late is not given back while somebody works inside of it."""
    lock = Lock(os.fsencode(tmp_path / "lock"))
    left = Held(lock)
    left.__enter__()
    with Held(lock):
        del left
        with pytest.raises(BusyError):
            Lock(lock.path).acquire(patience=0)
