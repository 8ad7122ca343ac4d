"""Which turn or step runs in this thread or task: what a tool is called in."""

from contextvars import ContextVar, Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Work(Protocol):
        """A turn or a step."""

        def begin_mutation(self, name: str, given: object) -> str:
            """A tool is about to be called."""

        def end_mutation(self, key: str, state: str, found: object = None) -> None:
            """A tool returned."""


at_work: "ContextVar[Work | None]" = ContextVar("at_work", default=None)
"""The turn or step whose `with` block runs in this context."""


def leave(token: object) -> None:
    """A `with` block is over; in another context than it began in, there is nothing to do."""
    if isinstance(token, Token):
        try:
            at_work.reset(token)
        except ValueError:
            return
