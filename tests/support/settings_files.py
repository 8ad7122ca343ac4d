"""Settings files of agents as people have them: more than fifty, each different in its own way."""

import itertools
import json
from pathlib import Path
from typing import Any

from takeback.agents.agent import BLOCK, FILES, Agent

Contents = dict[str, tuple[int, bytes]]
MARK = b"\xef\xbb\xbf"

FORMATTER = {"type": "command", "command": "npx prettier --write"}
OTHERS: dict[str, Any] = {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh"}]}],
    "PostToolUse": [
        {"matcher": "Edit|Write", "hooks": [FORMATTER, {"type": "command", "command": "lint"}]},
        {"hooks": [FORMATTER]},
    ],
    "Notification": [{"hooks": [{"type": "command", "command": "say done", "timeout": 5}]}],
}
PLAIN: dict[str, Any] = {
    "$schema": "https://json.schemastore.org/claude-code-settings.json",
    "model": "opus",
    "permissions": {"allow": ["Bash(git diff:*)", "Read(~/.zshrc)"], "deny": []},
    "env": {"A": "1", "NAME": "Łukasz ☕ \u2028"},
    "statusLine": {"type": "command", "command": "~/.claude/status.sh", "padding": 0},
}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "hooks of others": {**PLAIN, "hooks": OTHERS},
    "hooks first": {"hooks": OTHERS, **PLAIN},
    "no hooks in it": {"hooks": {}, "model": "opus"},
    "empty lists": {"model": "x", "hooks": {"PreToolUse": [], "Stop": [], "SessionStart": []}},
}


def _written(document: dict[str, Any], form: str) -> bytes:
    if form == "minified":
        return json.dumps(document, separators=(",", ":")).encode()
    if form == "one line":
        return json.dumps(document, ensure_ascii=False).encode() + b"\n"
    indent: Any = {"tabs": "\t", "two": 2, "four": 4, "none": 0}.get(form.partition(", ")[0], 2)
    text = json.dumps(document, indent=indent, ensure_ascii="escaped" in form)
    text = text.replace("\n", "\r\n") if "CRLF" in form else text
    text += "" if "no end" in form else "\r\n" if "CRLF" in form else "\n"
    return (MARK if "mark" in form else b"") + text.encode()


FORMS = (
    "two",
    "four",
    "tabs",
    "none",
    "minified",
    "one line",
    "two, CRLF",
    "tabs, CRLF, mark",
    "four, no end, escaped",
    "two, mark, no end",
)

ODD: dict[str, bytes | None] = {
    "no file": None,
    "empty": b"",
    "blanks": b" \n\t\r\n",
    "only a mark": MARK,
    "empty object": b"{}",
    "empty object and line": b"{}\n",
    "empty object with blanks": b"{ \n }\n",
    "empty hooks with blanks": b'{\n  "hooks": {\n  }\n}\n',
    "empty list with blanks": b'{"hooks": {"Stop": [  ]} }',
    "blanks around": b'\n\n  {\n    "model": "x"\n  }\n\n\n',
    "colons far away": b'{\n  "model" : "x" ,\n  "hooks" : { "Stop" : [ ] }\n}',
    "commas first": b'{ "a": 1\n, "b": 2\n, "hooks": {\n  "Stop": []\n  }\n}\n',
    "all on few lines": b'{"a": 1,\n"hooks": {"Stop": [{"hooks": []}],\n"Foo": []}}\n',
    "list over lines": b'{"hooks": {"Stop": [\n  {"hooks": []},\n  {"hooks": []}\n]}}',
    "names twice": b'{"hooks": {"Stop": []}, "model": "x", "hooks": {"Foo": [], "Foo": []}}',
    "events twice": b'{"hooks": {"Stop": [], "Stop": [{"hooks": [{"command": "a"}]}]}}',
    "names escaped": b'{"\\u0068ooks": {"\\u0053top": []}, "\\ud83d\\ude00": "\\ud83d"}',
    "numbers": b'{"a": -0.0, "b": 1E400, "c": 12345678901234567890123, "d": 1.50}',
    "odd groups": b'{"hooks": {"Stop": [null, 1, "x", [], {}, {"hooks": 5}, {"hooks": [7, {}]}]}}',
    "odd commands": b'{"hooks": {"Stop": [{"hooks": [{"command": 5}, {"command": "takeback"}]}]}}',
    "deep": b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b', "hooks": {}}',
    "deep in a hook": b'{"hooks": {"Stop": [' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b"]}}",
    "big": json.dumps({"env": {f"K{n}": "v" * 90 for n in range(3000)}}, indent=2).encode(),
    "long string": json.dumps({"a": 'x"\\\n' * 50_000, "hooks": {"Stop": []}}).encode(),
    "old line ends": b'{\r  "model": "x",\r  "hooks": {}\r}\r',
    "mixed line ends": b'{\r\n  "model": "x",\n  "hooks": {\r\n    "Stop": []\n  }\r\n}\n',
    "indented oddly": b'{\n   "a": 1,\n "hooks": {\n         "Stop": [\n  ]\n}\n}\n',
    "delete sign": b'{"a": "\x7f\xc2\x85\xe2\x80\xa8"}',
}

SLOW = ("big", "deep", "deep in a hook", "long string")

