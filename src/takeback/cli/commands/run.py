"""`takeback run -- COMMAND…`: a turn around any command.

Whatever the command is, it should not notice, and neither should who reads its output: stdout is
its alone. What we have to say goes to stderr, after it is over.
"""

import contextlib
import os
import time

from takeback.agents.dialects import aider
from takeback.cli.app import open_project, with_way_back
from takeback.cli.parser import EVERYDAY, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screens.child import (
    LONG,
    BlockedSignals,
    CannotStartError,
    Outcome,
    TerminalWatch,
    Wait,
    die_of,
    find,
    start,
)
from takeback.cli.text import state_text, turn_text
from takeback.cli.text.restores import loss_text
from takeback.effects.guarding import mode_of_run
from takeback.errors import (
    DamagedStoreError,
    DecisionNeededError,
    RefusedError,
    TakebackError,
    UnknownReferenceError,
    UnsafeRootError,
)
from takeback.model import reasons, tools
from takeback.model import words as terms
from takeback.model.reasons import Action
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from takeback.cli.screen import Screen
    from takeback.model.history import RecordedTurn
    from takeback.model.text.json_text import Json
    from takeback.project import Project
    from takeback.session import Session, Turn

COMMAND = Command(
    "run",
    "run a command as a turn that you can undo",
    text=(
        "The command starts once a checkpoint of the project exists. It runs in the current\n"
        "folder, with your terminal, stdin and stdout; it gets your signals, and its exit code is\n"
        "ours. When it ends, Takeback reports on stderr what it changed. If the store is damaged,\n"
        "unreachable, full or of a newer Takeback, Takeback reports that and runs the command\n"
        "without cover; with --only-covered it does not start. The command finds its session and\n"
        "turn in TAKEBACK_SESSION and TAKEBACK_TURN. A `takeback run` inside it becomes a step of\n"
        "that turn, unless it names a session.\n"
        "Write `--` before COMMAND if an option after it could be Takeback's.\n"
        "With --json the last line on stderr is one JSON object; stdout is the command's alone."
    ),
    operands=("-- COMMAND…",),
    options=(
        Option(("-m", "--label"), "name of the turn (default: the command itself)", "LABEL"),
        Option(
            ("--session",),
            "session of the turn; turns with the same NAME share it",
            "NAME",
        ),
        Option(("--only-covered",), "do not start the command if Takeback cannot cover it"),
        Option(("-q", "--quiet"), "do not report what changed"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback run npm run format", "see what a formatter did"),
        ('takeback run -m "try codemod" -- sh -c "…"', "pipes and the like need a shell"),
        ("takeback run --session nightly -- ./job", "put turns into one session"),
        ("takeback run -q -- make | tee log", "stdout is as without takeback"),
    ),
    group=EVERYDAY,
)

_OFF = "off in this project, so nothing is recorded; `takeback on` turns it on"
_MOST_SHOWN = 10
_FOLLOWED_EVERY = 0.05
_GRACE = 500_000_000
"""Nanoseconds within which an agent that was given a prompt has written it down."""


def run(given: "Arguments", screen: "Screen") -> int:
    with BlockedSignals() as quiet:
        wrapped = _Wrapped(given, screen, quiet)
        try:
            with open_project(given, screen, begin=True) as project:
                wrapped.tell_of_new_history(project)
                is_on = project.workspace.rules.is_recording()
                outcome = wrapped.run_in(project) if is_on else wrapped.run_unrecorded()
        except Exception as problem:  # noqa: BLE001 -- whatever it is
            outcome = wrapped.run_uncovered(problem)
    if outcome.signal:
        die_of(outcome.signal)
    return outcome.code


class _Wrapped:
    """The command with a turn around it, or a step if it runs inside a turn already."""

    def __init__(self, given: "Arguments", screen: "Screen", quiet: "BlockedSignals") -> None:
        import shlex

        self._given = given
        self._screen = screen
        self._quiet = quiet
        self._path = find(given.rest[0])
        self._command = tools.one_line(shlex.join(given.rest))
        self._outcome: Outcome | None = None
        self._joins = ""

    def run_in(self, project: "Project") -> "Outcome":
        """Run it. What fails afterwards must not hide how it ended."""
        try:
            id = "" if self._given.has("session") else os.environ.get("TAKEBACK_TURN", "")
            outer = _running_turn(project, id)
            if outer is None:
                return self._as_turn(project)
            outcome = self._as_step(outer, outer.recorded().session)
            self._tell(outer.recorded(), outcome)
        except Exception as problem:  # whatever it is
            if self._outcome is None:
                raise
            _complain(_deleted(project) or problem, self._screen)
            return self._outcome
        return outcome

    def run_unrecorded(self) -> "Outcome":
        """Run it without a turn: the user turned Takeback off here."""
        if self._given.has("only-covered"):
            raise RefusedError(
                "Takeback is off in this project, so this turn would not be covered",
                hint="`takeback on` turns it on",
            )
        with contextlib.suppress(OSError):  # nobody may be there to read it
            if not self._screen.json and not self._given.has("quiet"):
                self._screen.note(f"takeback: {_OFF}")
        self._quiet.close()
        self._outcome = self._run(dict(os.environb))
        if self._screen.json:
            code, number = self._outcome.code, self._outcome.signal or None
            self._screen.data({"covered": False, "recording": False, "exit_code": code,
                               "signal": number})  # fmt: skip
        return self._outcome

    def tell_of_new_history(self, project: "Project") -> None:
        """Say once that this is another folder than before, and how its old history goes on."""
        before = project.workspace.instead_of
        if before:
            from takeback.cli.commands.relocate import way_to_join

            self._joins = way_to_join(project)
            if not self._screen.json:
                self._screen.note(
                    f"takeback: this folder is not the one that project {before} "
                    "was in, so a new history begins here"
                )
                self._screen.note(f"takeback: `{self._joins}` continues the old one")

    def run_uncovered(self, problem: Exception) -> "Outcome":
        """Run it all the same: a store that is broken must not keep an agent from its work.

        That it cannot be taken back is said once, before it runs.
        """
        asks = (DecisionNeededError, UnsafeRootError, UnknownReferenceError, CannotStartError)
        if self._outcome is not None:
            _complain(problem, self._screen)
            return self._outcome
        if isinstance(problem, asks) or self._given.has("only-covered"):
            raise problem
        shown = _as_ours(problem)
        if isinstance(shown, DamagedStoreError):
            with_way_back(shown, self._given)
        with contextlib.suppress(OSError):  # nobody may be there to read it
            if not self._screen.json:
                self._screen.note("takeback: this turn is not covered: it cannot be taken back")
                self._screen.error(shown)
        self._quiet.close()
        self._outcome = self._run(dict(os.environb))
        if self._screen.json:
            ended: dict[str, Json] = {
                "covered": False,
                "exit_code": self._outcome.code,
                "signal": self._outcome.signal or None,
            }
            self._screen.error(shown, ended)
        return self._outcome

    def _as_turn(self, project: "Project") -> "Outcome":
        name, label = self._given.get("session"), tools.one_line(self._given.get("label"))
        if next(project.checkpoints(), None) is None:
            # The first look at a big tree takes its time, and says so.
            project.checkpoint(progress=self._screen.progress)
        if aider.is_aider(self._given.rest):
            return self._as_prompts(project, name, label or self._command)
        # One look before and one after are all there is to see; the step says what ran between.
        mode = mode_of_run(project.workspace)
        with project.session(
            "run", id=name, safe_points="turn", beside=True, guard=mode
        ) as session:
            with session.turn(label or self._command, whole=False) as turn:
                outcome = self._as_step(turn, session.id)
                turn.end(_status(outcome))
            self._tell(turn.recorded(), outcome)
        return outcome

    def _as_prompts(self, project: "Project", name: str, label: str) -> "Outcome":
        """Each prompt of an agent without hooks is a turn."""
        project.checkpoint()
        mode = mode_of_run(project.workspace)
        with project.session(
            aider.NAME, id=name, safe_points="turn", beside=True, guard=mode
        ) as session:
            self._quiet.close()
            with _Prompts(project, session, self._given.rest) as prompts:
                ours = {b"TAKEBACK_SESSION": session.id.encode()}
                self._outcome = outcome = self._run({**os.environb, **ours})
            prompts.end(label, _status(outcome))
            if prompts.problem is not None:
                _complain(prompts.problem, self._screen)
            for turn in prompts.turns:
                self._tell(project.turn(turn), outcome)
        return outcome

    def _as_step(self, turn: "Turn", session: str) -> "Outcome":
        self._quiet.close()
        with turn.step("run", {"command": self._command}, kind=terms.SHELL) as step:
            ours = {b"TAKEBACK_SESSION": session.encode(), b"TAKEBACK_TURN": turn.id.encode()}
            with TerminalWatch() as terminal:
                self._outcome = outcome = self._run({**os.environb, **ours})
            code = None if outcome.signal else outcome.code
            step.end(_status(outcome), exit_code=code, interactive=terminal.was_interactive)
        return outcome

    def _tell(self, turn: "RecordedTurn", outcome: "Outcome") -> None:
        joins: dict[str, Json] = {"join": self._joins} if self._joins else {}
        _tell(turn, outcome, self._given, self._screen, joins)

    def _run(self, environment: "Mapping[bytes, bytes]") -> "Outcome":
        ended = self._quiet.asked_to_end()
        if ended is not None:
            return ended
        mask = self._quiet.before
        return Wait(start(self._path, self._given.rest, environment, mask)).until_over()


def _status(outcome: "Outcome") -> str:
    if outcome.signal or (outcome.code and outcome.was_asked):
        return terms.INTERRUPTED
    return terms.FAILED if outcome.code else terms.DONE


def _tell(
    turn: "RecordedTurn",
    outcome: "Outcome",
    given: "Arguments",
    screen: "Screen",
    joins: "dict[str, Json]",
) -> None:
    if screen.json:
        ended: dict[str, Json] = {"exit_code": outcome.code, "signal": outcome.signal or None}
        screen.data({**turn_text.as_json(turn, screen.masker), **ended, **joins})
    elif given.has("quiet"):
        return
    elif turn.status == terms.RUNNING:
        screen.note(f"takeback: part of turn {turn.id[:6]}, which reports when it ends")
    else:
        screen.note(f"takeback: {turn_text.headline(turn, screen.masker)}")
        for line in turn_text.change_lines(turn.changes, _MOST_SHOWN, paint=screen.counted):
            screen.note(line)
        for line in turn_text.git_lines(turn, screen.masker):
            screen.note(line)
        if turn.shared:
            shared = count(len(turn.shared), "change")
            along = f"`takeback undo {turn.id[:6]} --shared` also takes it back"
            whose = state_text.shared_with(turn, screen.masker)
            screen.note(f"takeback: {shared} {whose}; {along}")
        if turn.left_out:
            screen.note(f"takeback: {count(len(turn.left_out), 'new path')} not covered")
        _tell_losses(turn, screen)
        _tell_what_next(turn, screen)


def _tell_what_next(turn: "RecordedTurn", screen: "Screen") -> None:
    if turn_text.can_return(turn):
        show = f"`takeback show {turn.id[:6]}` shows details"
        is_lost = any(loss.is_grave for loss in turn.losses)
        it = "the rest" if is_lost else "the files" if turn.git else "it"
        unsure = any(change.author.how == terms.PERHAPS for change in turn.changes)
        does = "asks first, because it may be your own work" if unsure else f"takes {it} back"
        screen.note(f"takeback: `takeback undo` {does}, {show}")
    elif turn.raw_rescued:
        how = f"`takeback undo {turn.id[:6]}` brings back what was rescued"
        screen.note(f"takeback: {how}, `takeback show {turn.id[:6]}` lists it")
    elif any(found.code == reasons.GIT_GONE for found in turn.git):
        screen.note("takeback: git is not covered; restore `.git` from a clone or a backup")
    elif turn.git:
        how = f"`takeback undo {turn.id[:6]}` shows the git commands that reverse it"
        screen.note(f"takeback: git is not covered; {how}")


def _running_turn(project: "Project", id: str) -> "Turn | None":
    """The turn that another `takeback run` began; None if it does not run, or not here."""
    from takeback.session import Turn

    try:
        is_running = bool(id) and project.turn(id).status == terms.RUNNING
    except UnknownReferenceError:
        return None
    if not is_running:
        return None
    return Turn(project.recorder(guard=mode_of_run(project.workspace)), project, id)


def _tell_losses(turn: "RecordedTurn", screen: "Screen") -> None:
    for head, rows in loss_text.parts(turn.losses):
        screen.note(f"takeback: {head[0].lower()}{head[1:]}")
        for path, said in rows[:_MOST_SHOWN]:
            screen.note(f"  {path}  {said}")
        if len(rows) > _MOST_SHOWN:
            screen.note(f"  and {len(rows) - _MOST_SHOWN:,} more")


def _deleted(project: "Project") -> "TakebackError | None":
    """What to say if the command deleted the folder of the project itself."""
    if os.path.isdir(project.root):
        return None
    import shlex

    where = os.fsdecode(project.root)
    return TakebackError(
        f"the folder `{where}` is gone",
        hint=f"`takeback undo -C {shlex.quote(where)}` restores it",
    )


def _complain(problem: Exception, screen: "Screen") -> None:
    """Say that the command ran and that what it did may not be recorded."""
    shown = _as_ours(problem)
    shown.actions = shown.actions or ("`takeback checkpoint` keeps the project as it is now",)
    with contextlib.suppress(OSError):  # nobody may be there to read it
        screen.note("takeback: the command ran, but what it changed could not be recorded")
        screen.error(shown)


def _as_ours(problem: Exception) -> TakebackError:
    if isinstance(problem, TakebackError):
        problem.actions = problem.actions or (Action("doctor"),)
        return problem
    return TakebackError(f"{type(problem).__name__}: {problem}", hint=Action("doctor"))


# -- an agent without hooks ----------------------------------------------------------------------


class _Prompts:
    """Follows an agent by its own history: each prompt is a turn.

    cooked   the agent works: what changes is the turn's, surely where the agent says so
    raw      it waits at the terminal for you: what changes is yours

    What somebody may have edited while the agent works, and the agent does not name, is a doubt.
    An agent that asks a question waits, too: when no prompt follows, its turn goes on.
    """

    def __init__(self, project: "Project", session: "Session", words: "list[str]") -> None:
        self._recorder = project.recorder("turn")
        self._session = session
        folder = os.getcwd()
        self._top = os.fsencode(aider.top(folder))
        chat, self._typed = (
            aider.history_file(which, words, os.environ, folder)
            for which in (aider.CHAT, aider.INPUT)
        )
        self._history = aider.ChatHistory(chat)
        self._is_terminal = os.isatty(0)
        with self._recorder.together():
            self._git: Mapping[str, Json] | None = project.workspace.git_facts()
        self._began = self._now = time.time_ns()
        self._waited = 0
        """When the agent was last seen to wait."""
        self._is_awake = False
        self._turn = self._step = ""
        self._since = 0
        self._edited: list[bytes] = []
        self.turns: list[str] = []
        self.problem: TakebackError | None = None

    def __enter__(self) -> "Self":
        from threading import Event, Thread

        self._over = Event()
        self._thread = Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def end(self, label: str, status: str) -> None:
        """The agent is gone: its last turn ends; without any prompt the whole run is one."""
        self._try(self._look)
        if not self.turns:
            self._start(label, self._began)
        self._rest(time.time_ns(), status)

    def _follow(self) -> None:
        while not self._over.wait(_FOLLOWED_EVERY):
            self._try(self._look)

    def _try(self, what: "Callable[[], None]") -> None:
        try:
            what()
        except TakebackError as problem:
            self.problem = problem

    def _look(self) -> None:
        before, self._now = self._now, time.time_ns()
        is_raw = self._is_raw()
        for kind, text in self._history.news():
            if kind == "prompt":
                self._begin(text, self._entered(before))
                continue
            self._go_on(self._entered(before))
            self._edited.append(os.fsencode(text))
        if is_raw:
            if self._is_awake:
                self._go_on(self._entered(before))
            self._is_awake, self._waited = False, self._now
            self._rest(self._now)
        elif self._waited:
            self._is_awake = True
            if self._now - self._waited > _GRACE:
                self._go_on(self._entered(before))

    def _entered(self, before: int) -> int:
        """When somebody last typed something in; or a moment by which it was not yet."""
        since = self._waited or before
        with contextlib.suppress(OSError):
            typed = os.stat(self._typed).st_mtime_ns
            if since < typed <= self._now:
                return typed
        return since

    def _go_on(self, began: int) -> None:
        """It works again, and there was no other prompt: a question of it was answered."""
        if self._turn and not self._step:
            self._work("", began)

    def _is_raw(self) -> bool:
        if not self._is_terminal:
            return False
        import termios

        try:
            return not termios.tcgetattr(0)[3] & termios.ICANON
        except (termios.error, OSError):
            return False  # the terminal is gone

    def _begin(self, prompt: str, began: int) -> None:
        self._rest(began)
        if not self.turns and not self._is_terminal:
            began = self._began  # nobody else was there
        self._start(prompt, began)

    def _start(self, label: str, began: int) -> None:
        git, self._git = self._git, None
        self._turn = self._recorder.start_turn(
            self._session.id, label, whole=False, began=began, git=git
        )
        self.turns.append(self._turn)
        self._work(label, began)

    def _work(self, prompt: str, began: int) -> None:
        given = {"command": prompt} if prompt else {}
        self._since = began
        self._step = self._recorder.start_step(
            self._turn, aider.NAME, given, kind=terms.SHELL, missed=True, began=began
        )

    def _rest(self, at: int, status: str = terms.DONE) -> None:
        """The agent works no more: what it edited by name, then the end of its turn."""
        step, self._step = self._step, ""
        if not step:
            return
        recorder, paths = self._recorder, list(dict.fromkeys(self._edited))
        self._edited = []
        is_long = at - self._since > LONG * 1_000_000_000
        interactive = self._is_terminal and (bool(self._waited) or is_long)
        with recorder.together():
            if paths:
                edit = recorder.start_step(
                    self._turn, "edit", {"paths": [os.fsdecode(path) for path in paths]},
                    kind=terms.EDIT, paths=paths, cwd=self._top, missed=True, began=self._since,
                )  # fmt: skip
                recorder.end_step(edit, terms.DONE, ended=at)
            recorder.end_step(step, status, ended=at, interactive=interactive)
            recorder.end_turn(self._turn, status, ended=at)
