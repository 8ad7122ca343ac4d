"""Windsurf: its own names of what Cascade does, each with what it is about in one field.

By its documentation and the fields that others parse, not proven with the real client. A trajectory
is a conversation, an execution one turn of it. Nothing can be told, and only an exit code refuses.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import ENTRIES, Agent, HookEvent, fields, text
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.model.text.json_text import Json

_HOOKED = {
    "pre_user_prompt": kinds.PROMPT,
    "pre_write_code": kinds.BEFORE_TOOL,
    "post_write_code": kinds.AFTER_TOOL,
    "pre_run_command": kinds.BEFORE_TOOL,
    "post_run_command": kinds.AFTER_TOOL,
    "pre_mcp_tool_use": kinds.BEFORE_TOOL,
    "post_mcp_tool_use": kinds.AFTER_TOOL,
    "post_cascade_response": kinds.STOPS,
}
_ABOUT = ("file_path", "command_line", "command", "mcp_server_name", "mcp_tool_name")
"""What is the same before and after a call, so that both are known to be one."""


class Windsurf(Agent):
    """Known by two fields that all its events have."""

    name = "windsurf"
    title = "Windsurf"
    kinds = _HOOKED
    tools = {"write_code": words.EDIT, "run_command": words.SHELL}  # noqa: RUF012 -- never changed
    told_at = ()
    form = ENTRIES
    folder = ".codeium/windsurf"
    project_folder = ".windsurf"
    file = "hooks.json"
    program = "windsurf"
    is_editor = True
    seen = ("prompts", "edits", "shell")
    not_seen = ("going back inside it", "Esc", "commands that fail")

    def claims(self, payload: "Payload") -> bool:
        """Whether both are there."""
        return "agent_action_name" in payload and "trajectory_id" in payload

    def read(self, payload: "Payload") -> HookEvent:
        """One event; it may not say where it happened, but its hooks run there."""
        name = text(payload, "agent_action_name")
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        about = fields(payload, "tool_info")
        event.session = text(payload, "trajectory_id")
        event.turn = text(payload, "execution_id")
        event.stamp = text(payload, "timestamp")
        event.model = text(payload, "model_name")
        event.cwd = text(about, "cwd") or text(payload, "cwd")
        event.prompt = text(about, "user_prompt")
        if event.kind in (kinds.BEFORE_TOOL, kinds.AFTER_TOOL):
            event.tool = name.partition("_")[2]
            event.given = {key: about[key] for key in _ABOUT if key in about}
        return event

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """Nothing is read."""
        del event, answer
        return {}

    def groups(
        self, command: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, dict[str, Any]]":
        """Entries without time limits."""
        lines = self.lines(command, reporting, events)
        return {event: {"command": line, "show_output": False} for event, line in lines.items()}

    def trial(self, kind: str, trial: "Trial") -> "Payload | None":
        """By the documented fields."""
        names = {
            kinds.PROMPT: "pre_user_prompt",
            kinds.BEFORE_TOOL: "pre_run_command",
            kinds.AFTER_TOOL: "post_run_command",
            kinds.STOPS: "post_cascade_response",
        }
        if kind not in names:
            return None
        about = {"user_prompt": trial.prompt, "command_line": trial.command, "cwd": trial.folder}
        return {
            "agent_action_name": names[kind],
            "trajectory_id": "trial",
            "execution_id": "trial",
            "timestamp": f"2000-01-01T00:00:0{list(names).index(kind)}.000Z",
            "tool_info": about,
        }


AGENT = Windsurf()
