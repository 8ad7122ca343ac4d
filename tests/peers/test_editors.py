"""What Zed, VS Code, GitButler, jj and Entire test, as tests of ours."""

import os
import socket
import stat
from itertools import permutations
from pathlib import Path

import pytest

import takeback
from cases import Work
from spoken import sentence
from takeback.model.reasons import Reason

# -- Zed -----------------------------------------------------------------------------------


def test_zed_creating_overwriting_and_deleting_files(work: Work) -> None:
    """Made, overwritten after you had edited it, deleted: each is taken back to what you had."""
    work.write(over_txt="1\n", edited_txt="1\n", deleted_txt="1\n")
    work.checkpoint()
    work.write(edited_txt="yours\n")
    with work.turn():
        work.write(over_txt="2\n", edited_txt="2\n", made_txt="2\n")
        work.remove("deleted.txt")
    work.undo()
    assert work.text("edited.txt") == "yours\n"
    assert (work.text("over.txt"), work.text("deleted.txt")) == ("1\n", "1\n")
    assert work.has_none("made.txt")


def test_zed_reject_created_file_with_user_edits(work: Work) -> None:
    """A file that the agent made and you edited is not deleted: it stays, and that is said."""
    with work.turn():
        work.write(made_txt="agent\n", d__b_txt="agent\n")
    work.write(made_txt="agent\nand me\n")
    report = work.undo()
    assert work.text("made.txt") == "agent\nand me\n"
    assert work.has_none("d")
    (said,) = report.plan.kept
    assert (said.raw_path, said.reason) == (
        b"made.txt",
        Reason("made-and-changed", by=("you",)),
    )


def test_zed_overlapping_user_edits(work: Work) -> None:
    """A line that both of you changed stays as it is until you decide."""
    lines = [f"{number}\n" for number in range(9)]
    work.write(a_txt="".join(lines))
    with work.turn():
        work.write(a_txt="".join(["agent\n", *lines[1:-1], "agent\n"]))
    mine = "".join(["mine\n", *lines[1:-1], "agent\n"])
    work.write(a_txt=mine)
    with pytest.raises(takeback.ConflictError) as refused:
        work.undo()
    assert [sentence(reason) for _, reason in refused.value.conflicts] == [
        "you changed the same lines since"
    ]
    assert work.text("a.txt") == mine
    work.project.undo(decide="take-back")
    assert work.text("a.txt") == "".join(lines)


def test_zed_undo_last_reject(work: Work) -> None:
    """What was taken back can be put back, and taken back again."""
    with work.turn():
        work.write(a_txt="agent\n", d__b_txt="agent\n")
    after = work.picture()
    for _ in range(3):
        work.undo()
        assert work.has_none("a.txt", "d")
        work.redo()
        assert work.picture() == after


def test_zed_checkpoint_restores_deletions_and_binaries(work: Work) -> None:
    """Inverted: later files go, and binary files are restored."""
    work.put("image", bytes(range(256)) * 20)
    ref = work.checkpoint()
    work.put("image", b"\0")
    work.write(later_txt="x\n")
    work.rollback(ref)
    assert (work.tree / "image").read_bytes() == bytes(range(256)) * 20
    assert work.has_none("later.txt")


def test_zed_checkpoint_of_an_empty_repository(work: Work) -> None:
    """An empty tree is a state like any other."""
    work.git("init", "-q")
    ref = work.checkpoint()
    work.write(a_txt="1\n", d__b_txt="2\n")
    work.rollback(ref)
    assert os.listdir(work.tree) == [".git"]


# -- VS Code -------------------------------------------------------------------------------


def test_vscode_cannot_undo_or_redo_at_first(work: Work) -> None:
    """At first there is nothing to undo and nothing to redo; after an undo there is."""
    for verb in (work.undo, work.redo):
        with pytest.raises(takeback.NothingToTakeBackError):
            verb()
    with work.turn():
        work.write(a_txt="1\n")
    with pytest.raises(takeback.NothingToTakeBackError):
        work.redo()
    work.undo()
    work.redo()
    assert work.text("a.txt") == "1\n"


