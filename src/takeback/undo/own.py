"""Whether a plan touches nothing but one session's own changes, so that it may ask for it alone.

What is anybody else's, what nobody knows the author of, and what needs a decision is the user's to
say. Every path counts by who changed it since the state that the plan goes back to.
"""

from takeback.errors import DecisionNeededError
from takeback.model import reasons
from takeback.model.beyond.participants import STAYS
from takeback.model.reasons import Action, Reason
from takeback.model.value import path_text
from takeback.model.words import PERHAPS, RESTORE, ROLLBACK, STEP, UNKNOWN, UNREPORTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.ledger.ledger import Ledger
    from takeback.model.plan import Plan

    Authors = Mapping[bytes, frozenset[str]]
    """For each path, the sessions that changed it; `OTHERS` stands for everybody else."""

OTHERS = ""
_STAYS_ANYWAY = (reasons.YOURS, reasons.ALREADY, reasons.AGENTS_OWN)
"""Why something stays that is not the session's own; else its own is mixed with that of others."""
_IN_DOUBT = (PERHAPS, UNREPORTED, UNKNOWN)
_END = 1 << 62


def require(ledger: "Ledger", plan: "Plan", session: str) -> None:
    """An error with the reasons if a plan is more than what a session may ask for alone."""
    found = judge(plan, session, changed_by(ledger, plan), turns_of(ledger, plan))
    if found:
        raise DecisionNeededError(
            "the plan touches more than the calling session's own changes; nothing was changed",
            hint=Action("apply-plan", plan=plan.id),
            reasons=found,
        )


def judge(
    plan: "Plan", session: str, authors: "Authors", turns: "Mapping[str, str]"
) -> "tuple[Reason, ...]":
    """Why the user has to decide about a plan; empty if a session may ask for it alone.

    `turns` are those that it takes back, with the session of each.
    """
    return (*_undecided(plan), *_of_others(plan, session, authors, turns))


def _undecided(plan: "Plan") -> "Iterator[Reason]":
    if plan.conflicts:
        paths = tuple(each.path for each in plan.conflicts)
        yield Reason(reasons.IN_CONFLICT, paths=paths)
    yield from plan.doubts


def _of_others(
    plan: "Plan", session: str, authors: "Authors", turns: "Mapping[str, str]"
) -> "Iterator[Reason]":
    own = frozenset((session,))
    away = tuple(each.path for each in plan.changes if each.outside)
    if away:
        yield Reason(reasons.OUTSIDE_PROJECT, paths=away)
    inside = (each.raw_path for each in plan.changes if not each.outside)
    paths = tuple(path_text(path) for path in inside if authors.get(path) != own)
    paths += tuple(each.path for each in plan.kept if each.reason.code not in _STAYS_ANYWAY)
    if paths:
        yield Reason(reasons.OF_OTHERS, paths=paths)
    names = tuple(each.name for each in plan.moves if each.how != STAYS)
    if names:
        yield Reason(reasons.MOVES_PARTICIPANTS, names=names)
    others = tuple(id for id, its in turns.items() if its != session)
    if others:
        yield Reason(reasons.TURNS_OF_OTHERS, turns=others)
    agents = tuple(each.agent for each in plan.running if each.id != session)
    if agents:
        yield Reason(reasons.OTHERS_AT_WORK, agents=agents)


# -- facts -------------------------------------------------------------------------------------


def turns_of(ledger: "Ledger", plan: "Plan") -> "dict[str, str]":
    """The turns that a plan takes back or goes over, with the session of each."""
    rows = map(ledger.turns.find, (*plan.turns, *plan.covers))
    return {row.id: ledger.sessions.of(row).id for row in rows if row is not None}


def changed_by(ledger: "Ledger", plan: "Plan") -> "dict[bytes, frozenset[str]]":
    """Who changed each path since the state that a plan goes back to."""
    base = _base(ledger, plan)
    askers = _askers(ledger, base)
    found: dict[bytes, set[str]] = {}
    for row in ledger.deltas.since(base):
        if row.who == STEP and row.how not in _IN_DOUBT:
            name = row.session or OTHERS
        else:
            name = askers.get(row.checkpoint, OTHERS) if row.who == RESTORE else OTHERS
        for path in (row.path, row.origin):
            if path is not None:
                found.setdefault(path, set()).add(name)
    return {path: frozenset(names) for path, names in found.items()}


def _base(ledger: "Ledger", plan: "Plan") -> int:
    """The checkpoint that a plan goes back to."""
    if plan.verb == ROLLBACK:
        return ledger.checkpoints.with_prefix(plan.target)[0].number
    restore = ledger.stack.find(plan.restore) if plan.restore else None
    rows = (ledger.turns.find(id) for id in plan.turns)
    befores = [row.before for row in rows if row is not None]
    befores += [restore.before] if restore is not None else []
    return min(befores, default=0)


def _askers(ledger: "Ledger", base: int) -> "dict[int, str]":
    """The sessions that asked for restores since a checkpoint, by the checkpoint each made."""
    row = ledger.checkpoints.numbered(base)
    found = {}
    for restore in ledger.stack.between(row.event if row is not None else 0, _END, _END):
        event = ledger.event(restore.event)
        found[restore.after] = (
            str((event.payload or {}).get("asker") or OTHERS) if event else OTHERS
        )
    return found
