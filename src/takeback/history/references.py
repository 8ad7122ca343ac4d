"""Find what somebody means: a state of the tree, or a turn.

@           now: the newest checkpoint
@~N         the state N entries of the current line back; see `_back`
ID          a checkpoint, a turn, a step or a restore, by its id or the unique beginning of it
ID-         the state before that
10m, 14:05  a time: the newest state at that time
words       of the prompt, when they are in just one

The ids of everything that has one: which begin alike, and what each is.

What restores and the states they go to are called.

A prompt is in the log once, with its turn: a restore only names the turn. So whoever forgets the
prompt has forgotten it here, too.
"""

from takeback.errors import DamagedStoreError, UnknownReferenceError
from takeback.history import times
from takeback.model import ids
from takeback.model.value import Value
from takeback.model.words import ROLLBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.undo_stack import RestoreRow


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


class Candidate(Value):
    """Something whose id begins as it was given, and what it is in words."""

    kind: str
    number: int
    text: str


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


_ID = {
    TURN: "SELECT id FROM turns WHERE number = ?",
    STEP: "SELECT id FROM steps WHERE number = ?",
    RESTORE: "SELECT id FROM restores WHERE number = ?",
}


def of(ledger: "Ledger", row: "RestoreRow") -> str:
    """What a restore was about: the prompt of the turn, or the state that was gone back to."""
    if row.turn is not None:
        return _one(ledger, "SELECT label FROM turns WHERE number = ?", row.turn)
    if row.verb == ROLLBACK:
        target = ledger.checkpoints.numbered(row.target or 0)
        return of_goal(ledger, row.goal, target) if target is not None else ""
    entry = ledger.stack.numbered(row.entry or 0)
    return of(ledger, entry) if entry is not None else ""


def goal(ledger: "Ledger", meant: "Meaning") -> str:
    """The state that a reference means, without anybody's words: `before ID`, `after ID`."""
    query = _ID.get(meant.kind)
    side = "before" if meant.before else "after"
    return f"{side} {_one(ledger, query, meant.number)}" if query else ""


def of_goal(ledger: "Ledger", goal: str, row: "CheckpointRow") -> str:
    """What a state is called: before or after something, or by its own label or id."""
    side, _, id = goal.partition(" ")
    for (label,) in ledger.rows("SELECT label FROM turns WHERE id = ?", (id,)):
        return f'{side} "{quoted(str(label))}"'
    restore = ledger.stack.find(id)
    if restore is not None:
        to = "to" if restore.verb == ROLLBACK else "of"
        return f"{side} the {restore.verb} {to} {quoted(of(ledger, restore))}"
    if id:
        return f"{side} the step `{id}`"
    return f'"{quoted(row.label)}"' if row.label else f"checkpoint `{row.id}`"


def _one(ledger: "Ledger", query: str, value: "int | str") -> str:
    for (text,) in ledger.rows(query, (value,)):
        return str(text)
    return ""


_LONGEST = 500
_PAGE = 500
_LAST_TURN = 1 << 62
_HINT = "`takeback log` shows turns and their ids; `@` is now, `@~1` one turn back, `10m` a time"

_LINE = (
    "SELECT kind, number FROM (SELECT 'turn' AS kind, number, opened FROM turns"
    " WHERE paths > 0 AND undone IS NULL AND covered IS NULL AND (?1 IS NULL OR session = ?1)"
    " UNION ALL SELECT 'restore', number, event FROM restores"
    " WHERE verb = 'rollback' AND undone IS NULL AND covered IS NULL AND ?1 IS NULL)"
)
"""The current line: what is live, in the project or of one session."""
_EVENT = {
    True: "SELECT opened FROM steps WHERE number = ?",
    False: "SELECT closed FROM steps WHERE number = ?",
}

MOMENT = "moment"


class Meaning(Value):
    """What a reference means: a row of the ledger, or a time in nanoseconds.

    `before` asks for the state before it instead of the one it left.
    """

    ref: str
    kind: str
    number: int
    before: bool = False


