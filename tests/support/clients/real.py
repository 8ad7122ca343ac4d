"""The clients themselves: Claude Code and Codex, headless and in a terminal."""

import json
import os
import shutil
import signal
import subprocess
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from clients.model import PATIENCE, Action, Answer, Patch, Use
from clients.place import Place
from clients.screen import Screen

INSTALLED = Path(os.environ.get("TAKEBACK_CLIENTS", "/nonexistent")) / "node_modules"


class Running:
    """A client that works on a prompt, headless."""

    def __init__(self, client: "Client", words: list[str], where: Path) -> None:
        self._client = client
        self._process = subprocess.Popen(
            words,
            cwd=where,
            env=client.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def over(self, code: int | None = 0) -> str:
        """Wait for the end; what it printed. With no code, it may end as it likes."""
        try:
            out, trouble = self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, trouble = self._process.communicate()
            raise AssertionError(f"it does not end: {out}\n{trouble}") from None
        ended = self._process.returncode
        assert code is None or ended == code, (ended, out, trouble)
        self._client.heard(out)
        return out

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


class Client(ABC):
    """An agent in a place. One conversation, which goes on with each prompt."""

    NAME = ""
    FOLDER_VARIABLE = ""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.folder = place.scratch / self.NAME
        self.folder.mkdir()
        self.environment = {**place.environment, self.FOLDER_VARIABLE: str(self.folder)}
        place.environment[self.FOLDER_VARIABLE] = str(self.folder)
        self.session = ""
        self.asks = False
        self.more: list[str] = []
        self.configure()

    @abstractmethod
    def configure(self) -> None:
        """Write settings for the scripted model."""

    def install(self) -> dict[str, Any]:
        """Let it call Takeback, as a user would."""
        return dict(self.place.told("install", self.NAME))

    @abstractmethod
    def words(self, prompt: str) -> list[str]:
        """The command line for a prompt, headless."""

    @abstractmethod
    def screen_words(self, prompt: str) -> list[str]:
        """The command line for a prompt in a terminal."""

    def heard(self, out: str) -> None:
        """Read what it printed, headless: who the conversation is, if nobody said so before."""
        del out

    @abstractmethod
    def transcript(self) -> Path:
        """The file of the conversation."""

    def start(self, prompt: str, where: Path | None = None) -> Running:
        """Give it a prompt, headless."""
        return Running(self, self.words(prompt), where or self.place.tree)

    def prompt(self, prompt: str, where: Path | None = None, code: int | None = 0) -> str:
        """Give it a prompt and wait for the end."""
        return self.start(prompt, where).over(code)

    def sit_down(self, prompt: str, where: Path | None = None) -> Screen:
        """Start it in a terminal, with a prompt."""
        return Screen(self.screen_words(prompt), where or self.place.tree, self.environment)

    # -- what its model says ---------------------------------------------------------------

    @abstractmethod
    def shell(self, command: str) -> Action:
        """A call of its shell."""

    @abstractmethod
    def create(self, path: Path, text: str) -> Action:
        """A call of its edit tool that makes a file."""

    @abstractmethod
    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """Answers that edit lines of files by its edit tool: path, what is there, what shall be."""


class ClaudeCode(Client):
    """Claude Code."""

    NAME = "claude-code"
    FOLDER_VARIABLE = "CLAUDE_CONFIG_DIR"
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
        binary = next(INSTALLED.glob("@anthropic-ai/claude-code-*/claude"))
        mode = ["--permission-mode", "default"] if self.asks else ["--dangerously-skip-permissions"]
        words = [*mode, "--model", "claude-sonnet-4-5"]
        return [str(binary), *words, *self.more, *self._conversation()]

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
    TRUST = "--dangerously-bypass-hook-trust"
    """Else it asks, once, whether hooks may run (`test_trust.py`)."""

    def configure(self) -> None:
        """A provider of our own, no sandbox, no questions."""
        self.more = [self.TRUST]
        text = _CONFIG.format(url=self.place.model.url, tree=self.place.tree)
        (self.folder / "config.toml").write_text(text)

    def _binary(self) -> str:
        return str(next(INSTALLED.glob("@openai/codex-*/vendor/*/bin/codex")))

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing."""
        common = ["--json", "--skip-git-repo-check", *self.more]
        if self.session:
            return [self._binary(), "exec", "resume", *common, self.session, prompt]
        return [self._binary(), "exec", *common, prompt]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt typed already."""
        return [self._binary(), *self.more, prompt]

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


CLIENTS = (ClaudeCode, Codex)


def missing() -> str:
    """Why the clients cannot run here; empty if they can."""
    if not INSTALLED.is_dir():
        return "the clients are run by `./check --clients`, which installs them"
    return "" if shutil.which("git") else "git is missing"
