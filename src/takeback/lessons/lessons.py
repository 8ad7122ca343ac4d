"""`Lessons`: list, note, accept, edit and drop the lessons of a project."""

import os
import time

from takeback.disk.failures import FailingAs
from takeback.errors import DecisionNeededError, TakebackError, UnknownReferenceError, UsageError
from takeback.ledger.beyond.lessons import first_line
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.lessons import choice
from takeback.lessons.lesson import (
    ACTIVE,
    AGENT,
    DROPPED,
    USER,
    WAITING,
    WITHDRAWN,
    Lesson,
)
from takeback.model import ids
from takeback.model.reasons import Action
from takeback.model.words import MKDIR, RMDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.capture.workspace import Workspace
    from takeback.ledger.beyond.lessons import LessonRow
    from takeback.ledger.checkpoints import DeltaRow
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import ChangeRow
    from takeback.model.history import Relapse
    from takeback.model.text.json_text import Json

LONGEST = 2000
_MOST_TURNS, _MOST_PATHS = 50, 200
_BILLION = 1_000_000_000


class Lessons:
    """The lessons of one project. Iterating gives those that count, the newest first."""

    def __init__(self, work: "Workspace") -> None:
        self._work = work

    @property
    def _ledger(self) -> "Ledger":
        return self._work.ledger

    def __iter__(self) -> "Iterator[Lesson]":
        return iter(self.list())

    def list(self, *, all: bool = False) -> "tuple[Lesson, ...]":
        """The lessons that agents are told, and those that wait for the user, newest first.

        With `all`, also those that a redo withdrew, and those that were dropped.
        """
        with FailingAs(TakebackError, "the store could not be read"):
            found = [as_lesson(self._ledger, row) for row in self._ledger.lessons.all()]
        return tuple(each for each in found if all or each.status in (ACTIVE, WAITING))

    def get(self, id: str) -> Lesson:
        """The lesson with an id, or the beginning of one."""
        with FailingAs(TakebackError, "the store could not be read"):
            return as_lesson(self._ledger, self._row(id))

    def relevant(
        self, prompt: str = "", paths: "Iterable[bytes]" = (), limit: int = choice.MOST
    ) -> "tuple[Lesson, ...]":
        """The lessons that matter most for a prompt, and for paths that are worked on."""
        found = [each for each in self.list() if each.status == ACTIVE]
        return tuple(each for _, each in choice.ranked(found, prompt, paths)[:limit])

    def note(
        self,
        text: str,
        *,
        session: str = "",
        turn: str = "",
        restore: str = "",
        by_agent: bool = False,
        request: "str | None" = None,
    ) -> Lesson:
        """Note a lesson. With a `session` it is an agent's, and waits until the user accepts it.

        So does one `by_agent`, if nobody knows the session.

        `restore` or `turn` is what it is about. A second call with the same `request` returns what
        the first one did.
        """
        with FailingAs(TakebackError, "nothing was noted"), self._work.held():
            known = self._ledger.requested(request)
            if known is not None and known.kind == events.LESSON_NOTED and known.payload:
                return self.get(str(known.payload["lesson"]))
            said = self._about(session, turn, restore)
            id = ids.from_entropy(os.urandom(8))
            is_agent = by_agent or bool(session) or self._ledger.lessons.agent_at_work() is not None
            said |= {"lesson": id, "text": _words(text), "source": AGENT if is_agent else USER}
            self._record(events.LESSON_NOTED, said, request)
            return self.get(id)

    def accept(self, id: str, text: str = "") -> Lesson:
        """Let agents be told a lesson that one of them noted, with other words if some are given.

        Also brings back a lesson that was dropped.
        """
        said: dict[str, Json] = {"state": ACTIVE}
        return self._change(id, said | ({"text": _words(text)} if text else {}))

    def edit(self, id: str, text: str) -> Lesson:
        """Say a lesson in other words. Sessions that were told the old ones are told again."""
        return self._change(id, {"text": _words(text)})

    def drop(self, id: str) -> Lesson:
        """Tell no agent of a lesson any more."""
        return self._change(id, {"state": DROPPED})

    def relapses(self, turns: "Iterable[str]") -> "tuple[Relapse, ...]":
        """What some turns brought back that was taken back before."""
        with FailingAs(TakebackError, "the store could not be read"):
            return self._ledger.lessons.relapses(turns)

    # -- small pieces ----------------------------------------------------------------------

    def _change(self, id: str, said: "dict[str, Json]") -> Lesson:
        with FailingAs(TakebackError, "nothing was changed"), self._work.held():
            row = self._row(id)
            if self._ledger.lessons.agent_at_work() is not None:
                raise DecisionNeededError(
                    "an agent runs this command, and only you decide about lessons",
                    hint=Action("lessons"),
                )
            turns: list[Json] = [*map(self._ledger.turns.id_of, row.turns)]
            said |= {"lesson": row.id, "turns": turns}
            self._record(events.LESSON_CHANGED, said, None, row.event)
            return self.get(row.id)

    def _row(self, id: str) -> "LessonRow":
        found = self._ledger.lessons.with_prefix(id) if ids.is_prefix(id) else []
        exact = [row for row in found if row.id == id]
        if len(exact or found) != 1:
            why = "several lessons match" if found else "no lesson matches"
            raise UnknownReferenceError(f"{why} `{id}`", hint=Action("lessons"))
        return (exact or found)[0]

    def _about(self, session: str, turn: str, restore: str) -> "dict[str, Json]":
        said: dict[str, Json] = {"line": self._ledger.line}
        if session:
            said["session"] = self._ledger.sessions.get(session).id
        if turn:
            said["turns"] = [self._ledger.turns.get(turn).id]
        row = self._ledger.stack.find(restore) if restore else None
        if restore and row is None:
            raise UnknownReferenceError(f"no restore matches `{restore}`", hint=Action("log"))
        if row is not None:
            said |= {"restore": row.id, "turns": [*self._ledger.lessons.turns_of(row.number)]}
        return said

    def _record(
        self, kind: str, said: "dict[str, Json]", request: "str | None", *parents: int
    ) -> None:
        now = time.time_ns()
        self._ledger.record(NewEvent(kind, said, now, parents=parents, request=request))


