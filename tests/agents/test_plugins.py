"""OpenCode, Kilo and pi: what our plugins pipe is recorded, and what they are answered."""

import json
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from takeback.agents.dialects import kilo, opencode, pi
from takeback.model.history import RecordedTurn


class Plugged:
    """OpenCode or Kilo with our plugin, in a project."""

    def __init__(self, project: takeback.Project, tree: Path, agent: str) -> None:
        self.project = project
        self.tree = tree
        self.agent = agent

    def pipe(self, hook: str, given: dict[str, object], out: object = None, **more: object) -> Any:  # noqa: ANN401 -- JSON
        """One event, as the plugin pipes it."""
        where = {"session": "ses_1", "cwd": str(self.tree)}
        own = {"sessionID": more.get("subagent", "ses_1"), **given}
        marks = {"agent": self.agent, "hook": hook, **where, **more}
        return heard({**marks, "input": own, "output": out})

    def prompt(self, id: str, *texts: str, synthetic: bool = False, **more: object) -> Any:  # noqa: ANN401 -- JSON
        """A prompt."""
        parts = [{"type": "text", "text": text, "synthetic": synthetic} for text in texts]
        return self.pipe("chat.message", {}, {"message": {"id": id}, "parts": parts}, **more)

    def before(self, call: str, tool: str, **args: object) -> Any:  # noqa: ANN401 -- JSON
        """A call begins."""
        subagent = {"subagent": args.pop("subagent")} if "subagent" in args else {}
        given: dict[str, object] = {"tool": tool, "callID": call}
        return self.pipe("tool.execute.before", given, {"args": args}, **subagent)

    def after(self, call: str, tool: str, about: dict[str, object], **args: object) -> Any:  # noqa: ANN401 -- JSON
        """It ended."""
        subagent = {"subagent": args.pop("subagent")} if "subagent" in args else {}
        given: dict[str, object] = {"tool": tool, "callID": call, "args": args}
        said = {"title": "", "output": "said", "metadata": about}
        return self.pipe("tool.execute.after", given, said, took=1, **subagent)

    def idle(self, turn: str, **more: object) -> None:
        """The agent is done."""
        self.pipe("event:session.idle", {}, turn=turn, **more)

    def write(self, id: str, name: str) -> None:
        """A turn that writes a file."""
        self.prompt(id, f"write {name}")
        self.before(f"call-{id}", "write", filePath=str(self.tree / name))
        (self.tree / name).write_text("new\n")
        self.after(f"call-{id}", "write", {}, filePath=str(self.tree / name))
        self.idle(id)

    def turns(self) -> list[RecordedTurn]:
        """The turns in the log, the oldest first."""
        log = self.project.log().turns
        return [self.project.turn(turn.id) for turn in reversed(log)]


@pytest.fixture(params=["opencode", "kilo"])
def plugged(tree: Path, home: Path, request: pytest.FixtureRequest) -> Iterator[Plugged]:
    """A project with one of the two."""
    assert home.is_dir()
    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as project:
        yield Plugged(project, tree, request.param)


def test_a_turn_by_edit_tool_and_shell(plugged: Plugged) -> None:
    """Each change has its author, a command its exit code, and undo tells the model."""
    tree = plugged.tree
    plugged.prompt("msg_1", "make it", "now")
    plugged.before("c1", "write", filePath=str(tree / "new.txt"), content="new\n")
    (tree / "new.txt").write_text("new\n")
    plugged.after("c1", "write", {}, filePath=str(tree / "new.txt"), content="new\n")
    plugged.before("c2", "bash", command="rm a.txt; exit 3")
    (tree / "a.txt").unlink()
    plugged.after("c2", "bash", {"exit": 3}, command="rm a.txt; exit 3")
    plugged.idle("msg_1")
    (turn,) = plugged.turns()
    assert (turn.agent, turn.status, turn.label) == (plugged.agent, "done", "make it\nnow")
    assert {change.path: change.author.how for change in turn.changes} == {
        "new.txt": "named",
        "a.txt": "shell",
    }
    assert [step.exit_code for step in turn.steps] == [None, 3]
    plugged.project.undo()
    assert sorted(path.name for path in tree.iterdir()) == ["a.txt"]
    said = plugged.prompt("msg_2", "and now?")
    assert "The user took back what you did" in said["note"]


