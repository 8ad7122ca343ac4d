"""Forget something for good: out of packs, trees, events, tables, log, free space and leftovers.

    begin     what shall go is noted; whoever takes the lock next goes on from here
    rewrite   trees, commits and packs without it are written beside the old ones
    commit    one transaction: events say something else, all tables follow. Now it is forgotten
    clean     old packs, caches and litter go; the ledger is written anew without free space
    prove     everything is searched, byte by byte and unpacked
    end       the note goes

What fails before the commit leaves everything as it was. What fails after it, or dies at any point,
is taken up again by whoever takes the lock next.
"""

import hashlib
import os
import time

from takeback.disk import descent, failures, operations
from takeback.disk.failures import FailingAs
from takeback.disk.home import read_small, replace_file
from takeback.disk.sqlite import DatabaseError
from takeback.effects.saved import care
from takeback.errors import (
    BusyError,
    DamagedStoreError,
    TakebackError,
    UnfinishedError,
    UnknownReferenceError,
    UsageError,
)
from takeback.history import lookup, references
from takeback.history.compare import Saved
from takeback.history.lookup import Place
from takeback.ledger import database, retention
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.model import forgotten, ids, reasons, tools
from takeback.model.forgotten import ForgetRequest, Forgotten
from takeback.model.reasons import Action, Reason
from takeback.model.text import json_text
from takeback.model.value import Value
from takeback.model.words import RUNNING
from takeback.objects import git_view
from takeback.objects.git_objects import BLOB, object_id
from takeback.undo import apply
from takeback.upkeep import search
from takeback.upkeep.purge import Sizing
from takeback.upkeep.rewrite import Rewriting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.capture.workspace import Workspace
    from takeback.ledger.ledger import Ledger
    from takeback.model.forgotten import Touched
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import PackWriter, SealedPack
    from takeback.ports import Progress
    from takeback.store import Store

_BILLION = 1e9
_LARGEST = 1 << 26
_PATIENCE = 60.0
"""Seconds to wait for a gc, which may have many packs."""
_ABOUT_OLD_REFS = (b"/packed-refs", b"/FETCH_HEAD", b"/ORIG_HEAD", b"/objects/info/commit-graph")


class Target(Value):
    """What somebody names to be forgotten; one of paths, turn, content and text."""

    paths: "tuple[bytes, ...]" = ()
    turn: str = ""
    content: "bytes | None" = None
    text: str = ""
    names: bool = False
    inside: bytes = b""


