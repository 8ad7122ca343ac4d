"""Let old files go and put packs together, while others go on working.

    trim    with the lock, a moment: one event says which checkpoints let their files go
    mark    without it: what is needed, as of that moment
    merge   without it: new packs with what is needed of old ones, beside the old ones
    commit  with the lock, a moment: what came since is marked, too; one event names the new packs
            and drops the old ones. If something is needed now that was not copied, it is merged
            again
    sweep   with the lock, a few files at a time: packs that nothing refers to go
    archive with the lock, some thousand events at a time: what nothing can undo is compressed

Who dies on the way leaves what was there and some packs that nothing refers to; the next run, or
whoever cleans up after a crash, removes them. What the first event let go is garbage from then on,
and any later run finds it.
"""

import errno
import os
from contextlib import closing

from takeback.errors import BusyError
from takeback.history import retention
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.model.reasons import Action
from takeback.model.results import Cleanup
from takeback.model.value import Value
from takeback.objects.pack_merge import GARBAGE, Order
from takeback.upkeep.reachable import ALWAYS, Reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.disk.lock import Held
    from takeback.history.retention import Rules, Trim
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import SealedPack
    from takeback.ports import Progress
    from takeback.store import Store

_TRIES = 4
_FULL = (errno.ENOSPC, errno.EDQUOT)
_RESERVE = 1 << 18
"""Bytes that stay free for the ledger where a disk is nearly full."""
_MOST_AT_ONCE = 200
_INDEXED = 36
"""What an object takes in the index of its pack."""


class Wish(Value):
    """What a run of gc shall do: `to_size` is how many bytes may be left, 0 for any number."""

    rules: "Rules"
    why: str = retention.AGE
    to_size: int = 0
    full: bool = False
    dry_run: bool = False


def run(
    store: "Store",
    held: "Callable[[], Held]",
    wish: Wish,
    clock: "Callable[[], int]",
    progress: "Progress | None" = None,
) -> Cleanup:
    """Do all of it; the caller has the right to tend the store."""
    return _Run(store, held, wish, clock, progress).run()


