"""The history as it would be without what is forgotten: rows, commits, events, packs.

With a writer of packs, what has to be made anew is written; with one that only counts, this is a
preview, and, once something was forgotten, the proof that nothing is left to do.
"""

from takeback.engine.purge import Purge
from takeback.engine.redaction import ForgottenTurn, Redaction
from takeback.errors import DamagedStoreError, NewerStoreError
from takeback.model.forget import GONE, TURN, Touched
from takeback.model.tree import NO_HASH, NO_OBJECT
from takeback.store import events, view
from takeback.store.packmerge import Piece
from takeback.store.packread import PackFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from takeback.engine.purge import Folder
    from takeback.model.forget import Wish
    from takeback.ports import ObjectTaker, Progress
    from takeback.store.rows import CheckpointRow
    from takeback.store.store import Store

    Said = dict[str, Any]

_BILLION = 1_000_000_000
_ONLY_ITS_OWN = (
    "SELECT c.number FROM checkpoints c JOIN turns t ON t.number = ?1"
    " WHERE c.number > t.before AND c.number < t.after AND c.gone IS NULL"
    " AND c.number < (SELECT max(number) FROM checkpoints)"
    " AND NOT EXISTS (SELECT 1 FROM deltas d WHERE d.checkpoint IN (c.number, c.number + 1)"
    "   AND d.turn IS NOT ?1)"
    " AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.number <> ?1"
    "   AND c.number IN (o.before, o.after))"
    " AND NOT EXISTS (SELECT 1 FROM restores r WHERE c.number IN (r.before, r.after, r.target))"
    " AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.checkpoint = c.number) ORDER BY c.number"
)
"""The states strictly inside a turn that nobody else has anything to do with."""


