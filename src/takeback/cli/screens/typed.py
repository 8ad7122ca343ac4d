"""What somebody typed into an agent (`agents/typed`): done as the command line does it.

`takeback …` in these lines is for a terminal, `tb …` can be typed into the agent.
"""

import os
import time

from takeback.agents import requests, typed
from takeback.cli import app
from takeback.cli import screen as layout
from takeback.cli.restore_flow import Contents
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import action_text, now_text, reason_text, show_text, turn_text
from takeback.cli.text.restores import plan_text
from takeback.disk.failures import FailingAs
from takeback.errors import BusyError, NothingToTakeBackError, TakebackError, UsageError
from takeback.hooks import hook
from takeback.hooks.hook_recorder import HookRecorder
from takeback.model import words as terms
from takeback.model.reasons import Action
from takeback.model.text.safe_text import safe, shell_word
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from takeback.agents.agent import HookEvent
    from takeback.agents.typed import Typed
    from takeback.model.history import Log
    from takeback.model.plan import Plan, Report
    from takeback.project import Project

_PATIENCE = 300.0
"""Seconds that it waits for others who work on the project."""
_MOST_PATHS = 8
_MOST_TURNS = 8
_MOST_LEFT_OUT = 4
_LONGEST = 60
_SAFELY = FailingAs(TakebackError, "nothing was changed")
_HERE = {"takeback redo": "tb redo", "takeback undo": "tb undo"}


class Paper(Screen):
    """A screen for a text that somebody else shows."""

    def __init__(self) -> None:
        super().__init__(color="never")
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self._lines).strip()

    def can_show(self, text: str) -> bool:
        """Whether every character of a text can be shown: agents show UTF-8."""
        del text
        return True

    def _write(self, stream: "TextIO | None", text: str, taken: int) -> None:
        del stream, taken
        self._lines.append(text)


def main() -> int:
    """Do what a hook asks for, and hand it the result, or keep that for the next prompt."""
    received, words, payload = typed.question(0)
    this = _Command(hook.event_of(payload, hook.HookContext(*words)), received)
    try:
        this.run(words[0], words[3])
    except TakebackError as problem:
        this.refuse(problem)
    except Exception as problem:  # noqa: BLE001 -- nobody shall have to read a traceback
        app.report_bug(problem, this.screen)
    try:
        this.screen.raw(typed.answer(this.screen.text))
        is_read = typed.is_read(0)
    except OSError:
        is_read = False
    if not is_read:
        this.keep(this.screen.text)
    return 0


