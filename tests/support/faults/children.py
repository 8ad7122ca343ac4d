"""Run something in a process of its own, which may die at any moment, and hear what it said."""

import gc
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import NamedTuple

Said = dict[str, str | int | bool | list[str]]
Tell = Callable[[Said], None]


class Ended(NamedTuple):
    """How a child ended and what it said before."""

    said: list[Said]
    status: int

    def last(self, key: str) -> str | int | bool | list[str] | None:
        """The newest word about `key`."""
        return next((word[key] for word in reversed(self.said) if key in word), None)

    def every(self, key: str) -> list[str]:
        """All words about `key`, as text."""
        return [str(word[key]) for word in self.said if key in word]


class Child:
    """A forked process; what it tells arrives also when it is killed right after."""

    def __init__(self, play: Callable[[Tell], None]) -> None:
        reader, writer = os.pipe()
        self.pid = _fork()
        if self.pid == 0:
            os.close(reader)
            os._exit(_play(play, writer))
        os.close(writer)
        self._reader = reader
        self._heard: list[Said] = []

    def fileno(self) -> int:
        """What to wait on for the next word."""
        return self._reader

    def hear(self) -> Said | None:
        """The next thing the child says; None when it has ended."""
        line = bytearray()
        while not line.endswith(b"\n"):
            piece = os.read(self._reader, 1)
            if not piece:
                return None
            line += piece
        heard: Said = json.loads(line)
        self._heard.append(heard)
        return heard

    def end(self) -> Ended:
        """Wait for the end of the child."""
        with open(self._reader, "rb") as report:
            said = [json.loads(line) for line in report if line.endswith(b"\n")]
        return Ended(self._heard + said, os.waitpid(self.pid, 0)[1])


def in_child(play: Callable[[Tell], None]) -> Ended:
    """Run `play` in a child and wait for its end. What it raises is told as `crashed`."""
    return Child(play).end()


def _fork() -> int:
    with warnings.catch_warnings():
        # Threads of the test runner do not matter to a child that never returns to it.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _play(play: Callable[[Tell], None], writer: int) -> int:
    def tell(word: Said) -> None:
        os.write(writer, json.dumps(word).encode() + b"\n")

    # A collection would write to every page that the child shares with the test runner.
    gc.disable()
    try:
        play(tell)
    except BaseException:
        tell({"crashed": traceback.format_exc()})
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
