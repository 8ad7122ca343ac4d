"""What `show` prints of one turn, or of one checkpoint."""

import time

from takeback.cli import screen as layout
from takeback.cli.screen import ago
from takeback.cli.text import effect_text, state_text
from takeback.cli.text.restores import loss_text, move_text
from takeback.cli.text.turn_text import (
    amount,
    can_return,
    change_lines,
    explained,
    git_lines,
    git_staying,
    named,
    relapse,
    safe_text,
)
from takeback.model import words as terms
from takeback.model.history import RecordedTurn
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from takeback.cli.screen import Screen
    from takeback.model.history import (
        Change,
        GitState,
        RecordedCheckpoint,
        RecordedRestore,
        RecordedStep,
    )
    from takeback.model.results import LeftOut, OutsideFile

    Short = Mapping[str, str]

    Told = Callable[[Change], str]


_MOST = 200
_LINES_OF_OUTPUT = 3
_MOST_OF_STEP = 12
_DEEPEST = 6
"""Steps further down are not indented any more."""
_MOST_NAMED = 3
_KNOWN = {
    terms.NAMED: "by edit tools",
    terms.BY_SHELL: "by shell",
    terms.BY_TURN: "during the turn",
    terms.PERHAPS: "perhaps yours",
    terms.UNREPORTED: "without a tool event; perhaps yours",
    terms.UNKNOWN: "unknown author",
}
_HOW = {**_KNOWN, terms.NAMED: "named", terms.BY_TURN: ""}


def turn(found: "RecordedTurn", screen: "Screen", now: float) -> None:
    """A turn: what was asked for, when and by whom, its steps, what it changed."""
    page = _Page(screen)
    screen.say(f"Turn {screen.id(found.id)}")
    # Masked as a whole: a private key has many lines.
    for line in screen.masker.words(found.label).splitlines() or [""]:
        screen.say(f"  {safe_text(line)}".rstrip())
    page.facts(
        (
            "Session",
            f"{found.session}  {page.text(found.agent)}  {page.text(found.account)}".rstrip(),
        ),
        ("When", _when(found, now)),
        ("Status", f"{page.marks.of(found.status)} {state_text.state(found) or found.status}"),
        ("Undone", state_text.undone(found)),
        ("Because", page.text(found.because)),
        ("Relapse", _relapses(found, screen)),
        ("Plan", page.text(state_text.plan_of_turn(found))),
        ("Asked", _went_back(found.went_back)),
        ("Before", found.before),
        ("After", found.after or "still running"),
        ("Git", _git(found.git_before, found.git_after, page)),
        ("Files", "" if found.kept else "no longer kept"),
    )
    _steps(found.steps, page)
    lines, files = amount(found, page.marks)
    page.changes(
        f"Changes  {files}  {lines}".rstrip(),
        found.changes,
        lambda change: _HOW.get(change.author.how, change.author.how),
    )
    page.changes(
        _capital(state_text.shared_with(found, screen.masker)),
        found.shared,
        lambda change: _short_ids(change.author.sessions),
    )
    if git_staying(found):
        page.head("Git (an undo leaves it as it is)")
        for line in git_lines(found, screen.masker):
            page.say(line)
    move_text.tokens(found.participants, screen)
    if found.effects:
        page.table(
            "Effects outside (an undo leaves them)", effect_text.pairs(found.effects, screen.masker)
        )
    rescued = [(safe(path), "") for path in found.raw_rescued]
    page.table("Rescued before it was destroyed", rescued)
    page.outside(found.outside)
    page.left_out("Not covered: appeared in this turn and cannot be taken back", found.left_out)
    for head, rows in loss_text.parts(found.losses):
        page.table(head, rows)
    if any(loss.is_folder for loss in found.losses):
        screen.note("Takeback records no changes inside folders that are not covered")
    _what_next(found, screen)


def _relapses(found: "RecordedTurn", screen: "Screen") -> str:
    return relapse(found.relapses, screen.masker) if found.relapses else ""


