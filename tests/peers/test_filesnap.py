"""What Hermes and filesnap test, as tests of ours."""

import os
import subprocess
import sys
import threading

import pytest

import takeback
from cases import Work, paths_of
from takeback.model.reasons import Reason

# -- Hermes --------------------------------------------------------------------------------


def test_hermes_store_init_never_makes_the_project_a_git_repo(work: Work) -> None:
    """Neither a checkpoint nor a restore leaves anything of ours in the tree."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    assert os.listdir(work.tree) == ["a.txt"]


def test_hermes_safe_restore_skips_file_the_user_edited_that_agent_never_wrote(work: Work) -> None:
    """A file that only you changed is no part of undo."""
    work.write(agent_txt="1\n", mine_txt="1\n")
    with work.turn():
        work.write(agent_txt="2\n")
    work.write(mine_txt="2\n")
    assert paths_of(work.undo().plan) == {"agent.txt": "write"}
    assert work.text("mine.txt") == "2\n"


def test_hermes_safe_restore_skips_file_user_edited_after_agent_wrote(work: Work) -> None:
    """A line that you changed after the agent is a conflict; other files you can take back."""
    work.write(a_txt="1\n", b_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", b_txt="2\n")
    work.write(a_txt="you\n")
    plan = work.project.plan_undo()
    assert [remark.raw_path for remark in plan.conflicts] == [b"a.txt"]
    assert ("by", ("you",)) in plan.conflicts[0].reason.facts
    work.undo("b.txt")
    assert (work.text("a.txt"), work.text("b.txt")) == ("you\n", "1\n")


def test_hermes_safe_restore_removes_agent_created_and_keeps_user_edit(work: Work) -> None:
    """The agent's new file goes, your edit elsewhere stays."""
    work.write(mine_txt="1\n")
    with work.turn():
        work.write(agent_txt="x\n")
    work.write(mine_txt="2\n")
    work.undo()
    assert work.has_none("agent.txt")
    assert work.text("mine.txt") == "2\n"


def test_hermes_restores_agent_deleted_file(work: Work) -> None:
    """A file that the agent deleted is back, with mode and content."""
    work.put("run.sh", "#!/bin/sh\n", 0o750)
    with work.turn():
        work.remove("run.sh")
    work.undo()
    assert (work.text("run.sh"), work.mode("run.sh")) == ("#!/bin/sh\n", 0o750)


def test_hermes_still_reverts_a_file_that_grew_past_the_cap(work: Work) -> None:
    """What was captured once stays captured: a file that the agent blew up goes back."""
    work.write(log_txt="1\n")
    with work.turn(), (work.tree / "log.txt").open("r+b") as file:
        file.truncate(17 << 20)
    work.undo()
    assert work.text("log.txt") == "1\n"


def test_hermes_does_not_report_a_kept_file_as_restored(work: Work) -> None:
    """What stays is told as kept or skipped, and not among the changes."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", dir__new_txt="x\n")
        os.mkfifo(work.tree / "pipe")
    work.write(dir__mine_txt="mine\n")
    report = work.undo()
    assert paths_of(report.plan) == {"a.txt": "write", "dir/new.txt": "delete"}
    assert {remark.raw_path for remark in report.plan.kept} == {b"dir", b"dir/mine.txt"}
    assert [remark.raw_path for remark in report.plan.skipped] == [b"pipe"]
    assert work.has("pipe", "dir/mine.txt")


def test_hermes_argument_injection_is_refused(work: Work) -> None:
    """What looks like an option or leads out of the project is no reference and no path."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n")
    for bad in ("--patch", "-p", "HEAD", "abc123", "../x", "$(id)"):
        with pytest.raises(takeback.UsageError):
            work.rollback(bad)
    for path in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(takeback.UsageError):
            work.rollback(ref, path)
    assert work.text("a.txt") == "2\n"


def test_hermes_previews_bind_what_is_deleted(work: Work) -> None:
    """A plan for paths never does more than it showed: if they moved, it is refused."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    work.write(dir__new_txt="x\n")
    plan = work.project.plan_rollback(ref, paths=["dir"])
    assert paths_of(plan) == {"dir": "rmdir", "dir/new.txt": "delete"}
    work.write(dir__later_txt="not in the preview\n")
    with pytest.raises(takeback.StalePlanError):
        work.project.apply(plan)
    assert work.has("dir/new.txt", "dir/later.txt")


# -- filesnap ------------------------------------------------------------------------------


def test_filesnap_full_rewind_redo_scenario(work: Work) -> None:
    """Three turns, rolled back to the first and put back again, byte for byte."""
    work.repository(a_txt="0\n", _gitignore="*.log\n")
    work.write(x_log="log\n")
    with work.turn() as first:
        work.write(a_txt="1\n")
    with work.turn():
        work.write(b_txt="2\n")
        work.remove("a.txt")
    with work.turn():
        work.write(c__d_txt="3\n")
    last = work.picture()
    work.rollback(first.id)
    assert sorted(os.listdir(work.tree)) == [".git", ".gitignore", "a.txt", "x.log"]
    assert work.text("a.txt") == "1\n"
    work.undo()
    assert work.picture() == last


def test_filesnap_rewinding_twice_still_restores(work: Work) -> None:
    """A rollback to where one is does nothing, and the one before can still be undone."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n")
    work.rollback(ref)
    assert work.rollback(ref).plan.changes == ()
    work.undo()
    assert work.text("a.txt") == "2\n"