def find(ledger: "Ledger", ref: str, now: float, session: "int | None" = None) -> Meaning:
    """What a reference means; an error that helps if it means nothing, or several things.

    With a session, `@~N` counts its turns only, and words are those of its prompts.
    """
    text = _checked(ref)
    is_quoted = len(text) > 2 and text[0] == text[-1] == '"'
    if not is_quoted:
        before = len(text) > 1 and text.endswith("-")
        name = text[:-1] if before else text
        found = _back(ledger, name, session) or _with_id(ledger, name, now)
        if found is not None:
            return found.replace(before=found.before or before, ref=text)
        moment = times.parse(text, now)
        if moment is not None:
            return _at(text, moment, now)
    found = _with_words(ledger, text.strip('"'), now, session)
    if found is None:
        raise UnknownReferenceError(
            f"nothing is called `{quoted(text)}`, and no prompt says so", hint=_HINT
        )
    return found


def state(ledger: "Ledger", ref: str, now: float) -> "CheckpointRow":
    """The checkpoint that holds the state which a reference means."""
    return state_of(ledger, find(ledger, ref, now), now)


def state_of(ledger: "Ledger", meant: Meaning, now: float) -> "CheckpointRow":
    """The checkpoint that holds the state which was meant."""
    if meant.kind == SESSION:
        raise _no_state(ledger, meant, now)
    if meant.kind == MOMENT:
        number = last_by(ledger, "checkpoints", "created", meant.number)
        if number is None:
            raise UnknownReferenceError(
                f"there is no checkpoint as old as `{meant.ref}`",
                hint="`takeback log --all` shows where the history begins",
            )
    elif meant.kind == CHECKPOINT:
        number = meant.number - 1 if meant.before else meant.number
        if not number:
            raise UnknownReferenceError(
                f"there is nothing before `{meant.ref.rstrip('-')}`, the first checkpoint"
            )
    else:
        number = _before_or_after(ledger, meant)
    row = ledger.checkpoints.numbered(number) if number is not None else ledger.checkpoints.newest()
    if row is None:
        raise DamagedStoreError(
            f"the checkpoint that `{meant.ref}` means is not in the ledger",
            hint="run `takeback verify` to see what is damaged",
        )
    return row


def turn(ledger: "Ledger", ref: str, now: float) -> int:
    """The number of the turn that a reference means."""
    meant = find(ledger, ref, now)
    number = turn_of(ledger, meant)
    if number is not None:
        return number
    if meant.kind == SESSION:
        raise _no_state(ledger, meant, now)
    raise UnknownReferenceError(
        f"`{quoted(meant.ref)}` means no turn",
        hint="`takeback log` shows turns and their ids; `@~0` is the newest that changed something",
    )


def turn_of(ledger: "Ledger", meant: Meaning) -> "int | None":
    """The number of the turn that was meant; None if something else was."""
    if meant.kind == MOMENT:
        return last_by(ledger, "turns", "started", meant.number)
    if meant.before:
        return None
    if meant.kind == STEP:
        return _number(ledger, "SELECT turn FROM steps WHERE number = ?", (meant.number,))
    return meant.number if meant.kind == TURN else None


def session(ledger: "Ledger", ref: str, now: float) -> int:
    """The number of the session that a reference means: its own, or that of a turn or step."""
    text = _checked(ref)
    meant = _with_id(ledger, text, now)
    if meant is not None and meant.kind == SESSION:
        return meant.number
    number = turn_of(ledger, meant) if meant is not None else None
    if number is None:
        raise UnknownReferenceError(
            f"no session is called `{quoted(text)}`", hint="`takeback sessions` lists them"
        )
    found = _number(ledger, "SELECT session FROM turns WHERE number = ?", (number,))
    assert found is not None, "a turn has a session"
    return found


