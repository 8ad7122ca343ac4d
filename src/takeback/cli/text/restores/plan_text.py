"""A plan before it is applied and the report after it, in the same words.

A plan and the report of one as JSON, as documented in docs/json.md.
"""

from takeback.cli import screen as layout
from takeback.cli.screen import safe_line, timestamp
from takeback.cli.text import effect_text, reason_text
from takeback.cli.text.restores import loss_text, move_text
from takeback.model import reasons
from takeback.model import words as terms
from takeback.model.beyond.participants import FAILED
from takeback.model.plan import Remark
from takeback.model.reasons import Reason
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe
from takeback.model.tree import FOLDER
from takeback.model.value import path_text
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.cli.restore_flow import Contents
    from takeback.cli.screen import Screen
    from takeback.model.history import RunningSession
    from takeback.model.plan import Conflict, Dependent, Plan, PlannedChange, Report
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

    _Folded = tuple[PlannedChange, str]


def as_json(
    plan: "Plan",
    masker: "Masker",
    made: "Report | None" = None,
    conversations: "list[Json] | None" = None,
) -> "dict[str, Json]":
    """A plan and what became of it, as documented in docs/json.md."""
    words = masker.words
    return {
        "plan": plan.id or None,
        "verb": plan.verb,
        "target": plan.target or None,
        "base": plan.base,
        "entry": plan.entry or None,
        "turns": list(plan.turns),
        "title": words(plan.title),
        "session": plan.session or None,
        "agent": plan.agent or None,
        "newest": plan.is_newest,
        "changes": [_change(change, masker, plan.verb) for change in plan.changes],
        "conflicts": [_conflict(each, masker, plan.verb) for each in plan.conflicts],
        "kept": _remarks((*plan.kept, *(made.kept if made else ())), masker, plan.verb),
        "skipped": _remarks(plan.skipped, masker, plan.verb),
        "shared": _remarks(plan.shared, masker, plan.verb),
        "losses": [loss_text.as_json(each) for each in plan.losses],
        "rescued": _remarks(made.rescued if made else (), masker, plan.verb),
        "since_preview": [path_fields(path) for path in made.raw_since_preview] if made else [],
        "doubts": [reason_text.as_json(each, masker) for each in plan.doubts],
        "stays": [reason_text.as_json(each, masker) for each in plan.stays],
        "covers": list(plan.covers),
        "partly": list(plan.partly),
        "marked": [path_fields(path) for path in plan.raw_marked],
        "passed_over": plan.passed_over,
        "effects": [effect_text.as_json(each, masker) for each in plan.effects],
        "dependents": [_dependent(each, masker) for each in plan.dependents],
        "done": made is not None and bool(made.id),
        "id": (made.id or None) if made else None,
        "before": (made.before or None) if made else None,
        "after": (made.after or None) if made else None,
        "because": (words(made.because) or None) if made else None,
        "problems": [reason_text.as_json(x, masker) for x in made.problems] if made else [],
        "undo": (made.undo or None) if made else None,
        "conversations": conversations or [],
        "running": [running_json(each, masker) for each in plan.running],
        "moves": move_text.as_json(made.moves if made else plan.moves, masker),
    }


def running_json(running: "RunningSession", masker: "Masker") -> "dict[str, Json]":
    """An agent in the middle of a turn, and how it hears of a restore."""
    from takeback.agents import refusals

    return {
        "session": running.id,
        "agent": running.agent,
        "turn": running.turn,
        "label": masker.words(running.label),
        "since": timestamp(running.since),
        "tool": running.tool or None,
        "doing": masker.words(running.doing) or None,
        "alive": running.is_alive,
        "told": refusals.told(running.agent),
    }


def _change(change: "PlannedChange", masker: "Masker", verb: str) -> "dict[str, Json]":
    return {
        **path_fields(change.raw_path),
        "verb": change.verb,
        "whose": [masker.words(name) for name in change.whose],
        "how": change.how or None,
        "along": reason_text.as_json(change.along, masker, verb),
        "merged": reason_text.as_json(change.merged, masker, verb),
        "outside": change.outside,
    }


