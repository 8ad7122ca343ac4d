"""Calls, whatever version of the protocol brought them: opens the project, answers, says errors.

It decides nothing: what a session may take back alone is judged in `undo/own`, on the plan that is
made anew under the lock.
"""

import os
import threading

from takeback.agents.callers import find_caller, find_turn
from takeback.errors import (
    DecisionNeededError,
    StalePlanError,
    TakebackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.mcp import look
from takeback.mcp.answers import AS_DATA, Answer, fit, slim
from takeback.mcp.arguments import checked
from takeback.mcp.tools import ASKING, TOOLS
from takeback.model.text.masking import Masker
from takeback.model.words import MINUTES_OF_AGENTS
from takeback.project import Project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from takeback.mcp.voice import Voice
    from takeback.model.plan import Report
    from takeback.model.reasons import Reason
    from takeback.model.text.json_text import Json

    Fields = dict[str, Json]

_NOT_KNOWN = "no hook reported which session calls, so the user decides"
_CANNOT_ASK = "this client cannot ask the user"
_DECLINED = {"decline": "the user said no", "cancel": "the user closed the question"}
_BUG = "this is a bug in Takeback; your files are safe"


class Door:
    """Answers the calls of one server, which was started in a folder."""

    def __init__(self, folder: bytes, home: bytes, user_home: bytes, voice: "Voice") -> None:
        self._folder = folder
        self._home = home
        self._user_home = user_home
        self._voice = voice
        self._alone = threading.Lock()
        """A client may make several calls at once."""

    # -- calls -----------------------------------------------------------------------------

    def call(self, tool: str, given: "Mapping[str, object]") -> Answer:
        """The answer to a call; never an exception."""
        return self._safely(lambda: self._called(tool, given))

    def ask(self, given: "Mapping[str, object]") -> "str | Answer":
        """The question to the user before a plan is applied; or the answer, if there is none."""
        asked: list[str] = []

        def question() -> "Fields":
            said = self._checked(ASKING, given)
            with self._project() as project:
                plan = project.planned(said["plan"])
                if plan.conflicts:
                    return self._for_user(project, plan.id, "the plan has conflicts")
                because = str(said.get("because", ""))
                asked.append(self._voice.question(plan, because, self._masker(project)))
                return {}

        answer = self._safely(question)
        return asked[0] if asked else answer

    def answered(self, given: "Mapping[str, object]", action: str, *, yes: bool) -> Answer:
        """What becomes of a plan once the user answered, by `action`, perhaps with `yes`."""
        return self._safely(lambda: self._answered(given, action, yes=yes))

    def unasked(self, given: "Mapping[str, object]") -> Answer:
        """The answer where the client cannot ask."""

        def refused() -> "Fields":
            said = self._checked(ASKING, given)
            with self._project() as project:
                return self._for_user(project, project.planned(said["plan"]).id, _CANNOT_ASK)

        return self._safely(refused)

    def _called(self, tool: str, given: "Mapping[str, object]") -> "Fields":
        said = self._checked(tool, given)
        if tool == "status":
            return self._status()
        if tool in look.LOOKS:
            with self._project() as project:
                found = look.LOOKS[tool](project, said, self._voice, self._masker(project))
            return {"about": AS_DATA, **found}
        return _ACTS[tool](self, said)

    def _checked(self, tool: str, given: "Mapping[str, object]") -> "dict[str, Any]":
        known = TOOLS.get(tool)
        if known is None:
            raise UsageError(
                f"there is no tool `{tool[:60]}`", hint=f"use one of {', '.join(TOOLS)}"
            )
        return checked(tool, known.parameters, given)

    def _safely(self, answer: "Callable[[], Fields]") -> Answer:
        more = "Name paths, or ask for less at once."
        try:
            with self._alone:
                fields = slim(answer())
            assert isinstance(fields, dict), "the fields of an answer"
            return Answer(fit(fields, more))
        except TakebackError as problem:
            return Answer(fit(self._problem(problem), more), is_error=True)
        except Exception as problem:  # noqa: BLE001 -- an agent is told in a sentence, too
            told: Fields = {
                "error": "InternalError",
                "message": f"{_BUG} ({type(problem).__name__})",
            }
            return Answer(told, is_error=True)

    def _problem(self, problem: TakebackError) -> "Fields":
        words = Masker().words
        told: Fields = {
            "error": type(problem).__name__,
            "message": words(str(problem)),
            "hint": words(self._voice.hint(problem.actions)),
        }
        if isinstance(problem, StalePlanError):
            told["moved"] = list(problem.paths)
        return {name: value for name, value in told.items() if value}

    # -- the project -----------------------------------------------------------------------

    def _project(self) -> Project:
        found = Project.find(self._folder, home=self._home)
        if found is None:
            where = os.fsdecode(os.path.realpath(self._folder))
            raise UsageError(
                f"`{where}` is not in a project yet", hint="the tool checkpoint makes it one"
            )
        return found

    def _opened(self) -> Project:
        """The project, made on first use."""
        return Project.open(self._folder, home=self._home, user_home=self._user_home)

    def _masker(self, project: Project) -> Masker:
        return Masker(names=project.workspace.rules.secret_names)

    def _status(self) -> "Fields":
        found = Project.find(self._folder, home=self._home)
        if found is None:
            where = os.fsdecode(os.path.realpath(self._folder))
            return {"project": "", "folder": where, "hint": "the tool checkpoint begins a history"}
        with found as project:
            seen = project.now()
            return {
                "about": AS_DATA,
                **self._voice.status(project.status(), seen, self._masker(project)),
            }

    # -- marks -----------------------------------------------------------------------------

    def _checkpoint(self, said: "dict[str, Any]") -> "Fields":
        with self._opened() as project:
            turn = find_turn(project.workspace.ledger, "checkpoint")
            made = project.checkpoint(said.get("label", ""), turn=turn)
            return self._voice.checkpoint(made, self._masker(project))

    def _note_lesson(self, said: "dict[str, Any]") -> "Fields":
        with self._project() as project:
            caller = find_caller(project.workspace.ledger, "note_lesson")
            turn = project.turn(said["turn"]).id if said.get("turn") else ""
            noted = project.lessons.note(said["text"], session=caller, turn=turn, by_agent=True)
            fields = self._voice.lesson(noted, self._masker(project))
            return {
                **fields,
                "next": f"the user accepts it: `takeback lessons accept {noted.id[:8]}`",
            }

    # -- plans -----------------------------------------------------------------------------

    def _preview_undo(self, said: "dict[str, Any]") -> "Fields":
        with self._project() as project:
            turns = said.get("turns") or None
            caller = find_caller(project.workspace.ledger, "preview_undo")
            plan = project.plan_undo(
                turns,
                session=caller or None if turns is None else None,
                paths=said.get("paths", ()),
                minutes=MINUTES_OF_AGENTS,
            )
            return _previewed(self._voice.plan(plan, self._masker(project)))

    def _preview_rollback(self, said: "dict[str, Any]") -> "Fields":
        with self._project() as project:
            plan = project.plan_rollback(
                said["ref"], paths=said.get("paths", ()), minutes=MINUTES_OF_AGENTS
            )
            return _previewed(self._voice.plan(plan, self._masker(project)))

    def _apply(self, said: "dict[str, Any]") -> "Fields":
        plan, because = said["plan"], said.get("because", "")
        with self._project() as project:
            caller = find_caller(project.workspace.ledger, "apply", plan)
            if not caller:
                return self._for_user(project, project.planned(plan).id, _NOT_KNOWN)
            try:
                report = project.apply(plan, because=because, asker=caller, only_own=True)
            except (StalePlanError, UnknownReferenceError):
                raise
            except DecisionNeededError as problem:
                return self._for_user(project, plan, *problem.reasons)
            return self._done(project, report)

    def _answered(self, given: "Mapping[str, object]", action: str, *, yes: bool) -> "Fields":
        said = self._checked(ASKING, given)
        plan, because = said["plan"], str(said.get("because", ""))
        with self._project() as project:
            if action != "accept" or not yes:
                told = _DECLINED.get(action, _DECLINED["decline"])
                return {"done": False, "plan": plan, "why": [told], "next": "leave it as it is"}
            caller = find_caller(project.workspace.ledger, ASKING, plan)
            # Without a session these words would count as the user's own.
            own = because if caller else ""
            report = project.apply(plan, because=own, yes=True, asker=caller)
            return self._done(project, report)

    def _done(self, project: Project, report: "Report") -> "Fields":
        return {"about": AS_DATA, **self._voice.plan(report.plan, self._masker(project), report)}

    def _for_user(self, project: Project, plan: str, *why: "str | Reason") -> "Fields":
        """That nothing was done, why, and what the user can run."""
        masker = self._masker(project)
        return {
            "done": False,
            "plan": plan,
            "needs_user": True,
            "why": [w if isinstance(w, str) else self._voice.reason(w, masker) for w in why],
            "command": f"takeback apply {plan}",
            "folder": project.root,
            "next": "nothing changed; show the user this command, and why",
        }


def _previewed(plan: "Fields") -> "Fields":
    valid = f"nothing changed yet; apply works within {MINUTES_OF_AGENTS} minutes"
    return {"about": AS_DATA, **plan, "next": valid}


_ACTS: "dict[str, Callable[[Door, dict[str, Any]], Fields]]" = {
    "checkpoint": Door._checkpoint,
    "note_lesson": Door._note_lesson,
    "preview_undo": Door._preview_undo,
    "preview_rollback": Door._preview_rollback,
    "apply": Door._apply,
}
