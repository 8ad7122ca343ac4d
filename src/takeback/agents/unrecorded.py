"""Agents that are known by name only: their events are let through and not recorded yet.

Each leaves this file when it gets one of its own.
"""

from takeback.agents.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Payload


class _Unrecorded(Unknown):
    """All its payloads have some fields."""

    def __init__(self, name: str, title: str, signs: "tuple[str, ...]") -> None:
        self.name = name
        self.title = title
        self._signs = signs

    def claims(self, payload: "Payload") -> bool:
        """Whether all the fields are there."""
        return all(sign in payload for sign in self._signs)


AGENTS = (
    _Unrecorded("cline", "Cline", ("hookName", "taskId", "workspaceRoots")),
    _Unrecorded("windsurf", "Windsurf", ("agent_action_name", "trajectory_id")),
)
