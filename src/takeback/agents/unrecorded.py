"""Agents that are known by name only: their events are let through and not recorded yet.

Each leaves this file when it gets one of its own.
"""

from takeback.agents.agent import text
from takeback.agents.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Payload


class _Unrecorded(Unknown):
    """All its payloads have some fields, and perhaps one of some events."""

    def __init__(
        self, name: str, title: str, signs: "tuple[str, ...]", events: "tuple[str, ...]" = ()
    ) -> None:
        self.name = name
        self.title = title
        self._signs = signs
        self._events = events

    def claims(self, payload: "Payload") -> bool:
        """Whether all the fields are there."""
        if self._events and text(payload, "hook_event_name") not in self._events:
            return False
        return all(sign in payload for sign in self._signs)


AGENTS = (
    _Unrecorded("cline", "Cline", ("hookName", "taskId", "workspaceRoots")),
    _Unrecorded("goose", "Goose", ("event", "matcher_context")),
    _Unrecorded(
        "mistral-vibe", "Mistral Vibe", ("session_id",), ("pre_tool", "post_tool", "post_agent")
    ),
    _Unrecorded("windsurf", "Windsurf", ("agent_action_name", "trajectory_id")),
)
