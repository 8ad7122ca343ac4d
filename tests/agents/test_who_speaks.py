"""Each agent is recorded under its own name, also if it runs hooks that another one installed."""

import json
import re

import pytest

from recorded import PAYLOADS, Played, client
from takeback.agents import agent as kinds
from takeback.agents.dialects import claude_code
from takeback.agents.registry import agent_of

FOLDERS = sorted(path.name for path in PAYLOADS.iterdir() if path.is_dir())
OTHER_NAMES = {"claude-agent-sdk-py": "claude-code"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_recorded_payload_is_under_its_own_name(folder: str) -> None:
    """No payload is taken for another agent's, and none of those that are hooked is unknown."""
    name = re.split(r"-\d", folder)[0]
    for path in sorted((PAYLOADS / folder).glob("*.json")):
        payload = json.loads(path.read_text())
        event = agent_of(payload).read(payload)
        assert event.agent.name == OTHER_NAMES.get(name, name), path.name
        if event.agent.kinds and event.kind != kinds.OTHER:
            assert event.session, path.name
            # Our plugins add the folder to what they are given; Goose says it only with tools.
            knows_where = not folder.endswith("-plugin") and name != "goose"
            assert not knows_where or event.cwd.startswith("/project"), path.name
        if path.stem.startswith(("BeforeAgent", "UserPrompt")) and event.agent.kinds:
            assert event.prompt, path.name
        if "in-subagent" in path.name and event.agent.kinds:
            assert event.subagent, path.name
            assert event.kind not in (kinds.PROMPT, kinds.STOPS), path.name


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        ({"hook_event_name": "beforeSubmitPrompt", "cursor_version": "3", "prompt": "x"}, "cursor"),
        ({"hook_event_name": "PreToolUse", "cursor_version": "3", "tool_use_id": "t"}, "cursor"),
        (
            {
                "hook_event_name": "PreToolUse",
                "timestamp": "2026-11-16T18:37:00Z",
                "session_id": "s",
                "tool_use_id": "t",
                "transcript_path": "/agent/chat.json",
            },
            "vs-code",
        ),
        ({"agent_action_name": "pre_user_prompt", "trajectory_id": "t"}, "windsurf"),
        ({"hook_event_name": "PreToolUse", "session_id": "s"}, "claude-code"),
    ],
)
def test_hosts_that_were_not_recorded_are_known_by_documented_fields(
    payload: dict[str, object], name: str
) -> None:
    """Cursor, VS Code and Windsurf; what has no sign is Claude Code's, as before."""
    assert agent_of(payload).name == name


@pytest.mark.parametrize("own", [{"prompt_id": "p"}, {"turn_id": "t"}], ids=["claude", "codex"])
@pytest.mark.parametrize("name", ["UserPromptSubmit", "Stop"])
def test_a_subagents_prompt_is_no_human_prompt(name: str, own: dict[str, str]) -> None:
    """Nor does its stop end the turn; without the id of a sub-agent both are the user's."""
    payload = {"hook_event_name": name, "session_id": "s", "prompt": "do it", **own}
    agent = agent_of(payload)
    assert agent.read({**payload, "agent_id": "a"}).kind == kinds.OTHER
    assert agent.read(payload).kind in (kinds.PROMPT, kinds.STOPS)


