"""Takeback as its users get it: a wheel, built once for all tests, and environments with it."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
NEEDED_PACKAGES = (
    *(re.split(r"[^\w-]", each)[0].replace("-", "_") for each in _DECLARED),
    *("cffi", "_cffi", "pycparser"),
)
"""Where the names of what the wheel needs begin; what pygit2 needs is last."""
NEEDED = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


def copy_sources(folder: Path) -> Path:
    """What a build needs of this checkout, with nothing built."""
    built = shutil.ignore_patterns("*.so", "ask", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=built)
    for name in NEEDED:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "scripts/console", folder / "scripts/console")
    return folder


def build(sources: Path, out: Path, **env: str) -> Path:
    """The wheel of the sources."""
    shutil.rmtree(sources / "build", ignore_errors=True)
    pip("wheel", "--no-build-isolation", "-w", str(out), str(sources), **env)
    (made,) = out.glob("*.whl")
    return made


def pip(*arguments: str, **env: str) -> None:
    """Run pip without the network; the test is skipped where it cannot build."""
    if find_spec("pip") is None or find_spec("setuptools") is None:
        pytest.skip("there is no pip with setuptools here: the build is NOT TESTED")
    program = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [*program, *arguments[:1], "-q", "--no-index", "--no-deps", *arguments[1:]],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def shared_wheel(folder: Path) -> Path:
    """The wheel of this checkout in a folder of this run; the first worker that asks builds it."""
    with _one_at_a_time(folder):
        out = folder / "wheel"
        if not out.exists():
            sources = folder / "wheel-sources"
            shutil.rmtree(sources, ignore_errors=True)
            sources.mkdir()
            made = build(copy_sources(sources), folder / "wheel-new")
            made.parent.rename(out)
        (wheel,) = out.glob("*.whl")
        return wheel


def install(wheel: Path, folder: Path) -> Path:
    """The `bin` of a new environment with the wheel, and with its dependencies from this one."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True)
    pip("install", "--no-compile", "--ignore-installed", "--prefix", str(folder), str(wheel))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = folder / "lib" / version / "site-packages"
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if found.name.startswith(NEEDED_PACKAGES):
            (packages / found.name).symlink_to(found)
    return folder / "bin"


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    with (folder / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