def test_vscode_new_operation_after_undo_truncates_future(work: Work) -> None:
    """Better: after new work a bare redo is refused with the reason, but what was undone stays."""
    work.write(a_txt="1\n")
    with work.turn() as undone:
        work.write(b_txt="undone\n")
    work.undo()
    with work.turn():
        work.write(a_txt="2\n")
    with pytest.raises(takeback.DecisionNeededError) as refusal:
        work.redo()
    assert refusal.value.exit_code == 3
    assert work.has_none("b.txt")
    work.redo(turn=undone)
    assert (work.text("a.txt"), work.text("b.txt")) == ("2\n", "undone\n")


def test_vscode_line_endings_and_byte_order_marks_are_preserved(work: Work) -> None:
    """LF, CRLF, no end of line and byte order marks come back as they were."""
    contents = {"lf": b"a\nb\n", "crlf": b"a\r\nb\r\n", "none": b"a", "bom": b"\xef\xbb\xbfa\r\n"}
    for name, content in contents.items():
        work.put(name, content)
    with work.turn():
        for name in contents:
            work.put(name, "agent\n")
    work.undo()
    assert {name: (work.tree / name).read_bytes() for name in contents} == contents


def test_vscode_rename_chain_and_re_created_file(work: Work) -> None:
    """From a to b to c, and a made anew: undone it is where it was, redone where it went."""
    work.write(a_txt="1\n")
    before = work.picture()
    with work.turn():
        work.move("a.txt", "b.txt")
    with work.turn():
        work.move("b.txt", "c.txt")
        work.write(a_txt="anew\n")
    after = work.picture()
    work.undo()
    work.undo()
    assert work.picture() == before
    work.redo()
    work.redo()
    assert work.picture() == after


def test_vscode_orphaned_operations_never_reappear(work: Work) -> None:
    """Turns that a rollback went over do not come back by redo, only by undoing the rollback."""
    work.write(a_txt="0\n")
    ref = work.checkpoint()
    with work.turn():
        work.write(a_txt="1\n")
    work.rollback(ref)
    with pytest.raises(takeback.NothingToTakeBackError):
        work.redo()
    assert work.text("a.txt") == "0\n"
    work.undo()
    assert work.text("a.txt") == "1\n"


# -- GitButler and jj ----------------------------------------------------------------------


def test_gitbutler_can_undo_repeatedly_and_past_the_end(work: Work) -> None:
    """Undo walks back over turns and rollbacks to the start, where it is refused."""
    pictures = []
    for text in ("1\n", "2\n"):
        pictures.append(work.picture())
        with work.turn():
            work.write(a_txt=text)
    pictures.append(work.picture())
    work.rollback("@~1")
    for picture in reversed(pictures):
        work.undo()
        assert work.picture() == picture
    with pytest.raises(takeback.NothingToTakeBackError):
        work.undo()


def test_gitbutler_can_mix_undo_and_redo(work: Work) -> None:
    """Any walk of undo and redo over three turns is a walk over their states."""
    pictures = [work.picture()]
    for number in (1, 2, 3):
        with work.turn():
            work.put("a.txt", f"{number}\n")
            work.put(f"d{number}/x.txt", "x\n")
        pictures.append(work.picture())
    at = 3
    for step in (-1, -1, 1, -1, -1, 1, 1, -1, 1, 1):
        at += step
        work.undo() if step < 0 else work.redo()
        assert work.picture() == pictures[at]
    with pytest.raises(takeback.NothingToTakeBackError):
        work.redo()


def test_gitbutler_perform_operation_then_undo_again(work: Work) -> None:
    """After an undo and a new turn, undo takes the new turn, then what was before it."""
    for text in ("1\n", "2\n"):
        with work.turn():
            work.write(a_txt=text)
    work.undo()
    with work.turn():
        work.write(b_txt="new\n")
    work.undo()
    assert work.has_none("b.txt")
    assert work.text("a.txt") == "1\n"
    work.undo()
    assert work.has_none("a.txt")