def _dependent(dependent: "Dependent", masker: "Masker") -> "dict[str, Json]":
    return {
        "id": dependent.id,
        "title": masker.words(dependent.title),
        "agent": dependent.agent or None,
        "paths": [path_fields(path) for path in dependent.raw_paths],
    }


def _conflict(conflict: "Conflict", masker: "Masker", verb: str) -> "dict[str, Json]":
    from takeback.cli.text.restores import conflict_text

    return _remark(conflict, masker, verb) | conflict_text.as_json(conflict, masker)


def _remarks(remarks: "Iterable[Remark]", masker: "Masker", verb: str) -> "list[Json]":
    return [_remark(each, masker, verb) for each in remarks]


def _remark(remark: "Remark", masker: "Masker", verb: str) -> "dict[str, Json]":
    path = path_text(remark.raw_path)
    return {
        **path_fields(remark.raw_path),
        "reason": reason_text.as_json(remark.reason, masker, verb, path),
    }


_MOST_PREVIEWED = 200
_MOST_REPORTED = 20
_MOST_YOURS = 5
_MOST_NAMED = 2
_MOST_TURNS = 4
_MOST_DETAILED = 8
"""Conflicts whose three sides are shown; of the others only the reason is."""
_MOST_PLACES = 3
_MOST_LINES = 4
_LONGEST_TITLE = 60
_WIDEST_PATH = 60
_CONFLICT = "conflict"
_DOING = {terms.UNDO: "take back", terms.REDO: "put back", terms.ROLLBACK: "roll back to"}
_DONE = {terms.UNDO: "Took back", terms.REDO: "Put back", terms.ROLLBACK: "Rolled back to"}
_HOW = {
    terms.BY_SHELL: "by shell",
    terms.PERHAPS: "perhaps yours",
    terms.UNKNOWN: "unknown author",
    terms.RESCUED: "rescued before it was destroyed",
    terms.UNREPORTED: "without a tool event; perhaps yours",
}
_NEVER = "never"
_TOLD = {
    "refused": "its next call is refused once, and it is told why",
    "raised": "its next step raises `RolledBack`",
    "afterwards": "it would not read why a call is refused, so it is told with its next one",
    _NEVER: "it cannot be told",
}
_REVERSES = {
    terms.UNDO: "puts it back",
    terms.REDO: "takes it back again",
    terms.ROLLBACK: "takes this back",
}
STYLES = {
    terms.CREATE: "green",
    terms.MKDIR: "green",
    terms.DELETE: "red",
    terms.RMDIR: "red",
    _CONFLICT: "red",
}
STYLES |= {terms.MERGE: "cyan"}


def preview(
    plan: "Plan", screen: "Screen", contents: "Contents", *, most: int = _MOST_PREVIEWED
) -> None:
    """What a plan would do: what is in the way first, then path by path, then what stays."""
    page = Page(plan, screen, contents)
    screen.say(page.would())
    page.whence()
    page.changes(most)
    move_text.show(plan.moves, screen)
    page.what_stays(plan.kept)
    page.doubts()
    if plan.dependents:
        screen.say(screen.style("Later turns build on it and are kept", "bold"))
        for line in page.dependents():
            screen.say(f"  {line}")
    for text in page.notes():
        screen.say(text)


