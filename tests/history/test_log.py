"""`takeback log`, `takeback sessions`, the turns in the status: what they say, and their cost."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from history import Said, Story, command
from takeback import UsageError
from takeback.cli import app, screen
from takeback.history import references
from takeback.history import timeline as details
from takeback.history.timeline import Timeline
from tests.house.test_imports import imported

MAIN = Path(takeback.__file__).parent / "__main__.py"

PLAIN = """\
@  now  2 paths changed by you since the last turn
!  OTHE       10 min  codex   The other (interrupted)                 all shared
                              1 shared with "One of two" (claude)
o  ONEO       20 min  claude  One of two                              all shared
                              1 shared with "The other" (codex)
x  BINA  @~0  30 min  codex   Make it binary (failed)          +1 -2  2 files
o  EXPL       40 min  claude  ログインフォームについて説...           no changes
o  FORM  @~1  50 min  claude  Add a login form                +50 -0  2 files
                              1 not covered
*  STAR          1 h  start
"""
NARROW = """\
@  now  2 paths changed by you since…
!  OTHE       10 min  …  all shared
   The other (interrupted)
   1 shared with "One of two" (claude)
o  ONEO       20 min  …  all shared
   One of two
   1 shared with "The other" (codex)
x  BINA  @~0  30 min  …  +1 -2  2 files
   Make it binary (failed)
o  EXPL       40 min  …  no changes
   ログインフォームについて説明してくだ…
o  FORM  @~1  50 min  …  +50 -0  2 files
   Add a login form
   1 not covered
