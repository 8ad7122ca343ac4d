"""`takeback config`: every setting, where its value comes from, and how it is changed."""

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

import program
import takeback
from history import command
from takeback.cli import app
from takeback.disk import operations
from takeback.disk.home import with_value
from takeback.errors import UsageError
from takeback.upkeep import settings

FILE = """\
# my settings
title = "mine"

[limits]
# big files are fine here
file = 5   # why: models
rebuildable = [
    "build",  # ours
    "out#put",
]

[other]  # of another program
x = 1
"""


@pytest.fixture
def project(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and the folder of its store."""
    monkeypatch.chdir(tree)
    monkeypatch.setattr(operations, "sync", False)
    (tree / "a").write_text("a\n")
    with takeback.open(tree, home=home) as made:
        made.checkpoint()
        return home / "projects" / made.id


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, object]]:
    """What the command says, by name."""
    capsys.readouterr()
    assert app.main(["config", *words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    return {each["name"]: each for each in said["settings"]}


def test_every_setting_is_listed(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its value, its origin, its default and a line about what it does."""
    (home / "config.toml").write_text("[retention]\ndays = 90\nturns = 7\n")
    (project / "config.toml").write_text("[retention]\ndays = 10\n")
    found = told(capsys)
    assert list(found) == ["home", *(each.name for each in settings.ALL)]
    assert all(each["text"] for each in found.values())
    days, turns, cap = (found[f"retention.{key}"] for key in ("days", "turns", "size_cap"))
    assert (days["value"], days["origin"], days["default"]) == (10, "project", 30)
    assert (turns["value"], turns["origin"]) == (7, "user")
    assert cap["origin"] == "default"
    assert (found["home"]["value"], found["home"]["origin"]) == (str(home), "environment")
    assert app.main(["config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found)
    assert app.main(["config", "retention.days"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "retention.days = 10"


def test_on_a_narrow_terminal_the_text_stands_below(project: Path, tree: Path, home: Path) -> None:
    """No line is broken in its last column."""
    assert project.is_dir()
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "TAKEBACK_HOME": str(home)}
    code, shown = program.on_terminal(["config"], tree, env, (80, 24))
    lines = shown.replace("\r", "").split("\n")
    assert code == 0
    below = lines[next(n for n, line in enumerate(lines) if line.startswith("gc.auto")) + 1]
    assert below == "    delete expired files and compact the store when a session ends"


def test_the_defaults_are_those_of_the_code(tree: Path, home: Path) -> None:
    """What the list calls a default is what counts where no file says anything."""
    with takeback.open(tree, home=home) as project:
        for each in settings.ALL:
            assert each.problem(each.default) == ""
            found = project.workspace.rules.setting(each.table, each.key, each.default)
            assert found == each.default


def test_what_is_no_setting_is_told_and_stops_nothing(
    project: Path, home: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip of a finger is told with what may have been meant, and a checkpoint is made."""
    wrong = "[limits]\nfiles = 3\n[retention]\ndayz = 3\nturns = 'x'\n[quite]\nother = 1\n"
    (home / "config.toml").write_text(wrong)
    assert app.main(["config", "--json"]) == 0
    problems = {each["name"]: each for each in json.loads(capsys.readouterr().out)["problems"]}
    assert set(problems) == {"limits.files", "retention.dayz", "retention.turns", "quite.other"}
    assert "`limits.file`" in str(problems["limits.files"]["hint"])
    assert "`retention.days`" in str(problems["retention.dayz"]["hint"])
    (tree / "b").write_text("b\n")
    assert app.main(["checkpoint"]) == 0
    assert app.main(["config"]) == 0
    assert "dayz" in capsys.readouterr().err
    assert project.is_dir()


def test_a_typo_blocks_no_undo(project: Path, home: Path, tree: Path) -> None:
    """A settings file that is no TOML is told once; undo works, and gc deletes nothing."""
    assert command(tree, "run", "-q", "--", "sh", "-c", "echo new > made").code == 0
    (home / "config.toml").write_text("[limits\nfile = 3\n")
    for words in (["run", "--only-covered", "--", "true"], ["undo"], ["redo"], ["undo"]):
        said = command(tree, *words)
        assert said.code == 0, said.err
        assert said.err.count("config.toml` cannot be read: ") == 1, words
        assert "defaults apply and gc deletes nothing (`takeback config`)" in said.err
    assert not (tree / "made").exists()
    said = command(tree, "gc")
    assert (said.code, "cannot be read" in said.err) == (2, True)
    (home / "config.toml").write_text("[recording]\nsafe_points = 'stepp'\n")
    assert "`recording.safe_points` cannot be `stepp`" in command(tree, "run", "--", "true").err
    assert project.is_dir()


def test_a_broken_file_is_told(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is no TOML is told, and not written over."""
    (home / "config.toml").write_text("[limits\n")
    assert app.main(["config"]) == 0
    assert "cannot be read" in capsys.readouterr().err
    assert app.main(["config", "limits.file", "7", "--user"]) == 2
    assert (home / "config.toml").read_text() == "[limits\n"
    assert project.is_dir()


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("retention.days", "90", 90),
        ("retention.days", "forever", "forever"),
        ("retention.days", "6m", "6m"),
        ("retention.size_cap", "2 GB", 2_000_000_000),
        ("limits.file", "1MiB", 1 << 20),
        ("gc.auto", "off", False),
        ("secrets.names", "*.vault,  a b", ["*.vault", "a b"]),
        ("restore.listeners", '[["x", "\\n"]]', [["x", "\n"]]),
        ("recording.safe_points", "turn", "turn"),
    ],
)
def test_a_setting_is_set_and_unset(
    project: Path, home: Path, name: str, typed: str, value: object
) -> None:
    """What is set is in the file of the project or of the user, and private."""
    for flags, file in (([], project / "config.toml"), (["--user"], home / "config.toml")):
        assert app.main(["config", name, typed, *flags]) == 0
        table, _, key = name.partition(".")
        assert tomllib.loads(file.read_text())[table][key] == value
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert app.main(["config", name, "--unset", *flags]) == 0
        assert tomllib.loads(file.read_text()) == {table: {}}


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("retention.days", "soon"),
        ("retention.turns", "1.5"),
        ("limits.file", "-1"),
        ("limits.file", "many"),
        ("gc.auto", "maybe"),
        ("recording.safe_points", "never"),
        ("restore.listeners", "[1]"),
        ("retention.day", "3"),
        ("home", "x"),
    ],
)
def test_what_cannot_be_meant_is_not_set(project: Path, name: str, typed: str) -> None:
    """A value of the wrong kind, or a name that there is not, is an error; nothing is written."""
    assert app.main(["config", name, typed]) == 2
    assert not (project / "config.toml").exists()


def test_a_setting_counts_at_once(
    project: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next checkpoint obeys what was set."""
    (tree / "large").write_bytes(b"x" * 5000)
    assert app.main(["config", "limits.file", "1000"]) == 0
    capsys.readouterr()
    assert app.main(["checkpoint", "--json"]) == 0
    left_out = json.loads(capsys.readouterr().out)["left_out"]
    assert [each["path"] for each in left_out] == ["large"]
    assert project.is_dir()


def test_outside_of_a_project_only_the_users_can_be_set(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no project, its settings cannot be set, and the user's can."""
    monkeypatch.chdir(tmp_path)
    assert app.main(["config", "gc.auto", "false"]) == 2
    assert "--user" in capsys.readouterr().err
    assert app.main(["config", "gc.auto", "false", "--user"]) == 0
    assert told(capsys)["gc.auto"]["origin"] == "user"
    assert oct(os.stat(home / "config.toml").st_mode)[-3:] == "600"


# -- the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("file", 6, "file = 6   # why: models\n"),
        ("entries", 3, "entries = 3\n"),
        ("rebuildable", ["x"], 'rebuildable = ["x"]\n'),
    ],
)
def test_comments_and_order_stay(key: str, value: object, line: str) -> None:
    """Only the lines of the one value change; everything else is as it was."""
    after = with_value(FILE, "limits", key, value)
    assert line in after
    assert tomllib.loads(after)["limits"][key] == value
    kept = [old for old in FILE.splitlines() if old.strip().startswith("#") or "of another" in old]
    assert [new for new in after.splitlines() if new in kept] == kept
    assert after.index("[limits]") < after.index(line) < after.index("[other]")
    assert with_value(after, "limits", key, None).count(key) < after.count(key)


