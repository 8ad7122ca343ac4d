"""Claude Code."""

import json
import uuid
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm


class ClaudeCode(Client):
    """Claude Code."""

    NAME = "claude-code"
    FOLDER_VARIABLE = "CLAUDE_CONFIG_DIR"
    INTERRUPTED = "[Request interrupted by user"
    PACKAGE = Npm(
        "@anthropic-ai/claude-code", "2.1.325", "@anthropic-ai/claude-code-linux-*/claude"
    )
    KEY = "sk-ant-this-is-no-key-at-all"

    def configure(self) -> None:
        """No questions at the start, no calls to anywhere."""
        self.environment |= {
            "ANTHROPIC_BASE_URL": self.place.model.url,
            "ANTHROPIC_API_KEY": self.KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",
        }
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        tree = self.place.tree
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [self.KEY[-20:]], "rejected": []},
            "projects": {str(folder): trusted for folder in (tree, tree / "sub/folder")},
        }
        (self.folder / ".claude.json").write_text(json.dumps(state))

    def _conversation(self) -> list[str]:
        if self.session:
            return ["--resume", self.session]
        self.session = str(uuid.uuid4())
        return ["--session-id", self.session]

    def _common(self) -> list[str]:
        mode = ["--permission-mode", "default"] if self.asks else ["--dangerously-skip-permissions"]
        words = [*mode, "--model", "claude-sonnet-4-5"]
        return [*self.program, *words, *self.more, *self._conversation()]

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        return [*self._common(), "--output-format", "json", "-p", prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [*self._common(), prompt]

    def transcript(self) -> Path:
        """The file of the conversation."""
        return next((self.folder / "projects").glob(f"*/{self.session}.jsonl"))

    def shell(self, command: str) -> Use:
        """Its Bash."""
        return Use("Bash", {"command": command, "description": "as the script says"})

    def create(self, path: Path, text: str) -> Use:
        """Its Write."""
        return Use("Write", {"file_path": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has read."""
        reads: Answer = [Use("Read", {"file_path": str(path)}) for path, _, _ in edits]
        writes: Answer = [
            Use("Edit", {"file_path": str(path), "old_string": old, "new_string": new})
            for path, old, new in edits
        ]
        return [reads, writes]

    def wrong_edit(self, path: Path) -> Use:
        """Its Edit."""
        return Use("Edit", {"file_path": str(path), "old_string": "no", "new_string": "x"})
