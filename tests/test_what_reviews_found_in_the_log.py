"""What a reviewer of the log found: each was a wrong author, a growing cost or a bad surprise."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from takeback.cli import app
from takeback.model.secrets import MASK, PLAIN, VALUES, WHOLE, Mask, how_secret
from takeback.project import Project
from takeback.store import history, schema

MAIN = Path(app.__file__).parent.parent / "__main__.py"
HOUR = 3600 * 1_000_000_000


def _run(tree: Path, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-I", str(MAIN), *words]
    return subprocess.Popen(command, cwd=tree, stderr=subprocess.PIPE)


def _turn_that_changed(project: Project, path: bytes) -> str:
    """The label of the turn that a path belongs to; `you` if to none."""
    (row,) = project.ledger.rows(
        "SELECT coalesce(t.label, d.who) FROM deltas d LEFT JOIN turns t ON t.number = d.turn"
        " WHERE d.path = ? ORDER BY d.checkpoint DESC LIMIT 1",
        (path,),
    )
    return str(row[0])


def _plan(project: Project, ask: str, *values: object) -> str:
    found = project.ledger.rows("EXPLAIN QUERY PLAN " + ask, values)  # type: ignore[arg-type]
    return "; ".join(str(row[3]) for row in found)


# -- authors -------------------------------------------------------------------------------


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
        while not project.ledger.rows("SELECT 1 FROM steps"):
            time.sleep(0.02)
        second = _run(tree, *named, "second", "--", "sh", "-c", wait.format("go-2", "by-second"))
        while len(project.ledger.rows("SELECT 1 FROM steps")) < 2:
            time.sleep(0.02)
        # The first one is over while the second still runs.
        for name, process in (("go-1", first), ("go-2", second)):
            (tree / name).touch()
            process.communicate(timeout=20)
        found = project.ledger.rows("SELECT label, status FROM turns ORDER BY number")
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
        assert told == [(b"born", "create", None, 1), (b"kept", "rename", b"old", 1)]


# -- costs ---------------------------------------------------------------------------------


def test_forgotten_sessions_of_hooks_are_buried(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hook sessions that were killed and silent for a day leave nothing open, some at each look."""
    real = time.time_ns
    with takeback.open(tree, home=home) as project:
        for number in range(9):
            left = project.session("claude", id=str(number), held=False)
            left.turn("killed", whole=False).step("Bash", {"command": "make"})
        monkeypatch.setattr(time, "time_ns", lambda: real() + 25 * HOUR)
        session = project.session("claude", id="new", held=False)
        session.turn("one").end()
        session.turn("two").end()
        left_open = "SELECT count(*) FROM {} WHERE closed IS NULL"
        for table in ("turns", "steps"):
            assert project.ledger.rows(left_open.format(table)) == [(0,)]
        # One of them comes back, as if nothing had been.
        again = project.session("claude", id="7", held=False)
        again.turn("again").end()
        assert project.examine()[0] == ()


def test_the_end_of_a_turn_costs_what_it_changed(tree: Path, home: Path) -> None:
    """Files changed twice, with a big change of others between, are not each compared with it."""
    with takeback.open(tree, home=home) as project:
        turn = project.session("x").turn("big", whole=False)
        for text in ("one", "two"):
            with turn.step("Bash"):
                for number in range(1000):
                    (tree / f"twice-{number}").write_text(text)
            if text == "one":
                for number in range(4000):
                    (tree / f"between-{number}").touch()
                project.checkpoint()
        worked = 0

        def count() -> int:
            nonlocal worked
            worked += 1
            return 0

        project.ledger._db.set_progress_handler(count, 1000)
        turn.end()
        assert len(turn.recorded().changes) == 1000
        assert worked < 2000, "each file was compared with everything that others changed"


def test_no_question_of_a_safe_point_walks_a_table(tree: Path, home: Path) -> None:
    """What a safe point asks is found by an index, however long the history is."""
    with takeback.open(tree, home=home) as project:
        asked: list[str] = []
        project.ledger._db.set_trace_callback(asked.append)
        session = project.session("x", id="own", held=False)
        turn = session.turn("one")
        with turn.step("Bash"):
            (tree / "a").write_text("x")
        turn.end()
        session.end()
        project.ledger._db.set_trace_callback(None)
        plans = {q: _plan(project, q) for q in asked if q.startswith(("SELECT", "UPDATE"))}
        assert history.find_session(project.ledger, "x", "own") is not None
        for question, plan in plans.items():
            newest = question.endswith(("LIMIT 1", "LIMIT 1 OFFSET 0"))
            for step in plan.split("; "):
                # Of what is asked for itself, all of it is looked at.
                is_own = "sessions_held" in step or step.startswith("SCAN json_each")
                is_walk = step.startswith("SCAN") and not is_own
                assert newest or not is_walk, f"{question}: {step}"
                assert "turns_of_session (session=?)" not in step, f"{question}: {step}"


# -- damage and versions -------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        '{"checkpoint":"x"}',
        "[" * 100_000 + "]" * 100_000,
        "[]",
        "7",
        '{"session":"x","turn":"y","step":"z","ended":1' + "0" * 40 + "}",
        '{"turn":[1],"changes":[[1]]}',
    ],
)
@pytest.mark.parametrize("kind", ["CheckpointTaken", "TurnEnded", "SessionEnded"])
def test_events_that_make_no_sense_are_told(
    tree: Path, home: Path, kind: str, payload: str
) -> None:
    """Whatever stands in an event, `doctor` and `verify` name it, and a rebuild changes nothing."""
    with takeback.open(tree, home=home) as project:
        with project.session("x") as session, session.turn("one"):
            (tree / "a").write_text("x")
        project.ledger._db.execute("UPDATE events SET payload = ? WHERE kind = ?", (payload, kind))
        before = project.ledger.rows("SELECT * FROM deltas")
        problems, _ = project.examine()
        assert any("was changed after it was written" in problem for problem in problems)
        assert problems[0] in project.verify().problems
        with pytest.raises(takeback.DamagedStoreError):
            project.rebuild()
        assert project.ledger.rows("SELECT * FROM deltas") == before


