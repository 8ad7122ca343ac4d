"""`Project`: the verbs of Takeback, for Python and for the doors."""

import os

from takeback import location
from takeback.arguments import PUBLIC, Rooms, name_of, paths_of, raw, redo_of, rollback_to, undo_of
from takeback.capture.safe_points import SafePoints
from takeback.capture.workspace import Workspace
from takeback.disk.failures import FailingAs
from takeback.disk.home import Home, Root
from takeback.errors import CaptureError, TakebackError
from takeback.model.words import MINUTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self, Unpack

    from takeback.agents.resume import Resumed
    from takeback.arguments import AnyPath, Applied, Decide, Named, Only, Options, Paths, Which
    from takeback.history.compare import Comparison
    from takeback.model import history
    from takeback.model.forgotten import Forgotten
    from takeback.model.history import Log, RecordedCheckpoint, RecordedSession, RecordedTurn
    from takeback.model.plan import Description, Plan, Report
    from takeback.model.reasons import Reason
    from takeback.model.results import (
        Checkpoint,
        Cleanup,
        KeptState,
        Share,
        Status,
        Usage,
        Verification,
    )
    from takeback.model.tree import Entry
    from takeback.participants.mutations import Way
    from takeback.ports import Participant, Progress
    from takeback.recorder import Recorder
    from takeback.session import Session
    from takeback.undo.restorer import Restorer
    from takeback.upkeep.forget import Forgetter


_USUAL_LOG = 20