def test_a_subagent_works_for_the_turn(plugged: Plugged) -> None:
    """Its prompt is no human's and its idleness no end; a call that failed leaves none open."""
    tree = plugged.tree
    plugged.prompt("msg_1", "send somebody")
    plugged.before("c1", "task", prompt="do it")
    assert plugged.prompt("msg_2", "do it", subagent="ses_2") == {}
    plugged.before("c2", "write", filePath=str(tree / "sub.txt"), subagent="ses_2")
    (tree / "sub.txt").write_text("sub\n")
    plugged.after("c2", "write", {}, filePath=str(tree / "sub.txt"), subagent="ses_2")
    plugged.before("c3", "edit", filePath=str(tree / "a.txt"), subagent="ses_2")
    part = {"type": "tool", "callID": "c3", "state": {"status": "error", "error": "not there"}}
    plugged.pipe("event:message.part.updated", {"part": part}, subagent="ses_2")
    plugged.idle("msg_2", subagent="ses_2")
    assert [turn.status for turn in plugged.turns()] == ["running"]
    plugged.after("c1", "task", {"sessionId": "ses_2"}, prompt="do it")
    plugged.idle("msg_1")
    (turn,) = plugged.turns()
    assert (turn.label, turn.status) == ("send somebody", "done")
    assert {change.path for change in turn.changes} == {"sub.txt"}
    assert [step.status for step in turn.steps] == ["done", "done", "failed"]


def test_a_subagent_in_the_background_works_for_its_turn(plugged: Plugged) -> None:
    """What it writes behind the stop is the turn's, and the notice of its end is no prompt."""
    tree = plugged.tree
    plugged.prompt("msg_1", "send somebody")
    plugged.before("c1", "task", prompt="do it", background=True)
    about: dict[str, object] = {"sessionId": "ses_2", "background": True}
    plugged.after("c1", "task", about, prompt="do it", background=True)
    plugged.idle("msg_1")
    plugged.before("c2", "bash", command="touch late.txt", subagent="ses_2")
    (tree / "late.txt").write_text("late\n")
    plugged.after("c2", "bash", {"exit": 0}, command="touch late.txt", subagent="ses_2")
    plugged.idle("msg_2", subagent="ses_2")
    plugged.prompt("msg_3", '<task id="ses_2" state="completed">', synthetic=True)
    plugged.idle("msg_3")
    (turn,) = plugged.turns()
    assert turn.label == "send somebody"
    assert {change.path for change in turn.changes} == {"late.txt"}


def test_escape_interrupts_the_turn(plugged: Plugged) -> None:
    """What is done by hand afterwards is the user's."""
    plugged.prompt("msg_1", "go")
    plugged.before("c1", "bash", command="slow")
    (plugged.tree / "half.txt").write_text("half\n")
    plugged.after("c1", "bash", {"exit": None}, command="slow")
    plugged.idle("msg_1", aborted=True)
    (plugged.tree / "mine.txt").write_text("mine\n")
    (turn,) = plugged.turns()
    assert (turn.status, [change.path for change in turn.changes]) == ("interrupted", ["half.txt"])
    plugged.project.undo()
    assert sorted(path.name for path in plugged.tree.iterdir()) == ["a.txt", "mine.txt"]


def test_a_late_stop_ends_its_own_turn(plugged: Plugged) -> None:
    """Not the one that began meanwhile."""
    plugged.prompt("msg_1", "go")
    plugged.prompt("msg_2", "another one")
    plugged.idle("msg_1")
    assert [turn.status for turn in plugged.turns()][1] == "running"


def test_going_back_is_noticed_at_the_next_prompt(plugged: Plugged) -> None:
    """The plugin names the first prompt that is gone; the files are offered if they stayed."""
    plugged.write("msg_1", "first.txt")
    plugged.write("msg_2", "second.txt")
    said = plugged.prompt("msg_3", "something else", rewound="msg_2")
    _, second, third = plugged.turns()
    assert f"takeback rollback {second.id[:8]}-" in said["systemMessage"]
    assert third.went_back == second.id


def test_going_back_with_the_files_says_nothing(plugged: Plugged) -> None:
    """`/undo` brings back files, too; if they are as they were then, there is nothing to do."""
    plugged.write("msg_1", "first.txt")
    plugged.write("msg_2", "second.txt")
    (plugged.tree / "second.txt").unlink()
    assert plugged.prompt("msg_3", "something else", rewound="msg_2") == {}
    _, second, third = plugged.turns()
    assert third.went_back == second.id


def test_a_dialog_that_is_answered_with_no_leaves_hand_edits(plugged: Plugged) -> None:
    """What is saved while the user is asked is the user's."""
    plugged.prompt("msg_1", "go")
    plugged.before("c1", "bash", command="rm a.txt")
    plugged.pipe("event:permission.asked", {"id": "per_1", "tool": {"callID": "c1"}})
    (plugged.tree / "mine.txt").write_text("mine\n")
    why = "The user rejected permission to use this specific tool call."
    part = {"type": "tool", "callID": "c1", "state": {"status": "error", "error": why}}
    plugged.pipe("event:message.part.updated", {"part": part})
    plugged.idle("msg_1")
    (turn,) = plugged.turns()
    assert [step.status for step in turn.steps] == ["refused"]
    assert not turn.changes


