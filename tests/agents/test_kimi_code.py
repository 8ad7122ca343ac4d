"""Kimi Code: what it reports, what it is answered, and what its settings get."""

import tomllib

from recorded import Played, client
from takeback.agents.agent import ASK, DENY, Answer, HookEvent
from takeback.agents.dialects import kimi_code

KIMI = "kimi-code-2.1.0"
AGENT = kimi_code.AGENT


def event(name: str, **more: object) -> HookEvent:
    """One of its events."""
    said = {"hook_event_name": name, "client_type": "kimi_code_cli", "session_id": "s"}
    return AGENT.read({**said, **more})


@client(KIMI)
def test_a_stop_inside_a_subagent_is_not_the_turns(played: Played) -> None:
    """Its sub-agents stop like the agent itself; a prompt is a list of parts."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.Agent")
    played.tell("SubagentStart")
    played.tell("PreToolUse.Write")
    (played.tree / "DENYME.txt").write_text("x")
    played.tell("PostToolUse.Write")
    played.tell("Stop")
    (turn,) = played.turns()
    assert (turn.agent, turn.status, turn.label[:2]) == ("kimi-code", "running", "go")
    played.tell("SubagentStop")
    played.tell("PostToolUse.Agent")
    played.tell("Stop")
    (turn,) = played.turns()
    assert turn.status == "done"
    assert [change.path for change in turn.changes] == ["DENYME.txt"]


@client(KIMI)
def test_what_a_command_in_the_background_writes_is_its_turns(played: Played) -> None:
    """It runs on behind the stop; a notification reports its end, and the turn goes on."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.Bash.background")
    played.tell("PostToolUse.Bash.background")
    played.tell("Stop")
    (played.tree / "bg.txt").write_text("bg\n")
    played.tell("Notification.task")
    (turn,) = played.turns()
    assert turn.status == "running"
    played.tell("Stop")
    (played.tree / "a.txt").write_text("by hand\n")
    (turn,) = played.turns()
    assert (turn.status, [step.status for step in turn.steps]) == ("done", ["done"])
    played.project.undo(yes=True)
    assert not (played.tree / "bg.txt").exists()
    assert (played.tree / "a.txt").read_text() == "by hand\n"


@client(KIMI)
def test_an_interruption_ends_the_turn(played: Played) -> None:
    """Also inside a sub-agent; what changes afterwards is the user's."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.Agent")
    played.tell("PreToolUse.Bash")
    (played.tree / "new.txt").write_text("new\n")
    played.tell("Stop", hook_event_name="Interrupt", turn_id="7", reason="cancelled")
    (played.tree / "a.txt").write_text("by hand\n")
    (turn,) = played.turns()
    assert turn.status == "interrupted"
    played.project.undo(yes=True)
    assert sorted(path.name for path in played.tree.iterdir()) == ["a.txt"]
    assert (played.tree / "a.txt").read_text() == "by hand\n"


@client(KIMI)
def test_what_is_typed_while_it_works_is_the_same_turn(played: Played) -> None:
    """Only the first prompt begins one."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.Bash")
    played.tell("UserPromptSubmit", prompt=[{"type": "text", "text": "faster"}], is_steer=True)
    played.tell("PostToolUse.Bash")
    played.tell("Stop")
    (turn,) = played.turns()
    assert (turn.label[:2], turn.status) == ("go", "done")


@client(KIMI)
def test_a_note_comes_with_the_next_prompt(played: Played) -> None:
    """It shows the model what stands behind `message`."""
    played.tell("UserPromptSubmit")
    played.tell("PreToolUse.Bash")
    (played.tree / "byb.txt").write_text("b\n")
    played.tell("PostToolUse.Bash")
    played.tell("Stop")
    played.project.undo()
    said = played.tell("UserPromptSubmit", prompt=[{"type": "text", "text": "and now?"}])
    assert set(said) == {"message"}
    assert '"byb.txt" (removed)' in said["message"]


def test_verdicts_as_it_reads_them() -> None:
    """A prompt and a tool are denied with a reason; it cannot ask."""
    own = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
    for verdict in (DENY, ASK):
        for name in ("PreToolUse", "UserPromptSubmit"):
            said = AGENT.answer(event(name), Answer(verdict, to_agent="no"))
            assert said == {"hookSpecificOutput": own}
        assert AGENT.answer(event("Stop"), Answer(verdict, to_agent="no")) == {}
    assert AGENT.answer(event("PostToolUse"), Answer(to_agent="read again")) == {}


def test_ends_of_commands_as_it_reports_them() -> None:
    """The exit code stands in its words."""
    given = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_call_id": "c"}
    error = {"message": "out\nCommand failed with exit code: 3."}
    failed = event("PostToolUseFailure", **given, error=error)
    assert (failed.failed, failed.exit_code, failed.call) == (True, 3, "c")
    assert event("PostToolUse", **given, tool_output="out").exit_code == 0
    strange = event("PostToolUseFailure", **given, error={"message": "code: " + "9" * 5000})
    assert strange.exit_code is None


def test_its_settings_name_only_events_and_keys_that_it_knows() -> None:
    """One that it does not know makes it ignore all hooks; limits are at most ten minutes."""
    known = """
    PreToolUse PostToolUse PostToolUseFailure PermissionRequest PermissionResult UserPromptSubmit
    Stop StopFailure Interrupt SessionStart SessionEnd SubagentStart SubagentStop PreCompact
    PostCompact Notification
    """.split()
    hooks = tomllib.loads(AGENT.block("usual", "reporting"))["hooks"]
    assert {hook["event"] for hook in hooks} <= set(known)
    assert {key for hook in hooks for key in hook} == {"event", "matcher", "command", "timeout"}
    assert all(1 <= hook["timeout"] <= 600 for hook in hooks)
    assert {hook["event"] for hook in hooks if hook["command"] == "reporting"} == {
        "UserPromptSubmit"
    }
