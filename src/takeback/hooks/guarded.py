"""The guard at a hook: what a call would do, whether it is made, and what is saved before it."""

import os

from takeback.agents import registry
from takeback.effects import guarding
from takeback.effects.guarding import Call
from takeback.effects.tamper import Protected
from takeback.effects.verdict import ALLOW, DENY
from takeback.model import tools, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import HookEvent
    from takeback.capture.workspace import Workspace
    from takeback.effects.guarding import Blocked, Decision

_NOBODY_ASKS = ("bypassPermissions", "dontAsk", "yolo", "never")
"""Permission modes in which an agent shows no dialog."""
_LIKE_SHELLS = (words.SHELL, words.OTHER, words.AGENT)


def decide(
    work: "Workspace", event: "HookEvent", session: str, user_home: bytes, *, missed: bool = False
) -> "Decision | None":
    """What becomes of the call that an event announces; None if nothing is judged.

    One that was `missed` has run by now, so nothing stops it.
    """
    mode = guarding.mode_of(work)
    if mode == guarding.OFF or event.tool_kind == words.READ:
        return None
    from takeback.agents.agent import ASK

    kind, paths = tools.claim_of(event.tool, event.given, event.tool_kind)
    cwd = os.fsencode(event.cwd) if event.cwd else work.root
    can_ask = event.agent.understood(event, ASK) == ASK and event.agent.can_ask(event)
    call = Call(
        event.tool,
        event.given,
        kind,
        tuple(_whole(cwd, path, user_home) for path in paths),
        cwd,
        can_ask=can_ask and event.permission_mode not in _NOBODY_ASKS,
        can_deny=event.can_be_refused() and not missed,
    )
    return guarding.decide(work, call, session, protected(work, user_home), mode=mode)


def protected(work: "Workspace", user_home: bytes) -> Protected:
    """The store, and the files that hold agents' hooks: the user's, and those of the project."""
    found = []
    for agent in registry.REGISTERED:
        if not agent.folder:
            continue
        own = agent.folder if agent.project_folder == "" else agent.project_folder
        names = [name for name in (*_names(agent.file), *_names(agent.local_file)) if name]
        for name in names:
            found.append(os.path.join(user_home, os.fsencode(agent.folder), name))
            if own is not None:
                found.append(os.path.join(work.root, os.fsencode(own), name))
    return Protected(work.home.path, user_home, tuple(dict.fromkeys(found)))


def _names(file: str) -> "tuple[bytes, ...]":
    return (os.fsencode(file),) if file else ()


def _whole(cwd: bytes, path: bytes, home: bytes) -> bytes:
    if path.startswith(b"~/"):
        path = os.path.join(home, path[2:])
    return os.path.normpath(os.path.join(cwd, path))


def is_refused(decision: "Decision | None") -> bool:
    """Whether a call is not made, whatever could be rescued."""
    return decision is not None and decision.verdict.answer == DENY


def is_asked(decision: "Decision | None") -> bool:
    return decision is not None and decision.verdict.answer not in (ALLOW, DENY)


class Asked:
    """What a hook answers because of the guard: the verdict, and the call that it is about."""

    __slots__ = ("answer", "blocked")

    def __init__(self, answer: str, blocked: "Blocked") -> None:
        self.answer = answer
        self.blocked = blocked
