"""Check the ledger: its pages, its chain, and that its tables say what its events say."""

import json

from takeback.errors import DamagedStoreError
from takeback.store import sqlite
from takeback.store.rows import (
    CHECKPOINT_TAKEN,
    NO_CHAIN,
    chain_over,
    commit_to,
    row_facts,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from takeback.store.rows import CheckpointRow
    from takeback.store.sqlite import Connection


def check(
    db: "Connection", checkpoints: "Callable[[], Iterator[CheckpointRow]]"
) -> "Iterator[str]":
    """What is wrong, in words."""
    try:
        yield from _check_pages(db)
        yield from _check_chain(db)
        yield from _check_tables(db, checkpoints())
    except (sqlite.DatabaseError, DamagedStoreError) as problem:
        yield f"the ledger cannot be read: {problem}"
    except (TypeError, ValueError, KeyError, AttributeError) as problem:
        yield f"the ledger holds values of the wrong kind: {problem!r}"


def _check_pages(db: "Connection") -> "Iterator[str]":
    for (said,) in db.execute("PRAGMA integrity_check(20)"):
        if said != "ok":
            yield f"the ledger is damaged: {said}"


def _check_chain(db: "Connection") -> "Iterator[str]":
    expected, chain = 1, NO_CHAIN
    for seq, kind, at, salt, commitment, link, text in db.execute(
        "SELECT seq, kind, at, salt, commitment, chain, payload FROM events ORDER BY seq"
    ):
        if seq != expected:
            yield f"event {expected} of the ledger is missing"
        if text is not None and commit_to(salt, text) != commitment:
            yield f"event {seq} of the ledger was changed after it was written"
        if chain_over(chain, seq, kind, at, commitment) != link:
            yield f"event {seq} of the ledger does not follow from the one before"
        expected, chain = seq + 1, link


def _check_tables(db: "Connection", checkpoints: "Iterator[CheckpointRow]") -> "Iterator[str]":
    rows = {row.event: row for row in checkpoints}
    packs = {pack[0]: list(pack) for pack in db.execute("SELECT * FROM packs")}
    taken = "SELECT seq, at, payload FROM events WHERE kind = ? ORDER BY seq"
    for seq, at, text in db.execute(taken, (CHECKPOINT_TAKEN,)):
        said = json.loads(text)
        row = rows.pop(seq, None)
        if row is None or row_facts(row) != {key: said[key] for key in row_facts(row)}:
            yield f"the row of checkpoint `{said['checkpoint']}` is not what event {seq} says"
        elif row.created != at:
            yield f"the time of checkpoint `{row.id}` is not what event {seq} says"
        for pack in said["packs"]:
            if packs.pop(pack[0], None) != pack:
                yield f"the row of pack {pack[0]} is not what event {seq} says"
    for number in packs:
        yield f"no event speaks of pack {number}"
    for row in rows.values():
        yield f"no event speaks of checkpoint `{row.id}`"
