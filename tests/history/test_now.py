"""Now is now: `takeback`, `log` and `show @` look at the files, and say what undo would do."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from history import command
from takeback import Project
from takeback.cli import app
from takeback.history import look
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A project with one turn and nothing changed since."""
    assert home.is_dir()
    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as made:
        made.checkpoint("start")
        with made.session("claude") as session, session.turn("Add b"):
            (tree / "b.txt").write_text("one\n")
        yield made


def stored(home: Path) -> dict[str, bytes]:
    """Everything in the stores but the ledger, which SQLite may tidy up."""
    files = (path for path in home.rglob("*") if path.is_file() and "ledger" not in path.name)
    return {str(path): path.read_bytes() for path in files}


def test_what_you_changed_is_shown(project: Project, tree: Path, home: Path) -> None:
    """Log, status and `show @` tell what changed since the last checkpoint, and write nothing."""
    assert "since the last checkpoint" not in command(tree, "log").out
    (tree / "a.txt").write_text("two\n")
    (tree / "b.txt").rename(tree / "c.txt")
    before, last = stored(home), project.workspace.ledger.last_event()
    for words in ((), ("log",), ("show", "@")):
        said = command(tree, *words)
        assert "2 paths changed by you since the last checkpoint, " in said.out
        assert "write   a.txt\n" in said.out
        assert "rename  b.txt → c.txt\n" in said.out
    now = json.loads(command(tree, "log", "--json").out)["now"]
    assert (now["looked"], now["problem"]) == (True, None)
    assert {(each["path"], each["author"]["who"]) for each in now["changes"]} == {
        ("a.txt", "you"),
        ("c.txt", "you"),
    }
    assert json.loads(command(tree, "--json").out)["now"] == now
    assert json.loads(command(tree, "show", "@", "--json").out)["now"] == now
    assert (stored(home), project.workspace.ledger.last_event()) == (before, last)


def test_what_a_running_turn_changed_is_its_own(project: Project, tree: Path) -> None:
    """An agent at work is named, also when no checkpoint has its changes yet; so is the undo."""
    with project.session("codex") as session:
        turn = session.turn("Rewrite a", whole=False)
        step = turn.step("Bash", {"command": "make"})
        (tree / "a.txt").write_text("rewritten\n")
        said = command(tree, "log")
        short = turn.id[:6]
        assert f"1 path changed by codex, turn {short} since the last checkpoint" in said.out
        assert '`takeback undo` takes back "Rewrite a" (' in said.err
        step.end()
        (tree / "b.txt").write_text("by hand\n")
        found = project.now()
        assert [(each.path, each.author.who) for each in found.changes] == [("b.txt", "you")]
        turn.end()
    assert found.undo is not None
    assert (found.undo.id, found.undo.agent) == (turn.id, "codex")
    assert project.undo().plan.turns == (turn.id,)
    assert (tree / "a.txt").read_text() == "one\n"


def test_undo_does_what_was_said(project: Project, tree: Path) -> None:
    """The line names just what a bare undo takes back: a rollback, a turn, then nothing."""
    project.rollback("start", yes=True)
    said = command(tree)
    assert '`takeback undo` takes back the rollback to "start" (' in said.err
    for verb in ("rollback", "turn"):
        seen = project.now().undo
        assert seen is not None
        assert json.loads(command(tree, "--json").out)["now"]["undo"] == {
            "id": seen.id,
            "kind": verb,
            "title": seen.title,
            "agent": seen.agent or None,
            "kept": True,
            "shared": False,
        }
        assert project.undo().plan.entry == seen.id
    assert project.now().undo is None
    assert "takes back" not in command(tree).err


def test_looking_needs_no_lock(project: Project, tree: Path) -> None:
    """While another process holds the lock, log and status look all the same."""
    (tree / "a.txt").write_text("two\n")
    with project.workspace.held():
        for words in (("log",), ()):
            said = command(tree, *words)
            assert (said.code, "1 path changed by you" in said.out) == (0, True)