*  STAR          1 h  start
"""


def with_signs(plain: str) -> str:
    """A screen as a terminal shows it that knows more than ASCII."""
    signs = {"\no  ": "\n○  ", "\nx  ": "\n✗  ", "\n*  ": "\n◆  ", " -": " \N{MINUS SIGN}"}
    for sign, better in signs.items():
        plain = plain.replace(sign, better)
    return plain.replace("について説...", "について説明…")


SCREEN = with_signs(PLAIN)


@pytest.fixture
def story(tree: Path, home: Path) -> Iterator[Story]:
    """A project with a history."""
    assert home.is_dir()
    told = Story(tree)
    with told.project:
        yield told


@pytest.fixture
def aged(story: Story) -> Story:
    """The same, each turn ten minutes after the one before, and two files changed by hand."""
    for name in ("mine.txt", "yours.txt"):
        (story.tree / name).write_text("by hand\n")
    story.project.checkpoint()
    story.age(10, 20, 30, 40, 50)
    return story


# -- the screen --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surroundings", "expected"),
    [
        ({}, SCREEN),
        ({"COLUMNS": "40"}, with_signs(NARROW)),
        ({"LC_ALL": "C"}, PLAIN),
        ({"TERM": "dumb"}, SCREEN),
    ],
    ids=["80", "40", "C", "dumb"],
)
def test_the_timeline(aged: Story, surroundings: dict[str, str], expected: str) -> None:
    """Each turn has a line that can be read without colour, at 80 columns, at 40, and in ASCII."""
    said = command(aged.tree, "log", **surroundings)
    assert (said.code, aged.masked(said.out)) == (0, expected)
    assert aged.masked(said.err) == (
        "`takeback show OTHE` shows a turn in full\n"
        '`takeback undo` asks first: what "The other" (OTHE, codex) did is shared with others\n'
    )


def test_a_terminal_that_knows_only_ascii(aged: Story) -> None:
    """Where the encoding lacks our signs, all that is printed is ASCII and the signs are others."""
    said = command(aged.tree, "log", PYTHONIOENCODING="ascii")
    assert said.code == 0
    assert said.out.isascii()
    assert [line[0] for line in said.out.splitlines() if line[0] != " "] == list("@!oxoo*")


def test_older_days_stand_apart(aged: Story) -> None:
    """Before the first turn of an earlier day stands which day it was, and turns have a time."""
    aged.age(10, 24 * 60, 24 * 60 + 5, 50 * 60, 99 * 24 * 60)
    lines = command(aged.tree, "log").out.splitlines()
    assert lines[1].startswith("!  ")
    apart = [number for number, line in enumerate(lines) if line.startswith("──")]
    assert lines[apart[0]] == "── yesterday"
    assert [len(lines[number]) for number in apart[1:]] == [len("── 2026-11-15")] * 2
    clock = lines[apart[1] + 1].split()[2]
    assert (clock[2], len(clock)) == (":", 5)


def test_the_status_shows_the_last_turns(aged: Story) -> None:
    """Bare `takeback` lists five turns, and says where more are."""
    shown = aged.masked(command(aged.tree).out)
    assert SCREEN.partition("\n")[2] in shown
    assert "Last turns\n" in shown
    with aged.codex.turn("One more"):
        pass
    assert "Last turns; `takeback log` shows more\n" in command(aged.tree).out


def test_without_turns_it_says_so(tree: Path, home: Path) -> None:
    """A project in which no agent worked has a log without turns; a folder without one is told."""
    assert home.is_dir()
    nowhere = command(tree, "log")
    assert (nowhere.code, "is not in a project yet" in nowhere.err) == (2, True)
    takeback.open(tree).close()
    assert command(tree, "log").out == "@  now  no checkpoint yet\n   no turns yet\n"
    with takeback.open(tree) as project:
        project.checkpoint()
    said = command(tree, "log")
    assert said.out.splitlines()[1:] == ["   no turns yet"]
    assert json.loads(command(tree, "log", "--json").out)["turns"] == []


HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07 clear",
    "\u202egnihtemos esrever",
    "a\x9bb\x85c",
    "back\\slash and\ttab",
    "e\u0301" * 300,
    "👩\u200d💻 wide" * 40,
    "\n\n   \n second line",
    "",
    "x" * 5000,
]


def test_no_prompt_breaks_the_screen(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a prompt holds, nothing reaches the terminal that acts on it, and lines fit."""
    with story.project.session(agent="\x1b[1magent") as session:
        for label in HOSTILE:
            session.turn(label).end()
    for room in (20, 40, 79, 80, 200):
        monkeypatch.setenv("COLUMNS", str(room))
        assert app.main(["-C", str(story.tree), "log"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > len(HOSTILE)
        assert [line for line in lines if not line.isprintable()] == []
        if room >= 40:
            assert max(map(screen.columns, lines)) <= room


def test_labels_are_cut_by_columns() -> None:
    """Wide characters count twice, marks on others not at all, and no half is left."""
    assert screen.columns("日本") == 4
    assert screen.columns("e\u0301") == 1
    assert screen.cut("日本語", 5) == "日本…"
    assert screen.cut("日本語", 4) == "日…"
    assert screen.cut("日本語", 6) == "日本語"
    assert screen.cut("abcdef", 5, "...") == "ab..."
    assert screen.cut("abcdef", 0) == ""
    assert screen.pad("日本", 6) == "日本  "
    assert screen.title("\n  first \t line \nsecond") == "first line"


# -- what is shown -----------------------------------------------------------------------------


def labels(said: Said) -> list[str]:
    """The labels of the turns of an answer in JSON."""
    assert said.code == 0
    return [turn["label"].split()[0] for turn in json.loads(said.out)["turns"]]


def test_which_turns_are_shown(aged: Story) -> None:
    """The newest ones, at most so many, of one session, since a time."""
    tree, codex = aged.tree, aged.ids["codex"]
    everything = ["The", "One", "Make", labels(command(tree, "log", "--json"))[3], "Add"]
    assert labels(command(tree, "log", "--json")) == everything
    assert labels(command(tree, "log", "--json", "--limit", "2")) == everything[:2]
    assert labels(command(tree, "log", "--json", "--session", codex)) == ["The", "Make"]
    assert labels(command(tree, "log", "--json", "--session", codex[:6], "--limit", "1")) == ["The"]
    assert labels(command(tree, "log", "--json", "--since", "35m")) == everything[:3]
    assert labels(command(tree, "log", "--json", "--since", "5m")) == []
    assert labels(command(tree, "log", "--json", "--all")) == everything
    assert labels(command(tree, "log", "--json", "--all", "--limit", "1")) == everything[:1]
    assert (
        "`takeback log --all -n 2` shows more" in command(tree, "log", "--all", "--limit", "1").err
    )
    both = ("--since", "35m", "--session", aged.ids["claude"])
    assert labels(command(tree, "log", "--json", *both)) == ["One"]


def test_the_last_line_names_the_command_for_more(aged: Story) -> None:
    """If there are older turns, the command that shows them is told, with what was asked for."""
    said = command(aged.tree, "log", "--limit", "2", "--since", "2 days")
    assert said.err.splitlines()[-1] == "`takeback log --since '2 days' -n 4` shows more"
    assert "shows more" not in command(aged.tree, "log", "--limit", "5").err
    assert "no turns match" in command(aged.tree, "log", "--since", "1s").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--limit", "0"], "takes a number"),
        (["--limit", "-1"], "takes a number"),
        (["--limit", "many"], "takes a number"),
        (["--since", "whenever"], "is not a time"),
        (["--session", "nope"], "no session matches"),
        (["--session", "kkkkkkkkkkkk"], "no session matches"),
        (["mv"], "was never in this project"),
        (["--grep", " "], "needs a text"),
        (["--until", "whenever"], "is not a time"),
        (["--checkpoints", "b.py"], "cannot be combined with a PATH"),
    ],
)
def test_what_makes_no_sense_is_refused(story: Story, words: list[str], message: str) -> None:
    """An argument that means nothing gives exit code 2, a sentence and a hint."""
    said = command(story.tree, "log", *words)
    assert (said.code, said.out, message in said.err) == (2, "", True)


