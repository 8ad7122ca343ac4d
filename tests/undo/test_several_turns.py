"""Several turns at once ask the doubts of each of them, not of the newest only."""

import pytest

from cases import Work
from history import Said, command
from takeback.errors import DecisionNeededError

MAIN, OTHER = "ended on the branch `main`", "and the branch `other` is checked out now"


def on_branch(work: Work, name: str) -> None:
    """Let the user's git say that a branch is checked out."""
    for folder in ("objects", "refs/heads"):
        (work.tree / ".git" / folder).mkdir(parents=True, exist_ok=True)
    work.put(".git/HEAD", f"ref: refs/heads/{name}\n")


def two_branches(work: Work) -> tuple[str, str]:
    """A turn on `main`, then one on `other`, which is still checked out."""
    on_branch(work, "main")
    work.write(a="0\n", b="0\n")
    with work.turn("on main") as first:
        work.write(a="1\n")
    on_branch(work, "other")
    with work.turn("on other") as second:
        work.write(b="1\n")
    return first.id, second.id


def late_edits(work: Work) -> tuple[str, str]:
    """A turn behind whose stop something changed, then one without doubts."""
    work.write(a="0\n", b="0\n", late="0\n")
    turn = work.session.turn("serve")
    server = turn.step("Bash", {"command": "serve &"})
    work.write(a="1\n")
    server.detach()
    turn.end()
    work.write(late="perhaps yours\n")
    work.checkpoint()
    server.end()
    with work.turn("harmless") as second:
        work.write(b="1\n")
    return turn.id, second.id


def asks(work: Work, *words: str) -> Said:
    """Run a command that has to ask, off a terminal: exit 3, and nothing is changed."""
    before = work.picture()
    said = command(work.tree, *words)
    assert said.code == 3, said.out + said.err
    assert work.picture() == before
    return said


def test_the_older_turn_ended_on_another_branch(work: Work) -> None:
    """`undo A B` asks about the branch of A; `--yes` goes on, and `redo` of both asks again."""
    first, second = two_branches(work)
    said = asks(work, "undo", first, second)
    assert f'"on main" {MAIN}' in said.out
    assert "other` is checked out" in " ".join(said.out.split())
    assert command(work.tree, "undo", first, second, "--yes").code == 0
    assert (work.text("a"), work.text("b")) == ("0\n", "0\n")
    assert MAIN in asks(work, "redo").out
    assert command(work.tree, "redo", "--yes").code == 0
    assert (work.text("a"), work.text("b")) == ("1\n", "1\n")


def test_a_whole_session_asks_about_each_turn(work: Work) -> None:
    """`undo --session` asks what the oldest turn of the session asks."""
    two_branches(work)
    assert MAIN in asks(work, "undo", "--session", work.session.id).out


def test_work_behind_the_stop_of_the_older_turn(work: Work) -> None:
    """What may be your own work is asked about, whichever of the turns it counts to."""
    first, second = late_edits(work)
    for words in ((first, second), ("--session", work.session.id)):
        said = asks(work, "undo", *words)
        assert "may be your own work: `late`" in " ".join(said.out.split())
    assert work.text("late") == "perhaps yours\n"


def test_all_doubts_are_listed(work: Work) -> None:
    """Two turns with a doubt each: the preview and the plan list both, each once."""
    on_branch(work, "main")
    first, second = late_edits(work)
    on_branch(work, "other")
    said = " ".join(asks(work, "undo", first, second).out.split())
    assert said.count("ended on the branch `main`") == 2
    assert said.count("may be your own work") == 1
    plan = work.project.plan_undo([first, second])
    assert len(plan.doubts) == len(set(plan.doubts)) == 3
    with pytest.raises(DecisionNeededError, match="3 doubts"):
        work.project.apply(plan)
    assert work.project.apply(plan, yes=True).plan.doubts == plan.doubts


def test_a_plan_is_asked_about_again_when_it_is_applied(work: Work) -> None:
    """The branch may change between the plan and its end: each turn is asked about again."""
    on_branch(work, "main")
    work.write(a="0\n", b="0\n")
    with work.turn("first") as first:
        work.write(a="1\n")
    with work.turn("second") as second:
        work.write(b="1\n")
    plan = work.project.plan_undo([first, second])
    assert plan.doubts == ()
    on_branch(work, "other")
    with pytest.raises(DecisionNeededError, match="2 doubts"):
        work.project.apply(plan)
    assert (work.text("a"), work.text("b")) == ("1\n", "1\n")
