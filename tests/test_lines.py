"""The line differ, against the definition of a difference, a plain table, and git."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takeback.model import lines

LINE = st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"  x\n", b"}\n", b"a\r\n"])
TEXT = st.builds(
    lambda body, last: b"".join(body) + last,
    st.lists(LINE, max_size=14),
    st.sampled_from([b"", b"a", b"b", b" "]),
)
LETTERS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), max_size=60)


def applied(old: list[bytes], new: list[bytes]) -> list[bytes]:
    """What the blocks make of the old lines; fails if something equal is not equal."""
    made: list[bytes] = []
    at = at_new = 0
    for start, end, start_new, end_new in lines.blocks(old, new):
        assert old[at:start] == new[at_new:start_new]
        assert (start, start_new) != (end, end_new), "an empty block"
        made += old[at:start] + new[start_new:end_new]
        at, at_new = end, end_new
    return made + old[at:]


def longest_common(old: list[bytes], new: list[bytes]) -> int:
    """The length of a longest common subsequence, by the table of the textbook."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row[:]
        for at, other in enumerate(new):
            row[at + 1] = above[at] + 1 if line == other else max(above[at + 1], row[at])
    return row[-1]


def kept(old: list[bytes], new: list[bytes]) -> int:
    """How many lines the blocks leave alone."""
    return len(old) - sum(end - start for start, end, _, _ in lines.blocks(old, new))


@given(TEXT, TEXT)
@example(b"", b"")
@example(b"a", b"a\n")
@example(b"x\na\n", b"a\n")
@example(b"a\na\n", b"a\n")
@example(b"b\nca\n", b"b\na\n")
def test_blocks_make_the_new_text_of_the_old_one(old: bytes, new: bytes) -> None:
    """Applying the difference gives the new text, and no shorter difference exists."""
    before, after = lines.split(old), lines.split(new)
    assert b"".join(applied(before, after)) == new
    common = longest_common(before, after)
    assert kept(before, after) == common
    assert lines.count(old, new) == (len(after) - common, len(before) - common)


@given(LETTERS, LETTERS)
def test_each_way_of_comparing_is_exact(old: list[bytes], new: list[bytes]) -> None:
    """Rows of bits and the walk through the edit graph both find a longest common subsequence."""
    common = longest_common(old, new)
    by_bits = bytearray(len(old)), bytearray(len(new))
    gap = (0, len(old), 0, len(new))
    rows, columns = lines._in_both(old, new, gap)
    lines._longest_common(old, new, rows, columns, by_bits)
    assert (sum(by_bits[0]), sum(by_bits[1])) == (common, common)
    by_walk = bytearray(len(old)), bytearray(len(new))
    if lines._few_edits(old, new, gap, by_walk):
        assert (sum(by_walk[0]), sum(by_walk[1])) == (common, common)
    else:
        assert len(old) + len(new) - 2 * common > lines._FEW


@given(LETTERS, LETTERS, st.lists(st.integers(0, 400), max_size=40, unique=True))
@settings(max_examples=60)
def test_beyond_the_bound_a_difference_is_still_right(
    old: list[bytes], new: list[bytes], unique: list[int]
) -> None:
    """With a bound of nearly nothing, the blocks still make the new text of the old one."""
    marks = [b"%d\n" % number for number in unique]
    before, after = old + marks + new, new + marks[::-1] + marks + old
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_EXACT", 8)
        patch.setattr(lines, "_SMALL", 0)
        patch.setattr(lines, "_FEW", 1)
        assert applied(before, after) == after


def test_lines_that_occur_once_keep_large_texts_apart() -> None:
    """Too large for the exact way, a text with many edits is still compared nearly exactly."""
    old = [b"%d\n" % number for number in range(30_000)]
    new = [line for number, line in enumerate(old) if number % 50]
    new[7000:7000] = [b"new\n"] * 100
    blocks = lines.blocks(old, new)
    assert applied(old, new) == new
    assert sum(end - start for start, end, _, _ in blocks) == 600
    assert sum(end - start for _, _, start, end in blocks) == 100


@given(st.lists(st.tuples(TEXT, TEXT), min_size=20, max_size=20))
@settings(max_examples=8)
def test_counts_are_those_of_git(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes, bytes]]
) -> None:
    """`git diff --numstat` counts the same lines."""
    folder = tmp_path_factory.mktemp("git")
    for side in (0, 1):
        (folder / "ab"[side]).mkdir()
        for number, pair in enumerate(pairs):
            (folder / "ab"[side] / str(number)).write_bytes(pair[side])
    assert numstat(folder) == {
        str(number): lines.count(old, new) for number, (old, new) in enumerate(pairs) if old != new
    }