def why(found: "RecordedTurn", screen: "Screen", now: float) -> None:
    """Why a turn is there: what was asked for, by whom, whose its changes are, why it went."""
    page = _Page(screen)
    screen.say(f"Turn {screen.id(found.id)}")
    for line in screen.masker.words(found.label).splitlines() or [""]:
        screen.say(f"  {safe_text(line)}".rstrip())
    models = dict.fromkeys(page.text(step.model) for step in found.steps if step.model)
    page.facts(
        (
            "By",
            "  ".join(filter(None, (page.text(found.agent), *models, page.text(found.account)))),
        ),
        ("When", _when(found, now)),
        ("Changed", _changed(found, page)),
        ("Authors", "; ".join(_authors(found, screen))),
        ("Status", f"{page.marks.of(found.status)} {state_text.state(found) or found.status}"),
        ("Undone", state_text.undone(found)),
        ("Because", page.text(found.because)),
        ("Asked", _went_back(found.went_back)),
    )


def _changed(found: "RecordedTurn", page: "_Page") -> str:
    """How much a turn changed, and the first of its paths."""
    lines, files = amount(found, page.marks)
    named = [safe(change.path or b".") for change in found.changes]
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    return f"{f'{files}  {lines}'.rstrip()}  {', '.join(named[:_MOST_NAMED])}{more}".rstrip()


def _authors(found: "RecordedTurn", screen: "Screen") -> "list[str]":
    """Whose the changes are, and how that is known."""
    by = [change.author.how for change in found.changes]
    parts = [f"{by.count(how):,} {said}" for how, said in _KNOWN.items() if how in by]
    said = [f"{safe_text(found.agent)}: {', '.join(parts)}"] if parts else []
    if found.shared:
        said.append(f"{len(found.shared):,} {state_text.shared_with(found, screen.masker)}")
    return said


def head(found: "RecordedTurn | RecordedCheckpoint", screen: "Screen", now: float) -> None:
    """What a diff is about, above it. No line begins as one of a patch may: prompts are foreign."""
    page = _Page(screen)
    if isinstance(found, RecordedTurn):
        screen.say(f"Turn {screen.style(found.id, 'bold')}  {page.text(found.agent)}")
        screen.say(f"When     {_when(found, now)}")
        said = screen.title(found.label)
    else:
        made = found.checkpoint
        screen.say(f"Checkpoint {screen.style(made.id, 'bold')}")
        screen.say(f"When     {_clock(made.created)}, {ago(made.created, now)}")
        said = ", ".join(map(page.text, made.names))
    screen.say()
    if said:
        screen.say(f"    {said}")
        screen.say()


def not_in_patch(found: "RecordedTurn", screen: "Screen") -> None:
    """What a turn changed besides, of which there are no lines to show."""
    if found.shared:
        screen.note(
            f"{len(found.shared):,} {state_text.shared_with(found, screen.masker)}: not shown"
        )
    outside = sum(1 for file in found.outside if file.verb)
    if outside:
        screen.note(f"{count(outside, 'file')} outside the project: not shown")
    if found.losses or found.left_out:
        screen.note(f"`takeback show {found.id[:8]}` lists what is not covered")


def _what_next(found: "RecordedTurn", screen: "Screen") -> None:
    if not found.kept:
        screen.note("its files are no longer kept; `takeback log` shows all turns")
    elif found.raw_rescued and found.after and not can_return(found):
        if not found.undone:
            screen.note(f"`takeback undo {found.id[:8]}` brings back what was rescued")
        screen.note("`takeback log` shows all turns")
    elif (can_return(found) or any(file.verb for file in found.outside)) and found.after:
        screen.note(f"`takeback show -p {found.id[:8]}` shows the lines")
        screen.note(f"`takeback show {found.id[:8]}- PATH` prints a file as it was before")
        back, it = ("redo", "puts it back") if found.undone else ("undo", "takes it back")
        if not found.undone and any(loss.is_grave for loss in found.losses):
            it = "takes back what is covered"
        screen.note(f"`takeback {back} {found.id[:8]}` {it}")
    elif found.shared and not found.is_shared_undone:
        screen.note(f"`takeback undo {found.id[:8]} --shared` takes back what is shared")
    else:
        if found.git:
            screen.note(f"`takeback undo {found.id[:8]}` shows the git commands that reverse it")
        screen.note("`takeback log` shows all turns")


