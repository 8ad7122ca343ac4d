"""Check that every byte in the store is what was written, and say what any damage touches."""

from takeback.errors import DamagedStoreError, TakebackError
from takeback.model.tree import FOLDER
from takeback.model.values import Damage, Verification
from takeback.store import view
from takeback.store.gitobjects import BLOB
from takeback.store.packread import PackFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.model.tree import Entry
    from takeback.ports import Progress
    from takeback.store.rows import CheckpointRow
    from takeback.store.store import Store

    Key = tuple[bytes, int, bytes]


def verify(store: "Store", progress: "Progress | None" = None) -> Verification:
    """Re-hash everything; damage is collected, never raised."""
    check = _Check(store, progress)
    check.ledger()
    try:
        rows = list(store.ledger.checkpoints())
        packs = store.ledger.packs()
    except TakebackError as problem:
        check.note(str(problem))
        rows, packs = [], {}
    check.packs(packs)
    check.trees(rows)
    check.view(rows)
    return Verification(
        checkpoints=len(rows),
        packs=len(packs),
        objects=len(check.strong),
        bytes=store.packs_size(),
        damage=tuple(check.damage),
        repaired=tuple(check.repaired),
    )


class _Check:
    """One run over everything in a store."""

    def __init__(self, store: "Store", progress: "Progress | None") -> None:
        self._store = store
        self._progress = progress
        self.damage: list[Damage] = []
        self.strong: dict[bytes, bytes | None] = {}
        """The SHA-256 of every sound blob; None for trees and commits."""
        self.repaired: list[str] = []

    def note(self, what: str, checkpoints: "tuple[str, ...]" = ()) -> None:
        """Add one damage to the list."""
        self.damage.append(Damage(what, checkpoints))

    def ledger(self) -> None:
        """The ledger's pages, its chain, and that its tables say what its events say."""
        for what in self._store.ledger.check():
            self.note(what)
        try:
            for what in self._store.check_anchor():
                self.note(what)
        except TakebackError as problem:
            self.note(str(problem))

    def packs(self, packs: "dict[int, str]") -> None:
        """Every pack: each byte, each object, and its index."""
        for done, (number, name) in enumerate(sorted(packs.items())):
            if self._progress is not None:
                self._progress("verifying packs", done, len(packs))
            with PackFile(self._store.packs_dir + b"/" + name.encode()) as pack:
                problems = pack.check(self._on_object)
                made_with = self._store.ledger.made_with(number) if problems else ()
                for what in problems:
                    self.note(f"pack {number}: {what}", made_with)
                if not problems:
                    self._mend_index(number, pack)

    def _mend_index(self, number: int, pack: PackFile) -> None:
        """An index is made from its pack, so a bad one is simply made again."""
        what = pack.index_problem()
        if what:
            pack.rewrite_index()
            self.repaired.append(f"pack {number}: {what}; made again")

    def _on_object(self, oid: bytes, kind: int, strong: "bytes | None") -> None:
        self.strong[oid] = strong if kind == BLOB else None

    # -- trees -----------------------------------------------------------------------------

    def trees(self, rows: "list[CheckpointRow]") -> None:
        """Every manifest of every checkpoint, and that all it names is there and sound."""
        bad: dict[Key, list[str]] = {}
        seen: set[Key] = set()
        for row in rows:
            self._check_tree((row.root, row.pack, row.tree), seen, bad)
        if bad:
            self._name_checkpoints(rows, bad)

    def _check_tree(self, root: "Key", seen: "set[Key]", bad: "dict[Key, list[str]]") -> None:
        stack = [root]
        while stack:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            try:
                manifest = self._store.objects.manifest(*key)
            except DamagedStoreError as problem:
                bad.setdefault(key, []).append(str(problem))
                continue
            for entry in manifest.entries:
                if entry.reason:
                    continue
                if entry.kind == FOLDER:
                    stack.append((entry.oid, entry.number, entry.strong))
                elif self.strong.get(entry.oid) != entry.strong:
                    bad.setdefault(key, []).append(self._missing(entry))

    def _missing(self, entry: "Entry") -> str:
        name = entry.name.decode("utf-8", "backslashreplace")
        how = "damaged" if entry.oid in self.strong else "missing or damaged"
        return f"the content of `{name}` ({entry.oid.hex()}) is {how}"

    def _name_checkpoints(self, rows: "list[CheckpointRow]", bad: "dict[Key, list[str]]") -> None:
        touched: dict[str, list[str]] = {}
        for row in rows:
            for key in self._reachable((row.root, row.pack, row.tree)):
                for what in bad.get(key, ()):
                    named = touched.setdefault(what, [])
                    if row.id not in named:
                        named.append(row.id)
        for what, named in touched.items():
            self.note(what, tuple(named))

    def _reachable(self, root: "Key") -> "Iterator[Key]":
        stack, seen = [root], set()
        while stack:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            yield key
            try:
                manifest = self._store.objects.manifest(*key)
            except DamagedStoreError:
                continue
            stack += ((e.oid, e.number, e.strong) for e in manifest.folders())

    # -- view ------------------------------------------------------------------------------

    def view(self, rows: "list[CheckpointRow]") -> None:
        """That the git view shows what the ledger says."""
        for row in rows:
            for commit in (row.view, row.keep):
                if commit not in self.strong:
                    self.note(f"the commit `{commit.hex()}` of the git view is missing", (row.id,))
        self.repaired += self._store.mend_view()
        for what in self._store.check_view():
            self.note(what)
        for commit in view.lost(self._store.git_dir):
            self.note(
                f"the ledger lost its end: the git view knows the commit `{commit.hex()}`, "
                "the ledger does not"
            )