def numstat(folder: Path) -> dict[str, tuple[int, int] | None]:
    """What git counts between the folders `a` and `b`."""
    done = subprocess.run(
        ["git", "diff", "--no-index", "--minimal", "--no-renames", "--numstat", "a", "b"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[str, tuple[int, int] | None] = {}
    for line in done.stdout.splitlines():
        added, removed, path = line.split("\t")
        name = path.rpartition("/")[2].rstrip("}")
        found[name] = None if added == "-" else (int(added), int(removed))
    return found


def test_git_tells_binary_files_the_same_way(tmp_path: Path) -> None:
    """A NUL among the first 8000 bytes of either text makes the difference one of binary files."""
    pairs = [
        (b"a\n", b"a\0\n"),
        (b"x" * 7999 + b"\0", b"y"),
        (b"x" * 8000 + b"\0", b"y"),
        (b"\0", b""),
    ]
    for side in (0, 1):
        (tmp_path / "ab"[side]).mkdir()
        for number, pair in enumerate(pairs):
            (tmp_path / "ab"[side] / str(number)).write_bytes(pair[side])
    assert numstat(tmp_path) == {str(n): lines.count(*pair) for n, pair in enumerate(pairs)}


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=9000))
@settings(max_examples=60)
def test_any_bytes_can_be_counted(old: bytes, new: bytes, around: bytes) -> None:
    """The counts are those of the blocks, whatever the bytes and whatever surrounds the change."""
    before, after = around + old + around, around + new + around
    counted = lines.count(before, after)
    if lines.is_binary(before) or lines.is_binary(after):
        assert counted is None
        return
    blocks = lines.blocks(lines.split(before), lines.split(after))
    added = sum(end - start for _, _, start, end in blocks)
    removed = sum(end - start for start, end, _, _ in blocks)
    assert counted is not None
    assert counted[0] - counted[1] == added - removed
    assert counted == (added, removed)


def test_an_inserted_function_is_shown_whole() -> None:
    """Of the places where an insertion could stand, the one that people would choose is taken."""
    old = lines.split(b"def a():\n    x\n\n\ndef c():\n    x\n")
    new = lines.split(b"def a():\n    x\n\n\ndef b():\n    x\n\n\ndef c():\n    x\n")
    assert lines.blocks(old, new) == [(4, 4, 4, 8)]
    assert new[4] == b"def b():\n"


def test_hunks_join_what_lies_close() -> None:
    """Blocks with up to twice the context between them are shown as one."""
    near, far = (10, 11, 10, 11), (18, 18, 18, 19)
    assert lines.hunks([(0, 1, 0, 1), near, (17, 18, 17, 18)]) == [
        [(0, 1, 0, 1)],
        [near, (17, 18, 17, 18)],
    ]
    assert lines.hunks([near, far]) == [[near], [far]]
    assert lines.hunks([]) == []


def test_words_inside_of_lines() -> None:
    """A word that changed is marked, and nothing else."""
    old, new = b"limit = first(10, name)\n", b"limit = first(25, name)\n"
    before, after = lines.changed_words([old], [new])
    changed = [word for word, is_new in zip(lines.words(new), after[0], strict=True) if is_new]
    assert changed == [b"25"]
    assert before[0].count(True) == 1
    assert b"".join(lines.words("für\t{x}\n".encode())) == "für\t{x}\n".encode()


# -- time --------------------------------------------------------------------------------------


def shortest(work: Callable[[], object], turns: int = 3) -> float:
    """How long something takes at best."""
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def hostile() -> dict[str, tuple[list[bytes], list[bytes]]]:
    """Texts of 100,000 lines that a careless differ never finishes."""
    count = 100_000
    numbers = [b"%d\n" % number for number in range(count)]
    others = [b"x%d\n" % number for number in range(count)]
    few = [b"%d\n" % (number * number % 7) for number in range(count)]
    fewer = [b"%d\n" % (number * number % 11 % 7) for number in range(count)]
    return {
        "all different": (numbers, others),
        "all equal": ([b"a\n"] * count, [b"a\n"] * (count - 10)),
        "reversed": (numbers, numbers[::-1]),
        "seven lines over and over": (few, fewer),
        "equal lines with holes": ([b"a\n"] * count, [b"a\n", b"b\n"] * (count // 2)),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_texts_take_a_bounded_time(name: str) -> None:
    """A hundred thousand lines take at most so many times as long as looking each one up."""
    old, new = hostile()[name]
    unit = shortest(lambda: [line in known for known in (set(old), set(new)) for line in old])
    taken = shortest(lambda: lines.blocks(old, new), turns=1)
    assert taken < 150 * unit + 0.2
    assert applied(old, new) == new


def test_a_small_edit_in_a_large_text_costs_little() -> None:
    """Counting it takes less time than splitting the two texts into lines."""
    old = b"".join(b"line %d\n" % number for number in range(50_000))
    new = old.replace(b"line 25000\n", b"another\nand one\n")
    assert lines.count(old, new) == (2, 1)
    splitting = shortest(lambda: (lines.split(old), lines.split(new)))
    assert shortest(lambda: lines.count(old, new)) < splitting
