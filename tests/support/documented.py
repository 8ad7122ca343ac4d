"""Payloads of Cursor, VS Code and Windsurf by their documented fields: none was recorded."""

from pathlib import Path
from typing import Any

Events = list[dict[str, Any]]


def of_cursor(tree: Path) -> Events:
    """A prompt, a command and a stop, in its own spelling."""
    own = {
        "conversation_id": "c1",
        "generation_id": "g1",
        "cursor_version": "3.0.0",
        "workspace_roots": [str(tree)],
    }
    call = {"tool_name": "Shell", "tool_input": {"command": "rm a.txt"}, "tool_use_id": "t1"}
    return [
        {**own, "hook_event_name": "beforeSubmitPrompt", "prompt": "do it", "attachments": []},
        {**own, **call, "hook_event_name": "preToolUse"},
        {**own, **call, "hook_event_name": "postToolUse", "tool_output": "{}", "duration": 5},
        {**own, "hook_event_name": "stop", "status": "completed", "loop_count": 0},
    ]


def of_vs_code(tree: Path) -> Events:
    """The same, in the spelling of its page about hooks."""
    call = {"tool_name": "runInTerminal", "tool_input": {"command": "rm a.txt"}}
    call["tool_use_id"] = "t1"
    parts: Events = [
        {"hookEventName": "UserPromptSubmit", "prompt": "do it"},
        {"hookEventName": "PreToolUse", **call},
        {"hookEventName": "PostToolUse", **call, "tool_response": "ok"},
        {"hookEventName": "Stop", "stop_hook_active": False},
    ]
    common = {"sessionId": "s1", "cwd": str(tree), "transcript_path": "/agent/transcript.json"}
    times = [f"2026-02-09T10:30:0{number}.000Z" for number in range(len(parts))]
    return [{**common, **part, "timestamp": at} for part, at in zip(parts, times, strict=True)]


def of_windsurf(tree: Path) -> Events:
    """The same; what an action is about is in one field."""
    about = {"command_line": "rm a.txt", "cwd": str(tree)}
    parts: Events = [
        {"agent_action_name": "pre_user_prompt", "tool_info": {"user_prompt": "do it"}},
        {"agent_action_name": "pre_run_command", "tool_info": about},
        {"agent_action_name": "post_run_command", "tool_info": about},
        {"agent_action_name": "post_cascade_response", "tool_info": {"response": "Done."}},
    ]
    common = {"trajectory_id": "t1", "execution_id": "e1", "model_name": "m", "cwd": str(tree)}
    times = [f"2026-02-09T10:30:0{number}.000Z" for number in range(len(parts))]
    return [{**common, **part, "timestamp": at} for part, at in zip(parts, times, strict=True)]
