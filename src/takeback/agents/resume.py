"""Continue a conversation from before some turn: a trimmed copy of it, under a new id.

The agent's own file is only read. One that cannot be trimmed is reported, and nothing else fails.
"""

import time

from takeback.agents import registry, requests
from takeback.agents.agent import (
    LATER_TURNS_STAY,
    NO_TRANSCRIPT,
    UNKNOWN_AGENT,
    UNWRITABLE,
    CannotTrimError,
)
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import words
from takeback.model.text.safe_text import shell_word
from takeback.worktree import export

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.agents.agent import Conversations, TrimmedConversation
    from takeback.disk.lock import Held
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import SessionRow, TurnRow
    from takeback.model.plan import Plan


class Resumed:
    """What became of one conversation: a copy to go on with, or a `problem` with its `fact`.

    `turn` is the first one that is not in the copy, `own_id` what the agent calls the copy.
    """

    __slots__ = (
        "agent",
        "command",
        "fact",
        "folder",
        "label",
        "own_id",
        "problem",
        "repaired",
        "session",
        "transcript",
        "turn",
    )

    def __init__(self, session: str, agent: str, turn: str, label: str) -> None:
        self.session = session
        self.agent = agent
        self.turn = turn
        self.label = label
        self.own_id = ""
        self.transcript = ""
        self.folder = ""
        self.command = ""
        self.problem = ""
        self.fact = ""
        self.repaired = False


def resume(
    ledger: "Ledger",
    held: "Callable[[], Held]",
    plan: "Plan",
    *,
    restore: str = "",
    in_the_middle: bool = False,
) -> "list[Resumed]":
    """Copies of the conversations that go with a plan, each as it was before."""
    if plan.verb == words.ROLLBACK:
        return since_state(ledger, held, plan.target, plan.goal, restore=restore)
    return before_turns(ledger, held, plan.turns, restore=restore, in_the_middle=in_the_middle)


def before_turns(
    ledger: "Ledger",
    held: "Callable[[], Held]",
    turns: "Iterable[str]",
    *,
    restore: str = "",
    in_the_middle: bool = False,
) -> "list[Resumed]":
    """Copies of the conversations that turns are of, each up to the first of them.

    Conversations whose later turns stay are left alone, unless `in_the_middle` says otherwise:
    the files of those turns are there, and a copy would know nothing of them.
    """
    rows = [row for turn in turns if (row := ledger.turns.find(turn)) is not None]
    return _of_each(ledger, held, rows, restore, in_the_middle=in_the_middle)


def since_state(
    ledger: "Ledger", held: "Callable[[], Held]", checkpoint: str, goal: str, *, restore: str = ""
) -> "list[Resumed]":
    """Copies of all conversations that went on after a state, each as it was then."""
    number = next((row.number for row in ledger.checkpoints.with_prefix(checkpoint)), 1 << 62)
    side, _, id = goal.partition(" ")
    rows = ledger.turns.begun_since(number, ledger.turns.find(id) if side == "after" else None)
    kept = [row for row in rows if _conversations_of(ledger.sessions.of(row).agent) is not None]
    return _of_each(ledger, held, kept, restore, in_the_middle=True)


def _of_each(
    ledger: "Ledger",
    held: "Callable[[], Held]",
    turns: "list[TurnRow]",
    restore: str,
    *,
    in_the_middle: bool,
) -> "list[Resumed]":
    first: dict[int, TurnRow] = {}
    for turn in turns:
        known = first.get(turn.session)
        if known is None or turn.number < known.number:
            first[turn.session] = turn
    made = []
    for turn in first.values():
        resumed, fact = _resumed(ledger, turn, restore, in_the_middle=in_the_middle)
        made.append(resumed)
        if fact is not None:
            with held():
                ledger.record(fact)
    return made


def _resumed(
    ledger: "Ledger", turn: "TurnRow", restore: str, *, in_the_middle: bool
) -> "tuple[Resumed, NewEvent | None]":
    """A copy, and the event that records it."""
    session = ledger.sessions.of(turn)
    made = Resumed(session.id, session.agent, turn.id, turn.label)
    try:
        if not in_the_middle:
            _require_tail(ledger, turn)
        trimmed = _trimmed(ledger, turn, session.agent)
        export.write_new(trimmed.path, trimmed.lines)
    except CannotTrimError as problem:
        made.problem, made.fact = problem.reason, problem.fact
        return made, None
    except OSError as problem:
        made.problem, made.fact = UNWRITABLE, problem.strerror or str(problem)
        return made, None
    made.own_id, made.transcript = trimmed.own_id, trimmed.path
    made.folder, made.repaired = trimmed.folder, trimmed.repaired
    made.command = " ".join(map(shell_word, trimmed.command))
    return made, _copied(turn, session, trimmed, restore)


def _require_tail(ledger: "Ledger", turn: "TurnRow") -> None:
    stays = ledger.turns.count_changed_after(turn)
    if stays:
        raise CannotTrimError(LATER_TURNS_STAY, str(stays))


def _conversations_of(agent: str) -> "Conversations | None":
    """What trims the conversations of an agent; None if nothing does."""
    known = registry.find_agent(agent)
    files = known.conversations if known is not None else None
    return files if files is not None and files.trims else None


def _trimmed(ledger: "Ledger", turn: "TurnRow", agent: str) -> "TrimmedConversation":
    known = _conversations_of(agent)
    if known is None:
        raise CannotTrimError(UNKNOWN_AGENT)
    path, prompt = events.conversation_of(ledger, turn.opened)
    if not path.startswith("/") or not prompt:
        raise CannotTrimError(NO_TRANSCRIPT)
    return known.trim(path, prompt)


def _copied(
    turn: "TurnRow", session: "SessionRow", trimmed: "TrimmedConversation", restore: str
) -> NewEvent:
    """Recorded, so that the copy is told what the original would be."""
    facts = {
        "session": session.id,
        "from": session.own_id,
        "to": trimmed.own_id,
        "transcript": trimmed.path,
        "turn": turn.id,
        "restore": restore,
    }
    return NewEvent(
        events.CONVERSATION_COPIED,
        facts,
        time.time_ns(),
        parents=(turn.opened,),
        request=requests.copied(session.agent, trimmed.own_id),
    )
