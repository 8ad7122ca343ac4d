"""Goose, by `goose run`."""

import re
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm


class Goose(Client):
    """Goose 1.34.0, which npm has as 0.20.1."""

    NAME = "goose"
    FOLDER = ".agents/plugins"
    AT_ONCE = False
    PACKAGE = Npm(
        "@aaif/goose-binary-linux-x64", "0.20.1", "@aaif/goose-binary-linux-x64/bin/goose"
    )

    def configure(self) -> None:
        """A provider of our own, no questions, no keyring."""
        self.environment |= {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "gpt-4o",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_API_KEY": "dummy",
            "OPENAI_HOST": self.place.model.url,
            "OPENAI_BASE_PATH": "v1/chat/completions",
        }

    def words(self, prompt: str) -> list[str]:
        """One prompt."""
        return [*self.program, "run", *self._conversation(), "-t", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """It takes no prompt at the start, so that has to be typed."""
        del prompt
        return [*self.program, "session", *self._conversation()]

    def _conversation(self) -> list[str]:
        return ["--resume", "--session-id", self.session] if self.session else []

    def heard(self, out: str) -> None:
        """It makes the id of the conversation itself."""
        known = re.search(r"\b(\d{8}_\d+) ", out)
        self.session = known[1] if known else self.session

    def transcript(self) -> Path:
        """The database of all conversations."""
        return self.place.scratch / "home/.local/share/goose/sessions/sessions.db"

    def shell(self, command: str) -> Use:
        """Its shell."""
        return Use("shell", {"command": command})

    def create(self, path: Path, text: str) -> Use:
        """Its write."""
        return Use("write", {"path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has not read, too."""
        return [[self._edit(path, old, new)] for path, old, new in edits]

    def wrong_edit(self, path: Path) -> Use:
        """Its edit."""
        return self._edit(path, "no", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("edit", {"path": str(path), "before": old, "after": new})
