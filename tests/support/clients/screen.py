"""A terminal with a client in it: keys go in, and what is drawn is read all the time."""

import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clients.place import wait_until

_DRAWN = re.compile(
    rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])"
)
_MOVED = re.compile(rb"\x1b\[[0-9;]*[CGHf]")
"""How programs write a blank: they move to the right of it."""
_ASKED = {
    b"\x1b[6n": b"\x1b[1;1R",  # where is the cursor?
    b"\x1b[c": b"\x1b[?62;22c",  # what are you?
    b"\x1b[5n": b"\x1b[0n",  # are you well?
}
_PAUSE = 0.3
"""Seconds: Gemini CLI takes an Enter right behind what was typed for a line of a paste."""
ESCAPE, ENTER, UP, LEFT, CLEAR = b"\x1b", b"\r", b"\x1b[A", b"\x1b[D", b"\x15"


class Screen:
    """A client in a terminal."""

    def __init__(self, words: list[str], where: Path, environment: dict[str, str]) -> None:
        self._seen = b""
        self._lock = threading.Lock()
        self.process, self._fd = pty.fork()
        if not self.process:
            os.chdir(where)
            os.execve(words[0], words, environment)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Read what is drawn, and answer what is asked of a terminal."""
        while True:
            try:
                piece = os.read(self._fd, 65536)
            except OSError:
                return
            if not piece:
                return
            with self._lock:
                self._seen += piece
            for question, reply in _ASKED.items():
                for _ in range(piece.count(question)):
                    self.press(reply)

    def press(self, keys: bytes) -> None:
        """Press keys."""
        with suppress(OSError):
            os.write(self._fd, keys)

    def press_until(self, key: bytes, what: str, holds: Callable[[], object]) -> None:
        """Press a key until something comes of it; one that may be pressed too often.

        What is pressed while a client still starts is lost.
        """

        def is_so() -> bool:
            if holds():
                return True
            self.press(key)
            return False

        wait_until(what, is_so)

    def play(self, *keys: tuple[bytes, str]) -> None:
        """Press keys one after the other; after each, wait until it drew what stands beside it."""
        for key, then in keys:
            before = len(self.text())
            self.press(key)
            self.shows(then, before)

    def type(self, text: str) -> None:
        """Type a prompt, wait until it is to be seen, and send it."""
        before = len(self.text())
        self.press(text.encode())
        self.shows(text, before)
        time.sleep(_PAUSE)
        self.press(ENTER)

    def text(self) -> str:
        """All that was drawn, without the drawing."""
        with self._lock:
            seen = self._seen
        return _DRAWN.sub(b"", _MOVED.sub(b" ", seen)).decode("utf-8", "replace")

    def shows(self, text: str, after: int = 0) -> None:
        """Wait until something is drawn, or anything; blanks may be drawn in many ways."""
        wanted = "".join(text.split())

        def is_there() -> bool:
            drawn = self.text()[after:]
            return wanted in "".join(drawn.split()) and len(drawn) > 0

        try:
            wait_until(f"{text!r} on the screen", is_there)
        except AssertionError as problem:
            problem.add_note(self.text()[-3000:])
            raise

    def kill(self) -> None:
        """As `kill -9` does."""
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Leave nothing running."""
        if self.process:
            with suppress(OSError):
                os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.process = 0
            with suppress(OSError):
                os.close(self._fd)
