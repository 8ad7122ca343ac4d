"""The text of a settings file with hooks put in and taken out.

Only what is added or removed changes: indentation, line ends, order, escapes and blanks of the rest
stay as they are, and what is added looks like what stands around it. What was put in is taken out
to the byte, but for two things that the text alone cannot tell: whether an empty list or object was
there before, and which blanks were in it. `before`, the text from before, tells.

    {"hooks": {EVENT: [GROUP, …]}}    GROUP = {"matcher": …, "hooks": [HANDLER, …]}
    {"hooks": {EVENT: [ENTRY, …]}}    ENTRY = HANDLER, with the matcher in it

JSON with the place of everything in it, so that a text can be edited instead of written anew.

It accepts what the standard says and nothing else, at any depth: what an agent reads, we read, and
what it would refuse, we refuse. Of two members with one name the last counts, as in JavaScript.
"""

import json
import re
from functools import lru_cache

from takeback.errors import RefusedError
from takeback.hooks.command import is_ours
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    Group = Mapping[str, Any]

    Edit = tuple[int, int, str]


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


class NotValidError(RefusedError):
    """A text that is not in the language of its file; the message says where."""


class NotJsonError(NotValidError):
    """A text that is no JSON."""


class JsonNode:
    """One value and where it stands: `text[start:end]`.

    The members of an object are `keys` and `items`, one for one; an array has only `items`.
    """

    __slots__ = ("end", "items", "keys", "kind", "start")

    def __init__(self, kind: str, start: int, end: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.keys: list[Key] = []
        self.items: list[JsonNode] = []

    def get(self, name: str) -> "JsonNode | None":
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


class Key(Value):
    """The name of a member, and where it stands."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=4)  # one text is asked for several things
def parse(text: str) -> "JsonNode | None":
    """The value that a text holds; None if there is nothing but blanks."""
    reader = _Reader(text, len(MARK) if text.startswith(MARK) else 0)
    return None if reader.is_over() else reader.whole()


def decoded(text: str, value: JsonNode) -> "Any":  # noqa: ANN401 -- as `json.loads`
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

    def whole(self) -> JsonNode:
        """All of the text, without recursion: nobody says how deep it may be."""
        around: list[JsonNode] = []
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
            raise self._wrong("there is text after the end")
        return value

    def _begin(self) -> JsonNode:
        """A value, of which only the first sign is read if it has members."""
        kind, start, end = self._token("a value")
        sign = self._text[start:end]
        if kind == "sign" and sign in "{[":
            return JsonNode(OBJECT if sign == "{" else ARRAY, start)
        if kind == "sign":
            self._at = start
            raise self._wrong(f"a value is missing before `{sign}`")
        return JsonNode(kind, start, end)

    def _goes_up(self, parent: JsonNode, value: JsonNode) -> bool:
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

    def _closes(self, value: JsonNode) -> bool:
        if self.is_over() or self._text[self._at] != _CLOSES[value.kind]:
            return False
        self._at += 1
        value.end = self._at
        return True

    def _name(self, parent: JsonNode) -> None:
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


_HOOKS = "hooks"
_COMMANDS = ("command", "bash")
"""What agents call the command line of a handler."""


class Found(Value):
    """A hook of ours: its event, the group that it is in, and its command line."""

    event: str
    group: "Any"
    command: str


def put_in(text: str, wanted: "Mapping[str, Group]", preface: "Group | None" = None) -> str:
    """The text with one group of ours for each event, and no other of ours.

    `preface` are members that the settings need beside the hooks.
    """
    if is_complete(text, wanted):
        return text
    text = _replaced(text, wanted)
    missing = {event: group for event, group in wanted.items() if not _is_there(text, event, group)}
    text = _taken_out(text, keep=set(wanted) - set(missing), emptied=wanted)
    return _added(_prefaced(text, preface or {}), missing)


def is_complete(text: str, wanted: "Mapping[str, Group]") -> bool:
    """Whether there is nothing to do."""
    found = [(one.event, one.group) for one in ours(text)]
    return sorted(event for event, _ in found) == sorted(wanted) and all(
        group == wanted[event] for event, group in found
    )


def take_out(text: str, before: "str | None" = None, preface: "Group | None" = None) -> str:
    """The text without anything of ours; what became empty goes, unless it was so before.

    The preface goes if it was not there before, and no hooks of others need it.
    """
    out = _taken_out(text, keep=(), emptied=_names_of(before or ""))
    hooks, was, root = _hooks(out), parse(before or ""), parse(out)
    if before is None or root is None or (hooks is not None and hooks.items):
        return out
    gone = [
        at
        for name, value in (preface or {}).items()
        if (at := root.index(name)) is not None
        and decoded(out, root.items[at]) == value
        and (was is None or was.index(name) is None)
    ]
    return _edited(out, _without(root, sorted(gone)))


def ours(text: str) -> "list[Found]":
    """All hooks of ours in a text."""
    hooks = _hooks(text)
    if hooks is None:
        return []
    return [
        Found(event, decoded(text, group), made)
        for event, groups in _events(hooks)
        for group in groups.items
        for handler in _handlers(group)
        if (made := _command(text, handler)) and is_ours(made)
    ]


def is_empty(text: str) -> bool:
    """Whether a text says nothing at all."""
    root = parse(text)
    return root is None or (root.kind == OBJECT and not root.items)


# -- reading -----------------------------------------------------------------------------------


def _hooks(text: str) -> "JsonNode | None":
    """The object that the hooks are in; an error for a text that no agent can mean."""
    root = parse(text)
    if root is None:
        return None
    if root.kind != OBJECT:
        raise RefusedError("it is not a JSON object")
    hooks = root.get(_HOOKS)
    if hooks is None:
        return None
    if hooks.kind != OBJECT:
        raise RefusedError("its `hooks` is not an object")
    for key, groups in zip(hooks.keys, hooks.items, strict=True):
        if groups.kind != ARRAY:
            raise RefusedError(f"its `hooks.{key.name}` is not a list")
    return hooks


def _events(hooks: JsonNode) -> "Iterator[tuple[str, JsonNode]]":
    """Each event and its list; of two with one name, the last."""
    for at, key in enumerate(hooks.keys):
        if hooks.index(key.name) == at:
            yield key.name, hooks.items[at]


def _names_of(text: str) -> "Collection[str]":
    """The events that a text has a list for, and `hooks` itself under an empty name."""
    hooks = _hooks(text) if text else None
    return {""}.union(key.name for key in hooks.keys) if hooks is not None else ()


def _handlers(group: JsonNode) -> "list[JsonNode]":
    """The handlers of a group; an entry without an inner list is one itself."""
    if group.kind != OBJECT:
        return []
    inner = group.get(_HOOKS)
    if inner is None:
        return [group]
    return inner.items if inner.kind == ARRAY else []


def _command(text: str, handler: JsonNode) -> str:
    """The command line of a handler, or the one that is ours; empty if it has none."""
    if handler.kind != OBJECT:
        return ""
    named = [handler.get(name) for name in _COMMANDS]
    lines = [str(decoded(text, node)) for node in named if node is not None and node.kind == STRING]
    return next(filter(is_ours, lines), lines[0] if lines else "")


def _is_ours(text: str, handler: JsonNode) -> bool:
    return is_ours(_command(text, handler))


def _is_there(text: str, event: str, group: "Group") -> bool:
    return [one.group for one in ours(text) if one.event == event] == [group]


# -- putting in --------------------------------------------------------------------------------


def _replaced(text: str, wanted: "Mapping[str, Group]") -> str:
    """Groups of ours that are outdated, brought up to date where they stand.

    Codex knows each hook of others by its number, so nobody's number should change.
    """
    hooks = _hooks(text)
    if hooks is None:
        return text
    edits: list[Edit] = []
    style = _Style(text)
    for event, groups in _events(hooks):
        mine = [g for g in groups.items if any(_is_ours(text, one) for one in _handlers(g))]
        if event not in wanted or len(mine) != 1 or len(_handlers(mine[0])) != 1:
            continue
        if decoded(text, mine[0]) != wanted[event]:
            made = style.written(wanted[event], style.indent_at(mine[0].start), groups)
            edits.append((mine[0].start, mine[0].end, made))
    return _edited(text, edits)


def _prefaced(text: str, preface: "Group") -> str:
    """The text with the members that are missing; a file that is not there gets all of them."""
    root = parse(text)
    missing = [(n, v) for n, v in preface.items() if root is None or root.index(n) is None]
    if not missing:
        return text
    style = _Style(text)
    if root is None:
        mark = MARK if text.startswith(MARK) else ""
        return mark + style.written(dict(missing), "", None) + style.newline
    return _edited(text, [style.insertion(root, missing)])


def _added(text: str, missing: "Mapping[str, Group]") -> str:
    if not missing:
        return text
    style = _Style(text)
    lists = {event: [group] for event, group in missing.items()}
    root = parse(text)
    if root is None:
        mark = MARK if text.startswith(MARK) else ""
        return mark + style.written({_HOOKS: lists}, "", None) + style.newline
    hooks = _hooks(text)
    if hooks is None:
        return _edited(text, [style.insertion(root, [(_HOOKS, lists)])])
    known = dict(_events(hooks))
    edits = [
        style.insertion(known[event], [("", group)])
        for event, group in missing.items()
        if event in known
    ]
    new: list[tuple[str, object]] = [(e, made) for e, made in lists.items() if e not in known]
    if new:
        edits.append(style.insertion(hooks, new))
    return _edited(text, edits)


class _Style:
    """How a text is written: line ends, indentation, blanks."""

    def __init__(self, text: str) -> None:
        self._text = text
        at = text.find("\n")
        if at < 0:
            self.newline = "\r" if "\r" in text else "\n"
        else:
            self.newline = "\r\n" if text[at - 1 : at] == "\r" else "\n"
        root = parse(text)
        self._unit, self._colon, self._comma = "  ", ": ", ", "
        self._is_one_line = False
        if root is not None and root.items:
            self._learn(root)

    def _learn(self, root: JsonNode) -> None:
        first = self._text[root.start + 1 : root.first(0)]
        self._is_one_line = not _has_line_end(first)
        if not self._is_one_line:
            self._unit = first[_last_line(first) :]
        if root.keys:
            between = self._text[root.keys[0].end : root.items[0].start]
            self._colon = between if not between.strip(" :") else ": "
        self._comma = ", " if self._colon.endswith(" ") else ","

    def indent_at(self, at: int) -> str:
        """What stands before the first sign of the line."""
        start = _last_line(self._text[:at])
        line = self._text[start:at].removeprefix(MARK)
        return line[: len(line) - len(line.lstrip(" \t"))]

    def insertion(self, container: JsonNode, members: "Sequence[tuple[str, object]]") -> "Edit":
        """Add members behind the last one; those of a list have no names."""
        is_one_line = self._fits_one_line(container)
        if container.items:
            before_first = self._text[container.start + 1 : container.first(0)]
            indent = before_first[_last_line(before_first) :]
        else:
            indent = self.indent_at(container.start) + self._unit
        mark = self._comma if is_one_line else f",{self.newline}{indent}"
        made = mark.join(self._member(name, value, indent, container) for name, value in members)
        if container.items:
            end = container.items[-1].end
            return end, end, mark + made
        if not is_one_line:
            closing = self.newline + self.indent_at(container.start)
            made = f"{self.newline}{indent}{made}{closing}"
        return container.start + 1, container.end - 1, made

    def written(self, value: object, indent: str, inside: "JsonNode | None") -> str:
        """A value of ours, in the style of what it will stand in."""
        if inside is not None and self._fits_one_line(inside):
            separators = (self._comma, self._colon)
            return json.dumps(value, ensure_ascii=False, separators=separators)
        made = json.dumps(
            value, ensure_ascii=False, indent=self._unit, separators=(",", self._colon)
        )
        # No line end is in a string of ours: `dumps` would have escaped it.
        return made.replace("\n", self.newline + indent)

    def _member(self, name: str, value: object, indent: str, container: JsonNode) -> str:
        made = self.written(value, indent, container)
        return f"{json.dumps(name)}{self._colon}{made}" if container.kind == OBJECT else made

    def _fits_one_line(self, container: JsonNode) -> bool:
        if not container.items:
            return self._is_one_line
        return not _has_line_end(self._text[container.start + 1 : container.first(0)])


def _has_line_end(text: str) -> bool:
    return "\n" in text or "\r" in text


def _last_line(text: str) -> int:
    """Where the last line of a text begins."""
    return max(text.rfind("\n"), text.rfind("\r")) + 1


# -- taking out --------------------------------------------------------------------------------


def _taken_out(text: str, keep: "Collection[str]", emptied: "Collection[str]") -> str:
    """Without our groups, but those of events to keep.

    Lists that become empty go too, unless they are named in `emptied`.
    """
    hooks = _hooks(text)
    root = parse(text)
    if hooks is None or root is None:
        return text
    edits: list[Edit] = []
    gone: list[int] = []
    for event, groups in _events(hooks):
        if event in keep:
            continue
        whole = _empty_groups(text, groups, edits)
        if whole and len(whole) == len(groups.items) and event not in emptied:
            at = hooks.index(event)
            assert at is not None  # it was found by its name
            gone.append(at)
        else:
            edits += _without(groups, whole)
    if gone and len(gone) == len(hooks.items) and "" not in emptied:
        at = root.index(_HOOKS)
        assert at is not None  # the hooks are in it
        edits = _without(root, [at])
    else:
        edits += _without(hooks, gone)
    return _edited(text, edits)


def _empty_groups(text: str, groups: JsonNode, edits: "list[Edit]") -> "list[int]":
    """The groups that are ours alone; from others, only our handlers are taken."""
    whole = []
    for number, group in enumerate(groups.items):
        handlers = _handlers(group)
        mine = [at for at, one in enumerate(handlers) if _is_ours(text, one)]
        if mine and len(mine) == len(handlers):
            whole.append(number)
        elif mine:
            inner = group.get(_HOOKS)
            assert inner is not None  # it has handlers
            edits += _without(inner, mine)
    return whole


def _without(container: JsonNode, gone: "Sequence[int]") -> "list[Edit]":
    """Remove members with one comma each, so that what stays keeps its blanks."""
    count = len(container.items)
    if not gone:
        return []
    if len(gone) == count:
        return [(container.start + 1, container.end - 1, "")]
    edits: list[Edit] = []
    stay = [at for at in range(count) if at not in gone]
    for at in gone:
        if at > stay[-1]:
            continue
        edits.append((container.first(at), container.first(at + 1), ""))
    if gone[-1] > stay[-1]:
        edits.append((container.items[stay[-1]].end, container.items[-1].end, ""))
    return edits


def _edited(text: str, edits: "Sequence[Edit]") -> str:
    """A text with some pieces replaced."""
    pieces, at = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[at:start], new]
        at = end
    return "".join((*pieces, text[at:]))
