"""Inverses of what an agent does to the application: recorded with the call, run by an undo.

An inverse runs after the decision of a restore, the newest mutation first, each by its key: what is
recorded as done is not done again. If a target is not as the mutation left it, that is a conflict.
"""

import os
import time
from functools import wraps

from takeback.errors import ParticipantError, UsageError
from takeback.ledger.beyond.mutations import APPLIED, BEGUN, BROKEN, INVERTED
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids
from takeback.model.beyond.participants import MUTATION_NAME, OTHER, Difference
from takeback.model.value import Value
from takeback.participants.at_work import at_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    from takeback.ledger.ledger import Ledger
    from takeback.model.beyond.participants import Mutation
    from takeback.model.text.json_text import Json
    from takeback.ports import Shelf

    P = ParamSpec("P")
    R = TypeVar("R")
    Inverse = Callable[[Mutation], object]
    Read = Callable[[str], object]

_LONGEST_TARGET = 500
_LONGEST_KEY = 80
_LARGEST = 1 << 16


class Way(Value):
    """How mutations of one kind go back: `read` tells what a target is now."""

    name: str
    inverse: "Inverse"
    read: "Read | None" = None
    redo: "Inverse | None" = None


class Ways:
    """The inverses that this process knows, by name."""

    def __init__(self) -> None:
        self._found: dict[str, Way] = {}

    def add(self, name: str, way: Way) -> None:
        """Know how mutations of one kind go back."""
        self._found[name] = way

    def find(self, name: str) -> "Way | None":
        return self._found.get(name) or _of_tools.get(name)


_of_tools: dict[str, Way] = {}
"""The inverses of functions that are tools: known as soon as their module is imported."""


class MutationMove:
    """One mutation as a participant, so that it moves as the others do: after the decision."""

    kind = OTHER
    can_prepare = False
    each_step = False

    def __init__(self, mutation: "Mutation", way: Way, ledger: "Callable[[], Ledger]") -> None:
        self.name = MUTATION_NAME + mutation.key
        self._mutation = mutation
        self._way = way
        self._ledger = ledger

    def attach(self, shelf: "Shelf", /) -> None:
        del shelf

    def capture(self) -> str:
        return self._mutation.state

    def describe(self, token: str, /) -> "tuple[Difference, ...]":
        del token
        return (Difference(self._mutation.target),)

    def prepare(self, restore: str, token: str, /) -> None:
        del restore, token

    def abort(self, restore: str, /) -> None:
        del restore

    def commit(self, restore: str, /) -> None:
        del restore
        now = self._ledger().mutations.find(self._mutation.key)
        if now is None:
            raise ParticipantError("it was forgotten")
        forward = now.state == INVERTED
        act = self._way.redo if forward else self._way.inverse
        start, end = (now.before, now.after) if forward else (now.after, now.before)
        if act is None:
            raise ParticipantError("it has no `redo=`")
        if self._way.read is not None:
            there = looked_at(self._way.read, now.target)
            if there == end and start != end:
                return  # it was done, and a crash came before that was recorded
            if there != start:
                raise ParticipantError("it changed since")
        act(now)


def record(
    ledger: "Ledger",
    turn: str,
    target: str,
    before: object,
    after: object,
    inverse: str,
    *,
    key: str = "",
    given: object = None,
    state: str = APPLIED,
) -> str:
    """Record a mutation, and return its key; one that is recorded already stays as it is."""
    key = key or ids.from_entropy(os.urandom(8))
    if len(key) > _LONGEST_KEY or not key.isprintable():
        raise UsageError(f"`{key[:40]}` cannot be the key of a mutation", hint="a short text")
    key, is_known = _free(ledger, key, str(target)[:_LONGEST_TARGET])
    if is_known:
        return key
    said: dict[str, Json] = {
        "mutation": key,
        "turn": turn,
        "of": str(target)[:_LONGEST_TARGET],
        "was": _json("before", before),
        "became": _json("after", after),
        "given": _json("its input", given),
        "inverse": inverse,
        "stage": state,
    }
    opened = ledger.turns.get(turn).opened
    ledger.record(NewEvent(events.MUTATION_RECORDED, said, time.time_ns(), parents=(opened,)))
    return key


