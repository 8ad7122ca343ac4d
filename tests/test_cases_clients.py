"""What Gemini CLI, Cline, Roo Code, Aider and Qwen Code test of checkpoints, as tests of ours."""

import errno
import os
from pathlib import Path

import pytest

import history
import takeback
from cases import Work, paths_of
from takeback.store import fsops

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

    monkeypatch.setattr(fsops, "hook", full)
    with pytest.raises(takeback.TakebackError):
        work.undo()
    monkeypatch.setattr(fsops, "hook", None)
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


def test_gemini_files_of_the_user_survive_restore(work: Work) -> None:
    """The gap in its suite: a file that you made after the turn survives undo."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", dir__agent_txt="x\n")
    work.write(mine_txt="mine\n", dir__mine_txt="mine\n")
    report = work.undo()
    assert (work.text("mine.txt"), work.text("dir/mine.txt")) == ("mine\n", "mine\n")
    kept = {remark.path for remark in report.plan.kept}
    assert kept == {b"dir", b"dir/mine.txt", b"mine.txt"}
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
    first, ref = work.git("rev-parse", "HEAD"), work.checkpoint()
    with work.turn():
        work.write(a_txt="2\n")
        work.git("commit", "-qam", "second")
    work.git("commit", "-q", "--allow-empty", "-m", "third")
    dot_git = work.dot_git()
    report = work.rollback(ref)
    assert work.text("a.txt") == "1\n"
    assert work.dot_git() == dot_git
    (stays,) = report.plan.stays
    assert "2 commits stay" in stays
    assert f"git reset --soft {first[:10]}" in stays


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
    inner = (work.tree / "vendor/lib/.git/HEAD").stat()
    with work.turn():
        work.write(vendor__lib__x_c="2\n", vendor__lib__new_c="x\n")
    work.undo()
    assert work.text("vendor/lib/x.c") == "1\n"
    assert work.has_none("vendor/lib/new.c")
    assert (work.tree / "vendor/lib/.git/HEAD").stat() == inner


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
    (stays,) = report.plan.stays
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

    monkeypatch.setattr(fsops, "hook", broken)
    with pytest.raises(takeback.TakebackError):
        work.undo()
    monkeypatch.setattr(fsops, "hook", None)
    assert work.text("a.txt") == "2\n"
    assert work.project.plan_undo().entry == turn.id
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_qwen_untouched_if_content_already_matches(work: Work) -> None:
    """A file that is right already is not rewritten: same inode, same time."""
    work.write(a_txt="1\n", b_txt="1\n")
    ref = work.checkpoint()
    work.write(b_txt="2\n")
    before = (work.tree / "a.txt").stat()
    work.rollback(ref)
    assert (work.tree / "a.txt").stat() == before


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
