"""Droid of Factory, by `droid exec`: its terminal wants a key that its maker knows."""

import json
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm


class Droid(Client):
    """Droid."""

    NAME = "droid"
    FOLDER = ".factory"
    MARKS_IN_GIT = (".git/.factory-scm-trigger",)
    PACKAGE = Npm("@factory/cli-linux-x64", "0.225.2", "@factory/cli-linux-x64/bin/droid")

    def configure(self) -> None:
        """A model of our own; any key."""
        self.environment |= {"FACTORY_API_KEY": "fk-dummy"}
        model = {
            "model": "scripted",
            "displayName": "scripted",
            "baseUrl": f"{self.place.model.url}/v1",
            "apiKey": "dummy",
            "provider": "generic-chat-completion-api",
            "maxOutputTokens": 4096,
        }
        (self.folder / "settings.json").write_text(json.dumps({"customModels": [model]}))

    def words(self, prompt: str) -> list[str]:
        """One prompt; a conversation goes on as a copy: else it asks its maker for it."""
        common = ["exec", "-m", "custom:scripted", "--skip-permissions-unsafe", "-o", "json"]
        conversation = ["--fork", self.session] if self.session else []
        return [*self.program, *common, *conversation, *self.more, prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """It cannot be started offline."""
        raise NotImplementedError(prompt)

    def heard(self, out: str) -> None:
        """It makes the id of the conversation itself."""
        for line in out.splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            self.session = said.get("session_id", self.session)

    def transcript(self) -> Path:
        """The file of the conversation."""
        return next((self.folder / "sessions").glob(f"*/{self.session}.jsonl"))

    def shell(self, command: str) -> Use:
        """Its Execute."""
        return Use("Execute", {"command": command, "summary": "as the script says", "timeout": 60})

    def create(self, path: Path, text: str) -> Use:
        """Its Create."""
        return Use("Create", {"file_path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has read."""
        reads: Answer = [Use("Read", {"file_path": str(path)}) for path, _, _ in edits]
        writes: Answer = [self._edit(path, old, new) for path, old, new in edits]
        return [reads, writes]

    def wrong_edit(self, path: Path) -> Use:
        """Its Edit."""
        return self._edit(path, "no", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("Edit", {"file_path": str(path), "old_str": old, "new_str": new})
