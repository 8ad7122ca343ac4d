"""What kolega-code, walkback, QuillCode and t3code test, as tests of ours."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

import history
import takeback
from cases import Work

# -- kolega-code ---------------------------------------------------------------------------


def test_kolega_non_utf8_and_binary_bytes_are_kept(work: Work) -> None:
    """Bytes that are no text come back as they were, also in names."""
    name = os.fsdecode(b"n\xe4me.bin")
    work.put(name, bytes(range(256)))
    with work.turn():
        work.put(name, b"text\n")
    work.undo()
    assert (work.tree / name).read_bytes() == bytes(range(256))


def test_kolega_recreates_deleted_nested_file(work: Work) -> None:
    """A file whose folders went with it is back, and the folders have their modes."""
    work.put("a/b/c.txt", "1\n", 0o600)
    (work.tree / "a").chmod(0o700)
    with work.turn():
        work.remove("a")
    work.undo()
    assert (work.mode("a"), work.mode("a/b"), work.mode("a/b/c.txt")) == (0o700, 0o755, 0o600)


def test_kolega_gitignored_pre_session_file_is_not_deleted(work: Work) -> None:
    """An ignored file from before the session survives every undo of it."""
    work.repository(_gitignore=".env\n", a_txt="1\n")
    work.put(".env", "KEY=1\n")
    for text in ("2\n", "3\n"):
        with work.turn():
            work.write(a_txt=text)
    work.undo()
    work.undo()
    assert work.text(".env") == "KEY=1\n"


def test_kolega_committed_changes_are_restorable_without_touching_history(work: Work) -> None:
    """What the agent committed is taken back in the tree; commits, index and reflog stay."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
        work.git("commit", "-qam", "agent")
    dot_git = work.dot_git()
    work.undo()
    assert work.text("a.txt") == "1\n"
    assert work.dot_git() == dot_git


def test_kolega_per_file_filter(work: Work) -> None:
    """Undo of one file leaves the others, and the rest can follow."""
    work.write(a_txt="1\n", b_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", b_txt="2\n")
    work.undo("a.txt")
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "2\n")
    work.undo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "1\n")


def test_kolega_rejects_snapshot_from_previous_project(work: Work, tmp_path: Path) -> None:
    """A checkpoint of another project means nothing here."""
    elsewhere = Work(tmp_path / "elsewhere", work.home)
    elsewhere.write(a_txt="theirs\n")
    foreign = elsewhere.checkpoint()
    elsewhere.close()
    work.write(a_txt="1\n")
    work.checkpoint()
    with pytest.raises(takeback.UnknownReferenceError):
        work.rollback(foreign)
    assert work.text("a.txt") == "1\n"


