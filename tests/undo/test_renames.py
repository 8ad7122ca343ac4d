"""The search for renamed files is bounded as git bounds it; the same content is always found."""

import os
import shutil
import time

import pytest

import takeback
from cases import Work, paths_of
from spoken import of_remark, sentence

MANY = 410
"""So many files that went and as many that came are more pairs than are compared."""


def text(number: int, first: str = "first", last: str = "last") -> str:
    """A text of its own, with two places that are far from each other."""
    middle = "".join(f"line {line} of file {number}\n" for line in range(40))
    return f"{first}\n{middle}{last}\n"


def write(work: Work, folder: str, numbers: range, **words: str) -> None:
    """Write a text for each number."""
    for number in numbers:
        work.put(f"{folder}/{number:04}", text(number, **words))


def edited(work: Work, count: int) -> None:
    """A turn edits each of some files in its first line."""
    write(work, "old", range(count))
    with work.turn("edit all"):
        write(work, "old", range(count), first="by the turn")


def planned(work: Work) -> tuple[takeback.Plan, float]:
    """What an undo would do, and what it costs at least: garbage may be collected meanwhile."""

    def once() -> tuple[float, takeback.Plan]:
        begun = time.thread_time()
        plan = work.project.plan_undo()
        return time.thread_time() - begun, plan

    cost, plan = min((once() for _ in range(3)), key=lambda timed: timed[0])
    return plan, cost


def test_files_that_you_moved_and_edited_are_found(work: Work) -> None:
    """Up to the limit each is compared with each: all edits of the turn go, all of yours stay."""
    count = 150
    edited(work, count)
    shutil.rmtree(work.tree / "old")
    write(work, "moved", range(count), first="by the turn", last="mine")
    work.undo()
    for number in range(count):
        assert work.text(f"moved/{number:04}") == text(number, last="mine")
    assert work.has_none("old")


def test_too_many_files_are_not_compared(work: Work) -> None:
    """Above the limit what you moved and edited stays as it is, and it is said; so each time.

    To plan that costs about what it costs when you deleted the files.
    """
    edited(work, MANY)
    shutil.rmtree(work.tree / "old")
    work.checkpoint()
    plan, deleted = planned(work)
    assert (plan.changes, plan.conflicts) == ((), ())
    write(work, "moved", range(MANY), first="by the turn", last="mine")
    work.checkpoint()
    plan, moved = planned(work)
    assert moved < 8 * deleted + 0.2, (moved, deleted)
    assert (plan.changes, plan.conflicts) == ((), ())
    kept = {remark.raw_path: of_remark(remark) for remark in plan.kept}
    assert all(kept[b"old/%04d" % number] == "you deleted it since" for number in range(MANY))
    again, _ = planned(work)
    assert [(r.path, r.reason) for r in again.kept] == [(r.path, r.reason) for r in plan.kept]
    before = work.picture()
    work.undo()
    assert work.picture() == before


def test_the_same_content_is_found_however_many_files_there_are(work: Work) -> None:
    """Files that you moved as they were are found, also where several hold the same."""
    half = MANY // 2
    for folder in ("old/one", "old/two"):
        write(work, folder, range(half))
    with work.turn("edit all"):
        for folder in ("old/one", "old/two"):
            write(work, folder, range(half), first="by the turn")
    (work.tree / "old").rename(work.tree / "moved")
    plan, _ = planned(work)
    assert len(plan.changes) == 2 * half
    work.undo()
    for folder in ("moved/one", "moved/two"):
        assert all(work.text(f"{folder}/{n:04}") == text(n) for n in range(half))


def test_a_turn_that_renames_and_edits_too_many_files(work: Work) -> None:
    """The turn moves and edits many files, and you edit each: the old ones return, yours stay."""
    write(work, "old", range(MANY))
    with work.turn("move all"):
        shutil.rmtree(work.tree / "old")
        write(work, "new", range(MANY), first="by the turn")
    write(work, "new", range(MANY), first="by the turn", last="mine")
    plan, _ = planned(work)
    assert plan.conflicts == ()
    work.undo()
    for number in range(MANY):
        assert work.text(f"old/{number:04}") == text(number)
        assert work.text(f"new/{number:04}") == text(number, "by the turn", "mine")


