"""Handle one event of a hook: record it, and answer.

    payload ──► Agent ──► HookEvent ──► HookRecorder ──► the project's log
                              │
    output  ◄── Agent ◄── Answer: a verdict, and words for the agent and its user

A failure here is ours, not the agent's: it is logged (`troubles`), the user is told once in each
conversation that the turn is not covered, and the agent goes on.

What went wrong in hooks: a short log that `takeback doctor` shows, and whom it was told.

An agent must never be stopped by us, so nothing here raises. The log is bounded: when it is full,
its older half goes.

`takeback hook`: one event from stdin, one answer to stdout, and always exit 0.

A warm process hears the event if there is one (`line`); else this one does, and leaves one behind
for the next event (`resident`).
"""

import gc
import os
import sys
import time

from takeback import environment
from takeback.agents import agent as kinds
from takeback.agents import registry
from takeback.agents.agent import ALLOW, ASK, DENY, Answer
from takeback.disk import home, operations
from takeback.hooks import helper
from takeback.hooks.helper import ProjectCache
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import NoReturn

    from takeback.agents.agent import HookEvent
    from takeback.model.text.json_text import Json
    from takeback.project import Project


_NAME = b"/hooks.log"
_MOST = 64 * 1024
_LONGEST = 2000


def note(folder: bytes, at: int, agent: str, event: str, session: str, problem: str) -> bool:
    """Add a line; whether this conversation hears of it for the first time."""
    from takeback.model.text import json_text

    line: dict[str, Json] = {
        "at": at // 1_000_000_000,
        "agent": agent[:100],
        "event": event[:100],
        "session": session[:200],
        "problem": problem[:_LONGEST],
    }
    try:
        known = read(folder)
        is_new = not any(each.get("session") == line["session"] for each in known)
        added = json_text.dumps(line).encode() + b"\n"
        _append(folder + _NAME, added)
    except Exception:  # noqa: BLE001 -- there is nobody left to tell
        return True
    return is_new


def read(folder: bytes) -> "list[dict[str, Json]]":
    """What went wrong, the oldest first; lines that cannot be read are passed over."""
    from takeback.model.text import json_text

    found = []
    for line in home.read_small(folder + _NAME).splitlines():
        try:
            told = json_text.loads(line.decode())
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(told, dict):
            found.append(told)
    return found


def _append(path: bytes, line: bytes) -> None:
    kept = home.read_small(path)
    if len(kept) + len(line) > _MOST:
        kept = kept[len(kept) // 2 :].partition(b"\n")[2]
        home.replace_file(path, kept, line, durable=False)
        return
    fd = operations.open_or_create(path)
    try:
        operations.write_at(fd, line, os.fstat(fd).st_size)
    finally:
        os.close(fd)


_ENDS = (kinds.STOPS, kinds.FAILS)
RELAPSED = "relapsed"
NOT_COVERED, REWOUND, RESTORED, OFF = "not covered", "rewound", "restored", "off"
NEW_HISTORY, TYPED, GUARD = "new history", "typed", "guard"
"""Reasons of answers."""


PATIENCE = 8.0
"""Seconds that a typed command may take: fewer than hooks wait for the helper, agents for hooks."""


class HookContext(Value):
    """Where a hook was called: the store's home, the user's, the agent's folder, the current one.

    The helper handles events for others, so these come with the event, and so does its id.
    """

    home: bytes
    user_home: bytes
    folder: bytes
    cwd: bytes
    delivery: bytes = b""


class HookListener:
    """Handles one event after the other. The project of the last one stays open for the next.

    A listener of many events also watches the tree of the project.
    """

    __slots__ = ("_projects",)

    def __init__(self, *, watches: bool = False) -> None:
        self._projects = ProjectCache(watches=watches)

    def hear(self, words: "tuple[bytes, ...]", data: bytes, sender: int = 0) -> bytes:
        """The answer to a payload, as the agent reads it; `sender` is the process that sent it."""
        received = time.time_ns()
        context = HookContext(*words)
        event = event_of(data, context)
        event.received = _sent(sender, received) if event.took >= 0 else received
        event.sender = sender
        answer = _typed(event, words, data) or handle(event, context, self._projects)
        output = event.agent.answer(event, answer)
        self._projects.rest()
        return json_text.dumps(output).encode() + b"\n" if output else b""

    def settle(self) -> None:
        """Do what the next event is faster with, once this one was answered."""
        self._projects.settle()

    def close(self) -> None:
        """Close what is open."""
        self._projects.close()


def _sent(sender: int, received: int) -> int:
    """When an event was sent: the agent starts a process for it, which may take a while."""
    from takeback.disk import machine

    is_hook = sender and b"hook" in machine.command_line(sender)[-2:]
    return (machine.born(sender) if is_hook else 0) or received


def _deadline(event: "HookEvent") -> float:
    """Until when a call can wait for a restore: shortly before its agent gives up on the hook."""
    now = time.time_ns()
    passed = (now - _sent(event.sender, now)) / 1e9
    return time.monotonic() + event.agent.call_limit - _TO_ANSWER - passed


def hear(words: "tuple[bytes, ...]", data: bytes, sender: int = 0) -> bytes:
    """The answer to one payload, with nothing left open."""
    listener = HookListener()
    try:
        return listener.hear(words, data, sender)
    finally:
        listener.close()


def event_of(data: bytes, context: HookContext) -> "HookEvent":
    """The event that a payload reports."""
    payload = parse(data)
    event = registry.agent_of(payload).read(payload)
    event.agent.read_files(event, os.fsdecode(context.user_home))
    event.folder = os.fsdecode(context.folder)
    event.delivery = os.fsdecode(context.delivery) or os.urandom(16).hex()
    return event


def parse(data: bytes) -> "Mapping[str, object]":
    """A payload, whatever was sent: what is no JSON object is an empty one."""
    text = data.decode("utf-8-sig", "replace").strip()
    try:
        payload = json_text.loads(text)
    except (ValueError, TypeError, RecursionError):
        payload = _leniently(text)
    return payload if isinstance(payload, dict) else {}


def _leniently(text: str) -> object:
    """Some hosts send control characters within strings."""
    import json

    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}


