"""The text of a settings file in TOML, with hooks put in and taken out.

Ours are tables at the end of the file, between two comments. Only lines are added or removed, so
everything else stays to the byte. Before a text is returned, both are parsed: what is not ours must
have the same values in both.

    # begin: hooks of Takeback (written by `takeback install`)
    [[hooks]]
    …
    # end: hooks of Takeback

Agents write this file, too, and drop comments: our tables are known by their command line.
"""

import itertools
import re
import tomllib

from takeback.errors import RefusedError
from takeback.hooks.command import is_ours
from takeback.hooks.settings.json_settings import Found, NotValidError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEGIN = "# begin: hooks of Takeback (written by `takeback install`)"
END = "# end: hooks of Takeback"
_HOOKS = "hooks"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER = re.compile(r"[ \t]*\[")
_OF_HOOKS = re.compile(r"[ \t]*\[\[[ \t]*(?:hooks|\"hooks\"|'hooks')[ \t]*\]\]")
_NOT_OURS = re.compile(r"[ \t]*(?:#.*)?\r?\n?")
"""A line that belongs to no table."""


class NotTomlError(NotValidError):
    """A text that is no TOML."""


def ours(text: str, event_key: str, command_key: str) -> "list[Found]":
    """All hooks of ours in a text."""
    return [
        Found(str(hook.get(event_key, "")), hook, str(hook[command_key]))
        for hook in _hooks_of(parse(text))
        if _is_ours(hook, command_key)
    ]


def parse(text: str) -> "dict[str, Any]":
    """What a text says; an error if it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise NotTomlError(str(problem)) from None
    except RecursionError:
        raise NotTomlError("it is nested too deeply") from None


def put_in(text: str, block: str, command_key: str) -> str:
    """The text with our tables: where they stood, else at the end."""
    known = parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [BEGIN, *block.split("\n"), END]
    made = "".join(line + newline for line in lines)
    old = _block(text, command_key)
    if old is not None:
        after = text[: old[0]] + made + text[old[1] :]
    else:
        rest = take_out(text, command_key=command_key)
        end = "" if not rest or rest.endswith("\n") else newline
        after = f"{rest}{end}{newline if rest.strip() else ''}{made}"
    try:
        _require_same(known, parse(after), command_key)
    except NotTomlError:
        raise RefusedError(
            "its `hooks` are written in a way that takes no more; write each as a table `[[hooks]]`"
        ) from None
    return after


def is_complete(text: str, block: str, command_key: str) -> bool:
    """Whether there is nothing to do."""
    mine = [hook for hook in _hooks_of(parse(text)) if _is_ours(hook, command_key)]
    return mine == _hooks_of(parse(block))


def take_out(text: str, before: "str | None" = None, *, command_key: str) -> str:
    """The text without anything of ours."""
    known = parse(text)
    old = _block(text, command_key)
    if old is not None:
        out = _without_blank_line(text[: old[0]]) + text[old[1] :]
    else:
        spans = _tables(text, command_key)
        kept, at = [], 0
        for start, end in spans:
            kept.append(text[at:start])
            at = end
        out = "".join((*kept, text[at:])) if spans else text
        marks = (BEGIN, END)
        lines = _LINE.findall(out)
        out = "".join(line for line in lines if line.strip() not in marks) if spans else out
    _require_same(known, parse(out), command_key)
    if any(_is_ours(hook, command_key) for hook in _hooks_of(parse(out))):
        raise RefusedError(
            "its `hooks` are written in a way that Takeback cannot edit; remove by hand each whose"
            f" `{command_key}` has `takeback` in it"
        )
    # Whether the last line had an end, only the text of before knows.
    return before if before and out in (f"{before}\n", f"{before}\r\n") else out


# -- reading -----------------------------------------------------------------------------------


def _hooks_of(known: "dict[str, Any]") -> "list[dict[str, Any]]":
    hooks = known.get(_HOOKS)
    return [hook for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []


def _is_ours(hook: "dict[str, Any]", command_key: str) -> bool:
    line = hook.get(command_key)
    return isinstance(line, str) and is_ours(line)


def _require_same(before: "dict[str, Any]", after: "dict[str, Any]", command_key: str) -> None:
    """A last look: nothing that is not ours has another value."""
    # As text, since not every number equals itself.
    if repr(_others(before, command_key)) != repr(_others(after, command_key)):
        raise RefusedError("Takeback cannot edit it without changing something else in it")


def _others(known: "dict[str, Any]", command_key: str) -> "dict[str, Any]":
    hooks = known.get(_HOOKS)
    if not isinstance(hooks, list):
        return known
    rest = [one for one in hooks if not (isinstance(one, dict) and _is_ours(one, command_key))]
    others = {name: value for name, value in known.items() if name != _HOOKS}
    return {**others, _HOOKS: rest} if rest else others


def _block(text: str, command_key: str) -> "tuple[int, int] | None":
    """Where our tables stand between the two comments; None if anything else is there, too."""
    start, end = _line_of(text, BEGIN), _line_of(text, END)
    if start is None or end is None or not start[0] < end[0]:
        return None
    inside = text[start[1] : end[0]]
    rest = inside
    for first, last in reversed(_tables(inside, command_key)):
        rest = rest[:first] + rest[last:]
    return (start[0], end[1]) if not rest.strip() else None


def _line_of(text: str, mark: str) -> "tuple[int, int] | None":
    """The only line that is a mark, with its end."""
    found = [*re.finditer(rf"^{re.escape(mark)}[ \t]*\r?(?:\n|\Z)", text, re.MULTILINE)]
    return found[0].span() if len(found) == 1 else None


def _tables(text: str, command_key: str) -> "list[tuple[int, int]]":
    """Where our tables stand; a comment before the next table is not part of one."""
    lines = _LINE.findall(text)
    places = [0]
    for line in lines:
        places.append(places[-1] + len(line))
    heads = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    spans = []
    for head, following in itertools.pairwise([*heads, len(lines)]):
        if not _OF_HOOKS.match(lines[head]):
            continue
        last = following
        while last > head and _NOT_OURS.fullmatch(lines[last - 1]):
            last -= 1
        if _is_our_table("".join(lines[head:last]), command_key):
            while last < following and not lines[last].strip():
                last += 1  # blank lines behind it are its own
            spans.append((places[head], places[last]))
    return spans


def _is_our_table(text: str, command_key: str) -> bool:
    try:
        hooks = _hooks_of(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False  # a line in a longer value that only looks like the beginning of a table
    return len(hooks) == 1 and _is_ours(hooks[0], command_key)


def _without_blank_line(text: str) -> str:
    """What stood before our block, without the line that keeps them apart."""
    for end in ("\r\n", "\n"):
        if text.strip() and text.endswith(end + end):
            return text.removesuffix(end)
    return text
