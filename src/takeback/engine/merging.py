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

Line endings, the byte order mark and the end of the last line stay as they are in *ours*.
"""

from takeback.model.made import Made
from takeback.model.terms import YOU
from takeback.model.tree import FOLDER, REGULAR, Entry

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


class Kept:
    """The path stays as it is, and why."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Clash:
    """Somebody has to decide; `marked` is the text with both sides in it, if it is a text."""

    __slots__ = ("marked", "reason")

    def __init__(self, reason: str, marked: "bytes | None" = None) -> None:
        self.reason = reason
        self.marked = marked


def outcome(
    base: "Entry | None",
    theirs: "Entry | None",
    ours: "Entry | None",
    read: "Read",
    merge: "Merge",
) -> "Entry | Kept | Clash":
    """What a path becomes that is neither as the turn left it nor as it was before."""
    if ours is None:
        return Kept("deleted since")
    if theirs is None:
        return Kept("made by this turn and kept, for it was changed since")
    if base is None:
        return Clash("deleted by this turn and made anew since")
    if not base.kind == theirs.kind == ours.kind:
        return Clash("made another kind of entry since")
    if ours.kind == REGULAR:
        return _of_files(base, theirs, ours, read, merge)
    is_folder = ours.kind == FOLDER
    return Kept("its mode was changed since") if is_folder else Clash("led elsewhere since")


def _of_files(
    base: Entry, theirs: Entry, ours: Entry, read: "Read", merge: "Merge"
) -> "Entry | Clash":
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    if ours.strong == base.strong:
        return _with_mode(theirs, mode)
    if theirs.strong == ours.strong:
        return _with_mode(ours, mode)
    if mode & ~ours.mode & _OPEN:
        return Clash("closed to others by this turn, and changed since")
    if theirs.strong == base.strong:
        return _with_mode(ours, mode)
    return _of_texts((base, ours, theirs), mode, read, merge)


def _of_texts(
    sides: "tuple[Entry, Entry, Entry]", mode: int, read: "Read", merge: "Merge"
) -> "Entry | Clash":
    if max(side.size for side in sides) > _LARGEST:
        return Clash("too large to be merged, and changed since")
    texts = [read(side) for side in sides]
    if any(text is None or b"\0" in text for text in texts):
        return Clash("no text that could be merged, and changed since")
    old, mine, wanted = (text or b"" for text in texts)
    data, clean = merge_texts(old, mine, wanted, merge)
    return Made(data, mode) if clean else Clash("changed in the same place since", data)


def merge_texts(base: bytes, ours: bytes, theirs: bytes, merge: "Merge") -> "tuple[bytes, bool]":
    """Merge texts in the manner of *ours*: its line endings, byte order mark and last line."""
    mark = _BOM if ours.startswith(_BOM) else b""
    ending = _ending_of(ours)
    base, ours_plain, theirs = (_plain(text) for text in (base, ours, theirs))
    data, clean = merge(base, ours_plain, theirs)
    if not ours.endswith((b"\n", b"\r")) and data.endswith(b"\n"):
        data = data[:-1]
    return mark + data.replace(b"\n", ending), clean


def merged_with(since: "list[str]") -> str:
    """Whose changes stay in a text that came of a merge."""
    others = " and ".join(name for name in since if name != YOU)
    if YOU not in since:
        return f"merged with the changes of {others}" if others else "merged with what is there"
    return f"merged with your changes{f' and those of {others}' if others else ''}"


def _plain(text: bytes) -> bytes:
    """A text with the endings of lines that all systems know, and one after the last."""
    text = text.removeprefix(_BOM)
    if b"\r\n" in text and text.count(b"\r\n") == text.count(b"\n"):
        text = text.replace(b"\r\n", b"\n")
    return text if text.endswith(b"\n") or not text else text + b"\n"


def _ending_of(text: bytes) -> bytes:
    lines = text.count(b"\n")
    return b"\r\n" if lines and text.count(b"\r\n") == lines else b"\n"


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
        entry.number,
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
        return entry.content if isinstance(entry, Made) else self._read(entry)

    def _by_libgit2(self, base: bytes, ours: bytes, theirs: bytes) -> "tuple[bytes, bool]":
        # Loaded only when a path really needs a merge.
        from takeback.store import mergefile

        merged = mergefile.merge(base, ours, theirs, self._labels)
        return merged.data, merged.clean
