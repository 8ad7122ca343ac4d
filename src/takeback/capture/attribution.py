"""Whose change is whose. Pure: windows and stamps in, authors out.

    last observation                     now
          ├──────── the interval ─────────┤
          │     ┌── a step's window ──┐   │      open at some moment of the interval
          │   ──┴──── p changed ──────┴── │      p's time lies in the window: the step's

1. The windows in question are those open at any moment since the last observation. Which they
   are follows from the order of events, never from a clock.
2. Where the stamps of a path tell when it was changed, a window that had closed by then or had
   not opened yet is out of the question.
3. A step that names the path goes first: edit tools own what they name, and nothing else.
4. Else a window that claims anything: a shell, a tool nobody told us about, a turn that reports
   no steps. None of them: *you*. Several sessions: *shared*.
   An agent whose hooks report no tool, in the turn and before, may have done what nobody claims:
   that is *unreported*, when its turn ends.
   Only `takeback watch` saw it: a turn of an *unknown* author.
5. Where nobody knows whether the step had begun by then, or somebody sat at its terminal and it
   names nothing, it is *perhaps* the step's.

Which windows are in question for what changed since the last look at the tree.
"""

from takeback.disk import machine
from takeback.model import words
from takeback.model.history import Author
from takeback.model.value import Value
from takeback.model.words import (
    BY_SHELL,
    BY_TURN,
    DELETE,
    EDIT,
    MKDIR,
    MODE,
    NAMED,
    OTHER,
    PERHAPS,
    RMDIR,
    SHARED,
    SHELL,
    STEP,
    UNKNOWN,
    UNREPORTED,
    YOU,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from takeback.capture.deltas import Delta
    from takeback.ledger.ledger import Ledger
    from takeback.ledger.steps import WindowRow
    from takeback.model.history import Author
    from takeback.worktree.watch import PartialScan

    Span = tuple[int | None, int | None]

    Closing = Mapping[str, int]


TURN = "turn"
"""The kind of the window that a turn without steps is."""
_CLAIMS_ANYTHING = (SHELL, OTHER, TURN)
_MAY_WRITE = (EDIT, *_CLAIMS_ANYTHING)
_NOBODY = Author(YOU)
_TICKS = 20_000_000
"""How far the stamps of a file system with fine ones lag behind the clock."""


class Window:
    """The time in which a step, or a turn that reports no steps, may change files.

    `names` are the paths that it names. `started` is 0 if it was open before the interval, `ended`
    None while it is open. It `waits` as long as nobody knows whether it has begun. In one that
    `is_interactive`, somebody sat at the terminal, and may have changed what it claims.
    """

    __slots__ = (
        "ended",
        "is_interactive",
        "kind",
        "names",
        "opened",
        "session",
        "started",
        "step",
        "turn",
        "waits",
    )

    def __init__(
        self,
        *,
        session: str,
        turn: str,
        step: str = "",
        kind: str = TURN,
        names: "frozenset[bytes]" = frozenset(),
        opened: int,
        started: int,
        ended: "int | None" = None,
        waits: bool = False,
        is_interactive: bool = False,
    ) -> None:
        self.session = session
        self.turn = turn
        self.step = step
        self.kind = kind
        self.names = names
        self.opened = opened
        self.started = started
        self.ended = ended
        self.waits = waits
        self.is_interactive = is_interactive

    def is_named(self, path: bytes, verb: str) -> bool:
        """Whether it names the path, or a folder that the path is in.

        Who names a file that is to be in a new folder has named the folder, too.
        """
        if not self.names:
            return False
        if path in self.names or b"" in self.names:
            return True
        if verb == MKDIR and any(name.startswith(path + b"/") for name in self.names):
            return True
        end = path.rfind(b"/")
        while end > 0:
            if path[:end] in self.names:
                return True
            end = path.rfind(b"/", 0, end)
        return False


class Interval(Value):
    """The time since the last observation, and how far stamps in it can be believed.

    `slack` is how coarse the stamps are; None if they cannot be believed at all.
    """

    since: int
    now: int
    slack: "int | None"

    def is_after(self, window: Window) -> bool:
        """Whether a window was over before: at an interrupt mark, or given up long ago.

        The order of events does not tell that. Of a clock that was set back nothing follows.
        """
        return window.ended is not None and window.ended < self.since <= self.now

    def span(self, delta: "Delta") -> "Span":
        """Between which moments something was changed, each None if the stamps do not tell."""
        if delta.time is None:
            return None, self._believed(delta.latest)
        mtime, ctime = delta.time
        if delta.verb == MODE and mtime == ctime:
            # A folder, stamped by what was put into it since.
            return None, self._believed(ctime)
        moment = self._believed(ctime)
        # The time of the last write counts, unless it is not about this change: anybody can
        # set it to anything, and what is moved keeps it. Only the kernel sets the other.
        is_older = mtime < self.since <= ctime
        if delta.verb != MODE and not _is_moved(delta) and mtime <= ctime and not is_older:
            written = self._believed(mtime)
            moment = written if written is not None else moment
        return moment, moment

    def _believed(self, stamp: "int | None") -> "int | None":
        """A stamp, if it can tell when something was changed since the last observation.

        One that is older was carried here, as with a folder that was moved over another.
        """
        if stamp is None or self.slack is None:
            return None
        return stamp if self.since <= stamp <= self.now + self.slack else None


def attribute(
    deltas: "Sequence[Delta]", windows: "Sequence[Window]", interval: Interval
) -> "list[Author]":
    """The author of each delta, in their order."""
    windows = [window for window in windows if not interval.is_after(window)]
    if not windows:
        return [_NOBODY] * len(deltas)
    spans = _spans(deltas, interval)
    slack = interval.slack or 0
    return [_author(delta, windows, spans[delta.path], slack) for delta in deltas]


def _spans(deltas: "Sequence[Delta]", interval: Interval) -> "dict[bytes, Span]":
    """For each path, sorted as the deltas are, between which moments it was changed."""
    spans = {delta.path: interval.span(delta) for delta in deltas}
    _let_folders_be_first(deltas, spans, interval.since)
    _let_contents_be_later(deltas, spans, interval.since)
    for delta in deltas:
        if delta.origin is not None and delta.origin in spans:
            # What was moved went from there when it came here.
            spans[delta.origin] = spans[delta.path]
    _let_folders_go_last(deltas, spans)
    return spans


def _let_folders_be_first(
    deltas: "Sequence[Delta]", spans: "dict[bytes, Span]", since: int
) -> None:
    """A folder is stamped by what is put into it: it was made before the first of that."""
    earliest: dict[bytes, int] = {}
    for delta in reversed(deltas):
        moment = spans[delta.path][0]
        if delta.verb == MKDIR and not _is_moved(delta):
            known = [m for m in (moment, earliest.get(delta.path)) if m is not None]
            moment = min(known, default=None)
            spans[delta.path] = (moment, moment)
        # What is older than the last look was not put here then, but moved here with its folder.
        if moment is not None and moment >= since:
            folder = _above(delta.path)
            earliest[folder] = min(moment, earliest.get(folder, moment))


def _let_contents_be_later(
    deltas: "Sequence[Delta]", spans: "dict[bytes, Span]", since: int
) -> None:
    """What was moved here with its folder keeps its stamps: it came when the folder did."""
    new = {delta.path for delta in deltas if delta.verb == MKDIR}
    for delta in deltas:
        folder = _above(delta.path)
        if folder in new and delta.time is not None:
            moment = spans[delta.path][0]
            if moment is None or moment < since or delta.origin is not None:
                moment = _latest(moment, spans[folder][0])
                spans[delta.path] = (moment, moment)


def _let_folders_go_last(deltas: "Sequence[Delta]", spans: "dict[bytes, Span]") -> None:
    """A folder that is gone went after what was in it."""
    gone = {delta.path for delta in deltas if delta.verb == RMDIR}
    for delta in reversed(deltas):
        folder = _above(delta.path)
        if folder in gone:
            first, last = spans[folder]
            spans[folder] = (_latest(first, spans[delta.path][0]), last)


def _is_moved(delta: "Delta") -> bool:
    """Whether it looks as if it had been moved here: a file, or a folder that was not just made.

    A new folder is stamped by what is put into it; only when it is moved (or its permissions are
    changed) is its entry younger than its contents.
    """
    if delta.verb != MKDIR or delta.time is None:
        return delta.origin is not None
    return delta.time[1] - delta.time[0] > _TICKS


def _above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _latest(one: "int | None", other: "int | None") -> "int | None":
    return max((moment for moment in (one, other) if moment is not None), default=None)


def _possible(windows: "Sequence[Window]", span: "Span", slack: int) -> "list[Window]":
    """The windows that were open at some moment between first and last, where these are known."""
    first, last = span
    # Stamps lag behind the clock and never run ahead of it, so the end of a window needs slack
    # only where they are coarse.
    late = slack if slack > _TICKS else 0
    return [
        window
        for window in windows
        if (last is None or window.waits or window.started - slack <= last)
        and (first is None or window.ended is None or first <= window.ended + late)
    ]


def _author(delta: "Delta", windows: "Sequence[Window]", span: "Span", slack: int) -> Author:
    path, verb = delta.path, delta.verb
    windows = _possible(windows, span, slack)
    # Of what is gone there is no stamp, and taking it back brings back a file: nothing is lost.
    is_dated = span[0] is not None or verb in (DELETE, RMDIR)
    naming = [w for w in windows if w.kind in _MAY_WRITE and w.is_named(path, verb)]
    if naming:
        return _of_sessions(naming, NAMED, is_dated=is_dated)
    claiming = [w for w in windows if w.kind in _CLAIMS_ANYTHING]
    if not claiming:
        for window in windows:
            if window.kind == UNKNOWN:
                return Author(STEP, session=window.session, turn=window.turn, how=UNKNOWN)
        claiming = [w for w in windows if w.kind == UNREPORTED]
    return _of_sessions(claiming, BY_SHELL, is_dated=is_dated)


def _of_sessions(windows: "list[Window]", how: str, *, is_dated: bool) -> Author:
    sessions = _distinct(w.session for w in windows)
    if not sessions:
        return _NOBODY
    if len(sessions) > 1:
        return Author(SHARED, sessions=sessions)
    sure = [w for w in windows if not w.waits and (is_dated or not w.started)]
    latest = max(sure or windows, key=lambda window: window.opened)
    if latest.kind == UNREPORTED:
        return Author(STEP, session=latest.session, turn=latest.turn, how=UNREPORTED)
    is_yours = latest.is_interactive and how == BY_SHELL
    how = PERHAPS if not sure or is_yours else BY_TURN if latest.kind == TURN else how
    return Author(STEP, session=latest.session, turn=latest.turn, step=latest.step, how=how)


def _distinct(names: "Iterable[str]") -> "tuple[str, ...]":
    return tuple(sorted(set(names)))


class Asked(Value):
    """What the authors of a look are asked with.

    `closing` are the steps, turns and sessions that end with this look, and when. `now` is read
    after it: a file that changed meanwhile is younger than its beginning. `slack` is how coarse
    the stamps of files are, and `is_remote` tells whether another machine makes them. `late` are
    windows of turns that begin only if this look finds something of theirs.
    """

    closing: "Closing"
    now: int
    slack: int
    is_remote: "Callable[[], bool]"
    late: "tuple[Window, ...]" = ()


def authors(
    ledger: "Ledger", deltas: "list[Delta]", asked: Asked, partial_scan: "PartialScan | None" = None
) -> "list[Author]":
    """The authors of what changed since the last look.

    What glances overlooked happened at any time since everything was looked at.
    """
    found = _authors_since(ledger.checkpoints.last_look(), ledger, deltas, asked)
    late = [
        delta
        for delta in deltas
        if partial_scan is not None and partial_scan.overlooked(delta.path)
    ]
    if partial_scan is None or not late:
        return found
    by = _authors_since(partial_scan.whole, ledger, late, asked)
    known = dict(zip((delta.path for delta in late), by, strict=True))
    return [known.get(delta.path, own) for delta, own in zip(deltas, found, strict=True)]


def _authors_since(
    since: "tuple[int, int]", ledger: "Ledger", deltas: "list[Delta]", asked: Asked
) -> "list[Author]":
    cursor, looked = since
    windows = [*in_question(ledger, cursor, asked.now, asked.closing), *asked.late]
    # The stamps of another machine cannot be compared with our clock.
    believed = None if not windows or asked.is_remote() else asked.slack
    return attribute(deltas, windows, Interval(looked, asked.now, believed))


def in_question(ledger: "Ledger", since: int, now: int, closing: "Closing") -> "list[Window]":
    """The windows that were open at any moment after the event `since`."""
    rows = ledger.steps.windows_since(since)
    # `takeback run -- AGENT` is a turn around an agent that may have hooks: what the agent tells
    # of itself is better than what can be told from outside. Once it has ended, what the command
    # still does is the outer turn's again.
    outer = ledger.turns.with_sessions_inside() if rows else frozenset()
    # What was refused never ran. Until a turn ends, its first tool may still be reported.
    rows = [row for row in rows if row.turn not in outer and row.status != words.REFUSED]
    rows = [
        row
        for row in rows
        if row.kind != UNREPORTED or not closing.keys().isdisjoint((row.turn, row.session))
    ]
    return [_window(row, since, now, closing) for row in rows]


def _window(row: "WindowRow", since: int, now: int, closing: "Closing") -> Window:
    # Nobody told the end of what was killed, so what is found now may have been done after it.
    ended = row.ended
    is_killed = ended is None and bool(row.holder) and machine.is_alive(row.holder) is False
    if ended is None:
        # What runs in the background outlives its turn.
        enders = (row.step, row.session) if row.background else (row.step, row.turn, row.session)
        ends = (closing.get(name) for name in enders)
        ended = next((end for end in ends if end is not None), None)
    if ended is None:
        ended = _given_up(row.seen, row.holder, now)
    return Window(
        session=row.session,
        turn=row.turn,
        step=row.step,
        kind=row.kind,
        names=frozenset(row.names),
        opened=row.opened,
        # Order says that it was open all the time; its clock may have been another one.
        started=row.started if row.opened > since else 0,
        ended=ended,
        waits=row.status == words.WAITING or is_killed,
        is_interactive=bool(row.interactive),
    )


def _given_up(seen: int, holder: str, now: int) -> "int | None":
    """When a window closed that nobody closed; None as long as it may be open."""
    limit = seen + words.LONGEST_SILENCE
    return None if now <= limit or machine.is_alive(holder) else limit
