"""Every combination of what a turn did and what happened since, taken back: see `merge_table`.

Whatever comes of it, not a byte that somebody wrote is missing from both the tree and the store.
"""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import merge_table
import takeback
from cases import Work
from merge_table import CELLS, CONFLICT, GONE, KEPT, NEVER, TURNS, file, picture, put
from spoken import of_remark

ROOT = Path(__file__).resolve().parents[2]
ALSO = "also.txt"
WAS, BECAME = file("as it was\n"), file("as the turn left it\n")
"""Each turn edits this, too, and nobody else: it comes back, or nothing does."""
YOU, OTHER = "you", "another session"
OTHERS_PROMPT = "something else"

COMBINATIONS = [key for key, cell in CELLS.items() if cell.outcome != NEVER]
CONFLICTS = [key for key in COMBINATIONS if CELLS[key].outcome == CONFLICT]


class Played:
    """A turn and what happened since, ready to be taken back."""

    def __init__(self, work: Work, turn: str, since: str, by: str) -> None:
        self.work = work
        deed = TURNS[turn]
        put(work.tree, {**deed.before, ALSO: WAS})
        self.before = picture(work.tree)
        with work.turn() as begun:
            deed.act(work.tree)
            (work.tree / ALSO).write_text(BECAME[1])
        self.turn = begun.id
        self._happens_since(turn, since, by)
        self.now = picture(work.tree)

    def _happens_since(self, turn: str, since: str, by: str) -> None:
        steps = merge_table.since(turn, since)
        if by == YOU:
            for step in steps:
                step(self.work.tree, TURNS[turn].left)
                self.work.checkpoint()
        elif steps:
            session = self.work.project.session("other")
            with session.turn(OTHERS_PROMPT) as other:
                for step in steps:
                    step(self.work.tree, TURNS[turn].left)
                    other.checkpoint()

    def undo(self, decide: str = "") -> takeback.Report:
        """Take the turn back; whatever was there before is in the store."""
        report = self.work.project.undo(self.turn, decide=decide)
        kept = self.work.tree.parent / f"kept-{decide}"
        self.work.project.extract(report.before, kept)
        assert picture(kept) == self.now
        return report

    def refused(self, decide: str = "") -> takeback.ConflictError:
        """Try to take it back; nothing is changed."""
        with pytest.raises(takeback.ConflictError) as refusal:
            self.work.project.undo(self.turn, decide=decide, yes=True)
        assert picture(self.work.tree) == self.now
        return refusal.value


@pytest.fixture(params=[YOU, OTHER])
def by(request: pytest.FixtureRequest) -> str:
    """Who changed it since."""
    return str(request.param)


@pytest.mark.parametrize(("turn", "since"), COMBINATIONS)
def test_each_combination(work: Work, turn: str, since: str, by: str) -> None:
    """The tree is what the table says, and what is not as one might think is said."""
    cell, played = CELLS[turn, since], Played(work, turn, since, by)
    if cell.outcome == CONFLICT:
        refusal = played.refused()
        assert refusal.exit_code == 3
        assert is_about_it(os.fsencode(path) for path, _ in refusal.conflicts)
        return
    report = played.undo()
    assert picture(work.tree) == {**cell.tree, ALSO: WAS}
    told = [remark.raw_path for remark in report.plan.kept]
    assert is_about_it(told) or cell.outcome not in (KEPT, GONE)
    work.project.redo()
    assert picture(work.tree) == played.now


def is_about_it(paths: "Iterator[bytes] | list[bytes]") -> bool:
    """Whether anything is said of the path in question, or of what became of it."""
    return any(path.split(b"/")[0] in (b"f", b"g", b"h") for path in paths)


