"""A checkpoint as the ledger holds it, and what its event says of it; entries as rows say them."""

from takeback.errors import DamagedStoreError
from takeback.model.tree import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from takeback.model.json_text import Json
    from takeback.objects.pack_write import SealedPack

_TYPES = (int, str, int, bytes, bytes, bytes, int, str, int, int, int | None)


class CheckpointRow:
    """One committed checkpoint as the ledger holds it.

    `gone` is the event that let its files go; they can no longer be read then.
    """

    __slots__ = (
        "changed",
        "created",
        "entries",
        "event",
        "gone",
        "id",
        "label",
        "number",
        "root",
        "tree",
        "view",
    )

    def __init__(
        self,
        number: int,
        id: str,
        event: int,
        tree: bytes,
        root: bytes,
        view: bytes,
        created: int,
        label: str,
        entries: int,
        changed: int,
        gone: "int | None" = None,
    ) -> None:
        self.number = number
        self.id = id
        self.event = event
        self.tree = tree
        self.root = root
        self.view = view
        self.created = created
        self.label = label
        self.entries = entries
        self.changed = changed
        self.gone = gone

    @classmethod
    def checked(cls, values: "tuple[object, ...]") -> "CheckpointRow":
        """A row as the database gave it; a flipped bit can make a number out of a text."""
        if len(values) != len(_TYPES) or not all(map(isinstance, values, _TYPES)):
            raise DamagedStoreError("a row of the ledger holds values of the wrong kind")
        return cls(*values)  # type: ignore[arg-type]

    def values(self) -> "tuple[bytes | str | int | None, ...]":
        """What the row holds, in the order of the table's columns."""
        place = (self.number, self.id, self.event, self.tree, self.root)
        shown = (self.view, self.created, self.label)
        return *place, *shown, self.entries, self.changed, self.gone


def row_from(number: int, event: int, at: int, said: "Mapping[str, Json]") -> CheckpointRow:
    """The row that an event of a checkpoint speaks of."""
    return CheckpointRow.checked(
        (
            number,
            said["checkpoint"],
            event,
            bytes.fromhex(str(said["tree"])),
            bytes.fromhex(str(said["root"])),
            bytes.fromhex(str(said["view"])),
            at,
            said["label"],
            said["entries"],
            said["changed"],
            None,
        )
    )


def row_facts(row: CheckpointRow) -> "dict[str, Json]":
    """What the event of a checkpoint says about its row."""
    return {
        "checkpoint": row.id,
        "label": row.label,
        "tree": row.tree.hex(),
        "root": row.root.hex(),
        "view": row.view.hex(),
        "entries": row.entries,
        "changed": row.changed,
    }


def pack_facts(packs: "Iterable[SealedPack]") -> "Json":
    """What any event says about the packs that come with it: name, bytes, number of objects."""
    return [[p.name.decode(), p.size, p.objects] for p in packs]


def entry_facts(entry: "Entry | None") -> "Json":
    """An entry as an event or a row of the journal says it; without its name."""
    if entry is None:
        return None
    hashes = (entry.strong.hex(), entry.oid.hex())
    return [entry.mode, entry.flags, entry.size, *hashes, entry.mtime]


def entry_from(facts: "list[int | str] | None") -> "Entry | None":
    """The entry that such facts speak of."""
    if facts is None:
        return None
    mode, flags, size, strong, oid, mtime = facts
    hashes = bytes.fromhex(str(strong)), bytes.fromhex(str(oid))
    return Entry(b"", int(mode), int(flags), int(size), hashes[0], int(mtime), hashes[1])
