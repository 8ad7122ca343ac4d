"""What was rescued while one turn ran, and what of its record is therefore no loss."""

import os

from takeback.ledger.beyond.rescues import KEPT
from takeback.model.beyond import effects
from takeback.worktree.scan import VERSION_CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.ledger.ledger import Ledger
    from takeback.model.beyond.effects import Effect
    from takeback.model.beyond.losses import Loss

_IN_GIT = frozenset(VERSION_CONTROL)


class SavedOfTurn:
    """The paths that an undo of one turn brings back from the rescue, as its log names them."""

    def __init__(self, ledger: "Ledger", turn: int, root: bytes) -> None:
        rows = [row for row in ledger.rescues.of_turns((turn,)) if row.state == KEPT]
        above = os.path.realpath(root) + b"/" if root else b"/"
        tops = {top.removeprefix(above) for row in rows for top in row.tops}
        # Nothing is ever written to a repository that is there.
        self.tops = tuple(sorted(top for top in tops if not _IN_GIT.intersection(_above(top))))
        self._steps = {ledger.steps.id_of(row.step) for row in rows if row.step is not None}

    def without(self, losses: "Iterable[Loss]") -> "tuple[Loss, ...]":
        """The losses that no rescue holds."""
        return tuple(loss for loss in losses if not self._holds(loss.raw_path))

    def beside(self, found: "Iterable[Effect]") -> "tuple[Effect, ...]":
        """The effects of a turn, without the files, and the `.git`, that are rescued."""
        kinds = (effects.FILES, effects.GIT) if self._holds(b".git") else (effects.FILES,)
        return tuple(
            each for each in found if each.kind not in kinds or each.step not in self._steps
        )

    def _holds(self, path: bytes) -> bool:
        return any(path == top or path.startswith(top + b"/") for top in self.tops)


def _above(path: bytes) -> "list[bytes]":
    return path.split(b"/")[:-1]
