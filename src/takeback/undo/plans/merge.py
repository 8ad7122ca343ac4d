"""What becomes of a path that somebody changed after the turn that is taken back.

    base     as the turn left it
    theirs   as it was before the turn: where undo wants to go
    ours     as it is now: what you, or another session, made of it

| the turn        | since then                | undo                                         |
|-----------------|---------------------------|----------------------------------------------|
| created it      | changed                   | kept with your text, and said                |
| edited it       | edited elsewhere          | merged                                       |
| edited it       | edited in the same place  | conflict                                     |
| edited it       | deleted                   | stays deleted, and said                      |
| edited it       | became another kind       | conflict                                     |
| deleted it      | made anew                 | conflict                                     |
| changed a mode  | edited                    | your text, the old mode                      |
| closed it       | edited                    | conflict: others could read what you wrote   |
| edited it       | mode changed              | the old text, your mode                      |
| another kind    | changed                   | conflict                                     |
| a binary, a link| changed                   | conflict                                     |

Lines are merged byte for byte. Where that clashes and sides end their lines in different ways,
the endings do not count: what is in *ours* keeps its own. The byte order mark is that of *ours*.
"""

import os

from takeback.errors import UsageError
from takeback.model import reasons, words
from takeback.model.plan import FORCED, GONE, OPEN, SETTLED, Hunk
from takeback.model.text import lines
from takeback.model.tree import FOLDER, REGULAR, Entry, UnstoredFile, is_same
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from takeback.model.plan import Decisions
    from takeback.model.text.lines import Block

    Read = Callable[[Entry], bytes | None]

    Span = tuple[int, int]
    """From and up to a line."""

_LABELS = (b"as the turn left it", b"as it is now", b"before the turn")
_LABELS_OF_REDO = (b"as the undo left it", b"as it is now", b"before the undo")
LEAVING = (words.KEEP_MINE, words.SKIP)
_WHY = {
    words.KEEP_MINE: SETTLED,
    words.SKIP: OPEN,
    words.TAKE_BACK: FORCED,
    words.MARKERS: FORCED,
}
"""What a decision makes of a hunk."""
_BOM = b"\xef\xbb\xbf"
_LARGEST = 10 << 20
_OPEN = 0o6066
"""What lets others read or write a file, or run it in somebody's name."""


class Kept(Value):
    """The path stays as it is; `reason` is the code why."""

    reason: str


class Clash(Value):
    """Somebody has to decide about the whole path."""

    reason: str


def outcome(
    base: "Entry | None", theirs: "Entry | None", ours: "Entry | None", read: "Read"
) -> "Entry | Kept | Clash | TextMerge":
    """What a path becomes that is neither as the turn left it nor as it was before."""
    if ours is None:
        return Kept(reasons.DELETED_SINCE)
    if theirs is None:
        return Kept(reasons.MADE_AND_CHANGED)
    if base is None:
        return Clash(reasons.MADE_ANEW)
    if not base.kind == theirs.kind == ours.kind:
        return Clash(reasons.OTHER_KIND)
    if ours.kind == REGULAR:
        return _of_files(base, theirs, ours, read)
    is_folder = ours.kind == FOLDER
    return Kept(reasons.MODE_SINCE) if is_folder else Clash(reasons.OTHER_TARGET)


def _of_files(base: Entry, theirs: Entry, ours: Entry, read: "Read") -> "Entry | Clash | TextMerge":
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    if ours.strong == base.strong:
        return _with_mode(theirs, mode)
    if theirs.strong == ours.strong:
        return _with_mode(ours, mode)
    if mode & ~ours.mode & _OPEN:
        return Clash(reasons.CLOSED_AND_CHANGED)
    if theirs.strong == base.strong:
        return _with_mode(ours, mode)
    return merge_files(base, theirs, ours, mode, read)


def merge_files(
    base: Entry, theirs: Entry, ours: Entry, mode: int, read: "Read"
) -> "Clash | TextMerge":
    """Merge three texts line by line."""
    sides = (base, ours, theirs)
    if max(side.size for side in sides) > _LARGEST:
        return Clash(reasons.TOO_LARGE_TO_MERGE)
    texts = [read(side) for side in sides]
    if any(text is None or b"\0" in text for text in texts):
        return Clash(reasons.NO_TEXT)
    old, mine, wanted = (text or b"" for text in texts)
    return TextMerge(old, mine, wanted, mode)


