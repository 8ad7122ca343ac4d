"""A real client in a test: what all of them have in common, headless and in a terminal."""

import shlex
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clients import packages
from clients.model import PATIENCE, Action, Answer
from clients.place import Place
from clients.screen import ESCAPE, Screen


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
            out, trouble = self._process.communicate(timeout=self._client.LONGEST)
        except subprocess.TimeoutExpired:
            was_done = self._client.STAYS and self._client.place.turns()[-1]["status"] == "done"
            self._process.send_signal(signal.SIGINT if was_done else signal.SIGKILL)
            out, trouble = self._process.communicate(timeout=PATIENCE)
            assert was_done, f"it does not end: {out}\n{trouble}"
            code = None
        ended = self._process.returncode
        assert code is None or ended == code, (ended, out, trouble)
        self._client.heard(out)
        return out

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe
            pipe.close()  # its shell may hold the other end


class Client(ABC):
    """An agent in a place. One conversation, which goes on with each prompt."""

    NAME = ""
    """As `takeback install` calls it."""
    PACKAGE: packages.Package
    """Where it comes from, in the version that the tests were written for."""
    FOLDER_VARIABLE = ""
    """Environment variable that names its folder, if it has one."""
    FOLDER = ""
    """Its folder in the home folder, for those without a variable."""
    INTERRUPTED = ""
    """What stands in the conversation after Esc."""
    AT_ONCE = True
    """Whether its conversation has calls that were made at once as one answer of the model."""
    MARKS_IN_GIT: tuple[str, ...] = ()
    """How paths in the user's `.git` begin that it writes itself; not ours to take back."""
    STAYS = False
    """Whether its process may stay when its turn is over, by a fault of its own."""
    GOES_ON_ELSEWHERE = True
    """Whether its conversation can go on in another folder of the project, headless."""
    LONGEST = PATIENCE
    """Seconds that a prompt may take."""
    HEALTHY = "last event in this project"
    """What `doctor` says about its hooks when they work."""

    cannot_play: ClassVar[dict[str, str]] = {}
    """The rows of the torture turn that it cannot play, each with the reason."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.version = packages.CHOSEN.get(self.NAME, "")
        if not self.version:
            pytest.skip(f"this run is not about {self.NAME}")
        self.folder = place.scratch / (self.NAME if self.FOLDER_VARIABLE else f"home/{self.FOLDER}")
        self.folder.mkdir(parents=True)
        if self.FOLDER_VARIABLE:
            place.environment[self.FOLDER_VARIABLE] = str(self.folder)
        package = self.PACKAGE.in_version(self.version)
        installed = packages.folder_of(packages.INSTALLED, self.NAME, package)
        self.program = package.words(installed)
        """The words that start it."""
        self.environment = {**place.environment, **package.path(installed)}
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

    def interrupt(self, screen: Screen) -> None:
        """Stop it in the middle."""
        screen.press(ESCAPE)

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

    def script(self, text: str) -> Action:
        """A call of its shell with many lines for bash."""
        return self.shell(f"bash -c {shlex.quote(text)}")

    def may_edit(self, folder: Path) -> None:
        """Let it edit files in a folder outside of the project, if it has to be told."""
        del folder

    def wrong_edit(self, path: Path) -> Action:
        """A call of its edit tool that changes nothing, since what it looks for is not there."""
        raise NotImplementedError

    def is_interrupted(self) -> bool:
        """Whether Esc is in its conversation."""
        return self.INTERRUPTED in self.transcript().read_text()
