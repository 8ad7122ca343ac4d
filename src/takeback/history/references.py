"""Find what somebody means: a state of the tree, or a turn.

In this order:

@           now; here the newest checkpoint: who wants the files as they are looks first
@~N         the state N entries of the current line back; see `_back`
ID          a checkpoint, a turn, a step or a restore; `ID-` is the state before it
NAME        what somebody called a checkpoint, exactly; `NAME-` is the state before it
mvkx        the unique beginning of an id
10m, noon   a time: the newest state at that time
words       of the prompt, whole ones, when they are in just one

The ids of everything that has one: which begin alike, and what each is.

What restores and the states they go to are called.

A prompt is in the log once, with its turn: a restore only names the turn. So whoever forgets the
prompt has forgotten it here, too.
"""

from takeback.errors import DamagedStoreError, UnknownReferenceError, UsageError
from takeback.history import times
from takeback.model import ids
from takeback.model.reasons import Action
from takeback.model.value import Value
from takeback.model.words import ROLLBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.ledger.checkpoints import NameRow
    from takeback.ledger.database import Table
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.ledger.undo_stack import RestoreRow


CHECKPOINT, TURN, STEP, SESSION, RESTORE = "checkpoint", "turn", "step", "session", "restore"
MOST_LISTED = 10
_SHORTEST = 4
"""Shown at least: two letters may be unique today, and are not next week."""
_LABEL = 40


class Candidate(Value):
    """Something whose id begins as it was given, and what it is in words."""

    kind: str
    number: int
    text: str


def _tables(ledger: "Ledger") -> "dict[str, Table]":
    """What may be named by an id, in the order in which it is listed."""
    return {
        TURN: ledger.turns,
        CHECKPOINT: ledger.checkpoints,
        STEP: ledger.steps,
        SESSION: ledger.sessions,
        RESTORE: ledger.stack,
    }


def candidates(ledger: "Ledger", prefix: str, now: float) -> "list[Candidate]":
    """Everything whose id begins with `prefix`; a few more than are listed at most."""
    found = [
        (kind, number)
        for kind, table in _tables(ledger).items()
        for number in table.numbers_with_prefix(prefix, MOST_LISTED + 1)
    ]
    if len(found) == 1:
        # The usual case needs no words.
        return [Candidate(*found[0], "")]
    return [Candidate(kind, n, described(ledger, kind, n, now)) for kind, n in found]


def described(ledger: "Ledger", kind: str, number: int, now: float) -> str:
    """What somebody needs to know to choose: the id, what it is, when it was, its label."""
    row = _tables(ledger)[kind].described(number)
    if row is None:
        return ""
    said = f' "{quoted(row.label)}"' if row.label else ""
    return f"`{row.id}` {row.what}, {_when(row.at / 1e9, now)}{said}"


def shortened(ledger: "Ledger", names: "Iterable[str]") -> "dict[str, ids.ShortId]":
    """For each id the shortest beginning that means nothing else in the ledger."""
    found = {}
    for id in names:
        needed = _needed(ledger, id)
        found[id] = ids.ShortId(id[: max(_SHORTEST, needed)], needed)
    return found


def _needed(ledger: "Ledger", id: str) -> int:
    """How many letters tell an id from its neighbours, in the order of ids, of each table."""
    others = [other for table in _tables(ledger).values() for other in table.neighbours(id)]
    needed = max((_common(id, other) + 1 for other in others), default=1)
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


def _at_time(then: int, now: float) -> str:
    text = _when(then / 1e9, now)
    return f"at {text}" if len(text) == 5 else f"on {text}"


def of(ledger: "Ledger", row: "RestoreRow") -> str:
    """What a restore was about: the prompt of the turn, or the state that was gone back to."""
    if row.turn is not None:
        turn = ledger.turns.numbered(row.turn)
        return turn.label if turn is not None else ""
    if row.verb == ROLLBACK:
        target = ledger.checkpoints.numbered(row.target or 0)
        return of_goal(ledger, row.goal, target) if target is not None else ""
    entry = ledger.stack.numbered(row.entry or 0)
    return of(ledger, entry) if entry is not None else ""


def goal(ledger: "Ledger", meant: "Meaning") -> str:
    """The state that a reference means, without anybody's words: `before ID`, `after ID`."""
    if meant.kind not in (TURN, STEP, RESTORE):
        return ""
    side = "before" if meant.before else "after"
    return f"{side} {_tables(ledger)[meant.kind].id_of(meant.number)}"


