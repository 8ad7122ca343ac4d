"""What the log says, as values: turns, newest first."""

from takeback.errors import UnknownReferenceError
from takeback.model.history import Author, Change, GitState, RecordedTurn
from takeback.model.terms import STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.ledger import Ledger

_TURN = (
    "SELECT t.number, t.id, z.id, z.agent, t.label, t.status, t.started, t.ended, b.id, a.id,"
    " t.files, t.added, t.removed, t.uncounted, t.git_before, t.git_after"
    " FROM turns t JOIN sessions z ON z.number = t.session"
    " LEFT JOIN checkpoints b ON b.number = t.before LEFT JOIN checkpoints a ON a.number = t.after "
)


def turn(ledger: "Ledger", id: str) -> RecordedTurn:
    """One turn with its changes."""
    for row in ledger.rows(_TURN + "WHERE t.id = ?", (id,)):
        return _as_turn(ledger, row)
    raise UnknownReferenceError(f"no turn is called `{id}`")


def _as_turn(ledger: "Ledger", row: "tuple[object, ...]") -> RecordedTurn:
    number, id, session, agent, label, status, started, ended, before, after = row[:10]
    files, added, removed, uncounted = (int(str(value)) for value in row[10:14])
    return RecordedTurn(
        id=str(id),
        session=str(session),
        agent=str(agent),
        label=str(label),
        status=str(status),
        started=int(str(started)) / 1e9,
        ended=None if ended is None else int(str(ended)) / 1e9,
        before=str(before or ""),
        after=str(after or ""),
        files=files,
        added=added,
        removed=removed,
        uncounted=uncounted,
        changes=_changes(ledger, int(str(number)), str(session), str(id)),
        git_before=_git(row[14]),
        git_after=_git(row[15]),
    )


def _changes(ledger: "Ledger", number: int, session: str, id: str) -> "tuple[Change, ...]":
    query = "SELECT path, verb, origin, added, removed, how FROM changes WHERE turn = ?"
    found = []
    for path, verb, origin, added, removed, how in ledger.rows(query, (number,)):
        author = Author(STEP, session=session, turn=id, how=how)
        found.append(Change(path, verb, author=author, added=added, removed=removed, origin=origin))
    return tuple(found)


def _git(text: object) -> "GitState | None":
    if text is None:
        return None
    import json

    return GitState(*json.loads(str(text)))
