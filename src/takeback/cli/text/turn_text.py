"""Turns as lines of a list, newest first; a recorded turn in words and as JSON."""

import time

from takeback.cli import screen as layout
from takeback.cli.screen import Marks, columns, pad, safe_content, safe_line, timestamp
from takeback.cli.text import effect_text, state_text
from takeback.cli.text.restores import git_text, loss_text
from takeback.model import reasons
from takeback.model import words as terms
from takeback.model.text.json_text import path_fields
from takeback.model.text.masking import CLOSED
from takeback.model.text.safe_text import safe
from takeback.model.value import Value
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from takeback.cli.screen import Screen
    from takeback.model.history import (
        Change,
        Log,
        NamedCheckpoint,
        NextUndo,
        RecordedRestore,
        RecordedTurn,
        Relapse,
    )
    from takeback.model.reasons import Reason
    from takeback.model.results import OutsideFile
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

    Short = Mapping[str, str]

    Told = Callable[[Change], str]


_AGENT = 12
_LABEL = 24
"""With fewer columns left for what a turn is called, it gets a line of its own."""
_STYLES = {terms.FAILED: "red", terms.INTERRUPTED: "yellow", terms.RUNNING: "green"}


def ids(log: "Log", undo: "NextUndo | None") -> "list[str]":
    """Whatever is shown of a log by a short id."""
    named = [turn.id for turn in log.turns] + [restore.id for restore in log.restores]
    return [*named, *(name.checkpoint for name in log.names), *([undo.id] if undo else ())]


def show_turns(log: "Log", short: "Short", screen: "Screen", now: float) -> None:
    """Turns, and between them restores and names that somebody gave."""
    marks, room = layout.marks(screen), layout.width(screen)
    rows = [_Row(turn, short[turn.id], screen, now) for turn in log.turns]
    both = [_restore(each, short, screen, now) for each in log.restores]
    both += [_name(each, short, screen, now) for each in log.names]
    beside = sorted(both, key=lambda each: -each.at)
    sizes = _Sizes(rows, beside, room)
    day, plan = time.localtime(now)[:3], ""
    for row in rows:
        while beside and beside[0].at >= row.turn.started:
            screen.say(beside.pop(0).line(sizes, screen))
        if row.day != day:
            day = row.day
            screen.say(screen.style(f"{marks.line} {_day(row.turn.started, now)}", "dim"))
        if row.turn.plan is not None and row.turn.plan.id != plan:
            line = state_text.plan_headline(row.turn.plan, screen)
            screen.say(layout.cut(line, room, marks.cut))
        plan = row.turn.plan.id if row.turn.plan is not None else ""
        for line in row.lines(sizes, screen):
            screen.say(line)
    for each in beside:
        screen.say(each.line(sizes, screen))


class _Beside(Value):
    """What stands between turns, on one line."""

    at: float
    mark: str
    short: str
    ref: str
    when: str
    text: str
    is_dim: bool

    def line(self, sizes: "_Sizes", screen: "Screen") -> str:
        head = f"{layout.pad(self.short, sizes.short)}  {sizes.padded(self.ref)}"
        line = f"{self.mark}  {head}{self.when:>{sizes.when}}  {self.text}"
        line = layout.cut(line, layout.width(screen), layout.marks(screen).cut)
        if self.is_dim:
            return screen.style(line, "dim")
        at = len(self.mark) + 2
        return line[:at] + screen.id(self.short) + line[at + len(self.short) :]


def _name(named: "NamedCheckpoint", short: "Short", screen: "Screen", now: float) -> _Beside:
    text = safe_line(screen.words(named.name)) + ("" if named.kept else " (files no longer kept)")
    mark, id = layout.marks(screen).name, short[named.checkpoint]
    return _Beside(named.at, mark, id, "", _moment(named.at, now), text, not named.kept)


