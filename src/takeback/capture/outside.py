"""Look at files outside the project that an edit tool names, and keep what they hold.

Only what can be put back with certainty is kept: a regular file of the same user, in a folder that
is reached without a link, not larger than what is captured inside. Of everything else it is said
why it is not covered; the agent notices nothing of it.
"""

import hashlib
import os
import time

from takeback.disk import descent, machine
from takeback.ledger import outside
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.model.tree import FOLDER, KIND, LINK, REGULAR, UNSTABLE, Entry
from takeback.model.value import Value
from takeback.objects.git_objects import BLOB, object_head, sha1
from takeback.worktree.content import LARGE, Content, NotRegular, Patience, Torn
from takeback.worktree.scan import SHORTAGES, VERSION_CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from takeback.disk.machine import FsClock
    from takeback.ledger.outside import OutsideRow
    from takeback.model.text.json_text import Json
    from takeback.objects.pack_write import PackWriter
    from takeback.store import Store

_TRIES = 3
_KERNELS_OWN = (b"/proc", b"/sys", b"/dev")
_MEMORY = b"/dev/shm"
_A_STORE = (b"ledger.db", b"lock")
_LATER = "changed after its step ended"


class Seen(Value):
    """What is at a path outside: an entry, None if nothing is, or the reason why nobody knows."""

    path: bytes
    entry: "Entry | None" = None
    reason: str = ""
    moved: int = 0
    """When the system last changed anything about it, in nanoseconds."""
    has_folder: bool = True


class Outside:
    """Looks outside the project, and records what is there. With the lock held."""

    def __init__(self, store: "Store", home: bytes, largest: int) -> None:
        self._store = store
        self._ledger = store.ledger
        self._home = os.path.realpath(home)
        self._largest = largest

    def begin(self, started: NewEvent, turn: str, step: str, paths: "Iterable[bytes]") -> None:
        """Record that a step begins, and what the files that it names are before it."""
        look = _Look(self._store, self._home, self._largest)
        files = [look.file(step, look.at(path)) for path in paths]
        said: dict[str, Json] = {"when": outside.BEFORE, "turn": turn}
        self._record((started,), look.event(said, files), first=False)

    def end(
        self,
        waiting: "Sequence[tuple[OutsideRow, int]]",
        at: int,
        facts: "Sequence[NewEvent]",
    ) -> None:
        """Record that steps are over, and before that how they left the files that they named.

        With each row comes when its step was over; what moved after that is not its own.
        """
        look = _Look(self._store, self._home, self._largest)
        files = []
        for row, ended in waiting:
            seen = look.at(row.path)
            if ended < at and seen.moved > ended:
                seen = Seen(row.path, reason=_LATER)
            files.append(look.file(self._step(row), seen))
        said: dict[str, Json] = {"when": outside.AFTER, "turn": None}
        self._record(facts, look.event(said, files), first=True)

    def now(self, paths: "Iterable[bytes]") -> "dict[bytes, Seen]":
        """What is at paths now; the store holds it when this returns."""
        look = _Look(self._store, self._home, self._largest)
        found = {path: look.at(path) for path in paths}
        if look.has_news:
            files = [look.file("", seen) for seen in found.values() if not seen.reason]
            said: dict[str, Json] = {"when": outside.NOW, "turn": None}
            self._record((), look.event(said, files), first=True)
        return found

    def _step(self, row: "OutsideRow") -> str:
        return self._ledger.steps.id_of(row.step) if row.step is not None else ""

    def _record(self, facts: "Sequence[NewEvent]", seen: NewEvent, *, first: bool) -> None:
        try:
            self._ledger.record(*((seen, *facts) if first else (*facts, seen)))
        except BaseException:
            # The packs are there, and whether anything speaks of them the next start finds out.
            self._store.lock.leave_unclean()
            raise


