"""The client in C is built where that is possible, and comes along; else nothing is missing."""

import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import wheels
from agents import MAIN
from askers import Listener, run
from takeback.agents.dialects import claude_code
from takeback.hooks import command, trial
from wheels import build, pip

ROOT = Path(__file__).resolve().parents[2]
NAME = "takeback/hooks/ask"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build needs of this checkout, with nothing built."""
    return wheels.copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name, as the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="ask-", dir="/tmp") as folder:
        yield Path(folder)


def test_a_wheel_brings_it_along(wheel: Path, tmp_path: Path, short: Path) -> None:
    """It is in the wheel, may be executed, and is what the installed command line runs."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: the wheel with the client in C is NOT TESTED")
    assert "none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as packed:
        assert stat.S_IMODE(packed.getinfo(NAME).external_attr >> 16) & 0o111 == 0o111
        shared = {name.partition(".data/data/share/")[2] for name in packed.namelist()} - {""}
    assert shared == {
        "bash-completion/completions/takeback",
        "bash-completion/completions/tb",
        "fish/vendor_completions.d/takeback.fish",
        "fish/vendor_completions.d/tb.fish",
        "man/man1/takeback.1",
        "man/man1/tb.1",
        "zsh/site-functions/_takeback",
    }
    packages = short / "it's installed"
    pip("install", "--no-compile", "--target", str(packages), str(wheel))
    python = short / "instead of python"
    python.write_text("#!/bin/sh\necho python\n")
    python.chmod(0o700)
    script = short / command.SCRIPT
    script.write_text(command.script(str(python), str(packages / "takeback" / "__main__.py")))
    program = command.line(str(script))
    with Listener(short, answer=b"heard") as listener:
        env = {"HOME": str(short), "TAKEBACK_HOME": str(short)}
        assert run(["/bin/sh", "-c", program], b"said", env).stdout == b"heard"
        assert listener.heard[0][2] == b"said"
    sing(str(packages / "takeback" / "__main__.py"), tmp_path)


@pytest.mark.slow
def test_without_a_compiler_nothing_is_missing(sources: Path, tmp_path: Path) -> None:
    """The build succeeds without it, and the same command line is heard by Python."""
    made = build(sources, tmp_path, CC="false")
    with zipfile.ZipFile(made) as packed:
        assert NAME not in packed.namelist()
    packages = tmp_path / "installed"
    pip("install", "--no-compile", "--target", str(packages), str(made))
    sing(str(packages / "takeback" / "__main__.py"), tmp_path)


def sing(main: str, folder: Path) -> None:
    """Try out the command line of a package that is installed somewhere."""
    agent, script = claude_code.AGENT, folder / command.SCRIPT
    script.write_text(command.script(sys.executable, main))
    trial.try_hooks(agent, dict.fromkeys(agent.kinds, command.line(str(script))), dict(os.environ))


@pytest.mark.slow
def test_a_checkout_builds_it_in_place(sources: Path, tmp_path: Path) -> None:
    """As `./takeback` and `./check` install it: beside its source, where git does not see it."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: the build in place is NOT TESTED")
    built = sources / "src" / NAME
    shutil.rmtree(sources / "build", ignore_errors=True)
    target = str(tmp_path / "editable")
    pip("install", "--no-build-isolation", "--target", target, "--editable", str(sources))
    assert os.access(built, os.X_OK)
    built.unlink()
    assert f"/src/{NAME}" in (ROOT / ".gitignore").read_text().splitlines()
    assert f"exclude src/{NAME}" in (ROOT / "MANIFEST.in").read_text().splitlines()
    named = (ROOT / "scripts" / "environment.sh").read_text()
    assert str((MAIN.parent / "hooks" / "_ask.c").relative_to(ROOT)) in named
