"""Wheel and sdist as users meet them; `scripts/packaging` runs this, with the network.

Each test installs into an empty home. Without `scripts/packaging` none of them runs.
"""

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from takeback.cli import completion
from takeback.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("TAKEBACK_PACKAGING") or "/nonexistent")
NO_COMPILER = {"CC": "/bin/false"}
CHECKOUT_ONLY = {".gitattributes", ".gitignore"}

pytestmark = [
    pytest.mark.skipif(not TOOLS.is_dir(), reason="only `scripts/packaging` runs these"),
    pytest.mark.timeout(600),
]


class Built:
    """A wheel and an sdist."""

    def __init__(self, folder: Path) -> None:
        (self.wheel,) = folder.glob("*.whl")
        (self.sdist,) = folder.glob("*.tar.gz")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built from a checkout that is in use; the wheel is built from the sdist."""
    folder, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    for junk in ("build/share/man/man1/takeback.1", ".venv/bin/python", "docs/.DS_Store",
                 "tests/__pycache__/a.pyc", "src/takeback/hooks/ask", ".hypothesis/a",
                 "src/takeback/worktree/_statloop.abi3.so"):  # fmt: skip
        (folder / junk).parent.mkdir(parents=True, exist_ok=True)
        (folder / junk).write_text("junk")
    run([TOOLS / "bin/python", "-I", "-m", "build", "-o", out, folder], dict(os.environ))
    return Built(out)


def tracked() -> list[str]:
    """The files of this checkout that belong to it."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name and os.path.lexists(ROOT / name)]


