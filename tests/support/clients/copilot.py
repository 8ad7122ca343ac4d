"""Copilot CLI, with a provider of one's own."""

import json
import time
import uuid
from pathlib import Path
from typing import ClassVar

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm
from clients.screen import ESCAPE, Screen


class Copilot(Client):
    """Copilot CLI."""

    NAME = "copilot"
    FOLDER = ".copilot"
    INTERRUPTED = '"type":"abort"'
    cannot_play: ClassVar[dict[str, str]] = {"b2": "its edit tool makes no folders"}
    PACKAGE = Npm("@github/copilot", "1.0.102", "@github/copilot-linux-x64/copilot")

    def configure(self) -> None:
        """Nobody has to log in; no calls to anywhere; the folders are trusted."""
        self.environment |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{self.place.model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "gpt-4.1",
            "COPILOT_AUTO_UPDATE": "false",
        }
        trusted = [str(self.place.tree), str(self.place.tree / "sub/folder")]
        (self.folder / "config.json").write_text(json.dumps({"trustedFolders": trusted}))

    def _common(self) -> list[str]:
        mode = [] if self.asks else ["--allow-all-tools", "--allow-all-paths"]
        words = [*self.program, *mode, *self.more]
        if self.session:
            return [*words, f"--resume={self.session}"]
        self.session = str(uuid.uuid4())
        return [*words, "--session-id", self.session]

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        return [*self._common(), "-p", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [*self._common(), "-i", prompt]

    def transcript(self) -> Path:
        """The file of the conversation."""
        return self.folder / "session-state" / self.session / "events.jsonl"

    def interrupt(self, screen: Screen) -> None:
        """Esc, twice."""
        while not self.is_interrupted():
            screen.press(ESCAPE)
            time.sleep(0.3)  # both at once would be another key
            screen.press(ESCAPE)
            time.sleep(2)

    def shell(self, command: str) -> Use:
        """Its bash."""
        return Use("bash", {"command": command, "description": "as the script says"})

    def create(self, path: Path, text: str) -> Use:
        """Its create."""
        return Use("create", {"path": str(path), "file_text": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has not read, too."""
        return [[self._edit(path, old, new) for path, old, new in edits]]

    def wrong_edit(self, path: Path) -> Use:
        """Its edit."""
        return self._edit(path, "no such line", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("edit", {"path": str(path), "old_str": old, "new_str": new})
