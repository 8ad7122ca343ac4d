"""`takeback lessons`: what restores taught; accept, edit or drop a lesson."""

import time

from takeback.cli.app import get_project
from takeback.cli.parser import BEYOND, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line, timestamp
from takeback.errors import UsageError
from takeback.lessons.lesson import ACTIVE, WAITING
from takeback.model import words as terms
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.lessons.lesson import Lesson
    from takeback.model.text.json_text import Json
    from takeback.project import Project

COMMAND = Command(
    "lessons",
    "list, edit and drop what agents are told",
    text=(
        "An `undo` or `rollback` with a reason (`--because`) makes a lesson. Agents are told the\n"
        "most relevant ones with their next prompt: your words, and facts that Takeback computes.\n"
        "A lesson that an agent noted waits until you accept it. `redo` withdraws a lesson.\n"
        "\n"
        "`accept` lets agents be told a lesson that waits or was dropped; with TEXT, in other\n"
        "words. `edit` words a lesson anew. `drop` tells no agent of it any more. --all also\n"
        "lists lessons that were withdrawn or dropped."
    ),
    operands=("[ACTION]", "[ID]", "[TEXT…]"),
    options=(
        Option(("--all",), "also list lessons that were withdrawn or dropped"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback lessons", "list the lessons of this project"),
        ("takeback lessons accept kxvw", "let agents be told what one of them noted"),
        ('takeback lessons edit kxvw "prices change daily"', "word one anew"),
        ("takeback lessons drop kxvw", "tell no agent of it any more"),
    ),
    group=BEYOND,
)

_DID = {terms.UNDO: "undid", terms.ROLLBACK: "rolled back"}
_MOST_NAMED = 3
_ACTIONS: "dict[str, Callable[[Project, str, str], Lesson]]" = {
    "accept": lambda project, id, text: project.lessons.accept(id, text),
    "edit": lambda project, id, text: project.lessons.edit(id, text),
    "drop": lambda project, id, _: project.lessons.drop(id),
}
_DONE = {
    "accept": "Accepted {id}: agents are told it with their next prompt",
    "edit": "Changed {id}: agents are told the new words",
    "drop": "Dropped {id}: no agent is told it any more",
}


def run(given: "Arguments", screen: "Screen") -> int:
    action, id, *rest = (*given.operands, "", "")[: max(2, len(given.operands))]
    _check(action, id, rest)
    with get_project(given, screen) as project:
        if not action:
            _list(project.lessons.list(all=given.has("all")), screen)
            return 0
        lesson = _ACTIONS[action](project, id, " ".join(rest))
    if screen.json:
        screen.data({"lessons": [as_json(lesson, screen)]})
        return 0
    screen.say(_DONE[action].format(id=lesson.id[:8]))
    _show(lesson, screen, time.time())
    if action == "drop":
        screen.note(f"`takeback lessons accept {lesson.id[:8]}` brings it back")
    return 0


def _check(action: str, id: str, rest: "list[str]") -> None:
    if action and action not in _ACTIONS:
        raise UsageError(
            f"`{action}` is nothing to do with a lesson: `accept`, `edit` or `drop` is",
            hint="`takeback lessons` lists the lessons",
        )
    if action and not id:
        raise UsageError(
            f"`lessons {action}` needs the ID of a lesson", hint="`takeback lessons` lists them"
        )
    if action == "edit" and not rest:
        raise UsageError(
            "`lessons edit` needs the new words", hint=f'`takeback lessons edit {id} "TEXT"`'
        )
    if action == "drop" and rest:
        raise UsageError("`lessons drop` takes only an ID", hint=f"`takeback lessons drop {id}`")


def as_json(lesson: "Lesson", screen: "Screen") -> "dict[str, Json]":
    return {
        "id": lesson.id,
        "text": screen.words(lesson.text),
        "status": lesson.status,
        "source": lesson.source,
        "at": timestamp(lesson.at),
        "verb": lesson.verb or None,
        "restore": lesson.restore or None,
        "turns": list(lesson.turns),
        "prompt": screen.words(lesson.prompt) or None,
        "paths": [path_fields(path) for path in lesson.raw_paths],
        "files": lesson.files,
        "added": lesson.added,
        "removed": lesson.removed,
        "exit_code": lesson.exit_code,
        "session": lesson.session or None,
    }


def _list(found: "tuple[Lesson, ...]", screen: "Screen") -> None:
    if screen.json:
        screen.data({"lessons": [as_json(each, screen) for each in found]})
        return
    if not found:
        screen.say("No lessons.")
        screen.note('`takeback undo --because "REASON"` makes one')
        return
    now = time.time()
    for each in found:
        _show(each, screen, now)
    waiting = next((each for each in found if each.status == WAITING), None)
    if waiting is not None:
        screen.note(f"`takeback lessons accept {waiting.id[:8]}` lets agents be told it")
    else:
        screen.note(
            "`takeback lessons edit ID TEXT` rewords one, `takeback lessons drop ID` ends it"
        )


def _show(lesson: "Lesson", screen: "Screen", now: float) -> None:
    """Two lines: the words, and what they are about."""
    status = "by an agent; waits for you" if lesson.status == WAITING else lesson.status
    mark = "" if lesson.status == ACTIVE else screen.style(f"  ({status})", "yellow")
    text = safe_line(screen.words(lesson.text))
    screen.say(f"{screen.id(lesson.id[:8], of=lesson.id)}  {text}{mark}", 10)
    screen.say(f"          {'  '.join(_about(lesson, screen, now))}", 10)


def _about(lesson: "Lesson", screen: "Screen", now: float) -> "list[str]":
    said = [ago(lesson.at, now)]
    did = _DID.get(lesson.verb, "")
    title = screen.title(lesson.prompt) if lesson.prompt else ""
    said += [f'{did} "{title}"'.strip() if title else did] if title or did else []
    named = [safe(path) for path in lesson.raw_paths[:_MOST_NAMED]]
    more = f" and {lesson.files - len(named):,} more" if lesson.files > len(named) else ""
    said += [f"{', '.join(named)}{more}"] if named else []
    if lesson.exit_code is not None:
        said.append(f"exit code {lesson.exit_code}")
    return said
