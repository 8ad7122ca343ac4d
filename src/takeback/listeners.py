"""Tells programs of the user's own that files changed under them: an index, a build, an editor.
Also that the user went back inside an agent, so that files and conversation are apart.

They are named in the user's settings, never in the work tree, run when the lock is free again, and
each is given one JSON object on its stdin. What a listener does wrong is told and harms nobody.
"""

import os

from takeback.disk import programs
from takeback.errors import TakebackError
from takeback.model import reasons
from takeback.model.reasons import Reason
from takeback.model.text import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.agents.rewinds import Rewind
    from takeback.capture.project_rules import ProjectRules
    from takeback.model.plan import Report

LONGEST = 10
"""Seconds that one listener may take."""


def notify(
    callbacks: "Iterable[Callable[[Report], None]]", rules: "ProjectRules", report: "Report"
) -> "tuple[Reason, ...]":
    """Tell callbacks and listeners of a restore; what goes wrong there does not undo it."""
    problems: list[Reason] = []
    for callback in callbacks:
        try:
            callback(report)
        except Exception as problem:  # noqa: BLE001 -- it is the caller's own code
            text = f"{type(problem).__name__}: {problem}"
            problems.append(Reason(reasons.LISTENER_RAISED, error=text))
    try:
        commands = rules.setting("restore", "listeners", [])
    except TakebackError as problem:
        return (*problems, Reason(reasons.LISTENERS_UNREAD, problem=str(problem)))
    return (*problems, *(tell(commands, report, rules.root) if commands else ()))


def tell_rewind(rules: "ProjectRules", agent: str, session: str, rewind: "Rewind") -> None:
    """Tell listeners that the user went back inside an agent, which changes no file by itself.

    The agent waits for its hook, so nobody waits for them, and what goes wrong there is not told.
    """
    facts: dict[str, json_text.Json] = {
        "event": "rewind",
        "agent": agent,
        "session": session,
        "turn": rewind.turn,
        "to": rewind.to or None,
        "moves_files": rewind.moves_files,
        "root": json_text.path_fields(rules.root),
    }
    for words in _checked(rules.setting("restore", "listeners", []))[0]:
        program = _program(words[0])
        if program is not None:
            message = f"{json_text.dumps(facts)}\n"
            programs.start_detached([program, *words[1:]], message, cwd=rules.root)


def tell(
    commands: object, report: "Report", root: bytes, *, longest: float = LONGEST
) -> "list[Reason]":
    """Run the listeners one after the other; return what went wrong.

    `commands` is the setting as it was read, so that it may be anything.
    """
    known, problems = _checked(commands)
    if not report.id or not known:
        return problems
    message = _message(report, root)
    for words in known:
        try:
            problem = _run(words, message, root, longest)
        except KeyboardInterrupt:
            # The restore is done. Whoever is tired of waiting shall not be told that it failed.
            problems.append(Reason(reasons.LISTENER_INTERRUPTED, name=words[0]))
            break
        if problem is not None:
            problems.append(problem)
    return problems


def _checked(commands: object) -> "tuple[list[list[str]], list[Reason]]":
    if not isinstance(commands, list):
        return [], [Reason(reasons.LISTENERS_WRONG)]
    known = [words for words in commands if _is_command(words)]
    wrong = len(commands) - len(known)
    return known, [Reason(reasons.LISTENERS_WRONG, count=wrong)] if wrong else []


def _is_command(words: object) -> bool:
    return (
        isinstance(words, list)
        and bool(words)
        and bool(words[0])
        and all(isinstance(word, str) and "\0" not in word for word in words)
    )


def _message(report: "Report", root: bytes) -> bytes:
    changed = [json_text.path_fields(change.raw_path) for change in report.plan.changes]
    facts: dict[str, json_text.Json] = {
        "event": "restore",
        "verb": report.plan.verb,
        "restore": report.id,
        "root": json_text.path_fields(root),
        "paths": changed,
        "before": report.before,
        "after": report.after,
    }
    return f"{json_text.dumps(facts)}\n".encode()


def _run(words: "list[str]", message: bytes, root: bytes, longest: float) -> "Reason | None":
    """Run one listener to its end; return what went wrong, or nothing."""
    program = _program(words[0])
    if program is None:
        return Reason(reasons.LISTENER_MISSING, name=words[0])
    try:
        ended = programs.run_limited([program, *words[1:]], message, cwd=root, seconds=longest)
    except TimeoutError:
        return Reason(reasons.LISTENER_TOO_SLOW, name=words[0], seconds=f"{longest:g}")
    except OSError as problem:
        return Reason(reasons.LISTENER_NOT_STARTED, name=words[0], why=str(problem.strerror))
    if ended.code == 0:
        return None
    return Reason(reasons.LISTENER_FAILED, name=words[0], status=ended.code)


def _program(name: str) -> "str | None":
    """The file that a command means. Never one that is found from the work tree."""
    if "/" in name:
        return name if os.path.isabs(name) and os.path.isfile(name) else None
    return programs.find(name) or None