def report(
    made: "Report",
    screen: "Screen",
    contents: "Contents",
    *,
    was_previewed: bool,
    besides: "Iterable[str]" = (),
    most: int = _MOST_REPORTED,
) -> None:
    """What was done, and what `besides`; what a preview has shown already is not said again."""
    page = Page(made.plan, screen, contents)
    if not made.id:
        screen.say(f"Nothing to do: {page.already()}")
        for text in (*page.notes(), *besides):
            screen.note(text)
        return
    kept = (*made.plan.kept, *made.kept)
    screen.say(page.did(kept))
    if was_previewed:
        page.part("Kept, because it was saved during the restore", made.kept)
    else:
        page.changes(most)
        page.what_stays([each for part in _parted(kept) if not _is_short(part) for each in part])
    failed = [each for each in made.moves if each.how == FAILED]
    move_text.show(failed if was_previewed else made.moves, screen)
    page.part("Saved while this ran", made.rescued)
    if made.since_preview:
        where = Reason(reasons.IN_CHECKPOINT, checkpoint=made.before[:8])
        remarks = [Remark(path, where) for path in made.raw_since_preview]
        page.part("Changed since the preview, and rolled back, too", remarks)
    if not was_previewed:
        page.doubts()
    notes = [] if was_previewed else page.notes()
    notes += page.marked()
    names = dict.fromkeys(each.name for each in failed)
    notes += [f"`takeback participant retry {name}` tries again" for name in names]
    notes += [f"note: {page.text(problem)}" for problem in made.problems]
    notes += besides
    if made.undo:
        is_idle = not made.plan.changes and bool(made.plan.losses)
        does = "reverses this" if is_idle else _REVERSES[made.plan.verb]
        notes.append(f"`{safe_line(made.undo)}` {does}")
    for text in notes:
        screen.note(text)


