"""Which packs are written anew when a store is put in order, and what is copied from them; pure."""

from takeback.store.packmerge import Piece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.engine.reach import Reach

GARBAGE = 3
"""A pack is written anew when more than one part in so many of it is not needed."""


_FACTOR = 8
"""How much larger a pack is than the next smaller one that is left alone."""


class Order:
    """Which packs are written anew, and of which nothing is needed."""

    def __init__(
        self, reach: "Reach", share: int, *, full: bool, gone: "Callable[[int], bool]"
    ) -> None:
        self._reach = reach
        self._catalog = reach.catalog
        self._seen = len(reach.marks)
        self._live = live = [0] * len(self._catalog.names)
        for found, place, _, checkpoint in reach.marks:
            if not gone(checkpoint):
                live[place] += self._catalog.sizes[found]
        for place in reach.foreign:
            live[place] = 0  # it is left alone, so others need not be put in order with it
        self.dead = {place for place, size in enumerate(live) if not size} - reach.foreign
        chosen = _chosen(live, self._catalog.bytes, share, full=full)
        self.rewritten = chosen - self.dead - reach.foreign
        self.freed = sum(
            self._catalog.bytes[place] - live[place] for place in self.dead | self.rewritten
        )
        self.fewer = len(self.dead) + max(len(self.rewritten) - 1, 0)

    def fit(self, room: int) -> None:
        """Write anew only packs with garbage, those with the most first, in so many bytes."""
        sizes, live, fitting = self._catalog.bytes, self._live, set()
        for place in sorted(self.rewritten, key=lambda place: live[place] - sizes[place]):
            if sizes[place] > live[place] and live[place] <= room:
                fitting.add(place)
                room -= live[place]
        self.rewritten = fitting

    def pieces(self) -> "Iterable[Piece]":
        """What is copied, versions of one thing with the oldest first."""
        names, ids, things = self._catalog.names, self._catalog.ids, self._reach.marks.series()
        for at in range(self._seen - 1, -1, -1):
            found, place, series, _ = self._reach.marks[at]
            if place in self.rewritten:
                yield Piece(ids[found], names[place], things[series])

    def covers(self, reach: "Reach") -> bool:
        """Whether nothing that was marked since is in a pack that goes."""
        going = self.rewritten | self.dead
        since = range(self._seen, len(reach.marks))
        return going.isdisjoint(reach.foreign) and all(
            reach.marks[at][1] not in going for at in since
        )

    def dropped(self) -> "list[bytes]":
        """The names of the packs that nobody needs once the new ones are there."""
        return [self._catalog.names[place] for place in sorted(self.dead | self.rewritten)]


def _chosen(live: "list[int]", sizes: "list[int]", share: int, *, full: bool) -> "set[int]":
    """The packs to write anew: those with much garbage, and small ones until all are in order.

    In order means that each pack is at least eight times as large as the next smaller one: few
    have to begin series anew, whose first versions are whole, and no byte is copied in each run.
    """
    if full:
        return set(range(len(sizes)))
    chosen = {p for p, size in enumerate(sizes) if (size - live[p]) * share > size}
    order = sorted((p for p in range(len(sizes)) if live[p]), key=lambda p: live[p])
    split = 0
    for at in range(len(order) - 1, 0, -1):
        if live[order[at]] < _FACTOR * live[order[at - 1]]:
            split = at + 1
            break
    total = sum(live[p] for p in order[:split])
    while split and split < len(order) and live[order[split]] < _FACTOR * total:
        total += live[order[split]]
        split += 1
    return chosen | set(order[:split])
