"""`takeback run -- COMMAND…`: a turn around any command.

Whatever the command is, it should not notice, and neither should who reads its output: stdout is
its alone. What we have to say goes to stderr, after it is over.
"""

import contextlib
import os

from takeback.cli import child, turn_text
from takeback.cli.app import folder
from takeback.cli.open_project import opened
from takeback.cli.parser import SHOW_SECRETS, Command, Option
from takeback.errors import (
    DecisionNeededError,
    TakebackError,
    UnknownReferenceError,
    UnsafeRootError,
)
from takeback.model import tools
from takeback.model import words as terms
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.parser import Arguments
    from takeback.cli.screen import Screen
    from takeback.model.history import RecordedTurn
    from takeback.model.json_text import Json
    from takeback.project import Project
    from takeback.session import Turn

COMMAND = Command(
    "run",
    "run a command as a turn that can be seen and taken back",
    text=(
        "The command starts once the project is safe as it is. It runs in the current folder,\n"
        "with your terminal, stdin and stdout; signals reach it, and its exit code is ours. What\n"
        "it changed is told on stderr when it is over. If the store is damaged, of a newer\n"
        "Takeback, out of reach or its disk is full, that is said, and the command runs without\n"
        "cover; with --only-covered it does not start. It finds its session and turn in\n"
        "TAKEBACK_SESSION and TAKEBACK_TURN; a `takeback run` inside it becomes a step of that\n"
        "turn, unless it names a session.\n"
        "With --json the last line on stderr is one JSON object; stdout is the command's alone."
    ),
    operands=("-- COMMAND…",),
    options=(
        Option(("-m", "--label"), "what to call the turn (default: the command itself)", "LABEL"),
        Option(
            ("--session",),
            "put turns of the same NAME, one after the other, into one session",
            "NAME",
        ),
        Option(("--only-covered",), "do not start the command if it could not be taken back"),
        Option(("-q", "--quiet"), "do not tell what changed"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback run -- npm run format", "see what a formatter did"),
        ('takeback run -m "try codemod" -- sh -c "…"', "pipes and the like need a shell"),
        ("takeback run --session nightly -- ./job", "turns that belong together"),
        ("takeback run -q -- make | tee log", "stdout is as without takeback"),
    ),
)

_MOST_SHOWN = 10


def run(given: "Arguments", screen: "Screen") -> int:
    """Run the command, tell what changed, end as it ended."""
    with child.Undisturbed() as quiet:
        wrapped = _Wrapped(given, screen, quiet)
        try:
            with opened(folder(given), screen) as project:
                outcome = wrapped.run_in(project)
        except Exception as problem:  # noqa: BLE001 -- whatever it is
            outcome = wrapped.run_uncovered(problem)
    if outcome.signal:
        child.die_of(outcome.signal)
    return outcome.code


class _Wrapped:
    """The command with a turn around it, or a step if it runs inside a turn already."""

    def __init__(self, given: "Arguments", screen: "Screen", quiet: child.Undisturbed) -> None:
        self._given = given
        self._screen = screen
        self._quiet = quiet
        self._path = child.find(given.rest[0])
        self._command = _spelled(given.rest)
        self._outcome: child.Outcome | None = None

    def run_in(self, project: "Project") -> child.Outcome:
        """Run it. What fails afterwards must not hide how it ended."""
        try:
            outer = (
                None
                if self._given.has("session")
                else project.running_turn(os.environ.get("TAKEBACK_TURN", ""))
            )
            if outer is None:
                outcome = self._as_turn(project)
            else:
                outcome = self._as_step(outer, outer.recorded().session)
                _tell(outer.recorded(), outcome, self._given, self._screen)
        except Exception as problem:  # whatever it is
            if self._outcome is None:
                raise
            _complain(problem, self._screen)
            return self._outcome
        return outcome

    def run_uncovered(self, problem: Exception) -> child.Outcome:
        """Run it all the same: a store that is broken must not keep an agent from its work.

        That it cannot be taken back is said once, before it runs.
        """
        asks = (DecisionNeededError, UnsafeRootError, UnknownReferenceError, child.CannotStartError)
        if self._outcome is not None:
            _complain(problem, self._screen)
            return self._outcome
        if isinstance(problem, asks) or self._given.has("only-covered"):
            raise problem
        told = _as_ours(problem)
        with contextlib.suppress(OSError):  # nobody may be there to read it
            if not self._screen.json:
                self._screen.note("takeback: this turn is not covered: it cannot be taken back")
                self._screen.error(told)
        self._quiet.close()
        self._outcome = self._quiet.asked_to_end() or child.run(
            self._path, self._given.rest, dict(os.environb), self._quiet
        )
        if self._screen.json:
            ended: dict[str, Json] = {
                "covered": False,
                "exit_code": self._outcome.code,
                "signal": self._outcome.signal or None,
            }
            self._screen.error(told, ended)
        return self._outcome

    def _as_turn(self, project: "Project") -> child.Outcome:
        name, label = self._given.get("session"), tools.one_line(self._given.get("label"))
        if next(project.checkpoints(), None) is None:
            # The first look at a big tree takes its time, and says so.
            project.checkpoint(progress=self._screen.progress)
        # One look before and one after are all there is to see; the step says what ran between.
        with project.session("run", id=name, safe_points="turn", beside=True) as session:
            with session.turn(label or self._command, whole=False) as turn:
                outcome = self._as_step(turn, session.id)
                turn.end(_status(outcome))
            _tell(turn.recorded(), outcome, self._given, self._screen)
        return outcome

    def _as_step(self, turn: "Turn", session: str) -> child.Outcome:
        self._quiet.close()
        with turn.step("run", {"command": self._command}, kind=terms.SHELL) as step:
            outcome = self._quiet.asked_to_end() or child.run(
                self._path, self._given.rest, _surroundings(session, turn.id), self._quiet
            )
            self._outcome = outcome
            step.end(_status(outcome))
        return outcome


def _surroundings(session: str, turn: str) -> "dict[bytes, bytes]":
    ours = {b"TAKEBACK_SESSION": session.encode(), b"TAKEBACK_TURN": turn.encode()}
    return {**os.environb, **ours}


def _spelled(words: "list[str]") -> str:
    """The command on one line, as one would type it."""
    import shlex

    return tools.one_line(shlex.join(words))


def _status(outcome: child.Outcome) -> str:
    if outcome.signal or (outcome.code and outcome.was_asked):
        return terms.INTERRUPTED
    return terms.FAILED if outcome.code else terms.DONE


def _tell(
    turn: "RecordedTurn", outcome: child.Outcome, given: "Arguments", screen: "Screen"
) -> None:
    """What changed, on stderr."""
    if screen.json:
        ended: dict[str, Json] = {"exit_code": outcome.code, "signal": outcome.signal or None}
        screen.data({**turn_text.as_json(turn, screen.masker), **ended})
    elif given.has("quiet"):
        return
    elif turn.status == terms.RUNNING:
        screen.note(f"takeback: part of turn {turn.id[:6]}, which tells when it is over")
    else:
        screen.note(f"takeback: {turn_text.headline(turn, screen.masker)}")
        for line in turn_text.change_lines(turn.changes, _MOST_SHOWN):
            screen.note(line)
        if turn.shared:
            others = count(len(turn.shared), "change")
            screen.note(f"takeback: {others} may be of another session that worked at the time")
        if turn.left_out:
            screen.note(f"takeback: {count(len(turn.left_out), 'new path')} not covered")
        if turn.changes:
            show = f"`takeback show {turn.id[:6]}` tells more"
            screen.note(f"takeback: `takeback undo` takes it back, {show}")


def _complain(problem: Exception, screen: "Screen") -> None:
    """Say that the command ran and that what it did may not be recorded."""
    told = _as_ours(problem)
    told.hint = told.hint or "`takeback checkpoint` keeps the project as it is now"
    with contextlib.suppress(OSError):  # nobody may be there to read it
        screen.note("takeback: the command ran, but what it changed could not be recorded")
        screen.error(told)


def _as_ours(problem: Exception) -> TakebackError:
    if isinstance(problem, TakebackError):
        problem.hint = problem.hint or "`takeback doctor` tells what is wrong"
        return problem
    return TakebackError(
        f"{type(problem).__name__}: {problem}", hint="`takeback doctor` tells what is wrong"
    )
