"""Cline, with a provider of one's own."""

import json
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm


class Cline(Client):
    """Cline. Headless, each prompt is a conversation of its own."""

    NAME = "cline"
    FOLDER = ".cline"
    MARKS_IN_GIT = (".git/",)  # checkpoints of its own: objects and a ref
    PACKAGE = Npm("cline", "3.0.65", "@cline/cli-linux-x64/bin/cline")

    def configure(self) -> None:
        """As `cline auth` writes it."""
        self.environment |= {"CLINE_NO_AUTO_UPDATE": "1"}
        settings = {
            "provider": "openai-compatible",
            "apiKey": "dummy",
            "model": "fake-model",
            "baseUrl": f"{self.place.model.url}/v1",
        }
        provider = {
            "settings": settings,
            "updatedAt": "2026-11-18T00:00:00.000Z",
            "tokenSource": "manual",
        }
        known = {"openai-compatible": provider}
        told = {"version": 1, "lastUsedProvider": "openai-compatible", "providers": known}
        (self.folder / "data/settings").mkdir(parents=True)
        (self.folder / "data/settings/providers.json").write_text(json.dumps(told))

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        return [*self.program, "--json", "--auto-approve", "true", *self.more, prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [*self.program, "-i", "--auto-approve", "true", *self.more, prompt]

    def transcript(self) -> Path:
        """The messages of the newest conversation."""
        files = (self.folder / "data/sessions").glob("*/*.messages.json")
        return max(files, key=lambda path: path.stat().st_mtime_ns)

    def shell(self, command: str) -> Use:
        """Its run_commands."""
        return Use("run_commands", {"commands": [command]})

    def create(self, path: Path, text: str) -> Use:
        """Its editor."""
        return Use("editor", {"path": str(path), "new_text": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has not read, too."""
        return [[self._edit(path, old, new) for path, old, new in edits]]

    def wrong_edit(self, path: Path) -> Use:
        """Its editor."""
        return self._edit(path, "no such line", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("editor", {"path": str(path), "old_text": old, "new_text": new})