# -- the plugins themselves ------------------------------------------------------------------


def require_node() -> str:
    """Node; without it the plugins are only tested with the real clients."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing")
    return node


def played(tmp_path: Path, files: dict[str, str], play: str) -> list[Any]:
    """What a plugin does, played by Node: what it printed, line by line."""
    (text,) = files.values()
    (tmp_path / "plugin.mjs").write_text(text)
    (tmp_path / "play.mjs").write_text(textwrap.dedent(play))
    words = [require_node(), str(tmp_path / "play.mjs")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


PLAY = """
    import { Takeback } from "./plugin.mjs"
    const say = (what) => console.log(JSON.stringify(what))
    const client = { session: { get: async () => ({}) }, tui: { showToast: async () => {} } }
    const hooks = await Takeback({ client, directory: "/project" })
    const output = { message: { id: "m1" }, parts: [{ id: "p1", type: "text", text: "go" }] }
    await hooks["chat.message"]({ sessionID: "s1" }, output)
    say(output.parts.map((part) => part.text))
    const call = { tool: "bash", sessionID: "s1", callID: "c1" }
    let problem = ""
    await hooks["tool.execute.before"](call, { args: {} }).catch((why) => (problem = why.message))
    say(problem)
    const result = { output: "said" }
    await hooks["tool.execute.after"]({ ...call, args: {} }, result)
    say(result.output)
    await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
    await hooks.event({ event: { type: "unheard of" } })
    await hooks.dispose()
    say("over")
"""


@pytest.mark.parametrize(
    ("command", "parts", "problem", "output"),
    [
        ("""echo '{"note": "a note"}'""", ["go", "a note"], "", "said\n\na note"),
        ("""echo '{"deny": "no"}'""", ["go"], "no", "said"),
        ("echo this is no answer", ["go"], "", "said"),
        ("echo null", ["go"], "", "said"),
        ("exit 1", ["go"], "", "said"),
        ("kill -9 $$", ["go"], "", "said"),
        ("/nonexistent/takeback", ["go"], "", "said"),
    ],
)
def test_the_plugin_does_what_it_is_answered(
    command: str, parts: list[str], problem: str, output: str, tmp_path: Path
) -> None:
    """A note reaches the model, a denial is thrown; whatever else happens, the agent goes on."""
    files = opencode.AGENT.files(command, command)
    assert played(tmp_path, files, PLAY) == [parts, problem, output, "over"]


def test_the_plugin_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A hook that hangs is ended when its time is over."""
    ((name, text),) = opencode.AGENT.files("sleep 100", "sleep 100").items()
    quick = text.replace("300_000", "200").replace("60_000", "200").replace("10_000", "200")
    assert quick != text
    assert played(tmp_path, {name: quick}, PLAY) == [["go"], "", "said", "over"]


def test_the_plugin_pipes_what_is_read(tmp_path: Path) -> None:
    """The events of a turn with a sub-agent, each once, in their order; readers not at all."""
    log = tmp_path / "log"
    play = """
        import { Takeback } from "./plugin.mjs"
        const client = { session: { get: async () => ({}) }, tui: { showToast: async () => {} } }
        const hooks = await Takeback({ client, directory: "/project" })
        const hear = (type, properties) => hooks.event({ event: { type, properties } })
        const prompt = (sessionID, id) =>
          hooks["chat.message"]({ sessionID }, { message: { id }, parts: [] })
        const call = { tool: "bash", sessionID: "s2", callID: "c1" }
        await hear("session.created", { info: { id: "s2", parentID: "s1" } })
        await hear("message.removed", { sessionID: "s1", messageID: "m0" })
        await prompt("s1", "m1")
        await prompt("s2", "m2")
        await hooks["tool.execute.before"]({ ...call, tool: "read", callID: "c0" }, { args: {} })
        await hooks["tool.execute.after"]({ ...call, tool: "read", callID: "c0" }, { output: "" })
        await hooks["tool.execute.before"](call, { args: { command: "x" } })
        const part = { callID: "c1", state: { status: "error", error: "no" } }
        await hear("message.part.updated", { sessionID: "s2", part })
        await hear("message.part.updated", { sessionID: "s2", part })
        await hear("session.idle", { sessionID: "s2" })
        await hear("session.error", { sessionID: "s1", error: { name: "MessageAbortedError" } })
        await hear("session.idle", { sessionID: "s1" })
        await hear("session.idle", { sessionID: "s1" })
        await hooks.dispose()
    """
    command = f"cat >> {log}; echo >> {log}"
    played(tmp_path, kilo.AGENT.files(command, command), play)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    events = [opencode.AGENT.read(line) for line in lines]
    assert [(event.name, event.kind, event.session, event.subagent) for event in events] == [
        ("chat.message", "prompt", "s1", ""),
        ("tool.execute.before", "before tool", "s1", "s2"),
        ("event:message.part.updated", "batch over", "s1", "s2"),
        ("event:session.idle", "subagent stops", "s1", "s2"),
        ("event:session.idle", "interrupts", "s1", ""),
        ("dispose", "session ends", "s1", ""),
    ]
    assert [event.rewound for event in events] == ["m0", "", "", "", "", ""]
    assert {event.cwd for event in events} == {"/project"}


