"""Qwen Code."""

import json
import uuid
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm


class QwenCode(Client):
    """Qwen Code."""

    NAME = "qwen-code"
    FOLDER = ".qwen"
    PACKAGE = Npm(
        "@qwen-code/qwen-code", "0.24.4", "@qwen-code/qwen-code/cli-entry.js", node22=True
    )

    def configure(self) -> None:
        """A key, so that nobody has to log in; no calls to anywhere."""
        self.environment |= {
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{self.place.model.url}/v1",
            "OPENAI_MODEL": "fake-model",
        }
        settings = {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        (self.folder / "settings.json").write_text(json.dumps(settings))

    def _common(self) -> list[str]:
        mode = "default" if self.asks else "yolo"
        words = [*self.program, "--approval-mode", mode, *self.more]
        if self.session:
            return [*words, "--resume", self.session]
        self.session = str(uuid.uuid4())
        return [*words, "--session-id", self.session]

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        return [*self._common(), "-o", "stream-json", "-p", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [*self._common(), "-i", prompt]

    def transcript(self) -> Path:
        """The file of the conversation."""
        return next((self.folder / "projects").glob(f"*/chats/{self.session}.jsonl"))

    def shell(self, command: str) -> Use:
        """Its run_shell_command."""
        given = {"command": command, "description": "as the script says", "is_background": False}
        return Use("run_shell_command", given)

    def create(self, path: Path, text: str) -> Use:
        """Its write_file."""
        return Use("write_file", {"file_path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has read."""
        reads: Answer = [Use("read_file", {"file_path": str(path)}) for path, _, _ in edits]
        return [reads, [self._edit(path, old, new) for path, old, new in edits]]

    def wrong_edit(self, path: Path) -> Use:
        """Its edit."""
        return self._edit(path, "no", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        return Use("edit", given)
