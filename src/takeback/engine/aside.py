"""The journal of a restore that cannot be read: kept and out of the way, if somebody says so.

Nobody can tell where such a restore stopped, so nothing in the tree is changed. Its row goes into
the log as an event, byte for byte. Our folder, which may hold saves that are nowhere else, gets a
name that everybody can see: from then on it is a folder like any other, and checkpoints hold it.
"""

import os

from takeback.model.staging import PREFIX, is_stage
from takeback.store import events, fsops, journal, outside
from takeback.store.events import NewEvent
from takeback.store.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.jsontext import Json
    from takeback.store.journal import Damaged
    from takeback.store.store import Store


def left_alone(row: "Damaged") -> str:
    """What is said of a row that cannot be read whenever somebody comes across it."""
    return (
        "a restore was interrupted and cannot be taken back, because its journal is damaged; "
        f"what it displaced is in {row.stage}: `takeback verify --set-aside` keeps both"
    )


def set_aside(store: "Store", root: int, now: int) -> "list[str]":
    """Let work go on without the rows that cannot be read; what became of each, in words."""
    rows = journal.damaged(store.ledger)
    if not rows:
        return []
    # First the folders, durably: without a row the next start would take them for litter.
    folders = _show_folders(store, root) + _show_outside(store, rows)
    fsops.fsync(root)
    for row in rows:
        said: dict[str, Json] = {"restore": _text(row.id), "phase": _text(row.phase)}
        said |= {"row": _text(row.said), "folders": [_text(name) for name in folders]}
        fact = NewEvent(events.RESTORE_SET_ASIDE, said, now)
        store.ledger.record(fact, setting_aside=row.number)
    shown = " and ".join(f"`{os.fsdecode(name)}`" for name in folders)
    where = f"what was displaced is in {shown}" if folders else "and there is no folder of it"
    told = "the journal of a restore could not be read; it is in the log now, " + where
    return [told] * len(rows)


def _show_folders(store: "Store", root: int) -> "list[bytes]":
    """Give the folders of restores that no row speaks of names that everybody can see."""
    known = {row.stage for row in journal.read(store.ledger)}
    names = [name for name in map(os.fsencode, os.listdir(root)) if is_stage(name)]
    return [Stage(root, name, store.objects).show() for name in sorted(names) if name not in known]


def _show_outside(store: "Store", rows: "list[Damaged]") -> "list[bytes]":
    """The same beside files outside the project, as far as the rows still tell their ids."""
    stages = {PREFIX + row.id for row in rows if is_stage(PREFIX + row.id)}
    found = []
    for folder in outside.folders(store.ledger) if stages else ():
        try:
            fd = outside.open_folder(folder)
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
