"""What Gemini CLI and Cline test of checkpoints, as tests of ours."""

import errno
import os
from pathlib import Path

import pytest

import history
import takeback
from cases import Work, paths_of
from spoken import spoken
from takeback.disk import operations

# -- Gemini CLI ----------------------------------------------------------------------------


def test_gemini_create_and_restore_snapshots_without_global_git_config(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No git program and no identity is needed: changed, deleted and new files are as before."""
    monkeypatch.setenv("PATH", "")
    work.write(a_txt="1\n", b_txt="1\n")
    before, ref = work.picture(), work.checkpoint()
    work.write(a_txt="2\n", new_txt="x\n")
    work.remove("b.txt")
    work.rollback(ref)
    assert work.picture() == before


def test_gemini_ignores_user_global_git_config(
    work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Signing, hooks and filters of your git settings play no part, and nothing of them runs."""
    ran = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    trap.chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f"[commit]\n gpgsign = true\n[gpg]\n program = {trap}\n[core]\n hooksPath = {tmp_path}\n"
        f' fsmonitor = {trap}\n autocrlf = true\n[filter "x"]\n smudge = {trap}\n clean = {trap}\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    work.repository(a_txt="1\n", _gitattributes="* filter=x\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    assert work.text("a.txt") == "1\n"
    assert not ran.exists()


def test_gemini_handles_snapshot_failure_by_using_current_commit_hash(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inverted: if the safety checkpoint cannot be made, nothing stands in for it or is done."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.write(yours_txt="not yet seen by anybody\n")
    before = work.picture()

    def full(step: str, _given: tuple[object, ...]) -> None:
        if step in ("write", "create"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(operations, "hook", full)
    with pytest.raises(takeback.TakebackError):
        work.undo()
    monkeypatch.setattr(operations, "hook", None)
    assert work.picture() == before
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_gemini_unable_to_read_tree_is_explained(work: Work) -> None:
    """A state whose bytes are lost is said to be damaged, and nothing is done."""
    work.write(a_txt="1\n" * 50)
    ref = work.checkpoint()
    work.write(a_txt="2\n")
    work.close()
    for pack in work.home.glob("projects/*/git/objects/pack/*.pack"):
        content = pack.read_bytes()
        pack.chmod(0o600)
        pack.write_bytes(content[:12] + bytes(byte ^ 1 for byte in content[12:]))
    with pytest.raises(takeback.DamagedStoreError) as refusal:
        work.rollback(ref)
    assert refusal.value.exit_code == 4
    assert "damaged" in str(refusal.value)
    assert work.text("a.txt") == "2\n"


def test_gemini_restore_of_an_unknown_checkpoint(work: Work) -> None:
    """A name that means nothing is refused by the command line with exit code 2."""
    work.write(a_txt="1\n")
    work.checkpoint()
    for words in (["rollback", "nosuch"], ["undo", "nosuch"], ["redo", "nosuch"], ["rollback"]):
        assert history.command(work.tree, *words, "--yes").code == 2
    assert work.text("a.txt") == "1\n"


def test_gemini_per_turn_and_cumulative_stats(work: Work) -> None:
    """Each turn has its own numbers, and the plan of a rollback over both counts each file once."""
    work.write(a_txt="1\n", b_txt="1\n")
    ref = work.checkpoint()
    with work.turn() as first:
        work.write(a_txt="1\n2\n3\n")
    with work.turn() as second:
        work.write(a_txt="3\n", b_txt="1\n2\n")
    with work.turn() as third:
        pass
    told = [(t.recorded().added, t.recorded().removed) for t in (first, second, third)]
    assert told == [(2, 0), (1, 2), (0, 0)]
    plan = work.project.plan_rollback(ref)
    assert paths_of(plan) == {"a.txt": "write", "b.txt": "write"}
    assert set(plan.covers) == {first.id, second.id}


def test_gemini_reverts_exact_match(work: Work) -> None:
    """A file that is as the turn left it goes back to its old bytes; a new one is deleted."""
    work.write(a_txt="old\n")
    with work.turn():
        work.write(a_txt="agent\n", new_txt="agent\n")
    assert paths_of(work.undo().plan) == {"a.txt": "write", "new.txt": "delete"}
    assert work.text("a.txt") == "old\n"


def test_gemini_smart_revert_keeps_your_other_edits(work: Work) -> None:
    """Better: what you edited elsewhere in the same file stays, and redo puts all of it back."""
    lines = [f"{number}\n" for number in range(9)]
    work.write(a_txt="".join(lines))
    with work.turn():
        work.write(a_txt="".join(["agent\n", *lines[1:]]))
    mine = "".join(["agent\n", *lines[1:], "mine\n"])
    work.write(a_txt=mine)
    work.undo()
    assert work.text("a.txt") == "".join([*lines, "mine\n"])
    work.redo()
    assert work.text("a.txt") == mine


def test_gemini_files_of_the_user_survive_restore(work: Work) -> None:
    """The gap in its suite: a file that you made after the turn survives undo."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", dir__agent_txt="x\n")
    work.write(mine_txt="mine\n", dir__mine_txt="mine\n")
    report = work.undo()
    assert (work.text("mine.txt"), work.text("dir/mine.txt")) == ("mine\n", "mine\n")
    kept = {remark.path for remark in report.plan.kept}
    assert kept == {"dir", "dir/mine.txt", "mine.txt"}
    assert work.has_none("dir/agent.txt")


# -- Cline ---------------------------------------------------------------------------------


def test_cline_one_checkpoint_per_run_with_untracked_files(work: Work) -> None:
    """A turn has a state before and after, each with its untracked files."""
    work.repository(a_txt="1\n")
    work.write(untracked_txt="1\n")
    with work.turn() as turn:
        work.write(untracked_txt="2\n")
    assert len(list(work.project.checkpoints())) == 2
    assert b"".join(work.project.read(turn.before, b"untracked.txt")) == b"1\n"
    assert b"".join(work.project.read(turn.after, b"untracked.txt")) == b"2\n"


def test_cline_does_not_overwrite_on_resume_without_a_new_user_turn(work: Work) -> None:
    """A turn that goes on without a new prompt still begins where it began."""
    work.write(a_txt="1\n")
    with work.turn() as turn:
        work.write(a_txt="2\n")
    before = turn.before
    resumed = work.session.resume()
    assert resumed is not None
    work.write(a_txt="3\n")
    resumed.end()
    assert (resumed.id, turn.before) == (turn.id, before)
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_cline_identical_snapshot_is_not_appended(work: Work) -> None:
    """Turns that change nothing add no checkpoint."""
    work.write(a_txt="1\n")
    for _ in range(3):
        with work.turn():
            pass
    assert len(list(work.project.checkpoints())) == 1


def test_cline_starts_after_mid_session_git_init(work: Work) -> None:
    """A repository that comes into being between two turns changes nothing for undo."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.git("init", "-q")
    with work.turn():
        work.write(a_txt="3\n")
    work.undo()
    work.project.undo(yes=True)  # another branch than then: there was none
    assert work.text("a.txt") == "1\n"
    assert (work.tree / ".git" / "HEAD").is_file()


def test_cline_validates_the_ref_before_resetting_or_cleaning(work: Work) -> None:
    """A reference that cannot be meant is refused before anything moves."""
    work.write(a_txt="1\n")
    work.checkpoint()
    work.write(a_txt="2\n", new_txt="x\n")
    before = work.picture()
    for ref in ("zzzzzzzzzzzz", "@~99", work.session.id, "tomorrow"):
        with pytest.raises(takeback.TakebackError):
            work.rollback(ref)
    assert work.picture() == before


def test_cline_restores_after_later_commits(work: Work) -> None:
    """Inverted: files go back, HEAD does not move, and the commits that stay are named."""
    work.repository(a_txt="1\n")
    ref = work.checkpoint()
    with work.turn():
        work.write(a_txt="2\n")
        work.git("commit", "-qam", "second")
    work.git("commit", "-q", "--allow-empty", "-m", "third")
    dot_git = work.dot_git()
    report = work.rollback(ref)
    assert work.text("a.txt") == "1\n"
    assert work.dot_git() == dot_git
    (stays,) = spoken(report.plan.stays)
    assert "2 commits stay" in stays


def test_cline_full_rewind_leaves_git_alone(work: Work) -> None:
    """Staged, unstaged, untracked and ignored files are as they were; index and stash untouched."""
    work.repository(a_txt="1\n", b_txt="1\n", _gitignore="*.log\n")
    work.write(a_txt="stashed\n")
    work.git("stash", "-q")
    work.write(a_txt="staged\n")
    work.git("add", "a.txt")
    work.write(b_txt="unstaged\n", untracked_txt="u\n", x_log="log\n")
    before, ref, dot_git = work.picture(), work.checkpoint(), work.dot_git()
    work.write(a_txt="x\n", b_txt="x\n", untracked_txt="x\n", later_txt="x\n", x_log="x\n")
    work.rollback(ref)
    assert work.picture() == before
    assert work.dot_git() == dot_git
    assert work.git("stash", "list").count("\n") == 1


def test_cline_discards_recovery_snapshot_after_commit(work: Work) -> None:
    """Inverted: what a rollback went over is kept, so it can be undone, and redone, exactly."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n", new_txt="never captured before\n")
    gone = work.picture()
    report = work.rollback(ref)
    assert report.undo
    work.undo()
    assert work.picture() == gone
    work.redo()
    assert work.text("a.txt") == "1\n"
    assert work.has_none("new.txt")
