"""The command line as a process of its own, without the time that starting Python takes.

A server imports the whole package once. Each command is a fork of it, with the folder, the
environment and the streams that a new process would have. The test runner itself cannot be forked
for that: SQLite does not work in a fork of a process that has a database open.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import pty
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import takeback

_LONGEST = 1 << 20
_PAUSE = 0.3
"""Seconds after which a program that shows nothing more seems to wait for somebody."""
_busy = threading.Lock()


def run(
    words: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """Run `takeback` with these words; what it printed, and how it ended."""
    with contextlib.ExitStack() as files:
        streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
        for stream in streams:
            files.callback(os.close, stream)
        code = _request(words, cwd, env, streams)
        out, err = (os.pread(stream, os.fstat(stream).st_size, 0) for stream in streams[1:])
    return subprocess.CompletedProcess(["takeback", *words], code, out, err)


def on_terminal(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    size: tuple[int, int],
    typed: bytes = b"",
) -> tuple[int, str]:
    """Run it on a terminal with so many columns and rows; how it ended, and what was shown.

    Whenever it waits for somebody, the same keys are `typed`.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    seen = bytearray()
    reader = threading.Thread(target=_read_all, args=(ours, seen, typed))
    reader.start()
    try:
        code = _request(words, cwd, env, [theirs, theirs, theirs])
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    return code, seen.decode("utf-8", "replace").replace("\r\n", "\n")


def _read_all(terminal: int, seen: bytearray, typed: bytes) -> None:
    """Read what appears on a terminal, until nobody has it open any more."""
    with contextlib.suppress(OSError):
        while True:
            if not select.select([terminal], [], [], _PAUSE)[0]:
                os.write(terminal, typed)
            elif piece := os.read(terminal, 65536):
                seen += piece
            else:
                return


def _request(words: Sequence[str], cwd: Path, env: Mapping[str, str], streams: list[int]) -> int:
    """Let the server run a command with these streams; its exit code."""
    request = json.dumps([list(words), os.fspath(cwd), dict(env)]).encode()
    assert len(request) < _LONGEST
    with _busy:
        line = _server(os.getpid())
        socket.send_fds(line, [request], streams)
        return os.waitstatus_to_exitcode(int(line.recv(99)))


def text(
    words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The same, with what it printed as text."""
    done = run(words, cwd, os.environ if env is None else env)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


@cache
def _server(pid: int) -> socket.socket:
    """The server of a process, with the same user and mounts; it ends with that process."""
    assert pid == os.getpid()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    source = Path(takeback.__file__).parents[1]
    start = f"import sys; sys.path[:0] = [{str(source)!r}, {os.path.dirname(__file__)!r}]; "
    server = subprocess.Popen(
        [sys.executable, "-I", "-c", f"{start}import program; program.serve({theirs.fileno()})"],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # first
    return ours


def serve(number: int) -> None:
    """Fork for each request, and tell how that ended, until nobody asks any more."""
    for module in pkgutil.walk_packages(takeback.__path__, "takeback."):
        # The SDK of MCP takes longer to import than all else, and no command but one needs it.
        if module.name != "takeback.__main__" and ".mcp.sdk" not in module.name:
            with contextlib.suppress(ImportError):  # of what is only there on other systems
                importlib.import_module(module.name)
    gc.freeze()
    line = socket.socket(fileno=number)
    while True:
        request, streams, _, _ = socket.recv_fds(line, _LONGEST, 3)
        if not request:
            return
        child = os.fork()
        if child == 0:
            words, cwd, env = json.loads(request)
            _become(words, cwd, env, streams)
        for stream in streams:
            os.close(stream)
        line.send(b"%d" % os.waitpid(child, 0)[1])


def _become(words: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> NoReturn:
    """Turn this fork into the program."""
    from takeback.cli import app

    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 64)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        sys.argv = ["takeback", *words]
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8")
        app.entry()
    finally:
        os._exit(70)
