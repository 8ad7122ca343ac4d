"""Gemini CLI."""

import json
import uuid
from pathlib import Path
from typing import ClassVar

from clients.client import Client, Running
from clients.model import Answer, Use
from clients.packages import Npm


class GeminiCli(Client):
    """Gemini CLI."""

    NAME = "gemini-cli"
    FOLDER = ".gemini"
    INTERRUPTED = "Request cancelled."
    PACKAGE = Npm("@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js")

    cannot_play: ClassVar = {"e1": "its edit tools refuse `.env`"}

    def configure(self) -> None:
        """A key, so that nobody has to log in; no calls to anywhere; the folder is trusted."""
        self.environment |= {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.place.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",  # else it starts itself once more, with more memory
        }
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        self._where: Path | None = None
        (self.folder / "settings.json").write_text(json.dumps(settings))

    def start(self, prompt: str, where: Path | None = None) -> Running:
        """A conversation belongs to the folder that it began in."""
        if where != self._where:
            self._where, self.session = where, ""
        return super().start(prompt, where)

    def _common(self) -> list[str]:
        mode = "default" if self.asks else "yolo"
        words = [*self.program, "--approval-mode", mode, "--model", "gemini-2.5-pro", *self.more]
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
        """The file of the newest conversation."""
        files = (self.folder / "tmp").glob("*/chats/session-*.jsonl")
        return max(files, key=lambda path: path.stat().st_mtime_ns)

    def shell(self, command: str) -> Use:
        """Its run_shell_command."""
        return Use("run_shell_command", {"command": command, "description": "as the script says"})

    def script(self, text: str) -> Use:
        """It refuses command lines with substitutions, but not files with them."""
        file = self.place.scratch / "script.sh"
        file.write_text(text)
        return self.shell(f"bash {file}")

    def may_edit(self, folder: Path) -> None:
        """Its edit tools stay in the workspace, else."""
        self.more += ["--include-directories", str(folder)]

    def create(self, path: Path, text: str) -> Use:
        """Its write_file."""
        return Use("write_file", {"file_path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has not read, too."""
        return [[self._replace(path, old, new) for path, old, new in edits]]

    def wrong_edit(self, path: Path) -> Use:
        """Its replace."""
        return self._replace(path, "no", "x")

    def _replace(self, path: Path, old: str, new: str) -> Use:
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        return Use("replace", {**given, "instruction": "as the script says"})