class Page:
    """A plan on a screen."""

    def __init__(self, plan: "Plan", screen: "Screen", contents: "Contents") -> None:
        self.plan = plan
        self.screen = screen
        self.contents = contents
        self.marks = layout.marks(screen)

    def _words(self, text: str) -> str:
        return self.screen.masker.words(text)

    def text(self, reason: "Reason") -> str:
        return safe_line(self._words(reason_text.sentence(reason, self.plan.verb)))

    def of_remark(self, remark: "Remark") -> str:
        return safe_line(self._words(reason_text.of_remark(remark, self.plan.verb)))

    # -- the first line ----------------------------------------------------------------------

    def would(self) -> str:
        plan = self.plan
        doing = f"Would {self.doing()}"
        if plan.conflicts:
            return f"{doing}, but {in_conflict(plan)}"
        covered = f"; takes back {count(len(plan.covers), 'turn')}" if plan.covers else ""
        return f"{doing}: {amount(plan, done=False)}{covered}"

    def doing(self) -> str:
        """What this is about: `take back "Tidy up" of claude-code`."""
        return f"{_DOING[self.plan.verb]} {self._titled()}"

    def did(self, kept: "Sequence[Remark]") -> str:
        parts = [
            amount(self.plan, done=True),
            *(self._kept(part) for part in _parted(kept) if part),
        ]
        parts += reason_text.in_short(self.plan.stays) + effect_text.in_short(self.plan.effects)
        return f"{_DONE[self.plan.verb]} {self._titled()}: {'; '.join(parts)}"

    def _kept(self, remarks: "list[Remark]") -> str:
        if _is_short(remarks):
            names = " and ".join(safe(each.path or b".") for each in remarks)
            return f"kept {names} ({self.of_remark(remarks[0])})"
        of = " of yours" if remarks[0].reason.code == reasons.YOURS else ""
        return f"kept {count(len(remarks), 'path')}{of}"

    def whence(self) -> None:
        """Which turns these are, and whose."""
        plan = self.plan
        if not plan.session and not plan.turns:
            return
        named = [id[:8] for id in plan.turns[:_MOST_TURNS]] or [plan.entry[:8]]
        more = len(plan.turns) - len(named)
        named += [f"{more:,} more"] if more > 0 else []
        of = f" of session {plan.session[:8]}" if plan.session else ""
        line = f"turn{'s' if len(named) > 1 else ''} {' and '.join(named)}{of}"
        self.screen.say(self.screen.style(f"  {line}", "dim"))

    def already(self) -> str:
        """What to say of a plan that changes nothing."""
        if self.plan.verb == terms.UNDO and not self.plan.entry:
            called = safe_line(self._words(self.plan.title))
            return f"{called} changed nothing, or all of it is taken back"
        what = "that" if self.plan.paths else "everything"
        if any(each.code in reasons.OF_GIT for each in self.plan.stays):
            what = "that" if self.plan.paths else "every file"
        if self.plan.verb == terms.REDO:
            return f"{what} is as {self._title()} left it"
        if self.plan.verb != terms.ROLLBACK:
            return f"{what} is as it was before {self._title()}"
        at = "" if self.plan.goal else "at "
        return f"{what} is as it was {at}{self._title()}"

    def _titled(self) -> str:
        agent = self.plan.agent
        of = f" of {safe_line(agent)}" if agent and agent != "run" else ""
        return f"{self._title()}{of}"

    def _cut(self, label: str) -> str:
        return layout.cut(self.screen.title(label), _LONGEST_TITLE, self.marks.cut)

    def _title(self) -> str:
        """What is taken back or gone back to, as one calls it."""
        called = self._cut(self.plan.title)
        if self.plan.verb == terms.ROLLBACK:
            return called
        more = len(self.plan.turns) - 1
        others = f" and {count(more, 'more turn', 'more turns')}" if more > 0 else ""
        return f'"{called}"{others}' if self.plan.turn else f"the rollback to {called}"

    # -- path by path ------------------------------------------------------------------------

    def changes(self, most: int) -> None:
        rows = [(_CONFLICT, c.raw_path or b".", self.of_remark(c)) for c in self.plan.conflicts]
        inner, outer = _folded(self.plan.changes)
        rows += [(c.verb, c.raw_path or b".", self._of(c) + more) for c, more in inner[:most]]
        detailed = min(len(self.plan.conflicts), _MOST_DETAILED)
        self._rows(rows, most, len(self.plan.conflicts) + len(inner), detailed)
        if outer:
            self.screen.say(self.screen.style("Outside the project", "bold"))
            rows = [(c.verb, c.raw_path, self._of(c) + more) for c, more in outer[:most]]
            self._rows(rows, most, len(outer))

    def _rows(
        self, rows: "list[tuple[str, bytes, str]]", most: int, total: int, detailed: int = 0
    ) -> None:
        shown = [
            (verb, safe(path), safe_line(self._words(said))) for verb, path, said in rows[:most]
        ]
        widest = min(max((layout.columns(path) for _, path, _ in shown), default=0), _WIDEST_PATH)
        verbs = max([6, *(len(verb) for verb, _, _ in shown)])
        for number, (verb, path, said) in enumerate(shown):
            word = verb.ljust(verbs)
            style = STYLES.get(verb)
            word = self.screen.style(word, style) if style else word
            if verb == terms.MERGE:
                text, gap, lines = said.rpartition("  ")
                said = f"{text}{gap}{self.screen.counted(lines)}"
            self.screen.say(f"  {word}  {layout.pad(path, widest)}  {said}".rstrip())
            if number < detailed:
                self._sides(self.plan.conflicts[number], " " * (verbs + 4))
        if total > most:
            self.screen.say(f"  and {total - most:,} more")

    def _sides(self, conflict: "Conflict", indent: str) -> None:
        from takeback.cli.text.restores import conflict_text

        for style, text in conflict_text.sides(
            conflict,
            self.plan.verb,
            self.contents.target,
            self.screen.masker,
            most_places=_MOST_PLACES,
            most_lines=_MOST_LINES,
        ):
            self.screen.say(indent + (self.screen.style(text, style) if style else text))

    def _of(self, change: "PlannedChange") -> str:
        """What is said of a change; of a merge also what it does to the file."""
        lines = self.contents.lines(change, self.marks) if change.merged else ""
        return f"{self.whose(change)}  {lines}".rstrip()

    def whose(self, change: "PlannedChange") -> str:
        """Whose change it is, where that is not said by the first line."""
        if change.along or change.merged:
            said = filter(None, (change.along, change.merged))
            return "; ".join(reason_text.sentence(each, self.plan.verb) for each in said)
        if self.plan.verb != terms.ROLLBACK:
            return _HOW.get(change.how, "")
        names = [name for name in change.whose if name]
        if not names:
            return ""
        by = f"by {reason_text.names(names)}"
        return f"{by}, {_HOW[change.how]}" if change.how in _HOW and names != [terms.YOU] else by

    # -- what stays --------------------------------------------------------------------------

    def what_stays(self, kept: "Sequence[Remark]") -> None:
        """What is not touched, and why; what is plainly yours last, and not all of it."""
        others, yours = _parted(kept)
        self.part("Kept", [*others, *yours[:_MOST_YOURS]])
        if len(yours) > _MOST_YOURS:
            self.screen.say(f"  and {len(yours) - _MOST_YOURS:,} more of yours")
        self.part("Shared with others, so it is kept", self.plan.shared)
        lost = {each.raw_path for each in self.plan.losses}
        self.part("Not touched", [each for each in self.plan.skipped if each.raw_path not in lost])
        for head, rows in loss_text.parts(self.plan.losses):
            self.screen.say(self.screen.style(head, "bold"))
            self.screen.table(rows[:_MOST_REPORTED])
            if len(rows) > _MOST_REPORTED:
                self.screen.say(f"  and {len(rows) - _MOST_REPORTED:,} more")

    def dependents(self) -> "list[str]":
        """The later turns that build on what is taken back, a line each."""
        found = []
        for each in self.plan.dependents:
            paths = [safe(path) for path in each.paths[:_MOST_NAMED]]
            more = len(each.paths) - len(paths)
            paths += [f"{more:,} more"] if more else []
            of = f" of {safe_line(each.agent)}" if each.agent else ""
            found.append(f'{each.id[:8]}  "{self._cut(each.title)}"{of}: {", ".join(paths)}')
        return found

    def part(self, head: str, remarks: "Iterable[Remark]") -> None:
        listed = list(remarks)
        if not listed:
            return
        self.screen.say(self.screen.style(head, "bold"))
        first = listed[:_MOST_REPORTED]
        shown = [(safe(each.path or b"."), self.of_remark(each)) for each in first]
        self.screen.table(shown)
        if len(listed) > _MOST_REPORTED:
            self.screen.say(f"  and {len(listed) - _MOST_REPORTED:,} more")

    def doubts(self) -> None:
        """What one should think about before one says yes."""
        said = [self.text(reason) for reason in self.plan.doubts]
        said += filter(None, [own_edits(self.plan)])
        said += [f"`{safe(path)}` still holds conflict markers" for path in self.plan.marked]
        said += map(self._running, self.plan.running)
        for text in said:
            self.screen.say(self.screen.style(f"! {text}", "yellow"))

    def _running(self, running: "RunningSession") -> str:
        """That an agent is at work on these files, and how it hears of it."""
        from takeback.agents import refusals

        who = f"{safe_line(running.agent)} (session {running.id[:8]})"
        is_are = "is working" if running.is_alive else "may be working"
        told = refusals.told(running.agent)
        # One that has not heard of the undo hears of neither: nothing changed for it.
        is_if = self.plan.verb == terms.REDO and told != _NEVER
        heard = ", if it heard of the undo" if is_if else ""
        return f"{who} {is_are} on these files: {_TOLD[told]}{heard}"

    def notes(self) -> "list[str]":
        """What else there is to know."""
        passed = self.plan.passed_over
        turns = "1 newer turn" if passed == 1 else f"{passed:,} newer turns"
        notes = [self.text(reason) for reason in self.plan.stays]
        notes += effect_text.staying(self.plan.effects, self.screen.masker)
        if self.plan.shared:
            ids = " ".join(id[:8] for id in self.plan.turns)
            notes.append(f"`takeback undo {ids} --shared` also takes back what is shared")
        notes += self._partly()
        return [*notes, *([f"skipped {turns} that changed nothing"] if passed else [])]

    def _partly(self) -> "list[str]":
        """That something is left, and how one takes it."""
        partly = self.plan.partly
        if not partly:
            return []
        if self.plan.verb == terms.REDO:
            return ["some of it stays taken back; `takeback redo` puts back the rest"]
        turns = "this turn is" if len(partly) == 1 else f"{count(len(partly), 'turn')} are"
        is_newest = self.plan.is_newest and len(partly) == 1
        named = "" if is_newest else "".join(f" {id[:8]}" for id in partly)
        return [f"{turns} partly undone; `takeback undo{named}` takes back the rest"]

    def marked(self) -> "list[str]":
        """What is left to be done where both versions were written."""
        found = [
            safe(change.path)
            for change in self.plan.changes
            if change.merged is not None and change.merged.code == reasons.WITH_MARKERS
        ]
        if not found:
            return []
        if len(found) == 1:
            return [f"`{found[0]}` holds both versions: edit it at the `<<<<<<<` markers"]
        files = count(len(found), "file")
        return [f"{files} hold both versions: edit them at the `<<<<<<<` markers"]