def cursor_of(ledger: "Ledger", meant: "Meaning") -> int:
    """The event at whose coordinate a reference is, for what is not in the files."""
    tokens, number = ledger.participants, meant.number
    if meant.kind == MOMENT:
        return tokens.cursor_by(number)
    if meant.kind == CHECKPOINT:
        row = ledger.checkpoints.numbered(number)
        return tokens.cursor_of(number) if not meant.before or row is None else row.event - 1
    if meant.kind == RESTORE:
        restore = ledger.stack.numbered(number)
        return restore.event - meant.before if restore is not None else 0
    span = ledger.steps.numbered(number) if meant.kind == STEP else ledger.turns.numbered(number)
    if span is None:
        return 0
    return span.opened if meant.before else span.closed or ledger.last_event()


def of_goal(ledger: "Ledger", goal: str, row: "CheckpointRow") -> str:
    """What a state is called: before or after something, or by its name or id."""
    side, _, id = goal.partition(" ")
    turn = ledger.turns.find(id)
    if turn is not None:
        return f'{side} "{quoted(turn.label)}"'
    restore = ledger.stack.find(id)
    if restore is not None:
        to = "to" if restore.verb == ROLLBACK else "of"
        return f"{side} the {restore.verb} {to} {quoted(of(ledger, restore))}"
    if id:
        return f"{side} the step `{id}`"
    names = ledger.names.of(row.number)
    return f'"{quoted(names[0])}"' if names else f"checkpoint `{row.id}`"


_LONGEST = 500
_LOOKED_AT = 200
_NEARLY = 0.75
"""So many names and prompts are compared with a reference that means nothing, and how alike."""
_HINT = (Action("log"), "`@` is now, `@~1` one turn back, `10m` a time")

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
    found = _named(ledger, text) if is_quoted else _called(ledger, text, now, session)
    if found is not None:
        return found.replace(ref=text)
    moment = None if is_quoted else times.parse(text, now)
    if moment is not None:
        return _at(text, moment, now)
    found = _with_words(ledger, text.strip('"'), now, session)
    if found is None:
        raise UnknownReferenceError(
            f"no turn, checkpoint or prompt matches `{quoted(text)}`",
            hint=_alike(ledger, text.strip('"')) or _HINT,
        )
    return found


def _alike(ledger: "Ledger", text: str) -> "tuple[str, ...]":
    """A name or a prompt that is spelt nearly so; only the newest are looked at."""
    from difflib import get_close_matches
    from itertools import islice

    names = {row.name.casefold(): row.name for row in ledger.names.since(0, _LOOKED_AT)}
    close = get_close_matches(text.casefold(), names, n=1, cutoff=_NEARLY)
    if close:
        return (f"did you mean `{quoted(names[close[0]])}`?",)
    wanted = text.casefold().split()
    if len(text) < _SHORTEST:
        return ()
    for number, label, *_ in islice(ledger.turns.labels(), _LOOKED_AT):
        said = label[:_LONGEST].casefold().split()
        if all(get_close_matches(word, said, n=1, cutoff=_NEARLY) for word in wanted):
            return (f'did you mean `{ledger.turns.id_of(number)[:8]}` "{quoted(label)}"?',)
    return ()


def is_now(ref: str) -> bool:
    """Whether a reference means the files as they are."""
    return ref.strip().casefold() in ("@", "now")


def require_name(ledger: "Ledger", label: str, now: float) -> "NameRow | None":
    """What a name means so far; an error if it would mean something else as a reference."""
    name = ids.as_name(label)
    if name.startswith("@"):
        meaning = "names cannot begin with `@`"
    elif name.endswith("-"):
        meaning = "`NAME-` means the state before NAME"
    elif times.parse(name, now) is not None:
        meaning = "it is a time"
    elif ids.is_prefix(name) and (alike := candidates(ledger, name, now)):
        meaning = f"it is the beginning of the id of a {alike[0].kind}"
    else:
        return ledger.names.find(name)
    raise UsageError(
        f"`{quoted(name)}` cannot be the name of a checkpoint: {meaning}",
        hint="choose another name, or several words, such as `tests green`",
    )


def state(ledger: "Ledger", ref: str, now: float) -> "CheckpointRow":
    """The checkpoint that holds the state which a reference means."""
    return state_of(ledger, find(ledger, ref, now), now)


