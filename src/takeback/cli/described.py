"""A turn or a checkpoint in full, as text."""

import time

from takeback.cli import layout, timeline, turns
from takeback.cli.render import ago, safe_content
from takeback.model import reasons
from takeback.model.counting import count
from takeback.model.safetext import safe
from takeback.model.terms import BY_SHELL, BY_TURN, OMIT, PERHAPS, SHARED, STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.cli.render import Screen
    from takeback.model.history import (
        Author,
        Change,
        GitState,
        RecordedCheckpoint,
        RecordedRestore,
        RecordedStep,
        RecordedTurn,
    )
    from takeback.model.values import LeftOut, OutsideFile

_MOST = 200
_MOST_OF_STEP = 12
_DEEPEST = 6
"""Steps further down are not indented any more."""
_HOW = {BY_SHELL: "by shell", BY_TURN: "", PERHAPS: "perhaps yours"}
_WHY = {word: reasons.EXPLAINED[code] for code, word in reasons.WORDS.items()}


def turn(found: "RecordedTurn", screen: "Screen", now: float) -> None:
    """A turn: what was asked for, when and by whom, its steps, what it changed."""
    page = _Page(screen)
    screen.say(f"Turn {screen.style(found.id, 'bold')}")
    # Masked as a whole: a private key has many lines.
    for line in screen.masker.words(found.label).splitlines() or [""]:
        screen.say(f"  {_safe(line)}".rstrip())
    page.facts(
        (
            "Session",
            f"{found.session}  {page.text(found.agent)}  {page.text(found.account)}".rstrip(),
        ),
        ("When", _when(found, now)),
        ("Status", f"{page.marks.of(found.status)} {found.status}"),
        ("Asked", _went_back(found.went_back)),
        ("Before", found.before),
        ("After", found.after or "still running"),
        ("Git", _git(found.git_before, found.git_after, page)),
        ("Files", "" if found.kept else "no longer kept"),
    )
    _steps(found.steps, page)
    lines, files = timeline.amount(found, page.marks)
    page.changes(f"Changes  {files}  {lines}".rstrip(), found.changes, _how)
    page.changes("Shared: of this session or another", found.shared, _shared_with)
    page.outside(found.outside)
    page.left_out("Not covered: appeared here and cannot be taken back", found.left_out)
    if not found.kept:
        screen.note("its files are no longer kept; `takeback log` shows all turns")
    elif (found.changes or any(file.verb for file in found.outside)) and found.after:
        screen.note(f"`takeback diff {found.id[:8]}- {found.id[:8]}` shows the lines")
        screen.note(f"`takeback show {found.id[:8]}- PATH` prints a file as it was before")
        back, it = ("redo", "puts it back") if found.undone else ("undo", "takes it back")
        screen.note(f"`takeback {back} {found.id[:8]}` {it}")
    else:
        screen.note("`takeback log` shows all turns")


def checkpoint(found: "RecordedCheckpoint", screen: "Screen", now: float) -> None:
    """A checkpoint: when it was made and for what, and who changed what since the one before."""
    page, made = _Page(screen), found.checkpoint
    screen.say(f"Checkpoint {screen.style(made.id, 'bold')}")
    belongs = (("session", made.session), ("turn", made.turn), ("step", made.step))
    page.facts(
        ("Label", page.text(made.label)),
        ("When", f"{_clock(made.created)}, {ago(made.created, now)}"),
        ("Entries", f"{made.entries:,}"),
        ("Of", "  ".join(f"{kind} {id}" for kind, id in belongs if id)),
        ("After", _restored(found.restore, page)),
        ("Because", page.text(found.restore.because) if found.restore else ""),
        ("Files", "" if found.kept else "no longer kept"),
    )
    changed = [change for change in found.changes if change.verb != OMIT]
    page.changes(f"Changes  {count(len(changed), 'path')}", changed, _by)
    page.left_out("Not covered", made.left_out)
    if found.kept:
        screen.note(f"`takeback show {made.id[:8]} PATH` prints a file as it was then")
    if made.turn:
        screen.note(f"`takeback show {made.turn[:8]}` shows the turn")


def _went_back(to: "str | None") -> str:
    """How somebody went back inside the agent to ask for a turn."""
    if to is None:
        return ""
    return f"after going back, to before turn {to[:8]}" if to else "after going back"


def _restored(restore: "RecordedRestore | None", page: "_Page") -> str:
    """What made a checkpoint that a restore made."""
    if restore is None:
        return ""
    some = " of some paths" if restore.partial else ""
    return f"{restore.verb} {restore.id[:8]}{some}: {page.text(restore.title)}"


