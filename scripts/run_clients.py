"""Run the tests with the real clients, offline. `./check --clients` calls this.

Names of clients choose among them (`gemini-cli`), else all are run. Other words go to pytest.
`--newest` runs the newest version of each that can be installed here, instead of the one that the
tests were written for, and names the newer ones that cannot. `--program FILE WORDS…` runs another
program instead of the tests (`bench/run --only hooks`).

The clients are installed into a cache folder (`tests/support/clients/packages.py`). Then the tests
run in namespaces of their own, with no network but loopback and no processes but theirs. What is
missing is told, and ends with 77: that was not proven then.
"""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))

from clients import packages  # noqa: E402
from clients.packages import CannotInstallError, Package  # noqa: E402
from clients.real import BESIDE, CLIENTS  # noqa: E402

SKIPPED = 77
TRIES = 3
"""How many of the newest versions are tried before the one that the tests were written for."""

LONGEST = 900
"""Seconds that a test may take; some clients need a minute to start on a busy machine."""


def main(words: list[str]) -> int:
    """Install, go offline, test."""
    if words[:1] == ["--inside"]:
        return inside(words[1:])
    split = words.index("--program") if "--program" in words else len(words)
    known = {**{client.NAME: client.PACKAGE for client in CLIENTS}, **BESIDE}
    names = [word for word in words[:split] if word in known] or list(known)
    rest = [word for word in words[:split] if word not in (*known, "--newest")] + words[split:]
    why = missing()
    if why:
        print(f"check: THE REAL CLIENTS WERE NOT RUN: {why}", file=sys.stderr)
        return SKIPPED
    versions, missed = install(names, known, newest="--newest" in words[:split])
    code = SKIPPED
    if versions:
        os.environ[packages.CACHE] = str(cache())
        os.environ[packages.VERSIONS] = json.dumps(versions)
        code = run([*namespaces(), sys.executable, "-I", __file__, "--inside", *rest])
        ran = ", ".join(f"{name} {version}" for name, version in versions.items())
        print(f"check: ran with {ran}", file=sys.stderr)
    for line in missed:
        print(f"check: {line}", file=sys.stderr)
    are_all_here = len(versions) == len(names)
    return code or (0 if are_all_here else SKIPPED)


def install(
    names: list[str], known: dict[str, Package], *, newest: bool
) -> tuple[dict[str, str], list[str]]:
    """Install clients: the version of each that is there, and what has to be said at the end."""
    versions, missed = {}, []
    for name in names:
        package = known[name]
        try:
            newer = package.newer_versions() if newest else []
        except CannotInstallError as problem:
            newer = []
            missed.append(f"nobody tells which version of {name} is the newest: {problem}")
        for version in [*newer[:TRIES], package.version]:
            try:
                packages.ensure(cache(), name, package.in_version(version), tuple(namespaces()))
            except CannotInstallError as problem:
                is_newer = version != package.version
                loud = "is newer and cannot be installed here" if is_newer else "WAS NOT RUN"
                missed.append(f"{name} {version} {loud}: {problem}")
            else:
                versions[name] = version
                break
    return versions, missed


def missing() -> str:
    """What is missing on this machine; empty if nothing is."""
    if not sys.platform.startswith("linux"):
        return "they are run offline in namespaces, which only Linux has"
    for program in ("npm", "node", "unshare", "git"):
        if shutil.which(program) is None:
            return f"`{program}` is missing"
    if run([*namespaces(), "true"]):
        return "no network and process namespaces may be made here (root may, mostly)"
    return ""


def namespaces() -> list[str]:
    """The words before a command that let it run with nothing but itself."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]


def cache() -> Path:
    """Where the clients are installed; nothing of it is in the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "takeback-clients"


def inside(words: list[str]) -> int:
    """Within the namespaces: wake loopback up, and test."""
    bring_up_loopback()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    if words[:1] == ["--program"]:
        return run([sys.executable, "-I", *words[1:]])
    tests = [word for word in words if word.startswith("tests/")] or ["tests/clients"]
    rest = [word for word in words if not word.startswith("tests/")]
    options = ["-q", "-p", "no:cacheprovider", f"--timeout={LONGEST}"]
    return run([sys.executable, "-I", "-m", "pytest", *options, *rest, *tests])


def run(command: list[str]) -> int:
    """Run a command of ours, which may print; its code."""
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - ours, no shell


def bring_up_loopback() -> None:
    """As `ip link set lo up`, which not every machine has."""
    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        known = fcntl.ioctl(any_socket, get_flags, struct.pack("16sh22x", b"lo", 0))
        (flags,) = struct.unpack_from("h", known, 16)
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh22x", b"lo", flags | up))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
