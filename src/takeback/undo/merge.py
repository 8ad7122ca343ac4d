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

from takeback.model import lines, reasons
from takeback.model.tree import FOLDER, REGULAR, Entry, UnstoredFile
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Read = Callable[[Entry], bytes | None]
    Merge = Callable[[bytes, bytes, bytes], tuple[bytes, bool]]

_LABELS = (b"as the turn left it", b"as it is now", b"before the turn")
_LABELS_OF_REDO = (b"as the undo left it", b"as it is now", b"before the undo")
_BOM = b"\xef\xbb\xbf"
_LARGEST = 10 << 20
_OPEN = 0o6066
"""What lets others read or write a file, or run it in somebody's name."""


class Kept(Value):
    """The path stays as it is; `reason` is the code why."""

    reason: str


class Clash(Value):
    """Somebody has to decide; `marked` is the text with both sides in it, if it is a text."""

    reason: str
    marked: "bytes | None" = None


def outcome(
    base: "Entry | None",
    theirs: "Entry | None",
    ours: "Entry | None",
    read: "Read",
    merge: "Merge",
) -> "Entry | Kept | Clash":
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
        return _of_files(base, theirs, ours, read, merge)
    is_folder = ours.kind == FOLDER
    return Kept(reasons.MODE_SINCE) if is_folder else Clash(reasons.OTHER_TARGET)


def _of_files(
    base: Entry, theirs: Entry, ours: Entry, read: "Read", merge: "Merge"
) -> "Entry | Clash":
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    if ours.strong == base.strong:
        return _with_mode(theirs, mode)
    if theirs.strong == ours.strong:
        return _with_mode(ours, mode)
    if mode & ~ours.mode & _OPEN:
        return Clash(reasons.CLOSED_AND_CHANGED)
    if theirs.strong == base.strong:
        return _with_mode(ours, mode)
    return _of_texts((base, ours, theirs), mode, read, merge)


def _of_texts(
    sides: "tuple[Entry, Entry, Entry]", mode: int, read: "Read", merge: "Merge"
) -> "Entry | Clash":
    if max(side.size for side in sides) > _LARGEST:
        return Clash(reasons.TOO_LARGE_TO_MERGE)
    texts = [read(side) for side in sides]
    if any(text is None or b"\0" in text for text in texts):
        return Clash(reasons.NO_TEXT)
    old, mine, wanted = (text or b"" for text in texts)
    data, clean = merge_texts(old, mine, wanted, merge)
    return UnstoredFile(data, mode) if clean else Clash(reasons.SAME_LINES, data)


def merge_texts(base: bytes, ours: bytes, theirs: bytes, merge: "Merge") -> "tuple[bytes, bool]":
    """Merge texts as they are; if that clashes, also as if all their lines ended alike.

    Whole files may end their lines in another way since, or one line may: that is no reason to
    clash. Every line that is in *ours* stays as it is there, to the byte.
    """
    mark = _BOM if ours.startswith(_BOM) else b""
    sides = [text.removeprefix(_BOM) for text in (base, ours, theirs)]
    data, clean = merge(*sides)
    plain = sides if clean else [_plain(text) for text in sides]
    if plain != sides:
        data, clean = merge(*plain)
        endings = _endings_of(ours) or {b"\n"}
        if clean or len(endings) > 1:
            data = _with_endings(data, sides[1], sides[2])
        else:
            data = _marked(data, ours, endings.pop())
    return mark + data, clean


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


def clashing(clash: Clash) -> "tuple[str, tuple[bytes, ...]]":
    """What of *ours* is in the way: the lines between markers, or the reason alone."""
    parts = (b"\n" + (clash.marked or b"")).split(b"\n<<<<<<< " + _LABELS[1])[1:]
    return clash.reason, tuple(part.partition(b"\n||||||| ")[0] for part in parts)


class Merging:
    """Merges what somebody changed since, or finds out that somebody has to decide."""

    def __init__(self, read: "Read", decisions: "Mapping[bytes, str]", otherwise: str = "") -> None:
        self._read = read
        self._decisions = decisions
        self._otherwise = otherwise
        self._labels = _LABELS

    def for_redo(self) -> None:
        """Call the sides what they are when an undo is put back."""
        self._labels = _LABELS_OF_REDO

    def outcome(
        self, base: "Entry | None", theirs: "Entry | None", ours: "Entry | None"
    ) -> "Entry | Kept | Clash":
        """What a path becomes that is neither as it was left nor as it was before."""
        return outcome(base, theirs, ours, self._content, self._by_libgit2)

    def decision(self, path: bytes) -> str:
        """What was decided for a path; empty if nothing was."""
        return self._decisions.get(path, self._otherwise)

    def _content(self, entry: Entry) -> "bytes | None":
        return entry.content if isinstance(entry, UnstoredFile) else self._read(entry)

    def _by_libgit2(self, base: bytes, ours: bytes, theirs: bytes) -> "tuple[bytes, bool]":
        # Loaded only when a path really needs a merge.
        from takeback.disk import libgit2

        merged = libgit2.merge(base, ours, theirs, self._labels)
        return merged.data, merged.clean
