"""A restore that nobody can take back: kept and out of the way, if somebody says so.

Its journal cannot be read, or a path of it cannot be written any more. So nothing in the tree is
changed. Its row goes into the log as an event, byte for byte. Our folder, which may hold saves that
are nowhere else, gets a name that everybody can see: from then on it is a folder like any other,
and checkpoints hold it.
"""

import os

from takeback.engine import rescue
from takeback.model.staging import PREFIX, is_stage
from takeback.store import descent, events, fsops, journal, outside
from takeback.store.events import NewEvent
from takeback.store.roots import Roots
from takeback.store.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.model.jsontext import Json
    from takeback.store.journal import Damaged, Journal
    from takeback.store.store import Store

HOW = "see to these paths (`lsattr`, free space, mounts), or `takeback verify --set-aside`"
"""What to do about a restore that cannot be taken back yet."""
_MOST_SHOWN = 10


def left_alone(row: "Damaged") -> str:
    """What is said of a row that cannot be read whenever somebody comes across it."""
    return (
        "a restore was interrupted and cannot be taken back, because its journal is damaged; "
        f"what it displaced is in {row.stage}: `takeback verify --set-aside` keeps both"
    )


def stuck(row: "Journal") -> str:
    """What is said of a restore that could not be taken back yet."""
    what = f"{row.called} was interrupted and could not be taken back yet"
    return f"{what}; it is about {shown(row.paths)}; {HOW}"


def shown(paths: "Sequence[bytes]") -> str:
    """Some paths by name, and how many more there are."""
    named = [f"`{os.fsdecode(path or b'.')}`" for path in paths[:_MOST_SHOWN]]
    more = [f"{len(paths) - _MOST_SHOWN:,} more"] if len(paths) > _MOST_SHOWN else []
    return ", ".join(named + more)


def set_aside(store: "Store", root: int, now: int) -> "list[str]":
    """Let work go on without the rows that nobody can act on; what became of each, in words."""
    unread, rows = journal.damaged(store.ledger), journal.unfinished(store.ledger)
    if not unread and not rows:
        return []
    # First the folders, durably: without a row the next start would take them for litter.
    folders = _show_folders(store, root, now) + _show_outside(store, [*unread, *rows])
    _sync(root)
    for row in (*unread, *rows):
        said: dict[str, Json] = {"restore": _text(row.id), "phase": _text(row.phase)}
        said |= {"row": _text(row.said), "folders": [_text(name) for name in folders]}
        fact = NewEvent(events.RESTORE_SET_ASIDE, said, now)
        store.ledger.record(fact, setting_aside=row.number)
    named = " and ".join(f"`{os.fsdecode(name)}`" for name in folders)
    where = f"what was displaced is in {named}" if folders else "and there is no folder of it"
    told = "the journal of a restore could not be read; it is in the log now, " + where
    left = "a restore could not be taken back; its journal is in the log now, " + where
    return [told] * len(unread) + [left] * len(rows)


def _show_folders(store: "Store", root: int, now: int) -> "list[bytes]":
    """Give the folders of restores that no row speaks of names that everybody can see."""
    rows = journal.read(store.ledger)
    known = {row.stage for row in rows if row.phase != journal.APPLYING}
    by_stage = {row.stage: row for row in rows}
    found = []
    for name in sorted(map(os.fsencode, os.listdir(root))):
        if not is_stage(name) or name in known:
            continue
        try:
            found.append(Stage(root, name, store.objects).show())
        except OSError:
            if name not in by_stage:
                raise
            # Nothing can be renamed here: what is nowhere else goes into the store instead.
            _rescue(store, root, by_stage[name], now)
    return found


def _rescue(store: "Store", root: int, row: "Journal", now: int) -> None:
    roots = Roots(root, store.objects, row, is_way_back=True)
    try:
        roots.open_stages()
        for restoring in roots.each:
            rescue.into_store(store, restoring, row, now)
    finally:
        roots.close()


def _sync(root: int) -> None:
    try:
        fsops.fsync(root)
    except OSError:
        if not os.fstatvfs(root).f_flag & os.ST_RDONLY:
            raise


def _show_outside(store: "Store", rows: "list[Damaged]") -> "list[bytes]":
    """The same beside files outside the project, as far as the rows still tell their ids."""
    stages = {PREFIX + row.id for row in rows if is_stage(PREFIX + row.id)}
    found = []
    for folder in outside.folders(store.ledger) if stages else ():
        try:
            fd = descent.open_folder(folder)
        except OSError:
            continue
        try:
            there = [Stage(fd, name, store.objects) for name in sorted(stages)]
            found += [os.path.join(folder, each.show()) for each in there if each.is_there()]
        finally:
            os.close(fd)
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
