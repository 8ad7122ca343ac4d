"""A forget under way: a row in the ledger says how far it is, a file of the store what it is about.

    begun       nothing was changed yet; it starts over
    committed   the history speaks of it no more; what is left of it in files has to go
    proved      everything was searched, and nothing was found; the file goes, then the row

What shall be forgotten is never in the ledger itself: so its pages, its log and its free space can
be searched for it in the end.
"""

import os

from takeback.model import forget, jsontext
from takeback.store import fsops
from takeback.store.home import read_small, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.forget import Wish
    from takeback.model.jsontext import Json
    from takeback.store.ledger import Ledger
    from takeback.store.sqlite import Connection
    from takeback.store.store import Store

BEGUN, COMMITTED, PROVED = "begun", "committed", "proved"
FILE = b"forgetting"
_LARGEST = 1 << 26


def under_way(ledger: "Ledger") -> "tuple[str, str] | None":
    """The id and the phase of a forget that was begun and is not done."""
    for id, phase in ledger.rows("SELECT id, phase FROM forgetting LIMIT 1"):
        return str(id), str(phase)
    return None


def begin(store: "Store", wish: "Wish") -> None:
    """From here on whoever takes the lock goes on with it."""
    write(store, wish, ())
    with store.ledger.transaction() as db:
        values = (wish.id, BEGUN, "{}")
        fsops.sql(db, "INSERT OR REPLACE INTO forgetting VALUES (?, ?, ?)", values)


def write(store: "Store", wish: "Wish", ids: "Iterable[bytes]") -> None:
    """Note what is to be forgotten, and the ids that must not be found in the end."""
    said: dict[str, Json] = {"wish": wish.facts(), "ids": [id.hex() for id in ids]}
    replace_file(store.path + b"/" + FILE, jsontext.dumps(said).encode(), durable=True)


def read(store: "Store") -> "tuple[Wish, set[bytes]] | None":
    """What was noted; None if there is nothing."""
    text = read_small(store.path + b"/" + FILE, limit=_LARGEST)
    if not text:
        return None
    said = jsontext.loads(text.decode())
    return forget.from_facts(said["wish"]), set(map(bytes.fromhex, said["ids"]))


def advance(db: "Connection", id: str, phase: str) -> None:
    """Note how far it is; in the transaction of whoever calls."""
    fsops.sql(db, "UPDATE forgetting SET phase = ? WHERE id = ?", (phase, id))


def end(store: "Store", id: str) -> None:
    """It is done, or was given up before anything was changed."""
    path = store.path + b"/" + FILE
    if os.path.lexists(path):
        fsops.unlink(path)
        fsops.fsync_dir(store.path)
    with store.ledger.transaction() as db:
        fsops.sql(db, "DELETE FROM forgetting WHERE id = ?", (id,))
