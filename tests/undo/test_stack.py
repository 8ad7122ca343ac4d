"""What is on the undo stack after restores over restores."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cases import Work
from takeback.disk import operations
from takeback.errors import NothingToTakeBackError


def live(work: Work) -> list[str]:
    """The turns on the current line, the oldest first; the tables say what the events say."""
    assert work.project.upkeep.examine()[0] == ()
    return [turn.label for turn in reversed(work.project.log().turns)]


def test_a_rollback_to_a_turn_that_was_undone_makes_it_live(work: Work) -> None:
    """A rollback forward over an undo leaves nothing to redo, and the turn can be undone again."""
    work.write(a="0")
    with work.turn("T1") as turn:
        work.write(a="1")
    work.undo()
    work.rollback(turn.id)
    assert live(work) == ["T1"]
    with pytest.raises(NothingToTakeBackError):
        work.redo()
    work.undo(turn=turn)
    assert (work.text("a"), live(work)) == ("0", [])


def test_undoing_a_rollback_brings_the_stack_back(work: Work) -> None:
    """After the undo of a rollback over an undo, that undo stands again, and can be put back."""
    work.write(a="0")
    with work.turn("T1") as turn:
        work.write(a="1")
    work.undo()
    work.rollback(turn.id)
    work.undo()
    assert (work.text("a"), live(work)) == ("0", [])
    work.redo(turn=turn)
    assert (work.text("a"), live(work)) == ("1", ["T1"])


def test_undo_and_redo_go_through_rollbacks_of_rollbacks(work: Work) -> None:
    """All undone one by one and all put back one by one: each step is the mirror of the other."""
    work.write(a="0")
    first = work.checkpoint()
    with work.turn("T1") as turn:
        work.write(a="1")
    with work.turn("T2"):
        work.write(a="2")
    back = work.rollback(first)
    assert live(work) == []
    work.rollback(turn.id)
    assert live(work) == ["T1"]
    work.rollback(back.id)
    there = [(work.text("a"), live(work))]
    for _ in range(5):
        work.undo()
        there.append((work.text("a"), live(work)))
    both = ["T1", "T2"]
    assert there == [("0", []), ("1", ["T1"]), ("0", []), ("2", both), ("1", ["T1"]), ("0", [])]
    for step in reversed(there[:-1]):
        work.redo()
        assert (work.text("a"), live(work)) == step


def test_a_rollback_that_is_put_back_does_not_cover_a_turn_that_went_on(work: Work) -> None:
    """What a turn did after a rollback is in the tree, so it is live, also after undo and redo."""
    work.write(a="0", b="0")
    first = work.checkpoint()
    turn = work.session.turn("T")
    work.write(a="1")
    work.rollback(first)
    work.write(b="2")
    turn.end()
    assert live(work) == ["T"]
    work.undo()
    work.redo()
    assert (work.text("a"), work.text("b"), live(work)) == ("0", "2", ["T"])


@contextmanager
def written_during_a_restore(work: Work) -> Iterator[None]:
    """Write `b` right before the first file changes places."""

    def hook(step: str, _args: tuple[object, ...]) -> None:
        if step == "exchange":
            operations.hook = None
            work.write(b="during")

    operations.hook = hook
    try:
        yield
    finally:
        operations.hook = None


@pytest.mark.parametrize("verb", ["undo", "rollback"])
def test_a_turn_that_works_while_it_is_taken_back_is_live(work: Work, verb: str) -> None:
    """What a running turn writes during a restore stays in the tree, and so the turn is live."""
    work.write(a="0", b="0")
    first = work.checkpoint()
    turn = work.session.turn("T")
    work.write(a="1")
    work.checkpoint()
    with written_during_a_restore(work):
        work.rollback(first) if verb == "rollback" else work.undo()
    turn.end()
    assert (work.text("a"), work.text("b"), live(work)) == ("0", "during", ["T"])


def test_a_rollback_over_what_a_turn_did_later_leaves_it_undone(work: Work) -> None:
    """A turn that was undone, went on, and whose later work is rolled back is undone again."""
    work.write(a="0", b="0")
    turn = work.session.turn("T")
    work.write(a="1")
    then = work.undo()
    work.write(b="2")
    turn.end()
    assert live(work) == ["T"]
    work.rollback(then.after)
    assert live(work) == []
    work.undo()
    assert (work.text("b"), live(work)) == ("2", ["T"])


def test_what_a_rollback_went_over_is_not_put_back_on_its_own(work: Work) -> None:
    """A redo of a turn that was undone before a rollback over it names the rollback."""
    work.write(a="0", b="0")
    with work.turn("T1") as first:
        work.write(a="1")
    with work.turn("T2") as second:
        work.write(b="1")
    work.undo()
    back = work.rollback(f"{first.id}-")
    with pytest.raises(NothingToTakeBackError, match=back.id):
        work.redo(turn=second)
    work.undo()
    work.redo(turn=second)
    assert (work.text("a"), work.text("b"), live(work)) == ("1", "1", ["T1", "T2"])


def test_a_rollback_of_which_some_paths_are_put_back_covers_again(work: Work) -> None:
    """A live rollback covers what it went over; the other paths can follow."""
    work.write(a="0", b="0")
    first = work.checkpoint()
    with work.turn("T"):
        work.write(a="1", b="1")
    work.rollback(first)
    work.undo()
    work.redo("a")
    assert (work.text("a"), work.text("b"), live(work)) == ("0", "1", [])
    work.redo()
    assert (work.text("a"), work.text("b"), live(work)) == ("0", "0", [])