def test_gitbutler_malformed_meta_fails_before_restore_mutates_state(work: Work) -> None:
    """A ledger that is no database any more is said to be damaged, and the tree is not touched."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.close()
    (ledger,) = work.home.glob("projects/*/ledger.db")
    for beside in ledger.parent.glob("ledger.db-*"):
        beside.unlink()
    ledger.write_bytes(b"{}" * 5000)
    with pytest.raises(takeback.TakebackError):
        work.undo()
    assert work.text("a.txt") == "2\n"


KINDS = ("file", "executable", "link", "folder", "nothing")


def become(work: Work, kind: str) -> None:
    """Let `x` be of a kind, whatever it was."""
    if work.has("x"):
        work.remove("x")
    if kind == "link":
        (work.tree / "x").symlink_to("nowhere")
    elif kind == "folder":
        work.put("x/inner", "in it\n")
    elif kind != "nothing":
        work.put("x", "content\n", 0o755 if kind == "executable" else 0o644)


@pytest.mark.parametrize(("before", "after"), list(permutations(KINDS, 2)))
def test_jj_file_symlink_dir_exec_transitions(work: Work, before: str, after: str) -> None:
    """From each kind to each other, undone and redone."""
    become(work, before)
    first = work.picture()
    with work.turn():
        become(work, after)
    second = work.picture()
    work.undo()
    assert work.picture() == first
    work.redo()
    assert work.picture() == second


def test_jj_checkout_refuses_to_follow_a_directory_symlink_out(work: Work, tmp_path: Path) -> None:
    """A folder that became a link is not written through, not even to put back what was in it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    work.put("d/a.txt", "1\n")
    work.put("d/b.txt", "1\n")
    work.checkpoint()
    with work.turn() as edit:
        work.put("d/a.txt", "2\n")
    with work.turn():
        work.remove("d/b.txt")
    work.remove("d")
    (work.tree / "d").symlink_to(outside)
    with pytest.raises(takeback.ConflictError) as refused:
        work.undo()
    assert "`d` is no longer a folder" in sentence(refused.value.conflicts[0][1])
    work.undo(turn=edit)
    assert list(outside.iterdir()) == []
    assert (work.tree / "d").is_symlink()


def test_jj_special_files_are_left_alone(work: Work) -> None:
    """A FIFO and a socket survive a rollback to before them, and one in the way refuses it."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n")
    os.mkfifo(work.tree / "pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        here = os.getcwd()
        os.chdir(work.tree)
        plug.bind("socket")
        os.chdir(here)
    work.rollback(ref)
    assert stat.S_ISFIFO((work.tree / "pipe").stat().st_mode)
    assert work.has("socket")
    work.remove("a.txt")
    os.mkfifo(work.tree / "a.txt")
    with pytest.raises(takeback.TakebackError):
        work.rollback(ref)
    assert stat.S_ISFIFO((work.tree / "a.txt").stat().st_mode)


# -- Entire --------------------------------------------------------------------------------


def test_entire_rewind_across_sessions(work: Work) -> None:
    """A rollback goes over the turns of every session, and names them."""
    work.write(a_txt="0\n")
    ref = work.checkpoint()
    turns = []
    for agent in ("one", "two"):
        with work.project.session(agent=agent) as session, session.turn(agent) as turn:
            work.put(f"{agent}.txt", "x\n")
        turns.append(turn.id)
    report = work.rollback(ref)
    assert set(report.plan.covers) == set(turns)
    assert os.listdir(work.tree) == ["a.txt"]


def test_entire_first_checkpoint_captures_user_and_agent_changes(work: Work) -> None:
    """What you had changed, deleted, renamed and not added before the turn is there after undo."""
    work.repository(a_txt="1\n", gone_txt="1\n", old_txt="1\n")
    work.write(a_txt="yours\n", untracked_txt="u\n")
    work.remove("gone.txt")
    work.move("old.txt", "renamed to this.txt")
    before = work.picture()
    with work.turn():
        work.write(a_txt="agent\n", gone_txt="agent\n", untracked_txt="agent\n")
        work.remove("renamed to this.txt")
    work.undo()
    assert work.picture() == before
