"""What each agent accepts as the answer of a hook: keys, values and where they may stand.

Written down from the clients' own sources and documents (docs/agents.md says which were tried), not
from our code: a field that an agent does not know makes some of them drop the whole answer, or show
it to the model as it stands.
"""

from collections.abc import Callable
from typing import Any

from takeback.agents.agent import HookEvent

Said = dict[str, Any]
Check = Callable[[HookEvent, Said], str]

CONTEXT = ("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse")
BLOCKED = ("UserPromptSubmit", "Stop", "SubagentStop")


def refused(event: HookEvent, said: Any) -> str:  # noqa: ANN401 -- as JSON has it
    """Why the agent of an event would not accept an answer; empty if it would."""
    if not isinstance(said, dict):
        return "not an object"
    empty = [key for key, value in said.items() if value in ("", None, {}, [])]
    if empty:
        return f"{empty} is empty"
    return CHECKS[event.agent.name](event, said) if said else ""


def only(said: Said, **kinds: type) -> str:
    """Why an object has other keys than these, or other values."""
    for key, value in said.items():
        if key not in kinds:
            return f"no `{key}` here"
        if not isinstance(value, kinds[key]) or value == "":
            return f"`{key}` cannot be {value!r}"
    return ""


def of_claude(event: HookEvent, said: Said) -> str:
    """Claude Code, and agents that copied its answers."""
    wrong = only(said, systemMessage=str, decision=str, reason=str, hookSpecificOutput=dict)
    if wrong:
        return wrong
    if ("decision" in said) != ("reason" in said):
        return "a decision needs a reason"
    if "decision" in said and (said["decision"] != "block" or event.name not in BLOCKED):
        return f"{event.name} cannot be blocked by {said['decision']}"
    return _own_output(event, said.get("hookSpecificOutput"), ("ask", "deny"))


def of_codex(event: HookEvent, said: Said) -> str:
    """Claude Code's; `ask` is an error to it, and the tool runs."""
    own = said.get("hookSpecificOutput") or {}
    if own.get("permissionDecision") == "ask":
        return "it cannot ask"
    return of_claude(event, said)


def _own_output(event: HookEvent, own: Any, verdicts: tuple[str, ...]) -> str:  # noqa: ANN401
    if own is None:
        return ""
    own = dict(own)
    if own.pop("hookEventName", "") != event.name:
        return "the output is for another event"
    if event.name == "PermissionRequest":
        return only(own, decision=dict) or only(own["decision"], behavior=str, message=str)
    if event.name == "PreToolUse" and "permissionDecision" in own:
        return _verdict(own, verdicts)
    return only(own, additionalContext=str) if event.name in CONTEXT else "takes no context"


def _verdict(own: Said, verdicts: tuple[str, ...]) -> str:
    if set(own) != {"permissionDecision", "permissionDecisionReason"}:
        return "a verdict needs a reason, and nothing else"
    if own["permissionDecision"] not in verdicts:
        return f"{own['permissionDecision']} is no verdict"
    return only(own, permissionDecision=str, permissionDecisionReason=str)


def of_gemini(event: HookEvent, said: Said) -> str:
    """Its own names of events."""
    wrong = only(said, systemMessage=str, decision=str, reason=str, hookSpecificOutput=dict)
    if wrong:
        return wrong
    if ("decision" in said) != ("reason" in said):
        return "a decision needs a reason"
    if "decision" in said:
        is_known = said["decision"] == "deny" and event.name in ("BeforeAgent", "BeforeTool")
        return "" if is_known else "that cannot be denied"
    own = dict(said.get("hookSpecificOutput") or {})
    if own and own.pop("hookEventName", "") != event.name:
        return "the output is for another event"
    if own and event.name not in ("BeforeAgent", "AfterTool"):
        return "takes no context"
    return only(own, additionalContext=str)


def of_copilot(event: HookEvent, said: Said) -> str:
    """Flat, or Claude Code's for a verdict."""
    own = dict(said)
    nested = own.pop("hookSpecificOutput", None)
    if "permissionDecision" in own:
        wrong = _verdict(own, ("ask", "deny"))
        return wrong or _own_output(event, nested, ("ask", "deny"))
    if nested is not None:
        return "reads that for a verdict only"
    if "decision" in own:
        is_known = own["decision"] == "block" and event.name == "UserPromptSubmit"
        return only(own, decision=str, reason=str) if is_known else "that cannot be blocked"
    return only(own, additionalContext=str, systemMessage=str)


def of_kimi(event: HookEvent, said: Said) -> str:
    """A message with a prompt, or a verdict; the model sees anything else as it stands."""
    own = said.get("hookSpecificOutput")
    if own is not None:
        if event.name not in ("UserPromptSubmit", "PreToolUse"):
            return "that cannot be denied"
        return only(said, hookSpecificOutput=dict) or _verdict(own, ("deny",))
    return only(said, message=str) if event.name == "UserPromptSubmit" else "takes no words"


def of_vibe(event: HookEvent, said: Said) -> str:
    """Anything else is a warning on its screen."""
    wrong = only(said, system_message=str, decision=str, reason=str, hook_specific_output=dict)
    if wrong:
        return wrong
    if "decision" in said and (said["decision"] != "deny" or event.name != "pre_tool"):
        return "that cannot be denied"
    own = said.get("hook_specific_output", {})
    return only(own, additional_context=str) if not own or event.name == "post_tool" else "no note"


def of_plugin(event: HookEvent, said: Said) -> str:
    """A plugin of ours reads it: `opencode.js`, `pi.ts`."""
    if "deny" in said and "note" in said:
        return "either is denied, or told"
    del event
    return only(said, systemMessage=str, deny=str, note=str)


def of_cline(event: HookEvent, said: Said) -> str:
    """It cancels, or changes the context."""
    wrong = only(said, cancel=bool, errorMessage=str, contextModification=str)
    if wrong or "contextModification" not in said:
        return wrong
    del event
    return "is cancelled" if said.get("cancel") else ""


def of_cursor(event: HookEvent, said: Said) -> str:
    """By its documents; a hook of Claude Code's settings may answer as that reads it, too."""
    names = {"continue": bool, "permission": str, "user_message": str, "agent_message": str}
    own = {**names, "additional_context": str, "followup_message": str}
    claudes = {key: value for key, value in said.items() if key not in own}
    return only({key: said[key] for key in said if key in own}, **own) or (
        of_claude(event, claudes) if claudes else ""
    )


def of_nobody(event: HookEvent, said: Said) -> str:
    """It reads no answers, or nobody knows what it makes of one."""
    del event
    return f"nobody reads {sorted(said)}"


CHECKS: dict[str, Check] = {
    "aider": of_nobody,
    "claude-code": of_claude,
    "cline": of_cline,
    "codex": of_codex,
    "copilot": of_copilot,
    "cursor": of_cursor,
    "droid": of_claude,
    "gemini-cli": of_gemini,
    "goose": of_nobody,
    "kilo": of_plugin,
    "kimi-code": of_kimi,
    "mistral-vibe": of_vibe,
    "opencode": of_plugin,
    "pi": of_plugin,
    "qwen-code": of_claude,
    "unknown": of_nobody,
    "vs-code": of_claude,
    "windsurf": of_nobody,
}
