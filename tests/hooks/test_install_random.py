"""Any document in JSON or TOML, written in any way, gets our hooks and is the same without."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takeback.agents import agent as kinds
from takeback.agents.dialects import codex
from takeback.errors import RefusedError
from takeback.hooks.command import line
from takeback.hooks.settings import json_settings, toml_settings

SCRIPT = "/srv/ana/.local/share/takeback/takeback-hook"
WANTED = codex.AGENT.groups(line(SCRIPT), line(SCRIPT, tells=True))
FLAT = {event: group["hooks"][0] for event, group in WANTED.items()}

NAMES = st.sampled_from(
    ["hooks", "Stop", "PreToolUse", "matcher", "command", "a", "é", "\ud83d", ""]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.sampled_from([*WANTED, "Notification", "Other"])
HOOKS = st.dictionaries(EVENTS, st.lists(VALUES, max_size=3), max_size=4)
DOCUMENTS = st.dictionaries(NAMES.filter("hooks".__ne__), VALUES, max_size=4)
BLANKS = st.sampled_from(["", "", " ", "\n", "\r\n", "\n  ", "\t", "  "])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A settings file: a document with hooks or without, with blanks wherever JSON allows some."""
    document = draw(DOCUMENTS)
    if draw(st.booleans()):
        document["hooks"] = draw(HOOKS)
    if draw(st.booleans()):
        indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
        made = json.dumps(document, indent=indent, ensure_ascii=True, allow_nan=True)
    else:
        made = spread(document, draw)
    made = draw(BLANKS) + made + draw(BLANKS)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return mark + made.replace("NaN", "0").replace("-Infinity", "0").replace("Infinity", "0")


def spread(value: object, draw: st.DrawFn) -> str:
    """A value as JSON, with blanks between all its signs."""
    between = draw(BLANKS)
    if isinstance(value, dict):
        members = [
            f"{json.dumps(k)}{draw(BLANKS)}:{between}{spread(v, draw)}" for k, v in value.items()
        ]
        return f"{{{between}{f'{between},{between}'.join(members)}{draw(BLANKS)}}}"
    if isinstance(value, list):
        return f"[{between}{f'{between},{between}'.join(spread(v, draw) for v in value)}]"
    return json.dumps(value)


def is_tight(text: str) -> bool:
    """Whether nothing empty in it that we would fill has blanks inside."""
    root = json_settings.parse(text)
    assert root is not None
    hooks = root.get("hooks")
    asked = [root, *([hooks, *hooks.items] if hooks is not None else [])]
    return all(one.items or one.end - one.start == 2 for one in asked)


@settings(max_examples=150)
@given(texts(), st.sampled_from([WANTED, FLAT]))
def test_any_document_survives(before: str, wanted: dict[str, Any]) -> None:
    """What is put in is all there, changes nothing else, and is taken out to the byte."""
    after = json_settings.put_in(before, wanted)
    assert json_settings.is_complete(after, wanted)
    assert json_settings.put_in(after, wanted) == after
    said, told = (json.loads(text.removeprefix("\ufeff")) for text in (before, after))
    hooks = told.pop("hooks")
    assert [hooks[event].pop() for event in wanted] == list(wanted.values())
    was = said.pop("hooks", {})
    assert {e: g for e, g in hooks.items() if g} == {e: g for e, g in was.items() if g}
    assert told == said
    out = json_settings.take_out(after, before)
    assert json.loads(out.removeprefix("\ufeff")) == json.loads(before.removeprefix("\ufeff"))
    if is_tight(before):
        assert out == before


@settings(max_examples=150)
@given(texts(), st.data())
def test_damaged_texts_are_read_as_python_reads_them(text: str, data: st.DataObject) -> None:
    """One sign more, less or other: accepted if, and only if, the standard's reader accepts it."""
    at = data.draw(st.integers(0, len(text)))
    sign = data.draw(st.sampled_from([*'{}[],:"\\ \n\t0-.eEu/n', "true", "\x1f", "é", "\ufeff"]))
    damaged = text[:at] + sign + text[at + data.draw(st.integers(0, 1)) :]
    plain = damaged.removeprefix("\ufeff")
    try:
        json.loads(plain, parse_constant=fail)
        is_json = True
    except ValueError:
        is_json = not plain.strip(" \t\r\n")
    try:
        json_settings.parse(damaged)
        is_read = True
    except json_settings.NotJsonError:
        is_read = False
    assert is_read == is_json


class Tables(kinds.Agent):
    """One whose settings are in TOML."""

    form = kinds.BLOCK
    kinds = codex.AGENT.kinds


def fail(constant: str) -> None:
    """What Python reads and the standard does not know."""
    raise ValueError(constant)


# -- TOML --------------------------------------------------------------------------------------

PIECES = [
    "", "# mine", "   ", "a.b = 1", 'c = "[[hooks]]"', "d = [\n  [1],\n  [2]\n]",
    'e = """\n[x]\n"""',
    "[table]", "[[list]]", "[ table.inner ]  # here", "[[hooks]]", 'event = "Stop"',
    'command = "say done"', "[[hooks]]\nevent = 'x'\ncommand = 'exec takeback hooks'", "f = nan",
    "[hooks]", "hooks = []", "g = 1979-05-27", "[[hooks]]\ncommand = 5",
]  # fmt: skip
BLOCK = kinds.Agent.block(Tables(), line(SCRIPT), line(SCRIPT, tells=True))


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(PIECES), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n", " "]),
)
def test_any_toml_survives(pieces: list[str], newline: str, end: str) -> None:
    """Refused, or put in and taken out to the byte; what is not ours has the same values."""
    before = ("\n".join(pieces) + end).replace("\n", newline)
    try:
        known = tomllib.loads(before)
        tomllib.loads(f"{before}\n{BLOCK}")
    except tomllib.TOMLDecodeError:
        with pytest.raises(RefusedError):
            toml_settings.put_in(before, BLOCK, "command")
        return
    after = toml_settings.put_in(before, BLOCK, "command")
    assert toml_settings.is_complete(after, BLOCK, "command")
    assert toml_settings.put_in(after, BLOCK, "command") == after
    said, ours = tomllib.loads(after), tomllib.loads(BLOCK)["hooks"]
    assert repr(said["hooks"]) == repr([*known.get("hooks", []), *ours])
    assert repr({**said, "hooks": 0}) == repr({**known, "hooks": 0})
    assert toml_settings.take_out(after, before, command_key="command") == before
