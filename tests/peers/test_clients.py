"""What Roo Code, Aider and Qwen Code test of checkpoints, as tests of ours."""

import errno
import os

import pytest

import history
import takeback
from cases import Work, paths_of
from spoken import spoken
from takeback.disk import operations

# -- Roo Code ------------------------------------------------------------------------------


def test_roo_preserves_workspace_and_index_state_after_saving(work: Work) -> None:
    """Checkpoints, turns and plans leave tree and `.git` untouched, to the inode."""
    work.repository(a_txt="1\n", b_txt="1\n")
    work.write(a_txt="staged\n")
    work.git("add", "a.txt")
    work.write(b_txt="unstaged\n", c_txt="untracked\n")
    before, dot_git = work.picture(), work.dot_git()
    ref = work.checkpoint()
    with work.turn():
        pass
    work.project.plan_rollback(ref)
    assert work.picture() == before
    assert work.dot_git() == dot_git


def test_roo_nested_repo_throws(work: Work) -> None:
    """Inverted: a nested repository is captured and taken back; its own `.git` stays."""
    work.repository(a_txt="1\n")
    work.put("vendor/lib/x.c", "1\n")
    work.git("init", "-q", within="vendor/lib")
    inner = work.written("vendor/lib/.git/HEAD")
    with work.turn():
        work.write(vendor__lib__x_c="2\n", vendor__lib__new_c="x\n")
    work.undo()
    assert work.text("vendor/lib/x.c") == "1\n"
    assert work.has_none("vendor/lib/new.c")
    assert work.written("vendor/lib/.git/HEAD") == inner


def test_roo_lfs_files_are_not_in_checkpoints(work: Work) -> None:
    """Inverted: files that LFS would handle are captured as the bytes they are."""
    work.repository(_gitattributes="*.psd filter=lfs diff=lfs merge=lfs -text\n")
    work.put("art.psd", b"\0pixels" * 100)
    with work.turn():
        work.put("art.psd", b"\0paint" * 100)
    work.undo()
    assert (work.tree / "art.psd").read_bytes() == b"\0pixels" * 100


def test_roo_is_isolated_from_git_dir(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """`GIT_DIR`, `GIT_WORK_TREE` and `GIT_INDEX_FILE` of the caller mean nothing to us."""
    work.repository(a_txt="1\n")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(work.tree.parent / "elsewhere"))
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    assert work.text("a.txt") == "1\n"
    assert not (work.tree.parent / "elsewhere").exists()


def test_roo_preview_mode_changes_nothing(work: Work) -> None:
    """A plan, and a command with `--dry-run`, writes nothing into the tree and undoes nothing."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    with work.turn():
        work.write(a_txt="2\n", new_txt="x\n")
    before = work.picture()
    for plan in (work.project.plan_undo(), work.project.plan_rollback(ref)):
        assert paths_of(plan) == {"a.txt": "write", "new.txt": "delete"}
    assert history.command(work.tree, "undo", "--dry-run").code == 0
    assert history.command(work.tree, "rollback", ref, "--dry-run").code == 0
    assert work.picture() == before
    assert work.undo().plan.verb == "undo"


def test_roo_restore_tells_listeners(work: Work) -> None:
    """Each restore is told to every listener, with its report; a failed one to none."""
    heard: list[str] = []
    work.project.on_restore(lambda report: heard.append(report.id))
    work.project.on_restore(lambda report: heard.append(report.plan.verb))
    with pytest.raises(takeback.NothingToTakeBackError):
        work.undo()
    with work.turn():
        work.write(a_txt="1\n")
    report = work.undo()
    assert heard == [report.id, "undo"]


# -- Aider ---------------------------------------------------------------------------------


def test_aider_undo_with_dirty_files_not_in_last_commit(work: Work) -> None:
    """A touched file that is dirty again refuses the undo; other dirty files do not, and stay."""
    work.repository(a_txt="1\n", other_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.write(other_txt="mine\n")
    work.undo()
    assert (work.text("a.txt"), work.text("other.txt")) == ("1\n", "mine\n")
    work.redo()
    work.write(a_txt="mine\n")
    with pytest.raises(takeback.ConflictError):
        work.undo()
    assert (work.text("a.txt"), work.text("other.txt")) == ("mine\n", "mine\n")


def test_aider_undo_with_newly_committed_file(work: Work) -> None:
    """Inverted: a file that the turn made and committed goes; the commit stays and is named."""
    work.repository(a_txt="1\n")
    first = work.git("rev-parse", "HEAD")
    with work.turn():
        work.write(new_txt="x\n")
        work.git("add", "new.txt")
        work.git("commit", "-qm", "agent")
    dot_git = work.dot_git()
    report = work.undo()
    assert work.has_none("new.txt")
    assert work.dot_git() == dot_git
    (stays,) = spoken(report.plan.stays)
    assert "1 commit stays" in stays
    assert f"git reset --soft {first[:10]}" in stays


def test_aider_undo_on_first_commit(work: Work) -> None:
    """Inverted: the very first turn, which made the first commit, can be undone."""
    work.git("init", "-q")
    with work.turn():
        work.write(a_txt="1\n")
        work.git("add", "-A")
        work.git("commit", "-qm", "first")
    work.undo()
    assert work.has_none("a.txt")
    assert work.git("log", "--format=%s") == "first\n"


# -- Qwen Code -----------------------------------------------------------------------------


def test_qwen_rewind_restores_and_deletes_what_was_absent(work: Work) -> None:
    """Files go back to the target; what was absent there goes."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    for text in ("2\n", "3\n"):
        with work.turn():
            work.write(a_txt=text, b_txt=text)
    work.rollback(ref)
    assert sorted(os.listdir(work.tree)) == ["a.txt"]
    assert work.text("a.txt") == "1\n"


def test_qwen_history_is_not_truncated_when_files_failed(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewind that fails leaves the turns where they were: they can be taken back afterwards."""
    work.write(a_txt="1\n")
    with work.turn() as turn:
        work.write(a_txt="2\n")

    def broken(step: str, _given: tuple[object, ...]) -> None:
        if step in ("exchange", "move"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(operations, "hook", broken)
    with pytest.raises(takeback.TakebackError):
        work.undo()
    monkeypatch.setattr(operations, "hook", None)
    assert work.text("a.txt") == "2\n"
    assert work.project.plan_undo().entry == turn.id
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_qwen_untouched_if_content_already_matches(work: Work) -> None:
    """A file that is right already is not rewritten: same inode, same time."""
    work.write(a_txt="1\n", b_txt="1\n")
    ref = work.checkpoint()
    work.write(b_txt="2\n")
    before = work.written("a.txt")
    work.rollback(ref)
    assert work.written("a.txt") == before


def test_qwen_later_tracked_files_are_not_attributed_to_earlier_turns(work: Work) -> None:
    """Undo of a turn does not touch what a later turn made."""
    work.write(a_txt="1\n")
    with work.turn() as first:
        work.write(a_txt="2\n")
    with work.turn():
        work.write(b_txt="x\n")
    assert paths_of(work.undo(turn=first).plan) == {"a.txt": "write"}
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "x\n")


def test_qwen_session_survives_the_process(work: Work) -> None:
    """A new process undoes what an earlier one recorded."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.close()
    assert history.command(work.tree, "undo").code == 0
    assert work.text("a.txt") == "1\n"