# -- pi --------------------------------------------------------------------------------------

PI = """
    import extension from "./plugin.mjs"
    const say = (what) => console.log(JSON.stringify(what))
    const on = {}
    let leaf = "e0", entries = [{ id: "e0" }]
    const sessionManager = {
      getSessionId: () => "s1", getSessionFile: () => "/s1.jsonl", getLeafId: () => leaf,
      getEntries: () => entries, getBranch: () => entries.filter((e) => e.on !== false),
    }
    extension({ on: (name, handler) => (on[name] = handler) })
    const ctx = { cwd: "/project", hasUI: false, sessionManager }
    const prompt = async (text) => {
      const said = await on.input({ type: "input", text, source: "interactive" }, ctx)
      say(said ?? (await on.before_agent_start({}, ctx))?.message?.content ?? null)
    }
    await on.session_start({ type: "session_start", reason: "startup" }, ctx)
    await prompt("go")
    const call = { type: "tool_call", toolName: "bash", toolCallId: "c1", input: { command: "x" } }
    say((await on.tool_call(call, ctx)) ?? null)
    const result = { ...call, type: "tool_result", content: [], isError: false }
    say((await on.tool_result(result, ctx)) ?? null)
    const end = async (stopReason) => {
      await on.agent_end({ messages: [{ role: "assistant", stopReason }] }, ctx)
      await on.agent_settled({}, ctx)
    }
    entries.push({ id: "e1", parentId: "e0" })
    leaf = "e1"
    await end("aborted")
    entries[1].on = false
    leaf = "e0"
    await prompt("go")
    await end("stop")
    await on.session_shutdown({ type: "session_shutdown", reason: "quit" }, ctx)
"""


def pi_files(command: str) -> dict[str, str]:
    """The extension without its types, which this Node may not know."""
    (text,) = pi.AGENT.files(command, command).values()
    for types in (
        ": object",
        ": string",
        ": number",
        ": any",
        ": Promise<any>",
        "<string, number>",
    ):
        text = text.replace(types, "")
    return {"takeback.ts": text.replace(": { turn; leaf }[]", "").replace(".pid!", ".pid")}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            """echo '{"note": "n"}'""",
            ["n", None, {"content": [{"type": "text", "text": "n"}]}, "n"],
        ),
        ("""echo '{"deny": "no"}'""", [None, {"block": True, "reason": "no"}, None, None]),
        ("echo no answer", [None, None, None, None]),
        ("exit 1", [None, None, None, None]),
    ],
)
def test_the_extension_does_what_it_is_answered(
    command: str, said: list[object], tmp_path: Path
) -> None:
    """A note reaches the model, a call is blocked; whatever else happens, the agent goes on."""
    assert played(tmp_path, pi_files(command), PI) == said


def test_the_extension_pipes_what_is_read(tmp_path: Path) -> None:
    """Each event of a prompt; after going back, the first prompt that is gone."""
    log = tmp_path / "log"
    played(tmp_path, pi_files(f"cat >> {log}; echo >> {log}"), PI)
    events = [pi.AGENT.read(json.loads(line)) for line in log.read_text().splitlines()]
    assert [(event.name, event.kind, event.turn) for event in events] == [
        ("session_start", "session starts", ""),
        ("input", "prompt", "e0.0"),
        ("tool_call", "before tool", "e0.0"),
        ("tool_result", "after tool", "e0.0"),
        ("agent_end", "interrupts", "e0.0"),
        ("input", "prompt", "e0.1"),
        ("agent_end", "stops", "e0.1"),
        ("session_shutdown", "session ends", ""),
    ]
    assert [event.rewound for event in events if event.name == "input"] == ["", "e0.0"]
    assert {(event.session, event.cwd) for event in events} == {("s1", "/project")}