def _folded(changes: "Iterable[PlannedChange]") -> "tuple[list[_Folded], list[_Folded]]":
    """The changes in the project and outside it; a rescued folder says how much is below it."""
    found: list[tuple[PlannedChange, list[PlannedChange]]] = []
    above = b""
    for change in changes:
        is_rescued = change.how == terms.RESCUED
        if is_rescued and above and change.raw_path.startswith(above):
            found[-1][1].append(change)
            continue
        above = change.raw_path + b"/" if is_rescued and change.verb == terms.MKDIR else b""
        found.append((change, []))
    rows = [(change, f", with {_things(below)}" if below else "") for change, below in found]
    return [row for row in rows if not row[0].outside], [row for row in rows if row[0].outside]


def own_edits(plan: "Plan") -> str:
    """That a rollback removes what you did yourself; empty if it does not."""
    yours = sum(terms.YOU in change.whose for change in plan.changes)
    if plan.verb != terms.ROLLBACK or not yours:
        return ""
    is_are, them = ("is", "it") if yours == 1 else ("are", "them")
    own = f"{count(yours, 'change')} of your own {is_are} removed"
    return f"{own}; the safety checkpoint keeps {them}"


def in_conflict(plan: "Plan") -> str:
    if len(plan.conflicts) > 1:
        return f"{len(plan.conflicts):,} paths are in conflict"
    return "1 path is in conflict"