class Forgetter:
    """Forgets in one project, and finishes what somebody began."""

    def __init__(self, work: "Workspace", progress: "Progress | None" = None) -> None:
        self._work = work
        self._progress = progress

    @property
    def _ledger(self) -> "Ledger":
        return self._work.ledger

    def forget(self, target: "Target", *, dry_run: bool) -> Forgotten:
        """Delete something from the history for good; with `dry_run`, only look for it."""
        with (
            FailingAs(TakebackError, "nothing was forgotten"),
            self._work.store.hold_gc(_PATIENCE),
            self._work.held(),
        ):
            self._forgetting().go_on()
            wish = self._wish(target)
            if dry_run:
                return Forgotten(wish, 0.0, self._forgetting().preview(wish), 0)
            try:
                return self._forgetting().carry_out(wish)
            finally:
                self._work.drop_stat_cache()

    def resume(self) -> bool:
        """Go on with a forget that was interrupted; False if there is none."""
        with FailingAs(TakebackError, "forgetting is not finished"):
            began = self._ledger.forgets.under_way() is not None
            with self._work.store.hold_gc(_PATIENCE), self._work.held():
                self._forgetting().go_on()
                self._work.drop_stat_cache()
                return began

    def publish(self) -> None:
        """See that nobody takes the packs of a history that was forgotten for lost ones."""
        if self._ledger.forgets.is_committed():
            self._forgetting().publish()

    def resume_after_crash(self) -> None:
        """Go on with a forget whose process died. Nobody else has to fail if that does."""
        work, store = self._work, self._work.store
        if not store.is_forgetting():
            return
        if store.gc_lock.is_held:
            # Whoever puts packs in order has some that nothing refers to yet; so not now.
            store.lock.leave_unclean()
            return
        work.drop_stat_cache()
        try:
            meaning = "forgetting is not finished"
            with FailingAs(TakebackError, meaning), store.hold_gc(patience=0):
                done = self._forgetting().go_on()
        except TakebackError as problem:
            store.lock.leave_unclean()
            work.recovered += (Reason(reasons.FORGETTING, problem=str(problem)),)
        else:
            if done is not None:
                work.recovered += (Reason(reasons.FORGOT),)

    def _forgetting(self) -> "Forgetting":
        work = self._work

        def sweep(wish: "ForgetRequest", is_dry: bool) -> int:
            if is_dry:
                return care.forget(work, wish, dry_run=True)
            root = work.rules.open_root()
            try:
                apply.sweep(work.store, root)
            finally:
                os.close(root)
            return care.forget(work, wish)

        return Forgetting(work.store, time.time_ns(), sweep, self._progress)

    # -- what is meant -------------------------------------------------------------------------

    def is_path(self, word: bytes, inside: bytes = b"") -> bool:
        """Whether a word names something that the history, or the work tree, knows as a path."""
        if os.path.lexists(os.path.join(self._work.root, inside, word)):
            return True
        try:
            within, beyond = self._sorted((word,), inside)
        except UsageError:
            return False
        return any(map(self._is_known, within)) or any(
            self._ledger.forgets.is_outside(path) for path in beyond
        )

    def _is_known(self, path: bytes) -> bool:
        """Whether some turn, or somebody else, changed a path, or the newest state holds it."""
        if self._ledger.forgets.is_changed(path):
            return True
        newest = self._ledger.checkpoints.newest()
        if newest is None:
            return False
        state = Saved(self._work.store.reader(), newest, self._ledger)
        try:
            return lookup.find(state, path) is not None
        finally:
            state.close()

    def _wish(self, target: "Target") -> ForgetRequest:
        paths, turn, content, text = target.paths, target.turn, target.content, target.text
        given = [bool(paths), bool(turn), content is not None, bool(text)]
        if sum(given) != 1:
            raise UsageError(
                "forget one thing at a time: paths, a turn, a content or a text",
                hint=Action("forget"),
            )
        id = ids.from_entropy(os.urandom(8))
        if paths:
            within, beyond = self._sorted(paths, target.inside)
            return ForgetRequest(forgotten.PATH, id, within, beyond, names=target.names)
        if content is not None:
            return _of_content(id, content)
        if turn:
            return ForgetRequest(forgotten.TURN, id, turn=self._turn_meant(turn))
        raw = os.fsencode(text)
        if len(raw) < forgotten.SHORTEST_TEXT:
            raise UsageError(
                f"a text of less than {forgotten.SHORTEST_TEXT} bytes would match too much",
                hint="give a longer text",
            )
        return ForgetRequest(forgotten.TEXT, id, texts=(raw,), in_files=True)

    def _sorted(
        self, paths: "tuple[bytes, ...]", inside: bytes
    ) -> "tuple[tuple[bytes, ...], tuple[bytes, ...]]":
        """Paths in the project, counted from its root, and whole ones of files outside."""
        place, within, beyond = Place(self._work.root, inside), [], []
        for path in paths:
            whole = descent.whole(self._work.root, inside, path)
            if tools.inside(self._work.root, self._work.root, whole) is None and path.startswith(
                (b"/", b"..")
            ):
                beyond.append(whole)
                continue
            found = self._meant(place, path)
            if not found:
                raise UsageError(
                    "the whole project cannot be forgotten like this",
                    hint=Action("remove-project", id=self._work.id),
                )
            within.append(found)
        return tuple(within), tuple(beyond)

    def _meant(self, place: "Place", path: bytes) -> bytes:
        candidates = place.candidates(path)
        for each in candidates:
            there = os.path.lexists(os.path.join(self._work.root, each))
            if there or self._is_known(each):
                return each
        return candidates[0]

    def _turn_meant(self, ref: str) -> str:
        meant = references.find(self._ledger, ref, time.time())
        if meant.kind != references.TURN or meant.before:
            raise UnknownReferenceError(f"`{ref}` is not a turn", hint=Action("log"))
        turn = self._ledger.turns.get(self._ledger.turns.id_of(meant.number))
        if turn.status == RUNNING:
            raise UsageError(f"`{ref}` is still running", hint="forget it when it has ended")
        return turn.id


