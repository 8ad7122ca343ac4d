"""The names under which what a hook reports counts once, whoever delivers it.

Each hook is a process of its own and remembers nothing. What one hook began and another ends is
found by a request: a name made of the agent's own ids, which the log holds with the event. Not
every event has such ids, and one event may reach us twice: by the helper, and by the hook that did
not wait for it. So each event has an id of ours, too.
"""

import hashlib

from takeback.agents import agent as kinds
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from takeback.agents.agent import HookEvent

PROMPT, GOES_ON, BEFORE, TASK, TYPED = "prompt", "goes on", "before", "task", "typed"
_LONGEST_ID = 200
_OF_LIKENESS = 4


def part_of(event: "HookEvent", id: str, part: str) -> str:
    """The agent, its conversation, its id of a prompt, a call or a task, and which part of it."""
    return named(event.agent.name, clean(event.session), id, part)


def named(agent: str, session: str, id: str, part: str) -> str:
    """The same with a session as the log has it."""
    return " ".join((agent, session, clean(id), part))


def delivery(event: "HookEvent") -> str:
    """This very event, whoever handles it, and whichever settings of the agent report it."""
    id = event.delivery
    if event.stamp:
        parts = (event.session, event.stamp, event.kind, event.call, event.subagent)
        id = _hash(json_text.dumps(parts).encode())
    return " ".join(filter(None, ("hook", id, likeness(event))))


def typed(event: "HookEvent") -> str:
    """What a prompt that is a command of ours asks for.

    Several may have the id of one turn: what is typed into Codex while it works has that of then.
    """
    own = part_of(event, event.turn, TYPED) if has_own_id(event) else delivery(event)
    return f"{own} {wording(event)}"


def has_own_id(event: "HookEvent") -> bool:
    """Whether the agent's id names a prompt for good.

    Where there is a time, too, the ids begin anew; and two settings may report two times.
    """
    return bool(event.turn and not event.stamp)


def wording(event: "HookEvent") -> str:
    """What is the same in a prompt that is reported twice."""
    parts = (event.session, event.prompt, event.cwd)
    return _hash(json_text.dumps(parts).encode())[:_OF_LIKENESS]


def likeness(event: "HookEvent") -> str:
    """What is the same in events that belong together and have no id of the agent; else empty.

    Short, since it stays in the log when the words are forgotten: they cannot be guessed by it.
    """
    if event.kind == kinds.PROMPT and not event.turn:
        parts: Any = (event.prompt, event.cwd, event.transcript)
    elif event.kind in (kinds.BEFORE_TOOL, kinds.AFTER_TOOL) and not event.call:
        parts = (event.tool, sorted(event.given.items()))
    else:
        return ""
    return _hash(json_text.dumps(parts).encode())[:_OF_LIKENESS]


def clean(id: str) -> str:
    """An id as the log can hold it; a long one, or a strange one, by what it hashes to."""
    if len(id) <= _LONGEST_ID and id.isprintable() and " " not in id:
        return id
    return _hash(id.encode("utf-8", "surrogatepass"))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- requests of what we do ------------------------------------------------------------------


def told(session: str, restore: str) -> str:
    """A session was told of a restore."""
    return f"told {session} {restore}"


def refused(event: "HookEvent") -> str:
    """A call was refused. A second delivery of it is answered alike."""
    return refused_call(event, event.call) if event.call else f"refused {delivery(event)}"


def refused_call(event: "HookEvent", call: str) -> str:
    """A call of the session of an event was refused, by the agent's id of it."""
    return f"refused {part_of(event, call, BEFORE)}"


def guarded(event: "HookEvent") -> str:
    """The user was asked about a call."""
    own = part_of(event, event.call, BEFORE) if event.call else delivery(event)
    return f"guarded {own}"


def refused_for(session: str, subagent: str, restore: str) -> str:
    """A call of a session, or of a sub-agent in it, was refused because of a restore."""
    return " ".join(filter(None, ("refused", session, subagent and clean(subagent), restore)))


def copied(agent: str, own_id: str) -> str:
    """A conversation was copied, under a new id of the agent's."""
    return f"copied {agent} {own_id}"
