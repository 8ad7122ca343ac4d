"""Makes `.venv`, the environment of this checkout: make_environment.py run|check INPUT...

`run` is what `./takeback` needs, `check` adds the tools of `./check`. A finished environment has
a stamp: the interpreter and the checkout it was made for, with the time of the newest input. An
environment without one was interrupted, and is made from nothing. Whoever starts at the same
time waits for the lock, which the running pip holds too, and then finds the work done.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "setup.log"
MARK = VENV / "made-by-takeback"

# Settings of the caller that would make pip install somewhere else.
MISLEADING = {"PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PIP_REQUIRE_VIRTUALENV"}


class SetupError(Exception):
    """The environment could not be made; the message says what to do."""


def main(kind: str, inputs: list[str]) -> int:
    """Make what is missing for `kind`, and say so in one line."""
    try:
        with_lock(lambda lock: make(kind, newest(inputs), lock))
    except SetupError as error:
        print(f"takeback: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def with_lock(work: Callable[[int], None]) -> None:
    """Do `work` while this checkout's folder is locked."""
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("takeback: waiting for another start that is setting up…", file=sys.stderr)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        work(lock)
    finally:
        os.close(lock)


def newest(inputs: list[str]) -> int:
    """The time of the input that changed last; read before any of them is used."""
    present = [path for name in inputs if (path := ROOT / name).exists()]
    return max(path.stat().st_mtime_ns for path in present)


def make(kind: str, changed_at: int, lock: int) -> None:
    """Make the environment, then the tools of `check`, each only if its stamp is not good."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    run, check = stamp("run"), stamp("check")
    if not is_good(run, changed_at):
        print("takeback: setting up (once)…", file=sys.stderr)
        usable = is_good(run, 0)
        run.unlink(missing_ok=True)
        check.unlink(missing_ok=True)
        if not usable:
            make_empty(lock)
        install(project, lock)
        write_stamp(run, changed_at)
    if kind == "check" and not is_good(check, changed_at):
        print("takeback: fetching the tools of ./check (once)…", file=sys.stderr)
        pip([*project["dependency-groups"]["dev"]], lock)
        write_stamp(check, changed_at)


def stamp(kind: str) -> Path:
    """Where the environment says that it is finished."""
    return VENV / f"{kind}.stamp"


def is_good(path: Path, changed_at: int) -> bool:
    """Whether the environment was finished here, since the inputs changed, and still works."""
    if not path.exists() or path.stat().st_mtime_ns < changed_at:
        return False
    interpreter, made_in = path.read_text().splitlines()
    return made_in == str(ROOT) and Path(interpreter).exists() and PYTHON.exists()


def write_stamp(path: Path, changed_at: int) -> None:
    """Finish: in one step, and dated so that any later change of an input is newer."""
    draft = path.with_suffix(".draft")
    draft.write_text(f"{PYTHON.resolve()}\n{ROOT}\n")
    os.utime(draft, ns=(changed_at, changed_at))
    draft.replace(path)


def make_empty(lock: int) -> None:
    """Make a new environment with nothing in it, instead of an unfinished one of ours."""
    if VENV.exists() and any(VENV.iterdir()) and not MARK.exists():
        message = "`.venv` is in the way and was not made by Takeback; move it elsewhere first."
        raise SetupError(message)
    if VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir()
    MARK.touch()
    run_logged([sys.executable, "-I", "-m", "venv", str(VENV)], lock)


def install(project: dict[str, Any], lock: int) -> None:
    """Install Takeback as it stands in this checkout, and build what of it is in C, if possible."""
    pip(project["build-system"]["requires"], lock)
    # A build that fails is allowed, but must not leave what was built of older sources behind.
    for built in [*(ROOT / "src").rglob("_statloop*.so"), ROOT / "src/takeback/hooks/ask"]:
        built.unlink(missing_ok=True)
    # Without build isolation the set-up can be repeated where there is no network.
    pip(["--no-build-isolation", "--editable", str(ROOT)], lock)


def pip(arguments: list[str], lock: int) -> None:
    """Run the environment's own pip."""
    command = [str(PYTHON), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run_logged([*command, "install", "--no-compile", *arguments], lock)


def run_logged(command: list[str], lock: int) -> None:
    """Run one command quietly; when it fails, show the end of what it said."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name not in MISLEADING
    }
    with LOG.open("ab") as log:
        done = subprocess.run(  # noqa: S603 - our own command, no shell
            command,
            cwd=ROOT,
            env=kept,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            check=False,
        )
    if done.returncode:
        tail = LOG.read_text(errors="replace").splitlines()[-20:]
        message = "the set-up failed; it is tried again at the next start. The end of its log:"
        raise SetupError("\n".join([message, *(f"    {line}" for line in tail)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
