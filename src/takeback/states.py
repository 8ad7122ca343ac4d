"""The states of a project, to compare and to read: its checkpoints, and now. Changes nothing."""

import time

from takeback.engine.compare import Comparison, Saved
from takeback.engine.paths import Place, choose, read_file
from takeback.errors import TakebackError
from takeback.store import mounts
from takeback.store.failures import FailingAs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from takeback.engine.compare import State
    from takeback.ports import Progress
    from takeback.store.rows import CheckpointRow
    from takeback.store.store import Store
    from takeback.surroundings import Surroundings


class States:
    """Any state of one project's tree. No reference, None, means now: the files on disk."""

    def __init__(
        self, store: "Store", around: "Surroundings", resolve: "Callable[[str], CheckpointRow]"
    ) -> None:
        self._store = store
        self._around = around
        self._resolve = resolve

    def compare(
        self,
        before: "str | None",
        after: "str | None",
        paths: "Iterable[bytes]",
        inside: bytes,
        progress: "Progress | None",
    ) -> Comparison:
        """Where two states differ.

        `paths` are counted from the folder `inside` of the project, or else from its root.
        """
        opened: list[State] = []
        with FailingAs(TakebackError, "nothing was compared"):
            try:
                opened.append(self._open(before, progress))
                opened.append(self._open(after, progress))
                chosen = choose(opened, paths, self._place(inside))
                return Comparison(opened[0], opened[1], chosen)
            except BaseException:
                for state in opened:
                    state.close()
                raise

    def read(self, ref: "str | None", path: bytes, inside: bytes) -> "Iterator[bytes]":
        """What a file held in a state, piece by piece, all of it verified by the end.

        An error about the path comes at once.
        """
        from itertools import chain

        pieces = self._pieces(ref, path, inside)
        return chain([next(pieces, b"")], pieces)

    def _pieces(self, ref: "str | None", path: bytes, inside: bytes) -> "Iterator[bytes]":
        with FailingAs(TakebackError, "nothing could be read"):
            state = self._open(ref, None)
            try:
                yield from read_file(state, ref or "@", path, self._place(inside))
            finally:
                state.close()

    def _place(self, inside: bytes) -> Place:
        return Place(self._around.root, inside)

    def _open(self, ref: "str | None", progress: "Progress | None") -> "State":
        if ref is not None:
            return Saved(self._store.reader(), self._resolve(ref))
        from takeback.engine.now import Look, Now
        from takeback.store.statcache import StatCache

        look = Look(
            root=self._around.open_root(),
            rules=self._around.rules,
            mounts=mounts.below(self._around.root),
            strangers=self._around.strangers(),
            at=time.time_ns(),
            progress=progress,
        )
        mark = self._around.mark(look.mounts, look.strangers)
        # A cache of its own: the project's belongs to whoever holds the lock.
        return Now(self._store, StatCache(self._store.index_path, mark), look)
