"""What nobody tests of undo, as tests of ours."""

import os
import signal
import sqlite3

import pytest

import takeback
from cases import Work, paths_of
from faults.children import Tell, in_child
from takeback.disk import operations

# -- what nobody tests ---------------------------------------------------------------------


def test_nobody_restore_killed_ends_before_or_after(work: Work) -> None:
    """Killed at any of some steps, a restore is found undone or done, and the rest is clean."""
    work.write(a_txt="1\n", b_txt="1\n", d__c_txt="1\n")
    before, ref = work.picture(), work.checkpoint()
    work.write(a_txt="2\n", new_txt="x\n")
    work.remove("d")
    after = work.picture()
    work.close()
    for step in range(0, 140, 9):

        def play(_tell: Tell, dies_at: int = step) -> None:
            left = iter(range(dies_at))
            operations.hook = lambda _step, _given: _die() if next(left, None) is None else None
            takeback.open(work.tree, home=work.home).rollback(ref)

        in_child(play)
        with takeback.open(work.tree, home=work.home) as project:
            project.checkpoint()
            found = work.picture()
            if found == before:
                project.undo()
        assert found in (before, after)
        assert work.picture() == after


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_nobody_missing_snapshot_object_touches_nothing(work: Work) -> None:
    """A pack that is gone: the restore is refused, and nothing is touched."""
    work.write(a_txt="1\n", b_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n")
    work.remove("b.txt")
    before = work.picture()
    work.checkpoint()
    work.close()
    packs = sorted(work.home.glob("projects/*/git/objects/pack/*.pack"), key=os.path.getmtime)
    packs[0].unlink()
    with pytest.raises(takeback.TakebackError):
        work.rollback(ref)
    assert work.picture() == before


def test_nobody_middle_turn_undo_keeps_later_turns(work: Work) -> None:
    """A turn in the middle is taken back if nothing later builds on it; else it is a conflict."""
    work.write(a_txt="0\n", b_txt="0\n")
    turns = []
    for name, text in (("a.txt", "1\n"), ("b.txt", "1\n"), ("b.txt", "2\n")):
        with work.turn() as turn:
            work.put(name, text)
        turns.append(turn)
    work.undo(turn=turns[0])
    assert (work.text("a.txt"), work.text("b.txt")) == ("0\n", "2\n")
    with pytest.raises(takeback.ConflictError):
        work.undo(turn=turns[1])
    assert work.text("b.txt") == "2\n"


def test_nobody_env_key_and_database_come_back_with_their_modes(work: Work) -> None:
    """An ignored `.env`, a 0600 key and an ignored SQLite database are as they were."""
    work.repository(_gitignore=".env\n*.db\nid_key\n")
    work.put(".env", "KEY=1\n", 0o640)
    work.put("id_key", "-----BEGIN-----\n", 0o600)
    with sqlite3.connect(work.tree / "app.db") as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (1)")
    db.close()
    before = work.picture()
    with work.turn():
        work.put(".env", "KEY=agent\n", 0o644)
        work.remove("id_key")
        with sqlite3.connect(work.tree / "app.db") as db:
            db.execute("DROP TABLE t")
        db.close()
    work.undo()
    assert work.picture() == before


def test_nobody_hard_links_and_sparse_files(work: Work) -> None:
    """Names of one inode get their own bytes back, and a hole reads as zeros again."""
    work.write(a_txt="1\n")
    os.link(work.tree / "a.txt", work.tree / "b.txt")
    with (work.tree / "sparse").open("wb") as file:
        file.truncate(5 << 20)
        file.seek(1 << 20)
        file.write(b"data")
    before = work.picture()
    with work.turn():
        work.write(a_txt="2\n", sparse="full\n")
    work.undo()
    assert work.picture() == before


def test_nobody_case_only_rename(work: Work) -> None:
    """A name that changed only in case is back as it was."""
    work.write(Readme_md="1\n")
    with work.turn():
        work.move("Readme.md", "README.md")
    work.undo()
    assert os.listdir(work.tree) == ["Readme.md"]


def test_nobody_dot_git_is_bit_identical(work: Work) -> None:
    """After many checkpoints and restores the user's `.git` has not one other stamp or byte."""
    work.repository(a_txt="0\n")
    work.git("commit", "-q", "--allow-empty", "-m", "second")
    work.write(a_txt="stash\n")
    work.git("stash", "-q")
    dot_git = work.dot_git()
    for text in ("1\n", "2\n", "3\n"):
        with work.turn():
            work.write(a_txt=text, new_txt=text)
    work.undo()
    work.undo()
    work.redo()
    work.rollback("@~1")
    work.undo()
    assert work.dot_git() == dot_git


def test_nobody_gitignore_itself_changed_in_the_turn(work: Work) -> None:
    """The agent stops ignoring `.env` and overwrites it: both are as they were, neither is lost."""
    work.repository(_gitignore=".env\n")
    work.put(".env", "KEY=1\n", 0o600)
    with work.turn():
        work.write(_gitignore="", _env="KEY=agent\n")
    work.undo()
    assert (work.text(".env"), work.text(".gitignore")) == ("KEY=1\n", ".env\n")
    assert work.mode(".env") == 0o600


def test_nobody_branch_switch_between_checkpoint_and_restore(work: Work) -> None:
    """On another branch than the turn ended on, undo asks first; with `yes` it goes on."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(b_txt="agent\n")
    work.git("switch", "-q", "-c", "other")
    before = work.picture()
    plan = work.project.plan_undo()
    assert plan.doubts
    with pytest.raises(takeback.DecisionNeededError):
        work.undo()
    assert work.picture() == before
    work.project.undo(yes=True)
    assert work.has_none("b.txt")
    assert work.git("branch", "--show-current") == "other\n"


def test_nobody_report_is_exactly_what_happened(work: Work) -> None:
    """The report names each path that changed, with what was done to it, and no other."""
    work.write(a_txt="1\n", m_sh="1\n", gone_txt="1\n", same_txt="1\n")
    (work.tree / "empty").mkdir()
    before = work.picture()
    with work.turn():
        work.write(a_txt="2\n", d__new_txt="x\n")
        (work.tree / "m.sh").chmod(0o755)
        work.remove("gone.txt", "empty")
        (work.tree / "link").symlink_to("a.txt")
    planned = paths_of(work.project.plan_undo())
    report = work.undo()
    assert paths_of(report.plan) == planned
    assert planned == {
        "a.txt": "write",
        "d": "rmdir",
        "d/new.txt": "delete",
        "empty": "mkdir",
        "gone.txt": "create",
        "link": "delete",
        "m.sh": "mode",
    }
    assert work.picture() == before
    assert (report.kept, report.rescued) == ((), ())