def state_of(ledger: "Ledger", meant: Meaning, now: float) -> "CheckpointRow":
    """The checkpoint that holds the state which was meant."""
    if meant.kind == SESSION:
        raise _no_state(ledger, meant, now)
    if meant.kind == MOMENT:
        number = ledger.checkpoints.last_by(meant.number)
        if number is None:
            raise _before_history(ledger, meant, now)
    elif meant.kind == CHECKPOINT:
        number = meant.number
        if meant.before:
            number = ledger.checkpoints.parent_of(number)
        if not number:
            raise UnknownReferenceError(
                f"there is nothing before `{meant.ref.rstrip('-')}`, the first checkpoint",
                hint=Action("show-state", ref=meant.ref.rstrip("-")),
            )
    else:
        number = _before_or_after(ledger, meant)
    row = ledger.checkpoints.numbered(number) if number is not None else ledger.checkpoints.newest()
    if row is None:
        raise DamagedStoreError(
            f"the checkpoint that `{meant.ref}` means is not in the ledger",
            hint=Action("verify"),
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
        f"`{quoted(meant.ref)}` is not a turn",
        hint=(Action("log"), "`@~0` is the newest turn that changed something"),
    )


def turn_of(ledger: "Ledger", meant: Meaning) -> "int | None":
    """The number of the turn that was meant; None if something else was."""
    if meant.kind == MOMENT:
        return ledger.turns.last_by(meant.number)
    if meant.before:
        return None
    if meant.kind == STEP:
        step = ledger.steps.numbered(meant.number)
        return step.turn if step is not None else None
    return meant.number if meant.kind == TURN else None


def session(ledger: "Ledger", ref: str, now: float) -> int:
    """The number of the session that a reference means: its own, or that of a turn or step.

    The name that `run --session` gave it means it, too.
    """
    text = _checked(ref)
    own = ledger.sessions.find("run", text)
    if own is not None:
        return own.number
    meant = _with_prefix(ledger, text, now)
    if meant is not None and meant.kind == SESSION:
        return meant.number
    number = turn_of(ledger, meant) if meant is not None else None
    row = ledger.turns.numbered(number) if number is not None else None
    if row is None:
        raise UnknownReferenceError(f"no session matches `{quoted(text)}`", hint=Action("sessions"))
    return row.session


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
            raise UnknownReferenceError("there is no checkpoint yet", hint=Action("checkpoint"))
        return Meaning(text, CHECKPOINT, newest.number)
    if not text.startswith("@"):
        return None
    digits = text[2:]
    if not (text[1] == "~" and digits.isascii() and digits.isdigit()):
        raise UnknownReferenceError(
            f"`{quoted(text)}` is not a reference",
            hint="`@` is now; `@~1` is one turn back, `@~2` two",
        )
    # SQLite counts to 2^63, Python may want to count further.
    back = int(digits) if len(digits) < 10 else 10**9
    found = _turns_back(ledger, text, back, session)
    if found is None and session is not None:
        raise UnknownReferenceError(
            "that session has no turn that changed something", hint=Action("sessions")
        )
    return found or _checkpoints_back(ledger, text, back)


def _turns_back(ledger: "Ledger", text: str, back: int, session: "int | None") -> "Meaning | None":
    entry = ledger.stack.entry_back(back, session)
    if entry is not None:
        return Meaning(text, *entry)
    count = ledger.stack.count_entries(session)
    if not count:
        return None
    first = ledger.stack.entry_back(count - 1, session) if back == count else None
    if first is not None:
        return Meaning(text, *first, before=True)
    turns = "1 turn" if count == 1 else f"{count:,} turns"
    raise UnknownReferenceError(
        f"`{quoted(text)}` is further back than the log, which has {turns}",
        hint=f"`@~{count}` is the state before the first turn",
    )


def _checkpoints_back(ledger: "Ledger", text: str, back: int) -> Meaning:
    row = ledger.checkpoints.newest(back)
    if row is None:
        count = ledger.checkpoints.count()
        made = "1 checkpoint" if count == 1 else f"{count:,} checkpoints"
        raise UnknownReferenceError(
            f"`{quoted(text)}` is further back than the history, which has {made}",
            hint=f"`@~{count - 1}` is the oldest" if count else Action("checkpoint"),
        )
    return Meaning(text, CHECKPOINT, row.number)


