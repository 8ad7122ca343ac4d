"""How each agent speaks: one small module each, with what all modules have in common here.

A dialect is known by what its payloads hold, never by arguments: several hosts run the same
installed command line, each in its own way.
"""

from takeback.hooks.dialects import claude_code, codex, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from takeback.hooks.calls import Answer, Call
    from takeback.model.jsontext import Json

    Payload = Mapping[str, object]

    class Dialect(Protocol):
        """What the module of a dialect has."""

        AGENT: str

        def claims(self, payload: Payload) -> bool:
            """Whether a payload is of this agent."""

        def read(self, payload: Payload) -> Call:
            """What it tells."""

        def answer(self, call: Call, answer: Answer) -> dict[str, Json]:
            """What the agent wants to read on stdout."""


DIALECTS: "tuple[Dialect, ...]" = (codex, claude_code, unknown)
"""The first that claims a payload has it."""


def of(payload: "Payload") -> "Dialect":
    """The dialect of a payload."""
    return next(dialect for dialect in DIALECTS if dialect.claims(payload))


def called(agent: str) -> "Dialect | None":
    """The dialect of an agent."""
    return next((dialect for dialect in DIALECTS if agent == dialect.AGENT), None)
