"""Save what a destructive command is about to destroy and no checkpoint holds.

`before` runs just before the command, `after` when it is over. Both run with the lock held, and
neither stops the agent: what cannot be saved is reported.

A link is dropped once its name turns out to be still there, and a copy once its file is unchanged.
"""

import os
import time

from takeback.effects.saved import area, git_rescue
from takeback.effects.saved.area import Held, Listing
from takeback.effects.saved.saving import APART, Bounds, Saver
from takeback.effects.saved.targets import Finder, is_in
from takeback.ledger.beyond.rescues import OPEN
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids, reasons
from takeback.model.beyond import rescued
from takeback.model.beyond.rescued import LINK, Kept, Missed, Rescued
from takeback.model.reasons import Reason
from takeback.model.tree import FOLDER, KIND, REGULAR
from takeback.model.tree import LINK as SYMLINK
from takeback.model.value import path_text
from takeback.worktree.scan import VERSION_CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.capture.workspace import Workspace
    from takeback.effects.saved.targets import Wanted
    from takeback.ledger.beyond.rescues import RescueRow
    from takeback.model.beyond.effects import Judgement
    from takeback.model.text.json_text import Json


def before(work: "Workspace", step: str, judgement: "Judgement") -> Rescued:
    """Save what a call would destroy; say what could not be saved."""
    if not judgement.targets and not judgement.git:
        return rescued.NOTHING
    try:
        return _before(work, step, judgement)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, it does not stop the agent
        work.ledger.abandon()
        why = Reason(reasons.CANNOT_BE_SAVED, why=str(problem))
        return Rescued(missed=(Missed(b"", why),))


def _before(work: "Workspace", step: str, judgement: "Judgement") -> Rescued:
    number = work.ledger.steps.number_of(step)
    finder = Finder(work, _kept_already(work, number))
    wanted = finder.find(judgement)
    id = ids.from_entropy(os.urandom(8))
    saver = Saver(work, id, finder.doomed, _bounds(work))
    try:
        git = _saved(saver, wanted, judgement)
        missed = (*finder.missed, *saver.missed)
        if saver.held:
            _record(work, number, id, saver, git, missed)
        else:
            area.empty(saver.areas, id)
    except BaseException:
        _give_up(work, id, saver)
        raise
    made = (*finder.rebuildable, *saver.rebuildable)
    return Rescued(_kept(saver), missed, made, tuple(folder for folder, _ in git), id)


def _saved(
    saver: Saver, wanted: "Iterable[Wanted]", judgement: "Judgement"
) -> "tuple[tuple[bytes, int], ...]":
    """Save all of it, and let it survive a power cut; the repositories of which state was saved."""
    is_done = False
    try:
        for each in wanted:
            saver.save(each)
        git = git_rescue.save(saver, judgement) if judgement.git else ()
        is_done = True
    finally:
        saver.close(durable=is_done)
    return git


def _give_up(work: "Workspace", id: str, saver: Saver) -> None:
    """Remove what was saved, unless the ledger knows of it all the same."""
    work.ledger.abandon()
    if all(row.id != id for row in work.ledger.rescues.there()):
        area.empty(saver.areas, id)
        area.forget_list(work.store, id)


def _kept_already(work: "Workspace", step: "int | None") -> "frozenset[bytes]":
    """The files outside that an edit tool named, and that the step itself keeps."""
    if step is None:
        return frozenset()
    return frozenset(row.path for row in work.ledger.outside.waiting(steps=(step,)))


def _bounds(work: "Workspace") -> Bounds:
    names = work.rules.rebuildable()
    return Bounds(area.number(work.rules.setting, "copy", area.COPY_LIMIT), rebuildable=names)


def _record(
    work: "Workspace",
    number: "int | None",
    id: str,
    saver: Saver,
    git: "tuple[tuple[bytes, int], ...]",
    missed: "Sequence[Missed]",
) -> None:
    """Let the ledger know of a rescue; before that nobody does, and the next start removes it."""
    listing = Listing(tuple(saver.tops), tuple(saver.held), git)
    digest = area.write(work.store, id, listing)
    row = work.ledger.steps.numbered(number) if number is not None else None
    turn = work.ledger.turns.id_of(row.turn) if row is not None else None
    said: dict[str, Json] = {
        "rescue": id,
        "turn": turn,
        "step": row.id if row is not None else None,
        "areas": [path_text(each) for each in saver.areas],
        "tops": _tops(listing),
        "list": digest,
        "files": len(saver.held),
        "bytes": sum(each.size for each in saver.held),
        "missed": len(missed),
    }
    parents = (row.opened,) if row is not None else ()
    work.ledger.record(NewEvent(events.RESCUE_MADE, said, time.time_ns(), parents=parents))


def _tops(listing: Listing) -> "list[Json]":
    """The paths as the event names them: those of which something is held."""
    used = {each.top for each in listing.held if each.top >= 0}
    return [path_text(listing.tops[number]) for number in sorted(used)]


