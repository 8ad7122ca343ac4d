"""A difference as a unified diff, in the form that `git apply` and `patch` read.

What that form has no words for (folders, what was left out, files that are not shown) becomes
a line that both programs pass over. A file with masked secrets is no patch at all: `git apply`
refuses it, `patch` finds only comments.
"""

from takeback.disk import libgit2
from takeback.model import words
from takeback.model.text import lines, secrets
from takeback.model.text.masking import CLOSED
from takeback.model.tree import FOLDER, LINK, REGULAR, Difference
from takeback.model.words import CREATE, DELETE, MODE, OMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from takeback.model.text.masking import Masker
    from takeback.model.tree import Entry

    Line = tuple[str, bytes]
    Contents = tuple[bytes | None, bytes | None]

HEAD, HUNK, SAME, OLD, NEW, NOTE = "head", "hunk", " ", "-", "+", "note"
"""What a line of a diff is."""
MASKED = {SAME: "#  ", OLD: "# -", NEW: "# +"}
"""The same lines where secrets are masked: comments, so that no program writes them anywhere."""

CONTEXT = 3
MOST_LINES = 1_000_000
"""Files with more lines than this together are only said to differ."""
_DIFF = b"diff --git "
_NO_HUNKS = b"dissimilarity index 100%\n"
"""Without any line of its own, `git apply` would pass over a header."""
_MASKED_FILES = b"Files with masked secrets (not a patch; use --show-secrets) differ\n"
_NO_NEWLINE = b"\\ No newline at end of file\n"
_KIND_OF_FILES = {"large": b"Large files ", "binary": b"Binary files ", "gone": b"Files "}
_KINDS = {FOLDER: "folder", LINK: "link", REGULAR: "file"}


class Shown:
    """One difference made ready: how its lines were counted, and its diff without secrets.

    `added` and `removed` are None where there are no lines to count. `why` says why no lines
    are shown: `binary`, `large`, `secret`, or `gone` while it was looked at.
    """

    __slots__ = ("_contents", "_masker", "_masks", "added", "difference", "removed", "why")

    def __init__(
        self, difference: Difference, contents: "Contents", masker: "Masker" = CLOSED
    ) -> None:
        self.difference = difference
        self._contents = contents
        self._masker = masker
        self._masks: list[secrets.Mask] = []
        self.added: int | None = None
        self.removed: int | None = None
        self.why = self._count()

    @property
    def masked(self) -> int:
        """How many secrets were hidden so far."""
        hidden = sum(mask.count for mask in self._masks)
        return hidden + (self.why == "secret")

    def _count(self) -> str:
        old, new = self._contents
        if not _has_lines(self.difference):
            return ""
        if old is None or new is None:
            return "large" if self.difference.is_large else "gone"
        if old.count(b"\n") + new.count(b"\n") > MOST_LINES:
            return "large"
        counted = libgit2.count(old, new)
        if counted is None:
            return "binary"
        self.added, self.removed = counted
        if self._how_secret() == secrets.WHOLE and counted != (0, 0):
            return "secret"
        return ""

    def _how_secret(self) -> str:
        """How secret it is by either of its names: a rename does not make a secret harmless."""
        difference = self.difference
        paths = (difference.raw_path, difference.raw_origin or difference.raw_path)
        found = {self._masker.how_secret(path) for path in paths}
        return next(how for how in (secrets.WHOLE, secrets.VALUES, secrets.PLAIN) if how in found)

    def diff(self) -> "Iterator[Line]":
        """The lines of the diff, each with what it is."""
        old, new = self._contents
        for part in _parts(self.difference):
            yield from _head(part)
            if not _has_lines(part):
                continue
            before = old if part.before is not None else b""
            after = new if part.after is not None else b""
            if self.why or before is None or after is None:
                yield from self._said(part)
            elif before != after:
                yield from self._body(part, before, after)

    def patch(self) -> "Iterator[Line]":
        """The lines of the diff, so that a program that applies them never writes a mask."""
        lines = list(self.diff())
        yield from _without_patch(lines) if self.masked else lines

    def _said(self, part: Difference) -> "Iterator[Line]":
        """One line instead of the content."""
        names = b"%s and %s" % names_of(part)
        if self.why == "secret":
            counts = f" (+{self.added} -{self.removed} lines)".encode()
            yield NOTE, b"Secret files " + names + b" differ" + counts + b"\n"
        elif part.before is None or part.after is None or part.before.strong != part.after.strong:
            yield NOTE, _KIND_OF_FILES[self.why] + names + b" differ\n"

    def _body(self, part: Difference, old: bytes, new: bytes) -> "Iterator[Line]":
        before, after = lines.split(old), lines.split(new)
        masks = (
            self._mask(part.raw_origin or part.raw_path, before),
            self._mask(part.raw_path, after),
        )
        yield from _names(part)
        for blocks in lines.hunks(libgit2.blocks(old, new), CONTEXT):
            yield from _hunk(blocks, before, after, masks)

    def _mask(self, path: bytes, text: "list[bytes]") -> "secrets.Mask | None":
        mask = self._masker.lines(path, text, self._how_secret())
        self._masks += [mask] if mask is not None else []
        return mask


