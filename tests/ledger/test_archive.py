"""Old events go to a compressed archive, and the log is still whole, readable and forgettable."""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import takeback
from spoken import sentence
from takeback.errors import DamagedStoreError
from takeback.ledger import schema
from takeback.ledger.log import archive, events
from takeback.ledger.log.events import NewEvent
from years import Years

SEGMENT = 8


@pytest.fixture
def years(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Years]:
    """A history of 20 turns, one a day, with short segments."""
    monkeypatch.setattr(archive, "SEGMENT", SEGMENT)
    years = Years(tree, home, monkeypatch)
    years.days(20)
    yield years
    years.close()


def _log(years: Years) -> list[tuple[object, ...]]:
    return [
        (e.seq, e.kind, e.at, e.request, e.payload) for e in years.project.workspace.ledger.events()
    ]


def _tables(years: Years) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: years.project.workspace.ledger._reader.rows(f"SELECT * FROM {name} ORDER BY 1, 2")
        for name in schema.TABLES
    }


def _problems(years: Years) -> list[str]:
    found = years.project.verify().damage
    return [sentence(damage.what) for damage in found]


def _change(home: Path, statement: str, *values: object) -> None:
    (ledger,) = home.glob("projects/*/ledger.db")
    with sqlite3.connect(ledger) as db:
        assert db.execute(statement, values).rowcount == 1
    db.close()


def test_old_events_are_archived_and_nothing_else_changes(years: Years) -> None:
    """The log reads, verifies and rebuilds as before; turns are shown, kept ones undone."""
    years.project.keep(years.turns[2].id, "good")
    log = [(turn.id, turn.label) for turn in years.project.log(all=True).turns]
    told = _log(years)
    done = years.gc(days=5, turns=3)
    assert done.archived >= 5 * SEGMENT
    assert done.archived % SEGMENT == 0
    live = years.project.workspace.ledger._reader.rows("SELECT min(seq) FROM events")[0][0]
    assert live == done.archived + 1
    assert _log(years)[: len(told)] == told
    assert _problems(years) == []
    tables = _tables(years)
    years.project.workspace.ledger.rebuild()
    assert _tables(years) == tables
    assert [(turn.id, turn.label) for turn in years.project.log(all=True).turns] == log
    assert years.project.turn(years.turns[0].id).label == "turn 0"
    assert [kept.label for kept in years.project.kept()] == ["good"]
    assert years.wrong() == []
    years.undo(turn=years.turns[-1])
    first = years.project.workspace.ledger.event(1)
    assert first is not None
    assert first.kind == told[0][1]


@pytest.mark.parametrize("kind", ["", events.CHECKPOINT_TAKEN])
def test_who_reads_meanwhile_misses_nothing(
    years: Years, tree: Path, home: Path, kind: str
) -> None:
    """Events that are archived while the log is read are read once."""
    wanted = [event.seq for event in years.project.workspace.ledger.events()]
    if kind:
        ledger = years.project.workspace.ledger
        wanted = [event.seq for event in ledger.events_of(kind)]
    with takeback.open(tree, home=home) as project:
        ledger = project.workspace.ledger
        found = ledger.events_of(kind) if kind else ledger.events()
        first = next(found)
        assert years.gc(days=10, turns=3).archived
        assert [first.seq, *(event.seq for event in found)] == wanted
        found = ledger.events_of(kind) if kind else ledger.events()
        first = next(found)
        assert years.gc(days=5, turns=3).archived
        later = [first.seq, *(event.seq for event in found)]
        assert later[: len(wanted)] == wanted


def test_who_only_takes_the_lock_says_nothing_of_the_end(
    years: Years, tree: Path, home: Path
) -> None:
    """A process that wrote long ago does not say that the log ends where it left it."""
    with takeback.open(tree, home=home) as old:
        (tree / "file").write_text("by the old one\n")
        old.checkpoint()
        years.days(20)
        assert years.gc(days=5, turns=3).archived > 0
        end = years.project.workspace.store.lock.path
        before = Path(end.decode()).read_bytes()
        with old.workspace.held():
            pass
        assert Path(end.decode()).read_bytes() == before
        assert _problems(years) == []
        years.gc(days=4, turns=3)


