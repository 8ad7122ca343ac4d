"""The command line as a person and a program meet it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from takeback.cli import app

MAIN = Path(app.__file__).parent.parent / "__main__.py"


class Said:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Said:
    """Run a command in this process."""
    code = app.main(list(words))
    captured = capsys.readouterr()
    return Said(code, captured.out, captured.err)


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """Run a command that must succeed and print one JSON object."""
    said = run(capsys, *words, "--json")
    assert said.code == 0
    found: dict[str, object] = json.loads(said.out)
    return found


@pytest.fixture(autouse=True)
def _in_the_tree(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a small project, with a store of their own."""
    assert home.is_dir()
    (tree / "src").mkdir()
    (tree / "src" / "a.py").write_text("a\n")
    (tree / "b.txt").write_text("b\n")
    monkeypatch.chdir(tree)


def test_a_folder_without_history(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare `takeback` says in a few lines what it is, and offers the agents of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    nobody = run(capsys).out.splitlines()
    assert len(nobody) == 5
    assert nobody[2].split()[:6] == "takeback install AGENT record each prompt".split()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin/claude").chmod(0o700)
    assert "takeback install claude-code" in run(capsys).out
    assert "install codex" not in run(capsys).out
    assert "--all" not in run(capsys).out
    settings = tmp_path / ".claude/settings.json"
    assert run(capsys, "install", "claude-code").code == 0
    said = run(capsys)
    assert "takeback install" not in said.out
    assert "Claude Code calls Takeback already" in said.err
    assert settings.is_file()


def test_a_folder_that_can_have_no_history(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare `takeback` in the home folder says why, and what to do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    said = run(capsys, "-C", str(tmp_path))
    assert said.code == 0
    assert "home folder" in said.out
    assert "-C DIR" in said.err


def test_a_first_session(capsys: pytest.CaptureFixture[str], tree: Path) -> None:
    """Status, checkpoint, extract, verify and usage say what happened and what to do next."""
    nothing = run(capsys)
    assert nothing.code == 0
    assert f"There is no history yet of {tree}." in nothing.out
    made = run(capsys, "checkpoint", "-m", "first")
    assert made.code == 0
    assert '3 entries, 3 changed  "first"' in made.out
    again = run(capsys, "checkpoint")
    assert again.out.startswith("Nothing changed since checkpoint ")
    out = str(tree.with_name("out"))
    written = run(capsys, "extract", "@", out)
    assert written.out == f"Wrote 3 entries of @ to {out}\n"
    assert (Path(out) / "src" / "a.py").read_text() == "a\n"
    sound = run(capsys, "verify")
    assert sound.out.startswith("Intact: 1 checkpoint, ")
    status = run(capsys)
    assert f"Project  {tree}" in status.out
    assert "Covered   everything in it" in status.out
    assert "for 1 checkpoint" in run(capsys, "usage").out


def test_checkpoint_json_has_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The keys of design.md are there, and `new` is false the second time."""
    made = as_json(capsys, "checkpoint", "-m", "x")
    keys = "id tree cursor session turn step created label entries changed new left_out"
    assert set(keys.split()) <= set(made)
    assert (made["new"], made["label"], made["entries"], made["changed"]) == (True, "x", 3, 3)
    again = as_json(capsys, "checkpoint")
    assert (again["new"], again["id"]) == (False, made["id"])


def test_names_that_are_not_utf8_are_exact_in_json(
    capsys: pytest.CaptureFixture[str], tree: Path
) -> None:
    """Such a path has a readable form and the exact bytes."""
    os.mkfifo(os.fsencode(tree) + b"/odd\xff")
    made = as_json(capsys, "checkpoint")
    assert made["left_out"] == [
        {"path": "odd\N{REPLACEMENT CHARACTER}", "path_b64": "b2Rk/w==", "reason": "special"}
    ]


def test_names_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str], tree: Path) -> None:
    """Escape sequences, newlines and direction marks in names and labels are shown, not obeyed."""
    os.mkfifo(tree / "evil\x1b]0;owned\x07\n\N{RIGHT-TO-LEFT OVERRIDE}name")
    made = run(capsys, "checkpoint", "-m", "bad\x1b[2Jlabel\nsecond line")
    status = run(capsys)
    for text in (made.out, made.err, status.out, status.err):
        assert not {"\x1b", "\x07", "\N{RIGHT-TO-LEFT OVERRIDE}"} & set(text)
    assert len(made.out.splitlines()) == 1
    assert r"evil\x1b]0;owned\x07\x0a\u202ename" in status.out


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (["checkpont"], 2, "no command `checkpont`", "takeback checkpoint"),
        (["checkpoint", "--lable", "x"], 2, "no option `--lable`", "--label"),
        (["checkpoint", "-m"], 2, "`-m` needs a value", "NAME"),
        (["checkpoint", "extra"], 2, "does not take `extra`", "`takeback checkpoint -m extra`"),
        (["gc", "extra"], 2, "does not take `extra`", "usage: `takeback gc`"),
        (["extract", "@"], 2, "needs DIR", "usage: `takeback extract REF DIR`"),
        (["extract", "@", "out"], 2, "not in a project yet", "takeback checkpoint"),
        (["relocate"], 2, "--join ID or --new", "takeback relocate --help"),
        (["-C", "/nowhere", "checkpoint"], 2, "no folder `/nowhere`", "existing"),
        (["checkpoint", "--json=yes"], 2, "takes no value", ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes_get_an_error_that_says_what_to_do(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str, hint: str
) -> None:
    """Bad input ends with the right exit code, one sentence, and a hint."""
    said = run(capsys, *words)
    assert said.code == code
    assert (said.out, message in said.err, hint in said.err) == ("", True, True)


def test_hints_can_be_followed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No hint says that a home folder becomes a project; of a command's options its help tells."""
    folder = tmp_path / "somebody"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert app.main(["log"]) == 2
    assert "`takeback checkpoint` makes it a project" in capsys.readouterr().err
    monkeypatch.setenv("HOME", str(folder))
    assert app.main(["log"]) == 2
    assert "change to a project folder" in capsys.readouterr().err
    assert app.main(["log", "--bogus"]) == 2
    assert "see `takeback log --help`" in capsys.readouterr().err
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert app.main(["log"]) == 2
    assert "the current folder does not exist any more" in capsys.readouterr().err


def test_labels_and_references_may_hold_any_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """What the shell passed on that is no text neither fails nor breaks JSON."""
    made = as_json(capsys, "checkpoint", "-m", os.fsdecode(b"label \xff"))
    assert made["label"] == "label \N{REPLACEMENT CHARACTER}"
    said = run(capsys, "extract", os.fsdecode(b"q\xff"), "never", "--json")
    assert said.code == 2
    assert json.loads(said.out)["message"].encode()


def test_references(capsys: pytest.CaptureFixture[str], tree: Path) -> None:
    """`@`, `@~N`, an id and its beginning mean checkpoints; anything else is an error."""
    first = str(as_json(capsys, "checkpoint")["id"])
    (tree / "b.txt").write_text("changed\n")
    as_json(capsys, "checkpoint")
    for number, ref in enumerate((first, first[:6], "@~1")):
        out = tree.with_name(f"out{number}")
        assert run(capsys, "extract", ref, str(out)).code == 0
        assert (out / "b.txt").read_text() == "b\n"
    for ref in ("@~2", "@~x", "nope", "0", "kkkkkkkkkkkk", "@~-1", ""):
        said = run(capsys, "extract", ref, str(tree.with_name("never")))
        assert said.code == 2
        assert said.err.startswith("error: ")
        assert "hint: " in said.err
    assert not tree.with_name("never").exists()


def test_extract_never_writes_over_anything(capsys: pytest.CaptureFixture[str], tree: Path) -> None:
    """A folder that holds something, a file and a link are refused; an empty folder is filled."""
    run(capsys, "checkpoint")
    full, empty = tree.with_name("full"), tree.with_name("empty")
    full.mkdir()
    (full / "mine").write_text("mine")
    empty.mkdir()
    link = tree.with_name("link")
    link.symlink_to(empty)
    for target in (full, full / "mine", link, tree.with_name("no") / "parent"):
        said = run(capsys, "extract", "@", str(target))
        assert said.code == 1
        assert "error:" in said.err
    assert os.listdir(full) == ["mine"]
    assert os.listdir(empty) == []
    assert run(capsys, "extract", "@", str(empty)).code == 0
    assert sorted(os.listdir(empty)) == ["b.txt", "src"]


def test_damage_has_its_exit_code(
    capsys: pytest.CaptureFixture[str], tree: Path, home: Path
) -> None:
    """`verify` names the damage and the checkpoints it touches, and ends with 4."""
    made = as_json(capsys, "checkpoint")
    (pack,) = home.glob("projects/*/git/objects/pack/*.pack")
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    said = run(capsys, "verify")
    assert said.code == 4
    assert "damaged" in said.out
    assert str(made["id"]) in said.out
    assert tree.exists()


def test_errors_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json an error is one JSON object on stdout, too."""
    said = run(capsys, "extract", "nope", "out", "--json")
    assert said.code == 2
    found = json.loads(said.out)
    assert set(found) == {"error", "message", "hint", "exit_code"}


@pytest.mark.parametrize("words", [["--help"], ["help"], ["help", "verify"], ["-h"]])
def test_help(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Help goes to stdout and succeeds."""
    said = run(capsys, *words)
    assert (said.code, said.err) == (0, "")
    assert "takeback" in said.out


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Each command has a summary, its usage, its options and an example."""
    said = run(capsys, name, "--help")
    assert said.code == 0
    for part in ("Usage: takeback " + name, "Options", "Examples", "--json"):
        assert part in said.out


def test_as_a_process(tree: Path) -> None:
    """The real program: output on a pipe has no colour, a closed pipe is no error."""
    command = [sys.executable, "-I", str(MAIN), "checkpoint"]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + done.stderr
    closed = subprocess.run(
        f"'{sys.executable}' -I '{MAIN}' --help | true", shell=True, cwd=tree, check=False,
        capture_output=True,
    )  # fmt: skip
    assert closed.stderr == b""


def test_the_demo_runs_to_its_end() -> None:
    """`takeback demo` shows each command, gives the lost files back, and leaves nothing behind."""
    command = [sys.executable, "-I", str(MAIN), "demo"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert "$ takeback checkpoint" in done.stdout
    assert "KEY=very-secret" in done.stdout
    assert "Intact: 4 checkpoints" in done.stdout
    assert "tidy up" in done.stdout.partition("$ takeback log")[2]
    undo = done.stdout.partition("$ takeback undo 'tidy up' --yes")[2]
    assert 'Took back "tidy up": restored 3 files and 3 folders' in undo
    assert 'Put back "tidy up"' in undo.partition("$ takeback redo")[2]
