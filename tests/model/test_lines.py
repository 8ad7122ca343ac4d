"""Differences of texts, against the definition of a difference, a plain table, and git."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takeback.disk import libgit2
from takeback.model.text import lines

LINE = st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"  x\n", b"}\n", b"a\r\n"])
TEXT = st.builds(
    lambda body, last: b"".join(body) + last,
    st.lists(LINE, max_size=14),
    st.sampled_from([b"", b"a", b"b", b" "]),
)


def applied(old: bytes, new: bytes) -> bytes:
    """What the blocks make of the old text; fails if something equal is not equal."""
    before, after = lines.split(old), lines.split(new)
    made: list[bytes] = []
    at = at_new = 0
    for start, end, start_new, end_new in libgit2.blocks(old, new):
        assert before[at:start] == after[at_new:start_new]
        assert (start, start_new) != (end, end_new), "an empty block"
        made += before[at:start] + after[start_new:end_new]
        at, at_new = end, end_new
    return b"".join(made + before[at:])


def longest_common(old: list[bytes], new: list[bytes]) -> int:
    """The length of a longest common subsequence, by the table of the textbook."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row[:]
        for at, other in enumerate(new):
            row[at + 1] = above[at] + 1 if line == other else max(above[at + 1], row[at])
    return row[-1]


@given(TEXT, TEXT)
@example(b"", b"")
@example(b"a", b"a\n")
@example(b"x\na\n", b"a\n")
@example(b"a\na\n", b"a\n")
@example(b"b\nca\n", b"b\na\n")
def test_blocks_make_the_new_text_of_the_old_one(old: bytes, new: bytes) -> None:
    """Applying the difference gives the new text, and no shorter difference exists."""
    assert applied(old, new) == new
    before, after = lines.split(old), lines.split(new)
    common = longest_common(before, after)
    assert libgit2.count(old, new) == (len(after) - common, len(before) - common)


def test_lines_that_occur_once_keep_large_texts_apart() -> None:
    """Too large for the exact way, a text with many edits is still compared nearly exactly."""
    old = [b"%d\n" % number for number in range(30_000)]
    new = [line for number, line in enumerate(old) if number % 50]
    new[7000:7000] = [b"new\n"] * 100
    texts = b"".join(old), b"".join(new)
    assert applied(*texts) == texts[1]
    assert libgit2.count(*texts) == (100, 600)


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
        str(number): libgit2.count(old, new)
        for number, (old, new) in enumerate(pairs)
        if old != new
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
    assert numstat(tmp_path) == {str(n): libgit2.count(*pair) for n, pair in enumerate(pairs)}


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=9000))
@settings(max_examples=60)
def test_any_bytes_can_be_counted(old: bytes, new: bytes, around: bytes) -> None:
    """The difference applies, whatever the bytes and whatever surrounds the change."""
    before, after = around + old + around, around + new + around
    counted = libgit2.count(before, after)
    if lines.is_binary(before) or lines.is_binary(after):
        assert counted is None
        return
    assert applied(before, after) == after
    assert counted is not None
    assert counted[0] - counted[1] == len(lines.split(after)) - len(lines.split(before))


def test_an_inserted_function_is_shown_whole() -> None:
    """Of the places where an insertion could stand, the one that people would choose is taken."""
    old = b"def a():\n    x\n\n\ndef c():\n    x\n"
    new = b"def a():\n    x\n\n\ndef b():\n    x\n\n\ndef c():\n    x\n"
    assert libgit2.blocks(old, new) == [(4, 4, 4, 8)]
    around = b"line\n" * 10_000
    assert libgit2.blocks(around + old, around + new) == [(10_004, 10_004, 10_004, 10_008)]


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
    before, after = libgit2.changed_words([old], [new])
    changed = [word for word, is_new in zip(lines.words(new), after[0], strict=True) if is_new]
    assert changed == [b"25"]
    assert before[0].count(True) == 1
    assert b"".join(lines.words("für\t{x}\n".encode())) == "für\t{x}\n".encode()


# -- time --------------------------------------------------------------------------------------


def shortest(work: Callable[[], object], turns: int = 3) -> float:
    """How long something takes at best."""
    times = []
    for _ in range(turns):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


HOSTILE = (
    "all different",
    "all equal",
    "reversed",
    "seven lines over and over",
    "equal lines with holes",
)


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


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_a_bounded_time(name: str) -> None:
    """A hundred thousand lines take at most so many times as long as looking each one up."""
    old, new = hostile()[name]
    texts = b"".join(old), b"".join(new)
    unit = shortest(lambda: [line in known for known in (set(old), set(new)) for line in old])
    taken = shortest(lambda: libgit2.blocks(*texts), turns=1)
    assert taken < 150 * unit + 0.2
    assert applied(*texts) == texts[1]


def test_a_small_edit_in_a_large_text_costs_little() -> None:
    """Counting it takes less time than splitting the two texts into lines."""
    old = b"".join(b"line %d\n" % number for number in range(50_000))
    new = old.replace(b"line 25000\n", b"another\nand one\n")
    assert libgit2.count(old, new) == (2, 1)
    splitting = shortest(lambda: (lines.split(old), lines.split(new)))
    assert shortest(lambda: libgit2.count(old, new)) < splitting