def _called(ledger: "Ledger", text: str, now: float, session: "int | None") -> "Meaning | None":
    """What has this place, id or name; with `-` at the end, the state before it."""
    before = len(text) > 1 and text.endswith("-")
    name = text[:-1] if before else text
    found = _back(ledger, name, session) or _with_id(ledger, name)
    found = found or _named(ledger, name) or _with_prefix(ledger, name, now)
    return found.replace(before=found.before or before) if found is not None else None


def _with_id(ledger: "Ledger", text: str) -> "Meaning | None":
    if len(text) != ids.LENGTH or not ids.is_prefix(text):
        return None
    for kind, table in _tables(ledger).items():
        for number in table.numbers_with_prefix(text, 1):
            return Meaning(text, kind, number)
    return None


def _named(ledger: "Ledger", text: str) -> "Meaning | None":
    row = ledger.names.find(ids.as_name(text))
    return Meaning(text, CHECKPOINT, row.number) if row is not None else None


def _with_prefix(ledger: "Ledger", text: str, now: float) -> "Meaning | None":
    if not ids.is_prefix(text):
        return None
    found = candidates(ledger, text, now)
    if len(found) > 1:
        raise UnknownReferenceError(
            f"several ids begin with `{text}`",
            hint=f"use one of these:{_listed(each.text for each in found)}",
        )
    return Meaning(text, found[0].kind, found[0].number) if found else None


def _at(text: str, moment: float, now: float) -> Meaning:
    if moment > now + 1:
        raise UnknownReferenceError(
            f"`{quoted(text)}` is in the future", hint="use a time in the past"
        )
    return Meaning(text, MOMENT, int(moment * 1_000_000_000))


def _with_words(ledger: "Ledger", text: str, now: float, session: "int | None") -> "Meaning | None":
    wanted = " ".join(text.split()).casefold()
    if not any(char.isalnum() for char in wanted):
        return None
    found: list[int] = []
    for number, label, its, _ in ledger.turns.labels():
        if session in (None, its) and _says(" ".join(label.split()).casefold(), wanted):
            found.append(number)
            if len(found) > MOST_LISTED:
                break
    if len(found) > 1:
        listed = _listed(described(ledger, TURN, number, now) for number in found)
        raise UnknownReferenceError(
            f"several prompts match `{quoted(text)}`", hint=f"use one of these:{listed}"
        )
    return Meaning(text, TURN, found[0]) if found else None


def _says(text: str, words: str) -> bool:
    """Whether a text has some words, and not only letters that are inside of others."""
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if not (_joins(text[at - 1 : at + 1] if at else "") or _joins(text[end - 1 : end + 1])):
            return True
        at = text.find(words, at + 1)
    return False


def _joins(pair: str) -> bool:
    """Whether two characters stand inside one word; not every script puts spaces between words."""
    return len(pair) == 2 and all((c.isalnum() or c == "_") and c < "\u2e80" for c in pair)


def _before_or_after(ledger: "Ledger", meant: Meaning) -> "int | None":
    """The checkpoint before or after a turn or a step; None if that is the newest."""
    if meant.kind in (TURN, RESTORE):
        group = ledger.turns if meant.kind == TURN else ledger.stack
        row = group.numbered(meant.number)
        return None if row is None else row.before if meant.before else row.after
    step = ledger.steps.numbered(meant.number)
    event = None if step is None else step.opened if meant.before else step.closed
    return None if event is None else ledger.checkpoints.seen_by(event)


def _before_history(ledger: "Ledger", meant: Meaning, now: float) -> UnknownReferenceError:
    first = ledger.checkpoints.first()
    if first is None:
        return UnknownReferenceError("there is no checkpoint yet", hint=Action("checkpoint"))
    return UnknownReferenceError(
        f"`{quoted(meant.ref)}` is before the history, which begins {_at_time(first.created, now)}",
        hint=(Action("rollback-first", ref=first.id), Action("show-state", ref=first.id)),
    )


def _no_state(ledger: "Ledger", meant: Meaning, now: float) -> UnknownReferenceError:
    """A session is a conversation, not a moment; but its turns are."""
    turns = ledger.turns.of_session(meant.number, MOST_LISTED)
    listed = _listed(described(ledger, TURN, turn.number, now) for turn in turns)
    return UnknownReferenceError(
        f"`{meant.ref}` is a session, not a state",
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
