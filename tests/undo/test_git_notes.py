"""A restore names the commits and branches that it leaves in place."""

import pytest

from cases import Work
from spoken import spoken
from takeback.errors import DecisionNeededError


@pytest.mark.parametrize("with_turn", [False, True])
def test_a_rollback_names_the_commits_since_its_target(work: Work, with_turn: bool) -> None:
    """Commits that you made since are counted and have no command, also if no turn is gone over."""
    work.repository(a="0")
    first = work.checkpoint()
    for text in "12":
        work.write(a=text)
        work.git("commit", "-q", "-a", "-m", text)
    if with_turn:
        with work.turn():
            work.write(a="3")
    (stays,) = spoken(work.project.plan_rollback(first).stays)
    head = work.git("rev-parse", "HEAD")[:10]
    assert stays == f"2 commits stay (up to {head})"
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
    assert stays.startswith("1 commit stays")


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


def test_a_commit_on_a_branch_that_was_left_is_told(work: Work) -> None:
    """A branch that the turn made is named, and not deleted: its commit is nowhere else."""
    work.repository(a="0")
    with work.turn():
        work.git("switch", "-q", "-c", "its")
        work.write(a="1")
        work.git("commit", "-q", "-a", "-m", "more")
    work.git("switch", "-q", "main")
    made = work.git("rev-parse", "its")[:10]
    assert spoken(work.project.plan_undo().stays) == (f"the new branch `its` stays ({made})",)