class Forgetting:
    """Forgets in one store; with the lock held.

    `sweep` removes what restores left in the tree, and what rescues hold of it; or counts that.
    """

    def __init__(
        self,
        store: "Store",
        now: int,
        sweep: "Callable[[ForgetRequest, bool], int]",
        progress: "Progress | None" = None,
    ) -> None:
        self._store = store
        self._now = now
        self._sweep = sweep
        self._progress = progress

    def preview(self, wish: "ForgetRequest") -> "Touched":
        """What forgetting would touch; nothing is written."""
        self._require_possible(wish)
        return self._touched(wish, self._would(wish))

    def _would(self, wish: "ForgetRequest") -> Rewriting:
        would = Rewriting(self._store, wish, Sizing(), self._progress)
        would.run()
        return would

    def _touched(self, wish: "ForgetRequest", would: Rewriting) -> "Touched":
        """What it touches; an error if it is not there at all, not even in what nobody needs."""
        touched = would.touched()
        is_nothing = touched.is_nothing and not self._sweep(wish, True)
        if is_nothing and not self._is_left_over(wish):
            raise UnknownReferenceError(
                "nothing of it is in the history of this project",
                hint=Action("log"),
            )
        return touched

    def _is_left_over(self, wish: "ForgetRequest") -> bool:
        try:
            search.prove(self._store, wish, wish.hashes, self._progress)
        except UnfinishedError:
            return True
        return False

    def carry_out(self, wish: "ForgetRequest") -> Forgotten:
        """Forget. When this returns, everything was searched and nothing was found."""
        self._require_possible(wish)
        self._note(wish, ())
        self._store.ledger.forgets.begin(wish.id)
        try:
            touched = self._rewrite(wish)
        except BaseException as problem:
            self._store.ledger.abandon()
            if not self._store.ledger.forgets.is_committed():
                self._give_up(wish, problem)
                raise
            self._store.lock.leave_unclean()
            raise self._unfinished(problem) from problem
        return self._finish(wish, touched)

    def go_on(self) -> "Forgotten | None":
        """Go on with what somebody began; None if nobody did."""
        found = self._store.ledger.forgets.under_way()
        noted = self._noted()
        if found is None:
            if noted is not None:
                # Nothing was begun: the process died when it had just noted what it was about.
                self._end(noted[0].id)
            return None
        if any(self._store.check_anchor()):
            raise DamagedStoreError(
                "the ledger lost its end", hint=(Action("verify"), "nothing was removed")
            )
        id, phase = found
        if noted is None or phase == retention.PROVED:
            self._end(id)
            return None
        wish, touched = noted[0], None
        if phase == retention.BEGUN:
            touched = self._rewrite(wish, is_new=False)
        elif self._would(wish).is_needed:
            # Others went on meanwhile, and captured again what was still in the tree.
            touched = self._rewrite(wish, is_new=False)
        return self._finish(wish, touched)

    # -- the file that says what it is about -----------------------------------------------------

    def _note(self, wish: "ForgetRequest", ids: "Iterable[bytes]") -> None:
        """Note what is to be forgotten, and the ids that must not be found in the end."""
        said: dict[str, Json] = {"wish": wish.facts(), "ids": [id.hex() for id in ids]}
        path = self._store.path + b"/" + search.NOTE
        replace_file(path, json_text.dumps(said).encode(), durable=True)

    def _noted(self) -> "tuple[ForgetRequest, set[bytes]] | None":
        """What was noted; None if there is nothing."""
        text = read_small(self._store.path + b"/" + search.NOTE, limit=_LARGEST)
        if not text:
            return None
        said = json_text.loads(text.decode())
        return forgotten.from_facts(said["wish"]), set(map(bytes.fromhex, said["ids"]))

    def _end(self, id: str) -> None:
        """It is done, or was given up before anything was changed."""
        path = self._store.path + b"/" + search.NOTE
        if os.path.lexists(path):
            operations.unlink(path)
            operations.fsync_dir(self._store.path)
        self._store.ledger.forgets.end(id)

    # -- before the commit ---------------------------------------------------------------------

    def _require_possible(self, wish: "ForgetRequest") -> None:
        store = self._store
        store.ledger.journal.require_sound(in_all_lines=True)
        if store.ledger.has_journal():
            raise BusyError(
                "a restore is not finished: a program still writes to a file that it displaced",
                hint="close that program, and try again; nothing was forgotten",
            )
        store.require_whole("nothing was forgotten")
        store.ledger.require_chain()
        texts = [text.decode("utf-8", "surrogateescape") for text in wish.texts]
        for event in store.ledger.events():
            said = f"{event.author} {event.request}"
            if any(text in said for text in texts):
                raise TakebackError(
                    f"it stands in the id of a request, or in the name of the account, of event "
                    f"{event.seq}; the chain of the log is made of these",
                    hint="they cannot be forgotten; nothing was forgotten",
                )

    def _rewrite(self, wish: "ForgetRequest", *, is_new: bool = True) -> "Touched":
        """Write what has to be written anew, and commit."""
        store = self._store
        # What the old packs hold is no reason not to write it: they go.
        writer = store.objects.writer(lambda _oid: False)
        merged: list[SealedPack] = []
        try:
            new = Rewriting(store, wish, writer, self._progress)
            new.run()
            touched = self._touched(wish, new) if is_new else new.touched()
            made = writer.finish()
            merged = store.objects.merge(new.pieces(), self._progress)
            before = self._noted()
            self._note(wish, new.ids() | (before[1] if before else set()))
            said: dict[str, Json] = {
                "forgotten": wish.id,
                "what": wish.kind,
                "packs": pack_facts([*made, *merged]),
            }
            fact = NewEvent(events.FORGOTTEN, said, self._now)
            store.ledger.redact(fact, new.events(), new.details(), wish.id)
        except BaseException:
            store.ledger.abandon()
            if not self._store.ledger.forgets.is_committed():
                self._remove_new(writer, merged)
            raise
        return touched

    def _remove_new(self, writer: "PackWriter", merged: "list[SealedPack]") -> None:
        writer.abort()
        self._store.objects.discard(merged)

    def _give_up(self, wish: "ForgetRequest", problem: BaseException) -> None:
        """Nothing was changed: leave nothing behind. If even that fails, the next start goes on."""
        try:
            self._end(wish.id)
        except (OSError, TakebackError, DatabaseError):
            self._store.lock.leave_unclean()
            raise problem from None

    # -- after it ------------------------------------------------------------------------------

    def _finish(self, wish: "ForgetRequest", touched: "Touched | None") -> Forgotten:
        store = self._store
        noted = self._noted()
        ids = noted[1] if noted is not None else set()
        try:
            self._clean(wish)
            self._shrink()
            again = self._require_nothing_left(wish)
            scanned = search.prove(store, wish, ids - again.purge.needed, self._progress)
            store.ledger.forgets.prove(wish.id)
            self._end(wish.id)
        except BaseException as problem:
            store.ledger.abandon()
            store.lock.leave_unclean()
            if isinstance(problem, UnfinishedError) or not isinstance(problem, Exception):
                raise
            raise self._unfinished(problem) from problem
        return Forgotten(wish, self._now / _BILLION, touched, scanned)

    def publish(self) -> None:
        """Let the git view show the history as it is now; the old one is no lost part of it."""
        store = self._store
        for line, newest in store.ledger.checkpoints.newest_of_lines().items():
            git_view.write_ref(store.git_dir, git_view.branch(line), newest.view)
        for _ in store.mend_view():
            pass
        for name in _ABOUT_OLD_REFS:
            self._remove(store.git_dir + name)

    def _clean(self, wish: "ForgetRequest") -> None:
        """Remove every file that is of the history as it was."""
        store = self._store
        store.objects.close()
        self.publish()
        store.ledger.refuse_newer()
        caches = (*store.stat_caches(), *store.results())
        for path in (*store.litter(), *store.objects.unknown_files(), *caches):
            self._remove(path)
        for folder in (store.packs_dir, store.git_dir):
            operations.fsync_dir(folder)
        self._sweep(wish, False)

    def _remove(self, path: bytes) -> None:
        if os.path.lexists(path):
            operations.unlink(path)

    def _shrink(self) -> None:
        blocked = self._store.ledger.shrink()
        if blocked:
            raise UnfinishedError(
                f"{blocked} reads the ledger, so its log still holds what was forgotten",
                hint=Action("continue-forgetting"),
            )

    def _require_nothing_left(self, wish: "ForgetRequest") -> Rewriting:
        """What would have to be done now, if it were wished again: nothing."""
        again = self._would(wish)
        if again.is_needed:
            raise UnfinishedError(
                "not everything was forgotten: the history still mentions it",
                hint=(Action("continue-forgetting"), "please report this"),
            )
        return again

    def _unfinished(self, problem: BaseException) -> UnfinishedError:
        why = str(problem)
        first: tuple[str | Action, ...] = ()
        if isinstance(problem, DatabaseError):
            problem = database.reason(self._store.ledger.path, problem)
        if isinstance(problem, OSError):
            place = failures.named(problem.filename2 or problem.filename or self._store.path)
            why, first = f"{problem.strerror} (`{place}`)", failures.hint(problem)
        goes_on = (Action("next-command"), Action("continue-forgetting"))
        return UnfinishedError(
            f"forgetting is not finished: {why}",
            hint=(*first, *goes_on),
        )


def _of_content(id: str, content: bytes) -> "ForgetRequest":
    """Exactly these bytes; a short text also where somebody said it."""
    said = content.strip()
    is_text = forgotten.SHORTEST_TEXT * 2 <= len(said) <= forgotten.LONGEST_TEXT and 0 not in said
    texts = (said,) if is_text and b"\n" not in said else ()
    objects = frozenset((object_id(BLOB, content),))
    contents = frozenset((hashlib.sha256(content).digest(),))
    return ForgetRequest(forgotten.CONTENT, id, contents=contents, objects=objects, texts=texts)
