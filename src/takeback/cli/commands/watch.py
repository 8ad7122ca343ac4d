"""`takeback watch`: turns of an unknown author, for agents that report nothing.

    something changes ──► … ──► quiet for some seconds ──► one look, one turn

The kernel reports changes (inotify); where it cannot, the tree's stamps are compared every few
seconds. What a hook or `takeback run` claims is theirs. Other commands that look at the tree while
this one runs record the turn just as well, so nothing has to wait for the quiet.
"""

import contextlib
import os
import select
import signal
import time

from takeback.cli.app import attach, folder
from takeback.cli.parser import AGENTS, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text import turn_text
from takeback.errors import DamagedStoreError, RefusedError, TakebackError, UsageError
from takeback.history import look
from takeback.hooks.helper import ProjectCache
from takeback.model.reasons import Action
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from takeback.model.history import RecordedTurn
    from takeback.project import Project

COMMAND = Command(
    "watch",
    "record changes of any program as turns that you can undo",
    text=(
        "Records what changes in the project, whoever changes it: an agent without hooks, a\n"
        "program, you. A turn ends when no file changed for some seconds. Its author is unknown,\n"
        "so `takeback undo` shows it and asks first. What agents with hooks and `takeback run`\n"
        "do stays theirs. It runs until Ctrl-C and then says what it recorded. One watch runs in\n"
        "a project. With --json each turn is a line on stdout; the first line says that it\n"
        "watches, the last one sums up."
    ),
    options=(
        Option(("--quiet",), "seconds without a change that end a turn (default: 10)", "SECONDS"),
        Option(
            ("--longest",),
            "seconds after which a turn ends while files still change (default: 600)",
            "SECONDS",
        ),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback watch", "record until Ctrl-C"),
        ("takeback watch --quiet 60", "for an agent that thinks long between two edits"),
        ("takeback log", "list what it recorded"),
    ),
    group=AGENTS,
)

_QUIET, _LONGEST = 10, 600
_POLLED_EVERY = 2.0
_SHARE = 20
"""Where stamps are compared, at most one part in so many of the time is spent on it."""
_RETRY = 30.0
_MOST_SHOWN = 5
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OFF = "off in this project, so nothing is recorded; `takeback on` turns it on"


def run(given: "Arguments", screen: "Screen") -> int:
    with _Ending() as ending, _Records(given, screen) as records:
        rhythm = Rhythm(*_seconds(given, records.project))
        records.begin()
        _watch(records, rhythm, ending)
        return records.finish()


def _seconds(given: "Arguments", project: "Project") -> "tuple[float, float]":
    setting = project.workspace.rules.setting
    found = []
    for name, default in (("quiet", _QUIET), ("longest", _LONGEST)):
        text = given.get(name) or str(setting("watch", name, default))
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 < seconds < 1e6:
            raise UsageError(f"`{text}` is not a number of seconds", hint=f"`--{name} {default}`")
        found.append(seconds)
    return found[0], max(found)


class Rhythm:
    """Decides when a turn is over: nothing changed for a while, or it took too long already."""

    def __init__(self, quiet: float, longest: float) -> None:
        self.quiet = quiet
        self._longest = longest
        self._first: float | None = None
        self._last = 0.0

    def changed(self, now: float) -> None:
        self._first = now if self._first is None else self._first
        self._last = max(self._last, now)

    def over(self) -> None:
        """All that changed is recorded."""
        self._first = None

    def due(self) -> "float | None":
        """When to look; None if nothing changed."""
        if self._first is None:
            return None
        return min(self._last + self.quiet, self._first + self._longest)

    def is_overdue(self, now: float) -> bool:
        """Whether files have changed for so long that their quiet is not waited for."""
        return self._first is not None and now >= self._first + self._longest


def _watch(records: "_Records", rhythm: Rhythm, ending: "_Ending") -> None:
    mark, pause = 0, _POLLED_EVERY
    while not ending.is_asked and not records.is_gone:
        due, now = rhythm.due(), time.monotonic()
        noted = records.noted(ending, pause if due is None else max(due - now, 0.0))
        now = time.monotonic()
        if noted:
            rhythm.changed(now)
        elif noted is None:
            began, (seen, _) = now, records.stamps()
            pause = max(_POLLED_EVERY, _SHARE * (time.monotonic() - began))
            if seen != mark:
                rhythm.changed(began)
            mark = seen
        due = rhythm.due()
        if due is None or now < due or ending.is_asked:
            continue
        before, latest = records.stamps()
        age = time.time() - latest / 1e9
        if 0 <= age < rhythm.quiet and not rhythm.is_overdue(now):
            rhythm.changed(now - age)  # in a folder that is too new to be watched
            continue
        rhythm.over()
        if not records.look():
            ending.wait(_RETRY)
            rhythm.changed(time.monotonic())
        # What changed meanwhile is not recorded; what stays different in any case is not news.
        mark = before if records.stamps()[0] == before else 0


class _Ending:
    """Whether somebody asked us to end: the work at hand is finished first."""

    def __init__(self) -> None:
        self.is_asked = False
        self._before: dict[int, object] = {}
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def __enter__(self) -> "Self":
        self._woken = signal.set_wakeup_fd(self._write)
        for number in _ENDING:
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._woken)
        os.close(self._read)
        os.close(self._write)

    def _ask(self, *_: object) -> None:
        self.is_asked = True

    def wait(self, seconds: float, also: int = -1) -> bool:
        """Wait for the end, or for another file; whether that one is ready."""
        files = [self._read] if also < 0 else [self._read, also]
        ready, _, _ = select.select(files, [], [], seconds)
        return also in ready