@client("copilot-1.0.102-pascal")
def test_a_host_that_loads_claude_settings_is_recorded_under_its_name(played: Played) -> None:
    """Copilot with hooks of Claude's settings: one turn of its own, which undo takes back."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.Write")
    (played.tree / "new.txt").write_text("new\n")
    played.tell("PostToolUse.Write")
    played.tell("UserPromptSubmit.in-subagent")
    played.tell("PreToolUse.Write.in-subagent")
    (played.tree / "sub.txt").write_text("s\n")
    played.tell("PostToolUse.Write.in-subagent")
    played.tell("Stop.in-subagent")
    played.tell("Stop")
    (turn,) = played.turns()
    assert (turn.agent, turn.status) == ("copilot", "done")
    assert turn.label.startswith("hello")
    assert {change.path for change in turn.changes} == {"new.txt", "sub.txt"}
    assert [step.status for step in turn.steps] == ["done", "done"]
    played.project.undo()
    assert sorted(path.name for path in played.tree.iterdir()) == ["a.txt"]


@client("copilot-1.0.102-pascal")
def test_an_event_in_two_spellings_counts_once(played: Played) -> None:
    """Copilot's own settings and Claude's report the same moment: one turn with one step."""
    own = Played(played.project, played.tree, "copilot-1.0.102-camel")
    moment = 1794854220000
    session = {"sessionId": "74d1499b-6777-4594-a9a5-4bdbf8f3fefa"}
    for number, (pascal, camel) in enumerate(
        [
            ("UserPromptSubmit", "userPromptSubmitted"),
            ("PreToolUse.Write", "preToolUse.create"),
            ("PostToolUse.Write", "postToolUse.create"),
            ("Stop", "agentStop"),
        ]
    ):
        at = f"2026-11-16T18:37:0{number}.000Z"
        played.tell(pascal, timestamp=at)
        own.tell(camel, timestamp=moment + 1000 * number, **session)
        (played.tree / "new.txt").write_text("new\n")
    (turn,) = played.turns()
    assert [step.tool for step in turn.steps] == ["create"]


@client("qwen-code-0.24.4")
def test_what_a_subagent_does_behind_the_stop_is_its_turns(played: Played) -> None:
    """Qwen's sub-agents go on in the background; each request to the model is the same prompt."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.agent")
    played.tell("PostToolUse.agent")
    played.tell("UserPromptSubmit", prompt="")
    played.tell("Stop")
    played.tell("PreToolUse.write_file.in-subagent")
    (played.tree / "sub.txt").write_text("s\n")
    played.tell("PostToolUse.write_file.in-subagent")
    played.tell("SubagentStop")
    played.tell("Stop")
    (turn,) = played.turns()
    assert (turn.agent, turn.label[:2]) == ("qwen-code", "go")
    assert {change.path for change in turn.changes} == {"sub.txt"}


@client("gemini-cli-0.61.0")
def test_gemini_is_recorded_by_its_own_events(played: Played) -> None:
    """A turn by edit tool and shell; the prompt is what the user typed."""
    played.tell("SessionStart.startup")
    played.tell("BeforeAgent")
    played.tell("BeforeTool.write_file")
    (played.tree / "new.txt").write_text("one\n")
    played.tell("AfterTool.write_file")
    played.tell("BeforeTool.run_shell_command")
    (played.tree / "bybash.txt").write_text("x\n")
    (played.tree / "a.txt").unlink()
    played.tell("AfterTool.run_shell_command")
    played.tell("AfterAgent")
    played.tell("SessionEnd.exit")
    (turn,) = played.turns()
    assert (turn.agent, turn.status) == ("gemini-cli", "done")
    assert turn.label.startswith("go [[script:gm")
    assert {change.path for change in turn.changes} == {"new.txt", "bybash.txt", "a.txt"}
    assert [(step.tool, step.status) for step in turn.steps] == [
        ("write_file", "done"),
        ("run_shell_command", "done"),
    ]
    played.project.undo()
    assert {path.name for path in played.tree.iterdir()} == {"a.txt"}
    played.tell("SessionStart.startup")
    said = played.tell("BeforeAgent", prompt="and now?")
    assert "took back" in said["hookSpecificOutput"]["additionalContext"]


@client("gemini-cli-0.61.0")
def test_an_event_that_two_settings_report_counts_once(played: Played) -> None:
    """Those of the user and those of the project name the same moment; two calls do not."""
    for name in ("BeforeAgent", "BeforeTool.run_shell_command", "AfterTool.run_shell_command"):
        played.tell(name)
        played.again()
        played.tell(name)
    played.tell("BeforeTool.run_shell_command")
    played.tell("AfterTool.run_shell_command")
    (turn,) = played.turns()
    assert len(turn.steps) == 2


def test_the_matcher_fits_hosts_that_match_the_whole_name() -> None:
    """Copilot wants the whole name, Claude Code a part of it; readers match in neither."""
    pattern = re.compile(claude_code.AGENT.matcher)
    for match in (pattern.search, pattern.fullmatch):
        assert match("Bash")
        assert match("ReadWrite")
        assert not match("Read")