@pytest.mark.parametrize(("turn", "since"), CONFLICTS)
def test_a_conflict_says_who_did_what(work: Work, turn: str, since: str, by: str) -> None:
    """The plan names the conflict and whose change is in the way, and has no change at it."""
    played = Played(work, turn, since, by)
    plan = work.project.plan_undo(played.turn)
    reasons = " / ".join(of_remark(conflict) for conflict in plan.conflicts)
    if CELLS[turn, since].in_the_way is None:
        assert ("you" if by == YOU else OTHERS_PROMPT) in reasons
    else:
        assert "move it away" in reasons
    in_doubt = {conflict.path for conflict in plan.conflicts}
    assert not in_doubt & {change.path for change in plan.changes}


@pytest.mark.parametrize("decision", ["keep-mine", "skip-conflicts"])
@pytest.mark.parametrize(("turn", "since"), CONFLICTS)
def test_a_conflict_that_is_left(work: Work, turn: str, since: str, by: str, decision: str) -> None:
    """What conflicts stays as it is and is named, and the rest is taken back."""
    played = Played(work, turn, since, by)
    plan = played.undo(decision).plan
    in_the_way = CELLS[turn, since].in_the_way
    left = in_the_way if in_the_way is not None else played.now
    assert picture(work.tree) == {**left, ALSO: WAS}
    told = plan.kept if decision == "keep-mine" else plan.skipped
    assert is_about_it([remark.raw_path for remark in told])
    assert not plan.conflicts


@pytest.mark.parametrize(("turn", "since"), CONFLICTS)
def test_a_conflict_that_is_taken_back(work: Work, turn: str, since: str, by: str) -> None:
    """What conflicts becomes what it was before the turn; what you made of it is in the store.

    What is in the way, and nobody may remove, stays a conflict.
    """
    played = Played(work, turn, since, by)
    if CELLS[turn, since].in_the_way is not None:
        played.refused("take-back")
        return
    played.undo("take-back")
    assert picture(work.tree) == {**CELLS[turn, since].tree, ALSO: WAS}
    work.project.redo()
    assert picture(work.tree) == played.now


@pytest.mark.parametrize(("turn", "since"), CONFLICTS)
def test_a_conflict_that_is_marked(work: Work, turn: str, since: str, by: str) -> None:
    """A text gets both sides and what was there between marks; what is no text stays undecided."""
    played = Played(work, turn, since, by)
    if not CELLS[turn, since].is_text:
        played.refused("markers")
        return
    played.undo("markers")
    now = picture(work.tree)
    assert now.pop(ALSO) == WAS
    (marked,) = now.values()
    sides = ["<<<<<<< ", "||||||| ", "=======\n", ">>>>>>> "]
    places = [marked[1].index(side) for side in sides]
    assert places == sorted(places)
    mine, left, old = (marked[1][a:b] for a, b in pairwise(places))
    assert merge_table.YOUR_LINE in mine or merge_table.YOUR_TEXT in mine
    assert merge_table.TURNS_LINE in left
    assert "line three\n" in old
    work.project.redo()
    assert picture(work.tree) == played.now


def test_the_table_is_the_documented_one() -> None:
    """The document shows the table that is tested."""
    lines = (ROOT / "docs/undo.md").read_text().splitlines()
    table = merge_table.as_document()
    assert table[0] in lines
    begin = lines.index(table[0])
    assert lines[begin : begin + len(table)] == table
    assert not lines[begin + len(table)].startswith("|")


# -- texts -------------------------------------------------------------------------------------

Sides = tuple[bytes, bytes, bytes, bytes | None]
"""Before the turn, as it left it, as you made it; and what undo makes of it, None if it asks."""

_OLD, _LEFT, _MINE, _MERGED = (
    merge_table.text(*lines).encode()
    for lines in (
        (),
        (merge_table.TURNS_LINE,),
        (merge_table.TURNS_LINE, merge_table.YOUR_LINE),
        ("three", merge_table.YOUR_LINE),
    )
)
_BOM = b"\xef\xbb\xbf"


def crlf(content: bytes) -> bytes:
    """With the line ends of Windows."""
    return content.replace(b"\n", b"\r\n")