def _typed(event: "HookEvent", words: "tuple[bytes, ...]", data: bytes) -> "Answer | None":
    """The answer to a prompt that is a command of ours; None if it is for the agent."""
    if event.kind != kinds.PROMPT or not ("tb " in event.prompt or "/takeback:" in event.prompt):
        return None
    from takeback.agents import typed

    if not typed.is_ours(event, parse(data)) or not _is_typing_on(event, HookContext(*words)):
        return None
    from takeback.hooks import words as sentences

    try:
        text = typed.ask(words, data, event.received, PATIENCE)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, the prompt is not for the model
        text = sentences.of_failed_typing(str(problem))
    said = sentences.of_unfinished_typing() if text is None else text
    return Answer(DENY, TYPED, to_user=said or sentences.of_failed_typing(""))


def _is_typing_on(event: "HookEvent", context: HookContext) -> bool:
    from takeback.upkeep.settings import Settings

    try:
        settings = Settings.at(_where(event, context), home=context.home)
        return settings.one("hooks.typed").value is not False
    except Exception:  # noqa: BLE001 -- whatever it is, the prompt is not for the model
        return True


def handle(event: "HookEvent", context: HookContext, projects: ProjectCache) -> Answer:
    """Record an event; the answer to it."""
    if event.kind == kinds.OTHER or not event.session:
        return Answer()
    try:
        return _recorded(event, context, projects)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, it is not the agent's
        return _not_covered(event, context, problem)


def _recorded(event: "HookEvent", context: HookContext, projects: ProjectCache) -> Answer:
    from takeback.errors import BusyError

    where = _where(event, context)
    project, is_fresh = projects.project(where, context.home, context.user_home)
    try:
        answer = _written(project, event, context)
        return _with_offer(answer, project) if is_fresh else answer
    except Exception as problem:
        projects.close()
        if is_fresh or isinstance(problem, BusyError):
            raise
    # A project that was open for a while may be outdated in a way that only shows by now. What of
    # the event is in the log already counts once.
    project, _ = projects.project(where, context.home, context.user_home)
    return _with_offer(_written(project, event, context), project)


def _with_offer(answer: Answer, project: "Project") -> Answer:
    """An answer that also offers the old history, if a new one began for this event."""
    if not project.workspace.instead_of:
        return answer
    if project.workspace.ledger.checkpoints.newest() is None:
        project.checkpoint()  # not every event makes one, and the history begins now
    from takeback.hooks import words

    text = words.of_new_history(project.workspace.root, project.workspace.instead_of)
    to_user = "\n".join(filter(None, (text, answer.to_user)))
    return answer.replace(reason=answer.reason or NEW_HISTORY, to_user=to_user)


