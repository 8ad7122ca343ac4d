"""The same ledger without a file, for tests of what follows from events."""

import threading
from collections.abc import Iterator

import pytest

from takeback.errors import DamagedStoreError
from takeback.ledger.ledger import Ledger
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """An empty ledger in memory."""
    opened = Ledger.in_memory()
    yield opened
    opened.close()


def begin_session(ledger: Ledger, id: str) -> None:
    """Record that a session began."""
    ledger.record(NewEvent(events.SESSION_STARTED, {"session": id, "agent": "test"}, 7))


def test_what_is_recorded_can_be_asked_for(ledger: Ledger) -> None:
    """Events, projections, rebuild and checks work as they do with a file."""
    begin_session(ledger, "one")
    assert ledger.sessions.get("one").seen == 7
    before = ledger._reader.rows("SELECT * FROM sessions")
    ledger.rebuild()
    assert ledger._reader.rows("SELECT * FROM sessions") == before
    assert [event.kind for event in ledger.events()] == [events.SESSION_STARTED]
    assert list(ledger.check()) == []


def test_a_transaction_that_fails_leaves_nothing(ledger: Ledger) -> None:
    """All events of a call, or none."""
    twice = NewEvent(events.SESSION_STARTED, {"session": "one"}, 1, request="r")
    with pytest.raises(Exception, match="UNIQUE"):
        ledger.record(twice, twice)
    assert ledger.last_event() == 0
    assert not ledger.sessions.has_open()


def test_threads_and_snapshots_see_the_same_and_others_nothing(ledger: Ledger) -> None:
    """Each thread has its own connection to the one database; another ledger is another one."""
    begin_session(ledger, "one")
    other = threading.Thread(target=begin_session, args=(ledger, "two"))
    other.start()
    other.join()
    assert ledger.sessions.count() == 2
    with ledger.snapshot() as still:
        assert still.sessions.count() == 2
    another = Ledger.in_memory()
    assert another.sessions.count() == 0
    another.close()


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
@pytest.mark.parametrize("kind", [events.CHECKPOINT_TAKEN, events.TURN_ENDED, events.SESSION_ENDED])
def test_events_that_make_no_sense_are_named(ledger: Ledger, kind: str, payload: str) -> None:
    """Whatever stands in an event, a check names it, and a rebuild changes nothing."""
    begin_session(ledger, "one")
    ledger.record(NewEvent("MoonSeen", {}, 8))
    change = "UPDATE events SET kind = ?, payload = ? WHERE kind = 'MoonSeen'"
    ledger._db.execute(change, (kind, payload))
    assert any(problem.code == "event-changed" for problem in ledger.check())
    with pytest.raises(DamagedStoreError):
        ledger.rebuild()
    assert ledger.sessions.count() == 1
