"""pi."""

import json
import uuid
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm


class Pi(Client):
    """pi."""

    NAME = "pi"
    FOLDER = ".pi/agent"
    PACKAGE = Npm(
        "@earendil-works/pi-coding-agent",
        "0.87.1",
        "@earendil-works/pi-coding-agent/dist/bundle/cli.js",
        node22=True,
    )

    def configure(self) -> None:
        """A provider of our own, no calls to anywhere."""
        self.environment["PI_OFFLINE"] = "1"
        provider = {
            "baseUrl": f"{self.place.model.url}/v1",
            "api": "openai-completions",
            "apiKey": "dummy",
            "models": [{"id": "scripted"}],
        }
        models = {"providers": {"scripted": provider}}
        (self.folder / "models.json").write_text(json.dumps(models))

    def _common(self) -> list[str]:
        self.session = self.session or str(uuid.uuid4())
        words = ["--model", "scripted/scripted", "--session-id", self.session]
        return [*self.program, *words, *self.more]

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        return [*self._common(), "-p", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt sent already."""
        return [*self._common(), prompt]

    def transcript(self) -> Path:
        """The file of the conversation."""
        return next((self.folder / "sessions").glob(f"*/*{self.session}.jsonl"))

    def shell(self, command: str) -> Use:
        """Its bash."""
        return Use("bash", {"command": command})

    def create(self, path: Path, text: str) -> Use:
        """Its write."""
        return Use("write", {"path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has not read, too."""
        return [[self._edit(path, old, new) for path, old, new in edits]]

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("edit", {"path": str(path), "edits": [{"oldText": old, "newText": new}]})