def _without_patch(lines: "Iterable[Line]") -> "Iterator[Line]":
    """A diff with masked secrets as comments, below a line that makes `git apply` refuse it.

    It takes `Files …` for what it says of binary files. `patch` would make an empty file of
    `new file mode` alone, so that is a comment, too.
    """
    for kind, line in lines:
        if kind == HEAD and line.startswith(_DIFF):
            yield kind, line
            yield HEAD, _NO_HUNKS
            yield NOTE, _MASKED_FILES
        elif kind in MASKED:
            yield MASKED[kind], line
        else:
            yield kind, b"# " + line


def _has_lines(part: Difference) -> bool:
    """Whether there is a file or a link at either side, and both sides are known."""
    if part.reason:
        return False
    return any(entry is not None and entry.kind != FOLDER for entry in (part.before, part.after))


def _parts(found: Difference) -> "list[Difference]":
    """What became something of another kind is deleted and made again."""
    if not found.is_other_kind or found.verb == OMIT:
        return [found]
    gone = Difference(found.raw_path, DELETE, found.before, None)
    return [gone, Difference(found.raw_path, CREATE, None, found.after)]


def _head(part: Difference) -> "Iterator[Line]":
    before, after = part.before, part.after
    if part.verb == OMIT:
        yield NOTE, _left_out(part)
    elif not _has_lines(part):
        yield NOTE, _about_folder(part)
    elif _says_mode_only(part):
        yield NOTE, _about_mode(part)
    else:
        if before is not None and after is not None and _finer_mode(before, after):
            yield NOTE, _about_mode(part)
        yield HEAD, _DIFF + b"%s %s\n" % names_of(part, both=True)
        yield from _modes(before, after)
        if part.raw_origin is not None:
            yield HEAD, b"similarity index 100%\n"
            yield HEAD, b"rename from " + quoted(part.raw_origin) + b"\n"
            yield HEAD, b"rename to " + quoted(part.raw_path) + b"\n"


def _modes(before: "Entry | None", after: "Entry | None") -> "Iterator[Line]":
    if before is None and after is not None:
        yield HEAD, b"new file mode %o\n" % _git_mode(after)
    elif after is None and before is not None:
        yield HEAD, b"deleted file mode %o\n" % _git_mode(before)
    elif before is not None and after is not None and _git_mode(before) != _git_mode(after):
        yield HEAD, b"old mode %o\n" % _git_mode(before)
        yield HEAD, b"new mode %o\n" % _git_mode(after)


def _git_mode(entry: "Entry") -> int:
    """A mode as far as git knows modes: whether the owner may execute a file."""
    if entry.kind == LINK:
        return LINK
    return entry.kind | (0o755 if entry.mode & 0o100 else 0o644)


def _finer_mode(before: "Entry", after: "Entry") -> bool:
    """Whether permissions differ in a way that git has no words for."""
    differ = before.mode != after.mode and before.kind == after.kind != LINK
    return differ and _git_mode(before) == _git_mode(after)


def _says_mode_only(part: Difference) -> bool:
    before, after = part.before, part.after
    return (
        part.verb == MODE
        and before is not None
        and after is not None
        and _finer_mode(before, after)
    )