class _Page:
    """The parts that pages have in common."""

    def __init__(self, screen: "Screen") -> None:
        self.screen = screen
        self.marks = layout.marks(screen)
        self.room = layout.width(screen)

    def text(self, text: str) -> str:
        """Words as they may be shown."""
        return _safe(self.screen.masker.words(text))

    def say(self, line: str) -> None:
        """A line that fits."""
        self.screen.say(layout.cut(line, self.room, self.marks.cut).rstrip())

    def facts(self, *rows: "tuple[str, str]") -> None:
        """Names and values; what has no value is not said."""
        for name, value in rows:
            if value:
                self.screen.say(f"{name:<9}{value}")

    def head(self, text: str) -> None:
        """The heading of a part."""
        self.screen.say(self.screen.style(text, "bold"))

    def changes(self, head: str, changes: "Sequence[Change]", told: "turns.Told") -> None:
        """What changed, a line for each path."""
        if changes:
            self.head(head)
            for line in turns.change_lines(changes, _MOST, told, self.marks):
                self.screen.say(line)

    def outside(self, files: "Sequence[OutsideFile]") -> None:
        """Files outside the project: what was done to them, or why they are not covered."""
        if files:
            self.head("Outside the project")
            shown = files[:_MOST]
            rows = [(f"{x.verb or '?':<6}  {safe(x.path)}", _uncovered(x.reason)) for x in shown]
            self.screen.table(rows)
            if len(files) > _MOST:
                self.screen.say(f"  and {len(files) - _MOST:,} more")

    def left_out(self, head: str, paths: "Sequence[LeftOut]") -> None:
        """What is listed without content, and why."""
        if not paths:
            return
        self.head(head)
        rows = [(safe(x.path or b"."), _reason(x.reason)) for x in paths[:_MOST]]
        self.screen.table(rows)
        if len(paths) > _MOST:
            self.screen.say(f"  and {len(paths) - _MOST:,} more")


def _steps(steps: "Iterable[RecordedStep]", page: _Page) -> None:
    depths: dict[str, int] = {}
    for step in steps:
        if not depths:
            page.head("Steps")
        depth = depths[step.id] = depths[step.parent] + 1 if step.parent in depths else 1
        indent = "  " * min(depth, _DEEPEST)
        what = f"{page.marks.of(step.status)} {page.text(step.tool)}"
        took = "" if step.ended is None else f"  {_took(step.started, step.ended)}"
        kind = "" if step.kind == "other" else f" ({step.kind})"
        notes = "".join(f"  {note}" for note in _notes(step))
        room = page.room - layout.columns(indent + what + kind + took + notes) - 2
        summary = (
            f"  {layout.cut(page.text(step.summary), room, page.marks.cut)}" if room > 8 else ""
        )
        page.screen.say(f"{indent}{what}{kind}{summary}{took}{notes}".rstrip())
        for change in step.changes[:_MOST_OF_STEP]:
            page.say(f"{indent}    {change.verb:<6} {turns.named(change, page.marks)}")
        if len(step.changes) > _MOST_OF_STEP:
            page.say(f"{indent}    and {len(step.changes) - _MOST_OF_STEP:,} more")


def _notes(step: "RecordedStep") -> "list[str]":
    notes = ["in the background"] if step.background else []
    return notes if step.status == "done" else [*notes, step.status]


def _how(change: "Change") -> str:
    return _HOW.get(change.author.how, change.author.how)


def _shared_with(change: "Change") -> str:
    return " ".join(id[:8] for id in change.author.sessions)


def _by(change: "Change") -> str:
    return author(change.author)


def author(who: "Author") -> str:
    """Who changed something, in words."""
    if who.who == STEP:
        by = f"turn {who.turn[:8]}"
        how = _HOW.get(who.how, who.how)
        return f"{by}, {how}" if how else by
    if who.who == SHARED:
        return f"shared by {' '.join(id[:8] for id in who.sessions)}"
    return who.who


def _when(found: "RecordedTurn", now: float) -> str:
    begun = f"{_clock(found.started)}, {ago(found.started, now)}"
    if found.ended is None:
        return begun
    return f"{begun}, took {_took(found.started, found.ended)}"


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _took(started: float, ended: float) -> str:
    seconds = max(ended - started, 0)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _git(before: "GitState | None", after: "GitState | None", page: "_Page") -> str:
    """Branch and commit around a turn; two of each where they changed."""
    states = [state for state in (before, after) if state is not None]
    if not states:
        return ""
    branches = list(dict.fromkeys(state.branch or "no branch" for state in states))
    heads = list(dict.fromkeys((state.head or "no commit")[:10] for state in states))
    on = f" {page.marks.arrow} ".join(page.text(branch) for branch in branches)
    at = f" {page.marks.arrow} ".join(heads)
    new = "  (new commits)" if len(heads) > 1 and len(branches) == 1 else ""
    return f"{on}  {at}{new}"


def _reason(word: str) -> str:
    return f"{word}: {_WHY[word]}" if word in _WHY else word


def _uncovered(reason: str) -> str:
    return f"not covered: {reason}" if reason else ""


def _safe(text: str) -> str:
    return safe_content(text.encode("utf-8", "surrogateescape")).replace("\t", "    ")
