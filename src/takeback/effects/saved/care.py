"""Which rescues go: the oldest where room is short, those of old states, and what is forgotten.

The limit counts the bytes on disk that have no other name: a link to a file that is still somewhere
takes nothing.
"""

import os
from hashlib import sha256

from takeback.effects import rescue
from takeback.effects.saved import area
from takeback.effects.saved.saving import LEAST_FREE
from takeback.errors import DamagedStoreError, TakebackError
from takeback.ledger.beyond.rescues import KEPT
from takeback.ledger.log import events
from takeback.model import forgotten, reasons
from takeback.model.reasons import Reason
from takeback.model.tree import LINK, REGULAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from takeback.capture.workspace import Workspace
    from takeback.effects.saved.area import Held
    from takeback.ledger.beyond.rescues import RescueRow
    from takeback.model.forgotten import ForgetRequest
    from takeback.model.text.json_text import Json
    from takeback.store import Store

AGE, SIZE, SPACE, FORGET = "age", "size", "space", "forget"
"""Why rescues go."""
_PIECE = 1 << 20


def give_way(work: "Workspace", but: "Collection[str]" = ()) -> int:
    """Drop the oldest rescues while they are over the limit, or the disk is nearly full.

    What was just destroyed stays, so `but` these.
    """
    limit = area.number(work.rules.setting, "limit", area.LIMIT)
    kept = [row for row in work.ledger.rescues.there() if row.state == KEPT]
    new = sum(row.bytes for row in kept if row.id in but)
    rows, count = [row for row in kept if row.id not in but], 0
    while rows:
        over = new + sum(row.bytes for row in rows) > limit
        if not over and not any(map(_is_full, {place for row in rows for place in row.areas})):
            break
        drop(work, rows[:1], SIZE if over else SPACE)
        rows, count = rows[1:], count + 1
    return count


def _is_full(folder: bytes) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * 100 < disk.f_blocks * LEAST_FREE


def tend(work: "Workspace", floor: int) -> int:
    """Drop what was saved before an event, and what is too much; how many went. For gc."""
    rescue.settle(work)
    old = [row for row in work.ledger.rescues.there() if row.state == KEPT and row.event < floor]
    count = drop(work, old, AGE) + give_way(work)
    sweep(work)
    return count


def drop(work: "Workspace", rows: "Iterable[RescueRow]", why: str) -> int:
    """Let rescues go, with the lock held; how many went."""
    rows = list(rows)
    if not rows:
        return 0
    said: dict[str, Json] = {"rescues": [row.id for row in rows], "why": why}
    rescue.note(work, events.RESCUES_DROPPED, said, *rows)
    for row in rows:
        area.empty(row.areas, row.id)
        area.forget_list(work.store, row.id)
    return len(rows)


def sweep(work: "Workspace") -> int:
    """Remove what a process left that died while it saved. With the lock held."""
    rows = work.ledger.rescues.there()
    for row in rows:
        area.forget_old(work.store, row)
        try:
            area.remove_unlisted(row, area.read(work.store, row))
        except DamagedStoreError:
            continue  # `damage` says so
    return area.sweep(work.store, places(work), [row.id for row in rows])


def places(work: "Workspace") -> "list[bytes]":
    """Every folder in which rescued files may lie."""
    return [*work.ledger.rescues.all_areas(), area.beside(os.path.dirname(work.root), work.id)]


def taken(store: "Store") -> "tuple[int, int]":
    """How many rescues are kept, and the bytes that they take."""
    count = total = 0
    for row in store.ledger.rescues.there():
        count += 1
        try:
            total += area.own_bytes(row.areas, row.id, area.read(store, row).held)
        except DamagedStoreError:
            continue
    return count, total


def damage(store: "Store") -> "Iterator[Reason]":
    """What is wrong with what the store holds of rescues."""
    for row in store.ledger.rescues.there():
        try:
            listing = area.read(store, row)
        except DamagedStoreError as problem:
            yield Reason(reasons.DAMAGED, problem=str(problem))
            continue
        gone = [each for each in listing.held if each.kind == REGULAR and not _is_there(row, each)]
        for each in gone[:1]:
            path, more = os.fsdecode(each.path), len(gone) - 1
            yield Reason(reasons.RESCUE_DAMAGED, rescue=row.id[:8], path=path, more=more)


def _is_there(row: "RescueRow", held: "Held") -> bool:
    try:
        found = os.lstat(rescue.path_of(row, held))
    except OSError:
        return False
    return found.st_nlink > 1 or area.is_intact(found, held)


# -- forget ------------------------------------------------------------------------------------


def forget(work: "Workspace", wish: "ForgetRequest", *, dry_run: bool = False) -> int:
    """Remove what shall be forgotten from all rescues; how many paths that is."""
    count, turn = 0, work.ledger.turns.number_of(wish.turn) if wish.turn else None
    for row in work.ledger.rescues.there():
        try:
            listing = area.read(work.store, row)
        except DamagedStoreError:
            if not dry_run:
                drop(work, [row], FORGET)
            continue
        is_of_turn = turn is not None and row.turn == turn
        left = [] if is_of_turn else [h for h in listing.held if not _takes(work, wish, row, h)]
        count += len(listing.held) - len(left)
        if dry_run or len(left) == len(listing.held):
            continue
        if left:
            rescue.keep_only(work, row, listing, left)
        else:
            drop(work, [row], FORGET)
    if not dry_run:
        sweep(work)
    return count


def _takes(work: "Workspace", wish: "ForgetRequest", row: "RescueRow", held: "Held") -> bool:
    root = os.path.realpath(work.root) + b"/"
    inside = held.path.removeprefix(root)
    if inside != held.path and (wish.covers(inside) or wish.hides(inside)):
        return True
    if wish.covers_outside(held.path) or wish.hides(held.path):
        return True
    if wish.kind == forgotten.PATH:
        return False
    if held.kind == LINK:
        is_text = wish.in_files and any(text in held.target for text in wish.texts)
        return is_text or sha256(held.target).digest() in wish.contents
    return held.kind == REGULAR and _holds(row, held, wish)


def _holds(row: "RescueRow", held: "Held", wish: "ForgetRequest") -> bool:
    """Whether a rescued file is a content that shall be forgotten, or holds such a text."""
    strong, tail = sha256(), b""
    longest = max(map(len, wish.texts), default=1)
    try:
        fd = area.open_file(row.areas, held, row.id)
    except (OSError, TakebackError):
        return True  # nobody can tell, and nobody can use it
    try:
        while piece := os.read(fd, _PIECE):
            strong.update(piece)
            window = tail + piece
            if wish.in_files and any(text in window for text in wish.texts):
                return True
            tail = window[-longest:]
    finally:
        os.close(fd)
    return strong.digest() in wish.contents