def test_kolega_refuses_when_current_state_changed(work: Work) -> None:
    """A plan for another state is refused, and nothing is written; a new one does it."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    plan = work.project.plan_undo(decide="take-back")
    work.write(a_txt="drift\n")
    before = work.picture()
    with pytest.raises(takeback.StalePlanError):
        work.project.apply(plan)
    assert work.picture() == before
    work.project.apply(work.project.plan_undo(decide="take-back"))
    assert work.text("a.txt") == "1\n"


def test_kolega_new_file_and_created_parent_are_removed(work: Work) -> None:
    """Folders that came with a new file go with it, unless something else is in them."""
    work.put("old/keep.txt", "1\n")
    with work.turn():
        work.put("old/new/a.txt", "x\n")
        work.put("fresh/deep/b.txt", "x\n")
    work.undo()
    assert work.has_none("old/new", "fresh")
    assert work.has("old/keep.txt")


def test_kolega_opens_at_latest_and_steps_back(work: Work) -> None:
    """`@~N` walks back over the turns, and undone ones do not count."""
    work.write(a_txt="0\n")
    for text in ("1\n", "2\n", "3\n"):
        with work.turn():
            work.write(a_txt=text)
    work.undo()
    work.rollback("@~1")
    assert work.text("a.txt") == "1\n"


def test_kolega_git_moves_are_not_the_sessions(work: Work) -> None:
    """What your merge changes between two turns is yours: undo of the turns leaves it."""
    work.repository(a_txt="1\n", b_txt="1\n")
    work.git("switch", "-q", "-c", "side")
    work.write(b_txt="side\n")
    work.git("commit", "-qam", "side")
    work.git("switch", "-q", "main")
    with work.turn():
        work.write(a_txt="2\n")
    work.git("merge", "-q", "side")
    work.undo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "side\n")


# -- walkback ------------------------------------------------------------------------------


def test_walkback_deleted_dir_tree_is_restored(work: Work) -> None:
    """A folder with everything in it comes back: files, links, empty folders, modes."""
    work.put("d/a.txt", "1\n", 0o640)
    work.put("d/e/b.sh", "2\n", 0o755)
    (work.tree / "d" / "empty").mkdir(mode=0o711)
    (work.tree / "d" / "link").symlink_to("e/b.sh")
    before = work.picture()
    with work.turn():
        work.remove("d")
    work.undo()
    assert work.picture() == before


def test_walkback_symlink_itself_not_target(work: Work, tmp_path: Path) -> None:
    """A link that the agent replaced is a link again; what it leads to is not touched."""
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    (work.tree / "link").symlink_to(outside)
    with work.turn():
        work.remove("link")
        work.write(link="a file now\n")
    work.undo()
    assert os.readlink(work.tree / "link") == str(outside)
    assert outside.read_text() == "outside\n"


def test_walkback_run_wrapper(work: Work) -> None:
    """What any command does is one turn, and `takeback undo` takes it back."""
    work.write(a_txt="1\n")
    script = "echo 2 > a.txt; mkdir d; echo x > d/new.txt"
    assert history.command(work.tree, "run", "--", "sh", "-c", script).code == 0
    assert work.text("a.txt") == "2\n"
    assert history.command(work.tree, "undo").code == 0
    assert work.text("a.txt") == "1\n"
    assert work.has_none("d")
    assert history.command(work.tree, "redo").code == 0
    assert work.text("d/new.txt") == "x\n"


# -- QuillCode and t3code ------------------------------------------------------------------


def test_quillcode_turn_without_edits_has_no_plan(work: Work) -> None:
    """A turn that only looked is never what undo means, and an older one is named as such."""
    work.write(a_txt="1\n")
    with work.turn("change") as change:
        work.write(a_txt="2\n")
    with work.turn("look"):
        work.text("a.txt")
    plan = work.project.plan_undo()
    assert (plan.entry, plan.title, plan.passed_over) == (change.id, "change", 1)


def test_quillcode_flags_what_was_edited_by_shell(work: Work) -> None:
    """The plan tells what a tool named and what only happened while a shell ran; both go."""
    work.write(named_txt="1\n", shell_txt="1\n")
    with work.turn() as turn:
        with turn.step("Write", {"file_path": "named.txt"}):
            work.write(named_txt="2\n")
        with turn.step("Bash", {"command": "make"}):
            work.write(shell_txt="2\n")
    plan = work.project.plan_undo()
    assert {os.fsdecode(c.path): c.how for c in plan.changes} == {
        "named.txt": "named",
        "shell.txt": "shell",
    }
    work.undo()
    assert (work.text("named.txt"), work.text("shell.txt")) == ("1\n", "1\n")


def test_t3code_consecutive_reverts_are_sequenced(work: Work) -> None:
    """Restores one after the other are all in the log, each with its own checkpoints."""
    work.write(a_txt="0\n")
    for text in ("1\n", "2\n"):
        with work.turn():
            work.write(a_txt=text)
    reports = [work.undo(), work.undo(), work.redo(), work.redo()]
    assert len({report.id for report in reports}) == 4
    for earlier, later in pairwise(reports):
        assert later.before == earlier.after
    assert work.text("a.txt") == "2\n"
