"""Where two texts differ, line by line. Lines are split and binary files told as in `git diff`.

What both texts begin and end with is set aside first, as bytes, so that a small edit in a large
file costs little. What is left is compared exactly: few edits by walking the edit graph (Myers),
else by the longest common subsequence, computed on whole rows of bits at once. Above a bound on
the work the texts are cut at lines that occur once in each (patience), and where there are none,
everything in between is said to be replaced: still a correct difference, only not the smallest.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Block = tuple[int, int, int, int]
    Gap = tuple[int, int, int, int]
    Kept = tuple[bytearray, bytearray]
    Snakes = tuple["Snakes", int, int, int] | None

BINARY_WITHIN = 8000
"""A NUL among so many bytes at the beginning makes a file binary, as in git."""

_PIECE = 4096
_FEW = 40
"""Edits up to which the edit graph is walked: some thousand steps at most."""
_SMALL = 1 << 16
"""Pairs of lines up to which rows of bits are always faster than walking the graph."""
_EXACT = 1 << 27
"""Pairs of lines up to which the exact answer is worth 50 ms and 16 MiB."""
_DEEPEST = 6
"""How often a gap is cut at lines that occur once in it."""
_SLIDE = 200
"""How many places to look at where one and the same insertion could be shown."""


def is_binary(data: bytes) -> bool:
    """Whether a file is no text, as git tells it."""
    return 0 in data[:BINARY_WITHIN]


def split(data: bytes) -> "list[bytes]":
    """The lines of a text, each with its newline; only the last may lack one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def count(old: bytes, new: bytes) -> "tuple[int, int] | None":
    """How many lines were added and removed; None if either text is binary."""
    if is_binary(old) or is_binary(new):
        return None
    if old == new:
        return 0, 0
    start, end_old, end_new = _middle(old, new)
    before, after = split(old[start:end_old]), split(new[start:end_new])
    kept = sum(_kept(before, after)[0])
    return len(after) - kept, len(before) - kept


def blocks(old: "Sequence[bytes]", new: "Sequence[bytes]") -> "list[Block]":
    """The places where two lists differ, in order: (start, end) in `old`, (start, end) in `new`.

    What lies between the blocks is equal. Each block is slid to where people would put it.
    """
    kept_old, kept_new = _kept(old, new)
    found: list[Block] = []
    at_old = at_new = 0
    while True:
        first_old, first_new = kept_old.find(0, at_old), kept_new.find(0, at_new)
        if first_old < 0 and first_new < 0:
            return _slid(old, new, found)
        equal = min(
            first_old - at_old if first_old >= 0 else len(old),
            first_new - at_new if first_new >= 0 else len(new),
        )
        at_old, at_new = at_old + equal, at_new + equal
        end_old, end_new = kept_old.find(1, at_old), kept_new.find(1, at_new)
        end_old = end_old if end_old >= 0 else len(old)
        end_new = end_new if end_new >= 0 else len(new)
        found.append((at_old, end_old, at_new, end_new))
        at_old, at_new = end_old, end_new


def hunks(changed: "Sequence[Block]", context: int = 3) -> "list[list[Block]]":
    """Blocks in groups that are shown together: those whose surroundings would touch."""
    grouped: list[list[Block]] = []
    for block in changed:
        if grouped and block[0] - grouped[-1][-1][1] <= 2 * context:
            grouped[-1].append(block)
        else:
            grouped.append([block])
    return grouped


# -- what both begin and end with --------------------------------------------------------------


def _middle(old: bytes, new: bytes) -> "tuple[int, int, int]":
    """Where the first line that differs starts, and where the last one ends in each text."""
    start = old.rfind(b"\n", 0, _same_beginning(old, new)) + 1
    most = min(len(old), len(new)) - start
    same = _same_end(old, new, most)
    end = old.find(b"\n", len(old) - same) + 1
    # A line that only ends alike is another line; the ones after it are the same.
    tail = len(old) - end if end and same else 0
    return start, len(old) - tail, len(new) - tail


def _same_beginning(old: bytes, new: bytes) -> int:
    """How many bytes are the same from the start; the piece that differs is halved."""
    at, end, step = 0, min(len(old), len(new)), _PIECE
    while step and at < end:
        if old[at : at + step] == new[at : at + step]:
            at += step
        else:
            step //= 2
    return min(at, end)


