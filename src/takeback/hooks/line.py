r"""The line to the resident helper: ask a warm process to hear an event, if one is there.

    request   MAGIC stamp \n  length of words, length of payload \n  words  payload
    words     home, user's home, the agent's folder, the current folder, the id of the event,
              each ended by a NUL
    reply     length \n  answer

Nothing is lost if nobody answers: this process handles the event then. If the helper handles it,
too, even much later, it counts once: both know it by the same id. Imported before everything
else, so it imports almost nothing itself.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

MAGIC = b"takeback-hook-3 "
NAME = b"/helper.sock"
"""Not `hooks.sock`: helpers of programs before store format 6 listen there."""
LONGEST_PATH = 100
"""Bytes: what the address of a socket holds on every system."""
PATIENCE = 10.0
"""Seconds to wait for an answer before hearing the event oneself."""
_AT_ONCE = 1 << 16
_MOST = 1 << 26


def stamp() -> bytes:
    """What both ends must have in common: the very same program, unchanged, and the same files.

    In another container a path may be another file, also if both share a home.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parts = []
    for name in ("", "/version.py", "/hooks", "/agents", "/store", "/engine"):
        found = os.stat(here + name)
        parts.append(f"{found.st_ino}.{found.st_mtime_ns}")
    root = os.stat("/")
    parts += [str(_mount_namespace()), f"{root.st_dev}.{root.st_ino}"]
    return os.fsencode(here) + b"@" + ",".join(parts).encode()


def _mount_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return 0  # a system without them


def ask(home: bytes, words: "tuple[bytes, ...]", payload: bytes) -> "bytes | None":
    """The answer of the helper; None if there is none, or it is another program's."""
    path = home + NAME
    if len(path) > LONGEST_PATH or len(payload) > _MOST or not os.path.exists(path):
        return None
    import _socket

    try:
        with_helper = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            with_helper.settimeout(PATIENCE)
            with_helper.connect(path)
            if not is_ours(with_helper):
                return None
            said = b"".join(word + b"\0" for word in words)
            head = b"%s%s\n%d %d\n" % (MAGIC, stamp(), len(said), len(payload))
            with_helper.sendall(head + said + payload)
            return _reply(with_helper)
        finally:
            with_helper.close()
    except (OSError, ValueError):
        return None


def _reply(connection: "socket") -> "bytes | None":
    """What was answered; None if the other end broke off."""
    found = read_line(connection)
    return read_exactly(connection, int(found)) if found else None


def is_ours(connection: "socket") -> bool:
    """Whether the other end is a process of the same user, where the system can tell."""
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return True
    found = connection.getsockopt(_socket.SOL_SOCKET, option, 12)
    return int.from_bytes(found[4:8], "little") == os.geteuid()


def sender(connection: "socket") -> int:
    """The process at the other end; 0 where the system does not tell."""
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    return int.from_bytes(connection.getsockopt(_socket.SOL_SOCKET, option, 12)[:4], "little")


def read_line(connection: "socket") -> bytes:
    """Some bytes up to the end of a line; empty if the other end broke off."""
    found = bytearray()
    while not found.endswith(b"\n"):
        piece = connection.recv(1)
        if not piece or len(found) > _AT_ONCE:
            return b""
        found += piece
    return bytes(found[:-1])


def read_exactly(connection: "socket", size: int) -> "bytes | None":
    """So many bytes; None if the other end broke off."""
    if not 0 <= size <= _MOST:
        return None
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(min(size - len(found), _AT_ONCE))
        if not piece:
            return None
        found += piece
    return bytes(found)