# -- texts, hunk by hunk -------------------------------------------------------------------------


class Region(Value):
    """A place that a side changed: its lines in each text.

    `blocks` are what the turn did there: lines as it left them, and as they were before. If `ours`
    and `theirs` are the same by now, nothing is left to be taken back.
    """

    base: "Span"
    ours: "Span"
    theirs: "Span"
    blocks: "tuple[Block, ...]" = ()
    is_mine: bool = False
    is_same: bool = False

    @property
    def clashes(self) -> bool:
        return self.is_mine and bool(self.blocks) and not self.is_same


class TextMerge:
    """Three texts, and each place where they differ; what becomes of it is chosen hunk by hunk.

    Lines are compared as they are; if that clashes, also as if all of them ended alike: whole files
    may end their lines in another way since, or one line may. Every line that is in *ours* stays as
    it is there, to the byte.
    """

    reason = reasons.SAME_LINES

    def __init__(self, base: bytes, ours: bytes, theirs: bytes, mode: int) -> None:
        self.mode = mode
        self._mark = _BOM if ours.startswith(_BOM) else b""
        self._sides = [text.removeprefix(_BOM) for text in (base, ours, theirs)]
        self._compared = self._sides
        self.regions = _regions(*self._sides)
        if not self.is_clean:
            plain = [_plain(text) for text in self._sides]
            if plain != self._sides:
                self._compared, self.regions = plain, _regions(*plain)
        self._lines = [lines.split(text) for text in self._compared]

    @property
    def is_clean(self) -> bool:
        return not any(region.clashes for region in self.regions)

    @property
    def hunks(self) -> "list[Region]":
        """What the turn changed, also where nothing is left of it: so they are counted alike."""
        return [region for region in self.regions if region.blocks]

    @property
    def gone(self) -> "list[Block]":
        """What the turn did and is not there any more."""
        return [block for region in self.regions if region.is_same for block in region.blocks]

    def text(
        self, choices: "Sequence[str]", labels: "tuple[bytes, bytes, bytes]" = _LABELS
    ) -> bytes:
        """The text, with what was chosen for each hunk: as wanted, mine, or both with markers."""
        data = b"".join(self._pieces(choices, labels))
        if self._compared is not self._sides:
            ours, theirs = self._sides[1:]
            endings = _endings_of(ours) or {b"\n"}
            if words.MARKERS not in choices or len(endings) > 1:
                data = _with_endings(data, ours, theirs)
            else:
                data = _marked(data, ours, endings.pop())
        return self._mark + data

    def _pieces(
        self, choices: "Sequence[str]", labels: "tuple[bytes, bytes, bytes]"
    ) -> "Iterator[bytes]":
        chosen = iter(choices)
        base, ours, theirs = self._lines
        at = 0
        for region in self.regions:
            yield from base[at : region.base[0]]
            at = region.base[1]
            choice = next(chosen) if region.blocks else words.KEEP_MINE
            if choice == words.TAKE_BACK:
                yield from theirs[slice(*region.theirs)]
            elif choice == words.MARKERS and region.clashes:
                yield b"<<<<<<< " + labels[1] + b"\n"
                yield from map(_ended, ours[slice(*region.ours)])
                yield b"||||||| " + labels[0] + b"\n"
                yield from map(_ended, base[slice(*region.base)])
                yield b"=======\n"
                yield from map(_ended, theirs[slice(*region.theirs)])
                yield b">>>>>>> " + labels[2] + b"\n"
            else:
                yield from ours[slice(*region.ours)]
        yield from base[at:]

    def rest(self, choices: "Sequence[str]") -> "Iterator[tuple[str, tuple[Block, ...]]]":
        """What the choices leave of the turn, and what they take over others' lines."""
        found = {GONE: self.gone}
        for region, choice in zip(self.hunks, choices, strict=True):
            is_chosen = region.clashes or choice in LEAVING
            if is_chosen and choice and not region.is_same:
                found.setdefault(_WHY[choice], []).extend(region.blocks)
        return ((why, tuple(blocks)) for why, blocks in found.items() if blocks)

    def marked(self, labels: "tuple[bytes, bytes, bytes]") -> bytes:
        """The text with both versions of each place that clashes."""
        return self.text(
            [words.MARKERS if each.clashes else words.TAKE_BACK for each in self.hunks], labels
        )

    def told(self, first: int) -> "Iterator[Hunk]":
        """The hunks as values, numbered from `first` on."""
        base, ours, theirs = self._lines
        index, at, written = first, 0, 0
        for region in self.regions:
            written += region.base[0] - at
            at = region.base[1]
            sides = (
                tuple(base[slice(*region.base)]),
                tuple(ours[slice(*region.ours)]),
                tuple(theirs[slice(*region.theirs)]),
            )
            if region.blocks:
                line = region.ours[0] + 1
                yield Hunk(index, line, *sides, region.clashes, written)
                index += 1
            if region.clashes:
                written += 4 + sum(map(len, sides))
            else:
                written += len(sides[2] if region.blocks else sides[1])


