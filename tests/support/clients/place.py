"""Where a client works in a test: a folder, a store, settings, and nothing of the user."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from clients.model import PATIENCE, Model

LAUNCHER = Path(__file__).parents[3] / "takeback"
TAKEBACK = [sys.executable, "-I", "-m", "takeback"]


class Place:
    """A project, the scratch folders of everybody who works in it, and the model they ask."""

    def __init__(self, scratch: Path, tree: Path, model: Model) -> None:
        self.scratch = scratch
        self.tree = tree
        self.model = model
        for name in ("home", "tmp"):
            (scratch / name).mkdir(mode=0o700)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch / "home"),
            "TMPDIR": str(scratch / "tmp"),
            "TAKEBACK_HOME": str(scratch / "store"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def put_on_path(self, *environments: dict[str, str]) -> None:
        """Let a `takeback` stand in the PATH, here and in environments that were made before."""
        programs = self.scratch / "bin"
        programs.mkdir()
        (programs / "takeback").symlink_to(LAUNCHER)
        for environment in (self.environment, *environments):
            environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"

    def takeback(self, *words: str, where: Path | None = None, code: int = 0) -> str:
        """What the real command prints; it must end with this code."""
        done = subprocess.run(
            [*TAKEBACK, *words],
            cwd=where or self.tree,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def told(self, *words: str, where: Path | None = None) -> Any:  # noqa: ANN401 -- JSON
        """What the real command tells as JSON."""
        return json.loads(self.takeback(*words, "--json", where=where))

    def hooks_by_doctor(self) -> str:
        """What `doctor` says about hooks, its warnings included."""
        head, found, rest = self.takeback("doctor").partition("\nhooks ")
        assert found, head
        return rest

    def turns(self) -> list[dict[str, Any]]:
        """The turns in the log, the oldest first."""
        return list(reversed(self.told("log", "--all")["turns"]))

    def close(self) -> None:
        """End whoever still works here: helpers, servers of clients, shells in the background.

        Only in a process namespace of our own (`scripts/run_clients.py`), where nobody else is.
        """
        ours = str(self.scratch).encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in {1, os.getpid()}:
                with suppress(OSError):
                    if ours in (entry / "environ").read_bytes():
                        os.kill(int(entry.name), signal.SIGKILL)


def wait_until(what: str, holds: Callable[[], object]) -> None:
    """Wait until something holds that another process brings about."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)
