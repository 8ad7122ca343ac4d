"""The command line runs no code of the tree, whichever way it is started."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from agents import MAIN

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "argparse ast base64 bisect collections configparser contextlib copy csv ctypes dataclasses"
    " datetime difflib enum errno fcntl fnmatch functools getpass glob hashlib heapq inspect isal"
    " itertools json keyword locale logging operator pathlib pickle platform pygit2"
    " queue random re reprlib secrets select selectors shlex shutil signal site socket sqlite3"
    " string struct subprocess takeback tempfile textwrap threading time tokenize tomlkit tomllib"
    " traceback types typing unicodedata uuid warnings weakref zlib"
).split()
BEFORE_US = (
    "enum",
    "re",
    "types",
    "keyword",
    "operator",
    "functools",
    "collections",
    "contextlib",
    "warnings",
    "threading",
    "weakref",
    "itertools",
    "typing",
    "reprlib",
)
"""What Python itself imports for `-m`, before any code of ours."""


@pytest.fixture
def trapped(tree: Path) -> Path:
    """A tree full of modules that leave a note if somebody imports them."""
    for name in NAMES:
        (tree / f"{name}.py").write_text(
            f"import posix\nposix.close(posix.open({str(tree / 'sprung')!r}, 65, 0o600))\n"
            f"raise SystemExit('{name} of the tree was imported')\n"
        )
    return tree


def script(name: str, folder: Path) -> str:
    """The console script as it is installed: the package and Python are beside it."""
    packages = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (packages / "takeback").symlink_to(MAIN.parent)
    (folder / "bin").mkdir()
    (folder / "bin/python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "bin/python3").chmod(0o755)
    path = folder / "bin" / name
    shutil.copy(ROOT / "scripts/console" / name, path)
    return str(path)


def ran(command: list[str], tree: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    """What a command did in the tree."""
    environment = {**os.environ, "COLUMNS": "80", **more}
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["takeback", "tb"])
@pytest.mark.usefixtures("home")
def test_the_console_script_runs_nothing_of_the_tree(
    trapped: Path, tmp_path: Path, name: str
) -> None:
    """With `PYTHONPATH=.` no module of the tree is imported, and the command does its work."""
    command = script(name, tmp_path / "installed here")
    for words in (["checkpoint"], ["log"], ["doctor"]):
        done = ran([command, *words], trapped, PYTHONPATH=".")
        assert done.returncode == 0, done.stderr
        assert not (trapped / "sprung").exists(), words


@pytest.mark.usefixtures("home")
def test_the_installed_script_is_ours(trapped: Path) -> None:
    """What pip installed beside this Python starts isolated, too."""
    installed = Path(sysconfig.get_path("scripts")) / "takeback"
    if not installed.exists():
        pytest.skip("Takeback is not installed beside this Python: its script is NOT TESTED")
    done = ran([str(installed), "checkpoint"], trapped, PYTHONPATH=f".:{trapped}")
    assert done.returncode == 0, done.stderr
    assert not (trapped / "sprung").exists()


@pytest.mark.parametrize("path", ["", "."])
@pytest.mark.usefixtures("home")
def test_python_m_takes_nothing_from_the_tree(trapped: Path, path: str) -> None:
    """`python -m takeback` does not look for modules in the current folder."""
    for name in (*BEFORE_US, "takeback"):
        (trapped / f"{name}.py").unlink()
    more = {"PYTHONPATH": path} if path else {}
    done = ran([sys.executable, "-m", "takeback", "checkpoint"], trapped, **more)
    assert done.returncode == 0, done.stderr
    assert not (trapped / "sprung").exists()


@pytest.mark.usefixtures("home")
def test_a_command_of_the_user_gets_the_environment_unchanged(trapped: Path) -> None:
    """`takeback run` gives its command PYTHONPATH and the rest as the user set them."""
    given = {"PYTHONPATH": ".:lib", "PYTHONDONTWRITEBYTECODE": "1"}
    with_script = [script("takeback", trapped.parent / "installed"), "run", "--", "env"]
    for command in (with_script, [sys.executable, "-I", str(MAIN), "run", "--", "env"]):
        done = ran(command, trapped, **given)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert {line for line in lines if line.partition("=")[0] in given} == {
            f"{name}={value}" for name, value in given.items()
        }
        assert not (trapped / "sprung").exists()


@pytest.mark.usefixtures("home")
def test_a_takeback_that_only_pythonpath_names_is_found(tree: Path, tmp_path: Path) -> None:
    """A copy in a folder of PYTHONPATH runs, also `python -m` of it beside an installed one."""
    packages = tmp_path / "packages"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(MAIN.parent, packages / "takeback", ignore=ignored)
    (packages / "takeback/version.py").write_text('VERSION = "of the copy"\n')
    done = ran([sys.executable, "-m", "takeback", "--version"], tree, PYTHONPATH=str(packages))
    assert (done.stdout, done.stderr) == ("takeback of the copy\n", "")


@pytest.mark.parametrize("place", ["", "--user", "--target"])
def test_the_script_finds_its_takeback(tree: Path, tmp_path: Path, place: str) -> None:
    """In a path with a space, by a link, and where Python is somewhere else."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    root = tmp_path / "two words"
    package = root if place == "--target" else root / "lib" / version / "site-packages"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(MAIN.parent, package / "takeback", ignore=ignored)
    (package / "takeback/version.py").write_text('VERSION = "of the copy"\n')
    pythons = root / "bin" if not place else tmp_path / "pythons"
    for folder in (root / "bin", pythons, tmp_path / "links"):
        folder.mkdir(exist_ok=True)
    for name in (version, "python3"):
        (pythons / name).symlink_to(sys.executable)
    shutil.copy(ROOT / "scripts/console/takeback", root / "bin")
    (tmp_path / "links/takeback").symlink_to("../two words/bin/takeback")
    path = f"{tmp_path}/links:{pythons}:{os.environ['PATH']}"
    for command in ([str(root / "bin/takeback")], ["sh", "-c", 'takeback "$@"', "sh"]):
        done = ran([*command, "--version"], tree, PATH=path)
        assert (done.stdout, done.stderr) == ("takeback of the copy\n", ""), command