def _same_end(old: bytes, new: bytes, most: int) -> int:
    """How many bytes, `most` at most, are the same up to the end."""
    a, b, same, step = len(old), len(new), 0, _PIECE
    while step:
        if (
            same + step <= most
            and old[a - same - step : a - same] == new[b - same - step : b - same]
        ):
            same += step
        else:
            step //= 2
    return same


# -- which lines are kept ----------------------------------------------------------------------


def _kept(old: "Sequence[bytes]", new: "Sequence[bytes]") -> "Kept":
    """For each line whether it is in both texts; the n-th kept line of one is that of the other."""
    kept = bytearray(len(old)), bytearray(len(new))
    gaps = [(0, len(old), 0, len(new), 0)]
    while gaps:
        *gap, depth = gaps.pop()
        a, a_end, b, b_end = _trim(old, new, gap, kept)
        if a == a_end or b == b_end:
            continue
        size = (a_end - a) * (b_end - b)
        if size > _SMALL and _few_edits(old, new, (a, a_end, b, b_end), kept):
            continue
        rows, columns = _in_both(old, new, (a, a_end, b, b_end))
        if len(rows) * len(columns) <= _EXACT:
            _longest_common(old, new, rows, columns, kept)
        elif depth < _DEEPEST:
            anchors = _unique_anchors(old, new, rows, columns)
            ends = [*anchors, (a_end, b_end)] if anchors else []
            for start, end in zip([(a, b), *anchors], ends, strict=False):
                gaps.append((start[0], end[0], start[1], end[1], depth + 1))
    return kept


def _trim(
    old: "Sequence[bytes]", new: "Sequence[bytes]", gap: "Sequence[int]", kept: "Kept"
) -> "Gap":
    """Keep what a gap begins and ends with in both texts; return what is left of it."""
    a, a_end, b, b_end = gap
    while a < a_end and b < b_end and old[a] == new[b]:
        kept[0][a] = kept[1][b] = 1
        a, b = a + 1, b + 1
    while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
        a_end, b_end = a_end - 1, b_end - 1
        kept[0][a_end] = kept[1][b_end] = 1
    return a, a_end, b, b_end


def _few_edits(old: "Sequence[bytes]", new: "Sequence[bytes]", gap: "Gap", kept: "Kept") -> bool:
    """Find the fewest edits by walking the edit graph; False if there are too many of them.

    `reach` tells for each diagonal how far one gets with the edits made so far, and the runs of
    equal lines on the way there.
    """
    a, a_end, b, b_end = gap
    width, height = a_end - a, b_end - b
    reach: dict[int, tuple[int, Snakes]] = {1: (0, None)}
    for edits in range(_FEW + 1):
        for diagonal in range(-edits, edits + 1, 2):
            above, left = reach.get(diagonal + 1, (-1, None)), reach.get(diagonal - 1, (-1, None))
            x, snakes = above if left[0] < above[0] else (left[0] + 1, left[1])
            start, y = x, x - diagonal
            while x < width and y < height and old[a + x] == new[b + y]:
                x, y = x + 1, y + 1
            if x > start:
                snakes = (snakes, start, start - diagonal, x - start)
            if x >= width and y >= height:
                _keep_snakes(snakes, a, b, kept)
                return True
            reach[diagonal] = (x, snakes)
    return False


def _keep_snakes(snakes: "Snakes", a: int, b: int, kept: "Kept") -> None:
    while snakes is not None:
        snakes, x, y, length = snakes
        kept[0][a + x : a + x + length] = b"\1" * length
        kept[1][b + y : b + y + length] = b"\1" * length


def _in_both(
    old: "Sequence[bytes]", new: "Sequence[bytes]", gap: "Gap"
) -> "tuple[list[int], list[int]]":
    """The lines of a gap that occur on both sides; the others cannot be kept anyway."""
    a, a_end, b, b_end = gap
    of_old, of_new = set(old[a:a_end]), set(new[b:b_end])
    rows = [at for at in range(a, a_end) if old[at] in of_new]
    return rows, [at for at in range(b, b_end) if new[at] in of_old]


