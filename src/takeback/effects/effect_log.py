"""The ledger of effects: what calls did outside the files, and what of that stays."""

from takeback.disk.failures import FailingAs
from takeback.errors import TakebackError
from takeback.model import words
from takeback.model.beyond import effects
from takeback.model.beyond.effects import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.capture.workspace import Workspace
    from takeback.ledger.beyond.effects import EffectRow
    from takeback.ledger.ledger import Ledger

_STAYS = effects.gravity(effects.COMPENSABLE)
_OURS = (effects.FILES, effects.GIT, effects.ON_MACHINE, effects.TAMPER)
"""Kinds of which something else says what stays: the rescue, the notes about git."""
_NEVER_RAN = (words.REFUSED,)


class Effects:
    """The effects of one project. Iterating gives them, the newest first."""

    def __init__(self, work: "Workspace") -> None:
        self._work = work

    def list(self, *, session: str = "", all: bool = False) -> "tuple[Effect, ...]":
        """What was done outside, newest first; with `all` also what was refused, and what is local.

        `session` is the id of one.
        """
        with FailingAs(TakebackError, "the store could not be read"):
            found = [as_effect(row) for row in self._work.ledger.effects.all(session)]
        return tuple(each for each in found if all or stays(each) or is_undone(each))


def as_effect(row: "EffectRow") -> Effect:
    status = row.status or words.DONE
    return Effect(
        row.id, row.turn, row.session, row.agent, row.step, row.at / 1e9, row.effect, row.kind,
        row.target, row.host, row.inverse, row.rule, status, row.undone,
    )  # fmt: skip


def is_undone(effect: Effect) -> bool:
    """Whether its inverse was run, and did not fail."""
    return effect.undone == words.DONE


def stays(effect: Effect) -> bool:
    """Whether no restore takes an effect back, and nothing else says so."""
    if effect.status in _NEVER_RAN or effect.kind in _OURS or is_undone(effect):
        return False
    return effects.gravity(effect.effect) >= _STAYS


def of_turn(ledger: "Ledger", turn: str) -> "tuple[Effect, ...]":
    """The effects of a turn, the oldest first, but what is merely local to this machine."""
    found = map(as_effect, ledger.effects.of_turns((turn,)))
    return tuple(each for each in found if each.kind != effects.ON_MACHINE)


def staying(ledger: "Ledger", turns: "Iterable[str]") -> "tuple[Effect, ...]":
    """What stays when turns are taken back."""
    if not ledger.effects.has_any():
        return ()
    return _staying(ledger.effects.of_turns(turns))


def staying_since(
    ledger: "Ledger", event: int, session: "int | None" = None
) -> "tuple[Effect, ...]":
    """What stays of all that was done since an event."""
    if not ledger.effects.has_any():
        return ()
    return _staying(ledger.effects.since(event, session))


def turns_since(ledger: "Ledger", event: int, session: "int | None" = None) -> "set[int]":
    """The turns that began after an event and changed no file, but did something that stays."""
    found = staying_since(ledger, event, session)
    rows = [ledger.turns.find(each.turn) for each in found if each.turn]
    newer = {row.number for row in rows if row is not None and row.opened > event}
    return {number for number in newer if not ledger.turns.is_entry(number)}


def _staying(rows: "Iterable[EffectRow]") -> "tuple[Effect, ...]":
    return tuple(each for each in map(as_effect, rows) if stays(each))
