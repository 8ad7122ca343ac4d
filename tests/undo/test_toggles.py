"""Undone and put back again and again: the tree is right each time, and the cost does not grow."""

import sys
from collections.abc import Callable

from cases import Work
from oracle import Picture

TOGGLES = 20
GROWTH = 1.5
"""How many calls more may be by chance: some looks have to read what was just written."""


def counted(do: Callable[[], object]) -> int:
    """How many functions are called to do something."""
    calls = [0]

    def count(_: object, event: str, __: object) -> None:
        calls[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        do()
    finally:
        sys.setprofile(before)
    return calls[0]


class Toggle:
    """Undoes and redoes the same, and looks at the tree after each."""

    def __init__(self, work: Work, undo: Callable[[], object], redo: Callable[[], object]) -> None:
        self.work = work
        self.both = (undo, redo)
        self.there = work.picture()
        self.back: Picture = {}

    def run(self, toggles: int, growth: float) -> None:
        """Toggle so often; no toggle may cost more than so many times what the second did."""
        second = (0, 0)
        for number in range(1, toggles + 1):
            if number in (2, 3, 4, toggles // 2, toggles):
                calls = (counted(self.undo), counted(self.redo))
                second = second if any(second) else calls
                assert calls[0] <= growth * second[0], (number, calls, second)
                assert calls[1] <= growth * second[1], (number, calls, second)
            else:
                self.undo()
                self.redo()

    def undo(self) -> None:
        """The tree becomes what the first undo made of it."""
        self.both[0]()
        found = self.work.picture()
        self.back = self.back or found
        assert found == self.back

    def redo(self) -> None:
        """The tree becomes what it was before all."""
        self.both[1]()
        assert self.work.picture() == self.there


def turns_on_their_own(work: Work, count: int) -> None:
    """Turns that change a file each; one file is made, one deleted, and one renamed."""
    for number in range(count):
        work.put(f"file{number}", f"before {number}\n")
    for number in range(count):
        with work.turn(f"turn {number}"):
            work.put(f"file{number}", f"after {number}\n")
            if number == 0:
                work.put("new/made", "made\n")
                work.move("file1", "moved")
                work.remove("file2")
                work.put("file2.bak", "other\n")
                work.move("moved", "file1")


def turns_in_one_file(work: Work, count: int) -> None:
    """Turns that change a line each of one file, in which you change a line afterwards."""
    lines = [f"line {number}\n" for number in range(4 * count)]
    work.put("file", "".join(lines))
    for number in range(count):
        with work.turn(f"turn {number}"):
            lines[4 * number] = f"by turn {number}\n"
            work.put("file", "".join(lines))
    lines[2] = "mine\n"
    work.put("file", "".join(lines))


def test_one_turn_is_toggled(work: Work) -> None:
    """The twentieth toggle of one turn costs as the second; before and after are as they were."""
    work.write(a="before\n", b="before\n")
    before = work.picture()
    with work.turn("edit"):
        work.write(a="after\n", c="made\n")
        work.remove("b")
    toggle = Toggle(work, work.undo, work.redo)
    toggle.back = before
    toggle.run(TOGGLES, GROWTH)


def test_twenty_turns_are_toggled(work: Work) -> None:
    """The twentieth toggle of twenty turns at once costs as the second."""
    turns_on_their_own(work, 20)
    toggle = Toggle(work, lambda: work.project.undo(whole_session=work.session.id), work.redo)
    toggle.run(TOGGLES, GROWTH)
    assert all(toggle.work.text(f"file{n}") == f"after {n}\n" for n in range(3, 20))
    toggle.undo()
    assert all(toggle.work.text(f"file{n}") == f"before {n}\n" for n in range(20))
    assert work.has_none("new", "file2.bak", "moved")


def test_twenty_turns_in_one_file_are_toggled(work: Work) -> None:
    """So does it where all changed one file, and your own line in it stays each time."""
    turns_in_one_file(work, 20)
    toggle = Toggle(work, lambda: work.project.undo(whole_session=work.session.id), work.redo)
    toggle.run(6, GROWTH)
    work.project.undo(whole_session=work.session.id)
    plain = [f"line {number}\n" for number in range(80)]
    plain[2] = "mine\n"
    assert work.text("file") == "".join(plain)


def test_turns_are_toggled_while_you_edit_the_same_file(work: Work) -> None:
    """A line that you change between two toggles makes neither of them, nor later ones, dearer."""
    turns_in_one_file(work, 6)
    mine = 0

    def edit() -> None:
        nonlocal mine
        mine += 1
        work.put("file", work.text("file").replace("line 3\n", f"mine {mine}\nline 3\n"))

    costs = []
    for _ in range(8):
        edit()
        costs.append(counted(lambda: work.project.undo(whole_session=work.session.id)))
        assert "by turn" not in work.text("file")
        edit()
        work.redo()
        assert all(f"by turn {number}\n" in work.text("file") for number in range(6))
    assert all(f"mine {number}\n" in work.text("file") for number in range(1, mine + 1))
    assert costs[-1] <= GROWTH * costs[1], costs


def test_turns_of_which_something_is_left_are_toggled(work: Work) -> None:
    """Where a conflict is skipped each time, what is left is walked over; that is no explosion."""
    turns_on_their_own(work, 5)
    work.put("file4", "mine\n")
    decided = {"whole_session": work.session.id, "decide": "skip-conflicts"}
    toggle = Toggle(work, lambda: work.project.undo(**decided), work.redo)  # type: ignore[arg-type]
    toggle.run(8, 3)
    assert work.text("file4") == "mine\n"


def test_turns_that_are_put_back_one_by_one(work: Work) -> None:
    """Undone together, put back one by one: again and again, at a cost that does not explode."""
    turns_in_one_file(work, 3)
    turns = [turn.id for turn in work.project.log().turns]

    def redo() -> None:
        for turn in turns:
            work.redo(turn=turn)

    Toggle(work, lambda: work.project.undo(whole_session=work.session.id), redo).run(4, 3)


def test_a_turn_that_goes_on_after_many_toggles(work: Work) -> None:
    """What a turn does after it was toggled is undone with the rest, and so is the rest."""
    work.write(a="0\n", b="0\n")
    before = work.picture()
    with work.turn("first"):
        work.write(b="1\n")
    turn = work.session.turn("second")
    work.write(a="1\n")
    work.checkpoint()
    for _ in range(5):
        work.project.undo(whole_session=work.session.id)
        work.redo()
    work.write(a="2\n", c="2\n")
    turn.end()
    there = work.picture()
    for _ in range(3):
        work.project.undo(whole_session=work.session.id)
        assert work.picture() == before
        work.redo()
        assert work.picture() == there


def test_toggles_around_gc_and_forget(work: Work) -> None:
    """Nothing that the next toggle needs is collected; what is forgotten does not come back."""
    turns_on_their_own(work, 4)
    toggle = Toggle(work, lambda: work.project.undo(whole_session=work.session.id), work.redo)
    toggle.run(4, GROWTH)
    work.project.gc()
    toggle.run(4, GROWTH)
    toggle.undo()
    work.project.gc()
    toggle.redo()
    work.project.forget(["file3"])
    there = work.picture()
    for _ in range(3):
        work.project.undo(whole_session=work.session.id)
        assert all(work.text(f"file{n}") == f"before {n}\n" for n in range(3))
        work.redo()
        assert {p: e for p, e in work.picture().items() if p != b"file3"} == {
            p: e for p, e in there.items() if p != b"file3"
        }
    assert work.project.upkeep.examine()[0] == ()
