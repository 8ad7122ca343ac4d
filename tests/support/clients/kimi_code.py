"""Kimi Code."""

import json
import re
from pathlib import Path
from typing import ClassVar

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm

_CONFIG = """\
# kept: a comment of the user
default_model = "scripted"

[providers.scripted]
type = "openai"
base_url = "{url}/v1"
api_key = "dummy"

[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 128000
"""


class KimiCode(Client):
    """Kimi Code."""

    NAME = "kimi-code"
    FOLDER_VARIABLE = "KIMI_CODE_HOME"
    PACKAGE = Npm(
        "@moonshot-ai/kimi-code", "2.1.0", "@moonshot-ai/kimi-code/dist/main.mjs", node22=True
    )
    cannot_play: ClassVar[dict[str, str]] = {"e1": "its edit tools refuse files with secrets"}

    def configure(self) -> None:
        """A provider of our own; no updates."""
        self.environment |= {"KIMI_CODE_NO_AUTO_UPDATE": "1"}
        (self.folder / "config.toml").write_text(_CONFIG.format(url=self.place.model.url))

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing; it approves everything then."""
        return [*self.program, *self._conversation(), "-p", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """It takes no prompt at the start, so that has to be typed."""
        del prompt
        return [*self.program, "--auto", *self._conversation()]

    def _conversation(self) -> list[str]:
        return ["-S", self.session] if self.session else []

    def heard(self, out: str) -> None:
        """It makes the id of the conversation itself, and keeps a list of them."""
        del out
        lines = (self.folder / "session_index.jsonl").read_text().splitlines()
        self.session = re.findall(r"session_[0-9a-f-]{36}", json.dumps(lines))[-1]

    def transcript(self) -> Path:
        """The file of the conversation."""
        found = (self.folder / "sessions").glob(f"*/{self.session}/agents/main/wire.jsonl")
        return next(found)

    def shell(self, command: str) -> Use:
        """Its Bash."""
        return Use("Bash", {"command": command})

    def create(self, path: Path, text: str) -> Use:
        """Its Write."""
        return Use("Write", {"path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has read."""
        reads: Answer = [Use("Read", {"path": str(path)}) for path, _, _ in edits]
        writes: Answer = [self._edit(path, old, new) for path, old, new in edits]
        return [reads, writes]

    def wrong_edit(self, path: Path) -> Use:
        """Its Edit."""
        return self._edit(path, "no", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("Edit", {"path": str(path), "old_string": old, "new_string": new})
