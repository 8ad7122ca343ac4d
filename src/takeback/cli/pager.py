"""Long output on a terminal goes through a pager, as with git; short output never starts one."""

import os

from takeback.disk import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from takeback.disk.programs import Viewer

    Put = Callable[[TextIO | None, str], None]

_USUAL = "less -FRX"
_LESS = "FRX"
"""What `less` is told by its environment where nobody told it anything: let colours through."""


class Pager:
    """Holds text back until it is longer than the terminal; then a pager shows it.

    If there is no pager, or it cannot be started, the text goes where it would have gone.
    """

    def __init__(self, rows: int, room: int, put: "Put") -> None:
        self._rows = rows
        self._room = room
        self._put = put
        self._held: list[tuple[TextIO | None, str]] = []
        self._lines = 0
        self._viewer: Viewer | None = None
        self._is_over = False
        """Whether text goes straight to the terminal: there is no pager, or not any more."""

    @property
    def is_running(self) -> bool:
        return self._viewer is not None

    def write(self, stream: "TextIO | None", text: str, taken: int) -> None:
        """Show text that would take so many columns on one line, or wait for more of it."""
        if self._viewer is not None:
            self._feed(text)
            return
        if self._is_over:
            self._put(stream, text)
            return
        self._held.append((stream, text))
        self._lines += max(1, -(-taken // self._room))
        if self._lines >= self._rows:
            self._start()

    def close(self) -> None:
        """Show what was held back, and wait until the reader has read enough."""
        viewer, self._viewer = self._viewer, None
        if viewer is None:
            self._release()
            return
        self._is_over = True
        viewer.wait()

    def _start(self) -> None:
        words = _command()
        self._viewer = programs.start_viewer(words, _environment()) if words else None
        if self._viewer is None:
            self._release()
            return
        held, self._held = self._held, []
        for _, text in held:
            self._feed(text)

    def _release(self) -> None:
        self._is_over = True
        held, self._held = self._held, []
        for stream, text in held:
            self._put(stream, text)

    def _feed(self, text: str) -> None:
        assert self._viewer is not None
        self._viewer.write(text.encode("utf-8", "surrogateescape"))


def is_wanted() -> bool:
    """Whether the terminal and the settings let a pager show anything."""
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and bool(_command())


def _command() -> "list[str]":
    """The pager and its options; empty where none is wanted."""
    chosen = os.environ.get("TAKEBACK_PAGER", os.environ.get("PAGER", _USUAL))
    import shlex

    try:
        words = shlex.split(chosen)
    except ValueError:  # a quote that nobody closed
        words = shlex.split(_USUAL)
    return [] if words in ([], ["cat"]) else words


def _environment() -> "dict[str, str]":
    return {"LESS": _LESS, "LV": "-c", **os.environ}
