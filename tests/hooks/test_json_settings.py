"""Hooks are put into the text of settings and taken out again; everything else stays."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import settings_files
from takeback.agents.dialects import claude_code, codex
from takeback.errors import RefusedError
from takeback.hooks.command import is_ours, line, paths, script, script_of, shared_line
from takeback.hooks.settings import json_settings
from takeback.model import tools, words

SCRIPT = "/srv/ana/.local/share/takeback/takeback-hook"
WANTED = claude_code.AGENT.groups(line(SCRIPT), line(SCRIPT, tells=True))
VARIED = settings_files.varied()
# Where the blanks in something empty were, only the backup knows.
ONLY_IN_THE_BACKUP = {
    "no file", "empty", "blanks", "only a mark", "empty object with blanks", "indented oddly",
    "empty hooks with blanks", "empty list with blanks", "colons far away",
}  # fmt: skip


def text_of(name: str) -> str:
    """One of the varied files."""
    return (VARIED[name] or b"").decode()


def as_json(text: str) -> dict[str, Any]:
    """What a text says."""
    said: dict[str, Any] = json.loads(text.removeprefix("\ufeff").strip() or "{}")
    return said


def test_there_are_enough_files() -> None:
    """Fifty files or more, no two of them the same."""
    assert len(set(VARIED.values())) == len(VARIED) >= 50


@pytest.mark.parametrize("name", VARIED)
def test_what_is_put_in_is_taken_out(name: str) -> None:
    """Each varied text gets all hooks, gets them once, and is the same text without them."""
    before = text_of(name)
    after = json_settings.put_in(before, WANTED)
    assert json_settings.is_complete(after, WANTED)
    assert json_settings.put_in(after, WANTED) == after
    out = json_settings.take_out(after, before)
    if name in ONLY_IN_THE_BACKUP:
        assert as_json(out) == as_json(before)
    else:
        assert out == before


@pytest.mark.parametrize("name", [name for name in VARIED if not name.startswith("deep")])
def test_only_hooks_are_added(name: str) -> None:
    """What a text said it still says; hooks of others come first, and in their order."""
    before, after = as_json(text_of(name)), as_json(json_settings.put_in(text_of(name), WANTED))
    hooks = after.pop("hooks")
    for event, group in WANTED.items():
        assert hooks[event].pop() == group
    others = {event: groups for event, groups in hooks.items() if groups}
    assert others == {e: g for e, g in before.pop("hooks", {}).items() if g}
    assert after == before


@pytest.mark.parametrize(
    ("name", "data"),
    [(n, d) for n, d in settings_files.REFUSED.items() if n not in {"not UTF-8", "UTF-16"}],
)
def test_what_no_agent_can_mean_is_refused(name: str, data: bytes) -> None:
    """A text that is no JSON, or has something else where hooks belong, is an error."""
    assert name
    with pytest.raises(RefusedError):
        json_settings.put_in(data.decode(), WANTED)


def test_where_the_json_is_wrong_is_said() -> None:
    """The message of a text that is no JSON has the line and the column."""
    with pytest.raises(RefusedError, match="line 2, column 3: this is not a name in quotes"):
        json_settings.put_in(settings_files.REFUSED["comments"].decode(), WANTED)


STYLES = {
    "two spaces": ('{\n  "a": 1\n}\n', ',\n  "hooks": {\n    "Stop": [\n      {\n        "hooks"'),
    "tabs": ('{\n\t"a": 1\n}', ',\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{\n\t\t\t\t"hooks"'),
    "CRLF": ('{\r\n  "a": 1\r\n}', ',\r\n  "hooks": {\r\n    "Stop": [\r\n      {\r\n'),
    "minified": ('{"a":1}', ',"hooks":{"Stop":[{"hooks":[{"type":"command",'),
    "one line": ('{"a": 1}', ', "hooks": {"Stop": [{"hooks": [{"type": "command", '),
    "a list on one line": (
        '{\n  "hooks": {\n    "Stop": [{"hooks": []}]\n  }\n}\n',
        '[{"hooks": []}, {"hooks": [{"type": "command", ',
    ),
}


@pytest.mark.parametrize(("before", "part"), STYLES.values(), ids=STYLES)
def test_what_is_added_looks_like_the_rest(before: str, part: str) -> None:
    """Indentation, line ends and blanks are those of the text around it."""
    assert part in json_settings.put_in(before, {"Stop": WANTED["Stop"]})


# -- texts that were changed since -------------------------------------------------------------


def test_what_others_added_since_stays() -> None:
    """Groups and events that others put behind, before or into ours stay when ours go."""
    said = as_json(json_settings.put_in(text_of("hooks of others: two"), WANTED))
    other = {"type": "command", "command": "mine"}
    said["hooks"]["Stop"].append({"hooks": [other]})
    said["hooks"]["PreToolUse"].insert(0, {"hooks": [other]})
    said["hooks"]["SessionEnd"][0]["hooks"].append(other)
    said["hooks"]["PreCompact"] = [{"hooks": [other]}]
    said["model"] = "haiku"
    left = as_json(json_settings.take_out(json.dumps(said, indent=4)))
    assert left["model"] == "haiku"
    assert left["hooks"] == {
        **settings_files.OTHERS,
        "PreToolUse": [{"hooks": [other]}, *settings_files.OTHERS["PreToolUse"]],
        "Stop": [{"hooks": [other]}],
        "SessionEnd": [{"hooks": [other]}],
        "PreCompact": [{"hooks": [other]}],
    }


def test_an_outdated_hook_is_replaced_where_it_stands() -> None:
    """A new place of Takeback changes our hooks and moves nobody else's."""
    old = claude_code.AGENT.groups(line("/old/takeback-hook"), "x")
    old["UserPromptSubmit"]["hooks"][0]["command"] = old["Stop"]["hooks"][0]["command"]
    said = as_json(json_settings.put_in(text_of("hooks of others: two"), old))
    said["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "mine"}]})
    before = json.dumps(said, indent=2)
    after = json_settings.put_in(before, WANTED)
    assert json_settings.is_complete(after, WANTED)
    assert as_json(after)["hooks"]["Stop"] == [WANTED["Stop"], said["hooks"]["Stop"][1]]
    assert json_settings.take_out(after) == json_settings.take_out(before)


def test_doubled_and_foreign_events_of_ours_are_put_right() -> None:
    """Hooks of ours that are there twice, or at events that are not wanted any more, go."""
    said = as_json(json_settings.put_in("{}", WANTED))
    said["hooks"]["Stop"] *= 2
    said["hooks"]["PreCompact"] = said["hooks"]["Stop"][:1]
    after = json_settings.put_in(json.dumps(said), WANTED)
    assert as_json(after)["hooks"] == {event: [group] for event, group in WANTED.items()}


def test_a_file_of_ours_alone_becomes_empty() -> None:
    """Nothing is left of a text that held nothing else."""
    assert json_settings.is_empty(json_settings.take_out(json_settings.put_in("", WANTED)))
    assert not json_settings.is_empty('{"a": 1}')


# -- what is put in ----------------------------------------------------------------------------


def test_the_command_line_never_changes() -> None:
    """Codex trusts a hook by the hash of its command line; this is it, for every version."""
    always = f"test -r {SCRIPT} && exec /bin/sh {SCRIPT}"
    assert line(SCRIPT) == f"{always} || true"
    assert line(SCRIPT, tells=True) == (
        f"{always}"
        ' || echo \'{"systemMessage": "Takeback is gone, so this turn is not covered.'
        " Install it again, or remove its hooks.\"}'"
    )
    assert shared_line() == ("command -v takeback >/dev/null 2>&1 && exec takeback hook || true")


@pytest.mark.parametrize("name", ["a", "a b", "it's", 'say "so"', "$HOME `x`", "é", "a=b", "#"])
def test_a_command_line_is_known_again(name: str, tmp_path: Path) -> None:
    """Whatever is in the path, the command line is seen as ours, and its paths are found."""
    folder = tmp_path / name
    folder.mkdir()
    file = folder / "takeback-hook"
    made = line(str(file), started_in="STARTED_IN")
    assert is_ours(made)
    assert script_of(made) == str(file)
    assert paths(made) == ("", "")
    programs = f"{folder}/python", f"{folder}/takeback/__main__.py"
    file.write_text(script(*programs))
    assert paths(made) == programs
    assert shlex.split(made)[-3:] == ["$STARTED_IN", "||", "true"]
    assert is_ours(shared_line(started_in="STARTED_IN"))


def test_a_command_line_of_before_is_known_too() -> None:
    """What was installed before there was a client in C works on, and can be taken out."""
    old = "test -x '/a b/python' -a -f /l/takeback/__main__.py"
    old += " && exec '/a b/python' -I -S /l/takeback/__main__.py hook || true"
    assert is_ours(old)
    assert paths(old) == ("/a b/python", "/l/takeback/__main__.py")


@pytest.mark.parametrize(
    "command",
    ["", "takeback hook", "python -m takeback hook", "/a/takeback/__main__.py", "echo takeback",
     "exec /bin/sh /a/not-takeback-hook", "/bin/sh /a/takeback-hooks", "exec takeback hooks",
     "python -I -S /a/takeback/__main__.py status", "x -I -S /a/nottakeback/__main__.py hook"],
)  # fmt: skip
def test_the_commands_of_others_are_not_ours(command: str) -> None:
    """What a person wrote, or another program, is left alone."""
    assert not is_ours(command)


def test_every_event_that_we_hear_is_installed() -> None:
    """The events of each agent are those that its dialect knows, with a time limit each."""
    assert tuple(WANTED) == tuple(claude_code.AGENT.kinds)
    codexs = codex.AGENT.groups("x", "y")
    assert tuple(codexs) == tuple(codex.KINDS)
    assert all(0 < group["hooks"][0]["timeout"] <= 300 for group in WANTED.values())
    assert codexs["SessionEnd"]["hooks"][0]["timeout"] == 3
    assert not any("matcher" in group for group in codexs.values())


def test_tools_that_only_read_are_left_out() -> None:
    """The matcher leaves out readers that we would pass over anyway, and nothing else."""
    matcher = re.compile(WANTED["PreToolUse"]["matcher"])
    for name in claude_code.READERS:
        assert tools.kind_of(name) == words.READ
        assert not matcher.search(name)
    firing = ("Bash", "Edit", "Write", "NotebookEdit", "Agent", "Task", "KillShell", "Skill",
              "mcp__files__read", "mcp__x__Read", "ReadAndWrite", "Unread", "", "read")  # fmt: skip
    assert [name for name in firing if not matcher.search(name)] == []
    with_matcher = {event for event, group in WANTED.items() if "matcher" in group}
    uses = {"PreToolUse", "PostToolUse", "PostToolUseFailure"}
    assert with_matcher == {"PermissionRequest", *uses}