def last_by(ledger: "Ledger", table: str, column: str, moment: int) -> "int | None":
    """The newest row that is not younger than a moment, found by halving.

    Rows are in the order in which things happened, and so are their times, unless somebody sets
    the clock; then one of the moments at which it showed this time is found.
    """
    newest = f"SELECT number, {column} FROM {table} WHERE number <= ? ORDER BY number DESC LIMIT 1"  # noqa: S608 - our own names
    low, high = 0, _number(ledger, f"SELECT coalesce(max(number), 0) FROM {table}") or 0  # noqa: S608
    while low < high:
        middle = (low + high + 1) // 2
        for number, at in ledger.rows(newest, (middle,)):
            if int(at) <= moment:
                low = middle
            else:
                high = int(number) - 1
            break
        else:
            high = middle - 1
    for number, _ in ledger.rows(newest, (low,)):
        return int(number)
    return None


def _checked(ref: str) -> str:
    """A reference as one line; an error if nobody could mean it."""
    text = " ".join(ref.split())
    if not text:
        raise UnknownReferenceError("a reference cannot be empty", hint=_HINT)
    if len(text) > _LONGEST:
        raise UnknownReferenceError(
            f"a reference cannot be longer than {_LONGEST} characters; this one has {len(text):,}",
            hint=_HINT,
        )
    if not text.isprintable():
        raise UnknownReferenceError(
            f"a reference cannot hold control characters: `{quoted(text)}`", hint=_HINT
        )
    return text


def _back(ledger: "Ledger", text: str, session: "int | None") -> "Meaning | None":
    """`@` and `@~N`.

    N counts the current line: turns that changed something and rollbacks, those not undone.
    `@~0` is what the newest of them left, `@~1` what the one before it left, and so on; with N as
    many as there are, it is what was before the first. In a project without any, N counts
    checkpoints, and `@~0` is the newest.
    """
    if text == "@":
        newest = ledger.checkpoints.newest()
        if newest is None:
            raise UnknownReferenceError(
                "there is no checkpoint yet", hint="`takeback checkpoint` makes the first one"
            )
        return Meaning(text, CHECKPOINT, newest.number)
    if not text.startswith("@"):
        return None
    digits = text[2:]
    if not (text[1] == "~" and digits.isascii() and digits.isdigit()):
        raise UnknownReferenceError(
            f"`{quoted(text)}` is no reference",
            hint="`@` is now; `@~1` is one turn back, `@~2` two",
        )
    # SQLite counts to 2^63, Python may want to count further.
    back = int(digits) if len(digits) < 10 else 10**9
    found = _turns_back(ledger, text, back, session)
    if found is None and session is not None:
        raise UnknownReferenceError(
            "that session has no turn that changed something", hint="`takeback sessions` lists all"
        )
    return found or _checkpoints_back(ledger, text, back)


def _turns_back(ledger: "Ledger", text: str, back: int, session: "int | None") -> "Meaning | None":
    nth = f"{_LINE} ORDER BY opened DESC LIMIT 1 OFFSET ?2"
    for kind, number in ledger.rows(nth, (session, back)):
        return Meaning(text, kind, int(number))
    count = _number(ledger, f"SELECT count(*) FROM ({_LINE})", (session,)) or 0  # noqa: S608 - our own text
    if not count:
        return None
    if back == count:
        for kind, number in ledger.rows(f"{_LINE} ORDER BY opened LIMIT 1", (session,)):
            return Meaning(text, kind, int(number), before=True)
    turns = "1 turn" if count == 1 else f"{count:,} turns"
    raise UnknownReferenceError(
        f"`{quoted(text)}` is further back than the log: {turns} changed something",
        hint=f"`@~{count}` is the state before the first of them",
    )