def _words(text: str) -> str:
    """The words of a lesson, on one line."""
    line = " ".join(text.split())[:LONGEST].encode("utf-8", "replace").decode()
    if not line:
        raise UsageError("a lesson needs words", hint=Action("lessons"))
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def status_of(row: "LessonRow") -> str:
    if row.state == ACTIVE:
        return ACTIVE if row.stands else WITHDRAWN
    return WITHDRAWN if row.state == WAITING and not row.stands else row.state


def as_lesson(ledger: "Ledger", row: "LessonRow") -> Lesson:
    """A lesson with the facts that belong to it."""
    restore = ledger.stack.numbered(row.restore) if row.restore is not None else None
    numbers = row.turns[-_MOST_TURNS:]
    turns = [turn for turn in map(ledger.turns.record, numbers) if turn is not None]
    session = ledger.sessions.numbered(row.session).id if row.session is not None else ""
    changes: Iterable[ChangeRow | DeltaRow] = [
        change for turn in turns for change in ledger.turns.changes(turn.number)
    ]
    if restore is not None and not turns:
        changes = ledger.deltas.restored(restore.after)  # some paths were brought back to a state
    paths = {each.path: None for each in changes if each.verb not in (MKDIR, RMDIR)}
    return Lesson(
        id=row.id,
        text=row.text,
        status=status_of(row),
        source=row.source,
        at=row.at / _BILLION,
        verb=restore.verb if restore is not None else "",
        restore=restore.id if restore is not None else "",
        turns=tuple(turn.id for turn in turns),
        prompt=first_line(turns[-1].label) if turns else "",
        raw_paths=tuple(paths)[:_MOST_PATHS],
        files=len(paths),
        added=sum(turn.added for turn in turns),
        removed=sum(turn.removed for turn in turns),
        exit_code=_exit_code(ledger, numbers),
        session=session or (turns[-1].session if turns else ""),
    )


def _exit_code(ledger: "Ledger", turns: "tuple[int, ...]") -> "int | None":
    """With what code the last command of some turns failed."""
    for turn in reversed(turns):
        for step in reversed(ledger.steps.of_turn(turn)):
            event = ledger.event(step.last) if step.last is not None else None
            code = (event.payload or {}).get("exit_code") if event is not None else None
            if isinstance(code, int) and code:
                return code
    return None