def test_why_nobody_looked_is_said(
    project: Project,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Too much to read at a glance, a tree that cannot be read, a restore under way."""
    for number in range(3):
        (tree / f"{number}.txt").write_text("new\n")
    monkeypatch.chdir(tree)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(look, "_MOST_FILES", 2)
    last = project.workspace.ledger.last_event()
    assert app.main(["log"]) == 0
    told = capsys.readouterr().out
    # Besides the three, files that were written just before the last look.
    assert re.search("not read: [3-5] files may have changed, too many to", told)
    monkeypatch.setattr(look, "newest_known", _fail)
    assert app.main([]) == 0
    out = capsys.readouterr().out
    assert "the files were not read: " in out
    assert "Input/output error" in out
    assert app.main(["log", "--json"]) == 0
    now = json.loads(capsys.readouterr().out)["now"]
    assert (now["looked"], now["problem"]["code"]) == (False, "not-looked-at")
    monkeypatch.setattr("takeback.ledger.ledger.Ledger.has_journal", lambda _: True)
    problem = project.now().problem
    assert problem is not None
    assert problem.code == "restore-runs"
    assert project.workspace.ledger.last_event() == last


def _fail(*_: object) -> None:
    raise OSError(5, "Input/output error")


def test_each_turn_stands_beside_its_reference(project: Project, tree: Path) -> None:
    """The `@~N` in the log means the turn or the rollback that it stands beside."""
    with project.session("codex") as session:
        for number in range(4):
            with session.turn(f"turn {number}"):
                (tree / "a.txt").write_text("one\n" * (number != 2))
    project.undo("turn 3")
    project.rollback("turn 0", yes=True)
    with project.session("codex") as session, session.turn("last"):
        (tree / "z.txt").write_text("z\n")
    told = json.loads(command(tree, "log", "--all", "--json").out)
    refs = {each["ref"]: each["id"] for each in (*told["turns"], *told["restores"])}
    refs.pop(None)
    assert refs.keys() == {f"@~{number}" for number in range(len(refs))}
    assert len(refs) > 2
    ledger = project.workspace.ledger
    for ref, id in refs.items():
        kind, number = ledger.stack.entry_back(int(ref[2:]), None) or ("", 0)
        table = ledger.turns if kind == "turn" else ledger.stack
        assert table.id_of(number) == id
        row = next(line for line in command(tree, "log").out.splitlines() if ref in line)
        assert row.split()[1] == id[:4]


def test_names_stand_in_the_log(project: Project, tree: Path) -> None:
    """Each name has a line in the log, and in the list of checkpoints; in ASCII, if need be."""
    project.checkpoint("tests green")
    said = command(tree, "log")
    assert [line.split()[-2:] for line in said.out.splitlines() if line[0] == "◆"] == [
        ["tests", "green"],
        ["s", "start"],
    ]
    assert "\n*  " in command(tree, "log", LC_ALL="C").out
    names = json.loads(command(tree, "log", "--json").out)["names"]
    assert [(each["name"], each["kept"]) for each in names] == [
        ("tests green", True),
        ("start", True),
    ]
    assert json.loads(command(tree, "log", "--limit", "1", "--json").out)["names"][0]["name"] == (
        "tests green"
    )


def test_checkpoints_are_listed(project: Project, tree: Path) -> None:
    """Those with a name, those made by hand, and what is kept; with --all those of turns, too."""
    project.checkpoint("tests green")
    project.checkpoint("second name")
    project.keep("start")
    (tree / "a.txt").write_text("two\n")
    plain = project.checkpoint()
    said = command(tree, "log", "--checkpoints")
    rows = said.out.splitlines()
    assert rows[0].split()[0] == "○"
    assert rows[0].split()[1] == plain.id[:4]
    assert "second name, tests green" in rows[1]
    assert rows[2].startswith("◆")
    assert rows[2].endswith("start  1 changed  kept")
    listed = json.loads(command(tree, "log", "--checkpoints", "--json").out)["checkpoints"]
    assert [each["names"] for each in listed] == [[], ["second name", "tests green"], ["start"]]
    assert [each["pinned"] for each in listed] == [False, False, True]
    (tree / "a.txt").write_text("three\n")
    with project.session("codex") as session, session.turn("more"):
        (tree / "a.txt").write_text("four\n")
    assert len(command(tree, "log", "--checkpoints").out.splitlines()) == 3
    assert len(command(tree, "log", "--checkpoints", "--limit", "1").out.splitlines()) == 1
    every = command(tree, "log", "--checkpoints", "--all").out.splitlines()
    assert len(every) == len(list(project.checkpoints())) > 3
    assert command(tree, "log", "--checkpoints", "--session", "x").code == 2


def test_a_name_whose_files_are_gone_says_so(project: Project, tree: Path) -> None:
    """The log keeps the name, and tells that its files are not kept."""
    with project.workspace.held():
        trimmed = NewEvent(events.HISTORY_TRIMMED, {"checkpoints": [[1, 1]]}, 1)
        project.workspace.ledger.record(trimmed)
    assert "start (files no longer kept)" in command(tree, "log").out
    assert "files no longer kept" in command(tree, "log", "--checkpoints").out
