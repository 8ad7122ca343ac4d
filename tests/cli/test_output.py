"""What the command line prints: closed or full outputs, and masked tokens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from takeback.cli import app

MAIN = Path(app.__file__).parent.parent / "__main__.py"


@pytest.mark.parametrize("word", ["diff", "log", "sessions", "show", "doctor"])
def test_a_closed_stdout_is_no_surprise(tree: Path, home: Path, word: str) -> None:
    """A command whose output nobody wants still ends well."""
    with takeback.open(tree, home=home) as project:
        project.session("x").turn("one").end()
        (tree / "a").write_text("x")
    words = [word, "@"] if word == "show" else [word]
    command = 'exec "$@" >&-'
    shell = ["sh", "-c", command, "sh", sys.executable, "-I", str(MAIN), *words]
    done = subprocess.run(shell, check=False, cwd=tree, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


TOKEN = "ghp_" + "a1B2" * 9


def test_tokens_in_prompts_and_commands_are_not_shown(
    tree: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that stands in a prompt or in a command is masked wherever the log is shown."""
    with takeback.open(tree, home=home) as project:
        turn = project.session("x").turn(f"use {TOKEN} for it", whole=False)
        turn.step("Bash", {"command": f"curl -H 'Authorization: {TOKEN}'"}).end()
        turn.end()
    monkeypatch.setenv("TAKEBACK_HOME", str(home))
    for words in (["log"], ["show", turn.id], ["sessions"], []):
        for more in ([], ["--json"]):
            assert app.main(["-C", str(tree), *words, *more]) == 0
            shown = capsys.readouterr()
            assert TOKEN not in shown.out + shown.err


def test_a_full_disk_behind_stdout_is_one_sentence(tree: Path, home: Path) -> None:
    """What cannot be written is said on stderr, with exit code 1 and no traceback."""
    takeback.open(tree, home=home).checkpoint()
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "takeback", "-C", str(tree), "log"],
            env={**os.environ, "TAKEBACK_HOME": str(home)},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr
    assert b"Traceback" not in done.stderr
