"""What became of a turn is said wherever it is shown."""

import json
import sys
from pathlib import Path

import pytest

import takeback
from history import command
from takeback.cli import screen
from takeback.cli.text.reason_text import names


@pytest.fixture
def project(tree: Path, home: Path) -> takeback.Project:
    """A project with one turn that changed two files."""
    project = takeback.open(tree, home=home)
    (tree / "a").write_text("old\n")
    project.checkpoint()
    with project.session("claude").turn("Add two files"):
        for name in ("a", "b"):
            (tree / name).write_text(f"{name}\n")
    return project


def test_an_undone_turn_says_so_and_why(project: takeback.Project, tree: Path) -> None:
    """`log --all` and `show` say undone, with the reason; JSON, too."""
    (turn,) = project.log().turns
    project.undo(because="tests\nfail")
    log = command(tree, "log", "--all").out
    assert "Add two files (undone)" in log
    assert "because: tests\\x0afail" in log
    shown = command(tree, "show", turn.id).out
    assert "Status   ○ undone\nUndone   by " in shown
    assert "\nBecause  tests" in shown
    (told,) = json.loads(command(tree, "log", "--all", "--json").out)["turns"]
    assert (bool(told["undone"]), told["because"]) == (True, "tests\nfail")


def test_why_prints_the_prompt_the_authors_and_the_reason(
    project: takeback.Project, tree: Path
) -> None:
    """The whole prompt; who made the changes and how that is known; also of an undone turn."""
    turn = project.session("mine").turn("Add one more\n\nand say why")
    with turn, turn.step("write_file", {"path": "c"}):
        (tree / "c").write_text("c\n")
    first = project.log().turns[-1].id
    said = command(tree, "why").out
    assert said.startswith(f"Turn {turn.id}\n  Add one more\n\n  and say why\n")
    assert "\nBy       mine" in said
    assert "\nAuthors  mine: 1 by edit tools\n" in said
    project.undo(because="not asked for")
    said = command(tree, "why").out
    assert "\nUndone   by " in said
    assert "\nBecause  not asked for\n" in said
    assert command(tree, "why", "Add two files").out.startswith(f"Turn {first}\n  Add two files\n")
    (told,) = [json.loads(command(tree, "why", "--json").out)["turn"]]
    assert (told["label"], told["because"]) == ("Add one more\n\nand say why", "not asked for")


def test_a_turn_that_is_partly_undone_says_so(project: takeback.Project, tree: Path) -> None:
    """An undo of some paths leaves the turn live, and is said until it is put back."""
    (turn,) = project.log().turns
    project.apply(project.plan_undo(turn.id, paths=["a"]), because="no a")
    log = command(tree, "log").out
    assert "Add two files (partly undone)" in log
    assert "because: no a" in log
    shown = command(tree, "show", turn.id).out
    assert "Status   ○ partly undone\nUndone   in part, by " in shown
    assert "\nBecause  no a\n" in shown
    assert project.turn(turn.id).undone_in_part == project.log(all=True).restores[0].id
    project.redo()
    assert "undone" not in command(tree, "log").out


def test_a_running_turn_says_so(project: takeback.Project, tree: Path) -> None:
    """As long as it runs."""
    turn = project.session("codex").turn("Go on")
    assert "Go on (running)" in command(tree, "log").out
    assert "Status   ▶ running" in command(tree, "show", turn.id).out
    turn.end()


def test_a_failed_command_is_called_failed(project: takeback.Project, tree: Path) -> None:
    """Run, log and show say that it failed, and its exit code."""
    ran = command(tree, "run", "--", "sh", "-c", "echo x > c; exit 3")
    assert ran.code == 3
    assert "failed, exit code 3  1 file" in ran.err
    assert "(failed, exit code 3)" in command(tree, "log").out
    turn = project.log().turns[0]
    assert (turn.status, turn.exit_code) == ("failed", 3)
    shown = command(tree, "show", turn.id).out
    assert "Status   ✗ failed, exit code 3\n" in shown
    assert "exit code 3  failed" in shown


def test_many_authors_are_summed_up(project: takeback.Project, tree: Path) -> None:
    """Of thirty turns the first and the last are named; those that were undone are not."""
    (tree / "a").write_text("mine\n")
    project.checkpoint()
    session = project.session("codex")
    for number in range(31):
        with session.turn(f"Turn {number}") as turn, turn.step("Write", {"file_path": "a"}):
            (tree / "a").write_text(f"{number}\n")
    project.undo()
    first = project.log(100).turns[-1]
    (conflict,) = project.plan_undo(first.id).conflicts
    said = command(tree, "undo", first.id).out
    assert '30 turns, first "Turn 0" (codex), last "Turn 29" (codex)' in said
    assert '"Turn 30"' not in said
    by = dict(conflict.reason.facts)["by"]
    assert isinstance(by, tuple)
    assert len(by) == 31


def test_few_authors_are_named() -> None:
    """You come first; up to three others are named."""
    assert names(["a", "you", "b"]) == "you and a and b"
    assert names(["you"]) == "you"
    assert names(["a", "b", "c", "d"]) == "4 turns, first a, last d"


@pytest.mark.parametrize(
    "name", ["日本語ファイル", "e\u0301te\u0301", "🎉party", "한국어", "ᄒ\u1161ᆫ", "plain"]
)
def test_wide_names_align(tree: Path, home: Path, name: str) -> None:
    """Columns begin at the same place, whatever the width of the characters before them."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("claude").turn("Write"):
            for each in (name, "ascii.txt"):
                (tree / each).write_text("x\n")
    for words, mark in ((["show", "@~0"], "+1"), (["diff", "@~0-", "@", "--stat"], "|")):
        lines = [line for line in command(tree, *words).out.splitlines() if mark in line]
        rows = [line for line in lines if name in line or "ascii.txt" in line]
        assert len(rows) == 2, lines
        assert len({screen.columns(row.partition(mark)[0]) for row in rows}) == 1, rows


def test_a_table_aligns(capsys: pytest.CaptureFixture[str]) -> None:
    """So does a table of two columns, and a name that is cut from the left."""
    shown = screen.Screen()
    shown.table([("日本", "one"), ("ab", "two")])
    assert capsys.readouterr().out == "  日本  one\n  ab    two\n"
    assert sys.stdout is not None
    assert screen.cut_left("日本/ファイル", 7) == "…ァイル"
    assert screen.columns(screen.cut_left("日本/ファイル", 8)) <= 8
