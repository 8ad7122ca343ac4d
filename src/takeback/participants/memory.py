"""The memory of agents: values of a session in the ledger, and objects of a program.

`SessionMemory` is a mapping on the ledger: each change is an event, with its history, and a restore
rewinds it with the same commit that makes the restore true. `ObjectMemory` is a participant: any
mapping, or any object whose state can be read and set.
"""

import time
from collections.abc import MutableMapping
from hashlib import sha256

from takeback.errors import ParticipantError, UsageError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model.beyond.participants import MEMORY, Difference
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, TypedDict, Unpack

    from takeback.ledger.beyond.memory import Memory
    from takeback.ledger.ledger import Ledger
    from takeback.model.text.json_text import Json
    from takeback.ports import Shelf

    Held = Callable[[], AbstractContextManager[object]]

    class HowKept(TypedDict, total=False):
        """How the state of an object is kept, and how often."""

        each_step: bool
        dump: Callable[[Any], bytes]
        load: Callable[[bytes], Any]


_LONGEST_NAME = 200
_LARGEST = 1 << 20
"""Bytes of one value: the log holds it."""


class Remembered(Value):
    """A value that a key had: `value` is None with `is_deleted` when it was deleted then."""

    value: object
    at: float
    is_deleted: bool = False


class SessionMemory(MutableMapping[str, "Any"]):
    """One layer of a session's memory: JSON values by key, in the ledger.

    A rollback rewinds it to what it was then, an undo of the session's newest turn does, and redo
    brings it forward. A `persistent` layer never rewinds. Thread-safe; what another process writes
    is seen at once. A value that is read is a copy: store it again to change it.
    """

    def __init__(
        self,
        ledger: "Callable[[], Ledger]",
        held: "Held",
        session: str,
        layer: str = "",
        *,
        persistent: bool = False,
    ) -> None:
        self._ledger_now = ledger
        self._held = held
        self._session = session
        self._layer = layer
        self._persistent = persistent

    @property
    def _memory(self) -> "Memory":
        return self._ledger_now().memory

    def layer(self, name: str, *, persistent: bool = False) -> "SessionMemory":
        """A layer with keys of its own. What is `persistent` stays so: it never rewinds."""
        _require_text(name, "the name of a layer")
        here = (self._ledger_now, self._held, self._session, name)
        found = SessionMemory(*here, persistent=persistent)
        found._require_same_kind(name)
        return found

    def _require_same_kind(self, name: str) -> None:
        """An error if the layer is of the other kind since its first value."""
        before = self._memory.is_persistent(self._session, name)
        if before is not None and before is not self._persistent:
            was = "persistent" if before else "not persistent"
            raise UsageError(
                f"the layer `{name}` is {was}",
                hint=f"open it with persistent={before}, or choose another name",
            )

    def history(self, key: str) -> "tuple[Remembered, ...]":
        """All values that a key had, the newest first; a rewind is one, too."""
        return tuple(
            Remembered(
                None if row.value is None else json_text.loads(row.value),
                row.at / 1e9,
                row.value is None,
            )
            for row in self._memory.history(self._session, self._layer, key)
        )

    def __getitem__(self, key: str) -> "Any":  # noqa: ANN401 - any JSON
        is_known = _is_storable(key)
        found = self._memory.get(self._session, self._layer, key) if is_known else None
        if found is None:
            raise KeyError(key)
        return json_text.loads(found)

    def __setitem__(self, key: str, value: object) -> None:
        self._write([[_require_text(key, "a key"), _encoded(key, value)]])

    def __delitem__(self, key: str) -> None:
        with self._held():
            if self._memory.get(self._session, self._layer, key) is None:
                raise KeyError(key)
            self._write([[key, None]])

    def __iter__(self) -> "Iterator[str]":
        return iter(self._memory.keys(self._session, self._layer))

    def __len__(self) -> int:
        return len(self._memory.keys(self._session, self._layer))

    def update(self, *others: "Any", **named: object) -> None:  # noqa: ANN401 - as a dict takes
        """Store several values, all or none."""
        values = dict(*others, **named)
        self._write([[_require_text(key, "a key"), _encoded(key, values[key])] for key in values])

    def clear(self) -> None:
        """Delete all keys, with one event."""
        with self._held():
            self._write([[key, None] for key in self])

    def __repr__(self) -> str:
        return f"<takeback memory {dict(self)!r}>"

    def _write(self, values: "list[list[str | None]]") -> None:
        with self._held():
            if self._layer:
                self._require_same_kind(self._layer)
            changed: list[Json] = [
                [key, value]
                for key, value in values
                if value != self._memory.get(self._session, self._layer, str(key))
            ]
            if not changed:
                return
            said: dict[str, Json] = {
                "session": self._session,
                "layer": self._layer,
                "values": changed,
            }
            ledger = self._ledger_now()
            turns = ledger.turns.running(ledger.sessions.get(self._session).number)
            if turns:
                said["turn"] = turns[-1].id
            if self._persistent:
                said["persistent"] = True
            ledger.record(NewEvent(events.MEMORY_CHANGED, said, time.time_ns()))