def test_the_json_of_the_log(story: Story) -> None:
    """All that the design promises is there, and says what happened."""
    answer = json.loads(command(story.tree, "log", "--json").out)
    assert answer["here"] == story.project.status().newest.id  # type: ignore[union-attr]
    keys = "id session agent label started ended before after changes authors status check effects"
    for turn in answer["turns"]:
        assert set(keys.split()) <= set(turn)
    form = answer["turns"][-1]
    assert (form["id"], form["session"]) == (story.ids["form"], story.ids["claude"])
    assert (form["before"], form["status"]) == (story.ids["start"], "done")
    assert [
        (change["path"], change["verb"], change["added"], change["removed"], change["how"])
        for change in form["changes"]
    ] == [("b.py", "rename", 0, 0, "shell"), ("login.py", "create", 50, 0, "named")]
    assert form["changes"][0]["origin"] == {"path": "a.py"}
    assert form["left_out"] == [{"path": "pipe", "reason": "special"}]
    other = answer["turns"][0]
    assert [change["path"] for change in other["shared"]] == ["both.txt"]
    assert other["authors"] == [{"who": "shared", "how": None, "paths": 1}]


def test_a_running_turn_shows_what_it_did_so_far(story: Story) -> None:
    """Until a turn ends, its changes are those of its deltas, folded, without lines."""
    tree, turn = story.tree, story.codex.turn("Going on")
    with turn.step("Bash", {"command": "work"}):
        (tree / "new.txt").write_text("1\n")
        (tree / "gone.txt").write_text("1\n")
    with turn.step("Bash", {"command": "more"}):
        (tree / "new.txt").write_text("2\n")
        (tree / "gone.txt").unlink()
        (tree / "login.py").rename(tree / "signin.py")
    found = story.project.turn(turn.id)
    assert (found.status, found.files, found.uncounted, found.after) == ("running", 2, 2, "")
    assert [(change.raw_path, change.verb, change.added) for change in found.changes] == [
        (b"new.txt", "create", None),
        (b"signin.py", "rename", None),
    ]
    line = command(tree, "log", "--limit", "1").out.splitlines()[1]
    assert (line[0], line.split()[-4:]) == ("▶", ["on", "(running)", "2", "files"])
    turn.end()
    assert [change.added for change in story.project.turn(turn.id).changes] == [1, 0]


