"""What a hook tells, in our words: the same for every agent.

A payload comes from outside. Whatever it holds, reading it gives a `Call`: what is missing or of
another kind than it should be is empty.
"""

from takeback.model import terms, tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SESSION_STARTS = "session starts"
PROMPT = "prompt"
GOES_ON = "goes on"
"""A prompt that no human wrote: something in the background is done, and the agent is told."""
BEFORE_TOOL = "before tool"
ASKS = "asks"
"""A dialog asks the user whether a tool may run. Nobody tells when it is answered."""
AFTER_TOOL = "after tool"
BATCH_OVER = "batch over"
"""All calls that the model made at once have returned, also those that were refused."""
STOPS = "stops"
FAILS = "fails"
SUBAGENT_STOPS = "subagent stops"
SESSION_ENDS = "session ends"
OTHER = "other"
"""An event that changes nothing for us, or that nobody knows."""

_READ_AT = (PROMPT, GOES_ON, AFTER_TOOL)
_WRITTEN_AT = (PROMPT, BEFORE_TOOL, STOPS, FAILS)
"""A prompt is often written after it was told: then a later event of its turn finds it."""

_ON_ITS_WAY = 50_000_000
"""Nanoseconds from the end of a tool to the start of the hook; the start of a shell takes more."""


class Call:
    """One event of an agent.

    `event` is our own id of it, which whoever handles it knows: it counts once.
    `turn` is the agent's own id of the prompt that all this is for, `call` that of the tool call.
    `background` tells that what the tool started goes on; `task` is what the agent calls it.
    `took` is for how long the tool ran, in milliseconds; -1 if nobody says. `heard` is when the
    event came, in nanoseconds. `calls` are the ids of a batch, `refused` those to which the user
    said no. `folder` is where the agent was started, `cwd` where it is now.
    """

    __slots__ = (
        "agent",
        "background",
        "call",
        "calls",
        "cwd",
        "event",
        "failed",
        "folder",
        "given",
        "heard",
        "kind",
        "name",
        "prompt",
        "refused",
        "session",
        "source",
        "subagent",
        "task",
        "took",
        "tool",
        "transcript",
        "turn",
    )

    def __init__(self, agent: str, name: str, kind: str = OTHER) -> None:
        self.agent = agent
        self.name = name
        self.kind = kind
        self.event = ""
        self.session = ""
        self.turn = ""
        self.call = ""
        self.calls: tuple[str, ...] = ()
        self.refused: tuple[str, ...] = ()
        self.cwd = ""
        self.folder = ""
        self.transcript = ""
        self.prompt = ""
        self.source = ""
        self.tool = ""
        self.given: Mapping[str, object] = {}
        self.failed = False
        self.background = False
        self.task = ""
        self.subagent = ""
        self.took = -1
        self.heard = 0

    def began(self) -> "int | None":
        """When the tool began; None if nobody knows.

        What an edit tool names it has just written, if it did not fail: that needs no clock.
        """
        if self.took < 0:
            return None
        if tools.kind_of(self.tool) == terms.EDIT and not self.failed:
            return 0
        return self.heard - self.took * 1_000_000 - _ON_ITS_WAY

    def can_be_told(self) -> bool:
        """Whether the agent reads what is answered, now."""
        return self.kind in _READ_AT and not self.failed and not self.subagent

    def tells_of_prompts(self) -> bool:
        """Whether its prompt may be in the conversation by now; not every call of a turn does."""
        if self.kind not in _WRITTEN_AT or self.subagent or not (self.transcript and self.turn):
            return False
        return self.kind != BEFORE_TOOL or tools.kind_of(self.tool) != terms.READ


class Answer:
    """What the agent, and whoever sits before it, shall hear; empty if nothing."""

    __slots__ = ("to_agent", "to_user")

    def __init__(self, to_agent: str = "", to_user: str = "") -> None:
        self.to_agent = to_agent
        self.to_user = to_user


def text(payload: "Mapping[str, object]", *names: str) -> str:
    """The first of some fields that is a text."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str):
            return value
    return ""


def fields(payload: "Mapping[str, object]", name: str) -> "Mapping[str, object]":
    """A field that holds fields."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}
