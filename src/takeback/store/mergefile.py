"""Merge three versions of a text by libgit2, which the pygit2 wheel brings along.

Only the library is loaded, not pygit2: that takes 2 ms instead of 80, and `git_merge_file` works
on bytes alone: no repository, no index, no config and no attributes have a say. This module is
imported only when a path really needs a merge.
"""

import ctypes
import glob
import os
import sys

from takeback.errors import TakebackError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = 1
_DIFF3 = 1 << 1
_MARKER_SIZE = 7
_MODE = 0o100644
_SMALL_FILES_TOO = 1 << 2
_library: "ctypes.CDLL | None" = None


class _Input(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("data", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("path", ctypes.c_char_p),
        ("mode", ctypes.c_uint),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("ancestor_label", ctypes.c_char_p),
        ("our_label", ctypes.c_char_p),
        ("their_label", ctypes.c_char_p),
        ("favor", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("marker_size", ctypes.c_ushort),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("automergeable", ctypes.c_uint),
        ("path", ctypes.c_char_p),
        ("mode", ctypes.c_uint),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
    )


class Merged:
    """The outcome: `clean` tells that nothing conflicts; else `data` has markers."""

    __slots__ = ("clean", "data")

    def __init__(self, data: bytes, *, clean: bool) -> None:
        self.data = data
        self.clean = clean


def merge(base: bytes, ours: bytes, theirs: bytes, labels: "tuple[bytes, bytes, bytes]") -> Merged:
    """What becomes of `base` when both changes are made; conflicts are marked as diff3 does.

    `labels` name the three sides, in that order. What holds a NUL byte is no text.
    """
    if any(b"\0" in text for text in (base, ours, theirs)):
        return Merged(b"", clean=False)
    library = _load()
    sides = [_Input(_VERSION, text, len(text), b"file", _MODE) for text in (base, ours, theirs)]
    options = _Options(_VERSION, *labels, 0, _DIFF3, _MARKER_SIZE)
    result = _Result()
    pointers = [ctypes.byref(each) for each in (result, *sides, options)]
    if library.git_merge_file(*pointers) != 0:
        raise TakebackError("libgit2 could not merge the texts")
    try:
        data = ctypes.string_at(result.data, result.size) if result.data else b""
        return Merged(data, clean=bool(result.automergeable))
    finally:
        library.git_merge_file_result_free(ctypes.byref(result))


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


def similarity(one: bytes, other: bytes) -> int:
    """How much two texts have in common, in percent, as libgit2 measures it for renames."""
    return 100 if one == other else Signature(one).similarity(Signature(other))


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
            "changes cannot be merged: libgit2 is not installed",
            hint="`pip install pygit2` brings it; or decide path by path",
        )
    return _library


def _candidates() -> "Iterator[str]":
    """Where libgit2 may be: in the wheel of pygit2, or where the system has it."""
    for folder in sys.path:
        yield from sorted(glob.glob(os.path.join(folder, "pygit2.libs", "libgit2*")))
        yield from sorted(glob.glob(os.path.join(folder, "pygit2", ".dylibs", "libgit2*")))
    yield from ("libgit2.so", "libgit2.dylib")
