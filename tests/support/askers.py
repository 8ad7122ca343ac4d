"""Both clients of the resident helper, in C and in Python, and somebody at the other end."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest

from agents import MAIN

SOURCE = MAIN.parent / "hooks" / "_ask.c"
STRICT = (
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wconversion",
    "-Werror",
)
NOWHERE = "/nowhere/python"
"""An interpreter that is not there: what is heard all the same was asked without it."""
DEADLINE = 20.0

Request = tuple[bytes, tuple[bytes, ...], bytes]
"""The first line, the words and the payload."""
Behaviour = Callable[[socket.socket], None]


def built(folder: Path, *flags: str) -> Path:
    """The client in C, from its source; the test is skipped where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler: the client of the helper in C is NOT TESTED")
    made = folder / "ask"
    subprocess.run([compiler, *STRICT, *flags, "-o", str(made), str(SOURCE)], check=True)
    return made


def python_client(python: str = sys.executable) -> list[str]:
    """The command of the client in Python."""
    return [python, "-I", "-S", str(MAIN), "hook"]


def run(
    command: Sequence[str],
    data: bytes,
    env: Mapping[str, str],
    cwd: "str | Path | None" = None,
) -> "subprocess.CompletedProcess[bytes]":
    """One event."""
    return subprocess.run(
        command, input=data, env=env, cwd=cwd, capture_output=True, check=False, timeout=60
    )


class Listener:
    """Somebody at the socket of a home, who behaves as a test wants, and keeps what was said."""

    def __init__(self, home: Path, behave: "Behaviour | None" = None, answer: bytes = b"") -> None:
        self.heard: list[Request] = []
        self._behave = behave if behave is not None else self._answer
        self._answered = answer
        self._over = False
        self._path = str(home / "helper.sock")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self._path)
        self._listening.listen()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        with socket.socket(socket.AF_UNIX) as last:  # wakes the thread
            last.connect(self._path)
        self._thread.join()
        self._listening.close()
        os.unlink(self._path)

    def listen_again(self) -> None:
        """The other end is told who called `listen` last: whoever is the user now."""
        self._listening.listen()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection:
                if self._over:
                    return
                connection.settimeout(DEADLINE)
                with contextlib.suppress(OSError, ValueError):  # whoever asked is gone
                    self._behave(connection)

    def _answer(self, connection: socket.socket) -> None:
        self.heard.append(request(connection))
        connection.sendall(b"%d\n%s" % (len(self._answered), self._answered))


def request(connection: socket.socket) -> Request:
    """What is asked, read to its end."""
    with connection.makefile("rb") as said:
        first = said.readline()
        of_words, of_payload = map(int, said.readline().split())
        words = said.read(of_words).split(b"\0")
        assert words.pop() == b""
        return first, tuple(words), said.read(of_payload)
