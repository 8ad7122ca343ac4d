"""What has to come of decisions by hunk: files as slots, one line each, far from one another.

No text is merged here. A turn *claims* slots: it found one line there and left another. To undo it
is to look at each claim, the newest first:

    the slot is as the claim left it     it becomes what it was
    it is what it was already            nothing to do; the claim stays
    it is something else                 somebody decides: take it back, keep it, or leave it

Redo reverts what the undo did, slot by slot, by the same rule.
"""

from collections.abc import Callable, Collection

Slot = tuple[str, int]
"""A file, and which of its slots."""
Lines = dict[Slot, str]
BACK, KEEP, SKIP, GONE = "take-back", "keep-mine", "skip-conflicts", "gone"


class Conflict(Exception):
    """Somebody has to decide about these slots."""

    def __init__(self, slots: set[Slot]) -> None:
        super().__init__(slots)
        self.slots = slots


class Claim:
    """What a turn, or a redo of it, did to one slot, in the order in which it was done."""

    def __init__(self, order: int, slot: Slot, was: str, left: str) -> None:
        self.order = order
        self.slot = slot
        self.was = was
        self.left = left


class Turn:
    """A turn: what stands of it, and what somebody decided to keep of it, in which undo."""

    def __init__(self, name: str, claims: list[Claim]) -> None:
        self.name = name
        self.claims = claims
        self.settled: list[tuple[Undo, Claim]] = []
        self.is_live = True
        self.is_mixed = False
        """Whether it was put back together with others: what of that is its own is not told."""

    def standing(self, *, anew: bool) -> list[Claim]:
        """What an undo takes back: without what is kept by decision, unless that is made `anew`."""
        return self.claims + [claim for _, claim in self.settled if anew]


class Undo:
    """What an undo did: to slots, and to turns."""

    def __init__(self, turns: list[Turn]) -> None:
        self.turns = turns
        self.changed: Lines = {}
        self.became: Lines = {}
        self.claims = {turn.name: list(turn.claims) for turn in turns}
        self.settled = {turn.name: list(turn.settled) for turn in turns}
        self.lives = {turn.name: turn.is_live for turn in turns}
        self.forced: dict[str, set[str]] = {turn.name: set() for turn in turns}
        """The files in which something was taken back over others' lines."""


class Model:
    """The slots, the turns, and the undos that were not put back, the newest last."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.turns: list[Turn] = []
        self.undos: list[Undo] = []
        self._order = 0

    def edit(self, lines: Lines, turn: str = "") -> None:
        """A turn, or you, write lines."""
        claims = self._claims(self.lines | lines)
        self.lines |= lines
        if turn:
            self.turns.append(Turn(turn, claims))

    def _claims(self, lines: Lines) -> list[Claim]:
        """What it takes to get to other lines."""
        self._order += 1
        changed = [slot for slot, old in self.lines.items() if lines[slot] != old]
        return [Claim(self._order, slot, self.lines[slot], lines[slot]) for slot in changed]

    # -- undo ------------------------------------------------------------------------------

    def undo(
        self,
        turns: list[Turn],
        decide: Callable[[Slot], str],
        *,
        anew: bool = False,
        left: Collection[Slot] = (),
    ) -> None:
        """Take back what stands of turns, but for slots that are `left`.

        What was kept before is not asked again, unless it is decided `anew`.
        """
        undo, lines, asked = Undo(turns), dict(self.lines), set()
        after = {}
        for turn in turns:
            stays: list[Claim] = []
            kept: list[tuple[Undo, Claim]] = [] if anew else list(turn.settled)
            is_live = False
            for claim in sorted(turn.standing(anew=anew), key=lambda claim: -claim.order):
                slot, now = claim.slot, lines[claim.slot]
                choice = _choice(claim, now, decide, left)
                if choice == BACK:
                    undo.forced[turn.name] |= {slot[0]} if now != claim.left else set()
                    lines[slot] = claim.was
                elif choice == KEEP:
                    kept.append((undo, claim))
                elif choice in (SKIP, GONE):
                    stays.append(claim)
                    is_live = is_live or choice == SKIP
                else:
                    asked.add(slot)
            after[turn] = stays, kept, is_live
        if asked:
            raise Conflict(asked)
        undo.changed = {slot: old for slot, old in self.lines.items() if lines[slot] != old}
        undo.became = {slot: lines[slot] for slot in undo.changed}
        self.lines = lines
        self.undos.append(undo)
        for turn in turns:
            turn.claims, turn.settled, turn.is_live = after[turn]

    # -- redo ------------------------------------------------------------------------------

    def redo(self, undo: Undo, decide: Callable[[Slot], str]) -> None:
        """Put back what an undo took; what is skipped can be put back once more."""
        lines, asked, is_open = dict(self.lines), set(), False
        for slot, old in undo.changed.items():
            now = lines[slot]
            choice = BACK if now in (old, undo.became[slot]) else decide(slot)
            if choice == BACK:
                lines[slot] = old
            elif choice == SKIP:
                is_open = True
            elif choice != KEEP:
                asked.add(slot)
        if asked:
            raise Conflict(asked)
        done = self._claims(lines)
        for turn in undo.turns:
            self._put_back(turn, undo, done, is_open=is_open)
        self.lines = lines
        if not is_open:
            self.undos.remove(undo)

    def _put_back(self, turn: Turn, undo: Undo, done: list[Claim], *, is_open: bool) -> None:
        """What was kept in the undo is as it was before it; what redo did is the turn's."""
        before, settled = undo.claims[turn.name], undo.settled[turn.name]
        if not is_open:
            kept = [claim for by, claim in turn.settled if by is undo]
            turn.settled = [(by, claim) for by, claim in turn.settled if by is not undo]
            turn.settled += [(by, claim) for by, claim in settled if claim in kept]
            turn.claims = turn.claims + [claim for claim in kept if claim in before]
        # What was taken over others' lines is asked again: in these files all is as before.
        forced = undo.forced[turn.name]
        turn.claims = [claim for claim in turn.claims if claim.slot[0] not in forced]
        turn.claims += [claim for claim in before if claim.slot[0] in forced]
        turn.claims += [claim for claim in done if claim.slot[0] not in forced]
        turn.settled = [each for each in turn.settled if each[1].slot[0] not in forced]
        turn.settled += [each for each in settled if each[1].slot[0] in forced]
        turn.is_live = is_open or undo.lives[turn.name]
        turn.is_mixed = turn.is_mixed or len(undo.turns) > 1


def _choice(claim: Claim, now: str, decide: Callable[[Slot], str], left: Collection[Slot]) -> str:
    if claim.was in (now, claim.left):
        return GONE
    if now != claim.left:
        return decide(claim.slot)
    return SKIP if claim.slot in left else BACK