def _free(ledger: "Ledger", key: str, target: str) -> "tuple[str, bool]":
    """The key of what is recorded now, and whether it is recorded already.

    What was taken back is done anew: `refund`, then `refund 2`, each with an inverse of its own.
    """
    number, name = 1, key
    owed = {row.name for row in ledger.participants.owed()}
    while (found := ledger.mutations.find(name)) is not None:
        if found.target != target:
            raise UsageError(
                f"`{key}` is the key of a mutation of `{found.target}`",
                hint="give each mutation a key of its own",
            )
        if found.state != INVERTED and MUTATION_NAME + name not in owed:
            return name, True  # else its inverse ran, or is still to run
        number += 1
        name = f"{key} {number}"
    return name, False


def looked_at(read: "Read", target: str) -> object:
    """What a target is now, as it would be recorded: lists for tuples."""
    import json

    found = read(target)
    try:
        return json.loads(json.dumps(found, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return found


def settle(ledger: "Ledger", key: str, state: str, after: object = None) -> None:
    """Record how the call of a mutation ended."""
    found = ledger.mutations.find(key)
    turn = found.turn if found is not None else None
    said: dict[str, Json] = {"mutation": key, "turn": turn, "stage": state}
    said["became"] = _json("after", after)
    ledger.record(NewEvent(events.MUTATION_SETTLED, said, time.time_ns()))


def name_of(inverse: "str | Inverse") -> str:
    """What an inverse is called in the log: the place of a function, or a name."""
    if isinstance(inverse, str):
        return inverse
    name = getattr(inverse, "__qualname__", type(inverse).__qualname__)
    return f"{getattr(inverse, '__module__', '')}.{name}"


def tool(
    *, inverse: "Inverse", read: "Read | None" = None, redo: "Inverse | None" = None
) -> "Callable[[Callable[P, R]], Callable[P, R]]":
    """Let each call of a function inside a turn be recorded, so that an undo can run `inverse`.

    The inverse gets the `Mutation`: its `key`, what was `given` (positional and named arguments)
    and `after`, which is what the call returned, if that is JSON.
    """

    def decorate(function: "Callable[P, R]") -> "Callable[P, R]":
        name = name_of(function)  # type: ignore[arg-type]
        _of_tools[name] = Way(name, inverse, read, redo)

        @wraps(function)
        def call(*words: "P.args", **named: "P.kwargs") -> "R":
            work = at_work.get()
            if work is None:
                return function(*words, **named)
            key = work.begin_mutation(name, [list(words), dict(named)])
            try:
                found = function(*words, **named)
            except BaseException:
                work.end_mutation(key, BROKEN)
                raise
            work.end_mutation(key, APPLIED, found)
            return found

        return call

    return decorate


def begin(ledger: "Ledger", turn: str, name: str, given: object) -> str:
    """Record that a tool is about to be called."""
    return record(ledger, turn, name, None, None, name, given=_or_text(given), state=BEGUN)


def end(ledger: "Ledger", key: str, state: str, found: object) -> None:
    """Record how the call of a tool ended."""
    settle(ledger, key, state, _or_text(found))


def _or_text(value: object) -> object:
    """A value if it is JSON, else nothing: the inverse has to do without."""
    try:
        return _json("it", value)
    except UsageError:
        return None


def _json(what: str, value: object) -> "Any":  # noqa: ANN401 - any JSON
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"`{what}` of a mutation is not JSON: {problem}",
            hint="text, numbers, booleans, None, lists and dicts with text keys",
        ) from problem
    if len(text) > _LARGEST:
        raise UsageError(f"`{what}` of a mutation is larger than {_LARGEST:,} characters")
    return json.loads(text)
