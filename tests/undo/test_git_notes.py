"""A restore names the commits and branches that it leaves in place."""

import pytest

from cases import Work
from spoken import spoken
from takeback.errors import DecisionNeededError


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
    its, _ = spoken(work.project.plan_undo().stays)
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
    (stays,) = spoken(work.project.plan_rollback(first).stays)
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
    (stays,) = spoken(work.project.plan_rollback(first).stays)
    assert f"`git reset --soft {old[:10]}` takes it back" in stays


def test_a_first_commit_since_the_target_has_its_command(work: Work) -> None:
    """After a rollback to before the first commit, the command that takes that back is told."""
    work.git("init", "-q")
    work.write(a="0")
    first = work.checkpoint()
    work.write(a="1")
    work.git("add", "-A")
    work.git("commit", "-q", "-m", "first")
    (stays,) = spoken(work.rollback(first).plan.stays)
    assert "`git update-ref -d HEAD`" in stays


def test_another_branch_after_the_plan_is_a_doubt(work: Work) -> None:
    """Who switches the branch between the preview and the yes is asked once more."""
    work.repository(a="0")
    with work.turn():
        work.write(a="1")
    plan = work.project.plan_undo()
    work.git("switch", "-q", "-c", "other")
    with pytest.raises(DecisionNeededError) as refusal:
        work.project.apply(plan)
    assert [reason.code for reason in refusal.value.reasons] == ["other-branch"]
    assert work.text("a") == "1"
    work.project.apply(plan, yes=True)
    assert work.text("a") == "0"


def test_a_reset_or_amended_commit_has_its_command(work: Work) -> None:
    """Whatever the turn did to HEAD, the command that brings it back is told."""
    work.repository(a="0")
    first = work.git("rev-parse", "HEAD").strip()
    with work.turn():
        work.write(a="1")
        work.git("commit", "-q", "-a", "--amend", "-m", "better")
    (stays,) = spoken(work.undo().plan.stays)
    assert f"`git reset --soft {first[:10]}`" in stays


def test_no_command_for_a_commit_on_another_branch(work: Work) -> None:
    """A commit on the branch that the turn made is named, and not reverted on this one."""
    work.repository(a="0")
    with work.turn():
        work.git("switch", "-q", "-c", "its")
        work.write(a="1")
        work.git("commit", "-q", "-a", "-m", "more")
    work.git("switch", "-q", "main")
    (stays,) = spoken(work.project.plan_undo().stays)
    assert "on the branch `its`" in stays
    assert "git revert" not in stays


def test_the_first_commit_has_its_command(work: Work) -> None:
    """The command that takes back the first commit of a repository works."""
    work.git("init", "-q")
    work.write(a="0")
    with work.turn():
        work.git("add", "-A")
        work.write(a="1")
        work.git("commit", "-q", "-m", "first")
    (stays,) = spoken(work.undo().plan.stays)
    command = stays.split("`")[1]
    assert command.startswith("git ")
    work.git(*command.split()[1:])
    assert not work.git("log", "--all", "--format=%H")
