"""How one says which state or which turn is meant, and what is answered to what nobody means."""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from takeback import Project, UnknownReferenceError
from takeback.history import references, times
from takeback.ledger.database import Table

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
NOON = 1_794_740_400.0
"""2026-11-15 12:00:00 in Berlin, 11:00:00 UTC."""
HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock on the wall is Berlin's."""
    monkeypatch.setenv("TZ", BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


TIMES = [
    ("10m", NOON - 600),
    ("10 min", NOON - 600),
    ("10 minutes ago", NOON - 600),
    ("90s ago", NOON - 90),
    ("2h", NOON - 2 * HOUR),
    ("3d", NOON - 3 * DAY),
    ("1w", NOON - 7 * DAY),
    ("0m", NOON),
    ("11:05", NOON - 55 * 60),
    ("11:05:30", NOON - 55 * 60 + 30),
    ("9:00", NOON - 3 * HOUR),
    ("14:05", NOON - DAY + 2 * HOUR + 300),
    ("today 09:00", NOON - 3 * HOUR),
    ("yesterday", NOON - 36 * HOUR),
    ("yesterday 15:00", NOON - DAY + 3 * HOUR),
    ("Yesterday  15:00", NOON - DAY + 3 * HOUR),
    ("2026-11-15", NOON - 12 * HOUR),
    ("2026-11-15 11:05", NOON - 55 * 60),
    ("2026-11-15T11:05", NOON - 55 * 60),
    ("2026-11-15T11:05:00.500", NOON - 55 * 60 + 0.5),
    ("2026-11-15T10:05:00Z", NOON - 55 * 60),
    ("2026-11-15T15:35:00+05:30", NOON - 55 * 60),
    ("2026-11-15T04:05-0600", NOON - 55 * 60),
    ("2026-07-01 12:00", NOON - 137 * DAY - HOUR),
    ("2024-02-29", NOON - 990.5 * DAY),
    ("1970-01-01T00:00Z", 0.0),
    ("2026-02-29", None),
    ("2026-13-01", None),
    ("2026-11-15 25:00", None),
    ("99999-01-01", None),
    ("24:00", None),
    ("11:5", None),
    ("1:2:3:4", None),
    ("10", None),
    ("m", None),
    ("10x", None),
    ("-10m", None),
    ("9999999999d", None),
    ("now", NOON),
    ("an hour ago", NOON - HOUR),
    ("An  Hour Ago", NOON - HOUR),
    ("a minute ago", NOON - 60),
    ("half an hour ago", NOON - HOUR / 2),
    ("two weeks ago", NOON - 14 * DAY),
    ("noon", NOON),
    ("midnight", NOON - 12 * HOUR),
    ("yesterday noon", NOON - DAY),
    ("9am", NOON - 3 * HOUR),
    ("3:30pm", NOON - DAY + 3.5 * HOUR),
    ("12am", NOON - 12 * HOUR),
    ("12pm", NOON),
    ("sunday", NOON - 12 * HOUR),
    ("last sunday", NOON - 7.5 * DAY),
    ("sunday 13:00", NOON - 7 * DAY + HOUR),
    ("monday", NOON - 6.5 * DAY),
    ("Last Friday", NOON - 2.5 * DAY),
    ("last friday 15:00", NOON - 2 * DAY + 3 * HOUR),
    ("an hour", None),
    ("hour ago", None),
    ("half ago", None),
    ("ago", None),
    ("last", None),
    ("last week", None),
    ("last noon", None),
    ("noon noon", None),
    ("13pm", None),
    ("0am", None),
    ("pm", None),
    ("monday morning", None),
    ("yesterday evening", None),
    ("payment validation", None),
    ("٣m", None),
    ("", None),
    ("1" * 10_000 + "m", None),
]


@pytest.mark.usefixtures("_berlin")
@pytest.mark.parametrize(("text", "expected"), TIMES, ids=lambda value: str(value)[:30])
def test_times_are_read_as_people_write_them(text: str, expected: float | None) -> None:
    """A span counts back from now, a time of day is the last one, a zone is obeyed."""
    assert times.parse(text, NOON) == expected


class Play:
    """A project with a history of which every moment is known."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.project = takeback.open(tree)
        self.ids: dict[str, str] = {}

    def checkpoint(self, name: str, text: str) -> None:
        """Write the file by hand, and keep it."""
        (self.tree / "file.txt").write_text(text)
        self.ids[name] = self.project.checkpoint(name).id

    def state(self, ref: str, now: float | None = None) -> str:
        """The id of the checkpoint that a reference means."""
        at = time.time() if now is None else now
        return references.state(self.project.workspace.ledger, self.named(ref), at).id

    def named(self, ref: str) -> str:
        """A reference with the ids that the names in braces stand for."""
        return ref.format(**self.ids)

    def sql(self, statement: str, *values: object) -> None:
        """Change the tables behind everybody's back."""
        with sqlite3.connect(os.fsdecode(self.project.workspace.ledger.path)) as db:
            db.execute(statement, values)
        db.close()


@pytest.fixture
def play(tree: Path, home: Path) -> Iterator[Play]:
    """Three turns of two sessions: one changed something by a step, one nothing, one by itself."""
    assert home.is_dir()
    made = Play(tree)
    with made.project:
        made.checkpoint("c1", "one\n")
        with made.project.session(agent="claude", title="payments") as session:
            made.ids["s1"] = session.id
            with session.turn("Fix the payment validation") as turn:
                with turn.step("Bash", {"command": "make"}) as step:
                    made.ids["step"] = step.id
                    (tree / "file.txt").write_text("two\n")
                (tree / "file.txt").write_text("three\n")
            made.ids |= {"t1": turn.id, "c2": turn.recorded().after}
            with session.turn("Explain what you did to\n  the payments") as turn:
                pass
            made.ids["t2"] = turn.id
        made.checkpoint("c3", "by hand\n")
        with made.project.session(agent="codex") as session:
            made.ids["s2"] = session.id
            with session.turn("Überarbeite die Übersicht") as turn:
                (tree / "file.txt").write_text("four\n")
            made.ids |= {"t3": turn.id, "c4": turn.recorded().after}
        made.checkpoint("c5", "by hand again\n")
        yield made


STATES = [
    ("@", "c5"),
    (" @ ", "c5"),
    ("@-", "c4"),
    ("@~0", "c4"),
    ("@~0-", "c3"),
    ("@~1", "c2"),
    ("@~2", "c1"),
    ("@~002", "c1"),
    ("{c3}", "c3"),
    ("{c3}-", "c2"),
    ("{t1}", "c2"),
    ("{t1}-", "c1"),
    ("{t2}", "c2"),
    ("{t2}-", "c2"),
    ("{t3}", "c4"),
    ("{t3}-", "c3"),
    ("{step}-", "c1"),
    ("payment validation", "c2"),
    ("payment", "c2"),
    ("c3", "c3"),
    ("c3-", "c2"),
    ("PAYMENT  Validation", "c2"),
    ('"payment validation"', "c2"),
    ("did to the payments", "c2"),
    ("überarbeite", "c4"),
    ("0s", "c5"),
]


@pytest.mark.parametrize(("ref", "expected"), STATES)
def test_a_state_is_found(play: Play, ref: str, expected: str) -> None:
    """Each way to name a state leads to the checkpoint that holds it."""
    assert play.state(ref) == play.ids[expected]


def test_a_step_means_what_it_left(play: Play) -> None:
    """The state after a step lies between that before its turn and that after it."""
    found = play.state("{step}")
    assert found not in {play.ids["c1"], play.ids["c2"]}
    assert play.state(found + "-") == play.ids["c1"]


def test_the_beginning_of_an_id_is_enough(play: Play) -> None:
    """Whatever is shown as short id means just what the whole id means."""
    for name in ("c1", "t1", "t3", "step"):
        id = play.ids[name]
        short = references.shortened(play.project.workspace.ledger, [id])[id]
        assert id.startswith(short)
        assert 4 <= len(short) <= 12
        assert play.state(short) == play.state(id)


TURNS = [
    ("{t1}", "t1"),
    ("{step}", "t1"),
    ("{t2}", "t2"),
    ("@~0", "t3"),
    ("@~1", "t1"),
    ("explain", "t2"),
    ("0s", "t3"),
]


@pytest.mark.parametrize(("ref", "expected"), TURNS)
def test_a_turn_is_found(play: Play, ref: str, expected: str) -> None:
    """Each way to name a turn leads to it, a step to the turn that it is in."""
    assert play.project.turn(play.named(ref)).id == play.ids[expected]


WRONG = [
    ("", "cannot be empty"),
    ("  \t ", "cannot be empty"),
    ("@~-1", "is not a reference"),
    ("@~", "is not a reference"),
    ("@~1.5", "is not a reference"),
    ("@~٣", "is not a reference"),
    ("@@", "is not a reference"),
    ("@~3", "further back than the log, which has 2 turns"),
    ("@~999999999999", "further back than the log"),
    ("@~" + "9" * 400, "further back than the log"),
    ("x" * 10_000, "cannot be longer than 500 characters"),
    ("a\x1b[2Jb", "control characters"),
    ("a\udcffb", "control characters"),
    ("a\0b", "control characters"),
    ("{c1}-", "there is nothing before"),
    ("kkkkkkkkkkkk", "no turn, checkpoint or prompt matches"),
    ("{t1}{t1}", "no turn, checkpoint or prompt matches"),
    ("0123abc", "no turn, checkpoint or prompt matches"),
    ("no prompt has this", "no turn, checkpoint or prompt matches"),
    ("{t1}--", "no turn, checkpoint or prompt matches"),
    ("-", "no turn, checkpoint or prompt matches"),
    ("%", "no turn, checkpoint or prompt matches"),
    ("' OR 1=1 --", "no turn, checkpoint or prompt matches"),
    ("the", "several prompts match"),
    ("1970-01-01", "is before the history, which begins at "),
    ("ayment", "no turn, checkpoint or prompt matches"),
    ("2999-01-01", "is in the future"),
    ("{s1}", "is a session"),
]


@pytest.mark.parametrize(("ref", "message"), WRONG, ids=lambda value: repr(value)[:30])
def test_what_nobody_can_mean_is_said_so(play: Play, ref: str, message: str) -> None:
    """A silly or hostile reference gives a sentence and what to do, and no other error."""
    with pytest.raises(UnknownReferenceError, match=message) as refused:
        play.state(ref)
    assert len(str(refused.value)) < 200
    assert len(refused.value.hint) < 2000


NO_TURNS = ["@", "@~2", "{t1}-", "{c1}", "{s1}", "1970-01-01"]


@pytest.mark.parametrize("ref", NO_TURNS)
def test_not_everything_is_a_turn(play: Play, ref: str) -> None:
    """A state, a session and a time before the first turn are no turns."""
    with pytest.raises(UnknownReferenceError) as refused:
        play.project.turn(play.named(ref))
    assert refused.value.hint


def test_a_session_names_its_turns(play: Play) -> None:
    """Who names a session is told which turns it has, the newest first."""
    with pytest.raises(UnknownReferenceError) as refused:
        play.state("{s1}")
    hint = refused.value.hint
    assert 0 < hint.index(play.ids["t2"]) < hint.index(play.ids["t1"])
    assert play.ids["t3"] not in hint


def test_several_prompts_are_listed(play: Play) -> None:
    """Words that several prompts match list them with id, time and label, the newest first."""
    with pytest.raises(UnknownReferenceError) as refused:
        play.state("the")
    _, first, second = map(str.strip, refused.value.hint.split("\n"))
    what = rf"`{play.ids['t2']}` turn, [\d :-]*\d\d:\d\d "
    assert re.fullmatch(what + '"Explain what you did to the payments"', first)
    assert second.startswith(f"`{play.ids['t1']}` turn, ")


def test_at_most_ten_prompts_are_listed(play: Play) -> None:
    """Twenty prompts that say the same are cut to ten."""
    with play.project.session(agent="codex") as session:
        for number in range(20):
            session.turn(f"try again, number {number}").end()
    with pytest.raises(UnknownReferenceError) as refused:
        play.state("try again")
    assert refused.value.hint.count("turn, ") == 10
    assert refused.value.hint.endswith("\n  …")


def test_an_ambiguous_beginning_lists_what_each_is(play: Play) -> None:
    """Ids of all kinds share one space; a beginning that several have names each with its kind."""
    renamed = {"turns": "t3", "checkpoints": "c5", "steps": "step", "sessions": "s1"}
    for number, (table, name) in enumerate(renamed.items()):
        id = "zzzzzzzzzzz" + "klmn"[number]
        play.sql(f"UPDATE {table} SET id = ? WHERE id = ?", id, play.ids[name])
    with pytest.raises(UnknownReferenceError, match="several ids begin with") as refused:
        play.state("zzzz")
    hint = refused.value.hint
    assert "`zzzzzzzzzzzk` turn, " in hint
    assert "`zzzzzzzzzzzl` checkpoint, " in hint
    assert "`zzzzzzzzzzzm` step Bash, " in hint
    assert "`zzzzzzzzzzzn` session of claude, " in hint
    assert play.state("zzzzzzzzzzzk") == play.ids["c4"]
    short = references.shortened(play.project.workspace.ledger, ["zzzzzzzzzzzk"])
    assert short == {"zzzzzzzzzzzk": "zzzzzzzzzzzk"}


def test_words_that_look_like_an_id_are_still_words(play: Play) -> None:
    """`sort` could be the beginning of an id; if none begins so, it is a word."""
    with play.project.session(agent="codex") as session:
        turn = session.turn("sort the invoices")
        turn.end()
    play.sql("UPDATE turns SET id = 'k' || substr(id, 2)")
    for table in ("checkpoints", "steps", "sessions"):
        play.sql(f"UPDATE {table} SET id = 'l' || substr(id, 2)")
    assert play.project.turn("sort").label == "sort the invoices"


@pytest.mark.usefixtures("_berlin")
def test_a_time_is_the_newest_state_at_that_time(play: Play) -> None:
    """Between two checkpoints the older one holds what was; at its very moment the newer one."""
    for number in range(1, 6 + 1):
        at = int((NOON - (7 - number) * HOUR) * 1e9)
        play.sql("UPDATE checkpoints SET created = ? WHERE number = ?", at, number)
    numbers = {row.id: row.number for row in play.project.workspace.ledger.checkpoints.all()}
    found = {
        ref: numbers[play.state(ref, NOON)]
        for ref in ("1m", "60m", "61m", "119m", "10:00", "09:59", "6h", "2026-11-15 05:00Z")
    }
    assert found == {
        "1m": 6,
        "60m": 6,
        "61m": 5,
        "119m": 5,
        "10:00": 5,
        "09:59": 4,
        "6h": 1,
        "2026-11-15 05:00Z": 1,
    }
    with pytest.raises(
        UnknownReferenceError, match="`7h` is before the history, which begins at 06:00"
    ):
        play.state("7h", NOON)


class Sample(Table):
    """A table of times."""

    table, time = "sample", "at"


def test_halving_finds_what_looking_at_all_finds(play: Play) -> None:
    """Also with gaps in the numbers, each moment leads to the newest row that is not younger."""
    play.sql("CREATE TABLE sample (number INTEGER PRIMARY KEY, at INTEGER, line INTEGER)")
    rows = [(number, number * 10) for number in range(1, 60) if number % 7 and number % 5 != 2]
    for row in rows:
        play.sql("INSERT INTO sample VALUES (?, ?, 1)", *row)
    play.sql("INSERT INTO sample SELECT number + 1, 0, 2 FROM sample WHERE number % 5 = 1")
    sample = Sample(play.project.workspace.ledger._reader)
    for moment in range(620):
        expected = max((number for number, at in rows if at <= moment), default=None)
        assert sample.last_by(moment) == expected


def test_without_turns_checkpoints_are_counted(tree: Path, home: Path) -> None:
    """In a project that no agent worked in, `@~N` is the checkpoint N before the newest."""
    assert home.is_dir()
    made = Play(tree)
    with made.project:
        with pytest.raises(UnknownReferenceError, match="no checkpoint yet"):
            made.state("@")
        with pytest.raises(UnknownReferenceError, match="further back"):
            made.state("@~0")
        for number in range(3):
            made.checkpoint(f"c{number}", f"{number}\n")
        with made.project.session(agent="codex") as session:
            session.turn("look around").end()
        assert [made.state(ref) for ref in ("@", "@~0", "@~1", "@~2")] == [
            made.ids[name] for name in ("c2", "c2", "c1", "c0")
        ]
        with pytest.raises(UnknownReferenceError) as refused:
            made.state("@~3")
        assert refused.value.hint == "`@~2` is the oldest"


def test_a_running_turn_means_the_newest_state(play: Play) -> None:
    """As long as a turn runs, what it left so far is the newest checkpoint."""
    with play.project.session(agent="codex") as session, session.turn("go on") as turn:
        play.ids["t4"] = turn.id
        play.checkpoint("c6", "five\n")
        assert play.state("{t4}") == play.ids["c6"]
        assert play.state("{t4}-") == play.ids["c5"]


def test_references_work_everywhere(play: Play, tmp_path: Path) -> None:
    """What extracts a state understands the same references."""
    expected = {"before": "one\n", "after": "three\n"}
    play.project.extract("payment validation", tmp_path / "after")
    play.project.extract(play.named("{t1}-"), tmp_path / "before")
    found = {name: (tmp_path / name / "file.txt").read_text() for name in expected}
    assert found == expected


def test_a_reference_writes_nothing_and_needs_no_lock(play: Play) -> None:
    """References are looked up while another process holds the lock, and add no event."""
    events = play.project.workspace.ledger.last_event()
    with (
        play.project.workspace.held(),
        Project.open(
            os.fsencode(play.tree), home=os.fsencode(os.environ["TAKEBACK_HOME"])
        ) as other,
    ):
        assert other.turn("payment validation").id == play.ids["t1"]
    assert play.project.workspace.ledger.last_event() == events