def test_filesnap_an_undo_reports_what_moved_since_the_rewind(work: Work) -> None:
    """What you changed after a rollback is not taken away by undoing it: a conflict says so."""
    work.write(a_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n", b_txt="x\n")
    work.rollback(ref)
    work.write(a_txt="since\n")
    with pytest.raises(takeback.ConflictError) as refusal:
        work.undo()
    assert [path for path, _ in refusal.value.conflicts] == ["a.txt"]
    assert work.text("a.txt") == "since\n"
    assert work.has_none("b.txt")


def test_filesnap_two_sessions_do_not_share_undos(work: Work) -> None:
    """With `session`, undo means that session's newest turn, whoever worked since."""
    work.write(a_txt="1\n", b_txt="1\n")
    one, two = work.project.session(agent="one"), work.project.session(agent="two")
    with one.turn("of one"):
        work.write(a_txt="2\n")
    with two.turn("of two"):
        work.write(b_txt="2\n")
    work.project.undo(session=one.id)
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "2\n")


def test_filesnap_nested_rewinds_unwind_in_the_order_they_were_made(work: Work) -> None:
    """Rollbacks are undone newest first, and never swing between two states."""
    refs, pictures = [], []
    for text in ("1\n", "2\n", "3\n", "4\n"):
        work.write(a_txt=text)
        refs.append(work.checkpoint())
        pictures.append(work.picture())
    work.rollback(refs[2])
    work.rollback(refs[0])
    work.rollback(refs[1])
    for number in (0, 2, 3):
        work.undo()
        assert work.picture() == pictures[number]
    with pytest.raises(takeback.NothingToTakeBackError):
        work.undo()


def test_filesnap_the_undo_warning_covers_what_it_will_delete(work: Work) -> None:
    """The plan of undoing a rollback names what would go, and what was not touched by it stays."""
    work.write(a_txt="1\n", gone_txt="1\n")
    ref = work.checkpoint()
    work.remove("gone.txt")
    work.rollback(ref)
    work.write(mine_txt="since\n")
    assert paths_of(work.project.plan_undo()) == {"gone.txt": "delete"}
    work.undo()
    assert work.has_none("gone.txt")
    assert work.text("mine.txt") == "since\n"


def test_filesnap_a_turn_reports_what_it_cannot_put_back(work: Work) -> None:
    """What the turn made and nobody can take back is named with the reason."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
        os.mkfifo(work.tree / "pipe")
    (skipped,) = work.project.plan_undo().skipped
    assert skipped == takeback.Remark(b"pipe", Reason("not-covered-stays"))


def test_filesnap_a_rewind_does_not_strip_an_executable_bit(work: Work) -> None:
    """Content goes back and the mode with it; a change of mode alone goes back too."""
    work.put("run.sh", "1\n", 0o755)
    work.put("data", "1\n", 0o604)
    ref = work.checkpoint()
    work.put("run.sh", "2\n", 0o644)
    (work.tree / "data").chmod(0o666)
    inode = (work.tree / "data").stat().st_ino
    assert paths_of(work.rollback(ref).plan) == {"data": "mode", "run.sh": "write"}
    assert (work.mode("run.sh"), work.mode("data")) == (0o755, 0o604)
    assert (work.tree / "data").stat().st_ino == inode


def test_filesnap_nothing_is_rewritten_when_the_state_already_matches(work: Work) -> None:
    """A rollback to the present state touches no inode at all."""
    work.write(a_txt="1\n", d__b_txt="1\n")
    ref = work.checkpoint()
    names = ("", "a.txt", "d", "d/b.txt")
    before = {name: (work.tree / name).stat() for name in names}
    work.rollback(ref)
    after = {name: (work.tree / name).stat() for name in names}
    assert {name: status.st_ctime_ns for name, status in after.items()} == {
        name: status.st_ctime_ns for name, status in before.items()
    }


def test_filesnap_concurrent_captures_for_one_session_keep_every_turn(work: Work) -> None:
    """Two processes and two threads undo and record at once: nothing deadlocks, nothing is lost."""
    work.write(**{f"f{number}_txt": "1\n" for number in range(4)})
    work.checkpoint()
    code = (
        "import sys, takeback\n"
        "project = takeback.open(sys.argv[1], home=sys.argv[2])\n"
        "name = f'{sys.argv[1]}/f{sys.argv[3]}.txt'\n"
        "for number in range(5):\n"
        "    with project.session(agent=sys.argv[3]) as session:\n"
        "        with session.turn('t') as turn, turn.step('Write', {'file_path': name}):\n"
        "            open(name, 'w').write(str(number))\n"
        "    project.undo(turn)\n"
        "    assert open(name).read() == '1\\n', open(name).read()\n"
    )
    command = [sys.executable, "-c", code, str(work.tree), str(work.home)]
    running = [subprocess.Popen([*command, str(number)], stderr=-1) for number in range(3)]
    looks = threading.Thread(target=lambda: [work.project.checkpoint() for _ in range(10)])
    looks.start()
    ended = [(process.communicate()[1], process.returncode) for process in running]
    looks.join()
    assert ended == [(b"", 0)] * 3
    assert len(work.project.log(all=True).turns) == 15
    assert work.project.verify().ok
