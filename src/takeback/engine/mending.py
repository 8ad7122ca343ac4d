"""Makes again what follows from something else: nothing is lost by it, and nothing decided."""

import os

from takeback.errors import DamagedStoreError, TakebackError
from takeback.model.staging import is_stage
from takeback.store.packread import PackFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.store.store import Store


def mend(store: "Store") -> "Iterator[str]":
    """Put right what can be, with the lock held; say what.

    The tables come last: they are made from the events, if those are as they were written.
    """
    yield from store.mend_view()
    yield from _litter(store)
    yield from _indexes(store)
    yield from _tables(store)


def stages(root: bytes) -> "set[bytes]":
    """The folders of ours that are in a work tree."""
    return {name for name in os.listdir(root) if is_stage(name)}


def never_finished(store: "Store") -> "Iterator[bytes]":
    """The files that a process left which died: nothing refers to them."""
    yield from store.litter()
    for name in sorted(os.listdir(store.packs_dir)):
        if name.startswith(b"tmp-") or name.endswith(b".tmp"):
            yield store.packs_dir + b"/" + name
    for name in _litter_packs(store):
        yield store.packs_dir + b"/" + name


def _litter_packs(store: "Store") -> "list[bytes]":
    """Packs that no event names, unless they may be what is left of a lost part of the ledger."""
    is_whole = store.knows_its_packs() and not any(store.check_view())
    return store.stray_packs() if is_whole else []


def _litter(store: "Store") -> "Iterator[str]":
    before = set(never_finished(store))
    store.recover()
    for path in sorted(before - set(never_finished(store))):
        yield f"`{os.fsdecode(os.path.basename(path))}` was never finished; removed"


def _indexes(store: "Store") -> "Iterator[str]":
    for name in sorted(store.ledger.packs()):
        with PackFile(store.packs_dir + b"/" + name.encode()) as pack:
            what = pack.index_problem()
            if not what:
                continue
            try:
                pack.rewrite_index()
            except (DamagedStoreError, OSError):
                continue  # the pack itself is damaged, and that is found elsewhere
            yield f"{what}; made again"


def _tables(store: "Store") -> "Iterator[str]":
    wrong = [what for what in store.ledger.check() if "of the table" in what]
    if not wrong or any(store.check_anchor()):
        return  # the tables are all that still knows of events that are gone
    try:
        store.ledger.rebuild()
    except TakebackError:
        return
    yield f"{len(wrong)} rows of the tables were not what the events say; all were made again"