def test_a_turn_of_a_dead_process_was_interrupted(tree: Path, home: Path) -> None:
    """When whoever held a session is gone, its turn is shown as interrupted; nothing is written."""
    assert home.is_dir()
    program = (
        "import os, signal, takeback\n"
        "project = takeback.open('.')\n"
        "turn = project.session(agent='claude').turn('Never ends')\n"
        "step = turn.step('Bash', {'command': 'sleep'})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tree, check=False)
    assert done.returncode == -signal.SIGKILL
    with takeback.open(tree) as project:
        events = project.workspace.ledger.last_event()
        turn = project.turn("never ends")
        assert (turn.status, turn.steps[0].status) == ("interrupted", "interrupted")
        assert project.log().turns[0].status == "interrupted"
        (session,) = project.sessions()
        assert (session.running, session.ended) == (False, None)
        assert "(interrupted)" in command(tree, "log").out
        assert "  interrupted, silent since " in command(tree, "sessions").out
        assert project.workspace.ledger.last_event() == events
        assert project.workspace.ledger._reader.rows("SELECT status FROM turns") == [("running",)]


def test_the_sessions(aged: Story) -> None:
    """Sessions are listed with agent, title or last prompt, turns and whether they go on."""
    aged.codex.end()
    rows = command(aged.tree, "sessions")
    assert rows.code == 0
    first, second = (line.split("  ") for line in aged.masked(rows.out).splitlines())
    assert [part.strip() for part in first if part][:4] == [
        "CODEXCOD",
        "codex",
        "The other",
        "2 turns",
    ]
    assert first[-1] == "ended"
    assert [part.strip() for part in second if part][2] == "payments"
    assert second[-1] == "idle"
    narrow = command(aged.tree, "sessions", COLUMNS="40").out.splitlines()
    assert [line.strip() for line in narrow[1::2]] == ["The other", "payments"]
    found = json.loads(command(aged.tree, "sessions", "--json").out)["sessions"]
    assert [(one["id"], one["turns"], one["status"]) for one in found] == [
        (aged.ids["codex"], 2, "ended"),
        (aged.ids["claude"], 3, "idle"),
    ]


def test_only_the_newest_sessions_are_listed(story: Story) -> None:
    """More than twenty sessions are shown only if asked for."""
    for number in range(25):
        story.project.session(agent=f"agent{number}")
    said = command(story.tree, "sessions")
    assert (len(said.out.splitlines()), "`takeback sessions --all`" in said.err) == (20, True)
    assert len(command(story.tree, "sessions", "--all").out.splitlines()) == 27
    assert len(story.project.sessions(3)) == 3


# -- reading is only reading -------------------------------------------------------------------


def test_reading_waits_for_nobody(story: Story) -> None:
    """While somebody holds the lock, the log is read all the same, and nothing is added to it."""
    events = story.project.workspace.ledger.last_event()
    with story.project.workspace.held():
        for words in (["log"], ["sessions"], ["show", "login"], ["show", "@", "b.py"]):
            assert command(story.tree, *words).code == 0
    assert story.project.workspace.ledger.last_event() == events


def test_the_log_is_of_one_moment(story: Story) -> None:
    """What is recorded while somebody reads is not half in what he sees."""
    with story.project.workspace.ledger.snapshot() as moment:
        before = moment.last_event()
        with story.codex.turn("Meanwhile"):
            (story.tree / "meanwhile.txt").write_text("1\n")
        log = Timeline(moment, time.time()).log(limit=9, session=None, since=None, changes=True)
        assert (len(log.turns), moment.last_event()) == (5, before)
    assert len(story.project.log().turns) == 6


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE turns",
        "UPDATE turns SET started = 'soon'",
        "UPDATE turns SET git_before = '{'",
        "UPDATE change_rows SET path = path + 1000",
        "DROP VIEW changes",
        "DELETE FROM paths",
        "UPDATE paths SET path = number",
        "UPDATE steps SET paths = '[1'",
        "UPDATE sessions SET seen = x'00'",
        "UPDATE paths SET path = 'text ' || path",
        "UPDATE delta_rows SET path = path + 1000",
    ],
)
def test_a_damaged_ledger_is_said_so(story: Story, damage: str) -> None:
    """Tables that make no sense give an error of ours, or are shown as far as they can be."""
    story.sql(damage)
    words = ("log", "log --json", "show login", "show @", "sessions")
    codes = {app.main(["-C", str(story.tree), *each.split()]) for each in words}
    assert codes in ({0, 4}, {4})


