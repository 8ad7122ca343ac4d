"""What each agent's own record of a conversation says: one small module for each format.

A conversation is a line of prompts. Going back inside the agent makes it a tree: the new prompt
stands where an old one stood, and the old ones are still in the file, beside the line.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from takeback.hooks.calls import Call
    from takeback.hooks.conversations.trimmed import Trimmed

    class Format(Protocol):
        """What the module of a format has."""

        def interrupted_at(self, path: str, prompt: str) -> float | None:
            """When the turn before a prompt was interrupted, in seconds; None if it was not."""

        def interrupted_prompt(self, path: str) -> str:
            """What the agent calls the turn that was interrupted last; empty if nobody says."""

        def was_at_work(self, path: str, prompt: str) -> bool:
            """Whether the interruption is known to have come while a tool ran."""

        def before(self, path: str, prompt: str) -> Iterator[tuple[str, str]]:
            """What stands before a prompt, the nearest first: see `above`, and the agent's ids."""

        def trim(self, path: str, prompt: str) -> Trimmed:
            """The conversation up to a prompt, under a new id; `CannotTrimError` says why not."""


def of(agent: str) -> "Format | None":
    """The format of an agent; None if nobody knows it. A hook loads no other."""
    if agent == "claude-code":
        from takeback.hooks.conversations import claude_code

        return claude_code
    if agent == "codex":
        from takeback.hooks.conversations import codex

        return codex
    return None


def interrupted_at(call: "Call") -> "float | None":
    """When the turn before a prompt was interrupted, in seconds since 1970; None if it was not."""
    known = of(call.agent)
    if known is None or not call.transcript:
        return None
    return known.interrupted_at(call.transcript, call.turn)


def was_at_work(call: "Call") -> bool:
    """Whether a tool is known to have run when the turn before a prompt was interrupted."""
    known = of(call.agent)
    return known is not None and known.was_at_work(call.transcript, call.turn)