def run(command: list[str | Path], env: dict[str, str], **more: str) -> str:
    """Run something that must succeed; what it printed."""
    cwd, given = more.pop("cwd", None), more.pop("input", "")
    done = subprocess.run(
        command, env={**env, **more}, cwd=cwd, input=given, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


class User:
    """Somebody with an empty home who installs Takeback by one of the tools."""

    def __init__(self, folder: Path, tool: str) -> None:
        self.home, self.tool = folder / "home", tool
        self.home.mkdir()
        self.bin = self.home / (".venv/bin" if tool == "pip" else ".local/bin")
        kept = ("PATH", "LANG", "SSL_CERT_FILE")
        self.env = {
            name: value
            for name, value in os.environ.items()
            if name in kept or name.startswith(("PIP_", "UV_"))
        }
        self.env |= {"HOME": str(self.home), "PATH": f"{self.bin}:{self.env['PATH']}"}
        self.env |= {"CLAUDE_CONFIG_DIR": str(self.home / ".claude"), "TAKEBACK_HELPER": "0"}
        self.tree = folder / "shop"
        self.tree.mkdir()
        (self.tree / "a.txt").write_text("one\n")

    @property
    def prefix(self) -> Path:
        """The environment that it is installed in."""
        return (self.bin / "takeback").resolve().parent.parent

    def install(self, package: Path, python: str = sys.executable, **more: str) -> None:
        """Install the package, or instead of what is there."""
        command: list[str | Path]
        if self.tool == "pip":
            shutil.rmtree(self.home / ".venv", ignore_errors=True)
            run([python, "-I", "-m", "venv", self.home / ".venv"], self.env)
            command = [self.bin / "python", "-I", "-m", "pip", "install", "-q", package]
        elif self.tool == "uv":
            command = [TOOLS / "bin/uv", "tool", "install", "--force", "--python", python, package]
        else:
            command = [TOOLS / "bin/pipx", "install", "--force", "--python", python, package]
        run(command, self.env, **more)

    def takeback(self, *words: str, name: str = "takeback") -> str:
        """Run the installed command in a project."""
        return run([self.bin / name, *words], self.env, cwd=str(self.tree))

    def prompt(self, text: str) -> "subprocess.CompletedProcess[str]":
        """What the hook of a prompt does, as Claude Code runs it, with a bare `PATH`."""
        settings = json.loads((self.home / ".claude/settings.json").read_text())
        (entry,) = settings["hooks"]["UserPromptSubmit"]
        payload = {
            "session_id": "3f0c2f0e-1c8d-4b2e-9d6e-0f1a2b3c4d5e",
            "transcript_path": str(self.home / "none.jsonl"),
            "cwd": str(self.tree),
            "hook_event_name": "UserPromptSubmit",
            "prompt_id": text,
            "prompt": text,
        }
        env = {**self.env, "PATH": "/usr/bin:/bin", "CLAUDE_PROJECT_DIR": str(self.tree)}
        return subprocess.run(
            ["/bin/sh", "-c", entry["hooks"][0]["command"]], input=json.dumps(payload), env=env,
            cwd=self.tree, capture_output=True, text=True, check=False,
        )  # fmt: skip


def needs_compiler() -> None:
    """Skip, loudly, where there is none."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: the install that has one is NOT TESTED")


# -- what is in them ---------------------------------------------------------------------------


def test_the_metadata_is_complete(built: Built) -> None:
    """What an index shows; the version is the program's own, and twine has no complaint."""
    run([TOOLS / "bin/twine", "check", "--strict", built.wheel, built.sdist], dict(os.environ))
    with zipfile.ZipFile(built.wheel) as packed:
        (name,) = (n for n in packed.namelist() if n.endswith(".dist-info/METADATA"))
        said = email.message_from_bytes(packed.read(name))
    assert (said["Name"], said["Version"]) == ("takeback", VERSION)
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "Apache-2.0"
    assert said["License-File"] == "LICENSE"
    assert said["Description-Content-Type"] == "text/markdown"
    assert str(said.get_payload()).startswith("# Takeback")
    assert len(said.get_all("Classifier") or ()) > 8
    assert {line.split(";")[0].split(">")[0] for line in said.get_all("Requires-Dist") or ()} == {
        "isal",
        "pygit2",
        "tomlkit",
    }


def test_the_sdist_is_the_checkout(built: Built) -> None:
    """All that is needed to build and test, and no junk."""
    with tarfile.open(built.sdist) as packed:
        names = {n.partition("/")[2] for n in packed.getnames() if packed.getmember(n).isfile()}
    made = {n for n in names if ".egg-info/" in n} | {"PKG-INFO", "setup.cfg"}
    assert names - made == set(tracked()) - CHECKOUT_ONLY


def test_the_wheel_has_pages_and_scripts(built: Built) -> None:
    """As the program prints them; both commands can be completed and looked up."""
    with zipfile.ZipFile(built.wheel) as packed:
        shared = {
            name.partition(".data/data/share/")[2]: packed.read(name).decode()
            for name in packed.namelist()
            if ".data/data/share/" in name
        }
    bash, zsh, fish = (completion.script(shell) for shell in completion.SHELLS)
    page = run([sys.executable, "-I", "-S", ROOT / "src/takeback/__main__.py", "man"], {})
    assert shared == {
        "man/man1/takeback.1": page,
        "man/man1/tb.1": page,
        "bash-completion/completions/takeback": bash,
        "bash-completion/completions/tb": bash,
        "zsh/site-functions/_takeback": zsh,
        "fish/vendor_completions.d/takeback.fish": fish,
        "fish/vendor_completions.d/tb.fish": fish,
    }


# -- installed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["wheel", "sdist", "sdist without compiler"])
@pytest.mark.parametrize("tool", ["pip", "uv", "pipx"])
def test_it_installs_and_works(built: Built, tmp_path: Path, tool: str, package: str) -> None:
    """In an empty home: both commands, an undo, an agent's hooks, doctor, pages and scripts."""
    has_c = "without" not in package
    if has_c:
        needs_compiler()
    user = User(tmp_path, tool)
    user.install(built.wheel if package == "wheel" else built.sdist, **{} if has_c else NO_COMPILER)
    assert user.takeback("--version") == user.takeback("--version", name="tb")
    assert VERSION in user.takeback("--version")
    user.takeback("run", "-q", "-m", "tidy up", "--", "sh", "-c", "echo two > a.txt")
    assert "tidy up" in user.takeback("log")
    user.takeback("undo", name="tb")
    assert (user.tree / "a.txt").read_text() == "one\n"
    user.takeback("install", "claude-code")
    done = user.prompt("paint it blue")
    assert (done.returncode, done.stderr) == (0, "")
    assert "paint it blue" in user.takeback("log", "--all")
    (package_folder,) = user.prefix.glob("lib/python3*/site-packages/takeback")
    assert (package_folder / "hooks/ask").exists() == has_c
    assert any(package_folder.glob("worktree/_statloop*.so")) == has_c
    assert (user.prefix / "share/man/man1/takeback.1").is_file()
    assert "tidy up" in user.takeback("__complete", "bash", "redo", "")


# -- another Python ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pythons() -> tuple[str, str]:
    """Two interpreters of different versions."""
    found: dict[str, str] = {}
    folders = os.get_exec_path()
    for shims in [Path(each) for each in folders if each.endswith("/shims")]:  # of pyenv
        folders += map(str, shims.parent.glob("versions/3.*/bin"))
    for folder in folders:
        for minor in range(11, 16):
            path = f"{folder}/python3.{minor}"
            if os.path.exists(path) and f"3.{minor}" not in found:
                code = "import sys, venv, ensurepip; print(*sys.version_info[:2], sep='.')"
                done = subprocess.run(
                    [path, "-I", "-c", code], capture_output=True, text=True, check=False
                )
                if done.stdout.strip() == f"3.{minor}":
                    found[f"3.{minor}"] = os.path.realpath(path)
    if len(found) < 2:
        pytest.skip("there is only one Python here: an upgrade of Python is NOT TESTED")
    older, newer, *_ = sorted(found)
    return found[older], found[newer]


@pytest.mark.parametrize("tool", ["pip", "uv", "pipx"])
def test_hooks_survive_another_python(
    built: Built, tmp_path: Path, tool: str, pythons: tuple[str, str]
) -> None:
    """What `install` wrote is heard when the interpreter is gone, and after a reinstall."""
    older, newer = pythons
    user = User(tmp_path, tool)
    user.install(built.wheel, older)
    user.takeback("install", "claude-code")
    settings = (user.home / ".claude/settings.json").read_bytes()
    assert user.prompt("with the old Python").returncode == 0

    for name in user.prefix.glob("bin/python*"):
        name.unlink()
        name.symlink_to("/nonexistent/python")
    gone = user.prompt("without a Python")
    assert (gone.returncode, gone.stderr) == (0, "")

    user.install(built.wheel, newer)
    assert "python" not in settings.decode().lower()
    after = user.prompt("with the new Python")
    assert (after.returncode, after.stderr) == (0, "")
    log = user.takeback("log", "--all")
    assert "with the old Python" in log
    assert "with the new Python" in log
    assert "without a Python" in log or "Takeback is gone" in gone.stdout
    assert (user.home / ".claude/settings.json").read_bytes() == settings