@pytest.mark.parametrize("older", ["python3.0", "python3.99"])
def test_the_script_runs_what_was_installed_last(tree: Path, tmp_path: Path, older: str) -> None:
    """What an earlier Python left in the same prefix does not run in its place."""
    command = script("takeback", tmp_path / "installed")
    left = tmp_path / "installed/lib" / older / "site-packages/takeback/__main__.py"
    left.parent.mkdir(parents=True)
    left.write_text("raise SystemExit('an earlier Takeback ran')\n")
    os.utime(left, (1, 1))
    done = ran([command, "--version"], tree)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_script_without_a_python_says_so(tree: Path, tmp_path: Path) -> None:
    """Copied out of its environment, it tells what to do."""
    shutil.copy(ROOT / "scripts/console/takeback", tmp_path)
    done = ran([str(tmp_path / "takeback"), "log"], tree)
    assert (done.returncode, done.stdout) == (1, "")
    assert "install Takeback again" in done.stderr


def test_a_hook_by_the_script_asks_without_python(tree: Path, tmp_path: Path) -> None:
    """`takeback hook`, as shared settings and the plugin call it, is the client in C if built."""
    root = tmp_path / "root"
    package = root / "takeback"
    (package / "hooks").mkdir(parents=True)
    (package / "__main__.py").touch()
    (package / "hooks/ask").write_text('#!/bin/sh\necho "$@"\n')
    (root / "bin").mkdir()
    shutil.copy(ROOT / "scripts/console/takeback", root / "bin")
    (root / "bin/python3").write_text("#!/bin/sh\necho Python\n")
    (root / "bin/python3").chmod(0o755)
    command = [str(root / "bin/takeback"), "hook", "/folder"]
    assert ran(command, tree).stdout == "Python\n"
    (package / "hooks/ask").chmod(0o755)
    asked = f"{root}/bin/python3 -I -S {package}/__main__.py hook /folder\n"
    assert ran(command, tree).stdout == asked
    assert ran([command[0], "log"], tree).stdout == "Python\n"


def test_both_scripts_are_the_same() -> None:
    """`tb` is `takeback` under a shorter name."""
    one, other = ((ROOT / "scripts/console" / name).read_bytes() for name in ("takeback", "tb"))
    assert one == other