def utf16(content: bytes) -> bytes:
    """In another encoding, which has NUL bytes."""
    return content.decode().encode("utf-16")


def latin(content: bytes) -> bytes:
    """With letters that are no UTF-8."""
    return content.replace(b"line six", "line sechsunddreißig".encode("latin-1"))


TEXTS: dict[str, Sides] = {
    "CRLF throughout": (crlf(_OLD), crlf(_LEFT), crlf(_MINE), crlf(_MERGED)),
    "you made it CRLF": (_OLD, _LEFT, crlf(_MINE), crlf(_MERGED)),
    "you made it LF": (crlf(_OLD), crlf(_LEFT), _MINE, _MERGED),
    "the turn made it CRLF": (_OLD, crlf(_LEFT), crlf(_MINE), crlf(_MERGED)),
    "the turn made it LF": (crlf(_OLD), _LEFT, _MINE, _MERGED),
    "no last line end": (_OLD[:-1], _LEFT[:-1], _MINE[:-1], _MERGED[:-1]),
    "you took the last line end": (_OLD, _LEFT, _MINE[:-1], _MERGED[:-1]),
    "you gave it a last line end": (_OLD[:-1], _LEFT[:-1], _MINE, _MERGED),
    "the turn took the last line end": (_OLD, _LEFT[:-1], _MINE[:-1], _MERGED[:-1]),
    "CRLF without the last one": (
        crlf(_OLD[:-1]),
        crlf(_LEFT[:-1]),
        crlf(_MINE[:-1]),
        crlf(_MERGED[:-1]),
    ),
    "byte order mark throughout": (_BOM + _OLD, _BOM + _LEFT, _BOM + _MINE, _BOM + _MERGED),
    "you added a byte order mark": (_OLD, _LEFT, _BOM + _MINE, _BOM + _MERGED),
    "you removed the byte order mark": (_BOM + _OLD, _BOM + _LEFT, _MINE, _MERGED),
    "the turn removed the byte order mark": (_BOM + _OLD, _LEFT, _MINE, _MERGED),
    "Latin-1": (latin(_OLD), latin(_LEFT), latin(_MINE), latin(_MERGED)),
    "UTF-16": (utf16(_OLD), utf16(_LEFT), utf16(_MINE), None),
    "a NUL byte": (_OLD, _LEFT + b"\0", _MINE + b"\0", None),
}


@pytest.mark.parametrize("what", TEXTS)
def test_texts_stay_in_your_manner(work: Work, what: str) -> None:
    """Line ends, byte order mark and encoding are those of the text as you have it."""
    old, left, mine, merged = TEXTS[what]
    work.put("f", old)
    with work.turn():
        work.put("f", left)
    work.put("f", mine)
    if merged is None:
        with pytest.raises(takeback.ConflictError):
            work.undo()
        assert (work.tree / "f").read_bytes() == mine
        return
    work.undo()
    assert (work.tree / "f").read_bytes() == merged
    work.redo()
    assert (work.tree / "f").read_bytes() == mine


def test_what_is_mixed_stays_mixed(work: Work) -> None:
    """In a text with both kinds of line ends, no line that nobody touched gets another one."""
    old, left, mine = (each.replace(b"five\n", b"five\r\n") for each in (_OLD, _LEFT, _MINE))
    work.put("f", old)
    with work.turn():
        work.put("f", left)
    work.put("f", mine)
    work.undo()
    assert (work.tree / "f").read_bytes() == _MERGED.replace(b"five\n", b"five\r\n")


def test_a_merged_file_keeps_your_mode(work: Work) -> None:
    """The mode that you gave a file stays, whatever becomes of its text."""
    work.put("f", _OLD)
    with work.turn():
        work.put("f", _LEFT)
    work.put("f", _MINE, 0o600)
    work.undo()
    assert (work.tree / "f").read_bytes() == _MERGED
    assert work.mode("f") == 0o600
