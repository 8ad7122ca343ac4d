"""Which windows are in question for what changed since the last look at the tree."""

from takeback.engine.attribution import Interval, Window, attribute
from takeback.model import jsontext, terms
from takeback.store import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.engine.deltas import Delta
    from takeback.engine.glances import Glances
    from takeback.model.history import Author
    from takeback.store.ledger import Ledger

    Closing = Mapping[str, int]

_STEPS = (
    "SELECT s.id, t.id, z.id, s.kind, s.paths, s.opened, s.started, s.ended, z.seen, z.holder,"
    " s.background, s.status"
    " FROM steps s JOIN turns t ON t.number = s.turn JOIN sessions z ON z.number = t.session"
    " WHERE s.closed "
)
_TURNS = (
    "SELECT '', t.id, z.id, 'turn', '[]', t.opened, t.started, t.ended, z.seen, z.holder, 0, ''"
    " FROM turns t JOIN sessions z ON z.number = t.session"
    " WHERE t.whole AND t.steps = 0 AND t.closed "
)


class Asked:
    """What the authors of a look are asked with.

    `closing` are the steps, turns and sessions that end with this look, and when. `now` is read
    after it: a file that changed meanwhile is younger than its beginning. `slack` is how coarse
    the stamps of files are, and `is_remote` tells whether another machine makes them.
    """

    __slots__ = ("closing", "is_remote", "now", "slack")

    def __init__(
        self, closing: "Closing", now: int, slack: int, is_remote: "Callable[[], bool]"
    ) -> None:
        self.closing = closing
        self.now = now
        self.slack = slack
        self.is_remote = is_remote


def authors(
    ledger: "Ledger", deltas: "list[Delta]", asked: Asked, glances: "Glances | None" = None
) -> "list[Author]":
    """The authors of what changed since the last look.

    What glances overlooked happened at any time since everything was looked at.
    """
    found = _authors_since(last_look(ledger), ledger, deltas, asked)
    late = [delta for delta in deltas if glances is not None and glances.overlooked(delta.path)]
    if glances is None or not late:
        return found
    by = _authors_since(glances.whole, ledger, late, asked)
    known = dict(zip((delta.path for delta in late), by, strict=True))
    return [known.get(delta.path, own) for delta, own in zip(deltas, found, strict=True)]


def _authors_since(
    since: "tuple[int, int]", ledger: "Ledger", deltas: "list[Delta]", asked: Asked
) -> "list[Author]":
    cursor, looked = since
    windows = in_question(ledger, cursor, asked.now, asked.closing)
    # The stamps of another machine cannot be compared with our clock.
    believed = None if not windows or asked.is_remote() else asked.slack
    return attribute(deltas, windows, Interval(looked, asked.now, believed))


def last_look(ledger: "Ledger") -> "tuple[int, int]":
    """The event that last named what the tree was, and when that look began."""
    query = "SELECT cursor, looked FROM coordinates ORDER BY cursor DESC LIMIT 1"
    for cursor, looked in ledger.rows(query):
        return int(cursor), int(looked)
    return 0, 0


def in_question(ledger: "Ledger", since: int, now: int, closing: "Closing") -> "list[Window]":
    """The windows that were open at any moment after the event `since`."""
    found = []
    for query in (_STEPS, _TURNS):
        found += ledger.rows(query + "IS NULL")
        found += ledger.rows(query + "> ?", (since,))
    outer = _with_sessions_inside(ledger) if len(found) else frozenset()
    # What was refused never ran.
    found = [row for row in found if row[1] not in outer and row[-1] != terms.REFUSED]
    return [_window(row, since, now, closing) for row in found]


def _with_sessions_inside(ledger: "Ledger") -> "frozenset[str]":
    """The running turns inside of which another session works and tells its own steps.

    `takeback run -- AGENT` is a turn around an agent that may have hooks: what the agent tells
    of itself is better than what can be told from outside. Once it has ended, what the command
    still does is the outer turn's again.
    """
    query = (
        "SELECT t.id FROM turns t JOIN sessions z ON z.inside = t.number"
        " WHERE t.closed IS NULL AND z.turns > 0 AND z.ended IS NULL"
    )
    return frozenset(str(id) for (id,) in ledger.rows(query))


def _window(
    row: "tuple[str | int | None, ...]", since: int, now: int, closing: "Closing"
) -> Window:
    step, turn, session, kind, paths, opened, started, ended, seen, holder, background, status = row
    # Nobody told the end of what was killed, so what is found now may have been done after it.
    is_killed = ended is None and bool(holder) and processes.is_alive(str(holder)) is False
    if ended is None:
        # What runs in the background outlives its turn.
        enders = (step, session) if background else (step, turn, session)
        ends = (closing.get(str(name)) for name in enders)
        ended = next((end for end in ends if end is not None), None)
    if ended is None:
        ended = _given_up(int(str(seen)), str(holder), now)
    return Window(
        session=str(session),
        turn=str(turn),
        step=str(step),
        kind=str(kind),
        names=_names(str(paths)),
        opened=int(str(opened)),
        # Order says that it was open all the time; its clock may have been another one.
        started=int(str(started)) if int(str(opened)) > since else 0,
        ended=ended if isinstance(ended, int) else None,
        waits=status == terms.WAITING or is_killed,
    )


def _given_up(seen: int, holder: str, now: int) -> "int | None":
    """When a window closed that nobody closed; None as long as it may be open."""
    limit = seen + terms.LONGEST_SILENCE
    return None if now <= limit or processes.is_alive(holder) else limit


def _names(paths: str) -> "frozenset[bytes]":
    if paths == "[]":
        return frozenset()
    said = jsontext.loads(paths)
    return frozenset(str(path).encode("utf-8", "surrogateescape") for path in said)
