"""Sessions inside runs, and several at once: each change has its author."""

import subprocess
import sys
import time
from pathlib import Path

import takeback
from takeback.cli import app
from takeback.project import Project

MAIN = Path(app.__file__).parent.parent / "__main__.py"


def _run(tree: Path, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-I", str(MAIN), *words]
    return subprocess.Popen(command, cwd=tree, stderr=subprocess.PIPE)


def _turn_that_changed(project: Project, path: bytes) -> str:
    """The label of the turn that a path belongs to; `you` if to none."""
    (row,) = project.workspace.ledger._reader.rows(
        "SELECT coalesce(t.label, d.who) FROM deltas d LEFT JOIN turns t ON t.number = d.turn"
        " WHERE d.path = ? ORDER BY d.checkpoint DESC LIMIT 1",
        (path,),
    )
    return str(row[0])


def test_what_follows_an_agent_inside_a_run_is_the_runs(tree: Path, home: Path) -> None:
    """`takeback run -- sh -c 'agent; make'`: once the agent is gone, make is the run's."""
    with takeback.open(tree, home=home) as project:
        outer = project.session("run", safe_points="turn").turn("agent; make", whole=False)
        shell = outer.step("run", {"command": "sh"}, kind="shell")
        with project.session("claude", id="c", held=False, inside=outer.id) as inner:
            turn = inner.turn("Fix it", whole=False)
            with turn.step("Write", {"file_path": "fixed"}):
                (tree / "fixed").write_text("x")
            turn.end()
        (tree / "made").write_text("x")
        shell.end()
        outer.end()
        assert _turn_that_changed(project, b"fixed") == "Fix it"
        assert _turn_that_changed(project, b"made") == "agent; make"


def test_two_runs_of_one_session_name_keep_apart(tree: Path, home: Path) -> None:
    """A run that begins while another of the same name goes on ends neither it nor its session."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        wait = "until [ -e {} ]; do sleep 0.02; done; echo > {}"
        named = ("run", "--session", "nightly", "-m")
        first = _run(tree, *named, "first", "--", "sh", "-c", wait.format("go-1", "by-first"))
        while not project.workspace.ledger._reader.rows("SELECT 1 FROM steps"):
            time.sleep(0.02)
        second = _run(tree, *named, "second", "--", "sh", "-c", wait.format("go-2", "by-second"))
        while len(project.workspace.ledger._reader.rows("SELECT 1 FROM steps")) < 2:
            time.sleep(0.02)
        # The first one is over while the second still runs.
        for name, process in (("go-1", first), ("go-2", second)):
            (tree / name).touch()
            process.communicate(timeout=20)
        found = project.workspace.ledger._reader.rows(
            "SELECT label, status FROM turns ORDER BY number"
        )
        assert found == [("first", "done"), ("second", "done")]
        assert _turn_that_changed(project, b"by-second") == "second"


def test_what_was_moved_twice_came_from_where_it_was(tree: Path, home: Path) -> None:
    """What a turn tells is against the state before it: nothing comes from a path in between."""
    (tree / "old").write_text("one\ntwo\n")
    with takeback.open(tree, home=home) as project:
        turn = project.session("x").turn("move", whole=False)
        with turn.step("Bash"):
            (tree / "old").rename(tree / "way")
            (tree / "draft").write_text("new\n")
        with turn.step("Bash"):
            (tree / "way").write_text("one\ntwo\nthree\n")
        with turn.step("Bash"):
            (tree / "way").rename(tree / "kept")
            (tree / "draft").rename(tree / "born")
        turn.end()
        told = [(c.path, c.verb, c.origin, c.added) for c in turn.recorded().changes]
        assert told == [("born", "create", None, 1), ("kept", "rename", "old", 1)]


def test_a_hook_session_moves_into_another_run(tree: Path, home: Path) -> None:
    """An agent that is resumed under another `takeback run` works inside that one from then on."""
    with takeback.open(tree, home=home) as project:
        first = project.session("run").turn("claude", whole=False)
        project.session("claude-code", id="abc", inside=first.id, held=False)
        first.end()
        second = project.session("run").turn("claude --resume", whole=False)
        second.step("run", {"command": "claude"}, kind="shell")
        inner = project.session("claude-code", id="abc", inside=second.id, held=False)
        turn = inner.turn("Fix it", whole=False)
        with turn.step("Bash", {"command": "make"}):
            (tree / "made").write_text("x")
        turn.end()
        assert [change.raw_path for change in turn.recorded().changes] == [b"made"]


def test_the_turn_of_another_project_disturbs_no_hook(tree: Path, home: Path) -> None:
    """An agent below a `takeback run` of one project that works in another is recorded there."""
    with takeback.open(tree, home=home) as project:
        for number in range(3):
            session = project.session("claude", id="c", held=False, inside="xxxxxxxxxxxx")
            session.turn(f"turn {number}").end()
        assert (
            project.workspace.ledger._reader.rows(
                "SELECT kind FROM events WHERE kind = 'SessionResumed'"
            )
            == []
        )


def test_a_hook_does_not_let_go_of_a_session_that_is_held(tree: Path, home: Path) -> None:
    """A session keeps the process that holds it, also when a hook says where it runs."""
    with takeback.open(tree, home=home) as project:
        outer = project.session("run").turn("outer", whole=False)
        project.session("claude", id="c")
        query = "SELECT holder FROM sessions WHERE own_id = 'c'"
        before = project.workspace.ledger._reader.rows(query)
        for _ in range(2):
            project.session("claude", id="c", held=False, inside=outer.id)
        assert project.workspace.ledger._reader.rows(query) == before
        resumed = project.workspace.ledger._reader.rows(
            "SELECT 1 FROM events WHERE kind = 'SessionResumed'"
        )
        assert len(resumed) == 1, "only the first time is worth a word"