@pytest.mark.parametrize("named", ["old", "d/new"])
def test_both_sides_of_a_rename_belong_together(work: Work, named: str) -> None:
    """Undo and redo of one side take the other along, say so, and leave other files alone."""
    work.write(old="precious", other="0")
    with work.turn():
        work.move("old", "d/new")
        work.write(other="1")
    plan = work.project.plan_undo(paths=[named])
    assert paths_of(plan) == {"old": "create", "d/new": "delete"}
    along = {os.fsdecode(c.path): c.along and sentence(c.along) for c in plan.changes}
    assert along.pop(named) is None
    assert list(along.values()) == [f"together with `{named}` (a rename)"]
    work.undo(named)
    assert (work.text("old"), work.text("other")) == ("precious", "1")
    assert work.has_none("d/new")
    work.redo(named)
    assert (work.has("d/new"), work.has("old")) == (True, False)


@pytest.mark.parametrize("named", ["old", "new"])
def test_what_was_renamed_and_edited_at_once_belongs_together_too(work: Work, named: str) -> None:
    """One name is named: the file is never out of sight, and never there twice."""
    work.write(old=text(1))
    with work.turn():
        work.move("old", "new")
        work.write(new=text(1, "by the turn"))
    for _ in range(2):
        work.undo(named)
        assert (work.text("old"), work.has("new")) == (text(1), False)
        work.redo()
        assert (work.text("new"), work.has("old")) == (text(1, "by the turn"), False)


@pytest.mark.parametrize("named", ["old", "new"])
def test_a_rename_is_one_also_after_a_redo(work: Work, named: str) -> None:
    """What was renamed and then rewritten is like its old self no more; the log knows it."""
    work.write(old="precious")
    with work.turn() as turn:
        with turn.step("bash"):
            work.move("old", "new")
        with turn.step("bash"):
            work.write(new="something else")
    for _ in range(2):
        work.undo(named)
        assert (work.text("old"), work.has("new")) == ("precious", False)
        work.redo()
        assert (work.text("new"), work.has("old")) == ("something else", False)


def test_what_you_renamed_once_more_is_taken_back_as_often_as_one_likes(work: Work) -> None:
    """The turn renames and edits a file, you rename it again: undo and redo change its text."""
    work.write(old=text(1))
    with work.turn():
        work.move("old", "new")
        work.write(new=text(1, "by the turn"))
    work.move("new", "mine")
    for _ in range(3):
        work.undo()
        assert work.text("mine") == text(1)
        work.redo()
        assert work.text("mine") == text(1, "by the turn")
    assert work.has_none("old", "new")


def test_a_chain_of_renames_goes_back_to_its_beginning(work: Work) -> None:
    """A file that a turn renamed twice and then edited comes back under its first name."""
    work.write(a="precious")
    with work.turn() as turn:
        for name, to in (("a", "b"), ("b", "c")):
            with turn.step("bash"):
                work.move(name, to)
        with turn.step("bash"):
            work.write(c="edited")
    work.undo("c")
    assert work.text("a") == "precious"
    assert work.has_none("b", "c")


def test_a_renamed_file_that_was_changed_since_goes_back_with_the_change(work: Work) -> None:
    """Whichever name is named; but nothing goes whose old name cannot come back."""
    work.write(old="precious")
    with work.turn():
        work.move("old", "new")
    work.write(new="yours")
    for name in ("new", "old"):
        work.undo(name)
        assert work.text("old") == "yours"
        assert not (work.tree / "new").exists()
        work.redo()
        assert work.text("new") == "yours"
        assert not (work.tree / "old").exists()
    work.write(new="yours", old="mine")
    for paths in ((), ("new",)):
        plan = work.project.plan_undo(paths=paths)
        assert [conflict.raw_path for conflict in plan.conflicts] == [b"new", b"old"]
        assert of_remark(plan.conflicts[0]) == "its old name `old` conflicts"