def test_what_can_be_undone_and_what_is_unknown_stays_live(years: Years) -> None:
    """No event goes that belongs to a kept turn, and none from one on that only others know."""
    with years.project.workspace.held():
        years.project.workspace.ledger.record(NewEvent("MoonLanded", {"crew": 2}, 1))
    last = years.project.workspace.ledger.last_event()
    years.days(20)
    assert last - SEGMENT < years.gc(days=5, turns=3).archived < last
    ((oldest,),) = years.project.workspace.ledger._reader.rows("SELECT min(seq) FROM events")
    kept = [years.turns[place].id for place in years.kept_turns()]
    for id in kept:
        assert years.project.workspace.ledger._reader.rows(
            "SELECT 1 FROM turns WHERE id = ? AND opened > ?", (id, oldest)
        )


def test_a_small_log_stays_as_it_is(years: Years, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is archived before a whole segment is old."""
    monkeypatch.setattr(archive, "SEGMENT", 4096)
    assert years.gc(days=5, turns=3).archived == 0


def test_what_is_forgotten_leaves_the_archive(years: Years) -> None:
    """The text is in no byte of the ledger any more, and the chain is still whole."""
    with years.working(label="use hunter2-hunter2 to log in"):
        years.put("file", "1")
    years.days(20)
    assert years.gc(days=5, turns=3).archived
    assert any("hunter2" in str(event) for event in _log(years))
    years.project.forget(text="hunter2-hunter2")
    assert not any("hunter2" in str(event) for event in _log(years))
    assert _problems(years) == []
    years.days(20)
    assert years.gc(days=5, turns=3).archived, "the event that tells of it goes, too"
    assert not years.project.workspace.ledger._reader.rows(
        "SELECT 1 FROM events WHERE kind = ?", (events.FORGOTTEN,)
    )
    assert _problems(years) == []


def _with_other_words(data: bytes) -> bytes:
    return zlib.compress(zlib.decompress(data).replace(b"turn 0", b"turn 9"))


def _with_one_less(data: bytes) -> bytes:
    return zlib.compress(json.dumps(json.loads(zlib.decompress(data))[:-1]).encode())


TAMPERING: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a flipped bit": (
        "cannot be read",
        lambda data: data[:50] + bytes((data[50] ^ 1,)) + data[51:],
    ),
    "an empty segment": ("cannot be read", lambda _: b""),
    "a changed word": ("changed", _with_other_words),
    "one event less": ("not complete", _with_one_less),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_a_damaged_segment_is_named_and_the_rest_works(name: str, years: Years, home: Path) -> None:
    """`verify` tells which events, from when to when; turns that are kept can be undone."""
    assert years.gc(days=5, turns=3).archived
    ((data,),) = years.project.workspace.ledger._reader.rows(
        "SELECT data FROM archive WHERE first = 1"
    )
    years.close()
    said, change = TAMPERING[name]
    _change(home, "UPDATE archive SET data = ? WHERE first = 1", change(data))
    problem, *_ = _problems(years)
    assert problem.startswith(f"events 1 to {SEGMENT} of the archive (20")
    assert said in problem
    with pytest.raises(DamagedStoreError, match="events 1 to 8"):
        years.project.workspace.ledger.rebuild()
    assert len(years.project.log(all=True).turns) == 20
    years.undo(turn=years.turns[-1])
    years.days(8)
    years.gc(days=2, turns=3)
    assert _problems(years)[0] == problem


@pytest.mark.parametrize("is_last", [False, True])
def test_a_missing_segment_is_named(is_last: bool, years: Years, home: Path) -> None:
    """It is known which events are missing."""
    archived = years.gc(days=5, turns=3).archived
    years.close()
    first = archived - SEGMENT + 1 if is_last else SEGMENT + 1
    _change(home, "DELETE FROM archive WHERE first = ?", first)
    missing = f"events {first} to {first + SEGMENT - 1} of the archive are missing"
    assert missing in _problems(years)
    with pytest.raises(takeback.TakebackError, match="missing"):
        years.project.workspace.ledger.rebuild()
    years.undo(turn=years.turns[-1])