def test_a_program_that_became_old_while_it_ran_writes_no_more(tree: Path, home: Path) -> None:
    """When a newer program changes the format of an open store, nothing of the old is appended."""
    with takeback.open(tree, home=home) as project:
        session = project.session("x", held=False)
        events = project.ledger.last_event()
        project.ledger._db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        with pytest.raises(takeback.TakebackError, match="newer Takeback"):
            session.turn("one")
        (tree / "a").write_text("x")
        with pytest.raises(takeback.TakebackError, match="newer Takeback"):
            project.checkpoint()
        assert project.ledger.last_event() == events


# -- surprises -----------------------------------------------------------------------------


@pytest.mark.parametrize("when", [float("nan"), float("inf"), -1e30, -1, 1e30, 10**400, "soon"])
def test_what_is_no_time_is_refused(tree: Path, home: Path, when: float) -> None:
    """A time that cannot be is an error of ours, and the turn can be ended after it."""
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        turn = session.turn("one")
        step = turn.step("Bash")
        for end in (step.end, turn.end):
            with pytest.raises(takeback.UsageError, match="is not a time"):
                end(ended_at=when)
        with pytest.raises(takeback.UsageError, match="is not a time"):
            session.turn("two", interrupted_at=when)
        turn.end()
        assert turn.recorded().status == "done"


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


# -- secrets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"secrets.json", b'["SECRET"]\n'),
        (b"secrets.yaml", b'keys: [\n  ["SECRET"],\n]\n'),
        (b"secrets.yaml", b"text: |\n  [x] SECRET\n"),
        (b"secrets.toml", b"[part] # SECRET\n"),
        (b".env", b'KEY="one\n[SECRET]\n"\n'),
        (b"a.py", b"-----BEGIN PRIVATE KEY-----SECRET\nMORE\n-----END PRIVATE KEY-----\n"),
    ],
)
def test_no_value_passes_for_a_section(path: bytes, text: bytes) -> None:
    """A list, a line of a longer value and a key on its first line are masked."""
    mask = Mask(path, text.splitlines(keepends=True))
    shown = b"".join(map(mask.line, range(text.count(b"\n"))))
    assert b"SECRET" not in shown
    assert MASK in shown


def test_sections_are_shown() -> None:
    """What only names a part of the file is no secret."""
    lines = [b"[default]\n", b"[[tool.keys]]\n", b"key = 1\n"]
    mask = Mask(b".aws/credentials", lines)
    assert [mask.line(number) for number in range(2)] == lines[:2]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (b".env~", VALUES),
        (b".env-prod", VALUES),
        (b".env_local", VALUES),
        (b".envrc.bak", VALUES),
        (b"prod.env.old", VALUES),
        (b".claude/.credentials.json", VALUES),
        (b".codex/auth.json", VALUES),
        (b"id_rsa.bak", WHOLE),
        (b".env.example", PLAIN),
        (b".environment", PLAIN),
        (b"config.env.ts", PLAIN),
    ],
)
def test_copies_and_variants_are_as_secret(name: bytes, how: str) -> None:
    """A copy of a secret file, or one of several like it, is masked as the usual one is."""
    assert how_secret(name) == how


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


def test_a_closed_project_says_that_it_is_closed(tree: Path, home: Path) -> None:
    """Using a project after `close` is a mistake of the caller, not damage."""
    project = takeback.open(tree, home=home)
    project.checkpoint()
    project.close()
    with pytest.raises(takeback.UsageError, match="closed"):
        project.status()


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
        assert [change.path for change in turn.recorded().changes] == [b"made"]


def test_a_request_of_another_session_is_refused(tree: Path, home: Path) -> None:
    """Who uses an id twice is told so, instead of getting a session or turn of somebody else."""
    with takeback.open(tree, home=home) as project:
        first = project.session("x", request="one")
        first.turn("x")
        first.resume(request="two")
        with pytest.raises(takeback.UsageError, match="already used"):
            project.session("y", request="one")
        other = project.session("y")
        other.turn("y")
        with pytest.raises(takeback.UsageError, match="already used"):
            other.resume(request="two")


def test_the_turn_of_another_project_disturbs_no_hook(tree: Path, home: Path) -> None:
    """An agent below a `takeback run` of one project that works in another is recorded there."""
    with takeback.open(tree, home=home) as project:
        for number in range(3):
            session = project.session("claude", id="c", held=False, inside="xxxxxxxxxxxx")
            session.turn(f"turn {number}").end()
        assert project.ledger.rows("SELECT kind FROM events WHERE kind = 'SessionResumed'") == []


def test_a_hook_does_not_let_go_of_a_session_that_is_held(tree: Path, home: Path) -> None:
    """A session keeps the process that holds it, also when a hook says where it runs."""
    with takeback.open(tree, home=home) as project:
        outer = project.session("run").turn("outer", whole=False)
        project.session("claude", id="c")
        query = "SELECT holder FROM sessions WHERE own_id = 'c'"
        before = project.ledger.rows(query)
        for _ in range(2):
            project.session("claude", id="c", held=False, inside=outer.id)
        assert project.ledger.rows(query) == before
        resumed = project.ledger.rows("SELECT 1 FROM events WHERE kind = 'SessionResumed'")
        assert len(resumed) == 1, "only the first time is worth a word"