def amount(plan: "Plan", *, done: bool) -> str:
    """How much a plan does: `restored 3 files, removed 1`."""
    merged = [change for change in plan.changes if change.verb == terms.MERGE]
    gone = [change for change in plan.changes if _is_removal(change)]
    made = [each for each in plan.changes if each.verb != terms.MERGE and not _is_removal(each)]
    word = "change" if plan.verb == terms.REDO else "restore"
    has_folders = any(map(is_folder, plan.changes))
    parts: list[str] = []
    for verb, changes in ((word, made), ("merge", merged), ("remove", gone)):
        if changes:
            things = f"{len(changes):,}" if parts and not has_folders else _things(changes)
            parts.append(f"{verb}{'d' if done else ''} {things}")
    if not parts and any(loss.is_grave for loss in plan.losses):
        return "restored nothing" if done else "restore nothing"
    return ", ".join(parts) or ("changed nothing" if done else "change nothing")


def _is_removal(change: "PlannedChange") -> bool:
    if change.before is None and change.after is None:
        # A report that is repeated from the log has verbs only.
        return change.verb in (terms.DELETE, terms.RMDIR)
    return change.after is None


def _things(changes: "list[PlannedChange]") -> str:
    folders = sum(map(is_folder, changes))
    files = len(changes) - folders
    parts = [count(files, "file")] if files else []
    parts += [count(folders, "folder")] if folders else []
    return " and ".join(parts)


def is_folder(change: "PlannedChange") -> bool:
    entry = change.after or change.before
    if entry is None:
        return change.verb in (terms.MKDIR, terms.RMDIR)
    return entry.kind == FOLDER


def _parted(kept: "Iterable[Remark]") -> "tuple[list[Remark], list[Remark]]":
    """What stays for a reason of its own, and what is plainly yours."""
    listed = list(kept)
    others = [each for each in listed if each.reason.code != reasons.YOURS]
    return others, [each for each in listed if each.reason.code == reasons.YOURS]


def _is_short(kept: "list[Remark]") -> bool:
    """Whether all of it can be said in a few words."""
    return len(kept) <= _MOST_NAMED and len({each.reason for each in kept}) <= 1
