"""Goblin, an agent that does not exist: all that a new agent takes, in one file.

`tests/agents/test_new_agent.py` puts it into a copy of the package and registers it.
"""

from takeback.agents import agent as kinds
from takeback.agents.agent import DENY, Agent, HookEvent, fields, text
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, Payload, Trial
    from takeback.model.text.json_text import Json


class Goblin(Agent):
    """It wishes, grabs, drops and naps."""

    name = "goblin"
    title = "Goblin"
    kinds = {  # noqa: RUF012 -- never changed
        "wish": kinds.PROMPT,
        "grab": kinds.BEFORE_TOOL,
        "drop": kinds.AFTER_TOOL,
        "nap": kinds.STOPS,
    }
    tools = {"dig": words.SHELL, "scratch": words.EDIT}  # noqa: RUF012 -- never changed
    folder = ".goblin"
    file = "goblin.json"
    variable = "GOBLIN_HOME"
    started_in = "GOBLIN_CAVE"

    def claims(self, payload: "Payload") -> bool:
        """It says what it is."""
        return payload.get("species") == "goblin"

    def read(self, payload: "Payload") -> HookEvent:
        """One event."""
        name = text(payload, "does")
        event = HookEvent(self, name, self.kinds.get(name, kinds.OTHER))
        event.session = text(payload, "goblin")
        event.turn = text(payload, "wish")
        event.prompt = text(payload, "words")
        event.cwd = text(payload, "where")
        event.tool = text(payload, "claw")
        event.call = text(payload, "grip")
        event.given = fields(payload, "what")
        return event

    def can_deny(self, event: HookEvent) -> bool:
        """Before it grabs something."""
        return event.kind == kinds.BEFORE_TOOL

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """In its own words."""
        out: dict[str, Json] = (
            {"hiss": True} if self.understood(event, answer.verdict) == DENY else {}
        )
        if answer.to_agent:
            out["whisper"] = answer.to_agent
        if answer.to_user:
            out["shout"] = answer.to_user
        return out

    def trial(self, kind: str, trial: "Trial") -> "Payload | None":
        """As it is played in the test."""
        name = self.event_of(kind)
        dig = {"claw": "dig", "grip": "g", "what": {"command": trial.command}}
        more = dig if kind in (kinds.BEFORE_TOOL, kinds.AFTER_TOOL) else {"words": trial.prompt}
        said = {"species": "goblin", "goblin": "Grik", "wish": "w", "where": trial.folder}
        return {**said, "does": name, **more} if name else None


AGENT = Goblin()
