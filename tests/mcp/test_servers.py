"""The server as a process, with either major version of the SDK, and without it."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

import takeback
from agents import Agent
from clients.packages import CannotInstallError, PyPI, ensure
from served import ERAS, Served
from takeback.errors import RefusedError
from takeback.mcp import serve

FIRST = PyPI("mcp", "1.30.0", "bin/python")
"""The newest of the first major version."""
SOURCE = Path(takeback.__file__).parents[1]
OURS = next(path for path in map(Path, sys.path) if (path / "pygit2").is_dir())
START = f"""
import sys
sys.path += [{str(SOURCE)!r}, {str(OURS)!r}]
sys.argv = ["takeback", "mcp"]
from takeback.cli.app import entry
entry()
"""
CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

async def main():
    said = json.load(sys.stdin)
    command = ["-I", "-c", said["start"]]
    asked = []
    async def ask(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"apply": True})
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    asking = ask if said["asks"] else None
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, elicitation_callback=asking) as it:
            await it.initialize()
            listed = (await it.list_tools()).tools
            tools = {tool.name: tool.annotations.readOnlyHint for tool in listed}
            found = await it.call_tool(said["tool"], said["given"])
            print(json.dumps([tools, found.structuredContent, found.isError, asked]))

asyncio.run(main())
"""


@pytest.mark.parametrize("era", ERAS)
def test_a_real_process(era: str, tree: Path, home: Path) -> None:
    """On stdin and stdout, with nothing else printed there; it ends with its client."""
    (tree / "one.txt").write_text("one\n")
    words = ["-I", "-m", "takeback", "mcp", "-C", str(tree)]
    environment = {**os.environ, "TAKEBACK_HOME": str(home)}
    server = StdioServerParameters(command=sys.executable, args=words, env=environment)

    async def called() -> tuple[int, Any, Any]:
        async with mcp.Client(stdio_client(server), mode=era) as client:
            tools = (await client.list_tools()).tools
            made = await client.call_tool("checkpoint", {"label": "start"})
            return len(tools), made, await client.call_tool("status", {})

    count, made, status = asyncio.run(called())
    assert count == 11
    assert made.structured_content["names"] == ["start"]
    assert status.structured_content["newest"]["names"] == ["start"]


def test_without_the_sdk(monkeypatch: pytest.MonkeyPatch, tree: Path) -> None:
    """The error names the command that installs it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RefusedError, match="needs the package `mcp`") as refused:
        serve.server(Served(tree, ERAS[0]).door())
    assert "pip install 'takeback[mcp]'" in refused.value.hint


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_major_version_of_the_sdk(tree: Path, home: Path) -> None:
    """The same tools and answers, and questions in the middle of a call, with its own client."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "takeback-clients"
    try:
        python = ensure(cache, "mcp", FIRST) / "bin/python"
    except CannotInstallError as problem:
        pytest.skip(f"NOT PROVEN: mcp {FIRST.version} cannot be installed here: {problem}")

    def call(tool: str, *, asks: bool = False, **given: object) -> tuple[Any, Any, bool, list[str]]:
        said = {"start": START, "tool": tool, "given": given, "asks": asks}
        done = subprocess.run(
            [python, "-I", "-c", CLIENT],
            input=json.dumps(said),
            cwd=tree,
            env={**os.environ, "TAKEBACK_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )
        tools, fields, is_error, asked = json.loads(done.stdout)
        return tools, fields, is_error, asked

    agent = Agent(tree)
    agent.prompt("write one")
    agent.edit("one.txt", "one\n")
    agent.stop()
    agent.prompt("write two")
    agent.edit("two.txt", "two\n")
    tools, plan, _, _ = call("preview_undo", turns=["write two"])
    assert tools == {
        tool.name: tool.annotations.read_only_hint for tool in Served(tree, ERAS[0]).tools()
    }
    running = agent.begin("mcp__takeback__apply", {"plan": plan["plan"]})
    assert call("apply", plan=plan["plan"])[1]["done"]
    running.over()
    assert not (tree / "two.txt").exists()
    _, wrong, is_error, _ = call("log", limit="many")
    assert is_error
    assert wrong["message"] == "`limit` has to be a whole number from 1 to 200"
    _, plan, _, _ = call("preview_undo", turns=["write one"])
    assert call("apply_asking", plan=plan["plan"])[1]["command"] == f"takeback apply {plan['plan']}"
    _, done, _, asked = call("apply_asking", asks=True, plan=plan["plan"])
    assert done["done"]
    assert 'Take back "write one"' in asked[0]
    assert not (tree / "one.txt").exists()