class _Command:
    """One command of one conversation."""

    def __init__(self, event: "HookEvent", received: int) -> None:
        self.screen = Paper()
        self._event = event
        event.received = received
        self._typed: Typed = typed.read(event.prompt) or typed.Typed(typed.STATUS)
        self._project: Project | None = None
        self._session = ""

    def run(self, home: bytes, cwd: bytes) -> None:
        """Find the project and the conversation in it, and do what was typed."""
        from takeback.project import Project

        where = os.path.join(cwd, os.fsencode(self._event.folder or self._event.cwd or "."))
        self._project = Project.find(where, home=home)
        if self._project is None:
            raise UsageError("Takeback recorded nothing in this folder yet", hint=Action("doctor"))
        app.attach(self._project, self.screen)
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._do(self._project)
            except BusyError:
                # Nobody waits here, so it can wait for what is under way.
                if time.monotonic() > until:
                    raise
            else:
                return

    def _do(self, project: "Project") -> None:
        verb = self._typed.verb
        if verb in (typed.UNDO, typed.REDO) and not requests.has_own_id(self._event):
            # Without an id, only the log shows that it was done: nobody may write meanwhile.
            with _SAFELY, project.workspace.held():
                self._begin(project)
                self._restore(project, verb)
            return
        self._begin(project)
        if verb in (typed.UNDO, typed.REDO):
            self._restore(project, verb)
        elif verb == typed.NAME:
            self._name(project)
        elif verb == typed.WHY:
            self._why(project)
        else:
            self._log(project, most=_MOST_TURNS if verb == typed.LOG else 0)

    def _begin(self, project: "Project") -> None:
        """The prompt ends what ran before it, as any other; what came too late is told now."""
        recorder = HookRecorder(project)
        self._request = recorder.typed_request(self._event)
        self._session = recorder.known_session(self._event)
        if not self._session:
            return
        is_done = project.workspace.ledger.requested(self._request) is not None
        if not is_done and project.workspace.rules.is_recording():
            recorder.end_before(self._session, self._event)
        late = typed.take_result(project.workspace.store, self._session)
        if late:
            self.screen.say(late)
            self.screen.say()

    def refuse(self, problem: TakebackError) -> None:
        """Say what is in the way, and what to do about it."""
        said = safe_line(self.screen.masker.words(str(problem)))
        self.screen.say(f"{said[:1].upper()}{said[1:]}.")
        hint = action_text.hint(problem.actions, "\n")
        if hint:
            for line in self.screen.masker.words(hint).split("\n"):
                self.screen.say(safe_line(line))

    def keep(self, text: str) -> None:
        """Keep what nobody waited for."""
        if self._project is not None and self._session:
            typed.keep_result(self._project.workspace.store, self._session, text)

    # -- undo and redo -----------------------------------------------------------------------

    def _restore(self, project: "Project", verb: str) -> None:
        """Take back or put back, unless the command line would ask first."""
        session = self._known()
        turns: tuple[str, ...] = ()
        passed_over = 0
        if project.workspace.ledger.requested(self._request) is None:
            plan = self._plan(project, verb, session)
            why = _why_not(plan)
            if why:
                self._show(project, plan, why)
                return
            turns, passed_over = plan.turns, plan.passed_over
        # Of the turn that was planned: meanwhile a new one may have begun.
        if verb == typed.UNDO:
            made = project.undo(
                turns or None, session=session, asker=session, request=self._request
            )
        else:
            made = project.redo(session=session, asker=session, request=self._request)
        contents = Contents(project, self.screen.masker)
        plan_text.report(
            _for_agent(made, passed_over),
            self.screen,
            contents,
            was_previewed=False,
            most=_MOST_PATHS,
        )

    def _plan(self, project: "Project", verb: str, session: str) -> "Plan":
        try:
            return (project.plan_undo if verb == typed.UNDO else project.plan_redo)(session=session)
        except NothingToTakeBackError:
            said = f"there is nothing left to {verb} in this conversation"
            raise NothingToTakeBackError(said, hint=Action("log-all")) from None

    def _show(self, project: "Project", plan: "Plan", why: str) -> None:
        contents = Contents(project, self.screen.masker)
        plan = plan.replace(agent="")
        plan_text.preview(plan, self.screen, contents, most=_MOST_PATHS)
        self.screen.say()
        self.screen.say(f"Nothing was changed: {why}.")
        call = f"takeback {plan.verb} {plan.turn[:8]}".rstrip()
        self.screen.say(f"`{call}` in a terminal lets you decide")

    # -- the others --------------------------------------------------------------------------

    def _name(self, project: "Project") -> None:
        made = project.checkpoint(self._typed.name, request=self._request)
        named = safe_line(self.screen.words(made.label))
        self.screen.say(f'Named this state "{named}" ({made.id[:8]})')
        if made.moved:
            self.screen.say(f"the name moved here from checkpoint {made.moved}")
        # A name that is masked here, or looks like an option, is no name on the command line.
        is_plain = named == made.label and not named.startswith("-")
        call = f"takeback rollback {shell_word(named if is_plain else made.id[:8])}"
        self.screen.say(f"`{call}` in a terminal brings everything back to it")

    def _why(self, project: "Project") -> None:
        turns = project.log(1, session=self._known(), all=True, changes=False).turns
        if not turns:
            raise self._nothing()
        show_text.why(project.turn(turns[0].id), self.screen, time.time())

    def _log(self, project: "Project", most: int) -> None:
        """The turns of this conversation, or only where it is; then what `tb undo` would do."""
        now, screen = time.time(), self.screen
        session = self._session or None
        log = project.log(max(most, 1), session=session, changes=False) if session else None
        seen = project.now(session)
        whole = project.log(1, changes=False)
        if not project.workspace.rules.is_recording():
            screen.say("Recording is off in this project; `takeback on` in a terminal turns it on")
        screen.say(f"@  now  {now_text.state(whole, seen, now)}")
        now_text.show_changes(whole, seen, screen)
        if log is None or not log.turns:
            screen.say("Nothing of this conversation can be taken back.")
        elif most:
            short = project.reader.shortened(turn_text.ids(log, None))
            turn_text.show_turns(log.replace(names=(), restores=()), short, screen, now)
            screen.say("`takeback log` in a terminal lists all conversations")
        if log is not None:
            self._next(log, project, most)

    def _next(self, log: "Log", project: "Project", most: int) -> None:
        screen, undo = self.screen, project.now(self._session).undo
        if undo is not None:
            what = f'"{layout.cut(screen.title(undo.title), _LONGEST)}" ({undo.id[:6]})'
            asks = ", after a question in a terminal" if undo.is_shared else ""
            if undo.kept:
                screen.say(f"`tb undo` takes back {what}{asks}")
            else:
                screen.say(f"`tb undo` cannot take back {what}: its files are no longer kept")
        if log.undone:
            hint = "; `tb redo` puts back the last" if self._can_redo(project) else ""
            screen.say(f"{count(log.undone, 'turn')} taken back{hint}")
        left_out = [] if most else project.status().left_out
        named = [safe(x.path) for x in left_out if x.reason != "version control"]
        if named:
            more = len(named) - _MOST_LEFT_OUT
            rest = f" and {more:,} more" if more > 0 else ""
            screen.say(f"Not covered: {', '.join(named[:_MOST_LEFT_OUT])}{rest}")

    def _can_redo(self, project: "Project") -> bool:
        """Whether an undo is the newest to put back: what a rollback took is in no redo."""
        try:
            project.plan_redo(session=self._session)
        except NothingToTakeBackError:
            return False
        except TakebackError:
            return True  # it tells what is in the way
        return True

    def _known(self) -> str:
        if not self._session:
            raise self._nothing()
        return self._session

    def _nothing(self) -> NothingToTakeBackError:
        said = "Takeback recorded nothing of this conversation yet"
        return NothingToTakeBackError(said, hint=Action("log"))


def _why_not(plan: "Plan") -> str:
    """What somebody has to decide first, in words; empty if nothing."""
    if plan.conflicts:
        return plan_text.in_conflict(plan)
    if plan.doubts:
        return reason_text.sentence(plan.doubts[0], plan.verb)
    merged = (dict(each.merged.facts).get("by", ()) for each in plan.changes if each.merged)
    if plan.dependents or any(set(by) - {terms.YOU} for by in merged if isinstance(by, tuple)):
        return "others changed the same files since"
    return ""


def _for_agent(made: "Report", passed_over: int) -> "Report":
    """A report whose reader knows which agent it is about, and reverses it there."""
    undo = _HERE.get(made.undo.removesuffix(f" {made.plan.turn[:8]}"), made.undo)
    plan = made.plan.replace(agent="", passed_over=passed_over)
    return made.replace(plan=plan, undo=undo)
