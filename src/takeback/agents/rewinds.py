"""Going back and interrupting inside an agent, which no hook reports: its conversation shows it.

After going back, a new prompt stands behind one that was not the newest. The files are still as the
newest turn left them, so the user is told how to bring them along; nothing is brought back by
itself.

Until an interrupted turn is closed, its last command seems to run, and what the user does by hand
would count as done by it. So whoever comes next closes it where it was interrupted: a command of
the user, another agent, the end of the session. The next prompt of the session does so by itself.
"""

import time

from takeback.agents import registry, requests
from takeback.agents.agent import BEFORE_TOOL, BEGINNING, ELSEWHERE, PASSED, PROMPT
from takeback.ledger.log import events
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.agents.agent import HookEvent
    from takeback.disk.lock import Held
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import TurnRow

_FIRST_STEPS = 3
_SECOND = 1_000_000_000
_LATEST = 1 << 33
"""Seconds: a time that the log can hold in nanoseconds."""


class Rewind(Value):
    """Where the user went back to: before which turn. `to` is empty if nobody can tell.

    `turn` is that of the prompt by which it was noticed.

    `moves_files` tells whether the files are not as they were then.
    """

    to: str
    label: str
    moves_files: bool
    turn: str = ""


def notice(
    ledger: "Ledger", held: "Callable[[], Held]", session: str, event: "HookEvent"
) -> "Rewind | None":
    """Record that the user went back; None if nobody did, or it was recorded before.

    At an event that `tells_of_prompts`.
    """
    look = _Look(ledger, event)
    turn = look.turn_of(event.turn)
    # The first steps are late enough, mostly: Claude Code writes its file in batches, and a quick
    # model is quicker. So the end looks in any case; every step would cost more and more.
    if turn is None or (event.kind == BEFORE_TOOL and turn.steps > _FIRST_STEPS):
        return None
    request = events.rewind_request(turn.id)
    if ledger.requested(request) is not None:
        return None
    to = look.gone_back_to(turn)
    if to is None:
        return None
    fact = events.NewEvent(
        events.CONVERSATION_REWOUND,
        {"session": session, "turn": turn.id, "to": to.to, "transcript": event.transcript},
        time.time_ns(),
        parents=(turn.opened,),
        request=request,
    )
    with held():
        if ledger.requested(request) is not None:
            return None
        ledger.record(fact)
    return to.replace(turn=turn.id)


_UNKNOWN = Rewind("", "", moves_files=True)
"""The user went back, and nobody can tell how far."""


class _Look:
    """What the log knows of the prompts of one conversation."""

    def __init__(self, ledger: "Ledger", event: "HookEvent") -> None:
        self._ledger = ledger
        self._event = event

    def turn_of(self, prompt: str) -> "TurnRow | None":
        """The turn of a prompt, by the agent's own id of it; also of one that no human wrote."""
        for part in (requests.PROMPT, requests.GOES_ON):
            known = self._ledger.requested(requests.part_of(self._event, prompt, part))
            if known is not None and known.payload:
                return self._ledger.turns.find(str(known.payload.get("turn")))
        return None

    def gone_back_to(self, turn: "TurnRow") -> "Rewind | None":
        """The oldest turn that a new one no longer follows on; None if it follows on the newest."""
        newest = self._ledger.turns.one_before(turn)
        if newest is None:
            return None
        if self._event.rewound:
            to = self.turn_of(self._event.rewound)
            return self._rewind(to, turn) if to is not None else None
        stays, passed, is_part = self._line(turn)
        transcript = events.conversation_of(self._ledger, newest.opened)[0]
        may_move = self._event.agent.rewinds_into_new_file
        moved = may_move and transcript not in ("", self._event.transcript)
        if stays is None:
            # A file that cannot be read tells nothing; only one that names another does.
            is_known = moved and is_part and self._event.kind != PROMPT
            return _UNKNOWN if is_known else None
        if stays >= newest.number or not (moved or passed > stays):
            return None
        to = self._ledger.turns.first_between(stays, turn)
        return self._rewind(to, turn) if to is not None else None

    def _rewind(self, to: "TurnRow", turn: "TurnRow") -> "Rewind":
        return Rewind(to.id, to.label, moves_files=self._tree(to) != self._tree(turn))

    def _line(self, turn: "TurnRow") -> "tuple[int | None, int, bool]":
        """The turn that one follows on, None if nobody can tell yet; the newest beside its line;
        whether the file says that it goes on from a part of another one.

        A prompt that is not in the file was never part of the conversation: what waited until
        the agent was done, for instance. So only what is seen there counts as left.
        """
        known = self._event.agent.conversations
        stays, passed, is_part = None, 0, False
        if known is None:
            return stays, passed, is_part
        for kind, prompt in known.before(self._event.transcript, self._event.turn):
            if kind == BEGINNING:
                stays = 0
                continue
            if kind == ELSEWHERE:
                is_part = True
                continue
            found = self.turn_of(prompt)
            if found is None or found.number >= turn.number:
                continue
            if kind != PASSED:
                return found.number, passed, is_part
            passed = max(passed, found.number)
            if stays is not None:
                break
        return stays, passed, is_part

    def _tree(self, turn: "TurnRow") -> "bytes | None":
        """The files as they were before a turn."""
        row = self._ledger.checkpoints.numbered(turn.before)
        return row.tree if row is not None else None


# -- interruptions ---------------------------------------------------------------------------


class Interruption(Value):
    """A turn that was interrupted: when, in nanoseconds, and whether a tool ran then."""

    turn: str
    at: int
    was_at_work: bool


def find_interruptions(ledger: "Ledger", but: str = "") -> "list[Interruption]":
    """The turns that still run by the log and were interrupted, except in one session."""
    running = ledger.turns.running_but_of(but)
    return [found for turn in running if (found := _interruption(ledger, turn)) is not None]


def nanoseconds(seconds: "float | None") -> "int | None":
    """A time of an agent as the log has it; None if there is none, or it cannot be one."""
    return int(seconds * _SECOND) if seconds is not None and 0 <= seconds < _LATEST else None


def _interruption(ledger: "Ledger", turn: "TurnRow") -> "Interruption | None":
    session = ledger.sessions.of(turn)
    known = registry.find_agent(session.agent)
    files = known.conversations if known is not None else None
    transcript, prompt = events.conversation_of(ledger, turn.opened) if files else ("", "")
    if files is None or not transcript:
        return None
    at = nanoseconds(files.interrupted_at(transcript, ""))
    if at is None:
        return None
    # Before the agent writes down a prompt, its conversation ends with what came before.
    of = files.interrupted_prompt(transcript) if prompt else ""
    if of and of != prompt:
        is_own = _resumed_with(ledger, session.agent, session.own_id, of) == turn.id
    else:
        is_own = bool(of) or at > turn.started
    if not is_own:
        return None
    return Interruption(turn.id, at, was_at_work=files.was_at_work(transcript, ""))


def _resumed_with(ledger: "Ledger", agent: str, session: str, prompt: str) -> str:
    """The turn that went on with a prompt which no human wrote; empty if none did."""
    event = ledger.requested(requests.named(agent, session, prompt, requests.GOES_ON))
    return str((event.payload or {}).get("turn", "")) if event is not None else ""
