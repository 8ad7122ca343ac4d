"""What `undo`, `redo` and `rollback` have in common: options, the preview, the question."""

import os

from takeback.cli import previewed
from takeback.cli.app import folder
from takeback.cli.arguments import Option
from takeback.cli.projects import inside
from takeback.errors import ConflictError, DecisionNeededError, TakebackError, UnknownReferenceError
from takeback.model.safetext import shell_word
from takeback.model.terms import REDO, ROLLBACK, UNDO
from takeback.model.tree import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen
    from takeback.model.plan import Plan, PlannedChange, Report
    from takeback.project import Project

SESSION = Option(("--session",), "look only among the turns of this session", "SESSION")
OPTIONS = (
    Option(("-n", "--dry-run"), "show what would be done, and do nothing"),
    Option(("-y", "--yes"), "go ahead with what the preview shows, without a question"),
    Option(("--because",), "why; the log keeps it", "TEXT"),
    Option(("--keep-mtime",), "give files the modification times that they had, too"),
)

_INTERRUPTED = 130
_MOST_NAMED = 4
_NOT_NEWEST = {
    UNDO: "this is not the newest turn",
    REDO: "this is not what was taken back last",
}
_DOES = {UNDO: "taken back", REDO: "put back", ROLLBACK: "changed"}