class _Run:
    """One run of gc."""

    def __init__(
        self,
        store: "Store",
        held: "Callable[[], Held]",
        wish: Wish,
        clock: "Callable[[], int]",
        progress: "Progress | None",
    ) -> None:
        self._store = store
        self._ledger = store.ledger
        self._held = held
        self._wish = wish
        self._clock = clock
        self._progress = progress
        self._done = Cleanup()
        self._is_short = False

    def run(self) -> Cleanup:
        done = self._done
        done.dry_run = self._wish.dry_run
        done.why, done.days = self._wish.why, self._wish.rules.days
        with self._held():
            self._require_sound()
            if not self._wish.dry_run:
                self._ledger.plans.delete_expired(self._clock())
            while self._store.sweep(_MOST_AT_ONCE):
                pass
        done.before, done.packs_before = self._size()
        beyond = self._horizon_for_size()
        with self._held():
            trim = self._trim(beyond)
        try:
            self._try_to_order(trim)
        except OSError as problem:
            if problem.errno not in _FULL:
                raise
            self._order_without_room(trim)
        if not self._wish.dry_run:
            self._clean_up()
            self._archive()
            with self._held():
                self._store.keep_reserve()
            done.after, done.packs_after = self._size()
        self._tell_what_stays(trim)
        return done

    def _try_to_order(self, trim: "Trim") -> None:
        for _ in range(_TRIES):
            if self._put_in_order(trim):
                return
        raise BusyError(
            "too many concurrent changes; nothing was compacted",
            hint=Action("gc"),
        )

    def _order_without_room(self, trim: "Trim") -> None:
        """Where new packs have no room: delete those that nothing needs, then try once more."""
        self._is_short = True
        self._try_to_order(trim)
        self._clean_up()
        self._is_short = False
        try:
            self._try_to_order(trim)
        except OSError as problem:
            if problem.errno not in _FULL:
                raise

    def _tell_what_stays(self, trim: "Trim") -> None:
        done, ledger, rules = self._done, self._ledger, self._wish.rules
        floor = trim.ranges[-1][1] if trim.ranges else 0
        floor = max(floor, ledger.care.trimmed())
        done.kept = ledger.care.count_with_files() - (done.checkpoints if done.dry_run else 0)
        done.turns_kept = ledger.care.turns_above(floor)
        oldest = ledger.care.oldest_above(floor)
        done.oldest = oldest / 1e9 if oldest is not None else None
        done.held = tuple(row.id for row in ledger.care.kept())
        if rules.size_cap and done.after > rules.size_cap:
            done.warnings = (f"the history takes {done.after:,} bytes, more than `size_cap`",)

    def _size(self) -> "tuple[int, int]":
        return self._store.objects.size(), len(self._ledger.packs())

    def _require_sound(self) -> None:
        """Nobody removes anything from a store that lost something."""
        self._ledger.journal.require_sound(in_all_lines=True)
        self._store.require_whole("nothing was removed")

    # -- trim ------------------------------------------------------------------------------

    def _horizon_for_size(self) -> int:
        """Where everything would have to begin to fit into the size that is wanted; 0 is nowhere.

        Each object counts for the newest checkpoint that needs it.
        """
        limit = self._wish.to_size
        if not limit or self._done.before <= limit:
            return 0
        by_number: dict[int, int] = {}
        with closing(Reach(self._store.reader())) as reach:
            self._mark(reach)
            for found, _, _, number in reach.marks:
                size = reach.catalog.sizes[found] + _INDEXED
                by_number[number] = by_number.get(number, 0) + size
        total, horizon = by_number.pop(ALWAYS, 0), 0
        for number in sorted(by_number, reverse=True):
            total += by_number[number]
            if total > limit:
                break
            horizon = number
        return horizon or self._ledger.care.newest()

    def _trim(self, beyond: int) -> "Trim":
        """Say which checkpoints let their files go: from that commit on they are gone."""
        wish, done, now = self._wish, self._done, self._clock()
        trim = retention.decide(self._ledger, wish.rules, now)
        if beyond > trim.horizon:
            trim = retention.decide(self._ledger, wish.rules, now, beyond=beyond)
            done.why = retention.TO_SIZE
        done.checkpoints, done.turns = trim.checkpoints, trim.turns
        if trim.ranges and not wish.dry_run:
            first = self._ledger.checkpoints.numbered(trim.ranges[-1][1] + 1)
            said: dict[str, Json] = {
                "checkpoints": [list(each) for each in trim.ranges],
                "details": first.event - 1 if first is not None else 0,
                "count": trim.checkpoints,
                "turns": trim.turns,
                "why": done.why,
                "days": wish.rules.days,
            }
            self._ledger.record(NewEvent(events.HISTORY_TRIMMED, said, now))
        return trim

    # -- mark, merge, commit ---------------------------------------------------------------

    def _put_in_order(self, trim: "Trim") -> bool:
        """Mark, merge and commit; False if something came in between that needs more."""
        wish, done = self._wish, self._done
        with closing(Reach(self._store.reader())) as reach:
            self._mark(reach)
            gone = self._gone_if(trim) if wish.dry_run else lambda _: False
            # Who wants it smaller wants all garbage to go.
            share = 1 << 62 if done.why == retention.TO_SIZE else GARBAGE
            order = Order(reach.catalog, reach.marks, share, full=wish.full, gone=gone)
            if self._is_short:
                order.fit(self._store.objects.free_space() - _RESERVE)
            done.merged, done.dropped = len(order.rewritten), len(order.dead)
            if wish.dry_run:
                done.packs_after = done.packs_before - order.fewer
                done.after = done.before - order.freed
                return True
            if not order.rewritten and not order.dead:
                return True
            return self._merge(reach, order)

    def _mark(self, reach: Reach) -> None:
        with self._ledger.snapshot() as ledger:
            reach.everything(ledger, ledger.care.lowest_floor(), self._progress)

    def _gone_if(self, trim: "Trim") -> "Callable[[int], bool]":
        """Of a dry run: whether a checkpoint would be gone."""
        return lambda number: any(first <= number <= last for first, last in trim.ranges)

    def _merge(self, reach: Reach, order: Order) -> bool:
        made: list[SealedPack] = []
        reach.close()
        try:
            made += self._store.objects.merge(order.pieces(), self._progress)
            # Most of what came meanwhile is looked at before anybody has to wait.
            with self._ledger.snapshot() as ledger:
                reach.follow(ledger)
        except BaseException:
            self._discard(made)
            raise
        with self._held():
            reach.follow(self._ledger)
            # The old packs are removed next, so the new ones must be there.
            if order.is_current() and self._store.objects.has_on_disk(made):
                # Whether an error here means that it failed, only the ledger knows: nothing is
                # removed then but by who asks it.
                self._commit(order, made)
                return True
        self._discard(made)
        return False

    def _commit(self, order: Order, made: "list[SealedPack]") -> None:
        """One event: from here on objects are looked for in the new packs."""
        new = {pack.name for pack in made}
        said: dict[str, Json] = {
            "packs": pack_facts(made),
            "dropped": [name.decode() for name in order.dropped() if name not in new],
            "before": self._done.before,
            "merged": len(order.rewritten),
            "let_go": len(order.dead),
        }
        self._ledger.record(NewEvent(events.PACKS_MERGED, said, self._clock()))

    def _discard(self, made: "list[SealedPack]") -> None:
        """Remove new packs that nothing refers to; one that was there before has their name."""
        self._ledger.abandon()
        known = {name.encode() for name in self._ledger.packs()}
        self._store.objects.discard(pack for pack in made if pack.name not in known)

    # -- sweep -----------------------------------------------------------------------------

    def _clean_up(self) -> None:
        """Let the git view follow, then remove what nothing refers to, a few files at a time."""
        with self._held():
            for _ in self._store.mend_view():
                pass
        left = True
        while left:
            with self._held():
                left = self._store.sweep(_MOST_AT_ONCE)

    def _archive(self) -> None:
        added = -1
        while added:
            with self._held():
                added = self._ledger.archive()
            self._done.archived += added
        # SQLite writes the file anew, and then once more through its log.
        needed = 2 * os.path.getsize(self._ledger.path) + _RESERVE
        if self._wish.full and self._store.objects.free_space() > needed:
            with self._held():
                self._ledger.shrink()