class _Records:
    """The turns that this watch recorded, and the project that they are in.

    What fails is reported once, and tried again; the files stay as they are meanwhile.
    """

    def __init__(self, given: "Arguments", screen: "Screen") -> None:
        from takeback import environment

        self._place = (folder(given), environment.default_home(), environment.user_home())
        self._screen = screen
        self._cache = ProjectCache(watches=True)
        self._session = self._newest = self._trouble = ""
        self._turns = self._files = 0
        self._began = time.time()
        self.is_gone = False
        self.project = self._open()
        self._id, self._root = self.project.id, self.project.root

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self._cache.close()

    def _open(self) -> "Project":
        project, is_new = self._cache.project(*self._place)
        return attach(project, self._screen) if is_new else project

    def begin(self) -> None:
        """Record the tree as it is; from now on what changes is of an unknown author."""
        project, screen = self.project, self._screen
        if not project.workspace.rules.is_recording():
            raise RefusedError(
                "Takeback is off in this project, so nothing would be recorded",
                hint="`takeback on` turns it on",
            )
        if next(project.checkpoints(), None) is None:
            project.checkpoint(progress=screen.progress)
        self._session = project.recorder().start_watch()
        self._cache.settle()
        known = project.log(1, session=self._session, all=True).turns
        self._newest = known[0].id if known else ""
        if screen.json:
            screen.data({"watching": self._root, "session": self._session})
        else:
            screen.note(f"watching {safe_line(os.fsdecode(self._root))}; Ctrl-C ends it")

    def noted(self, ending: _Ending, seconds: float) -> "bool | None":
        """Wait until something changes, or for so long; None if nobody notes what changes."""
        watch = self.project.workspace.watch
        file = watch.ready() if watch is not None else -1
        if file < 0:
            ending.wait(seconds)
            return None
        found = ending.wait(seconds, file)
        if found and watch is not None:
            watch.noted()
        return found

    def stamps(self) -> "tuple[int, int]":
        try:
            return look.stamps(self._open().workspace)
        except (TakebackError, OSError):
            return -1, 0  # the look that follows tells what is wrong

    def look(self) -> bool:
        """Look at the tree, and show the turns that this or another look recorded."""
        try:
            project = self._open()
            if project.id != self._id or not os.path.isdir(self._root):
                raise self._lost()
            if project.workspace.rules.is_recording():
                recorder = project.recorder()
                self._session = recorder.start_watch()
                with recorder.together():
                    recorder.now()
                self._show(project)
                self._tell("")
            else:
                self._tell(_OFF)
            self._cache.settle()
        except DamagedStoreError:
            raise
        except (TakebackError, OSError) as problem:
            return self._failed(problem)
        self.project = project
        self._cache.rest()
        return True

    def _failed(self, problem: Exception) -> bool:
        if not os.path.isdir(self._root):
            self.is_gone = True
            raise self._lost() from None
        self._tell(f"nothing can be recorded now: {problem}")
        return False

    def _lost(self) -> TakebackError:
        return TakebackError(
            f"the folder `{self._root}` is gone; what was recorded until then is kept",
            hint=Action("restore-folder", id=self._id, path=self._root),
        )

    def _tell(self, trouble: str) -> None:
        """Say what keeps us from recording, and when that is over; each once."""
        if trouble != self._trouble and not self._screen.json:
            with contextlib.suppress(OSError):
                self._screen.note(f"takeback: {trouble or 'recording again'}")
        self._trouble = trouble

    def _show(self, project: "Project") -> None:
        new: list[RecordedTurn] = []
        for turn in project.log(100, session=self._session, all=True).turns:
            if turn.id == self._newest:
                break
            new.append(turn)
        for turn in reversed(new):
            self._newest = turn.id
            self._turns += 1
            self._files += turn.files
            with contextlib.suppress(OSError):  # nobody reads it any more
                self._show_turn(turn)

    def _show_turn(self, turn: "RecordedTurn") -> None:
        screen = self._screen
        if screen.json:
            screen.data(turn_text.as_json(turn, screen.masker))
            return
        screen.say(turn_text.headline(turn, screen.masker))
        for line in turn_text.change_lines(turn.changes, _MOST_SHOWN, paint=screen.counted):
            screen.say(line)

    def finish(self) -> int:
        """Record what changed last, end the session, and say what came of it."""
        if self.look():
            self.project.recorder().end_session(self._session)
        self._summary()
        return 1 if self._trouble and self._trouble != _OFF else 0

    def _summary(self) -> None:
        screen, turns = self._screen, count(self._turns, "turn")
        with contextlib.suppress(OSError):
            if screen.json:
                screen.data({"session": self._session, "turns": self._turns, "files": self._files})
                return
            seconds = int(time.time() - self._began)
            screen.note(f"watched for {seconds // 60}:{seconds % 60:02}, recorded {turns}")
            if self._turns:
                screen.note(
                    "`takeback undo` shows the newest turn and asks; `takeback log` lists all"
                )
