"""What a restore does beside the files: memory, databases and other participants.

A rollback brings each to its token at the coordinate that it goes back to. An undo does so only at
the tail, and only if nobody changed the participant since; else it is listed as staying. A redo,
and the undo of a rollback, bring each back to what the safety capture held.
"""

from takeback.errors import ParticipantError
from takeback.ledger.beyond.mutations import APPLIED, BEGUN, INVERTED
from takeback.ledger.beyond.participants import DONE as IS_DONE
from takeback.ledger.beyond.participants import NOW
from takeback.model import reasons
from takeback.model.beyond.participants import (
    AFTERWARDS,
    CONFLICTS,
    EVERY,
    KINDS,
    MEMORY,
    MEMORY_NAME,
    MOVES,
    MUTATION_NAME,
    OTHER,
    STAYS,
    Difference,
    Move,
)
from takeback.model.reasons import Action, Reason
from takeback.model.value import Value
from takeback.model.words import KEEP_MINE, REDO, ROLLBACK, SKIP, UNDO
from takeback.participants.coordinator import Guarded
from takeback.participants.mutations import looked_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.ledger.beyond.participants import MoveRow, TokenRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import TurnRow
    from takeback.model.beyond.participants import Mutation
    from takeback.model.plan import Description, Plan
    from takeback.participants.coordinator import Participants


class Span(Value):
    """What is taken back of one participant: its state before it, and as it was left.

    None means that nobody knows. `tail` tells that nothing else was done since.
    """

    before: "str | None"
    after: "str | None"
    tail: bool = True


