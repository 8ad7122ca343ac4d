"""Any agent that no other file claims: its events are let through and not recorded."""

from takeback.agents.agent import Agent, HookEvent, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Answer, Payload
    from takeback.model.text.json_text import Json


class Unknown(Agent):
    """It gets no answer, since nobody knows what it would make of one."""

    name = "unknown"
    title = "an unknown agent"

    def claims(self, payload: "Payload") -> bool:
        """Every payload."""
        del payload
        return True

    def read(self, payload: "Payload") -> HookEvent:
        """The session and the name of the event, as far as the payload has them."""
        names = ("hook_event_name", "hookEventName", "agent_action_name", "event", "type")
        event = HookEvent(self, text(payload, *names))
        event.session = text(payload, "session_id", "sessionId", "conversation_id", "taskId")
        event.cwd = text(payload, "cwd")
        return event

    def answer(self, event: HookEvent, answer: "Answer") -> "dict[str, Json]":
        """Nothing."""
        del event, answer
        return {}


AGENT = Unknown()
