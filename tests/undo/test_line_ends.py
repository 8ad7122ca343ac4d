"""Merges keep lines byte for byte, however lines end."""

from random import Random

import pytest

from cases import Work
from takeback.errors import ConflictError

TEXT = b"".join(b"line %d\n" % number for number in range(12))
BOM = b"\xef\xbb\xbf"
FILES = 150


def windows(text: bytes) -> bytes:
    """The same text with the line ends of Windows."""
    return text.replace(b"\n", b"\r\n")


def undone(work: Work, before: bytes, left: bytes, now: bytes) -> bytes:
    """What a file becomes when a turn is undone that found `before` and left `left`."""
    work.put("file", before)
    with work.turn():
        work.put("file", left)
    work.put("file", now)
    work.undo()
    return (work.tree / "file").read_bytes()


def test_one_plain_line_in_a_windows_file_is_no_conflict(work: Work) -> None:
    """An editor adds one line that ends in LF to a CRLF file: that line stays, the rest too."""
    before = windows(TEXT)
    left = before.replace(b"line 3", b"by the turn")
    assert undone(work, before, left, left + b"mine\n") == before + b"mine\n"


def test_a_plain_line_of_the_turn_goes_alone(work: Work) -> None:
    """The turn adds LF lines to a CRLF file: only those are taken back."""
    before = windows(TEXT)
    left = before + b"by the turn\n"
    now = left.replace(b"line 2\r\n", b"mine\r\n")
    assert undone(work, before, left, now) == before.replace(b"line 2\r\n", b"mine\r\n")


def test_mixed_ends_come_back_as_they_were(work: Work) -> None:
    """The turn gives all lines the same end: the old ends return, and no CR is doubled."""
    before = windows(TEXT).replace(b"line 3\r\n", b"line 3\n")
    now = windows(TEXT).replace(b"line 9\r\n", b"mine\r\n")
    assert undone(work, before, windows(TEXT), now) == before.replace(b"line 9", b"mine")


def test_a_file_that_was_converted_since_keeps_its_new_ends(work: Work) -> None:
    """You convert the whole file to CRLF: what comes back has the ends of the file as it is."""
    left = TEXT.replace(b"line 3", b"by the turn")
    now = windows(left).replace(b"line 9", b"mine")
    assert undone(work, TEXT, left, now) == windows(TEXT).replace(b"line 9", b"mine")
    left = windows(left)
    now = left.replace(b"\r\n", b"\n").replace(b"line 9", b"mine")
    assert undone(work, windows(TEXT), left, now) == TEXT.replace(b"line 9", b"mine")


def test_a_file_that_was_converted_but_for_a_line(work: Work) -> None:
    """You convert all lines but one: no line of yours gets another end."""
    left = TEXT.replace(b"line 3", b"by the turn")
    now = windows(left).replace(b"line 9\r\n", b"mine\n")
    wanted = windows(TEXT).replace(b"line 3\r\n", b"line 3\n").replace(b"line 9\r\n", b"mine\n")
    assert undone(work, TEXT, left, now) == wanted


def test_the_end_of_the_last_line(work: Work) -> None:
    """An editor adds the newline that the last line lacked: no conflict, and it stays."""
    before = TEXT[:-1]
    left = before.replace(b"line 10", b"by the turn")
    assert undone(work, before, left, left + b"\n") == TEXT


def test_the_same_line_is_a_conflict_with_the_ends_of_the_file(work: Work) -> None:
    """A line that both changed is a conflict of that line alone, also where the ends differ."""
    left = TEXT.replace(b"line 3", b"by the turn")
    with pytest.raises(ConflictError):
        undone(work, TEXT, left, windows(left).replace(b"by the turn", b"mine"))
    work.project.undo(decide="markers")
    marked = (work.tree / "file").read_bytes()
    assert marked.startswith(windows(b"line 0\nline 1\nline 2\n<<<<<<< "))
    assert marked.count(b"\r\n") == marked.count(b"\n") == 12 + 2 + 4
    assert b"\r\r" not in marked


# -- any texts --------------------------------------------------------------------------------