class Moving:
    """Plans what moves beside the files. With the lock held, after a capture."""

    def __init__(self, ledger: "Ledger", participants: "Participants") -> None:
        self._ledger = ledger
        self._participants = participants

    def plan(self, what: "Description", plan: "Plan") -> "tuple[Move, ...]":
        """The moves of a plan about files."""
        kinds = {kind for kind in what.only or KINDS if kind in KINDS}
        if plan.raw_paths or not kinds or not (plan.entry or plan.verb == ROLLBACK):
            return ()
        found: list[Move] = []
        if MEMORY in kinds:
            found += self._memories(plan)
        for name, row in sorted(self._ledger.participants.at().items()):
            if row.kind in kinds:
                found += self._of(name, row, plan)
        if OTHER in kinds and self._ledger.mutations.has_any():
            found += self._mutations(what, plan)
        return tuple(found)

    # -- the application's state ---------------------------------------------------------------

    def _mutations(self, what: "Description", plan: "Plan") -> "Iterator[Move]":
        """The inverses that run, the newest mutation first; for a redo the oldest."""
        if plan.verb == ROLLBACK:
            chosen = self._ledger.mutations.since(plan.cursor)
        elif plan.verb == REDO or not plan.turns:
            chosen = self._moved(plan)
        else:
            chosen = self._ledger.mutations.of_turns(plan.turns)
        # What reverses a restore takes each the other way; all else takes back what stands.
        is_reversal = plan.verb == REDO or (plan.verb == UNDO and not plan.turns)
        again = [each for each in reversed(chosen) if is_reversal and each.state == INVERTED]
        back = [each for each in chosen if each.state in (APPLIED, BEGUN)]
        own, there = {each.key for each in chosen}, dict[str, object]()
        is_left = isinstance(what.decide, str) and what.decide in (KEEP_MINE, SKIP)
        for each in (*back, *again):
            if each.state == BEGUN:
                yield self._of_mutation(each, STAYS, Reason(reasons.STATE_UNKNOWN))
                continue
            with Offering(plan.replace(moves=(Move(each.key, OTHER, MOVES),))):
                move = self._planned(each, own, there, forward=each.state == INVERTED)
            yield move.replace(how=STAYS) if is_left and move.how == CONFLICTS else move

    def _moved(self, plan: "Plan") -> "list[Mutation]":
        """The mutations that the restore which is reversed moved, the newest first."""
        row = self._ledger.stack.find(plan.restore) if plan.restore else None
        if row is None:
            return []
        moves = self._ledger.participants.moves_of(row.number)
        keys = [
            m.name.removeprefix(MUTATION_NAME) for m in moves if m.name.startswith(MUTATION_NAME)
        ]
        found = [self._ledger.mutations.find(key) for key in keys]
        known = [each for each in found if each is not None]
        return sorted(known, key=lambda each: -each.event)

    def _planned(
        self, mutation: "Mutation", own: "set[str]", there: "dict[str, object]", *, forward: bool
    ) -> Move:
        """What becomes of a mutation; `there` is what targets will be by then."""
        way, target = self._participants.ways.find(mutation.inverse), mutation.target
        if way is None:
            return self._of_mutation(mutation, STAYS, Reason(reasons.NO_INVERSE))
        if forward and way.redo is None:
            return self._of_mutation(mutation, STAYS, Reason(reasons.NO_REDO))
        before, after = mutation.before, mutation.after
        left, becomes = (before, after) if forward else (after, before)
        if way.read is not None:
            if target not in there:
                with Guarded(target, "read"):
                    there[target] = looked_at(way.read, target)
            clashes, there[target] = there[target] != left, becomes
        else:
            later = self._ledger.mutations.later(mutation)
            clashes = any(each.key not in own for each in later)
        if clashes:
            return self._of_mutation(mutation, CONFLICTS, Reason(reasons.STATE_SINCE))
        return self._of_mutation(mutation, AFTERWARDS)

    def _of_mutation(self, mutation: "Mutation", how: str, reason: "Reason | None" = None) -> Move:
        differences = (Difference(mutation.target, changed=1),)
        name = MUTATION_NAME + mutation.key
        return Move(name, OTHER, how, "", "", reason, differences)

    # -- participants ----------------------------------------------------------------------

    def _of(self, name: str, now: "TokenRow", plan: "Plan") -> "Iterator[Move]":
        span = self._span(name, plan)
        if span is None or span.before == now.token != "":
            return
        kind = now.kind
        if span.before is None:
            if span.after != span.before or plan.verb == ROLLBACK:
                yield Move(name, kind, STAYS, reason=Reason(reasons.STATE_UNKNOWN))
            return
        participant = self._participants.find(name)
        if participant is None:
            why = self._participants.problems.get(name, "")
            code = reasons.NOT_REACHED if why else reasons.NOT_REGISTERED
            yield Move(name, kind, STAYS, span.before, reason=Reason(code, problem=why))
            return
        if not now.token:
            raise ParticipantError(
                f"`{name}` cannot be restored, because its present state cannot be captured:"
                f" {now.problem}",
                hint=without(plan, kind),
            )
        if plan.verb != ROLLBACK and not span.tail:
            yield Move(name, kind, STAYS, span.before, reason=Reason(reasons.NOT_AT_TAIL))
        elif plan.verb != ROLLBACK and not self._is_as_left(name, now, span):
            yield Move(name, kind, STAYS, span.before, reason=Reason(reasons.STATE_SINCE))
        else:
            differences = self._describe(name, span.before, plan, kind)
            if differences or participant.can_prepare is False:
                how = MOVES if participant.can_prepare else AFTERWARDS
                tokens = (span.before, now.token)
                yield Move(name, kind, how, *tokens, differences=differences)

    def _is_as_left(self, name: str, now: "TokenRow", span: Span) -> bool:
        if span.after is None:
            return False
        return now.token == span.after or not self._participants.describe(name, span.after)

    def _describe(self, name: str, token: str, plan: "Plan", kind: str) -> "tuple[Difference, ...]":
        with Offering(plan.replace(moves=(Move(name, kind, MOVES),))):
            return self._participants.describe(name, token)
        raise AssertionError("what is raised passes")

    def _span(self, name: str, plan: "Plan") -> "Span | None":
        """What is taken back of a participant; None if nothing is."""
        tokens = self._ledger.participants
        if plan.verb == ROLLBACK:
            return Span(_known(tokens.at(plan.cursor).get(name)), None)
        row = self._row_of_restore(name, plan)
        if row is not None:
            return Span(row.before, row.token) if row.state == IS_DONE else None
        if plan.verb == REDO or not plan.turns:
            return None
        first, last = self._ends(plan)
        before, after = (
            _known(tokens.at(cursor).get(name)) for cursor in (first.opened, last.closed or NOW)
        )
        if before == after:
            return None
        return Span(before, after, self._is_tail(plan, None))

    # -- the memory of sessions ------------------------------------------------------------

    def _memories(self, plan: "Plan") -> "Iterator[Move]":
        for id, number in self._ledger.memory.sessions():
            name, now = MEMORY_NAME + id, self._ledger.memory.epoch(number)
            span = self._memory_span(name, number, plan)
            if span is None or span.before is None:
                continue
            then = int(span.before)
            differences = self._memory_differences(number, now, then)
            if not differences:
                continue
            if plan.verb != ROLLBACK:
                code = "" if span.tail else reasons.NOT_AT_TAIL
                if span.tail and self._memory_differences(number, now, int(span.after or 0)):
                    code = reasons.STATE_SINCE
                if code:
                    yield Move(name, MEMORY, STAYS, span.before, reason=Reason(code))
                    continue
            yield Move(name, MEMORY, MOVES, span.before, str(now), differences=differences)

    def _memory_span(self, name: str, number: int, plan: "Plan") -> "Span | None":
        memory = self._ledger.memory
        if plan.verb == ROLLBACK:
            return Span(str(memory.epoch(number, plan.cursor)), None)
        row = self._row_of_restore(name, plan)
        if row is not None:
            return Span(row.before, row.token)
        if plan.verb == REDO or not plan.turns:
            return None
        own = [row for row in self._turns(plan) if row.session == number]
        if not own:
            return None
        first, last = own[0], own[-1]
        before, after = (
            memory.epoch(number, cursor) for cursor in (first.opened, last.closed or NOW)
        )
        if before == after:
            return None
        return Span(str(before), str(after), self._is_tail(plan, number))

    def _memory_differences(self, session: int, now: int, then: int) -> "tuple[Difference, ...]":
        if now == then:
            return ()
        here, there = (self._ledger.memory.at(session, epoch) for epoch in (now, then))
        found = []
        for layer, key in sorted(here.keys() | there.keys()):
            old, new = here.get((layer, key)), there.get((layer, key))
            if old != new:
                what = f"{layer}.{key}" if layer else key
                counts = (old is None, new is None, None not in (old, new))
                found.append(Difference(what, *map(int, counts)))
        return tuple(found)

    # -- what is taken back ----------------------------------------------------------------

    def _row_of_restore(self, name: str, plan: "Plan") -> "MoveRow | None":
        """What the restore that is reversed did with a participant."""
        row = self._ledger.stack.find(plan.restore) if plan.restore else None
        if row is None or (plan.verb == REDO and set(self._numbers(plan)) < set(row.turns)):
            return None
        moves = self._ledger.participants.moves_of(row.number)
        return next((move for move in moves if move.name == name), None)

    def _turns(self, plan: "Plan") -> "list[TurnRow]":
        """The turns of a plan, the oldest first."""
        rows = (self._ledger.turns.find(id) for id in plan.turns)
        return sorted((row for row in rows if row is not None), key=lambda row: row.opened)

    def _numbers(self, plan: "Plan") -> "list[int]":
        return [row.number for row in self._turns(plan)]

    def _ends(self, plan: "Plan") -> "tuple[TurnRow, TurnRow]":
        rows = self._turns(plan)
        return rows[0], max(rows, key=lambda row: row.closed or NOW)

    def _is_tail(self, plan: "Plan", session: "int | None") -> bool:
        """Whether the turns of a plan are the newest entries: of all, or of one session."""
        rows = [row for row in self._turns(plan) if session in (None, row.session)]
        back = self._ledger.stack.entry_back
        newest = {back(place, session) for place in range(len(rows))}
        return newest == {("turn", row.number) for row in rows}


def _known(row: "TokenRow | None") -> "str | None":
    return row.token or None if row is not None else None


class Offering:
    """Offers the command without a participant where one cannot move."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: "BaseException | None", trace: object) -> None:
        if isinstance(problem, ParticipantError):
            kinds = {move.kind for move in self._plan.moves if move.how == MOVES}
            hint = (*problem.actions, *without(self._plan, *kinds))
            raise ParticipantError(str(problem), hint=hint) from problem


def without(plan: "Plan", *kinds: str) -> "tuple[Action | str, ...]":
    """The command that leaves out what cannot move."""
    only = ",".join(each for each in plan.only or EVERY if each not in kinds)
    words: tuple[str, ...] = (plan.verb,)
    if plan.verb == ROLLBACK:
        side, _, id = plan.goal.partition(" ")
        words += (f"{id[:8]}-" if side == "before" else (id or plan.target)[:8],)
    elif plan.verb == UNDO and not plan.is_newest:
        words += tuple(id[:8] for id in plan.turns)
    offer = Action("without-participants", verb=plan.verb, words=words, only=only)
    return (offer, "nothing was changed")
