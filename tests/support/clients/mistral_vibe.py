"""Mistral Vibe."""

from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import PyPI

_CONFIG = """\
active_model = "scripted"
enable_update_checks = false
enable_telemetry = false

[[providers]]
name = "scripted"
api_base = "{url}/v1"
api_key_env_var = "SCRIPTED_KEY"
backend = "generic"

[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"""


class MistralVibe(Client):
    """Mistral Vibe."""

    NAME = "mistral-vibe"
    FOLDER_VARIABLE = "VIBE_HOME"
    PACKAGE = PyPI("mistral-vibe", "3.0.2", "bin/vibe", python="3.12")

    def configure(self) -> None:
        """A provider of our own; no keyring is asked for keys."""
        self.environment |= {"SCRIPTED_KEY": "dummy", "MISTRAL_API_KEY": "dummy"}
        (self.folder / "config.toml").write_text(_CONFIG.format(url=self.place.model.url))

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        return [*self.program, "--trust", "--auto-approve", *self._conversation(), "-p", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [*self.program, "--trust", "--auto-approve", *self._conversation(), prompt]

    def _conversation(self) -> list[str]:
        return ["--resume", self.session] if self.session else []

    def heard(self, out: str) -> None:
        """It makes the id of the conversation itself."""
        del out
        self.session = self.transcript().name

    def transcript(self) -> Path:
        """The folder of the newest conversation."""
        folders = (self.folder / "logs/session/unified").iterdir()
        return max(folders, key=lambda path: path.stat().st_mtime_ns)

    def shell(self, command: str) -> Use:
        """Its bash."""
        return Use("bash", {"command": command})

    def create(self, path: Path, text: str) -> Use:
        """Its write_file."""
        return Use("write_file", {"path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has read."""
        reads: Answer = [Use("read_file", {"path": str(path)}) for path, _, _ in edits]
        writes: Answer = [self._edit(path, old, new) for path, old, new in edits]
        return [reads, writes]

    def wrong_edit(self, path: Path) -> Use:
        """Its edit."""
        return self._edit(path, "no", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("edit", {"file_path": str(path), "old_string": old, "new_string": new})