def _about_mode(part: Difference) -> bytes:
    old, new = (entry.mode & 0o7777 if entry else 0 for entry in (part.before, part.after))
    return b"Mode of %s changed from %04o to %04o\n" % (quoted(part.raw_path), old, new)


def _about_folder(part: Difference) -> bytes:
    name = quoted(part.raw_path or b".")
    if part.before is not None and part.after is not None:
        modes = (part.before.mode & 0o7777, part.after.mode & 0o7777)
        return b"Folder %s changed mode from %04o to %04o\n" % (name, *modes)
    entry = part.after or part.before
    how = b"New" if part.after is not None else b"Deleted"
    return b"%s folder %s mode %04o\n" % (how, name, entry.mode & 0o7777 if entry else 0)


def _left_out(part: Difference) -> bytes:
    sides = f"{_known(part.before)} before, {_known(part.after)} after"
    return b"Not covered: %s (%s)\n" % (quoted(part.raw_path), sides.encode())


def _known(entry: "Entry | None") -> str:
    if entry is None:
        return "absent"
    if entry.reason:
        return f"left out as {words.word(entry.reason)}"
    return _KINDS.get(entry.kind, "something")


def _names(part: Difference) -> "Iterator[Line]":
    old, new = names_of(part)
    # A tab ends a name with blanks in it, for `patch`.
    ends = [b"\t\n" if b" " in name and not name.startswith(b'"') else b"\n" for name in (old, new)]
    yield HEAD, b"--- " + old + ends[0]
    yield HEAD, b"+++ " + new + ends[1]


def names_of(part: Difference, *, both: bool = False) -> "tuple[bytes, bytes]":
    """What the two sides are called; the absent one has no name unless `both` are wanted."""
    old = quoted(b"a/" + (part.raw_origin or part.raw_path))
    new = quoted(b"b/" + part.raw_path)
    if both:
        return old, new
    return (
        old if part.before is not None else b"/dev/null",
        new if part.after is not None else b"/dev/null",
    )


def _hunk(
    blocks: "Sequence[tuple[int, int, int, int]]",
    old: "Sequence[bytes]",
    new: "Sequence[bytes]",
    masks: "tuple[secrets.Mask | None, secrets.Mask | None]",
) -> "Iterator[Line]":
    before = max(blocks[0][0] - CONTEXT, 0)
    shift = blocks[0][2] - blocks[0][0]
    end = min(blocks[-1][1] + CONTEXT, len(old))
    shift_after = blocks[-1][3] - blocks[-1][1]
    sides = _range(before, end), _range(before + shift, end + shift_after)
    yield HUNK, b"@@ -%s +%s @@\n" % sides
    at = before
    for a, a_end, b, b_end in blocks:
        yield from _shown(SAME, old, masks[0], range(at, a))
        yield from _shown(OLD, old, masks[0], range(a, a_end))
        yield from _shown(NEW, new, masks[1], range(b, b_end))
        at = a_end
    yield from _shown(SAME, old, masks[0], range(at, end))


def _shown(
    tag: str, text: "Sequence[bytes]", mask: "secrets.Mask | None", numbers: range
) -> "Iterator[Line]":
    for number in numbers:
        line = text[number] if mask is None else mask.line(number)
        if line.endswith(b"\n"):
            yield tag, line
        else:
            yield tag, line + b"\n"
            yield NOTE, _NO_NEWLINE


def _range(start: int, end: int) -> bytes:
    """Lines as a hunk counts them: from 1, or from the line before when there are none."""
    if end - start == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + (end > start), end - start)


_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r",
            34: b'\\"', 92: b"\\\\"}  # fmt: skip


def quoted(path: bytes) -> bytes:
    """A path as git writes it: in quotes and with escapes where it is not plain text."""
    try:
        is_plain = path.decode().isprintable()
    except UnicodeDecodeError:
        is_plain = False
    if is_plain and b'"' not in path and b"\\" not in path:
        return path
    return b'"' + b"".join(map(_escaped, path)) + b'"'


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return bytes((byte,)) if 32 <= byte < 127 else b"\\%03o" % byte