def _restore(restore: "RecordedRestore", short: "Short", screen: "Screen", now: float) -> _Beside:
    """An undo, a redo or a rollback."""
    of = "of" if restore.turn else "of the rollback to"
    called = screen.title(restore.title)
    said = f"{restore.verb} {'to' if restore.verb == terms.ROLLBACK else of} {called}"
    said += " (some paths)" if restore.partial else ""
    said += " (undone)" if restore.undone and restore.verb != terms.REDO else ""
    mark, id, ref = layout.marks(screen).back, short[restore.id], _ref(restore.back)
    when = _moment(restore.at, now)
    return _Beside(restore.at, mark, id, ref, when, said, bool(restore.undone))


def _moment(then: float, now: float) -> str:
    """How long ago it was today, else the time of day."""
    is_today = time.localtime(then)[:3] == time.localtime(now)[:3]
    return age(then, now) if is_today else time.strftime("%H:%M", time.localtime(then))


def _ref(back: "int | None") -> str:
    """What means an entry of the current line, wherever a REF is asked for."""
    return "" if back is None else f"@~{back}"


def clock(then: float, now: float) -> str:
    """A time of day; of another day, the date with it."""
    is_today = time.localtime(then)[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", time.localtime(then))


def age(then: float, now: float) -> str:
    seconds = max(0, int(now - then))
    for length, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {name}"
    return f"{seconds} s"


def amount(turn: "RecordedTurn", marks: "Marks") -> "tuple[str, str]":
    """How many lines a turn changed, and how many files."""
    lost = sum(loss.is_grave for loss in loss_text.beside_git(turn.losses))
    if not turn.files and turn.raw_rescued and not lost:
        return "", f"{len(turn.raw_rescued):,} rescued"
    if not turn.files and turn.git and not lost:
        return "", "only git"
    if not turn.files and turn.shared:
        return "", "all shared"
    if not turn.files:
        none = f"{lost:,} lost" if lost else "no changes"
        return "", f"{none} yet" if turn.status == terms.RUNNING and not lost else none
    files = count(turn.files, "file")
    if turn.uncounted == turn.files:
        return "", files
    return f"+{turn.added:,} {marks.minus}{turn.removed:,}", files


def can_return(turn: "RecordedTurn") -> bool:
    """Whether an undo of a turn brings anything back: not what took the place of something lost."""
    lost = [loss.raw_path + b"/" for loss in turn.losses]
    paths = [change.raw_path + b"/" for change in turn.changes]
    return any(not any(path.startswith(each) for each in lost) for path in paths)


def relapse(found: "Sequence[Relapse]", masker: "Masker" = CLOSED) -> str:
    """What a turn brought back, in short."""
    newest = found[-1]
    prompt = f' of "{safe_line(masker.words(newest.prompt))}"' if newest.prompt else ""
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return f"brought back {newest.lines:,} of {newest.taken:,} undone lines{prompt}{more}"


def remarks(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> "list[str]":
    said = [f"because: {safe_line(masker.words(turn.because))}"] if turn.because else []
    if turn.relapses:
        said.append(relapse(turn.relapses, masker))
    if git := git_staying(turn):
        said.append(f"git: {safe_text(masker.words(git_text.in_short(git)))}")
    if not turn.kept and turn.files:
        said.append("files no longer kept")
    if turn.unreported:
        said.append("changed without a tool event; perhaps yours")
    if turn.went_back is not None:
        before = f" to before {turn.went_back[:6]}" if turn.went_back else ""
        said.append(f"after a rewind{before}")
    if turn.shared:
        said.append(f"{len(turn.shared):,} {state_text.shared_with(turn, masker)}")
    if turn.left_out:
        said.append(f"{len(turn.left_out):,} not covered")
    losses = loss_text.beside_git(turn.losses)
    if losses:
        first = min(losses, key=lambda loss: not loss.is_grave)
        more = f" and {len(losses) - 1:,} more" if len(losses) > 1 else ""
        what = loss_text.in_short(first)
        said.append(f"not covered: {loss_text.path(first)} {what}{more}")
    said += _rescued(turn)
    changed = sum(1 for file in turn.outside if file.verb)
    if changed:
        said.append(f"{changed:,} outside")
    return said


def git_staying(turn: "RecordedTurn") -> "list[Reason]":
    """What happened to git and stays: not a `.git` that was rescued whole."""
    is_saved = b".git" in turn.raw_rescued
    return [each for each in turn.git if not (is_saved and each.code == reasons.GIT_GONE)]


def _rescued(turn: "RecordedTurn") -> "list[str]":
    if not turn.raw_rescued:
        return []
    more = len(turn.raw_rescued) - 1
    return [f"rescued: {safe(turn.raw_rescued[0])}{f' and {more:,} more' if more else ''}"]


def _day(then: float, now: float) -> str:
    day = time.localtime(then)
    if time.localtime(now - 86400)[:3] == day[:3]:
        return "yesterday"
    return time.strftime("%Y-%m-%d", day)


class _Row:
    """One turn, and what its line is made of."""

    def __init__(self, turn: "RecordedTurn", short: str, screen: "Screen", now: float) -> None:
        self.turn = turn
        self.short = short
        self.ref = _ref(turn.back)
        self.marks = marks = layout.marks(screen)
        self.title = state_text.step_title(turn, screen)
        self.day = time.localtime(turn.started)[:3]
        self.when = _moment(turn.started, now)
        self.agent = layout.cut(safe_content(turn.agent.encode()), _AGENT, marks.cut)
        self.lines_changed, self.files = amount(turn, marks)
        self.numbers = f"{self.lines_changed}  {self.files}".strip()
        status = state_text.state(turn)
        self.status = f" ({status})" if status else ""

    def lines(self, sizes: "_Sizes", screen: "Screen") -> "Iterator[str]":
        """The turn on one line, or two where there is not much room."""
        turn = self.turn
        is_grave = any(loss.is_grave for loss in turn.losses)
        is_idle = not (turn.files or turn.git or turn.raw_rescued or is_grave)
        is_dim = bool(turn.undone) or (is_idle and turn.status != terms.RUNNING)
        style = _STYLES.get(turn.status, "dim" if is_dim else "")
        mark = self.marks.of(turn.status)
        head = screen.style(mark, style) if style else mark
        head += f"  {screen.id(self.short, sizes.short)}"
        agent = layout.cut(self.agent, sizes.agent, self.marks.cut)
        head += f"  {sizes.padded(self.ref)}{self.when:>{sizes.when}}"
        head += f"  {layout.pad(agent, sizes.agent)}"
        label = layout.cut(self.title, sizes.label - len(self.status), self.marks.cut)
        said = label + self.status
        if sizes.is_narrow:
            yield f"{head}  {self.numbers if is_dim else screen.counted(self.numbers)}"
            yield screen.style(f"   {said}", "dim") if is_dim else f"   {said}"
        else:
            numbers = f"{self.lines_changed:>{sizes.lines}}  {self.files}"
            numbers = numbers if is_dim else screen.counted(numbers)
            rest = f"{layout.pad(said, sizes.label)}  {numbers}"
            yield f"{head}  {screen.style(rest, 'dim') if is_dim else rest}".rstrip()
        extra = ", ".join(remarks(turn, screen.masker))
        if extra:
            indent = 3 if sizes.is_narrow else sizes.left
            room = layout.width(screen)
            line = layout.cut(" " * indent + extra, room, self.marks.cut)
            yield screen.style(line, "yellow")


class _Sizes:
    """How many columns each part of a line gets."""

    __slots__ = ("agent", "is_narrow", "label", "left", "lines", "ref", "short", "when")

    def __init__(self, rows: "list[_Row]", beside: "list[_Beside]", room: int) -> None:
        each: list[_Row | _Beside] = [*rows, *beside]
        self.short = max((len(row.short) for row in each), default=0)
        self.ref = max((len(row.ref) for row in each), default=0)
        self.when = max((len(row.when) for row in each), default=0)
        self.agent = max((layout.columns(row.agent) for row in rows), default=0)
        self.lines = max((len(row.lines_changed) for row in rows), default=0)
        files = max((len(row.files) for row in rows), default=0)
        self.left = 3 + self.short + 2 + len(self.padded("")) + self.when + 2 + self.agent + 2
        right = 2 + self.lines + 2 + files
        self.is_narrow = room - self.left - right < _LABEL
        if self.is_narrow:
            longest = max((len(row.numbers) for row in rows), default=0)
            self.agent = max(0, min(self.agent, room - (self.left - self.agent) - longest))
        label = room - self.left - right
        wanted = (layout.columns(row.title) + len(row.status) for row in rows)
        self.label = room - 3 if self.is_narrow else min(label, max(wanted, default=0))

    def padded(self, ref: str) -> str:
        """The column of `@~N`; nothing where no row has one."""
        return f"{ref:<{self.ref}}  " if self.ref else ""


_WIDEST_PATH = 60


def headline(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> str:
    if not turn.files:
        amount = "only git changed" if turn.git else "nothing changed"
        amount = "only shared changes" if turn.shared else amount
        amount = f"{len(turn.raw_rescued):,} rescued" if turn.raw_rescued else amount
        amount = "nothing covered changed" if loss_text.beside_git(turn.losses) else amount
    else:
        amount = (
            f"{count(turn.files, 'file')}  {_lines(turn.added, turn.removed, Marks(plain=False))}"
        )
        if turn.uncounted:
            amount += f"  {turn.uncounted:,} without lines"
    if turn.ended is not None:
        amount += f"  ({max(turn.ended - turn.started, 0):.1f} s)"
    state = state_text.state(turn)
    amount = f"{state}  {amount}" if state else amount
    return f'turn {turn.id[:6]}  "{layout.title(masker.words(turn.label))}"  {amount}'


def change_lines(
    changes: "Iterable[Change]",
    most: int,
    told: "Told | None" = None,
    marks: "Marks | None" = None,
    paint: "Callable[[str], str]" = str,
) -> "Iterator[str]":
    """A line for each change, and one that counts those not shown.

    `told` adds a remark; `paint` colours lines added and removed.
    """
    listed = list(changes)
    marks = marks or Marks(plain=False)
    rows = [(change, named(change, marks)) for change in listed[:most]]
    width = min(max((columns(name) for _, name in rows), default=0), _WIDEST_PATH)
    counts = [_lines(change.added, change.removed, marks) for change, _ in rows]
    wide = max(map(len, counts), default=0)
    for (change, name), counted in zip(rows, counts, strict=True):
        remark = told(change) if told is not None else ""
        parts = [change.verb.ljust(6), pad(name, width)]
        parts += [paint(counted.ljust(wide))] if wide else []
        yield f"  {'  '.join([*parts, remark])}".rstrip()
    if len(listed) > most:
        yield f"  and {len(listed) - most:,} more"


def as_json(turn: "RecordedTurn", masker: "Masker" = CLOSED) -> "dict[str, Json]":
    return {
        "id": turn.id,
        "session": turn.session,
        "agent": turn.agent,
        "label": masker.words(turn.label),
        "status": turn.status,
        "ref": _ref(turn.back) or None,
        "undone": turn.undone or None,
        "undone_in_part": turn.undone_in_part or None,
        "because": masker.words(turn.because) or None,
        "exit_code": turn.exit_code,
        "kept": turn.kept,
        "started": when(turn.started),
        "ended": when(turn.ended),
        "before": turn.before or None,
        "after": turn.after or None,
        "files": turn.files,
        "added": turn.added,
        "removed": turn.removed,
        "uncounted": turn.uncounted,
        "changes": [change_json(change) for change in turn.changes],
        "shared": [change_json(change) for change in turn.shared],
        "shared_with": [
            {"id": each.id, "label": masker.words(each.label), "agent": each.agent}
            for each in turn.shared_with
        ],
        "shared_undone": turn.is_shared_undone,
        "left_out": [{**path_fields(x.raw_path), "reason": x.reason} for x in turn.left_out],
        "losses": [loss_text.as_json(loss) for loss in turn.losses],
        "rescued": [path_fields(path) for path in turn.raw_rescued],
        "outside": [outside_json(file) for file in turn.outside],
        "git": [git_json(each, masker) for each in turn.git],
        "relapses": [
            {
                "restore": each.restore,
                "lines": each.lines,
                "taken": each.taken,
                "paths": [path_fields(path) for path in each.raw_paths],
            }
            for each in turn.relapses
        ],
        "authors": _authors((*turn.changes, *turn.shared)),
        "check": None,
        "effects": [effect_text.as_json(each, masker) for each in turn.effects],
        "plan": state_text.plan_of_turn_json(turn, masker),
    }


def git_json(found: "Reason", masker: "Masker") -> "Json":
    fields = {**found.as_json(), "text": git_text.happened(found)}
    return {
        name: masker.words(value) if isinstance(value, str) else value
        for name, value in fields.items()
    }


def git_lines(turn: "RecordedTurn", masker: "Masker") -> "Iterator[str]":
    """A line for each thing that happened to git."""
    for found in git_staying(turn):
        yield f"  git     {safe_text(masker.words(git_text.happened(found)))}"


def restore_json(restore: "RecordedRestore", masker: "Masker" = CLOSED) -> "dict[str, Json]":
    return {
        "id": restore.id,
        "verb": restore.verb,
        "ref": _ref(restore.back) or None,
        "title": masker.words(restore.title),
        "at": when(restore.at),
        "turn": restore.turn or None,
        "before": restore.before,
        "after": restore.after,
        "partial": restore.partial,
        "because": masker.words(restore.because) or None,
        "undone": restore.undone or None,
    }


def _authors(changes: "Iterable[Change]") -> "list[Json]":
    """Whose the changes are and how that is known, each with the number of paths."""
    paths: dict[tuple[str, str], int] = {}
    for change in changes:
        key = (change.author.who, change.author.how)
        paths[key] = paths.get(key, 0) + 1
    return [{"who": who, "how": how or None, "paths": n} for (who, how), n in paths.items()]


def change_json(change: "Change") -> "dict[str, Json]":
    return {
        **path_fields(change.raw_path),
        "verb": change.verb,
        "added": change.added,
        "removed": change.removed,
        "how": change.author.how or None,
        "origin": path_fields(change.raw_origin) if change.raw_origin is not None else None,
    }


def outside_json(file: "OutsideFile") -> "dict[str, Json]":
    return {**path_fields(file.raw_path), "verb": file.verb or None, "reason": file.reason or None}


def when(seconds: "float | None") -> "str | None":
    """A time for JSON; null if there is none yet."""
    return None if seconds is None else timestamp(seconds)


def named(change: "Change", marks: "Marks") -> str:
    """The path of a change, and before it the one that a renamed file had."""
    name = safe(change.path or b".")
    return f"{safe(change.origin)} {marks.arrow} {name}" if change.origin is not None else name


def _lines(added: "int | None", removed: "int | None", marks: "Marks") -> str:
    return "" if added is None or removed is None else f"+{added:,} {marks.minus}{removed:,}"


_WHY = {word: terms.EXPLAINED[code] for code, word in terms.WORDS.items()}


def explained(word: str) -> str:
    return f"{word}: {_WHY[word]}" if word in _WHY else word


def safe_text(text: str) -> str:
    return safe_content(text.encode("utf-8", "surrogateescape")).replace("\t", "    ")