class Texts:
    """Texts of a few lines that end in any way, and edits of them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.usual = chance.choice((0, 0, 1, 1, 0.2, 0.8))

    def lines(self) -> list[bytes]:
        """Some lines, several of them alike."""
        return [b"line %d" % self.chance.randrange(9) for _ in range(self.chance.randrange(12))]

    def edited(self, lines: list[bytes]) -> list[bytes]:
        """The same with one or two edits, or none."""
        lines = list(lines)
        for _ in range(self.chance.randrange(3)):
            at, new = self.chance.randrange(len(lines) + 1), b"new %d" % self.chance.randrange(99)
            lines[at : at + self.chance.randrange(2)] = [new] * self.chance.randrange(2)
        return lines

    def text(self, lines: list[bytes]) -> bytes:
        """Lines with ends, the last perhaps without; perhaps with a byte order mark."""
        chance = self.chance
        share = self.usual if chance.random() < 0.6 else chance.choice((0, 1, 0.2, 0.8))
        ends = [b"\r\n" if chance.random() < share else b"\n" for _ in lines]
        text = b"".join(line + end for line, end in zip(lines, ends, strict=True))
        if chance.random() < 0.15:
            text = text.removesuffix(b"\n").removesuffix(b"\r")
        return (BOM if chance.random() < 0.1 else b"") + text


def split(text: bytes) -> list[bytes]:
    """Lines with their ends."""
    return text.removeprefix(BOM).splitlines(keepends=True)


def ends(text: bytes) -> set[bytes]:
    """The ways in which lines end."""
    return {line[len(line.rstrip(b"\r\n")) :] for line in split(text)} - {b""}


def ends_by_line(text: bytes) -> dict[bytes, bytes]:
    """The end of each line that is there once."""
    bodies = [(line.rstrip(b"\r\n"), line) for line in split(text)]
    every = [body for body, _ in bodies]
    return {body: line[len(body) :] for body, line in bodies if every.count(body) == 1}


@pytest.mark.parametrize("seed", range(2))
def test_any_merge_has_only_lines_of_its_sides(work: Work, seed: int) -> None:
    """Clean merges hold lines of the three sides, byte for byte, and untouched ends stay.

    One exception: if each side has one way to end lines and the file was converted since, what
    comes back is converted, too.
    """
    chance = Random(seed)
    sides: dict[str, tuple[bytes, bytes, bytes]] = {}
    for number in range(FILES):
        texts = Texts(chance)
        lines = texts.lines()
        before, now = texts.edited(lines), texts.edited(lines)
        sides[f"file{number}"] = texts.text(lines), texts.text(now), texts.text(before)
    for name, (_, _, theirs) in sides.items():
        work.put(name, theirs)
    with work.turn():
        for name, (base, _, _) in sides.items():
            work.put(name, base)
    for name, (_, ours, _) in sides.items():
        work.put(name, ours)
    report = work.project.undo(decide="skip-conflicts")
    merged = [change.raw_path.decode() for change in report.plan.changes if change.verb == "merge"]
    assert len(merged) > FILES // 4
    for name in merged:
        check(sides[name], (work.tree / name).read_bytes())


def check(sides: tuple[bytes, bytes, bytes], merged: bytes) -> None:
    """What holds of one clean merge."""
    _, ours, theirs = sides
    shown = (*sides, merged)
    assert merged.startswith(BOM) == ours.startswith(BOM), shown
    known = {line for side in sides for line in split(side)}
    was_converted = len(ends(ours)) == len(ends(theirs)) == 1 and ends(ours) != ends(theirs)
    if was_converted:
        known |= {line.rstrip(b"\r\n") + next(iter(ends(ours))) for line in split(theirs)}
    # What was the last line without an end may have got one, for it is not the last any more.
    known |= {
        side.removeprefix(BOM).rpartition(b"\n")[2] + end
        for side in sides
        for end in (b"\n", b"\r\n")
    }
    assert set(split(merged)) <= known, shown
    told = [ends_by_line(side) for side in shown]
    for body in set(told[0]).intersection(*told[1:]):
        was, mine, back, now = (each[body] for each in told)
        # A last line without an end gets one where others follow it.
        assert now == mine or not mine or (mine == was and now == back), shown
