"""A terminal with a process on it, for tests that type."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE = 30
"""Seconds that something may take which must come soon."""


class Terminal:
    """A terminal with a process on it, as a person would sit at."""

    def __init__(self, words: list[str], rows: int = 33, columns: int = 77) -> None:
        self.seen = b""
        self.rows, self.columns = rows, columns
        self.process, self._fd = pty.fork()
        if not self.process:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(words[0], words)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._fd, keys)

    def resize(self, rows: int, columns: int) -> None:
        """Make the window another size."""
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def expect(self, text: bytes) -> bytes:
        """Wait until something new is on the screen; what was there before it."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < end, (text, self.seen)
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._fd, 4096)
                except OSError:  # the last process on it is gone
                    assert text in self.seen, self.seen
        before, self.seen = self.seen.split(text, 1)
        return before

    def insist(self, keys: bytes, text: bytes) -> bytes:
        """Press keys, and again if nothing comes of it, until something new is on the screen.

        A signal that comes just before a program begins to read is heard with the next key.
        """
        end = time.monotonic() + PATIENCE
        while text not in self.seen and time.monotonic() < end:
            self.type(keys)
            if select.select([self._fd], [], [], 1.0)[0]:
                self.seen += os.read(self._fd, 4096)
            if select.select([self._fd], [], [], 1.0)[0]:
                break
        return self.expect(text)

    def frame(self) -> list[str]:
        """The lines of a screen that is drawn as a whole, as far as it has come."""
        drawn = (
            self.seen.rpartition(b"\x1b[H")[2].partition(b"\x1b[?1049l")[0].decode(errors="ignore")
        )
        return [line.rstrip() for line in ESCAPES.sub("", drawn).replace("\r", "").split("\n")]

    def shows(self, text: str) -> list[str]:
        """Wait until a whole screen has a text on it; its lines."""
        end = time.monotonic() + PATIENCE
        while len(self.frame()) < self.rows or text not in "\n".join(self.frame()):
            assert time.monotonic() < end, (text, self.frame(), self.seen)
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._fd, 65536)
                except OSError:  # the last process on it is gone
                    assert text in "\n".join(self.frame()), self.seen
        return self.frame()

    def modes(self) -> list[object]:
        """How the terminal treats what is typed."""
        return termios.tcgetattr(self._fd)[:4]

    def status(self) -> int:
        """Wait for the end; negative for a signal."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found, status = os.waitpid(self.process, os.WNOHANG)
            if found:
                self.process = 0
                self._read_the_rest()
                return os.waitstatus_to_exitcode(status)
            if select.select([self._fd], [], [], 0.01)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._fd, 4096)
        pytest.fail(f"it does not end: {self.seen!r}")

    def _read_the_rest(self) -> None:
        """What the process wrote last, and nobody has read yet."""
        with contextlib.suppress(OSError):
            while self._fd >= 0 and select.select([self._fd], [], [], 0)[0]:
                more = os.read(self._fd, 65536)
                if not more:
                    return
                self.seen += more

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Leave nothing running."""
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        if self._fd >= 0:
            self.hang_up()