def test_a_new_table_goes_to_the_end() -> None:
    """A table that is not there yet is made at the end of the file, also of an empty one."""
    after = with_value(FILE.rstrip("\n"), "gc", "auto", False)
    assert after == FILE + "\n[gc]\nauto = false\n"
    assert with_value("", "gc", "auto", False) == "[gc]\nauto = false\n"


@pytest.mark.parametrize(
    "text",
    ["limits = { file = 3 }\n", "limits.file = 3\n", '[limits]\n"fi\\u006ce" = 3\n'],
    ids=["inline", "dotted", "escaped"],
)
def test_odd_ways_to_write_are_kept(text: str) -> None:
    """A value is changed in the way that it is written."""
    assert with_value(text, "limits", "file", 4) == text.replace("3", "4")


@pytest.mark.parametrize("text", ["limits = 3\n", "[[limits]]\nfile = 3\n"])
def test_what_is_no_table_is_left_alone(text: str) -> None:
    """Where a table should be and is none, nothing is written."""
    for value in (4, None):
        with pytest.raises(UsageError, match="Takeback cannot edit"):
            with_value(text, "limits", "file", value)


def test_every_setting_is_documented() -> None:
    """The table in docs/care.md has each setting with its default and what it does."""
    text = (Path(__file__).parents[2] / "docs/care.md").read_text()
    for each in settings.ALL:
        default = "26 names" if each.key == "rebuildable" else f"`{json.dumps(each.default)}`"
        assert f"| `{each.name}` | {default} | {each.text} |" in text