def _written(project: "Project", event: "HookEvent", context: HookContext) -> Answer:
    from takeback.hooks.hook_recorder import HookRecorder

    if not project.workspace.rules.is_recording():
        return Answer(reason=OFF)
    lock = project.workspace.store.lock
    lock.restore_deadline = _deadline(event) if event.kind == kinds.BEFORE_TOOL else 0.0
    recorder = HookRecorder(project, context.user_home)
    session = recorder.record(event)
    if recorder.refusal is not None:
        from takeback.hooks import words

        refusal = recorder.refusal
        to_user = words.of_block_to_user(refusal.blocked)
        return Answer(DENY, refusal.why, to_agent=words.of_refusal(refusal), to_user=to_user)
    if recorder.asked is not None or recorder.rescued is not None:
        from takeback.hooks import words

        verdict = ALLOW if recorder.asked is None else ASK
        to_agent = words.of_question(recorder.asked)
        to_user = words.of_unsaved(recorder.rescued)
        if to_agent or to_user:
            return Answer(verdict, GUARD, to_agent=to_agent, to_user=to_user)
    return _answer(project, session, event, context) if session else Answer()


def _answer(project: "Project", session: str, event: "HookEvent", context: HookContext) -> Answer:
    """What the log has to say about the event. The turn is covered, also if this fails."""

    def safely(say: "Callable[[Project, str, HookEvent], str]") -> str:
        try:
            return say(project, session, event)
        except Exception as problem:  # noqa: BLE001 -- whatever it is, it is not the agent's
            _log(event, context, problem)
            return ""

    to_agent = "\n".join(filter(None, map(safely, (_restored, _taught, _relapsed))))
    if to_agent and event.can_go_on():
        return Answer(DENY, RELAPSED, to_agent=to_agent)
    to_user = safely(_to_user)
    reason = RESTORED if to_agent else REWOUND if to_user else ""
    return Answer(reason=reason, to_agent=to_agent, to_user=to_user)


def _tells(project: "Project") -> bool:
    """Whether the user wants agents to be told of lessons and relapses."""
    from takeback.upkeep.settings import Settings

    work = project.workspace
    return Settings(work.home.path, work.id).one("lessons.tell").value is not False


def _restored(project: "Project", session: str, event: "HookEvent") -> str:
    """Restores that the agent was not told of, and that it is paused."""
    if not event.can_be_told():
        return ""
    from takeback.agents import notes
    from takeback.hooks import words

    work = project.workspace
    said = words.of_note(notes.pending(work.ledger, work.held, session))
    sessions = work.ledger.sessions
    if event.kind == kinds.PROMPT and sessions.is_paused(sessions.get(session).number):
        return "\n".join(filter(None, (said, words.PAUSED)))
    return said


def _taught(project: "Project", session: str, event: "HookEvent") -> str:
    """Lessons that the agent was not told, or forgot."""
    work = project.workspace
    if not work.ledger.lessons.has_any() or not (event.compacts() or event.can_be_told()):
        return ""
    from takeback.hooks import words
    from takeback.lessons import telling

    if event.compacts():
        telling.compacted(work.ledger, work.held, session)
    if not event.can_be_told() or not _tells(project):
        return ""
    anew = not event.begins_work()
    found = telling.pending(work.ledger, work.held, session, event.prompt, only_anew=anew)
    return words.of_lessons(found)


def _relapsed(project: "Project", session: str, event: "HookEvent") -> str:
    """What the agent brought back that was taken back."""
    work = project.workspace
    if event.has_worked() and work.ledger.lessons.has_taken():
        from takeback.lessons import relapses

        turn = work.ledger.turns.newest_of(work.ledger.sessions.get(session).number)
        if turn is not None:
            relapses.find(work, turn.id, is_over=event.kind in _ENDS)
    if not (event.can_be_told() or event.can_go_on()) or not work.ledger.lessons.has_relapses():
        return ""
    if not _tells(project):
        return ""
    from takeback.hooks import words
    from takeback.lessons import telling

    found = telling.pending_relapses(work.ledger, work.held, session, telling.TO_AGENT)
    return words.of_relapses(found)


def _to_user(project: "Project", session: str, event: "HookEvent") -> str:
    """A rewind, what came of a command that was typed, and relapses of the turn that ends."""
    to_user = ""
    if event.tells_of_prompts():
        from takeback.agents import rewinds
        from takeback.hooks import words

        work = project.workspace
        rewind = rewinds.notice(work.ledger, work.held, session, event)
        to_user = words.of_rewind(rewind)
        if rewind is not None:
            from takeback import listeners

            listeners.tell_rewind(work.rules, event.agent.name, session, rewind)
    if event.kind == kinds.PROMPT and event.can_tell_user():
        from takeback.agents import typed
        from takeback.hooks import words

        left = typed.take_result(project.workspace.store, session)
        to_user = "\n".join(filter(None, (words.of_late_result(left), to_user)))
    if event.kind in _ENDS and project.workspace.ledger.lessons.has_relapses():
        from takeback.hooks import words
        from takeback.lessons import telling

        work = project.workspace
        found = telling.pending_relapses(work.ledger, work.held, session, telling.TO_USER)
        to_user = "\n".join(filter(None, (to_user, words.of_relapses_to_user(found))))
    return to_user