def _longest_common(
    old: "Sequence[bytes]",
    new: "Sequence[bytes]",
    rows: "list[int]",
    columns: "list[int]",
    kept: "Kept",
) -> None:
    """Keep a longest common subsequence of the given lines.

    One integer holds a row of the usual table: a bit is clear where the length grows from one
    column to the next. Adding integers moves the whole row on at once.
    """
    bits: dict[bytes, int] = {}
    for place, at in enumerate(columns):
        bits[new[at]] = bits.get(new[at], 0) | 1 << place
    full = row = (1 << len(columns)) - 1
    size = len(columns) // 8 + 1
    table = [row.to_bytes(size, "little")]
    for at in rows:
        same = row & bits[old[at]]
        row = (row + same | row - same) & full
        table.append(row.to_bytes(size, "little"))
    down, right = len(rows), len(columns)
    while down and right:
        place, bit = right - 1 >> 3, 1 << (right - 1 & 7)
        if table[down][place] & bit:
            right -= 1
            continue
        down -= 1
        if table[down][place] & bit:
            right -= 1
            kept[0][rows[down]] = kept[1][columns[right]] = 1


def _unique_anchors(
    old: "Sequence[bytes]", new: "Sequence[bytes]", rows: "list[int]", columns: "list[int]"
) -> "list[tuple[int, int]]":
    """Lines that occur once on each side, as many as are in the same order on both."""
    where = _once(new, columns)
    pairs = [(at, where[line]) for line, at in _once(old, rows).items() if line in where]
    return _longest_rising(pairs)


def _once(lines: "Sequence[bytes]", places: "list[int]") -> "dict[bytes, int]":
    """Where the lines are that occur only once, in order."""
    found: dict[bytes, int] = {}
    for at in places:
        found[lines[at]] = -1 if lines[at] in found else at
    return {line: at for line, at in found.items() if at >= 0}


def _longest_rising(pairs: "list[tuple[int, int]]") -> "list[tuple[int, int]]":
    """The longest selection of pairs in which the second number rises, too."""
    from bisect import bisect_left

    lowest: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, value) in enumerate(pairs):
        length = bisect_left(lowest, value)
        before.append(last[length - 1] if length else -1)
        lowest[length : length + 1] = [value]
        last[length : length + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


# -- how it is shown ---------------------------------------------------------------------------


def _slid(old: "Sequence[bytes]", new: "Sequence[bytes]", found: "list[Block]") -> "list[Block]":
    """Move insertions and deletions that could stand in several places to the best of them."""
    moved: list[Block] = []
    for number, block in enumerate(found):
        a, a_end, b, b_end = block
        # At least one line stays between two blocks; else they would be one.
        above = b - moved[-1][3] - 1 if moved else b
        below = found[number + 1][0] - a_end - 1 if number + 1 < len(found) else len(old) - a_end
        if a == a_end:
            by = _best_place(new, b, b_end, above, below)
        elif b == b_end:
            by = _best_place(old, a, a_end, above, below)
        else:
            by = 0
        moved.append((a + by, a_end + by, b + by, b_end + by))
    return moved


def _best_place(lines: "Sequence[bytes]", start: int, end: int, above: int, below: int) -> int:
    """By how much to slide lines `start` to `end`, given how many equal lines are around them.

    The best block begins with the least indented line that is not blank; of equals, the lowest.
    """
    up = 0
    while up < min(above, _SLIDE) and lines[start - up - 1] == lines[end - up - 1]:
        up += 1
    down = 0
    while down < min(below, _SLIDE) and lines[start + down] == lines[end + down]:
        down += 1
    return min(range(-up, down + 1), key=lambda by: (*_depth(lines[start + by]), -by))


def _depth(line: bytes) -> "tuple[bool, int]":
    """Whether a line is blank, and how far it is indented."""
    text = line.lstrip()
    return not text, len(line) - len(text)


# -- inside of lines ---------------------------------------------------------------------------


def words(line: bytes) -> "list[bytes]":
    """A line in pieces: words, blanks, and every other sign by itself."""
    import re

    return re.findall(rb"[0-9A-Za-z_\x80-\xff]+|[ \t]+|[^0-9A-Za-z_\x80-\xff \t]", line)


def changed_words(
    old: "Sequence[bytes]", new: "Sequence[bytes]"
) -> "tuple[list[list[bool]], list[list[bool]]]":
    """For each word of each line of a replaced block whether it is another one."""
    of_old, of_new = [words(line) for line in old], [words(line) for line in new]
    flat_old = [word for line in of_old for word in line]
    flat_new = [word for line in of_new for word in line]
    kept_old, kept_new = _kept(flat_old, flat_new)
    return _dealt(of_old, kept_old), _dealt(of_new, kept_new)


def _dealt(per_line: "list[list[bytes]]", kept: bytearray) -> "list[list[bool]]":
    at, dealt = 0, []
    for line in per_line:
        dealt.append([not flag for flag in kept[at : at + len(line)]])
        at += len(line)
    return dealt
