"""What a file system says of an entry beyond its mode: that nobody may change it, not even root.

`statx` on Linux, which Python has no name for in the versions that are supported; elsewhere, and
on file systems that have no such marks, nothing is known and nothing is said.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

IMMUTABLE, APPEND_ONLY = 0x10, 0x20
"""`chattr +i`: nothing can be done to it. `chattr +a`: it can grow, and nothing else."""

_NOT_THROUGH_LINKS = 0x100
_SIZE, _AT = 256, 8
"""How long the answer is, and where in it the marks stand."""


def reader() -> "Callable[[int, bytes], int]":
    """What reads the marks of an entry in an open folder; 0 if there are none, or nobody knows."""
    if sys.platform != "linux":
        return _unknown
    import ctypes
    from struct import Struct

    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None:
        return _unknown
    statx.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_char_p,
    ]
    answer, marks = ctypes.create_string_buffer(_SIZE), Struct("=Q").unpack_from

    def read(folder: int, name: bytes) -> int:
        if statx(folder, name, _NOT_THROUGH_LINKS, 0, answer) != 0:
            return 0
        return int(marks(answer, _AT)[0])

    return read


def _unknown(_folder: int, _name: bytes) -> int:
    return 0
