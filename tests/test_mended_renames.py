"""The search for renamed files is bounded as git bounds it; the same content is always found."""

import shutil
import time

import takeback
from cases import Work

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
    """What an undo would do, and what it costs to find out."""
    begun = time.process_time()
    plan = work.project.plan_undo()
    return plan, time.process_time() - begun


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
    planned(work)
    plan, deleted = planned(work)
    assert (plan.changes, plan.conflicts) == ((), ())
    write(work, "moved", range(MANY), first="by the turn", last="mine")
    work.checkpoint()
    plan, moved = planned(work)
    assert moved < 8 * deleted + 0.2, (moved, deleted)
    assert (plan.changes, plan.conflicts) == ((), ())
    kept = {remark.path: remark.reason for remark in plan.kept}
    assert all(kept[b"old/%04d" % number] == "deleted since by you" for number in range(MANY))
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
