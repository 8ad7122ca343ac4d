"""The plugin's folder, as Claude Code, Agent Plugins and Agent Skills want it."""

import fnmatch
import json
import re
import tomllib
from pathlib import Path

import takeback
from takeback.agents import typed
from takeback.mcp.tools import TOOLS

PACKAGE = Path(takeback.__file__).parent
PLUGIN = PACKAGE / "plugin/claude-code"
SKILL = PLUGIN / "skills/takeback/SKILL.md"
SCHEMA = "https://agent-plugins.org/schemas/1.0.0/"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def front(text: str) -> tuple[dict[str, str], str]:
    """The fields at the head of a Markdown file, and what follows."""
    assert text.startswith("---\n")
    head, _, body = text[4:].partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return fields, body


def test_the_skill_is_valid() -> None:
    """By the rules of agentskills.io."""
    fields, body = front(SKILL.read_text())
    allowed = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert set(fields) <= allowed
    assert NAME.fullmatch(fields["name"])
    assert fields["name"] == SKILL.parent.name
    assert len(fields["name"]) <= 64
    assert 0 < len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert 0 < len(body.splitlines()) < 500


def test_the_skill_names_tools_that_are_there() -> None:
    """And the steps that an agent needs."""
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", SKILL.read_text()))
    tools = {"checkpoint", "log", "diff", "lessons", "preview_undo", "preview_rollback", "apply",
             "apply_asking", "note_lesson"}  # fmt: skip
    assert tools <= named & set(TOOLS)
    assert {name for name in named if "_" in name} - set(TOOLS) <= {"needs_user"}


def test_it_is_an_agent_plugin() -> None:
    """With the two files that the standard wants at its root, and nothing that it does not know."""
    about = json.loads((PLUGIN / "plugin.json").read_text())
    known = {"$schema", "name", "version", "description", "author", "homepage", "repository",
             "license", "keywords", "extensions"}  # fmt: skip
    assert set(about) <= known
    assert about["$schema"] == f"{SCHEMA}plugin.schema.json"
    assert NAME.fullmatch(about["name"])
    servers = json.loads((PLUGIN / "mcp.json").read_text())
    assert set(servers) == {"$schema", "mcpServers"}
    (server,) = servers["mcpServers"].values()
    assert server == {"type": "stdio", "command": "takeback", "args": ["mcp"]}


def test_its_commands_are_carried_out_by_the_hook() -> None:
    """Each is one that can be typed as `tb …`, too; no model is asked, whatever it says."""
    commands = sorted((PLUGIN / "commands").glob("*.md"))
    assert [path.stem for path in commands] == ["log", "undo", "why"]
    for path in commands:
        fields, body = front(path.read_text())
        assert fields["disable-model-invocation"] == "true"
        assert "!`" not in body, "it would run beside the hook"
        found = typed.read(f"/takeback:{path.stem}")
        assert found is not None
        assert found.verb == path.stem
    for other in ("/takeback:redo now", "/takeback:rm", "/takeback:", "say /takeback:undo"):
        assert typed.read(other) is None


def test_all_of_it_is_in_the_wheel() -> None:
    """Every file matches a pattern of the package's data."""
    settings = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["takeback"]
    files = [str(path.relative_to(PACKAGE)) for path in PLUGIN.rglob("*") if path.is_file()]
    assert len(files) >= 9
    for file in files:
        fits = [each for each in patterns if fnmatch.fnmatch(file, each)]
        assert any(each.count("/") == file.count("/") for each in fits), file