class Restoring:
    """One command, from the plan to the report."""

    def __init__(self, name: str, given: "Arguments", screen: "Screen", project: "Project") -> None:
        self._name = name
        self._given = given
        self._screen = screen
        self._project = project
        self._is_trial = given.has("dry-run")
        self.agreed = given.has("yes")
        self.because = given.get("because")
        self.keep_mtime = given.has("keep-mtime")
        self.ref = given.operands[0] if given.operands else None
        self.session = given.get("session") or None
        self.paths = [os.fsencode(path) for path in given.rest]
        self.inside = inside(project, folder(given))
        self._restored = project.restored()

    def run(self, make: "Callable[[], Plan]", at_once: "Callable[[], Report] | None" = None) -> int:
        """Show, ask where somebody has to decide, do it, report; return the exit code.

        `at_once` does what is meant when nothing is named, unless somebody has to decide.
        """
        try:
            is_bare = self.ref is None and self.session is None and not self.paths
            if at_once is not None and is_bare and not self._is_trial:
                made = _unless_undecided(at_once)
                if made is not None:
                    return self._report(made)
            return self._carry_out(make())
        except UnknownReferenceError as problem:
            if self.ref is not None and not self.paths and self._name != ROLLBACK:
                self._suggest_path(self.ref, problem)
            raise
        except KeyboardInterrupt:
            return self._interrupted()

    def _suggest_path(self, ref: str, problem: UnknownReferenceError) -> None:
        """A path in the place of a turn: `--` was forgotten."""
        if os.path.lexists(os.path.join(folder(self._given), os.fsencode(ref))):
            call = self._call(self._name, paths=[shell_word(ref)])
            problem.hint = f"`{call}` is for a path; {problem.hint}"

    def _carry_out(self, plan: "Plan") -> int:
        if self._is_trial:
            return self._dry_run(plan)
        if plan.conflicts:
            return self._refuse(plan, self._conflict(plan))
        if self.agreed or not _needs_consent(plan):
            return self._apply(plan)
        if not self._screen.can_ask:
            return self._refuse(plan, self._unasked(plan))
        previewed.preview(plan, self._screen)
        return self._ask() or self._apply(plan, was_previewed=True)

    # -- what comes of it --------------------------------------------------------------------

    def _dry_run(self, plan: "Plan") -> int:
        if plan.conflicts and not self._screen.json:
            return self._refuse(plan, self._conflict(plan))
        if self._screen.json:
            self._screen.data(previewed.plan_json(plan))
            return ConflictError.exit_code if plan.conflicts else 0
        previewed.preview(plan, self._screen)
        self._screen.note(f"nothing was changed; `{self._again()}` does it")
        return 0

    def _ask(self) -> int:
        """Ask whether to go on: 0 if so, else the exit code."""
        question = "Put this back?" if self._name == REDO else "Take this back?"
        try:
            if self._screen.ask(question):
                return 0
        except KeyboardInterrupt:
            self._screen.note("\nnothing was changed")
            return _INTERRUPTED
        self._screen.note("nothing was changed")
        return DecisionNeededError.exit_code

    def _apply(self, plan: "Plan", *, was_previewed: bool = False) -> int:
        made = self._project.apply(
            plan,
            because=self.because,
            keep_mtime=self.keep_mtime,
            yes=self.agreed or was_previewed,
        )
        return self._report(made, was_previewed=was_previewed)

    def _interrupted(self) -> int:
        """Somebody pressed Ctrl-C: it is done, or it is as if it had never begun."""
        try:
            with self._project.held():
                pass  # who takes the lock next mends what is left, and that may as well be we
        except TakebackError as problem:
            self._screen.error(problem)
        if self._project.restored() > self._restored:
            self._screen.note("interrupted when it was done; `takeback log` shows where you are")
        else:
            self._screen.note("interrupted; everything is as it was before")
        return _INTERRUPTED

    def _report(self, made: "Report", *, was_previewed: bool = False) -> int:
        if self._screen.json:
            self._screen.data(previewed.report_json(made))
        else:
            previewed.report(made, self._screen, was_previewed=was_previewed)
        return 0

    def _refuse(self, plan: "Plan", problem: "TakebackError") -> int:
        """Show the plan, and why it is not carried out."""
        if not self._screen.json:
            previewed.preview(plan, self._screen)
        self._screen.error(problem, {"plan": previewed.plan_json(plan)})
        return problem.exit_code

    # -- why not -----------------------------------------------------------------------------

    def _unasked(self, plan: "Plan") -> DecisionNeededError:
        if plan.doubts:
            why = plan.doubts[0]
        elif plan.verb == ROLLBACK:
            why = "a rollback needs your consent"
        else:
            why = _NOT_NEWEST[plan.verb]
        return DecisionNeededError(
            f"nothing was changed: {why}; nobody is there to ask",
            hint=f"`{self._again('--yes')}` goes ahead with what the preview shows",
        )

    def _conflict(self, plan: "Plan") -> ConflictError:
        hints = []
        several = len(plan.conflicts) > 1
        others = [change.path for change in plan.changes if not _is_folder(change)]
        if others:
            which = "them" if several else "it"
            hints.append(f"`{self._again(paths=self._named(others))}` leaves {which} alone")
        here = self._named([each.path for each in plan.conflicts])
        turn = plan.turn[:8]
        if plan.verb == UNDO and turn:
            hints.append(f"`{self._call('diff', turn, '@', paths=here)}` shows what changed since")
            hints.append(
                f"`{self._call('rollback', f'{turn}-', paths=here)}` takes both changes back"
            )
        elif plan.verb == REDO and turn:
            hints.append(f"`{self._call('rollback', turn, paths=here)}` puts it back over that")
        return ConflictError(
            f"nothing was {_DOES[plan.verb]}: {previewed.in_conflict(plan)}",
            hint="\n      ".join(hints),
            conflicts=tuple((each.path, each.reason) for each in plan.conflicts),
        )

    def _named(self, paths: "list[bytes]") -> "list[str]":
        """How one would name these paths on the command line; vaguely, if they are many."""
        if len(paths) > _MOST_NAMED or not all(map(_can_be_typed, paths)):
            return ["PATH…"]
        return [self._words(path) for path in paths]

    def _words(self, path: bytes) -> str:
        """A path as one would type it here."""
        here = os.path.relpath(b"/" + path, b"/" + self.inside)
        return shell_word(os.fsdecode(here))

    def _again(self, *flags: str, paths: "list[str] | None" = None) -> str:
        """The same command once more, as one would type it, with something added."""
        given = self._given
        options = [
            f"--{name} {shell_word(given.get(name))}"
            for name in ("session", "because")
            if given.has(name)
        ]
        kept = ["--keep-mtime"] if given.has("keep-mtime") else []
        named = [shell_word(word) for word in given.rest] if paths is None else paths
        words = [*map(shell_word, given.operands), *options, *kept, *flags]
        return self._call(self._name, *words, paths=named)

    def _call(self, *words: str, paths: "list[str]") -> str:
        """A command on the same project, as one would type it."""
        place = [f"-C {shell_word(self._given.get('C'))}"] if self._given.has("C") else []
        return " ".join(["takeback", *place, *words, *(["--", *paths] if paths else [])])


def _unless_undecided(do: "Callable[[], Report]") -> "Report | None":
    """Do it, unless somebody has to decide something first: the plan shows what."""
    try:
        return do()
    except DecisionNeededError:
        return None


def _needs_consent(plan: "Plan") -> bool:
    """Whether somebody has to see a plan without conflicts before it is applied."""
    if plan.doubts:
        return True
    return bool(plan.changes) and (plan.verb == ROLLBACK or not plan.is_newest)


def _is_folder(change: "PlannedChange") -> bool:
    entry = change.after or change.before
    return entry is not None and entry.kind == FOLDER


def _can_be_typed(path: bytes) -> bool:
    try:
        return path.decode().isprintable()
    except UnicodeDecodeError:
        return False
