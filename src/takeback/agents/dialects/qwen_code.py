"""Qwen Code: Claude Code's hooks and payloads, with tools and ids of its own.

Proven with 0.24.4: a prompt is reported before each request to the model, the first time with its
words; a sub-agent goes on in the background, after the `Stop` of its turn.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import fields, text
from takeback.agents.dialects.claude_format import KINDS, ClaudeFormat, read_prompt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent, Payload

_OF_PROMPT = "########"
_TASK = "task_id: "


class QwenCode(ClaudeFormat):
    """Known by its prompt ids and by the folder of its conversations."""

    name = "qwen-code"
    title = "Qwen Code"
    proven = "0.24.4"
    seen = ("prompts", "edits", "shell", "sub-agents", "permission dialogs")
    not_seen = ("going back inside it", "Esc")
    kinds = KINDS
    folder = ".qwen"
    file = "settings.json"
    program = "qwen"
    marks = ("QWEN_CODE",)

    def claims(self, payload: "Payload") -> bool:
        """It joins session and number in the id of a prompt."""
        return (
            _OF_PROMPT in text(payload, "prompt_id")
            or "submitted_prompt" in payload
            or "/.qwen/" in text(payload, "transcript_path")
        )

    def read(self, payload: "Payload") -> "HookEvent":
        """One event; a batch names its calls by the other of their two ids."""
        event = super().read(payload)
        event.turn = text(payload, "prompt_id")
        event.call = text(payload, "tool_call_id", "tool_use_id")
        if event.kind == kinds.PROMPT:
            event.stamp = text(payload, "timestamp")  # its ids begin anew when it is started
            read_prompt(event, payload)
        elif event.kind == kinds.BATCH_OVER:
            made = payload.get("tool_calls")
            each = [one for one in made if isinstance(one, dict)] if isinstance(made, list) else []
            event.calls = tuple(filter(None, (text(one, "tool_use_id") for one in each)))
        elif event.kind == kinds.AFTER_TOOL:
            response = fields(payload, "tool_response")
            event.failed = event.name == "PostToolUseFailure"
            event.output = text(payload, "error") or text(response, "llmContent")
            shown = fields(response, "returnDisplay")
            event.background = shown.get("executionMode") == "background"
            if event.background:
                event.task = (event.output.partition(_TASK)[2].split() or [""])[0]
        return event


AGENT = QwenCode()
