"""Whoever nobody knows: recorded as such, and let through."""

from takeback.hooks.calls import Answer, Call, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.model.jsontext import Json

    Payload = Mapping[str, object]

AGENT = "unknown"


def claims(payload: "Payload") -> bool:
    """Everything."""
    del payload
    return True


def read(payload: "Payload") -> Call:
    """Who it is, as far as it says so, and the name of the event."""
    name = text(payload, "hook_event_name", "hookEventName", "agent_action_name", "event", "type")
    call = Call(AGENT, name)
    call.session = text(payload, "session_id", "sessionId", "conversation_id", "taskId")
    call.cwd = text(payload, "cwd")
    return call


def answer(call: Call, answer: Answer) -> "dict[str, Json]":
    """Nothing: nobody knows what it would make of it."""
    del call, answer
    return {}
