"""The C library libgit2, which the pygit2 wheel brings along: compare and diff texts.

Only the library is loaded, not pygit2: that takes 2 ms instead of 80. Every function here works on
bytes alone, so no repository, index, config or attribute of the user has a say.
"""

import ctypes
import itertools
import os
import sys

from takeback.errors import TakebackError
from takeback.model.text import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from takeback.model.text.lines import Block

_VERSION = 1
_SMALL_FILES_TOO = 1 << 2
_INDENT_HEURISTIC = 1 << 18
_FORCE_TEXT = 1 << 20
_MINIMAL = 1 << 29
_EXACT = 1 << 24
"""Pairs of lines up to which the shortest diff is worth its time."""
_library: "ctypes.CDLL | None" = None


class _DiffOptions(ctypes.Structure):
    """The fields up to those we set; libgit2 fills in the rest, whose layout varies."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("flags", ctypes.c_uint32),
        ("ignore_submodules", ctypes.c_int),
        ("pathspec", ctypes.c_void_p * 2),
        ("callbacks", ctypes.c_void_p * 3),
        ("context_lines", ctypes.c_uint32),
        ("interhunk_lines", ctypes.c_uint32),
        ("rest", ctypes.c_char * 256),
    )


class _Hunk(ctypes.Structure):
    _fields_ = (
        ("old_start", ctypes.c_int),
        ("old_lines", ctypes.c_int),
        ("new_start", ctypes.c_int),
        ("new_lines", ctypes.c_int),
    )


_ON_HUNK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Hunk), ctypes.c_void_p)


class Signature:
    """What a text is compared by, to find renames: made once, and compared with many."""

    __slots__ = ("_handle", "_library")

    def __init__(self, text: bytes) -> None:
        self._handle = ctypes.c_void_p()
        self._library = _load()
        self._library.git_hashsig_create(
            ctypes.byref(self._handle), text, ctypes.c_size_t(len(text)), _SMALL_FILES_TOO
        )

    def __del__(self) -> None:
        if self._handle.value is not None:
            self._library.git_hashsig_free(self._handle)

    def similarity(self, other: "Signature") -> int:
        """How much two texts have in common, in percent, as libgit2 measures it."""
        if self._handle.value is None or other._handle.value is None:
            return 0
        return max(0, int(self._library.git_hashsig_compare(self._handle, other._handle)))


def count(old: bytes, new: bytes) -> "tuple[int, int] | None":
    """How many lines were added and removed; None if either text is binary."""
    if lines.is_binary(old) or lines.is_binary(new):
        return None
    changed = blocks(old, new)
    return (
        sum(end - start for _, _, start, end in changed),
        sum(end - start for start, end, _, _ in changed),
    )


def blocks(old: bytes, new: bytes) -> "list[Block]":
    """The places where two texts differ, in order: lines (start, end) of `old`, then of `new`."""
    if old == new:
        return []
    start, end_old, end_new = lines.middle(old, new)
    above = old.count(b"\n", 0, start)
    return [
        (above + a, above + a_end, above + b, above + b_end)
        for a, a_end, b, b_end in _diff(old[start:end_old], new[start:end_new])
    ]


def _diff(old: bytes, new: bytes) -> "list[Block]":
    library = _load()
    options = _DiffOptions()
    library.git_diff_options_init(ctypes.byref(options), _VERSION)
    options.context_lines = options.interhunk_lines = 0
    options.flags = _INDENT_HEURISTIC | _FORCE_TEXT
    if (old.count(b"\n") + 1) * (new.count(b"\n") + 1) <= _EXACT:
        options.flags |= _MINIMAL
    found: list[Block] = []

    def add(_delta: object, hunk: "ctypes._Pointer[_Hunk]", _payload: object) -> int:
        at = hunk.contents
        # A side without lines is counted from the line before it.
        a, b = at.old_start - (at.old_lines > 0), at.new_start - (at.new_lines > 0)
        found.append((a, a + at.old_lines, b, b + at.new_lines))
        return 0

    on_hunk = _ON_HUNK(add)
    sides = (old, ctypes.c_size_t(len(old)), None, new, ctypes.c_size_t(len(new)), None)
    if library.git_diff_buffers(*sides, ctypes.byref(options), None, None, on_hunk, None, None):
        raise TakebackError("libgit2 could not compare the texts")
    return found


def changed_words(
    old: "Sequence[bytes]", new: "Sequence[bytes]"
) -> "tuple[list[list[bool]], list[list[bool]]]":
    """For each word of each line of a replaced block whether it is another one."""
    sides = [[lines.words(line) for line in side] for side in (old, new)]
    # A word a line: a newline is a word by itself, and then an empty line.
    texts = [
        b"".join(word.removesuffix(b"\n") + b"\n" for line in side for word in line)
        for side in sides
    ]
    changed: tuple[set[int], set[int]] = set(), set()
    for a, a_end, b, b_end in blocks(texts[0], texts[1]):
        changed[0].update(range(a, a_end))
        changed[1].update(range(b, b_end))
    return _flags(sides[0], changed[0]), _flags(sides[1], changed[1])


def _flags(per_line: "list[list[bytes]]", changed: "set[int]") -> "list[list[bool]]":
    numbers = itertools.count()
    return [[next(numbers) in changed for _ in line] for line in per_line]


def _load() -> ctypes.CDLL:
    global _library  # noqa: PLW0603 - loaded once
    if _library is None:
        for path in _candidates():
            try:
                _library = ctypes.CDLL(path)
                _library.git_libgit2_init()
                return _library
            except (OSError, AttributeError):
                _library = None
        raise TakebackError(
            "texts cannot be compared or merged: libgit2 is not installed",
            hint="`pip install pygit2` installs it; without it, decide path by path",
        )
    return _library


def _candidates() -> "Iterator[str]":
    """Where libgit2 may be: in the wheel of pygit2, or where the system has it."""
    for folder in sys.path:
        for inside in ("pygit2.libs", os.path.join("pygit2", ".dylibs")):
            libraries = os.path.join(folder, inside)
            names = os.listdir(libraries) if os.path.isdir(libraries) else []
            yield from (os.path.join(libraries, n) for n in names if n.startswith("libgit2"))
    yield from ("libgit2.so", "libgit2.dylib")
