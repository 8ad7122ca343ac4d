"""What the files of a plan hold, as far as somebody wants to see it: counts of lines, diffs."""

from takeback.cli.layout import Marks
from takeback.errors import TakebackError
from takeback.model.masking import CLOSED
from takeback.model.safetext import safe
from takeback.model.tree import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.clashes import Styled
    from takeback.model.masking import Masker
    from takeback.model.plan import PlannedChange
    from takeback.model.tree import Entry
    from takeback.project import Project

    Counted = tuple[int, int] | None

_MOST_LINES = 20_000
"""Lines of a diff that somebody may scroll through."""


class Contents:
    """Reads what a plan is about, when it is asked for, and counts lines only once."""

    def __init__(self, project: "Project", masker: "Masker" = CLOSED) -> None:
        self._project = project
        self.masker = masker
        self._counted: dict[tuple[bytes, bytes, bytes], Counted] = {}

    def lines(self, change: "PlannedChange", marks: Marks) -> str:
        """How many lines come and go at a path, or nothing if there are none to count."""
        counted = self._count(change)
        return f"+{counted[0]:,} {marks.minus}{counted[1]:,}" if counted is not None else ""

    def _count(self, change: "PlannedChange") -> "Counted":
        before, after = change.before, change.after
        if any(each is not None and each.kind == FOLDER for each in (before, after)):
            return None
        strong = [each.strong if each is not None else b"" for each in (before, after)]
        if strong[0] == strong[1]:
            return None
        key = (change.path, strong[0], strong[1])
        if key not in self._counted:
            self._counted[key] = self._counted_lines(before, after)
        return self._counted[key]

    def _counted_lines(self, before: "Entry | None", after: "Entry | None") -> "Counted":
        from takeback.disk import libgit2

        try:
            old, new = self._project.contents(before, after)
            return libgit2.count(old, new) if old is not None and new is not None else None
        except TakebackError:
            return None  # a number is missing then; what is done does not depend on it

    def target(self, entry: "Entry") -> str:
        """Where a link leads."""
        (found,) = self._project.contents(entry)
        return safe(found or b"", 60)

    def diff(self, change: "PlannedChange") -> "list[Styled]":
        """What would change in a file, without secrets."""
        from itertools import islice

        from takeback.cli.render import safe_content
        from takeback.engine.unified import HEAD, HUNK, NEW, NOTE, OLD, Shown
        from takeback.model.difference import judge

        found = judge(change.path, change.before, change.after)
        if found is None:
            return [("", "nothing changes there")]
        old, new = self._project.contents(change.before, change.after)
        styles = {HEAD: "bold", HUNK: "cyan", OLD: "red", NEW: "green", NOTE: "dim"}
        plain = (HEAD, HUNK, NOTE)
        told = [
            (
                styles.get(kind, ""),
                ("" if kind in plain else kind) + safe_content(line.rstrip(b"\r\n")).expandtabs(),
            )
            for kind, line in islice(Shown(found, (old, new), self.masker).diff(), _MOST_LINES)
        ]
        if len(told) == _MOST_LINES:
            told.append(("dim", f"(only the first {_MOST_LINES:,} lines are shown)"))
        return told
