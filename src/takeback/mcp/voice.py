"""What the command line says of values, in words and as JSON: it opens this door, and lends both.

So an answer here has the fields of `docs/json.md`, and each reason has one sentence.
"""

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.history.compare import Comparison
    from takeback.history.unified import Shown
    from takeback.lessons.lesson import Lesson
    from takeback.model.history import Log, RecordedCheckpoint, RecordedTurn, Unrecorded
    from takeback.model.plan import Plan, Report
    from takeback.model.reasons import Action, Reason
    from takeback.model.results import Checkpoint, Status
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

    Fields = dict[str, Json]


class Voice(Protocol):
    """Sentences and JSON; `masker` says what may be shown."""

    def status(self, status: "Status", seen: "Unrecorded", masker: "Masker") -> "Fields":
        """Where we are."""

    def log(self, log: "Log", masker: "Masker") -> "Fields":
        """Turns, restores and names."""

    def recorded(self, found: "RecordedTurn | RecordedCheckpoint", masker: "Masker") -> "Fields":
        """A turn or a checkpoint; of steps neither input nor output."""

    def lesson(self, lesson: "Lesson", masker: "Masker") -> "Fields":
        """A lesson."""

    def checkpoint(self, made: "Checkpoint", masker: "Masker") -> "Fields":
        """A checkpoint that was made, or found."""

    def plan(self, plan: "Plan", masker: "Masker", made: "Report | None" = None) -> "Fields":
        """A plan, and what became of it."""

    def question(self, plan: "Plan", because: str, masker: "Masker") -> str:
        """What the user is asked before a plan is applied."""

    def shown(self, comparison: "Comparison", masker: "Masker") -> "Iterator[Shown]":
        """The differences, one at a time."""

    def difference(self, shown: "Shown") -> "Fields":
        """One difference, with its lines."""

    def reason(self, reason: "Reason", masker: "Masker") -> str:
        """A sentence."""

    def hint(self, actions: "Iterable[str | Action]") -> str:
        """What to do next, as commands."""
