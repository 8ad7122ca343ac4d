"""Events in less space: they say what was said, and a change is still found."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from spoken import spoken
from takeback.ledger import schema
from takeback.ledger.log import events
from takeback.ledger.log.events import CHECKPOINT_TAKEN
from takeback.project import Project

TURNS = 12


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project with some turns."""
    root = tmp_path / "tree"
    root.mkdir()
    found = takeback.open(root, home=tmp_path / "home")
    with found.session("test") as session:
        for number in range(TURNS):
            with session.turn(f"turn {number} \u2713"):
                (root / f"file{number % 3}.txt").write_text(f"line\n{number}\n")
    yield found
    found.close()


def everything(project: Project) -> list[object]:
    """All that the log says, by events and by tables."""
    said: list[object] = [
        (event.seq, event.kind, event.payload) for event in project.workspace.ledger.events()
    ]
    for table in schema.TABLES:
        said += project.workspace.ledger._reader.rows(f"SELECT * FROM {table}")
    return said


@given(st.text(max_size=300) | st.text('{"turn":, write}[]0179', max_size=900))
def test_words_come_back(text: str) -> None:
    """What is packed is unpacked the same."""
    assert events.unpack(events.pack(text)) == text


@given(st.text(max_size=200), st.data())
def test_damaged_words_are_no_words_or_others(text: str, data: st.DataObject) -> None:
    """Whatever happens to packed words, the only error is a ValueError."""
    packed = bytearray(events.pack(text))
    place = data.draw(st.integers(0, len(packed)))
    packed[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        assert isinstance(events.unpack(bytes(packed)), str)
    except ValueError:
        return


def test_events_of_old_stores_are_read(project: Project) -> None:
    """Plain text says the same; log, tables, verify and rebuild do not notice."""
    before = everything(project)
    rows = project.workspace.ledger._reader.rows("SELECT seq, payload FROM events")
    assert all(isinstance(payload, bytes) for _, payload in rows)
    for seq, payload in rows[: len(rows) // 2]:
        change = "UPDATE events SET payload = ? WHERE seq = ?"
        project.workspace.ledger._db.execute(change, (events.unpack(payload), seq))
    assert everything(project) == before
    assert project.verify().damage == ()
    project.rebuild()
    assert everything(project) == before
    assert project.workspace.ledger.made_with(min(project.workspace.ledger.packs())) != ()


def test_packed_events_take_less_space(project: Project) -> None:
    """What a checkpoint says is shorter by a third, or more."""
    query = "SELECT payload FROM events WHERE kind = ?"
    for (payload,) in project.workspace.ledger._reader.rows(query, (CHECKPOINT_TAKEN,)):
        assert len(payload) < len(events.unpack(payload)) * 2 / 3


def test_a_changed_bit_of_packed_words_is_found(project: Project) -> None:
    """Whichever bit of a packed event flips, verify names the event."""
    rows = project.workspace.ledger._reader.rows("SELECT seq, payload FROM events")
    chance = random.Random(1)
    for _ in range(12):
        seq, payload = chance.choice(rows)
        changed = bytearray(payload)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        change = "UPDATE events SET payload = ? WHERE seq = ?"
        project.workspace.ledger._db.execute(change, (bytes(changed), seq))
        assert any(f"event {seq} " in what for what in spoken(project.workspace.ledger.check()))
        project.workspace.ledger._db.execute(change, (payload, seq))
    assert list(project.workspace.ledger.check()) == []