class _Look:
    """One look at several files; new content goes into one pack."""

    def __init__(self, store: "Store", home: bytes, largest: int) -> None:
        self._store = store
        self._home = home
        self._largest = largest
        self._patience = Patience()
        self._clock: FsClock | None = None
        self._writer: PackWriter | None = None

    @property
    def has_news(self) -> bool:
        """Whether something was found that the store did not hold."""
        return self._writer is not None and not self._writer.is_empty()

    def event(self, said: "dict[str, Json]", files: "list[Json]") -> NewEvent:
        """What was seen, once the content is durable."""
        said["files"] = files
        said["packs"] = pack_facts(self._writer.finish()) if self._writer is not None else []
        return NewEvent(events.OUTSIDE_SEEN, said, time.time_ns())

    def file(self, step: str, seen: Seen) -> "Json":
        """One file as the event says it."""
        return [step or None, *outside.file_facts(seen.path, seen.entry), seen.reason]

    def at(self, path: bytes) -> Seen:
        """What is at a path, or why that cannot be known."""
        reason = self._refused(path)
        if reason:
            return Seen(path, reason=reason)
        folder, name = descent.parted(path)
        try:
            fd = descent.open_folder(folder)
        except OSError as problem:
            if problem.errno in SHORTAGES:
                raise
            is_gone = isinstance(problem, FileNotFoundError)
            reason = "" if is_gone else f"its folder cannot be opened: {problem.strerror}"
            return Seen(path, reason=reason, has_folder=False)
        return self._in(fd, name, path)

    def _in(self, fd: int, name: bytes, path: bytes) -> Seen:
        """What a name is in an open folder, which is closed then."""
        try:
            return self._in_folder(fd, name, path)
        except FileNotFoundError:
            return Seen(path)
        except (NotRegular, Torn):
            return Seen(path, reason="it changed while it was read")
        except OSError as problem:
            if problem.errno in SHORTAGES or isinstance(problem, _OursError):
                raise
            return Seen(path, reason=f"cannot be read: {problem.strerror}")
        finally:
            os.close(fd)

    def _refused(self, path: bytes) -> str:
        """Why a path is left alone, whatever is there."""
        if not descent.is_whole(path):
            return "not a path of a file"
        if _is_below(path, _KERNELS_OWN) and not _is_below(path, (_MEMORY,)):
            return "a system file, not on a disk"
        if any(name in VERSION_CONTROL for name in path.split(b"/")):
            return "version control data"
        folder = descent.parted(path)[0]
        while folder != b"/":
            if folder == self._home or all(map(os.path.lexists, _store_files(folder))):
                return "in a store of Takeback"
            folder = descent.parted(folder)[0]
        return ""

    def _in_folder(self, fd: int, name: bytes, path: bytes) -> Seen:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        kind = found.st_mode & KIND
        if kind != REGULAR:
            what = {LINK: "a link", FOLDER: "a folder"}.get(kind, "a FIFO, socket or device")
            return Seen(path, reason=what)
        content = Content(fd, name, self._time(found.st_dev))
        try:
            if content.stat.st_uid != os.geteuid():
                return Seen(path, reason="owned by another user")
            if content.stat.st_size > self._largest:
                return Seen(path, reason="too large")
            is_large = content.stat.st_size > LARGE
            entry = self._large(content) if is_large else self._small(content)
        finally:
            content.close()
        return Seen(path, entry, moved=content.stat.st_ctime_ns)

    def _time(self, device: int) -> "FsClock":
        if self._clock is None:
            with _Ours():
                self._clock = machine.read_clock(self._store.clock_path, device)
        return self._clock

    def _small(self, content: Content) -> Entry:
        data = content.whole(self._patience)
        strong = hashlib.sha256(data).digest()
        with _Ours():
            oid = self._pack().add(BLOB, data)
        return _entry(content, len(data), strong, oid)

    def _large(self, content: Content) -> Entry:
        """Read it twice: hashing is the cheap part, and mostly the store has it already."""
        for _ in range(_TRIES):
            strong, again, size = hashlib.sha256(), hashlib.sha256(), content.size()
            weak = sha1(object_head(BLOB, size))
            try:
                for piece in content.chunks(size, last_try=False):
                    strong.update(piece)
                    weak.update(piece)
                if self._pack().contains(weak.digest()):
                    return _entry(content, size, strong.digest(), weak.digest())
                pieces = content.chunks(size, last_try=False)
                with _Ours():
                    oid = self._pack().add_large(size, _hashed(pieces, again))
            except Torn:
                continue
            if again.digest() == strong.digest():
                return _entry(content, size, strong.digest(), oid)
        raise Torn

    def _pack(self) -> "PackWriter":
        if self._writer is None:
            self._writer = self._store.pack_writer()
        return self._writer


class _OursError(OSError):
    """The store could not be written: that says nothing about the user's file."""


class _Ours:
    """Marks errors of the system as those of our own disk."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, OSError):
            raise _OursError(problem.errno, problem.strerror, problem.filename) from problem


def _hashed(pieces: "Iterator[bytes | memoryview]", strong: "hashlib._Hash") -> "Iterator[bytes]":
    for piece in pieces:
        strong.update(piece)
        yield piece  # type: ignore[misc]


def _entry(content: Content, size: int, strong: bytes, oid: bytes) -> Entry:
    found, flags = content.stat, UNSTABLE if content.unstable else 0
    return Entry(b"", found.st_mode, flags, size, strong, found.st_mtime_ns, oid)


def _is_below(path: bytes, folders: "Iterable[bytes]") -> bool:
    return any(path.startswith(folder + b"/") for folder in folders)


def _store_files(folder: bytes) -> "list[bytes]":
    return [os.path.join(folder, name) for name in _A_STORE]