def _kept(saver: Saver) -> "tuple[Kept, ...]":
    found: dict[int, list[Held]] = {}
    for each in saver.held:
        if each.top >= 0:
            found.setdefault(each.top, []).append(each)
    return tuple(
        Kept(
            saver.tops[top],
            sum(each.size for each in held),
            next((each.how for each in held if each.how not in ("", LINK)), LINK),
            sum(each.kind != FOLDER for each in held),
        )
        for top, held in found.items()
    )


# -- when the command is over ------------------------------------------------------------------


def after(work: "Workspace", step: str) -> None:
    """Drop what turned out to be still there; `step` is over, or nobody will report its end."""
    if work.ledger.rescues.has_any():
        _settle(work, work.ledger.rescues.of_step(step))


def settle(work: "Workspace") -> None:
    """The same for all rescues of steps that are over: at the end of turns, and before a plan."""
    rescues = work.ledger.rescues
    if rescues.has_any():
        over = rescues.over()
        # Where nothing is left of what was named, nothing would be dropped either.
        open_rows = (row for row in rescues.there() if row.state == OPEN and row not in over)
        gone = [row for row in open_rows if not any(map(os.path.lexists, row.tops))]
        _settle(work, [*over, *gone])


def _settle(work: "Workspace", rows: "Sequence[RescueRow]") -> None:
    for row in rows:
        try:
            listing = area.read(work.store, row)
            left = _left(row, listing)
            keep_only(work, row, listing, left)
        except Exception:  # noqa: BLE001 -- the rescue is kept as it is, and the agent goes on
            work.ledger.abandon()
    if rows:
        from takeback.effects.saved import care

        care.give_way(work, {row.id for row in rows})


def _left(row: "RescueRow", listing: Listing) -> "list[Held]":
    """What is gone since it was saved; and of the user's git all, if any of it moved."""
    changed = {each.path for each in listing.held if _is_gone(each)}
    apart = tuple(each for each in listing.held if each.top == APART)
    named = [each for each in listing.held if each.top != APART and each.path in changed]
    return [_stamped(row, each) for each in (*named, *git_rescue.left(apart, changed))]


def _is_gone(held: Held) -> bool:
    """Whether a path does not hold any more what was saved."""
    try:
        found = os.lstat(held.path)
        if found.st_mode & KIND != held.kind:
            return True
        if held.kind == FOLDER:
            return False
        if held.kind == SYMLINK:
            return os.readlink(held.path) != held.target
    except OSError:
        return True
    is_it = (found.st_dev, found.st_ino) == (held.device, held.inode)
    if is_it and held.how != LINK:
        return (found.st_size, found.st_mtime_ns) != (held.size, held.mtime)
    return not is_it


def _stamped(row: "RescueRow", held: Held) -> Held:
    """With what tells later whether it was changed, and whether its place was."""
    held = held.replace(left=_present(held.path))
    try:
        return held.replace(strong=area.small_hash(row.areas, held, row.id))
    except OSError:
        return held


def _present(path: bytes) -> str:
    """The stamps of what is at a path; empty if nothing is."""
    try:
        return area.stamp(os.lstat(path))
    except OSError:
        return ""


def keep_only(
    work: "Workspace", row: "RescueRow", listing: Listing, left: "Sequence[Held]"
) -> None:
    """Record what a rescue still holds, then remove the rest of it."""
    area.forget_old(work.store, row)
    kept = {each.name for each in left}
    rest = Listing(listing.tops, tuple(left), listing.git if left else ())
    said: dict[str, Json] = {"rescue": row.id, "left": len(left), "tops": _tops(rest)}
    said["list"] = area.write(work.store, row.id, rest) if left else ""
    said["files"] = len(left)
    said["bytes"] = area.own_bytes(row.areas, row.id, left)
    said["beyond"] = _beyond(work, rest)
    note(work, events.RESCUE_SETTLED, said, row)
    if not left:
        area.empty(row.areas, row.id)
        area.forget_list(work.store, row.id)
        return
    area.forget_old(work.store, row.replace(digest=str(said["list"])))
    for each in listing.held:
        if each.kind == REGULAR and each.name not in kept:
            area.discard(path_of(row, each))


def _beyond(work: "Workspace", listing: Listing) -> int:
    """How many of the paths that were named nobody else counts: outside the project, or `.git`.

    What is below a `.git` that is there does not come back: only its commands are printed.
    """
    root = os.path.realpath(work.root)
    used = {each.top for each in listing.held if each.top >= 0}
    tops = [listing.tops[number] for number in used]
    if not os.path.isdir(root):
        return len(tops)  # no checkpoint says what went with the project's folder
    return sum(not is_in(top, [root]) or os.path.basename(top) in VERSION_CONTROL for top in tops)


def path_of(row: "RescueRow", held: Held) -> bytes:
    return os.path.join(row.areas[held.area], row.id.encode(), held.name)


def note(work: "Workspace", kind: str, said: "dict[str, Json]", *rows: "RescueRow") -> None:
    parents = tuple(row.event for row in rows)
    work.ledger.record(NewEvent(kind, said, time.time_ns(), parents=parents))
