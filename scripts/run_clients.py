"""Run the tests with the real clients, offline. `./check --clients` calls this.

`--program FILE WORDS…` runs another program instead of the tests (`bench/run --only hooks`).

Claude Code and Codex are installed by npm into a cache folder, in the versions that are written
here. Then the tests run in namespaces of their own, with no network but loopback and no processes
but theirs. What is missing is told, and ends with 77: nothing was proven then.
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

VERSIONS = {"@anthropic-ai/claude-code": "2.1.325", "@openai/codex": "0.166.0"}
SKIPPED = 77
ROOT = Path(__file__).resolve().parent.parent


def main(words: list[str]) -> int:
    """Install, go offline, test."""
    if words[:1] == ["--inside"]:
        return inside(words[1:])
    why = missing()
    if why:
        print(f"check: THE REAL CLIENTS WERE NOT RUN: {why}", file=sys.stderr)
        return SKIPPED
    folder = cache()
    if not is_installed(folder) and not install(folder):
        print("check: THE REAL CLIENTS WERE NOT RUN: npm could not install them", file=sys.stderr)
        return SKIPPED
    os.environ["TAKEBACK_CLIENTS"] = str(folder)
    command = [*namespaces(), sys.executable, "-I", __file__, "--inside", *words]
    return run(command)


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


def is_installed(folder: Path) -> bool:
    """Whether both clients are there in the right versions."""
    for name, version in VERSIONS.items():
        try:
            said = json.loads((folder / "node_modules" / name / "package.json").read_text())
        except (OSError, ValueError):
            return False
        if said.get("version") != version:
            return False
    return True


def install(folder: Path) -> bool:
    """Install both; whether that worked."""
    print(f"check: installing the clients in {folder} (about 800 MB)", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}\n")  # else npm looks for one further up
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    # They come as programs for each platform; their install scripts add nothing that we need.
    wanted = [f"{name}@{version}" for name, version in VERSIONS.items()]
    command = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", *quiet, *wanted]
    return run(command) == 0 and is_installed(folder)


def inside(words: list[str]) -> int:
    """Within the namespaces: wake loopback up, and test."""
    bring_up_loopback()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    if words[:1] == ["--program"]:
        return run([sys.executable, "-I", *words[1:]])
    tests = [word for word in words if word.startswith("tests/")] or ["tests/clients"]
    rest = [word for word in words if not word.startswith("tests/")]
    command = [sys.executable, "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider", *rest, *tests]
    return run(command)


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
