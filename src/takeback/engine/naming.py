"""The ids of everything that has one: which begin alike, and what each is."""

from takeback.model import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.store.ledger import Ledger

CHECKPOINT, TURN, STEP, SESSION, RESTORE = "checkpoint", "turn", "step", "session", "restore"
_TABLES = {
    TURN: "turns",
    CHECKPOINT: "checkpoints",
    STEP: "steps",
    SESSION: "sessions",
    RESTORE: "restores",
}

NEIGHBOURS = (
    "SELECT max(id) FROM {table} WHERE id < ?",
    "SELECT min(id) FROM {table} WHERE id > ?",
)

MOST_LISTED = 10
_SHORTEST = 4
"""Shown at least: two letters may be unique today, and are not next week."""
_LABEL = 40


class Candidate:
    """Something whose id begins as it was given, and what it is in words."""

    __slots__ = ("kind", "number", "text")

    def __init__(self, kind: str, number: int, text: str) -> None:
        self.kind = kind
        self.number = number
        self.text = text


def candidates(ledger: "Ledger", prefix: str, now: float) -> "list[Candidate]":
    """Everything whose id begins with `prefix`; a few more than are listed at most."""
    upper = prefix + "{"  # the character after `z`
    found: list[tuple[str, int]] = []
    for kind, table in _TABLES.items():
        query = f"SELECT number FROM {table} WHERE id >= ? AND id < ? LIMIT ?"  # noqa: S608 - our own names
        rows = ledger.rows(query, (prefix, upper, MOST_LISTED + 1))
        found += [(kind, int(number)) for (number,) in rows]
    if len(found) == 1:
        # The usual case needs no words.
        return [Candidate(*found[0], "")]
    return [Candidate(kind, n, described(ledger, kind, n, now)) for kind, n in found]


def described(ledger: "Ledger", kind: str, number: int, now: float) -> str:
    """What somebody needs to know to choose: the id, what it is, when it was, its label."""
    columns = {
        CHECKPOINT: "id, 'checkpoint', created, label",
        TURN: "id, 'turn', started, label",
        STEP: "id, 'step ' || tool, started, summary",
        SESSION: "id, 'session of ' || agent, started, title",
        RESTORE: "id, verb, at, ''",
    }
    query = f"SELECT {columns[kind]} FROM {_TABLES[kind]} WHERE number = ?"  # noqa: S608 - our own names
    for id, what, at, label in ledger.rows(query, (number,)):
        said = f' "{quoted(str(label))}"' if label else ""
        return f"`{id}` {what}, {_when(int(at) / 1e9, now)}{said}"
    return ""


def shortened(ledger: "Ledger", names: "Iterable[str]") -> "dict[str, str]":
    """For each id the shortest beginning that means nothing else in the ledger."""
    return {id: id[: max(_SHORTEST, _needed(ledger, id))] for id in names}


def _needed(ledger: "Ledger", id: str) -> int:
    """How many letters tell an id from its neighbours, in the order of ids, of each table."""
    needed = 1
    for table in _TABLES.values():
        for beside in NEIGHBOURS:
            for (other,) in ledger.rows(beside.format(table=table), (id,)):
                if other is not None:
                    needed = max(needed, _common(id, str(other)) + 1)
    return min(needed, ids.LENGTH)


def _common(one: str, other: str) -> int:
    """How many letters two ids begin alike."""
    alike = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        alike += 1
    return alike


def quoted(text: str) -> str:
    """Some text of somebody else's inside of a sentence: one line, not too long."""
    line = " ".join(text[: _LABEL * 8].split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1] + "…"


def _when(then: float, now: float) -> str:
    import time

    same_day = time.localtime(then)[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", time.localtime(then))