def has_markers(text: bytes) -> bool:
    """Whether a text still holds conflict markers that we wrote."""
    begins = b"\n<<<<<<< " + _LABELS[1]
    return begins in b"\n" + text[: len(begins)] or begins in text


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _regions(base: bytes, ours: bytes, theirs: bytes) -> "list[Region]":
    """Where two texts differ from a third; what overlaps or touches is one place."""
    from takeback.disk import libgit2

    changed = [(block, True) for block in libgit2.blocks(base, ours)]
    changed += [(block, False) for block in libgit2.blocks(base, theirs)]
    changed.sort(key=lambda each: each[0][:2])
    groups: list[list[tuple[Block, bool]]] = []
    end = -1
    for block, is_mine in changed:
        if block[0] > end:
            groups.append([])
        groups[-1].append((block, is_mine))
        end = max(end, block[1])
    texts = [lines.split(ours), lines.split(theirs)]
    mine = wanted = 0  # how many more lines each side has up to here
    found = []
    for group in groups:
        span = group[0][0][0], max(block[1] for block, _ in group)
        blocks = tuple(block for block, is_mine in group if not is_mine)
        own = [block for block, is_mine in group if is_mine]
        begins = span[0] + mine, span[0] + wanted
        mine = own[-1][3] - own[-1][1] if own else mine
        wanted = blocks[-1][3] - blocks[-1][1] if blocks else wanted
        here, there = (begins[0], span[1] + mine), (begins[1], span[1] + wanted)
        same = bool(own and blocks) and texts[0][slice(*here)] == texts[1][slice(*there)]
        found.append(Region(span, here, there, blocks, bool(own), same))
    return found


def without(after: bytes, before: bytes, left: "Sequence[Block]") -> bytes:
    """The text before a change, with those of its blocks that are left of it."""
    new, old = lines.split(after), lines.split(before)
    found, at = [], 0
    for a, a_end, b, b_end in sorted(left):
        found += [*old[at:b], *new[a:a_end]]
        at = b_end
    return b"".join([*found, *old[at:]])


def _marked(data: bytes, ours: bytes, ending: bytes) -> bytes:
    """A text with both sides in it, in the manner of *ours*."""
    if not ours.endswith((b"\n", b"\r")) and data.endswith(b"\n"):
        data = data[:-1]
    return data.replace(b"\n", ending)


def _with_endings(data: bytes, ours: bytes, theirs: bytes) -> bytes:
    """A merge of plain lines with the endings that these lines have in the sides.

    What comes back from *theirs* gets the endings of *ours* if each side has one way to end
    lines, and they differ: then somebody gave the whole file other endings.
    """
    mine, wanted = lines.split(ours), lines.split(theirs)
    merged = lines.split(data)
    known, other = _endings_of(ours), _endings_of(theirs)
    ending = known.pop() if len(known) == 1 else b""
    is_converted = bool(ending) and len(other) == 1 and ending not in other
    found: list[bytes] = []
    from_ours, from_theirs = _sources(mine, merged), _sources(wanted, merged)
    for at, line in enumerate(merged):
        if at in from_ours:
            found.append(mine[from_ours[at]])
        elif at in from_theirs:
            back = wanted[from_theirs[at]]
            is_ended = is_converted and back.endswith(b"\n")
            found.append(_body(back) + ending if is_ended else back)
        else:
            found.append(line)
    for at, line in enumerate(found[:-1]):
        # It was the last line of its side, and is not the last one any more.
        found[at] = line if line.endswith(b"\n") else line + (ending or b"\n")
    return b"".join(found)


