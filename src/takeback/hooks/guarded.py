"""The guard at a hook: what a call would do, whether it is made, and what is saved before it."""

import os

from takeback.agents import registry, requests
from takeback.agents.agent import ALLOW, ASK, DENY
from takeback.model import tools, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.agents.agent import Agent, HookEvent
    from takeback.capture.workspace import Workspace
    from takeback.effects.guarding import Blocked, Call, Decision
    from takeback.effects.tamper import Protected
    from takeback.model.beyond.rescued import Rescued
    from takeback.model.text.json_text import Json

    Place = tuple[str, str | None]
    """A session and a turn of it."""

_NOBODY_ASKS = ("bypassPermissions", "dontAsk")
"""Permission modes in which an agent shows no dialog."""
_OFF = "off"
_known: "dict[tuple[bytes, bytes], tuple[tuple[bytes, ...], tuple[bytes, ...]]]" = {}


class Guarding:
    """Decides about the call that one event announces.

    `asked` is that call, if the user has to decide; `rescued` what was saved before it.
    """

    __slots__ = ("_home", "_work", "asked", "rescued")

    def __init__(self, work: "Workspace", user_home: bytes) -> None:
        self._work = work
        self._home = user_home
        self.asked: Blocked | None = None
        self.rescued: Rescued | None = None

    def decide(
        self, event: "HookEvent", session: str, *, missed: bool = False
    ) -> "Decision | None":
        """What becomes of a call; None if nothing is judged.

        One that was `missed` has run by now, so nothing stops it.
        """
        if event.tool_kind == words.READ or tools.acts_for_us(event.tool):
            return None
        if self._work.rules.setting("guard", "mode", "") == _OFF:
            return None
        from takeback.effects import guarding

        mode = guarding.mode_of(self._work)
        call = _call(event, self._work.root, self._home, missed=missed)
        return guarding.decide(self._work, call, session, self._protected(), mode=mode)

    def is_refused(self, decision: "Decision | None") -> bool:
        """Whether a call is not made, whatever could be rescued."""
        return decision is not None and decision.verdict.answer == DENY

    def step_facts(self, decision: "Decision | None") -> "dict[str, Json]":
        """What the event of a step says: its class and its effects."""
        if decision is None:
            return {}
        from takeback.effects import guarding

        return guarding.step_facts(self._work, decision)

    def save(self, decision: "Decision | None", step: str) -> str:
        """Save what a call would destroy; what becomes of the call now."""
        if decision is None:
            return ALLOW
        from takeback.effects import guarding

        self.rescued, answer = guarding.save(self._work, decision, step)
        return answer

    def refuse(self, decision: "Decision | None", place: "Place", request: str) -> "Blocked":
        """Record that a call is refused."""
        from takeback.effects import guarding

        assert decision is not None
        return guarding.record(self._work, decision, *place, DENY, request)

    def ask(self, decision: "Decision | None", place: "Place", event: "HookEvent") -> None:
        """Record that the user is asked about a call."""
        from takeback.effects import guarding

        assert decision is not None
        request = requests.guarded(event)
        self.asked = guarding.record(self._work, decision, *place, ASK, request)

    def ask_again(self, event: "HookEvent") -> None:
        """A call is delivered a second time: the answer is the same if the user was asked."""
        known = self._work.ledger.requested(requests.guarded(event))
        if known is not None and known.payload:
            from takeback.effects import guarding

            self.asked = guarding.blocked_of(known.payload)

    def _protected(self) -> "Protected":
        """The store, and the files that hold agents' hooks: the user's, and the project's."""
        from takeback.effects.tamper import Protected

        own, in_tree = all_settings(self._home, self._work.root)
        return Protected(self._work.home.path, self._home, own, in_tree)


def all_settings(home: bytes, root: bytes) -> "tuple[tuple[bytes, ...], tuple[bytes, ...]]":
    """The settings of all agents, the user's and the project's; the helper remembers them."""
    if (home, root) not in _known:
        agents = [agent for agent in registry.REGISTERED if agent.folder]
        own = [path for each in agents for path in _paths(each, home, each.folder)]
        inside = [(each, each.project_folder) for each in agents]
        theirs = [
            path
            for each, folder in inside
            if folder is not None
            for path in _paths(each, root, folder or each.folder)
        ]
        _known.clear()
        _known[home, root] = (tuple(dict.fromkeys(own)), tuple(dict.fromkeys(theirs)))
    return _known[home, root]


def _paths(agent: "Agent", top: bytes, folder: str) -> "Iterator[bytes]":
    for name in filter(None, (*agent.file_names(), agent.local_file)):
        yield os.path.join(top, os.fsencode(folder), os.fsencode(name))


def _call(event: "HookEvent", root: bytes, home: bytes, *, missed: bool) -> "Call":
    from takeback.effects.guarding import Call

    kind, paths = tools.claim_of(event.tool, event.given, event.tool_kind)
    cwd = os.fsencode(event.cwd) if event.cwd else root
    has_dialog = event.agent.can_ask(event) and event.permission_mode not in _NOBODY_ASKS
    return Call(
        event.tool,
        event.given,
        kind,
        tuple(_whole(cwd, path, home) for path in paths),
        cwd,
        can_ask=has_dialog,
        can_deny=event.can_be_refused() and not missed,
    )


def _whole(cwd: bytes, path: bytes, home: bytes) -> bytes:
    if path.startswith(b"~/"):
        path = os.path.join(home, path[2:])
    return os.path.normpath(os.path.join(cwd, path))
