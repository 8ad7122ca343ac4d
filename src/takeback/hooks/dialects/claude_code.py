"""Claude Code, and hosts that run its hooks in its own words.

Recorded from 2.1.325: a tool call that was refused tells nothing but its batch; Esc tells nothing
at all; a sub-agent goes on behind the `Stop` of its turn, and so do shells in the background.
"""

from takeback.hooks import calls
from takeback.hooks.calls import Answer, Call, fields, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.model.jsontext import Json

    Payload = Mapping[str, object]

AGENT = "claude-code"

KINDS = {
    "SessionStart": calls.SESSION_STARTS,
    "UserPromptSubmit": calls.PROMPT,
    "PreToolUse": calls.BEFORE_TOOL,
    "PermissionRequest": calls.ASKS,
    "PostToolUse": calls.AFTER_TOOL,
    "PostToolUseFailure": calls.AFTER_TOOL,
    "PostToolBatch": calls.BATCH_OVER,
    "Stop": calls.STOPS,
    "StopFailure": calls.FAILS,
    "SubagentStop": calls.SUBAGENT_STOPS,
    "SessionEnd": calls.SESSION_ENDS,
}
_LONGEST = 1 << 33
"""Milliseconds: a hundred days."""
_REFUSED = "The user doesn't want to proceed with this tool use."
_NOTIFICATION = "<task-notification>"
_NO_HUMAN = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")
_TAKES_CONTEXT = ("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse")


def claims(payload: "Payload") -> bool:
    """It names its events so, and sends no `turn_id`."""
    return text(payload, "hook_event_name") in KINDS or "prompt_id" in payload


def read(payload: "Payload") -> Call:
    """One event."""
    name = text(payload, "hook_event_name")
    call = common(AGENT, payload, KINDS.get(name, calls.OTHER))
    call.turn = text(payload, "prompt_id")
    call.failed = name == "PostToolUseFailure"
    if call.kind == calls.PROMPT:
        _read_prompt(call, payload)
    elif call.kind == calls.AFTER_TOOL:
        _read_response(call, fields(payload, "tool_response"))
        took = payload.get("duration_ms")
        call.took = int(took) if isinstance(took, int | float) and 0 <= took < _LONGEST else -1
    elif call.kind == calls.BATCH_OVER:
        _read_batch(call, payload.get("tool_calls"))
    return call


def common(agent: str, payload: "Payload", kind: str) -> Call:
    """What the events of Claude Code and of those who learned from it have in common."""
    call = Call(agent, text(payload, "hook_event_name"), kind)
    call.session = text(payload, "session_id")
    call.cwd = text(payload, "cwd")
    call.transcript = text(payload, "transcript_path")
    call.prompt = text(payload, "prompt")
    call.source = text(payload, "source", "reason")
    call.tool = text(payload, "tool_name")
    call.given = fields(payload, "tool_input")
    call.call = text(payload, "tool_use_id")
    call.subagent = text(payload, "agent_id")
    return call


def _read_prompt(call: Call, payload: "Payload") -> None:
    is_told = call.prompt.lstrip().startswith(_NOTIFICATION)
    if is_told or text(payload, "source") in _NO_HUMAN:
        call.kind = calls.GOES_ON
        call.task = _between(call.prompt, "<task-id>", "</task-id>")
        call.call = _between(call.prompt, "<tool-use-id>", "</tool-use-id>")


def _read_batch(call: Call, made: object) -> None:
    """The calls that the model made at once; what the user refused says so where a result would."""
    all = [each for each in made if isinstance(each, dict)] if isinstance(made, list) else []
    no = [each for each in all if text(each, "tool_response").startswith(_REFUSED)]
    call.calls = tuple(filter(None, (text(each, "tool_use_id") for each in all)))
    call.refused = tuple(text(each, "tool_use_id") for each in no)


def _read_response(call: Call, response: "Payload") -> None:
    """A shell or a sub-agent that goes on in the background."""
    call.task = text(response, "backgroundTaskId", "agentId")
    call.background = "backgroundTaskId" in response or response.get("isAsync") is True


def _between(said: str, before: str, after: str) -> str:
    rest = said.partition(before)[2]
    return rest.partition(after)[0].strip() if after in rest else ""


def answer(call: Call, answer: Answer) -> "dict[str, Json]":
    """Context for the model where the event takes some, and a line for the user."""
    told: dict[str, Json] = {}
    if answer.to_user:
        told["systemMessage"] = answer.to_user
    if answer.to_agent and call.name in _TAKES_CONTEXT:
        told["hookSpecificOutput"] = {
            "hookEventName": call.name,
            "additionalContext": answer.to_agent,
        }
    return told