class Project(Rooms):
    """A work tree and its history. Thread-safe; use it as a context manager, or call `close`."""

    def __init__(self, root: Root, home: Home, instead_of: str = "") -> None:
        self.workspace = Workspace(root, home, self._recover, instead_of)
        """What the verbs work with. For Takeback's own doors, not part of the API."""
        self._listeners: list[Callable[[Report], None]] = []

    def __repr__(self) -> str:
        return f"<takeback.Project {self.root!r} {self.id}>"

    def __dir__(self) -> "list[str]":
        return [*(name for name in object.__dir__(self) if name.startswith("__")), *PUBLIC]

    # -- opening ---------------------------------------------------------------------------

    @classmethod
    def open(
        cls, path: bytes, *, home: bytes, user_home: bytes = b"", begin: bool = False
    ) -> "Self":
        """The project that `path` is in, made on first use.

        Where it is not sure whose history it is, that is an error, or with `begin` a new history.
        """
        with FailingAs(TakebackError, "the project could not be opened"):
            found = location.open(path, home=home, user_home=user_home, begin=begin)
            project = cls(found.root, found.home, found.instead_of)
        project.workspace.recover_early()
        return project

    @classmethod
    def find(cls, path: bytes, *, home: bytes) -> "Self | None":
        """The project that `path` is in, or None; makes nothing."""
        with FailingAs(TakebackError, "the project could not be opened"):
            found = location.find(path, home=home)
            if found is None:
                return None
            project = cls(*found)
        project.workspace.recover_early()
        return project

    @classmethod
    def relocate(
        cls,
        path: bytes,
        *,
        home: bytes,
        user_home: bytes = b"",
        join: "str | None" = None,
        yes: bool = False,
    ) -> "Self":
        """Let a known history go on in this folder, or begin a new one; `yes` takes it away."""
        with FailingAs(TakebackError, "nothing was decided"):
            found = location.relocate(path, home=home, user_home=user_home, join=join, yes=yes)
            return cls(found.root, found.home, found.instead_of)

    def close(self) -> None:
        self.workspace.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        return self.workspace.id

    @property
    def root(self) -> str:
        """The folder of the project."""
        return os.fsdecode(self.workspace.root)

    @property
    def git_dir(self) -> str:
        """The bare git repository of the store, for `git --git-dir`."""
        return os.fsdecode(self.workspace.store.git_dir)

    @property
    def origin(self) -> str:
        """The random id of this store's log: (origin, number) names an event on all machines."""
        with FailingAs(TakebackError, "the store could not be read"):
            return self.workspace.ledger.origin

    @property
    def recovered(self) -> "tuple[Reason, ...]":
        """What was mended since the project was opened."""
        return self.workspace.recovered

    def recover(self) -> None:
        """Undo a restore that was interrupted, now; whoever takes the lock next would do so."""
        with self.workspace.held():
            pass

    def _recover(self, died: bool) -> None:
        self.upkeep.recover(died)

    # -- recording -------------------------------------------------------------------------

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

        If nothing changed since the newest one, that one is returned with `new` false. A `label`
        is its name, a reference. `rehash` reads every file again. A second call with the same
        `request` returns what the first one did.
        """
        with FailingAs(CaptureError, "no checkpoint was made"), self.workspace.held():
            was = self.reader.require_name(label) if label else ""
            made = SafePoints(self.workspace).checkpoint(
                label, rehash=rehash, progress=progress, request=request, turn=turn
            )
            return self.reader.with_names(made, label, was) if label else made

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
        guard: str = "",
        request: "str | None" = None,
    ) -> "Session":
        """Begin a session, or go on with the one that the agent knows by its own `id`.

        `safe_points` says how often checkpoints are made: at each `turn`, around each `step` that
        may write (the default), or every `call`. One that is `held` ends with this process. Another
        process that begins the same one takes it over, and ends its turn; with `beside` it gets
        one of its own while the first is alive. `inside` is the turn that this agent was started
        in: until the session ends, what it tells goes first. `guard` is a mode for its steps.
        """
        from takeback.session import Session

        recorder = self.recorder(safe_points, guard)
        with FailingAs(TakebackError, "nothing was recorded"):
            found = recorder.start_session(
                agent, id, title, held=held, beside=beside, inside=inside, request=request
            )
        return Session(recorder, self, found)

    def recorder(self, safe_points: "str | None" = None, guard: str = "") -> "Recorder":
        """Records sessions, turns and steps by their ids, for callers that are a process each."""
        from takeback.recorder import BY_STEP, SAFE_POINTS, Recorder

        rules = self.workspace.rules
        setting = str(rules.setting("recording", "safe_points", BY_STEP))
        if setting not in SAFE_POINTS:
            rules.report_setting(f"`recording.safe_points` cannot be `{setting}`")
            setting = BY_STEP
        return Recorder(self.workspace, safe_points or setting, self.schedule_gc, guard)

    # -- the log ---------------------------------------------------------------------------

    def log(self, limit: "int | None" = None, **which: "Unpack[Which]") -> "Log":
        """The newest turns, newest first: 20 if nothing else is said, with `all` everything.

        `session` is a session's id or the beginning of it; `since` and `until` are times as in
        references, or seconds since 1970; `grep` is a text in the prompt, in upper or lower case;
        `paths` are files and folders that a turn touched, counted from the folder `inside`, or else
        from the root. `all` also lists turns that were undone, and restores. Without `changes`
        the turns have only their numbers of files and lines, which is all that a list needs; with
        `before`, the id of a turn, it lists older ones: the next page.
        """
        usual = None if which.get("all") else _USUAL_LOG
        return self.reader.log(usual if limit is None else max(limit, 0), **raw(which))

    def turn(self, ref: str) -> "RecordedTurn":
        """What the log says of a turn: its changes, its steps, what it shares, git around it."""
        return self.reader.turn(ref)

    def recorded(self, ref: str) -> "RecordedTurn | RecordedCheckpoint":
        """The turn that a reference means, or else the checkpoint."""
        return self.reader.recorded(ref)

    def sessions(self, limit: int = 20, *, all: bool = False) -> "tuple[RecordedSession, ...]":
        """The sessions of the project, the one that was seen last first."""
        return self.reader.sessions(None if all else max(limit, 0))

    def now(self, session: "str | None" = None) -> "history.Unrecorded":
        """What changed since the newest checkpoint, by whom; what undo, of a session, would do."""
        from takeback.undo.plans import select

        ledger, seen = self.workspace.ledger, self.reader.unrecorded()
        within = ledger.sessions.get(session).number if session is not None else None
        return select.with_next_undo(ledger, seen, self.reader.read, within)

    def undoable(self, session: "str | None" = None) -> "tuple[str | None, int]":
        """The title of what a bare undo means, None for nothing, and how many could go back.

        From the log alone: no file is looked at.
        """
        from takeback.undo.plans import select

        with self.workspace.ledger.snapshot() as ledger:
            within = ledger.sessions.get(session).number if session is not None else None
            item = select.newest(ledger, within)
            count = ledger.stack.count_entries(within)
        return (item.title if item is not None else None), count

    def status(self) -> "Status":
        """Where we are: the newest checkpoint and what is not covered."""
        return self.reader.status()

    def checkpoints(self, session: "Named | None" = None) -> "Iterator[Checkpoint]":
        """All checkpoints, newest first; or those that a session took or named again."""
        return self.reader.checkpoints(None if session is None else name_of(session))

    # -- states ----------------------------------------------------------------------------

    def compare(
        self,
        before: "str | None",
        after: "str | None" = None,
        paths: "Paths" = (),
        *,
        inside: "AnyPath" = b"",
        progress: "Progress | None" = None,
    ) -> "Comparison":
        """Where two states differ; `@` or None is now, the files on disk. Writes nothing.

        `paths` are counted from the folder `inside` of the project, or else from its root.
        """
        return self.reader.compare(before, after, paths_of(paths), os.fsencode(inside), progress)

    def read(
        self, ref: "str | None", path: "AnyPath", *, inside: "AnyPath" = b""
    ) -> "Iterator[bytes]":
        """What a file held in a state, piece by piece, verified by the end; `@` is now."""
        return self.reader.read(ref, os.fsencode(path), os.fsencode(inside))

    def rescued(
        self, restore: str, path: "AnyPath", *, inside: "AnyPath" = b""
    ) -> "Iterator[bytes]":
        """What somebody saved while a restore ran, and is in the store only, piece by piece."""
        from takeback.undo import rescue

        with FailingAs(TakebackError, "the store could not be read"):
            where = (self.workspace.root, os.fsencode(inside), os.fsencode(path))
            entry = rescue.find_kept(self.workspace.ledger, restore, *where)
        return self.reader.stream(entry)

    def contents(self, *entries: "Entry | None") -> "tuple[bytes | None, ...]":
        """What entries of a plan hold: files and links; None if that is unknown or very large."""
        return self.reader.contents(*entries)

    def extract(
        self,
        ref: str,
        directory: "AnyPath",
        *,
        progress: "Progress | None" = None,
        told: "Callable[[Reason], None] | None" = None,
    ) -> int:
        """Write a checkpoint's tree into a new or empty folder; return how many entries.

        `told` hears what could not be as it was: programs that are not setuid for another owner.
        """
        self._capture_now(ref)
        return self.reader.extract(ref, os.fsencode(directory), progress, told)

    def _capture_now(self, ref: str) -> None:
        """Where `@` means the files as they are, let the newest checkpoint hold them."""
        from takeback.history import references

        if references.is_now(ref):
            with FailingAs(CaptureError, "no checkpoint was made"), self.workspace.held():
                SafePoints(self.workspace).now()

    # -- taking back -----------------------------------------------------------------------

    def plan_undo(
        self,
        turn: "Named | Iterable[Named] | None" = None,
        *,
        session: "str | None" = None,
        whole_session: str = "",
        paths: "Paths" = (),
        decide: "Decide" = "",
        shared: bool = False,
        by_hunk: bool = False,
        only: "Only" = (),
        inside: "AnyPath" = b"",
        minutes: int = MINUTES,
    ) -> "Plan":
        """What `undo` would do, `by_hunk` with the hunks of each text; nothing is written."""
        which = (turn, session, whole_session, paths, decide, shared)
        what = undo_of(*which, by_hunk=by_hunk, only=only)
        return self._plan(what.replace(minutes=minutes), inside)

    def plan_redo(
        self,
        turn: "Named | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
        by_hunk: bool = False,
        only: "Only" = (),
        inside: "AnyPath" = b"",
    ) -> "Plan":
        """What `redo` would do. The tree is looked at, and nothing in it is written."""
        what = redo_of(turn, session, paths, decide, by_hunk=by_hunk, only=only)
        return self._plan(what, inside)

    def plan_rollback(
        self,
        ref: "Named",
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        only: "Only" = (),
        inside: "AnyPath" = b"",
        minutes: int = MINUTES,
    ) -> "Plan":
        """What `rollback` would do. The tree is looked at, and nothing in it is written."""
        what = rollback_to(ref, session, paths, only)
        return self._plan(what.replace(minutes=minutes), inside)

    def planned(self, plan: str) -> "Plan":
        """A plan that was shown, as it is made now; for our own doors."""
        with FailingAs(TakebackError, "nothing was planned"), self.workspace.held():
            return self._restorer(b"").plan_again(plan)

    def apply(self, plan: "Named", **options: "Unpack[Applied]") -> "Report":
        """Do what a plan says, given it or its id, also in another process, for some minutes.

        It is planned again. If a path that it touches changed since, or a folder that it makes or
        removes, it is refused; a rollback of everything takes that back, too, and the report names
        it. A plan is applied once: a second call returns what the first did.

        `because` is kept with the event. Restored files get the present time, or with
        `keep_mtime` the one they had. `yes` consents to what the plan calls doubts; conflicts
        it does not resolve. `asker` is the session that asks: its next call is not refused. With
        `only_own`, a plan that touches more than that session's own changes is refused.
        """
        return self._carry_out(b"", lambda restorer: restorer.apply(name_of(plan), **options))

    def undo(
        self,
        turn: "Named | Iterable[Named] | None" = None,
        *,
        session: "str | None" = None,
        whole_session: str = "",
        paths: "Paths" = (),
        decide: "Decide" = "",
        shared: bool = False,
        only: "Only" = (),
        inside: "AnyPath" = b"",
        **options: "Unpack[Options]",
    ) -> "Report":
        """Take back what turns did and keep what others did: the newest turn, or those named.

        What others changed since in the same files is merged. Where that cannot be, it is a
        conflict and nothing is written, unless `decide` says what shall become of it: `keep-mine`,
        `take-back`, `markers` or `skip-conflicts`, for all paths or by path. `session` narrows
        where turns are looked for; `whole_session` takes back all that one did. `shared` takes
        along what may be another session's.
        """
        what = undo_of(turn, session, whole_session, paths, decide, shared, only=only)
        return self._carry_out(inside, lambda restorer: restorer.carry_out(what, **options))

    def redo(
        self,
        turn: "Named | None" = None,
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        decide: "Decide" = "",
        only: "Only" = (),
        inside: "AnyPath" = b"",
        **options: "Unpack[Options]",
    ) -> "Report":
        """Put back what was undone last, or the turn that is named."""
        what = redo_of(turn, session, paths, decide, only=only)
        return self._carry_out(inside, lambda restorer: restorer.carry_out(what, **options))

    def rollback(
        self,
        ref: "Named",
        *,
        session: "str | None" = None,
        paths: "Paths" = (),
        only: "Only" = (),
        inside: "AnyPath" = b"",
        **options: "Unpack[Options]",
    ) -> "Report":
        """Bring everything, or some paths, back to a state, exactly, whoever changed it since.

        With a `session`, `@~N` counts its turns only. `only` says what may move.
        """
        what = rollback_to(ref, session, paths, only)
        return self._carry_out(inside, lambda restorer: restorer.carry_out(what, **options))

    def register(self, participant: "Participant | Way") -> None:
        """Let state beside the files move with them, as long as this project is open here."""
        with FailingAs(TakebackError, "nothing was registered"), self.workspace.held():
            self.workspace.participants.register(participant)
            self.workspace.rules.hold(participant)

    def retry_participants(self, name: str = "") -> "tuple[Reason, ...]":
        """Repeat what restores decided about participants and could not do; what became of it."""
        with FailingAs(TakebackError, "nothing was changed"), self.workspace.held():
            return tuple(self.workspace.participants.go_on(name=name))

    def on_restore(self, listener: "Callable[[Report], None]") -> None:
        """Call `listener` after each restore that this project makes, without the lock."""
        self._listeners.append(listener)

    def _restorer(self, inside: "AnyPath") -> "Restorer":
        from takeback.undo.restorer import Restorer

        return Restorer(self.workspace, os.fsencode(inside))

    def _plan(self, what: "Description", inside: "AnyPath") -> "Plan":
        with FailingAs(TakebackError, "nothing was planned"), self.workspace.held():
            return self._restorer(inside).plan(what)

    def _carry_out(self, inside: "AnyPath", do: "Callable[[Restorer], Report]") -> "Report":
        with FailingAs(TakebackError, "nothing was changed"), self.workspace.held():
            restorer = self._restorer(inside)
            report = do(restorer)
        if restorer.has_restored:
            from takeback import listeners

            problems = listeners.notify(self._listeners, self.workspace.rules, report)
            return report.replace(problems=report.problems + problems)
        return report

    def copy_conversations(
        self, plan: "Plan", *, restore: str = "", in_the_middle: bool = False
    ) -> "list[Resumed]":
        """Copy the agents' conversations as they were before what a plan takes back."""
        from takeback.agents.resume import resume

        work = self.workspace
        return resume(work.ledger, work.held, plan, restore=restore, in_the_middle=in_the_middle)

    # -- upkeep ----------------------------------------------------------------------------

    def gc(
        self,
        *,
        max_age: "str | float | None" = None,
        to_size: "str | int | None" = None,
        full: bool = False,
        dry_run: bool = False,
        progress: "Progress | None" = None,
    ) -> "Cleanup":
        """Delete files that are older than the settings, or `max_age`, say; merge packs.

        `to_size` deletes more of them, the oldest first, until the history fits. Kept states,
        running work and the newest turns stay in any case. `full` writes all packs anew. With
        `dry_run` nothing changes, and what would be deleted is returned.
        """
        return self.upkeep.gc(max_age, to_size, full=full, dry_run=dry_run, progress=progress)

    def schedule_gc(self) -> bool:
        """Start `gc` in a process that nobody waits for, if it is due; whether it was started."""
        return self.upkeep.schedule_gc()

    def usage(self) -> "Usage":
        """What the history takes on disk."""
        return self.upkeep.usage()

    def usage_by(self, by: str, *, progress: "Progress | None" = None) -> "tuple[Share, ...]":
        """What each `session`, `agent` or `path` (a folder at the top) added to the packs.

        The largest comes first. What is left of `Usage.objects` is in nobody's account: indexes,
        and what nothing needs any more.
        """
        return self.upkeep.usage_by(by, progress)

    def keep(self, ref: str, label: str = "") -> "KeptState":
        """Keep the state that a reference means, whatever its age. A `label` is its name."""
        self._capture_now(ref)
        with FailingAs(TakebackError, "nothing was kept"), self.workspace.held():
            return self.upkeep.keep(ref, label)

    def release(self, ref: str) -> "KeptState":
        """Treat a kept state like any other again; a name goes, and with it what it keeps."""
        with FailingAs(TakebackError, "nothing was released"), self.workspace.held():
            return self.upkeep.release(ref)

    def kept(self) -> "tuple[KeptState, ...]":
        """The states that somebody keeps, newest first."""
        return self.upkeep.kept()

    def forget(
        self,
        paths: "Paths" = (),
        *,
        turn: str = "",
        content: "bytes | None" = None,
        text: str = "",
        names: bool = False,
        inside: "AnyPath" = b"",
        dry_run: bool = False,
        progress: "Progress | None" = None,
    ) -> "Forgotten":
        """Delete something from the history for good. It cannot be undone.

        `paths` in every state, each with all below it, and with `names` their names; the words
        of a `turn`, and the states that only it has; exactly this `content`, under whatever
        name; or every file and every word that holds a `text`. The work tree stays as it is.
        With `dry_run` only what it would touch is found out.
        """
        from takeback.upkeep.forget import Target

        target = Target(paths_of(paths), turn, content, text, names, os.fsencode(inside))
        return self._forgetter(progress).forget(target, dry_run=dry_run)

    def continue_forgetting(self, *, progress: "Progress | None" = None) -> bool:
        """Go on with a forget that was interrupted; False if there is none."""
        return self._forgetter(progress).resume()

    def _forgetter(self, progress: "Progress | None" = None) -> "Forgetter":
        from takeback.upkeep.forget import Forgetter

        return Forgetter(self.workspace, progress)

    def verify(
        self, *, progress: "Progress | None" = None, set_aside: bool = False
    ) -> "Verification":
        """Re-hash everything in the store; damage is returned, not raised.

        `set_aside` lets work go on after a restore was interrupted that cannot be taken back.
        """
        return self.upkeep.verify(progress, set_aside=set_aside)

    def rebuild(self) -> None:
        """Make everything that follows from the log again."""
        self.upkeep.rebuild()
