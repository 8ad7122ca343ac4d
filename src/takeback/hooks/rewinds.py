"""Going back inside an agent, which tells no hook: seen in its own record of the conversation.

A new prompt stands behind one that was not the newest. The files are still as the newest turn
left them, so whoever went back is told how to bring them along. Nothing is brought back by itself.
"""

import time

from takeback.hooks import calls, conversations
from takeback.hooks.conversations.trimmed import BEGINNING, ELSEWHERE, PASSED
from takeback.hooks.witness import request_of
from takeback.store import events, history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.hooks.calls import Call
    from takeback.project import Project
    from takeback.store.ledger import Ledger

_TURN = "SELECT number, id, opened, label, before, steps, session FROM turns WHERE "
_LONGEST = 60
_FIRST_STEPS = 3
_MOVES = ("codex",)
"""Agents that go on in a new file after somebody went back."""


class _Turn:
    """A turn of the session."""

    __slots__ = ("before", "id", "label", "number", "opened", "session", "steps")

    def __init__(
        self,
        number: int,
        id: str,
        opened: int,
        label: str,
        before: int,
        steps: int,
        session: int,
    ) -> None:
        self.number = number
        self.id = id
        self.opened = opened
        self.label = label
        self.before = before
        self.steps = steps
        self.session = session


def noticed(project: "Project", session: str, call: "Call") -> str:
    """What to say to somebody who went back; empty if nobody did, or it was said before.

    At a call that `tells_of_prompts`.
    """
    look = _Look(project.ledger, call)
    turn = look.turn_of(call.turn)
    # The first steps are late enough, mostly: Claude Code writes its file in batches, and a quick
    # model is quicker. So the end looks in any case; every step would cost more and more.
    if turn is None or (call.kind == calls.BEFORE_TOOL and turn.steps > _FIRST_STEPS):
        return ""
    request = history.rewind_request(turn.id)
    if look.ledger.requested(request) is not None:
        return ""
    to = look.gone_back_to(turn)
    if to is None:
        return ""
    said = {
        "session": session,
        "turn": turn.id,
        "to": to.id if to is not _UNKNOWN else "",
        "transcript": call.transcript,
    }
    with project.held():
        if look.ledger.requested(request) is not None:
            return ""
        fact = events.NewEvent(
            events.CONVERSATION_REWOUND,
            said,
            time.time_ns(),
            parents=(turn.opened,),
            request=request,
        )
        look.ledger.record(fact)
    return look.offer(to, turn)


_UNKNOWN = _Turn(0, "", 0, "", 0, 0, 0)
"""Somebody went back, and nobody can tell how far."""


class _Look:
    """What the log knows of the prompts of one conversation."""

    def __init__(self, ledger: "Ledger", call: "Call") -> None:
        self.ledger = ledger
        self._call = call

    def turn_of(self, prompt: str) -> "_Turn | None":
        """The turn of a prompt, by the agent's own id of it; also of one that no human wrote."""
        for what in ("prompt", "goes on"):
            known = self.ledger.requested(request_of(self._call, prompt, what))
            if known is not None and known.payload:
                return self._one("id = ?", str(known.payload.get("turn")))
        return None

    def _one(self, where: str, *values: "int | str") -> "_Turn | None":
        for row in self.ledger.rows(_TURN + where + " LIMIT 1", values):
            return _Turn(*row)
        return None

    def gone_back_to(self, turn: _Turn) -> "_Turn | None":
        """The oldest turn that a new one no longer follows on; None if it follows on the newest."""
        within = "session = ? AND number < ? "
        newest = self._one(within + "ORDER BY number DESC", turn.session, turn.number)
        if newest is None:
            return None
        stays, passed, is_part = self._line(turn)
        moved = self._call.agent in _MOVES and self._transcript_of(newest) not in (
            "",
            self._call.transcript,
        )
        if stays is None:
            # A file that cannot be read tells nothing; only one that names another does.
            is_known = moved and is_part and self._call.kind != calls.PROMPT
            return _UNKNOWN if is_known else None
        if stays >= newest.number or not (moved or passed > stays):
            return None
        after = within + "AND number > ? "
        values = (turn.session, turn.number, stays)
        live = after + "AND undone IS NULL AND covered IS NULL ORDER BY number"
        return self._one(live, *values) or self._one(after + "ORDER BY number", *values)

    def _line(self, turn: _Turn) -> "tuple[int | None, int, bool]":
        """The turn that one follows on, None if nobody can tell yet; the newest beside its line;
        whether the file says that it goes on from a part of another one.

        A prompt that is not in the file was never part of the conversation: what waited until
        the agent was done, for instance. So only what is seen there counts as left.
        """
        known = conversations.of(self._call.agent)
        stays, passed, is_part = None, 0, False
        if known is None:
            return stays, passed, is_part
        for kind, prompt in known.before(self._call.transcript, self._call.turn):
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

    def _transcript_of(self, turn: _Turn) -> str:
        return conversation_of(self.ledger, turn.opened)[0]

    def offer(self, to: _Turn, turn: _Turn) -> str:
        """What somebody who went back can do about the files; nothing if they are as they were."""
        if to is _UNKNOWN:
            return (
                "Takeback: you went back in the conversation; the files did not go with it."
                " `takeback log` shows where they can go back to."
            )
        if self._tree(to.before) == self._tree(turn.before):
            return ""
        return (
            f'Takeback: you went back to before "{_quoted(to.label)}"; the files are not as they'
            f" were then. `takeback rollback {to.id[:8]}-` brings them back."
        )

    def _tree(self, checkpoint: int) -> "bytes | None":
        row = self.ledger.checkpoint(checkpoint)
        return row.tree if row is not None else None


def conversation_of(ledger: "Ledger", opened: int) -> "tuple[str, str]":
    """Where an agent keeps the conversation of a turn, and what it calls its prompt."""
    for event in ledger.events("WHERE seq = ?", (opened,)):
        told = (event.payload or {}).get("conversation")
        if isinstance(told, dict):
            return str(told.get("transcript") or ""), str(told.get("prompt") or "")
    return "", ""


def _quoted(label: str) -> str:
    from takeback.model.masking import without_secrets
    from takeback.model.safetext import safe

    return safe(" ".join(without_secrets(label[:4000]).split()), _LONGEST)
