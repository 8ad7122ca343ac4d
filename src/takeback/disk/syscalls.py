"""System calls that Python has no name for: exchange two entries, never replace one, sync a disk.

`renameat2` on Linux, `renameatx_np` on macOS. Where the file system cannot exchange (some FUSE
ones), the caller moves the old entry away first; where it cannot refuse to replace, a hard
link does the same for files.
"""

import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LINUX_NOREPLACE, _LINUX_EXCHANGE = 1, 2
_MACOS_EXCHANGE, _MACOS_NOREPLACE = 2, 4
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

_functions: "dict[str, Callable[..., int]]" = {}


def exchange(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
    _rename(source_dir, source, target_dir, target, _flag(_LINUX_EXCHANGE, _MACOS_EXCHANGE))


def move(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
    """Rename an entry; `FileExistsError` if the new name is taken."""
    flag = _flag(_LINUX_NOREPLACE, _MACOS_NOREPLACE)
    try:
        _rename(source_dir, source, target_dir, target, flag)
    except OSError as problem:
        if problem.errno not in _CANNOT:
            raise
        os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)
        os.unlink(source, dir_fd=source_dir)


def _flag(linux: int, macos: int) -> int:
    return macos if sys.platform == "darwin" else linux


def _rename(source_dir: int, source: bytes, target_dir: int, target: bytes, flag: int) -> None:
    name = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    _call(name, source_dir, source, target_dir, target, flag)


def syncfs(fd: int) -> None:
    """Sync the disk that an open file is on; all disks, where the system knows no better."""
    try:
        _call("syncfs", fd)
    except OSError as problem:
        if problem.errno != errno.ENOSYS:
            raise
        os.sync()


def _call(name: str, *args: "int | bytes") -> None:
    import ctypes

    function = _functions.get(name)
    if function is None:
        found = getattr(ctypes.CDLL(None, use_errno=True), name, None)
        if found is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        kinds = {int: ctypes.c_int, bytes: ctypes.c_char_p}
        found.argtypes = [kinds[type(arg)] for arg in args]
        function = _functions[name] = found
    if function(*args) != 0:
        code = ctypes.get_errno()
        named = [arg for arg in args if isinstance(arg, bytes)]
        raise OSError(code, os.strerror(code), named[-1] if named else None)
