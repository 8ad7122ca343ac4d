"""Project: wires the layers together, takes the lock, and speaks the verbs."""

import os
import time

from takeback import opening
from takeback.engine import capture
from takeback.engine.request import Place, Request
from takeback.errors import CaptureError, DamagedStoreError, TakebackError, UsageError
from takeback.looking import Looking
from takeback.store import identity
from takeback.store.events import CHECKPOINT_NAMED, CHECKPOINT_TAKEN
from takeback.store.failures import FailingAs
from takeback.store.lock import Held
from takeback.store.statcache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from takeback.engine.deltas import Delta
    from takeback.engine.request import Attribute
    from takeback.model.history import Author
    from takeback.model.jsontext import Json
    from takeback.model.values import Checkpoint, Verification
    from takeback.ports import Progress
    from takeback.recording import Recorder
    from takeback.session import Session
    from takeback.store.events import Event
    from takeback.store.objects import Objects


class Project(Looking):
    """A work tree and its store."""

    # -- opening ---------------------------------------------------------------------------

    @classmethod
    def open(cls, path: bytes, *, home: bytes, user_home: bytes = b"") -> "Self":
        """The project that `path` is in, made on first use."""
        with FailingAs(TakebackError, "the project could not be opened"):
            return cls(*opening.open(path, home=home, user_home=user_home))

    @classmethod
    def find(cls, path: bytes, *, home: bytes) -> "Self | None":
        """The project that `path` is in, or None; makes nothing."""
        with FailingAs(TakebackError, "the project could not be opened"):
            found = opening.find(path, home=home)
            return cls(*found) if found is not None else None

    @classmethod
    def relocate(
        cls, path: bytes, *, home: bytes, user_home: bytes = b"", join: "str | None" = None
    ) -> "Self":
        """Let the history of a known project go on in this folder, or begin a new one here."""
        with FailingAs(TakebackError, "nothing was decided"):
            return cls(*opening.relocate(path, home=home, user_home=user_home, join=join))

    # -- verbs -----------------------------------------------------------------------------

    def checkpoint(
        self,
        label: str = "",
        *,
        rehash: bool = False,
        progress: "Progress | None" = None,
        request: "str | None" = None,
        turn: "str | None" = None,
    ) -> "Checkpoint":
        """Make a checkpoint of the tree as it is now.

        If nothing changed since the newest one, that one is returned with `new` false.
        `rehash` reads every file again instead of trusting its stamps. A second call with the
        same `request` returns what the first one did.
        """
        with FailingAs(CaptureError, "no checkpoint was made"), self.held():
            known = self.ledger.requested(request)
            if known is not None:
                return self._made_before(known)
            if turn is not None:
                self.recorder().go_on(turn)
            at = time.time_ns()
            dead = self.recorder().dead_sessions(at) if self.ledger.has_open_sessions() else []
            closing = {row.id: ended for row, ended in dead}
            made = self._capture(
                Place(turn=turn),
                closing,
                at,
                label=_clean(label),
                rehash=rehash,
                progress=progress,
                request=request,
            )
            if dead:
                self.recorder().bury(dead, made, at)
            return made

    def session(
        self,
        agent: str,
        *,
        id: str = "",
        title: str = "",
        safe_points: "str | None" = None,
        held: bool = True,
        beside: bool = False,
        inside: "str | None" = None,
        request: "str | None" = None,
    ) -> "Session":
        """Begin a session, or go on with the one that the agent knows by its own `id`.

        `safe_points` says how often checkpoints are made: at each `turn`, around each `step`
        that may write (the default), or around every `call`. A session that is `held` ends with
        this process; hooks, which are a process each, hold none. Another process that begins the
        same one takes it over, and ends its turn; with `beside` it gets one of its own while
        the first is alive. `inside` is the turn that this agent was started in, such as one of
        `takeback run`: until the agent ends the session, what it tells of itself goes before
        what can be told from outside.
        """
        from takeback.session import Notes, Session

        recorder = self.recorder(safe_points)
        with FailingAs(TakebackError, "nothing was recorded"):
            found = recorder.start_session(
                agent, id, title, held=held, beside=beside, inside=inside, request=request
            )
        return Session(Notes(recorder, self.turn, self.checkpoint), found)

    def extract(
        self,
        ref: str,
        directory: "str | bytes | os.PathLike[str] | os.PathLike[bytes]",
        *,
        progress: "Progress | None" = None,
    ) -> int:
        """Write a checkpoint's tree into a new or empty folder; return how many entries."""
        from takeback.engine.extract import extract

        with FailingAs(TakebackError, "nothing was extracted"):
            target = os.path.abspath(os.fsencode(directory))
            identity.refuse_inside_store(target, self._home)
            return extract(self._store, self._resolve(ref), target, progress)

    def verify(self, *, progress: "Progress | None" = None) -> "Verification":
        """Re-hash everything in the store; damage is returned, not raised."""
        from takeback.engine.verify import verify

        with FailingAs(TakebackError, "the store could not be verified"):
            return verify(self._store, self.held, progress)

    def rebuild(self) -> None:
        """Make everything that follows from the log again."""
        with FailingAs(TakebackError, "nothing was rebuilt"), self.held():
            for lost in self._store.check_anchor():
                # The tables are all that still knows of the events that are gone.
                raise DamagedStoreError(f"nothing was rebuilt: {lost}")
            self.ledger.rebuild()

    # -- what recording and reading need ---------------------------------------------------

    @property
    def objects(self) -> "Objects":
        """What the project's packs hold; only with the lock held."""
        return self._store.objects

    def held(self) -> Held:
        """The lock of the project, for a `with` block."""
        return Held(self._store.lock, self._mutex, self._store.recover, self._store.anchor)

    def look(self, place: Place, closing: "Mapping[str, int]", at: int) -> "Checkpoint":
        """Look at the tree, and make a checkpoint if it changed. With the lock held."""
        with FailingAs(CaptureError, "no checkpoint was made"):
            return self._capture(place, closing, at, silent=True)

    def git_state(self) -> "Json":
        """What the user's git looks like; None without one."""
        return self._around.git_state()

    def recorder(self, safe_points: "str | None" = None) -> "Recorder":
        """What writes sessions, turns and steps into the log."""
        from takeback.recording import Recorder

        return Recorder(
            self, safe_points or str(self._around.setting("recording", "safe_points", "step"))
        )

    # -- wiring ----------------------------------------------------------------------------

    def _capture(
        self,
        place: Place,
        closing: "Mapping[str, int]",
        at: int,
        *,
        label: str = "",
        silent: bool = False,
        rehash: bool = False,
        progress: "Progress | None" = None,
        request: "str | None" = None,
    ) -> "Checkpoint":
        wanted = self._around.request(
            at,
            label=label,
            attribute=self._attributor(closing),
            place=place,
            silent=silent,
            request=request,
            rehash=rehash,
            progress=progress,
        )
        try:
            return capture.take(self._store, self._stat_cache(wanted), wanted)
        finally:
            os.close(wanted.root)

    def _attributor(self, closing: "Mapping[str, int]") -> "Attribute":
        def attribute(deltas: "list[Delta]", slack: int) -> "list[Author]":
            # Imported only when something changed.
            from takeback.engine import windows

            return windows.authors(
                self.ledger, deltas, closing, time.time_ns(), slack, self._around.is_remote
            )

        return attribute

    def _made_before(self, event: "Event") -> "Checkpoint":
        """What an earlier call with the same request returned."""
        said = event.payload or {}
        rows = self.ledger.with_prefix(str(said.get("checkpoint")))
        if event.kind not in (CHECKPOINT_TAKEN, CHECKPOINT_NAMED) or not rows:
            raise UsageError(
                f"the request `{event.request}` was already used for something else",
                hint="give each request an id of its own",
            )
        new = event.kind == CHECKPOINT_TAKEN
        return capture.as_value(rows[0], new=new, cursor=event.seq, told=self._told(rows[0]))

    def _stat_cache(self, request: Request) -> StatCache:
        mark = self._around.mark(request)
        if self._cache is None or self._cache.identity != mark:
            self._cache = StatCache(self._store.index_path, mark)
        return self._cache


def _clean(label: str) -> str:
    """A label as text that can be stored and shown; the command line may hold any bytes."""
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in label)
