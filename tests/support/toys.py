"""Participants for tests, with their state in a file: real enough to be killed at any step."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.errors import ParticipantError
from takeback.model.beyond.participants import DATABASES, Difference

if TYPE_CHECKING:
    from takeback.ports import Shelf


class Box:
    """A file whose text is the state. It prepares beside it and renames to commit."""

    def __init__(
        self,
        path: Path,
        name: str = "box",
        *,
        kind: str = DATABASES,
        can_prepare: bool = True,
        each_step: bool = False,
    ) -> None:
        self.path = path
        self.name = name
        self.kind = kind
        self.can_prepare = can_prepare
        self.each_step = each_step
        self.broken: dict[str, str] = {}
        """What fails, by the name of the call, and what it says."""
        self.calls: list[str] = []

    @property
    def text(self) -> str:
        return self.path.read_text() if self.path.exists() else ""

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def attach(self, shelf: "Shelf", /) -> None:
        self.shelf = shelf

    def capture(self) -> str:
        self._call("capture")
        text = self.text
        if self.shelf.last and text == self.shelf.mark:
            return self.shelf.last
        token = self.shelf.put([text.encode()])
        self.shelf.note(text)
        return token

    def describe(self, token: str, /) -> tuple[Difference, ...]:
        self._call("describe")
        return () if self._then(token) == self.text else (Difference("text", changed=1),)

    def prepare(self, restore: str, token: str, /) -> None:
        self._call("prepare")
        next_ = self._next(restore)
        next_.with_suffix(".part").write_text(self._then(token))
        next_.with_suffix(".part").rename(next_)

    def commit(self, restore: str, /) -> None:
        self._call("commit")
        if self._next(restore).exists():
            self._next(restore).rename(self.path)

    def abort(self, restore: str, /) -> None:
        self._call("abort")
        self._next(restore).unlink(missing_ok=True)

    @property
    def prepared(self) -> list[Path]:
        """What was prepared and neither committed nor aborted."""
        return sorted(self.path.parent.glob(f".{self.path.name}-*"))

    def _next(self, restore: str) -> Path:
        return self.path.parent / f".{self.path.name}-{restore}"

    def _then(self, token: str) -> str:
        return b"".join(self.shelf.read(token)).decode()

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.broken:
            raise ParticipantError(self.broken[name])


def from_options(options: dict[str, object]) -> Box:
    """A box as a file of settings describes it; for programs that tests start."""
    return Box(Path(str(options["path"])), json.loads(json.dumps(options.get("name", "box"))))
