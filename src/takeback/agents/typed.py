"""Commands that somebody types into the agent: a prompt that is `tb undo`, and nothing else.

    hook ──event──► takeback (`cli/screens/typed`) ──text──► hook ──► the agent shows it
                             │
                             └── nobody waits any more ──► a file of the store ──► the next prompt

The prompt is blocked, whatever comes of it, so no model is asked and no turn begins. A process of
its own does what was typed and goes on if that takes longer than an agent waits.
"""

import os

from takeback.agents.agent import PROMPT
from takeback.disk import home, operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent, Payload
    from takeback.store import Store

UNDO, REDO, LOG, STATUS, WHY, NAME = "undo", "redo", "log", "status", "why", "name"
_OURS = "tb"
_COMMAND = "/takeback:"
"""How the commands of our plugin begin (`plugin/claude-code/commands`)."""
_LONGEST = 300
_INJECTED = ("hook_context", "system-reminder", "system_reminder", "ide_opened_file",
             "ide_selection")  # fmt: skip
"""What agents and hooks put around a prompt, each between two tags."""
_OF_SUBAGENTS = ("agent_id", "agentId", "parent_agent_id", "parentAgentId", "parent_session_id",
                 "parentSessionId", "parent_thread_id")  # fmt: skip
_MAIN = "main"
"""What Kimi Code calls the agent that the user talks to."""
_RESULT = b"/typed-"
_QUESTION = b"%d %d %d\n"


class Typed:
    """What was typed: a verb, and the name that it gives."""

    __slots__ = ("name", "verb")

    def __init__(self, verb: str, name: str = "") -> None:
        self.verb = verb
        self.name = name


def read(prompt: str) -> "Typed | None":
    """The command that a prompt is, as a whole and on one line; None if it is anything else."""
    words = _without_injected(prompt).split(" ", 2) if len(prompt) < 1 << 16 else []
    if len(words) == 1 and words[0].startswith(_COMMAND):
        words = [_OURS, words[0].removeprefix(_COMMAND)]
    if len(words) < 2 or words[0] != _OURS:
        return None
    if words[1] == NAME:
        name = words[2].strip() if len(words) > 2 else ""
        is_one_line = len(name.splitlines()) == 1
        return Typed(NAME, name) if is_one_line and len(name) < _LONGEST else None
    return (
        Typed(words[1]) if len(words) == 2 and words[1] in (UNDO, REDO, LOG, STATUS, WHY) else None
    )


def _without_injected(prompt: str) -> str:
    """What the user typed, of a prompt that has more around it."""
    text, before = prompt.strip(), ""
    while text != before:
        before = text
        for tag in _INJECTED:
            end = f"</{tag}>"
            if text.startswith(f"<{tag}>") and end in text:
                text = text.partition(end)[2].strip()
            elif text.endswith(end) and f"<{tag}>" in text:
                text = text.rpartition(f"<{tag}>")[0].strip()
    return text


def is_ours(event: "HookEvent", payload: "Payload") -> bool:
    """Whether a human typed a command of ours into an agent that can drop it.

    Any agent may name its sub-agents some day, so all names of them count.
    """
    if event.kind != PROMPT or event.subagent or not event.session:
        return False
    if any(payload.get(name) not in (None, "", _MAIN) for name in _OF_SUBAGENTS):
        return False
    return read(event.prompt) is not None and event.agent.can_deny(event)


def ask(words: "tuple[bytes, ...]", payload: bytes, received: int, patience: float) -> "str | None":
    """What comes of a command; None if the process that does it is still at work after a while.

    `words` are those of the line to the helper, `received` is when the event came.
    """
    from takeback.disk import programs

    said = b"".join(word + b"\0" for word in words)
    question = _QUESTION % (received, len(said), len(payload)) + said + payload
    around = {b"TAKEBACK_HOME": words[0], **({b"HOME": words[1]} if words[1] else {})}
    with programs.ask_ourselves("__typed", question, environment=around) as asked:
        text = asked.answer(patience)
        if text is not None:
            asked.acknowledge()
    return None if text is None else text.decode("utf-8", "replace").strip()


# -- at the other end ----------------------------------------------------------------------------


def question(fd: int) -> "tuple[int, tuple[bytes, ...], bytes]":
    """What a hook asks for: when it got the event, the words of the line to the helper, and it."""
    head = b""
    while not head.endswith(b"\n") and (sign := os.read(fd, 1)):
        head += sign
    received, of_words, of_payload = map(int, head.split())
    data = bytearray()
    while len(data) < of_words + of_payload and (piece := os.read(fd, 1 << 16)):
        data += piece
    return received, tuple(bytes(data[:of_words]).split(b"\0")[:-1]), bytes(data[of_words:])


def answer(text: str) -> bytes:
    """A result as the hook reads it."""
    data = text.encode("utf-8", "backslashreplace")
    return b"%d\n" % len(data) + data


def is_read(fd: int) -> bool:
    """Whether the hook read the answer in time; it waits no longer otherwise."""
    return os.read(fd, 1) != b""


def keep_result(store: "Store", session: str, text: str) -> None:
    """Keep what came of it until the next prompt of its session; once if it was sent twice."""
    path = store.path + _RESULT + session.encode()
    before = home.read_small(path)
    added = text.encode("utf-8", "backslashreplace") + b"\n"
    if not before.endswith(added):
        home.replace_file(path, before, added, durable=False)


def take_result(store: "Store", session: str) -> str:
    """What came of a command that its hook did not wait for; empty if there is none to tell."""
    path = store.path + _RESULT + session.encode()
    if not os.path.exists(path):
        return ""
    text = home.read_small(path).decode("utf-8", "replace").strip()
    operations.discard(path)
    return text
