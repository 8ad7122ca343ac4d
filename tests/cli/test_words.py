"""What one can type: help that fits a screen, words of other tools, slips, `run` without `--`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from takeback.cli import app, parser, vocabulary
from takeback.cli.screen import columns
from takeback.version import VERSION


class Said:
    """What a command printed and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        self.code = app.main(list(words))
        self.out, self.err = capsys.readouterr()


@pytest.fixture(autouse=True)
def _in_the_tree(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a small tree, with a store of their own."""
    assert home.is_dir()
    (tree / "pay.py").write_text("one\n")
    monkeypatch.chdir(tree)


@pytest.fixture
def turn(tree: Path) -> str:
    """A project with one turn, which changed a file."""
    with takeback.open(tree) as project:
        project.checkpoint("tests green")
        with project.session(agent="claude").turn("Add payment validation") as made:
            (tree / "pay.py").write_text("two\n")
    return made.id


# -- help --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], ["help"], ["-h"]])
def test_page_one_fits_a_terminal(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """The help leaves room for the prompt at 80 by 24, has the groups, and names `tb`."""
    said = Said(capsys, *words)
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert len(lines) < 24
    assert max(map(columns, lines)) <= 80
    assert "`tb`" in lines[0]
    groups = [line for line in lines if line and not line.startswith((" ", "`", "Takeback"))]
    assert groups == ["Everyday", "Look", "Agents", "More"]
    shown = {
        word for line in lines if line.startswith("  ") for word in line.replace(",", "").split()
    }
    assert shown >= set(app.COMMANDS) - {"hook"}


def test_help_all_has_a_line_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each that fits 80 columns, imperative and without a period; exit codes below."""
    said = Said(capsys, "help", "all")
    assert max(map(columns, said.out.splitlines())) <= 80
    for name in app.COMMANDS:
        command = app.load(name).COMMAND
        assert command.summary[0].islower()
        assert not command.summary.endswith(".")
        is_listed = f"  takeback {name}" in said.out
        assert is_listed == (command.group != parser.HIDDEN)
    assert "4 store damaged" in said.out


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`help CMD` is `CMD --help`, also by another name of it."""
    assert Said(capsys, "help", "undo").out == Said(capsys, "undo", "--help").out
    assert Said(capsys, "help", "history").out == Said(capsys, "log", "-h").out
    wrong = Said(capsys, "help", "restore")
    assert (wrong.code, "takeback rollback REF -- PATH" in wrong.err) == (2, True)


@pytest.mark.parametrize("word", ["-V", "--version", "version"])
def test_the_version(capsys: pytest.CaptureFixture[str], word: str) -> None:
    """It can be asked for as people do."""
    assert Said(capsys, word).out == f"takeback {VERSION}\n"


# -- words -------------------------------------------------------------------------------------


def test_other_names_of_commands_work(capsys: pytest.CaptureFixture[str], turn: str) -> None:
    """A word that means exactly one command does just that."""
    for word, name in (("status", ""), ("st", ""), ("history", "log"), ("settings", "config")):
        names = [name] if name else []
        said = Said(capsys, word, "--json")
        assert (said.code, json.loads(said.out).keys()) == (
            0,
            json.loads(Said(capsys, *names, "--json").out).keys(),
        )
    saved = json.loads(Said(capsys, "save", "-m", "before lunch", "--json").out)
    assert saved["names"][0] == "before lunch"
    assert json.loads(Said(capsys, "history", "--json").out)["turns"][0]["id"] == turn


def test_what_could_mean_several_things_does_nothing(
    capsys: pytest.CaptureFixture[str], tree: Path, turn: str
) -> None:
    """A word of another tool names the commands that are there, ends with 2, changes nothing."""
    with takeback.open(tree) as project:
        events = project.workspace.ledger.last_event()
        for word in vocabulary._MEANT:
            said = Said(capsys, word, turn, "pay.py")
            assert (said.code, said.out) == (2, "")
            head = f"error: there is no command `{word}`\n\nhint: "
            assert said.err.startswith(f"{head}`takeback ")
            lines = said.err.removeprefix(head).splitlines()
            assert {line.split("`")[1].split()[1] for line in lines} <= set(app.COMMANDS)
        assert project.workspace.ledger.last_event() == events
    assert (tree / "pay.py").read_text() == "two\n"


def test_what_was_given_stands_in_the_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """The hint is the command that one would type, also for a file that is gone."""
    assert "`takeback undo mvkr` takes back" in Said(capsys, "revert", "mvkr").err
    assert "`takeback rollback REF -- src/gone.py`" in Said(capsys, "restore", "src/gone.py").err
    assert "`takeback rollback @~1 -- pay.py`" in Said(capsys, "checkout", "@~1", "pay.py").err
    assert "`takeback log pay.py` lists the turns" in Said(capsys, "blame", "pay.py").err
    assert "`takeback log --grep 'log in'`" in Said(capsys, "search", "log in").err


# -- slips -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lgo"], "did you mean `takeback log`?"),
        (["shwo", "@"], "did you mean `takeback show @`?"),
        (["statsu"], "did you mean `takeback`?"),
        (["undp"], "`takeback undo`? It changes your files: `takeback undo --dry-run` shows how"),
        (["forgt", "x"], "`takeback forget x`? It deletes history for good"),
        (["instal", "codex"], "It changes the agent's settings"),
        (["restor"], "`takeback rollback REF -- PATH`"),
        (["pay.py"], "`takeback log pay.py` lists the turns that touched it"),
        (["mvkxlpzs"], "`takeback show mvkxlpzs` shows"),
        (["qqq"], "`takeback help` lists the commands"),
        (["log", "-5"], "did you mean `-n 5`?"),
        (["log", "--limti", "5"], "did you mean `--limit`?"),
        (["-v"], "did you mean `-V`?"),
        (["undo", "--dryrun"], "did you mean `--dry-run`?"),
        (["diff", "@~1", "@", "pay.py"], "`takeback diff … -- pay.py` if it is a path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_slip_gets_what_was_meant(
    capsys: pytest.CaptureFixture[str], words: list[str], hint: str
) -> None:
    """The hint can be typed; if it is a command that changes something, it says so."""
    said = Said(capsys, *words)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err


def test_a_slip_in_a_harmless_word_leads_to_a_harmless_one_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where both are near, what only shows something stands first."""
    for name in app.COMMANDS:
        for slip in (name[1:], name[:-1] + "x", name[0] + name):
            if slip in (*app.COMMANDS, *vocabulary.ALIASES, *vocabulary._MEANT):
                continue
            lines = Said(capsys, slip).err.partition("hint: ")[2].splitlines()
            guesses = [line.strip() for line in lines if "did you mean" in line]
            warned = [" It " in line for line in guesses]
            assert warned == sorted(warned), slip
            for line in guesses:
                meant = line.split("`")[1].split()[1:2] or ["status"]
                assert (" It " in line) == bool(app.load(meant[0]).COMMAND.warning), slip


def test_a_reference_spelt_wrongly(capsys: pytest.CaptureFixture[str], turn: str) -> None:
    """A name or a prompt that is nearly so is offered; nothing is done."""
    assert "did you mean `tests green`?" in Said(capsys, "rollback", "tests-green", "--yes").err
    said = Said(capsys, "undo", "paymnt validaton")
    assert (said.code, f'did you mean `{turn[:8]}` "Add payment validation"?' in said.err) == (
        2,
        True,
    )
    assert "did you mean" not in Said(capsys, "show", "something else entirely").err
    assert "`takeback log pay.py` lists" in Said(capsys, "show", "pay.py").err


def test_letters_in_one_word(capsys: pytest.CaptureFixture[str], turn: str) -> None:
    """`-np` is `-n -p`; a letter that is no option is named."""
    assert turn
    apart = Said(capsys, "undo", "-n", "-p").out
    assert "+one" in apart
    assert Said(capsys, "undo", "-np").out == apart
    assert "has no option `-nx`" in Said(capsys, "undo", "-nx").err


# -- run ---------------------------------------------------------------------------------------


def test_run_without_the_mark(tree: Path) -> None:
    """The first word that is no option begins the command, and its options are its own."""
    # In a process of its own: in one with other threads the signal of a child may go to them.
    words = ["run", "-q", "sh", "-c", "echo it; echo three > pay.py"]
    started = [sys.executable, "-I", "-m", "takeback", *words]
    assert subprocess.run(started, stdout=subprocess.PIPE, check=True).stdout == b"it\n"
    with takeback.open(tree) as project:
        (turn,) = project.log().turns
        assert turn.label == "sh -c 'echo it; echo three > pay.py'"


@pytest.mark.parametrize("option", ["--json", "-q", "-C", "--session=x", "-h"])
def test_run_asks_whose_option_it_is(capsys: pytest.CaptureFixture[str], option: str) -> None:
    """An option that Takeback has, too, needs `--`, before or after it."""
    said = Said(capsys, "run", "touch", "made", option)
    text = (said.out + said.err).replace('\\"', '"')
    assert said.code == 2
    assert f"`takeback run -- touch made {option}` gives it to `touch`" in text
    both = f"`takeback run {option} -- touch made` to Takeback"
    assert (both in text) == (option not in ("-C", "--session=x"))
    assert not Path("made").exists()