def test_the_library_refuses_what_is_no_time(story: Story) -> None:
    """Times are given as text or as seconds; anything else is a usage error."""
    assert len(story.project.log(since=time.time() - 3600).turns) == 5
    assert len(story.project.log(since="1h").turns) == 5
    assert story.project.log(since=time.time() + 60).turns == ()
    with pytest.raises(UsageError):
        story.project.log(since="soon")


# -- cost --------------------------------------------------------------------------------------

COUNT = "WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < {}) "
ID = "replace(printf('%012d', (n * 7919 + {}) % 999983 * 1000003), '0', 'k')"


def grow(story: Story, turns: int) -> None:
    """Let the ledger have so many turns more, each with a checkpoint, steps, deltas and changes."""
    created = "SELECT * FROM checkpoints WHERE number = 1"
    fill = {
        "checkpoints": "{id}, 1, tree, root, view, created + n, '', 1, 1, NULL, 1, n + 99",
        "turns": "{id}, 1, 'Turn ' || n, 'done', 0, n, n + 1, n, n + 1, n + 99, n + 100, 3, 2, 2,"
        " 5, 5, 0, NULL, NULL, NULL, NULL, 1",
        "steps": "{id}, n + 100, NULL, 'Bash', 'shell', 'make', '[]', 'done', 0, n, n + 1, n,"
        " n + 1, n, n + 1, 0",
        "paths": "n, CAST('a' || n AS BLOB)",
        "delta_rows": "0, n + 100, 'write', NULL, 'step', 'shell', 1, n + 100, n + 100, ''",
        "change_rows": "n + 100, 'write', NULL, 5, 5, 'shell'",
    }
    for salt, (table, values) in enumerate(fill.items()):
        id = "'" + "klmnopq"[salt] + "' || substr(" + ID.format(salt) + ", 2)"
        source = f"count, ({created})" if table == "checkpoints" else "count"
        insert = f"INSERT INTO {table} SELECT n + 100, {values.format(id=id)} FROM {source}"
        story.sql(COUNT.format(turns) + insert)