class Rewriting:
    """One run over the whole history; with the lock held."""

    def __init__(
        self,
        store: "Store",
        wish: "Wish",
        writer: "ObjectTaker",
        progress: "Progress | None" = None,
    ) -> None:
        self._store = store
        self._wish = wish
        self._writer = writer
        self._tell = progress or _silently
        self.packs = store.ledger.packs()
        self._held = self._holdings()
        self._known = {oid for held in self._held.values() for oid in held}
        self.purge = Purge(store.objects, writer, wish, self._known)
        turn = _turn(store, wish)
        self._turn = turn[1] if turn else None
        self._redaction = Redaction(wish, self.purge, self._turn)
        self._own = self._own_states(turn[0]) if turn else frozenset()
        self._rows = sorted(store.ledger.checkpoints(), key=lambda row: row.number)
        self._new: dict[str, Said] = {}
        self._old: set[bytes] = set()
        self._changed = self._own_changed = 0
        self._events = 0
        self._dead: dict[str, list[bytes]] = {}

    def run(self) -> None:
        """Go through everything."""
        if self._store.ledger.foreign_packs():
            raise NewerStoreError(
                "a newer Takeback stored something of which this one cannot tell what it holds",
                hint="update Takeback, and run the command again",
            )
        # The events first: whether a content is needed outside has to be known with the trees.
        for event in self._store.ledger.events():
            self._events += self._redaction.of(event) != event.payload
        self._trees()
        self._dead = self._find_dead()

    def _holdings(self) -> "dict[str, list[bytes]]":
        found = {}
        for name in self.packs:
            with PackFile(self._store.packs_dir + b"/" + name.encode()) as pack:
                found[name] = list(pack.objects())
        return found

    def _own_states(self, turn: int) -> "frozenset[int]":
        rows = self._store.ledger.rows(_ONLY_ITS_OWN, (turn,))
        return frozenset(int(number) for (number,) in rows)

    # -- checkpoints ---------------------------------------------------------------------------

    def _trees(self) -> None:
        above = _Above()
        for done, row in enumerate(self._rows):
            self._tell("looking through checkpoints", done, len(self._rows))
            if row.gone is not None:
                self._let_go(row)
            else:
                self._keep(row, above)

    def _let_go(self, row: "CheckpointRow") -> None:
        """A state whose files are gone leads nowhere; its hashes would still tell of them."""
        if row.tree != NO_HASH or row.root != NO_OBJECT:
            self._old |= {row.tree, row.root, row.view}
            none = NO_OBJECT.hex()
            self._new[row.id] = {"tree": NO_HASH.hex(), "root": none, "view": none}

    def _keep(self, row: "CheckpointRow", above: "_Above") -> None:
        is_own = row.number in self._own
        folder = self.purge.nothing_known(row) if is_own else self.purge.tree(row)
        old = self._commit(row)
        label = self._label(row)
        message = old.message if label == row.label else label.encode("utf-8", "surrogateescape")
        message = self._redaction.words(_text(message)).encode("utf-8", "surrogateescape")
        same = folder.oid == row.root and folder.strong == row.tree
        self._changed += not same
        self._own_changed += is_own and not same
        if same and message == old.message and above.is_kept(old):
            above.view = row.view
            self.purge.marks.add(row.view)
            self.purge.series[row.view] = b"c"
            return
        above.is_new = True
        seconds = row.created // _BILLION
        above.view = view.add_commit(
            self._writer, folder.view, above.view, seconds, message.rstrip(b"\n")
        )
        self._follow(row, folder, above)

    def _follow(self, row: "CheckpointRow", folder: "Folder", above: "_Above") -> None:
        """What the event of a checkpoint says of its tree now."""
        assert above.view is not None, "it was just made"
        new: Said = {
            "tree": folder.strong.hex(),
            "root": folder.oid.hex(),
            "view": above.view.hex(),
            "entries": folder.entries if folder.oid != row.root else row.entries,
        }
        old = {"tree": row.tree, "root": row.root, "view": row.view}
        if any(new[name] != old[name].hex() for name in old):
            self._new[row.id] = new
            self._old |= {id for name, id in old.items() if new[name] != id.hex()}

    def _label(self, row: "CheckpointRow") -> str:
        if not row.label:
            return row.label
        (event,) = self._store.ledger.events("WHERE seq = ?", (row.event,))
        return str(self._redaction.of(event).get("label", ""))

    def _commit(self, row: "CheckpointRow") -> "_Commit":
        try:
            return _Commit(self._store.objects.read(row.view)[1])
        except DamagedStoreError:
            # Only what it was called is lost, and that the log knows, too.
            title = row.label or f"checkpoint {row.id}"
            return _Commit(b"tree " + bytes(40) + b"\n\n" + title.encode() + b"\n")

    # -- what comes of it ----------------------------------------------------------------------

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._new or self._events or self._dead)

    def _find_dead(self) -> "dict[str, list[bytes]]":
        """The packs that hold something which nobody needs, and what of them is needed."""
        marks = self.purge.marks
        return {
            name: [oid for oid in held if oid in marks]
            for name, held in self._held.items()
            if not all(oid in marks for oid in held)
        }

    def pieces(self) -> "Iterator[Piece]":
        """What is copied out of such packs, each kind of thing by its versions, oldest first."""
        series = self.purge.series
        for name, held in self._dead.items():
            for oid in held:
                yield Piece(oid, name.encode(), series.get(oid, oid))

    def ids(self) -> "set[bytes]":
        """The hashes that must not be found in the end."""
        found = {id for id in self._old if any(id)}
        for oid in self.purge.taken:
            if oid not in self.purge.marks:
                found |= {oid, self.purge.hashes[oid]}
        return found

    def events(self) -> "dict[int, Said]":
        """What events have to say from now on, by number; only those that change."""
        live = set(self.packs) - self._dead.keys()
        changed = {}
        for event in self._store.ledger.events():
            said = self._redaction.of(event)
            if event.kind == events.CHECKPOINT_TAKEN:
                said.update(self._new.get(str(said.get("checkpoint")), {}))
            if said.get("packs"):
                # The name of a pack is a hash of what was in it, also of one that was merged since.
                said["packs"] = [pack for pack in said["packs"] if pack[0] in live]
            if said.get("dropped"):
                said["dropped"] = []
            if said != event.payload:
                changed[event.seq] = said
        return changed

    def touched(self) -> Touched:
        """What all of this touches."""
        found, purge = Touched(), self.purge
        found.paths = sorted(set(map(self._shown, purge.paths)))
        gone = {oid: size for oid, (size, _) in purge.taken.items() if oid not in purge.marks}
        found.versions, found.bytes = len(gone), sum(gone.values())
        found.checkpoints, found.gone = self._changed - self._own_changed, self._own_changed
        found.events = self._events
        found.turns = self._count_turns()
        found.elsewhere = sorted(
            (path, purge.names[oid])
            for oid, (_, path) in purge.taken.items()
            if oid in purge.names and self._wish.kind != TURN
        )
        return found

    def _shown(self, path: bytes) -> bytes:
        """A path as it can be told: without the text, if that is what is forgotten."""
        for text in self._wish.texts if self._wish.in_files else ():
            path = path.replace(text, GONE.encode())
        return path

    def _count_turns(self) -> int:
        if self._wish.kind == TURN:
            return 1
        query = "SELECT DISTINCT path, turn FROM deltas WHERE turn IS NOT NULL"
        paths = self.purge.paths
        return len({turn for path, turn in self._store.ledger.rows(query) if path in paths})


class _Above:
    """What the commit of the next checkpoint stands on."""

    def __init__(self) -> None:
        self.view: bytes | None = None
        self.is_new = False

    def is_kept(self, view: "_Commit") -> bool:
        """Whether the commit of a checkpoint already stands on the one before."""
        return not self.is_new and view.stands_on(self.view)


class _Commit:
    """A commit of the view, as far as it is needed here."""

    __slots__ = ("message", "parents", "tree")

    def __init__(self, data: bytes) -> None:
        head, _, self.message = data.partition(b"\n\n")
        lines = [line.split(b" ", 1) for line in head.split(b"\n")]
        self.parents = [_hex(line[1]) for line in lines if line[0] == b"parent"]
        self.tree = _hex(lines[0][1])

    def stands_on(self, parent: "bytes | None") -> bool:
        return self.parents == ([parent] if parent is not None else [])


def _hex(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return NO_OBJECT


def _turn(store: "Store", wish: "Wish") -> "tuple[int, ForgottenTurn] | None":
    if not wish.turn:
        return None
    query = "SELECT number, label FROM turns WHERE id = ?"
    for number, label in store.ledger.rows(query, (wish.turn,)):
        steps = store.ledger.rows("SELECT id FROM steps WHERE turn = ?", (number,))
        names = frozenset(str(id) for (id,) in steps)
        return int(number), ForgottenTurn(wish.turn, str(label), names)
    return None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _silently(doing: str, done: int, total: int) -> None:
    del doing, done, total
