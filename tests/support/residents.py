"""The resident helper and its copies, as the system sees them."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import program
import takeback
from agents import hook
from takeback import environment
from takeback.hooks import helper

PATIENCE = 20.0
NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="who is there, and has what open, is asked of /proc"
)


class Place:
    """A folder in which an agent works, all of whose hooks the helper hears."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.home = home
        self.number = 0

    def ask(self, event: str, **more: object) -> bytes | None:
        """One event; the answer of the helper."""
        said = {"session_id": "S", "cwd": str(self.tree), "prompt_id": f"P{self.number}"}
        payload = json.dumps({**said, "hook_event_name": event, **more}).encode()
        folder = os.fsencode(self.tree)
        own_id = os.urandom(16).hex().encode()
        words = (os.fsencode(self.home), environment.user_home(), folder, folder, own_id)
        return helper.ask(words[0], words, payload)

    def is_heard(self) -> bool:
        """Whether there is a helper that answers."""
        return self.ask("Notification") is not None

    def tell(self, event: str, **more: object) -> dict[str, object]:
        """One event, heard by the helper; what is answered."""
        answer = self.ask(event, **more)
        assert answer is not None, "the helper did not answer"
        return dict(json.loads(answer)) if answer else {}

    def turn(self, **files: str) -> dict[str, object]:
        """One prompt, after which files are written by a command; what is said at the prompt."""
        told = self.prompt()
        with self.shell(f"T{self.number}"):
            for name, content in files.items():
                (self.tree / name).write_text(content)
        self.tell("Stop")
        return told

    def prompt(self) -> dict[str, object]:
        """A prompt; what is said to it."""
        self.number += 1
        return self.tell("UserPromptSubmit", prompt=f"prompt {self.number}")

    @contextlib.contextmanager
    def shell(self, name: str) -> Iterator[None]:
        """A command of the agent, while it runs."""
        call = {"tool_name": "Bash", "tool_input": {"command": "…"}, "tool_use_id": name}
        self.tell("PreToolUse", **call)
        yield
        self.tell("PostToolUse", **call, tool_response="")

    def labels(self) -> list[str]:
        """The prompts that the log knows, oldest first."""
        with takeback.open(self.tree, home=self.home) as project:
            return [turn.label for turn in reversed(project.log().turns)]

    def command(self, *words: str) -> None:
        """A command of the user in this folder."""
        done = program.text(words, self.tree)
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def heard(tree: Path, home: Path) -> Iterator[Place]:
    """A place whose helper is there."""
    said = {"session_id": "S", "cwd": str(tree), "hook_event_name": "SessionStart"}
    hook(json.dumps(said).encode(), TAKEBACK_HELPER="1")
    found = Place(tree, home)
    until(found.is_heard, "a helper")
    yield found
    for pid in helpers(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def helpers(home: Path) -> list[int]:
    """The helper of a home."""
    lock = os.path.realpath(home / "helper.sock.lock")
    return [pid for pid in processes() if lock in files_of(pid)]


def copies_of(home: Path) -> list[int]:
    """The copies of the helper of a home: they have its ledgers open."""
    start = os.path.realpath(home / "projects") + "/"
    return [pid for pid in processes() if any(name.startswith(start) for name in files_of(pid))]


def processes() -> list[int]:
    """All but this one."""
    found = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [pid for pid in found if pid != os.getpid()]


def files_of(pid: int) -> list[str]:
    """What a process has open; one that is closed just now is left out."""
    found = []
    with contextlib.suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(os.readlink(fd))
    return found


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that must come soon."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)
