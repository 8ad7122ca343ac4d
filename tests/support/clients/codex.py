"""Codex."""

import json
from pathlib import Path

from clients.client import Client
from clients.model import Answer, Patch, Use
from clients.packages import Npm

_CONFIG = """\
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"

[features]
enable_request_compression = false

[projects."{tree}"]
trust_level = "trusted"
"""


class Codex(Client):
    """Codex."""

    NAME = "codex"
    FOLDER_VARIABLE = "CODEX_HOME"
    INTERRUPTED = '"turn_aborted"'
    HEALTHY = "does not seem to trust them yet"
    """It runs them here without having been asked (`--dangerously-bypass-hook-trust`)."""
    PACKAGE = Npm("@openai/codex", "0.166.0", "@openai/codex-*/vendor/*/bin/codex")
    TRUST = "--dangerously-bypass-hook-trust"
    """Else it asks, once, whether hooks may run (`test_trust.py`)."""

    def configure(self) -> None:
        """A provider of our own, no sandbox, no questions."""
        self.more = [self.TRUST]
        text = _CONFIG.format(url=self.place.model.url, tree=self.place.tree)
        (self.folder / "config.toml").write_text(text)

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        common = ["--json", "--skip-git-repo-check", *self.more]
        if self.session:
            return [*self.program, "exec", "resume", *common, self.session, prompt]
        return [*self.program, "exec", *common, prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [*self.program, *self.more, prompt]

    def heard(self, out: str) -> None:
        """It makes the id of the conversation itself."""
        for line in out.splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            self.session = said.get("thread_id", self.session)

    def transcript(self) -> Path:
        """The file of the newest conversation."""
        files = (self.folder / "sessions").glob("*/*/*/rollout-*.jsonl")
        return max(files, key=lambda path: path.stat().st_mtime_ns)

    def shell(self, command: str) -> Use:
        """Its exec_command."""
        return Use("exec_command", {"cmd": command})

    def create(self, path: Path, text: str) -> Patch:
        """Its apply_patch."""
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return Patch(f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """One patch for all of it: whole lines."""
        hunks = []
        for path, old, new in edits:
            line = next(line for line in path.read_text().splitlines() if old in line)
            hunks.append(f"*** Update File: {path}\n@@\n-{line}\n+{line.replace(old, new)}\n")
        return [[Patch(f"*** Begin Patch\n{''.join(hunks)}*** End Patch\n")]]

    def wrong_edit(self, path: Path) -> Patch:
        """Its apply_patch."""
        return Patch(f"*** Begin Patch\n*** Update File: {path}\n@@\n-no\n+x\n*** End Patch\n")
