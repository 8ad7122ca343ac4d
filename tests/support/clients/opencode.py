"""OpenCode, and Kilo, which is a fork of it."""

import json
import time
from pathlib import Path

from clients.actions import PATIENCE
from clients.client import Client
from clients.model import Answer, Use
from clients.packages import Npm
from clients.screen import ESCAPE, Screen


class OpenCode(Client):
    """OpenCode."""

    NAME = "opencode"
    FOLDER = ".config/opencode"
    MARKS_IN_GIT: tuple[str, ...] = (".git/opencode",)
    INTERRUPTED = "MessageAbortedError"
    PACKAGE = Npm("opencode-ai", "1.18.33", "opencode-linux-*/bin/opencode")
    PLUGIN_PACKAGE = "@opencode-ai/plugin"
    SETTINGS = "opencode.json"
    PREFIX = "OPENCODE"
    STAYS = True
    """`opencode run` sometimes does not end (its issues 17516, 38723); Ctrl-C ends it."""
    GOES_ON_ELSEWHERE = False
    """There `run --session` never ends, with a plugin and without."""
    LONGEST = 60

    def configure(self) -> None:
        """A provider of our own, no questions, no calls to anywhere."""
        for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"):
            self.environment[f"{self.PREFIX}_DISABLE_{name}"] = "1"
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": f"{self.place.model.url}/v1", "apiKey": "dummy"},
            "models": {"scripted": {"name": "Scripted"}},
        }
        settings = {
            "model": "scripted/scripted",
            "provider": {"scripted": provider},
            "autoupdate": False,
            "share": "disabled",
            "permission": {"external_directory": "allow", "read": "allow"},
        }
        (self.folder / self.SETTINGS).write_text(json.dumps(settings))
        # It fetches the types of plugins from npm unless they seem to be there.
        wanted = {"dependencies": {self.PLUGIN_PACKAGE: "*"}}
        (self.folder / "package.json").write_text(json.dumps(wanted))
        (self.folder / "package-lock.json").write_text(json.dumps({"packages": {"": wanted}}))
        (self.folder / "node_modules").mkdir()

    def words(self, prompt: str) -> list[str]:
        """Printing instead of drawing. It puts a word with blanks in it into quotation marks."""
        going_on = ["--session", self.session] if self.session else []
        said = prompt.split(" ")
        return [*self.program, "run", "--format", "json", *self.more, *going_on, *said]

    def screen_words(self, prompt: str) -> list[str]:
        """With the prompt sent already."""
        going_on = ["--session", self.session] if self.session else []
        return [*self.program, *self.more, *going_on, "--prompt", prompt]

    def heard(self, out: str) -> None:
        """It makes the id of the conversation itself."""
        for line in out.splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            self.session = said.get("sessionID", self.session)

    def transcript(self) -> Path:
        """The database of all conversations."""
        return self.place.scratch / f"home/.local/share/{self.NAME}/{self.NAME}.db"

    def is_interrupted(self) -> bool:
        """Whether Esc is in the database, or in its log."""
        database = self.transcript()
        files = (database, database.with_name(database.name + "-wal"))
        mark = self.INTERRUPTED.encode()
        return any(file.exists() and mark in file.read_bytes() for file in files)

    def interrupt(self, screen: Screen) -> None:
        """Esc, until it is heard: it wants a second one within five seconds."""
        for _ in range(PATIENCE):
            if self.is_interrupted():
                return
            screen.press(ESCAPE)
            time.sleep(1)  # two at once would be another key

    def shell(self, command: str) -> Use:
        """Its bash."""
        return Use("bash", {"command": command, "description": "as the script says"})

    def create(self, path: Path, text: str) -> Use:
        """Its write."""
        return Use("write", {"filePath": str(path), "content": text})

    def edits(self, edits: list[tuple[Path, str, str]]) -> list[Answer]:
        """It edits what it has read."""
        reads: Answer = [Use("read", {"filePath": str(path)}) for path, _, _ in edits]
        return [reads, [self._edit(path, old, new) for path, old, new in edits]]

    def wrong_edit(self, path: Path) -> Use:
        """Its edit."""
        return self._edit(path, "no such text", "x")

    def _edit(self, path: Path, old: str, new: str) -> Use:
        return Use("edit", {"filePath": str(path), "oldString": old, "newString": new})


class Kilo(OpenCode):
    """Kilo's command line."""

    NAME = "kilo"
    FOLDER = ".config/kilo"
    MARKS_IN_GIT = (".git/kilo", ".git/refs/kilo")
    PACKAGE = Npm("@kilocode/cli-linux-x64", "7.7.9", "@kilocode/cli-linux-x64/bin/kilo")
    PLUGIN_PACKAGE = "@kilocode/plugin"
    SETTINGS = "kilo.json"
    PREFIX = "KILO"

    def configure(self) -> None:
        """Headless, it approves nothing by itself."""
        super().configure()
        self.more = ["--auto"]

    def screen_words(self, prompt: str) -> list[str]:
        """A terminal knows no `--auto`."""
        return [word for word in super().screen_words(prompt) if word != "--auto"]