def _sources(side: "list[bytes]", merged: "list[bytes]") -> "dict[int, int]":
    """Which line of a side stands where in a merge."""
    from takeback.disk import libgit2

    found: dict[int, int] = {}
    old = new = 0
    end = (len(side), 0, 0, 0)
    blocks = libgit2.blocks(b"".join(_plain_lines(side)), b"".join(merged))
    for start, after, _, next_new in (*blocks, end):
        found |= {new + step: old + step for step in range(start - old)}
        old, new = after, next_new
    return found


def _plain(text: bytes) -> bytes:
    """A text with the ending of lines that all systems know, also after the last."""
    return b"".join(_plain_lines(lines.split(text)))


def _plain_lines(text: "list[bytes]") -> "list[bytes]":
    return [_body(line) + b"\n" for line in text]


def _body(line: bytes) -> bytes:
    return line.removesuffix(b"\r\n") if line.endswith(b"\r\n") else line.removesuffix(b"\n")


def _endings_of(text: bytes) -> "set[bytes]":
    """The ways in which lines of a text end."""
    windows, every = text.count(b"\r\n"), text.count(b"\n")
    found = {b"\r\n"} if windows else set()
    return found | {b"\n"} if every > windows else found


def _with_mode(entry: Entry, mode: int) -> Entry:
    if entry.mode == mode:
        return entry
    return Entry(
        entry.name,
        mode,
        entry.flags,
        entry.size,
        entry.strong,
        entry.mtime,
        entry.oid,
    )


def clashing(found: "Clash | TextMerge") -> "tuple[str, object]":
    """What of *ours* is in the way: the lines of each place, or the reason alone."""
    if isinstance(found, Clash):
        return found.reason, ()
    return found.reason, tuple(hunk.ours for hunk in found.told(0) if hunk.clashes)


class Merging:
    """Merges what somebody changed since, and knows what was decided."""

    def __init__(self, read: "Read", decisions: "Decisions", otherwise: str = "") -> None:
        self._read = read
        self._decisions = decisions
        self._otherwise = otherwise
        self._by_hunk = {key[0] for key in decisions if isinstance(key, tuple)}
        self.labels = _LABELS

    def for_redo(self) -> None:
        """Call the sides what they are when an undo is put back."""
        self.labels = _LABELS_OF_REDO

    def outcome(
        self,
        base: "Entry | None",
        theirs: "Entry | None",
        ours: "Entry | None",
        *,
        by_hunk: bool = False,
    ) -> "Entry | Kept | Clash | TextMerge":
        """What a path becomes that is neither as it was left nor as it was before.

        `by_hunk` also tells the hunks of a text that is as it was left.
        """
        if by_hunk and base and theirs and ours and (is_same(base, ours) or is_same(ours, theirs)):
            found = merge_files(base, theirs, ours, theirs.mode, self.content)
            return theirs if isinstance(found, Clash) else found
        return outcome(base, theirs, ours, self.content)

    @property
    def is_anew(self) -> bool:
        """Whether all was decided alike: then also what somebody decided before."""
        return bool(self._otherwise)

    def decision(self, path: bytes) -> str:
        """What was decided for a path; empty if nothing was."""
        return self._decisions.get(path, self._otherwise)

    def is_by_hunk(self, path: bytes) -> bool:
        """Whether hunks of a path were decided by themselves."""
        return path in self._by_hunk

    def require_known(self, hunks: "Mapping[bytes, int]") -> None:
        """An error if something was decided about a hunk that there is not."""
        for key in self._decisions:
            if isinstance(key, tuple) and not 0 <= key[1] < hunks.get(key[0], 0):
                path = os.fsdecode(key[0])
                raise UsageError(
                    f"`{path}` has no hunk {key[1]}",
                    hint="`Plan.conflicts` and `Plan.changes` have the hunks of each path",
                )

    def choice(self, path: bytes, hunk: Hunk) -> str:
        """What was decided for a hunk; what does not clash is taken back unless it was named."""
        otherwise = self.decision(path) if hunk.clashes else words.TAKE_BACK
        return self._decisions.get((path, hunk.index), otherwise)

    def content(self, entry: Entry) -> "bytes | None":
        return entry.content if isinstance(entry, UnstoredFile) else self._read(entry)
