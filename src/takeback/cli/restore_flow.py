"""What `undo`, `redo`, `rollback` and `apply` share: options, preview, question, report."""

import os

from takeback.cli import conversation as conversations
from takeback.cli.app import INTERRUPTED, folder, inside, is_path
from takeback.cli.conversation import Conversation
from takeback.cli.parser import SHOW_SECRETS, Arguments, Option
from takeback.cli.screen import Marks, Screen, safe_line
from takeback.cli.text import reason_text
from takeback.cli.text.restores import plan_text
from takeback.errors import (
    ConflictError,
    DecisionNeededError,
    TakebackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.model import words as terms
from takeback.model.beyond.participants import CONVERSATION
from takeback.model.text.masking import CLOSED
from takeback.model.text.safe_text import safe, shell_word
from takeback.model.tree import FOLDER
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from takeback.arguments import Options
    from takeback.cli.text.restores.conflict_text import Styled
    from takeback.history.unified import Shown
    from takeback.model.plan import Conflict, Decisions, Plan, PlannedChange, Report
    from takeback.model.text.masking import Masker
    from takeback.model.tree import Entry
    from takeback.project import Project

    Counted = tuple[int, int] | None

    Make = Callable[["Wanted"], Plan]


class Contents:
    """Reads what a plan is about, when it is asked for, and counts lines only once."""

    def __init__(self, project: "Project", masker: "Masker" = CLOSED) -> None:
        self._project = project
        self.masker = masker
        self._counted: dict[tuple[bytes, bytes, bytes], Counted] = {}

    def lines(self, change: "PlannedChange", marks: Marks) -> str:
        counted = self._count(change)
        return f"+{counted[0]:,} {marks.minus}{counted[1]:,}" if counted is not None else ""

    def _count(self, change: "PlannedChange") -> "Counted":
        before, after = change.before, change.after
        if any(each is not None and each.kind == FOLDER for each in (before, after)):
            return None
        strong = [each.strong if each is not None else b"" for each in (before, after)]
        if strong[0] == strong[1]:
            return None
        key = (change.raw_path, strong[0], strong[1])
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
        (found,) = self._project.contents(entry)
        return safe(found or b"", 60)

    def diffs(self, plan: "Plan") -> "Iterator[Shown]":
        """What a plan would change, file by file."""
        return filter(None, map(self._shown, plan.changes))

    def _shown(self, change: "PlannedChange") -> "Shown | None":
        from takeback.history.unified import Shown
        from takeback.model.tree import judge

        found = judge(change.raw_path, change.before, change.after)
        if found is None:
            return None
        old, new = self._project.contents(change.before, change.after)
        return Shown(found, (old, new), self.masker)

    def diff(self, change: "PlannedChange") -> "list[Styled]":
        """What would change in a file, without secrets."""
        from takeback.cli import diff_view

        shown = self._shown(change)
        return diff_view.styled(shown) if shown is not None else [("", "nothing changes there")]


SESSION = Option(("--session",), "look only among the turns of this session", "SESSION")
OPTIONS = (
    Option(("-n", "--dry-run"), "show what would be done, and change nothing"),
    Option(("-p", "--patch"), "with --dry-run, also show the lines that would change"),
    Option(("-y", "--yes"), "apply what the preview shows, without asking"),
    Option(("--because",), "the reason; the log and the agent get it", "TEXT"),
    Option(("--keep-mtime",), "also restore the modification times of files"),
    SHOW_SECRETS,
)
INTERACTIVE = Option(("-i", "--interactive"), "choose paths and hunks first, on a terminal")
DECIDING = (
    Option(("--keep-mine",), "in a conflict, keep your lines; Takeback does not ask again"),
    Option(("--take-back",), "in a conflict, remove your lines there, too"),
    Option(("--markers",), "in a conflict, write both versions with conflict markers"),
    Option(("--skip-conflicts",), "in a conflict, change nothing for now; Takeback asks again"),
)

_MOST_NAMED = 4
_NOT_NEWEST = {
    terms.UNDO: "this is not the newest turn",
    terms.REDO: "this is not what was taken back last",
}
_DOES = {terms.UNDO: "taken back", terms.REDO: "put back", terms.ROLLBACK: "changed"}


class Wanted(Value):
    """What a plan is to be made of: some paths or all, and what was decided.

    `turns` are those that somebody chose instead of what the command line names.
    """

    paths: "list[bytes]"
    inside: bytes
    decide: "str | Decisions" = ""
    turns: "tuple[str, ...]" = ()
    by_hunk: bool = False


class RestoreCommand:
    """One command, from the plan to the report."""

    def __init__(self, name: str, given: "Arguments", screen: "Screen", project: "Project") -> None:
        self._name = name
        self._given = given
        self._screen = screen
        self._project = project
        self._is_trial = given.has("dry-run")
        self._agreed = given.has("yes")
        self._is_interactive = given.has("interactive")
        self._check_options()
        self._because = given.get("because")
        self.options: Options = {
            "because": self._because,
            "keep_mtime": given.has("keep-mtime"),
            "yes": given.has("yes"),
        }
        self.decide = _decision(given)
        self.ref = given.operands[0] if given.operands else None
        self.session = given.get("session") or None
        self.paths = [os.fsencode(path) for path in given.rest]
        self.inside = inside(project, folder(given))
        self._restored = project.reader.restored()
        self._contents = Contents(project, screen.masker)
        self._conversation = Conversation(given, project)
        self.only = self._conversation.only

    def _check_options(self) -> None:
        if self._is_interactive and (self._agreed or self._is_trial or not self._screen.can_pick):
            why = "--yes" if self._agreed else "--dry-run" if self._is_trial else ""
            raise UsageError(
                f"`-i` and `{why}` exclude each other" if why else self._screen.why_no_picks,
                hint=f"`{self._again('--dry-run')}` shows what would be done",
            )
        if self._given.has("patch") and not self._is_trial:
            raise UsageError(
                "`-p` shows lines before they change, so it needs `--dry-run`",
                hint=f"`{self._again('--dry-run', '-p')}` shows them",
            )

    def run(self, make: "Make", at_once: "Callable[[], Report] | None" = None) -> int:
        """Show, ask where somebody has to decide, do it, report; return the exit code.

        `at_once` does what is meant when nothing is named, unless somebody has to decide.
        """
        try:
            if self._conversation.is_all and not self._is_trial:
                plan = make(self._wanted(self.decide))
                return conversations.trim(self._conversation, plan, self._screen)
            is_bare = self.ref is None and self.session is None and not self.paths
            is_bare = is_bare and not self._is_interactive
            if at_once is not None and is_bare and not self._is_trial:
                try:
                    made = at_once()
                except DecisionNeededError:
                    pass  # the plan shows what somebody has to decide
                else:
                    return self._report(made)
            return self._carry_out(make)
        except UnknownReferenceError as problem:
            if not self.paths:
                self._suggest_paths(problem)
            raise
        except KeyboardInterrupt as problem:
            return self._interrupted(problem)

    def apply(self, id: str) -> int:
        try:
            return self._apply(id)
        except KeyboardInterrupt as problem:
            return self._interrupted(problem)

    def _suggest_paths(self, problem: UnknownReferenceError) -> None:
        """Paths in the place of turns: `--` was forgotten."""
        here, words = folder(self._given), self._given.operands
        paths = [word for word in words if is_path(word, self._project, here)]
        if paths and self._name == terms.ROLLBACK:
            path = shell_word(paths[0])
            problem.actions = (
                f"`takeback rollback REF -- {path}` brings it back to that state",
                f"`takeback log {path}` lists the turns that touched it",
            )
        elif paths:
            turns = [shell_word(word) for word in words if word not in paths]
            call = self._call(self._name, *turns, paths=[shell_word(path) for path in paths])
            is_for = "treats them as paths" if len(paths) > 1 else "treats it as a path"
            problem.actions = (f"`{call}` {is_for}", *problem.actions)

    def _carry_out(self, make: "Make") -> int:
        plan = make(self._wanted(self.decide))
        if self._is_trial:
            return self._dry_run(plan)
        needs_somebody = plan.conflicts or _needs_consent(plan)
        is_chosen = self._is_interactive and bool(plan.changes)
        if (needs_somebody or is_chosen) and not self._agreed and self._screen.can_pick:
            return self._pick(make, plan)
        if plan.conflicts:
            return self._refuse(plan, self._conflict(plan))
        if self._agreed or not needs_somebody:
            return self._apply(plan)
        if not self._screen.can_ask:
            return self._refuse(plan, self._unasked(plan))
        self._preview(plan)
        return self._ask() or self._apply(plan, was_asked=True, was_previewed=True)

    def _wanted(self, decide: str) -> Wanted:
        return Wanted(self.paths, self.inside, decide, by_hunk=self._is_interactive)

    def _pick(self, make: "Make", plan: "Plan") -> int:
        from takeback.cli.screens.picker_view import PickerView

        # Each conflict is shown with what the command line decided, so that one can see it.
        if self.decide:
            plan = make(self._wanted(""))
        picking = PickerView(self._screen, self._contents, make, self._wanted(self.decide))
        try:
            chosen = picking.run(plan)
        except KeyboardInterrupt:
            self._screen.note("nothing was changed")
            return INTERRUPTED
        if chosen is None:
            self._screen.note("nothing was changed")
            return DecisionNeededError.exit_code
        return self._apply(chosen, was_asked=True)

    # -- what comes of it --------------------------------------------------------------------

    def _dry_run(self, plan: "Plan") -> int:
        if plan.conflicts and not self._screen.json:
            return self._refuse(plan, self._conflict(plan))
        if self._screen.json:
            said = plan_text.as_json(plan, self._screen.masker)
            if self._given.has("patch"):
                from takeback.cli import diff_view

                said["diff"] = [diff_view.as_json(each) for each in self._contents.diffs(plan)]
            self._screen.data({**said, "plan": None} if self._conversation.is_all else said)
            return ConflictError.exit_code if plan.conflicts else 0
        self._preview(plan)
        self._screen.note(f"nothing was changed; {self._how_to_do_it(plan)}")
        return 0

    def _how_to_do_it(self, plan: "Plan") -> str:
        if self._conversation.is_all:
            return f"`{self._again(f'--only {CONVERSATION}')}` does it"
        options = [f"--because {shell_word(self._because)}"] if self._because else []
        options += [f"--{name}" for name in ("keep-mtime", "resume") if self._given.has(name)]
        call = self._call("apply", plan.id, *options, paths=[])
        return f"`{call}` applies this plan within {terms.MINUTES} minutes"

    def _preview(self, plan: "Plan") -> None:
        plan_text.preview(plan, self._screen, self._contents)
        if self._given.has("patch") and plan.changes:
            from takeback.cli import diff_view

            self._screen.say()
            diff_view.show_diffs(self._contents.diffs(plan), self._screen)
        if plan.dependents:
            turns = [id[:8] for id in (*plan.turns, *(each.id for each in plan.dependents))]
            which = "it" if len(plan.dependents) == 1 else "them"
            named = [shell_word(word) for word in self._given.rest]
            call = self._call(self._name, *turns, paths=named)
            self._screen.say(f"`{call}` takes {which} back, too")

    def _ask(self) -> int:
        """Ask whether to go on: 0 if so, else the exit code."""
        question = "Put this back?" if self._name == terms.REDO else "Take this back?"
        try:
            if self._screen.ask(question):
                return 0
        except KeyboardInterrupt:
            self._screen.note("\nnothing was changed")
            return INTERRUPTED
        self._screen.note("nothing was changed")
        return DecisionNeededError.exit_code

    def _apply(
        self, plan: "Plan | str", *, was_asked: bool = False, was_previewed: bool = False
    ) -> int:
        made = self._project.apply(
            plan,
            because=self._because,
            keep_mtime=self._given.has("keep-mtime"),
            yes=self._agreed or was_asked,
        )
        if made.id and self._project.reader.restored() == self._restored:
            self._screen.note("this plan was applied before; nothing was changed now")
        return self._report(made, was_previewed=was_previewed)

    def _interrupted(self, problem: KeyboardInterrupt) -> int:
        return interrupted(problem, self._project, self._screen, self._restored)

    def _report(self, made: "Report", *, was_previewed: bool = False) -> int:
        resumed = self._conversation.copies(made.plan, made.id)
        if self._screen.json:
            masker = self._screen.masker
            self._screen.data(
                plan_text.as_json(made.plan, masker, made, conversations.as_json(resumed))
            )
        else:
            plan_text.report(
                made,
                self._screen,
                self._contents,
                was_previewed=was_previewed,
                besides=conversations.in_words(resumed, self._screen),
            )
            self._ask_why(made)
        return 0

    def _ask_why(self, made: "Report") -> None:
        """Ask for the reason once it is done: nobody has to think of one before."""
        is_known = self._because or self._agreed or self._name == terms.REDO
        if is_known or not made.id or not self._screen.can_ask:
            return
        from takeback.upkeep.settings import Settings

        work = self._project.workspace
        if not Settings(work.home.path, work.id).one("lessons.ask").value:
            return
        try:
            why = self._screen.ask_for("Why? Agents are told (Enter skips):")
        except KeyboardInterrupt:
            self._screen.note("")
            return
        if why:
            lesson = self._project.lessons.note(why, restore=made.id, request=f"why {made.id}")
            self._screen.note(f"`takeback lessons drop {lesson.id[:8]}` takes that back")

    def _refuse(self, plan: "Plan", problem: "TakebackError") -> int:
        if not self._screen.json:
            self._preview(plan)
        self._screen.error(problem, {"plan": plan_text.as_json(plan, self._screen.masker)})
        return problem.exit_code

    # -- why not -----------------------------------------------------------------------------

    def _unasked(self, plan: "Plan") -> DecisionNeededError:
        if plan.doubts:
            why = reason_text.sentence(plan.doubts[0], plan.verb)
        elif plan.verb == terms.ROLLBACK:
            why = "a rollback needs your confirmation"
        else:
            why = _NOT_NEWEST[plan.verb]
        return DecisionNeededError(
            f"nothing was changed: {why}; this is not a terminal, so Takeback cannot ask",
            hint=f"`{self._again('--yes')}` applies what the preview shows",
        )

    def _conflict(self, plan: "Plan") -> ConflictError:
        hints = self._left_alone(plan) if plan.verb == terms.ROLLBACK else self._decisions(plan)
        inside = [each.raw_path for each in plan.conflicts if not each.raw_path.startswith(b"/")]
        here = self._named(inside)
        turn = plan.turn[:8] if inside else ""
        if plan.verb == terms.UNDO and turn:
            hints.append(f"`{self._call('diff', turn, '@', paths=here)}` shows what changed since")
        why = f"; `--{self.decide}` cannot settle that" if self.decide else ""
        return ConflictError(
            f"nothing was {_DOES[plan.verb]}: {plan_text.in_conflict(plan)}{why}",
            hint="\n".join(hints),
            conflicts=tuple((each.path, each.reason) for each in plan.conflicts),
        )

    def _left_alone(self, plan: "Plan") -> "list[str]":
        """How to go on without the paths that are in conflict."""
        others = [c.raw_path for c in plan.changes if not c.outside and not plan_text.is_folder(c)]
        which = "them" if len(plan.conflicts) > 1 else "it"
        call = self._again(paths=self._named(others))
        return [f"`{call}` leaves {which} out"] if others else []

    def _decisions(self, plan: "Plan") -> "list[str]":
        """How each decision is made on the command line."""
        several = len(plan.conflicts) > 1
        file = "the files" if several else "the file"
        rest = f"; the rest is {_DOES[plan.verb]}"
        both = "removes the later changes there, too"
        if plan.verb == terms.REDO:
            both = "replaces your lines with the turn's lines"
        said = {
            terms.KEEP_MINE: f"keeps what is there now{rest}",
            terms.TAKE_BACK: both,
            terms.MARKERS: f"writes both versions into {file}, with conflict markers",
            terms.SKIP: f"leaves the conflict for later{rest}",
        }
        return [
            f"`{self._again(f'--{decision}')}` {does}"
            for decision, does in said.items()
            if all(can_decide(each, decision) for each in plan.conflicts)
        ]

    def _named(self, paths: "list[bytes]") -> "list[str]":
        """How one would name these paths on the command line; vaguely, if they are many."""
        if len(paths) > _MOST_NAMED or not all(map(_can_be_typed, paths)):
            return ["PATH…"]
        here = [os.path.relpath(b"/" + path, b"/" + self.inside) for path in paths]
        return [shell_word(os.fsdecode(path)) for path in here]

    def _again(self, *flags: str, paths: "list[str] | None" = None) -> str:
        """The same command once more, as one would type it, with something added."""
        given = self._given
        options = [
            f"--{name} {shell_word(given.get(name))}"
            for name in ("session", "because")
            if given.has(name)
        ]
        switches = ["keep-mtime", "shared", "resume"]
        if not any(flag.removeprefix("--") in terms.DECISIONS for flag in flags):
            switches += terms.DECISIONS
        kept = [f"--{name}" for name in switches if given.has(name)]
        named = [shell_word(word) for word in given.rest] if paths is None else paths
        words = [*map(shell_word, given.operands), *options, *kept, *flags]
        return self._call(self._name, *words, paths=named)

    def _call(self, *words: str, paths: "list[str]") -> str:
        place = [f"-C {shell_word(self._given.get('C'))}"] if self._given.has("C") else []
        return " ".join(["takeback", *place, *words, *(["--", *paths] if paths else [])])


def interrupted(
    interrupt: KeyboardInterrupt, project: "Project", screen: "Screen", restored: int
) -> int:
    """Mend what Ctrl-C left, and report it; `restored` is how many restores there were before."""
    notes = getattr(interrupt, "__notes__", [])
    try:
        project.recover()
    except TakebackError as problem:
        screen.error(problem)
    for text in notes:
        screen.note(f"note: {safe_line(text)}")
    if project.reader.restored() > restored:
        screen.note("interrupted after it was done; `takeback log` shows the result")
    elif not notes:
        screen.note("interrupted; everything is as it was before")
    return INTERRUPTED


def can_decide(conflict: "Conflict", decision: str) -> bool:
    if decision == terms.MARKERS:
        return conflict.marked is not None
    if decision == terms.TAKE_BACK:
        return any((conflict.base, conflict.ours, conflict.theirs))
    return decision in terms.DECISIONS


def _decision(given: "Arguments") -> str:
    """What was decided on the command line for all conflicts; empty if nothing was."""
    found = [name for name in terms.DECISIONS if given.has(name)]
    if len(found) > 1:
        raise UsageError(
            f"`--{found[0]}` and `--{found[1]}` exclude each other",
            hint="use one of them for all conflicts, or `-i` to decide each one",
        )
    return found[0] if found else ""


def _needs_consent(plan: "Plan") -> bool:
    """Whether somebody has to see a plan without conflicts before it is applied."""
    if plan.doubts:
        return True
    return bool(plan.changes) and (plan.verb == terms.ROLLBACK or not plan.is_newest)


def _can_be_typed(path: bytes) -> bool:
    try:
        return path.decode().isprintable()
    except UnicodeDecodeError:
        return False