def _checkpoints_back(ledger: "Ledger", text: str, back: int) -> Meaning:
    row = ledger.checkpoints.newest(back)
    if row is None:
        count = ledger.checkpoints.count()
        made = "1 checkpoint" if count == 1 else f"{count:,} checkpoints"
        raise UnknownReferenceError(
            f"`{quoted(text)}` is further back than the history, which has {made}",
            hint=f"`@~{count - 1}` is the oldest" if count else "`takeback checkpoint` makes one",
        )
    return Meaning(text, CHECKPOINT, row.number)


def _with_id(ledger: "Ledger", text: str, now: float) -> "Meaning | None":
    if not ids.is_prefix(text):
        return None
    found = candidates(ledger, text, now)
    if len(found) > 1:
        raise UnknownReferenceError(
            f"`{text}` is the beginning of several ids",
            hint=f"one of these was meant:{_listed(each.text for each in found)}",
        )
    return Meaning(text, found[0].kind, found[0].number) if found else None


def _at(text: str, moment: float, now: float) -> Meaning:
    if moment > now + 1:
        raise UnknownReferenceError(
            f"`{quoted(text)}` is still to come", hint="a reference is about what was"
        )
    return Meaning(text, MOMENT, int(moment * 1_000_000_000))


def _with_words(ledger: "Ledger", text: str, now: float, session: "int | None") -> "Meaning | None":
    wanted = " ".join(text.split()).casefold()
    if not any(char.isalnum() for char in wanted):
        return None
    found: list[int] = []
    before = _LAST_TURN
    query = "SELECT number, label, session FROM turns WHERE number < ? ORDER BY number DESC LIMIT ?"
    while len(found) <= MOST_LISTED:
        page = ledger.rows(query, (before, _PAGE))
        for number, label, its in page:
            if session in (None, its) and wanted in " ".join(str(label).split()).casefold():
                found.append(int(number))
        if len(page) < _PAGE:
            break
        before = int(page[-1][0])
    if len(found) > 1:
        listed = _listed(described(ledger, TURN, number, now) for number in found)
        raise UnknownReferenceError(
            f"several prompts say `{quoted(text)}`", hint=f"one of these was meant:{listed}"
        )
    return Meaning(text, TURN, found[0]) if found else None


def _before_or_after(ledger: "Ledger", meant: Meaning) -> "int | None":
    """The checkpoint before or after a turn or a step; None if that is the newest."""
    if meant.kind in (TURN, RESTORE):
        table = "turns" if meant.kind == TURN else "restores"
        query = f"SELECT {'before' if meant.before else 'after'} FROM {table} WHERE number = ?"  # noqa: S608
        return _number(ledger, query, (meant.number,))
    event = _number(ledger, _EVENT[meant.before], (meant.number,))
    if event is None:
        return None
    look = "SELECT checkpoint FROM coordinates WHERE cursor <= ? ORDER BY cursor DESC LIMIT 1"
    return _number(ledger, look, (event,))


def _no_state(ledger: "Ledger", meant: Meaning, now: float) -> UnknownReferenceError:
    """A session is a conversation, not a moment; but its turns are."""
    query = "SELECT number FROM turns WHERE session = ? ORDER BY number DESC LIMIT ?"
    turns = [int(n) for (n,) in ledger.rows(query, (meant.number, MOST_LISTED))]
    listed = _listed(described(ledger, TURN, number, now) for number in turns)
    return UnknownReferenceError(
        f"`{meant.ref}` is a session, which has many states",
        hint=f"name one of its turns:{listed}" if turns else "it has no turns yet",
    )


def _listed(texts: "Iterable[str]") -> str:
    """The first few of several things, each on a line of its own."""
    lines: list[str] = []
    for text in texts:
        if len(lines) == MOST_LISTED:
            lines.append("\n  …")
            break
        lines.append("\n  " + " ".join(text.split()))
    return "".join(lines)


def _number(
    ledger: "Ledger", query: str, values: "tuple[int | str | None, ...]" = ()
) -> "int | None":
    """The one number that a query gives; None if it gives none."""
    for (value,) in ledger.rows(query, values):
        return None if value is None else int(value)
    return None
