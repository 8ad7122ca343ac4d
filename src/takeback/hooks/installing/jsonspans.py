"""JSON with the place of everything in it, so that a text can be edited instead of written anew.

It accepts what the standard says and nothing else, at any depth: what an agent reads, we read, and
what it would refuse, we refuse. Of two members with one name the last counts, as in JavaScript.
"""

import json
import re
from functools import lru_cache

from takeback.errors import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OBJECT, ARRAY, STRING, OTHER = "object", "array", "string", "other"
MARK = "\ufeff"
"""What some editors put before a text to tell that it is Unicode."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r"""
    (?P<sign> [{}\[\],:] )
    | (?P<string> "[^"\\\x00-\x1f]* (?: \\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}) [^"\\\x00-\x1f]* )*" )
    | (?P<other> true | false | null | -?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)? )
    """,
    re.VERBOSE,
)
_CLOSES = {OBJECT: "}", ARRAY: "]"}


class NotJsonError(RefusedError):
    """A text that is no JSON; the message says where."""


class Value:
    """One value and where it stands: `text[start:end]`.

    The members of an object are `keys` and `items`, one for one; an array has only `items`.
    """

    __slots__ = ("end", "items", "keys", "kind", "start")

    def __init__(self, kind: str, start: int, end: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.keys: list[Key] = []
        self.items: list[Value] = []

    def get(self, name: str) -> "Value | None":
        """The member of an object that counts."""
        at = self.index(name)
        return self.items[at] if at is not None else None

    def index(self, name: str) -> "int | None":
        """The number of the member that counts."""
        found = [at for at, key in enumerate(self.keys) if key.name == name]
        return found[-1] if found else None

    def first(self, at: int) -> int:
        """Where a member begins: with its name, if it has one."""
        return self.keys[at].start if self.keys else self.items[at].start


class Key:
    """The name of a member, and where it stands."""

    __slots__ = ("end", "name", "start")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name = name
        self.start = start
        self.end = end


@lru_cache(maxsize=4)  # one text is asked for several things
def parse(text: str) -> "Value | None":
    """The value that a text holds; None if there is nothing but blanks."""
    reader = _Reader(text, len(MARK) if text.startswith(MARK) else 0)
    return None if reader.is_over() else reader.whole()


def decoded(text: str, value: Value) -> "Any":  # noqa: ANN401 -- as `json.loads`
    """A value of a few levels as Python has it."""
    try:
        return json.loads(text[value.start : value.end])
    except RecursionError:
        return None


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at

    def is_over(self) -> bool:
        found = _BLANKS.match(self._text, self._at)
        assert found is not None  # it matches nothing, too
        self._at = found.end()
        return self._at == len(self._text)

    def whole(self) -> Value:
        """All of the text, without recursion: nobody says how deep it may be."""
        around: list[Value] = []
        while True:
            value = self._begin()
            if value.kind in _CLOSES and not self._closes(value):
                around.append(value)
                self._name(value)
                continue
            while around and self._goes_up(around[-1], value):
                value = around.pop()
            if not around:
                break
        if not self.is_over():
            raise self._wrong("there is something behind the end")
        return value

    def _begin(self) -> Value:
        """A value, of which only the first sign is read if it has members."""
        kind, start, end = self._token("a value")
        sign = self._text[start:end]
        if kind == "sign" and sign in "{[":
            return Value(OBJECT if sign == "{" else ARRAY, start)
        if kind == "sign":
            self._at = start
            raise self._wrong(f"a value is missing before `{sign}`")
        return Value(kind, start, end)

    def _goes_up(self, parent: Value, value: Value) -> bool:
        """Put a value where it belongs; whether its parent is complete with it."""
        parent.items.append(value)
        if self._closes(parent):
            return True
        kind, start, end = self._token("`,`")
        if kind != "sign" or self._text[start:end] != ",":
            self._at = start
            raise self._wrong(f"`,` or `{_CLOSES[parent.kind]}` is missing")
        self._name(parent)
        return False

    def _closes(self, value: Value) -> bool:
        if self.is_over() or self._text[self._at] != _CLOSES[value.kind]:
            return False
        self._at += 1
        value.end = self._at
        return True

    def _name(self, parent: Value) -> None:
        """The name of the member that comes, and its colon."""
        if parent.kind != OBJECT:
            return
        kind, start, end = self._token("a name in quotes")
        if kind != STRING:
            self._at = start
            raise self._wrong("a name in quotes is missing")
        parent.keys.append(Key(json.loads(self._text[start:end]), start, end))
        kind, start, end = self._token("`:`")
        if self._text[start:end] != ":":
            self._at = start
            raise self._wrong("`:` is missing")

    def _token(self, wanted: str) -> "tuple[str, int, int]":
        if self.is_over():
            raise self._wrong(f"it ends where {wanted} should be")
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._wrong(f"this is not {wanted}")
        self._at = found.end()
        return str(found.lastgroup), found.start(), found.end()

    def _wrong(self, what: str) -> NotJsonError:
        before = self._text[: self._at]
        line = before.count("\n") + 1
        column = self._at - (before.rfind("\n") + 1) + 1
        return NotJsonError(f"line {line}, column {column}: {what}")