REFUSED: dict[str, bytes] = {
    "hooks null": b'{"hooks": null}',
    "hooks a list": b'{"hooks": []}',
    "hooks a string": b'{"hooks": "x"}',
    "an event null": b'{"hooks": {"Stop": null}}',
    "an event an object": b'{"hooks": {"Stop": {}}}',
    "a list": b"[]",
    "a number": b"1",
    "comments": b'{\n  // mine\n  "model": "x"\n}',
    "comma at the end": b'{"model": "x",}',
    "comma at the end of a list": b'{"model": ["x",]}',
    "comma missing": b'{"a": 1 "b": 2}',
    "colon missing": b'{"a" 1}',
    "value missing": b'{"a": }',
    "single quotes": b"{'a': 1}",
    "torn": b'{"hooks": {"Stop": [',
    "torn in a string": b'{"hooks": "x',
    "more behind": b"{} {}",
    "not a number": b'{"a": NaN}',
    "leading zero": b'{"a": 01}',
    "bare tab": b'{"a": "\t"}',
    "bad escape": b'{"a": "\\x41"}',
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "other blanks": b'{\xc2\xa0"a": 1}',
    "other digits": '{"a": ٣}'.encode(),
    "two marks": MARK + MARK + b"{}",
}


def varied() -> dict[str, bytes | None]:
    """Every settings file that an install has to cope with, by what is special about it."""
    usual = {
        f"{name}: {form}": _written(document, form)
        for (name, document), form in itertools.product(DOCUMENTS.items(), FORMS)
    }
    return {**usual, **ODD}


# -- TOML --------------------------------------------------------------------------------------

TABLES = {
    "nothing": "",
    "comments": "# mine\n\n  # and this\n",
    "keys": 'model = "x"\ntheme=\'dark\'\n"odd key" = 1\n',
    "tables": 'model = "x"\n\n[providers.fake]\ntype = "openai"\nurl = "http://x/#"\n',
    "many tables": '[a]\n[a.b]\nx = 1\n\n[[models]]\nname = "m"\n[[models]]\nname = "n"\n# end\n',
    "hooks of others": '[[hooks]]\nevent = "Stop"\ncommand = "say done"\n\n[ui]\nx = true\n',
    "hooks last": '[ui]\nx = true\n[[ hooks ]]  # mine\nevent = "Stop"\ncommand = "say"\n',
    "like tables": 'a = """\n[[hooks]]\ncommand = 1\n"""\nb = [\n  [1],\n  ["x"]\n]\n',
    "values": "a = nan\nb = -inf\nc = 0xFF\nd = 1979-05-27T07:32:00Z\ne = 1_000\nf = {g = 1}\n",
    "words": "a = \"Łukasz ☕ \\u2028\"\nb = '''\n  raw \\ text\n'''\n",
}
ENDS = ("as it is", "no end", "CRLF", "CRLF, no end", "blank lines", "indented")


def _ended(text: str, form: str) -> bytes:
    if form == "indented":
        lines = text.splitlines(keepends=True)
        text = "".join(f"  {line}" if line.startswith(("[", "model")) else line for line in lines)
    text += "\n \n\n" if form == "blank lines" else ""
    text = text.rstrip("\n") if "no end" in form else text
    return (text.replace("\n", "\r\n") if "CRLF" in form else text).encode()


REFUSED_TOML: dict[str, bytes] = {
    "hooks a string": b'hooks = "x"\n',
    "hooks a list": b'hooks = [{event = "Stop", command = "x"}]\n',
    "hooks a table": b"[hooks]\nx = 1\n",
    "torn": b"[hooks\n",
    "torn in a string": b'a = "x\n',
    "a value is missing": b"a =\n",
    "a key twice": b"a = 1\na = 2\n",
    "JSON": b'{"a": 1}',
    "not UTF-8": b'a = "\xff"\n',
    "old line ends": b"a = 1\rb = 2\r",
    "a mark": MARK + b"a = 1\n",
}


def varied_toml() -> dict[str, bytes | None]:
    """The same in TOML."""
    usual = {
        f"{name}: {end}": _ended(text, end)
        for (name, text), end in itertools.product(TABLES.items(), ENDS)
    }
    different = {data: name for name, data in reversed(usual.items())}
    return {"no file": None, **{name: data for data, name in different.items()}}


def varied_for(agent: Agent) -> dict[str, dict[str, bytes]]:
    """What may be in an agent's folder before an install: each file and what it holds.

    What takes long is for `varied` and the tests of one agent.
    """
    quick = {name: data for name, data in varied().items() if name not in SLOW}
    if agent.form == FILES:
        own = agent.file_names()[0]
        folder = own.rpartition("/")[0]
        beside = {f"{name} beside": data for name, data in quick.items() if data is not None}
        return {"no file": {}} | {
            name: {f"{folder}/other.json".lstrip("/"): data} for name, data in beside.items()
        }
    files = varied_toml() if agent.form == BLOCK else quick
    return {name: {agent.file: data} if data is not None else {} for name, data in files.items()}


# -- folders -----------------------------------------------------------------------------------


def write(folder: Path, files: dict[str, bytes]) -> None:
    """What the user has in an agent's folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o640)


def contents(folder: Path) -> Contents:
    """Mode and content of every file below a folder; nothing for a folder that is not there."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