class ObjectMemory:
    """A mapping, or an object with state, as a participant: it moves with the files.

    The state is JSON, or what `dump` makes bytes of and `load` reads.
    """

    kind = MEMORY
    can_prepare = True

    def __init__(
        self,
        name: str,
        read: "Callable[[], Any]",
        write: "Callable[[Any], object]",
        **options: "Unpack[HowKept]",
    ) -> None:
        self.name = name
        self.each_step = options.get("each_step", True)
        self._get = read
        self._set = write
        self._dump = options.get("dump", _dump)
        self._load = options.get("load", _load)
        self._prepared: dict[str, bytes] = {}

    def attach(self, shelf: "Shelf", /) -> None:
        self._shelf = shelf

    def capture(self) -> str:
        state = self._dump(self._get())
        # Not the hash of the content itself, which `forget` has to find nowhere.
        mark = sha256(b"memory " + state).hexdigest()
        if mark == self._shelf.mark:
            return self._shelf.last
        token = self._shelf.put([state])
        self._shelf.note(mark)
        return token

    def describe(self, token: str, /) -> "tuple[Difference, ...]":
        then, now = self._read(token), self._dump(self._get())
        if then == now:
            return ()
        old, new = self._load(now), self._load(then)
        if not isinstance(old, dict) or not isinstance(new, dict):
            return (Difference(self.name),)
        found = []
        for key in {**old, **new}:
            if (key in old, old.get(key)) != (key in new, new.get(key)):
                counts = (key not in old, key not in new, key in old and key in new)
                found.append(Difference(str(key), *map(int, counts)))
        return tuple(found) or (Difference(self.name),)

    def prepare(self, restore: str, token: str, /) -> None:
        state = self._read(token)
        self._load(state)
        self._prepared[restore] = state

    def commit(self, restore: str, /) -> None:
        state = self._prepared.pop(restore, None)
        if state is not None:
            self._set(self._load(state))

    def abort(self, restore: str, /) -> None:
        self._prepared.pop(restore, None)

    def _read(self, token: str) -> bytes:
        return b"".join(self._shelf.read(token))


def of_object(target: object, name: str, options: "HowKept") -> ObjectMemory:
    """A participant of a mapping, or of an object with `get_state` and `set_state`."""
    if isinstance(target, MutableMapping):

        def replace(state: "Mapping[Any, Any]") -> None:
            target.clear()
            target.update(state)

        return ObjectMemory(name, lambda: dict(target), replace, **options)
    for read, write in (("get_state", "set_state"), ("save_state", "load_state")):
        if hasattr(target, read) and hasattr(target, write):
            return ObjectMemory(name, getattr(target, read), getattr(target, write), **options)
    raise UsageError(
        f"`{type(target).__name__}` is no mapping and has no `get_state` and `set_state`",
        hint="give `read=` and `write=`, which do it",
    )


def _dump(state: object) -> bytes:
    import json

    try:
        return json.dumps(state, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as problem:
        raise ParticipantError(f"its state is not JSON: {problem}") from problem


def _load(state: bytes) -> "Any":  # noqa: ANN401 - any JSON
    return json_text.loads(state.decode())


def _encoded(key: str, value: object) -> str:
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        _require_same(_with_lists(value), json.loads(text))
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"the value of `{key}` is not JSON: {problem}",
            hint="text, numbers, booleans, None, lists and dicts with text keys",
        ) from problem
    if len(text) > _LARGEST:
        raise UsageError(
            f"the value of `{key}` is larger than {_LARGEST:,} characters",
            hint="keep large values in a file, or register an object with `takeback.memory`",
        )
    return text


def _require_same(value: object, read: object) -> None:
    if value != read:
        raise ValueError("it would be another value when it is read")


def _with_lists(value: object) -> object:
    """The value with lists for its tuples, which is no surprise."""
    if isinstance(value, dict):
        return {key: _with_lists(inner) for key, inner in value.items()}
    return [*map(_with_lists, value)] if isinstance(value, list | tuple) else value


def _require_text(text: object, what: str) -> str:
    if not isinstance(text, str) or not text or len(text) > _LONGEST_NAME:
        raise UsageError(
            f"`{str(text)[:40]}` cannot be {what}",
            hint=f"text of at most {_LONGEST_NAME} characters",
        )
    if not _is_storable(text):
        raise UsageError(f"{what} must be text that can be stored")
    return text


def _is_storable(text: object) -> bool:
    """Whether this is text that can be written as UTF-8."""
    try:
        return isinstance(text, str) and text.encode() is not None
    except UnicodeEncodeError:
        return False