def work(story: Story, **wanted: object) -> int:
    """How many steps SQLite takes to list the last twenty turns."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with story.project.workspace.ledger.snapshot() as ledger:
        ledger._db.set_progress_handler(count, 10)
        asked: dict[str, object] = {"limit": 20, "session": None, "since": None, "changes": True}
        log = Timeline(ledger, time.time()).log(**{**asked, **wanted})  # type: ignore[arg-type]
        ledger._db.set_progress_handler(None, 1)
        assert len(log.turns) == 20
    return steps


@pytest.mark.parametrize(
    "wanted", [{}, {"session": "claude"}, {"since": 0.0}, {"all": True}], ids=str
)
def test_the_log_costs_what_it_shows(story: Story, wanted: dict[str, object]) -> None:
    """Twenty turns cost about the same with thirty turns in the log and with ten thousand."""
    if "session" in wanted:
        wanted = {"session": story.ids["claude"]}
    grow(story, 30)
    few = work(story, **wanted)
    for table in ("change_rows", "delta_rows", "paths", "steps", "turns", "checkpoints"):
        column = {"change_rows": "turn", "delta_rows": "checkpoint"}.get(table, "number")
        story.sql(f"DELETE FROM {table} WHERE {column} > 100")
    grow(story, 10_000)
    many = work(story, **wanted)
    assert few > 20
    assert many < few * 1.5


SHORT = ("SCAN CONSTANT ROW", "SCAN json_each", "SCAN origin")
"""Walks over one row, or over what is asked for itself."""


def test_no_query_looks_at_everything(story: Story) -> None:
    """SQLite finds all rows of the log by a key or an index."""
    asked: list[str] = []
    with story.project.workspace.ledger.snapshot() as ledger:
        ledger._db.set_trace_callback(asked.append)
        timeline = Timeline(ledger, time.time())
        timeline.log(limit=20, session=None, since=None, changes=True)
        timeline.log(limit=20, session=story.ids["claude"], since=0.0, changes=True)
        timeline.turn(1)
        row = ledger.checkpoints.newest()
        assert row is not None
        details.of_checkpoint(ledger, row)
        ledger.checkpoints.taken_for(row.event)
        references.shortened(ledger, [row.id])
        ledger._db.set_trace_callback(None)
        # Restores are few, and read whole.
        queries = {each for each in asked if " FROM restores " not in each}
        queries -= {each for each in queries if not each.startswith("SELECT")}
        assert len(queries) > 20
        for query in queries:
            rows = ledger._db.execute("EXPLAIN QUERY PLAN " + query).fetchall()
            walks = [row[3] for row in rows if row[3].startswith("SCAN")]
            walks = [each for each in walks if not each.startswith(SHORT)]
            bounded = "LIMIT 1" in query or "max(" in query or "min(" in query
            assert bounded or walks == [], query


def test_a_cold_log_is_quick(story: Story, home: Path) -> None:
    """With ten thousand turns, `takeback log` takes at most 150 ms of CPU on a quiet machine."""
    grow(story, 10_000)
    story.project.checkpoint()
    took = []
    for _ in range(9):
        started = _child_seconds()
        said = subprocess.run(
            [os.path.realpath(sys.executable), "-I", "-S", str(MAIN), "log"],
            cwd=story.tree,
            env={**os.environ, "TAKEBACK_HOME": str(home)},
            capture_output=True,
            check=True,
        )
        took.append(_child_seconds() - started)
        assert len(said.stdout.splitlines()) == 23
    assert min(took) <= 0.3


def _child_seconds() -> float:
    """What the children that ended have used of the processor; waiting does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


HEAVY = ("json", "re", "typing", "datetime", "argparse", "difflib", "dataclasses")
OURS = frozenset(
    """
    takeback.cli.commands.log takeback.cli.screen
    takeback.cli.text.turn_text takeback.history.references takeback.history.timeline
    takeback.history.times takeback.model.history
    """.split()
)


def test_the_log_imports_little(story: Story, home: Path) -> None:
    """`takeback log` imports none of the heavy modules, and of ours only those on its way."""
    base = imported(["-c", "pass"], home)
    time.sleep(0.1)  # until no stamp is too young, a look has to read
    story.project.checkpoint()
    found = imported([str(MAIN), "-C", str(story.tree), "log"], home) - base
    assert found & set(HEAVY) == set()
    assert {name for name in found if name.startswith("takeback.")} >= OURS
    others = {"takeback.session", "takeback.capture.deltas"}
    others |= {
        "takeback.history.compare",
        "takeback.objects.pack_read",
        "takeback.objects.git_objects",
    }
    assert found & others == set()