def _log(event: "HookEvent", context: HookContext, problem: Exception) -> "tuple[str, bool]":
    """What went wrong, in words, and whether that is new to this conversation."""
    from takeback.errors import TakebackError

    what = str(problem) if isinstance(problem, TakebackError) else repr(problem)
    now = time.time_ns()
    agent, name = event.agent.name, event.name
    return what, note(context.home, now, agent, name, event.session, what)


def _not_covered(event: "HookEvent", context: HookContext, problem: Exception) -> Answer:
    what, is_new = _log(event, context, problem)
    if not is_new:
        return Answer(reason=NOT_COVERED)
    from takeback.errors import NewerStoreError
    from takeback.hooks import words

    is_newer = isinstance(problem, NewerStoreError)
    told = words.of_uncovered(what, *_way_back(event, context), is_newer=is_newer)
    return Answer(reason=NOT_COVERED, to_user=told)


def _way_back(event: "HookEvent", context: HookContext) -> "tuple[bytes, bytes]":
    """The folder of the project if it is gone, and the folder if its store cannot be used."""
    try:
        from takeback import location
        from takeback.disk.home import Home

        where = _where(event, context)
        gone = location.find_gone(where, Home(context.home))
        unusable = None if gone else location.find_unusable(where, home=context.home)
        return gone.path if gone is not None else b"", unusable or b""
    except Exception:  # noqa: BLE001 -- `takeback doctor` shows details
        return b"", b""


def _where(event: "HookEvent", context: HookContext) -> bytes:
    return os.path.join(context.cwd, os.fsencode(event.folder or event.cwd or "."))


_TO_ANSWER = 2
"""Seconds between the last moment in which a call waits and the time limit of its hook."""
_LARGEST = 64 << 20
"""Bytes of a payload that are held: a tool's whole output may be in it."""
_AT_ONCE = 1 << 20


def main(folder: str = "", *, ends: bool = False) -> int:
    """Handle one event of an agent that was started in a folder, and with `ends`, end.

    The exit code is 0, whatever happens.
    """
    try:
        _hear_one(os.fsencode(folder), ends=ends)
    except BaseException:  # noqa: BLE001 -- also an interrupt: the agent must not notice
        return 0
    return 0


def _hear_one(folder: bytes, *, ends: bool) -> None:
    home = environment.default_home()
    here = environment.current_folder()
    words = (home, environment.user_home(), folder, here, environment.event_id())
    data = _read(0, home)
    wants_helper = environment.wants_helper()
    helped = helper.ask(home, words, data) if wants_helper else None
    # The helper is forked from this process, so no file may be open.
    _say(helped if helped is not None else _alone(words, data, ends=ends and not wants_helper))
    if helped is None and wants_helper:
        _leave_helper(home)


def finish(folder: str = "") -> "NoReturn":
    """Handle one event as the whole program; taking the interpreter apart only costs time."""
    gc.disable()  # nothing here lives long enough to be worth a search for cycles
    os._exit(main(folder, ends=True))


def _alone(words: "tuple[bytes, ...]", data: bytes, *, ends: bool) -> bytes:

    if ends:
        _leave_databases()
    return hear(words, data, os.getpid())


def _leave_databases() -> None:
    """Let the end of this process close them."""
    try:
        from takeback.ledger import database
    except ImportError:
        return  # whoever hears the event tells what is wrong
    database.ends = True


def _say(answer: bytes) -> None:
    if answer:
        sys.stdout.buffer.write(answer)
        sys.stdout.flush()


def _leave_helper(home: bytes) -> None:
    from takeback.hooks import helper

    if os.path.isdir(home):
        gc.enable()
        helper.leave_behind(home, HookListener(watches=True))


def _read(fd: int, home: bytes) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size <= _LARGEST:
        piece = os.read(fd, _AT_ONCE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    return _shortened(fd, pieces, home)


def _shortened(fd: int, pieces: "list[bytes]", home: bytes) -> bytes:
    """What a payload says that is larger; if it cannot be made smaller, `doctor` tells of it."""
    from takeback.hooks import oversize

    def all_pieces() -> "Iterator[bytes]":
        for number, piece in enumerate(pieces):
            pieces[number] = b""
            yield piece
        while piece := os.read(fd, _AT_ONCE):
            yield piece

    found = oversize.shortened(all_pieces())
    if not found:
        import time

        what = "an event was too large, so Takeback did not record it"
        note(home, time.time_ns(), "unknown", "", "", what)
    return found