def checkpoint(found: "RecordedCheckpoint", screen: "Screen", now: float) -> None:
    """A checkpoint: when it was made and for what, and who changed what since the one before."""
    page, made = _Page(screen), found.checkpoint
    screen.say(f"Checkpoint {screen.id(made.id)}")
    belongs = (("session", made.session), ("turn", made.turn), ("step", made.step))
    page.facts(
        ("Names", ", ".join(map(page.text, made.names))),
        ("When", f"{_clock(made.created)}, {ago(made.created, now)}"),
        ("Entries", f"{made.entries:,}"),
        ("Of", "  ".join(f"{kind} {id}" for kind, id in belongs if id)),
        ("After", _restored(found.restore, page)),
        ("Because", page.text(found.restore.because) if found.restore else ""),
        ("Files", "" if found.kept else "no longer kept"),
    )
    changed = [change for change in found.changes if change.verb != terms.OMIT]
    page.changes(f"Changes  {count(len(changed), 'path')}", changed, _by)
    move_text.tokens(found.participants, screen)
    page.left_out("Not covered", made.left_out)
    if found.kept:
        screen.note(f"`takeback show {made.id[:8]} PATH` prints a file as it was then")
    if made.turn:
        screen.note(f"`takeback show {made.turn[:8]}` shows the turn")


def _went_back(to: "str | None") -> str:
    """How somebody went back inside the agent to ask for a turn."""
    if to is None:
        return ""
    return f"after a rewind to before turn {to[:8]}" if to else "after a rewind"


def _restored(restore: "RecordedRestore | None", page: "_Page") -> str:
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
        return safe_text(self.screen.masker.words(text))

    def say(self, line: str) -> None:
        self.screen.say(layout.cut(line, self.room, self.marks.cut).rstrip())

    def facts(self, *rows: "tuple[str, str]") -> None:
        """Names and values; what has no value is not said."""
        for name, value in rows:
            if value:
                self.screen.say(f"{name:<9}{value}", 9)

    def head(self, text: str) -> None:
        self.screen.say(self.screen.style(text, "bold"))

    def changes(self, head: str, changes: "Sequence[Change]", told: "Told") -> None:
        if changes:
            self.head(head)
            for line in change_lines(changes, _MOST, told, self.marks, self.screen.counted):
                self.screen.say(line)

    def outside(self, files: "Sequence[OutsideFile]") -> None:
        """Files outside the project: what was done to them, or why they are not covered."""
        rows = [
            (f"{x.verb or '?':<6}  {safe(x.path)}", x.reason and f"not covered: {x.reason}")
            for x in files
        ]
        self.table("Outside the project", rows)

    def left_out(self, head: str, paths: "Sequence[LeftOut]") -> None:
        """What is listed without content, and why."""
        self.table(head, [(safe(x.path or b"."), explained(x.reason)) for x in paths])

    def table(self, head: str, rows: "list[tuple[str, str]]") -> None:
        if rows:
            self.head(head)
            self.screen.table(rows[:_MOST])
        if len(rows) > _MOST:
            self.screen.say(f"  and {len(rows) - _MOST:,} more")


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
            page.say(f"{indent}    {change.verb:<6} {named(change, page.marks)}")
        if len(step.changes) > _MOST_OF_STEP:
            page.say(f"{indent}    and {len(step.changes) - _MOST_OF_STEP:,} more")
        if step.exit_code:
            for line in (step.output or "").strip().splitlines()[-_LINES_OF_OUTPUT:]:
                text = layout.cut(page.text(line), page.room - 8, page.marks.cut)
                page.say(f"{indent}    {text}")


def _notes(step: "RecordedStep") -> "list[str]":
    notes = ["in the background"] if step.background else []
    notes += [f"exit code {step.exit_code}"] if step.exit_code else []
    return notes if step.status == "done" else [*notes, step.status]


def _short_ids(ids: "Iterable[str]") -> str:
    return " ".join(id[:8] for id in ids)


def _by(change: "Change") -> str:
    who = change.author
    if who.who == terms.STEP:
        by = f"turn {who.turn[:8]}"
        how = _HOW.get(who.how, who.how)
        return f"{by}, {how}" if how else by
    if who.who == terms.SHARED:
        return f"shared by {_short_ids(who.sessions)}"
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
    unknown = next((f"  (refs not read: {state.refs})" for state in states if state.refs), "")
    return f"{on}  {at}{new}{unknown}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
