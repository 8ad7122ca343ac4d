"""Bring paths of the work tree to one of their two states, each atomically.

Removals come first, the deepest at the beginning: a removed entry is renamed into our folder.
Then folders are made and staged entries are exchanged with the present ones; the modes of folders
come last. A displaced entry is hashed afterwards: if it has neither of the two states, another
process saved meanwhile, and the newest save goes back to its path.

Never through a link, never over an entry, never a folder by renaming it. The same code goes
forward, and back when a restore failed or its process died.
"""

import errno
import os

from takeback.disk import operations
from takeback.disk.descent import Descent
from takeback.errors import BlockedError, DamagedStoreError
from takeback.model import reasons
from takeback.model.reasons import Action
from takeback.model.tree import FOLDER, REGULAR, SETUID, RescuedEntry, is_state, with_mode
from takeback.model.words import CHANGING, CHECKING, PREPARING
from takeback.worktree.stage import (
    GONE,
    SYNC_EACH,
    Stage,
    fold,
    give,
    glance_at,
    kind_at,
    look_at,
    mode_for,
    modes_of_folder,
    owner_at,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.model.tree import Entry, Op, Owner, State
    from takeback.objects.object_store import ObjectStore

_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
_PATIENCE = 20
_SAVED = reasons.Reason(reasons.SAVED_MEANWHILE)
MOVED = reasons.Reason(reasons.OUT_OF_REACH)


class PathSwapper:
    """One restore in a folder, the project's or `at`; at `kept` paths newer work stays."""

    def __init__(
        self, root: int, objects: "ObjectStore", stage: bytes, ops: "Iterable[Op]"
    ) -> None:
        self.root = root
        self.at = b""
        self._descent = Descent(root)
        self.stage = Stage(root, stage, objects)
        self.ops = sorted(ops, key=lambda op: op.path)
        self.kept: dict[bytes, reasons.Reason] = {}
        self._is_many = len({op.way for op in self.ops}) + sum(map(_is_mode, self.ops)) > SYNC_EACH
        """Whether it is cheaper to sync the whole disk than each folder, and each mode."""
        self._new = {op.path for op in self.ops if op.before is None}
        self._opened: set[bytes] = set()
        self._failures: list[OSError] = []
        self.trusted: dict[bytes, Owner] = {}
        """Whose setuid programs were when they were captured."""
        self.dropped: list[bytes] = []
        """The paths that are not setuid again."""
        self._seen: dict[bytes, State] = {}
        """What was at the paths when everything was as planned."""

    def close(self) -> None:
        self._descent.close()
        self.stage.close()

    def named(self, path: bytes) -> bytes:
        """A path as one calls it: outside the project by all of its folders."""
        return self.at.rstrip(b"/") + b"/" + path if self.at else path

    # -- stage -----------------------------------------------------------------------------

    def stage_all(self, *, forward: bool, keep_mtime: bool) -> "dict[bytes, bytes]":
        """Write and sync everything that is to appear; the staged name of each path.

        On the way back, what was displaced is still there in most cases, and needs no room.
        """
        self.stage.open()
        if forward:
            self._require_two_names()
            self._note_owners()
        staged = {} if forward else self._displaced()
        todo = [
            (number, op, wanted)
            for number, op in enumerate(self.ops)
            for wanted, _ in [op.sides(forward=forward)]
            if op.path not in staged and op.is_staged(forward=forward) and not op.is_settled
            if forward or not is_state(self.look(op), wanted)
        ]
        # On the way back there is a row already: what is torn must not be taken for a save.
        letter = b"n" if forward else b"w"
        if not forward:
            self.stage.drop_torn()
        for number, op, wanted in self.stage.each(todo, PREPARING):
            assert wanted is not None, "nothing is staged for what goes"
            name = staged[op.path] = self.stage.unused(b"%s%d" % (letter, number))
            owner = self._owner_of(op, forward)
            trusted = self.trusted.get(op.path) if forward else op.owner or _own()
            try:
                mode = self.stage.write(
                    name, wanted, keep_mtime=keep_mtime, owner=owner, trusted=trusted
                )
            except DamagedStoreError as problem:
                raise DamagedStoreError(
                    f"what `{os.fsdecode(self.named(op.path))}` held can no longer be read:"
                    f" {problem}",
                    hint=(Action("other-paths"), Action("verify")),
                ) from problem
            if mode != wanted.mode:
                self._drop_setuid(op, wanted, mode, forward)
        if todo:
            self.stage.sync()
        for number, op, _ in todo if not forward else ():
            name = self.stage.unused(b"r%d" % number)
            operations.move(self.stage.fd, staged[op.path], self.stage.fd, name)
            staged[op.path] = name
        return staged

    def _note_owners(self) -> None:
        for op in self.ops:
            folder = self._find_folder(op.way)
            owner = owner_at(folder, op.name or b".") if folder is not None else None
            op.owner = owner if owner != _own() else None
            if isinstance(op.after, RescuedEntry):
                op.owner = op.after.owner
            if not op.is_in_place or op.before is None or op.after is None:
                continue
            if op.after.kind == REGULAR and owner is not None:
                mode = mode_for(op.after.mode, owner, self.trusted.get(op.path))
                mode |= op.after.mode & op.before.mode & SETUID  # as it is now
                if mode != op.after.mode:
                    self._drop_setuid(op, op.after, mode, True)

    def _owner_of(self, op: "Op", forward: bool) -> "Owner | None":
        is_known = op.before is not None or isinstance(op.after, RescuedEntry)
        if is_known or not forward or self.at or os.geteuid() != 0:
            return op.owner
        for depth in range(len(op.way), -1, -1):
            fd = self._find_folder(op.way[:depth])
            if fd is not None:
                found = os.fstat(fd)
                return found.st_uid, found.st_gid
        return None

    def _drop_setuid(self, op: "Op", entry: "Entry", mode: int, forward: bool) -> None:
        if forward:
            self.dropped.append(self.named(op.path))
            op.after = with_mode(entry, mode)
        else:
            self.kept[op.path] = reasons.Reason(reasons.NOT_SETUID)

    def _displaced(self) -> "dict[bytes, bytes]":
        return {
            self.ops[number].path: name
            for number, name, state in self.stage.held()
            if number < len(self.ops) and is_state(state, self.ops[number].before)
        }

    # -- apply -----------------------------------------------------------------------------

    def apply(self, staged: "dict[bytes, bytes]", *, forward: bool) -> None:
        """Bring every path to its side; what somebody changed meanwhile stays."""
        self._descent.close()
        self.open_up(forward=forward)
        for number, op in reversed(list(enumerate(self.ops))):
            self._do(op, forward, self._remove, number, op, forward)
        for op in self.stage.each(self.ops, CHANGING):
            wanted, _ = op.sides(forward=forward)
            if op.path in self.kept or wanted is None:
                continue
            if wanted.kind == FOLDER:
                self._do(op, forward, self._make_folder, op, forward)
            elif op.path in staged:
                self._do(op, forward, self._place, op, wanted, staged[op.path])
            else:
                self._do(op, forward, self._set_mode, op, wanted)
        self._sync()
        for op in reversed(self.ops):
            self._do(op, forward, self._set_folder_mode, op, forward)
        if self._is_many:
            operations.syncfs(self.root)
        if self._failures:
            raise self._failures[0]

    def _do(self, op: "Op", forward: bool, what: "object", *args: object) -> None:
        """Do something at a path; if its folder was moved away meanwhile, it stays as it is."""
        if op.is_settled:
            return
        try:
            what(*args)  # type: ignore[operator]
        except OSError as problem:
            if problem.errno not in GONE:
                problem.filename = self.named(op.path)
                if forward:
                    raise
                self._failures.append(problem)  # the others come back all the same
                return
            if self._is_untouched(op, forward):
                raise BlockedError(
                    "another program removed the files of the running restore",
                    hint="try again",
                ) from problem
            self.kept.setdefault(op.path, MOVED)

    def _is_untouched(self, op: "Op", forward: bool) -> bool:
        self._descent.close()
        folder = self._find_folder(op.way)
        if folder is None:
            return False
        return is_state(look_at(folder, op.name), op.sides(forward=forward)[1])

    def open_up(self, *, forward: bool) -> None:
        """Give us access to every folder that changes, or is on the way to a path."""
        for op in self.ops:
            self._open_up(op, forward)

    def _open_up(self, op: "Op", forward: bool) -> None:
        """Give us access to a folder, and deny it to whom the wanted mode denies it."""
        wanted, other = op.sides(forward=forward)
        modes = {entry.mode for entry in (wanted, other) if entry and entry.kind == FOLDER}
        if len(modes) < 2 and all(mode & 0o700 == 0o700 for mode in modes):
            return
        shut = ~wanted.mode & 0o077 if wanted and wanted.kind == FOLDER else 0
        try:
            fd, stand_in = self._stand_for_folder(op)
        except OSError as problem:
            if problem.errno in GONE:
                return
            raise
        try:
            mode = os.fstat(fd).st_mode & 0o7777
            if mode & (shut | 0o700) != 0o700:
                operations.chmod_folder(fd, mode & ~shut | 0o700)
                self._opened.add(op.path)
        finally:
            if stand_in >= 0:
                os.close(stand_in)

    def _stand_for_folder(self, op: "Op") -> "tuple[int, int]":
        """A folder; if it forbids its owner to open it, what stands for it is also to be closed."""
        try:
            return self._folder(op), -1
        except PermissionError:
            if not op.path:
                raise
            fd = operations.stand_for_folder(self._parent(op), op.name)
            return fd, fd

    def _remove(self, number: int, op: "Op", forward: bool) -> None:
        wanted, other = op.sides(forward=forward)
        folder = self._find_folder(op.way)
        had_folder = op.path.rpartition(b"/")[0] not in self._new
        if folder is None and wanted is None and not forward and had_folder:
            self.kept.setdefault(op.path, MOVED)  # with what we put there
        kind = kind_at(folder, op.name or b".") if folder is not None else None
        if kind is None or (wanted is not None and kind == wanted.kind):
            return
        if wanted is not None and FOLDER not in (kind, wanted.kind):
            return  # a file and a link change places
        if kind == FOLDER:
            self._remove_folder(op, other)
            return
        found = self.look(op)
        if not is_state(found, other):
            if found is not None:
                self.kept[op.path] = reasons.Reason(reasons.CHANGED_SINCE)
            return
        quarantined = self.stage.unused(b"q%d" % number)
        operations.move(self._parent(op), op.name, self.stage.fd, quarantined)
        if op.knows(look_at(self.stage.fd, quarantined)):
            return
        self.kept[op.path] = _SAVED
        try:
            operations.move(self.stage.fd, quarantined, self._parent(op), op.name)
        except FileExistsError:
            # Saved once more: the newer save has the path, this one is rescued.
            return

    def _remove_folder(self, op: "Op", other: "Entry | None") -> None:
        if other is None or other.kind != FOLDER:
            self.kept[op.path] = reasons.Reason(reasons.FOLDER_BY_NOW)
            return
        try:
            operations.rmdir(op.name, dir_fd=self._parent(op))
        except OSError as problem:
            if problem.errno not in _NOT_EMPTY:
                raise
            self.kept[op.path] = reasons.Reason(reasons.NOT_EMPTY_NOW)

    def _make_folder(self, op: "Op", forward: bool) -> None:
        if not op.path:
            return
        try:
            operations.mkdir(op.name, dir_fd=self._parent(op))
        except FileExistsError:
            found = self.look(op)
            if found is None or found.kind != FOLDER:
                self.kept[op.path] = reasons.Reason(reasons.REPLACED_BY_NOW)
            return
        if os.geteuid() == 0:
            owner = self._owner_of(op, forward)  # first: it may close the folder's descriptor
            give(self._folder(op), owner)

    def _place(self, op: "Op", wanted: "Entry", name: bytes) -> None:
        found = self._glance(op)
        if is_state(found, wanted):
            return  # already right: its time stays
        if found is None:
            try:
                operations.move(self.stage.fd, name, self._parent(op), op.name)
            except FileExistsError:
                self.kept[op.path] = reasons.Reason(reasons.MADE_MEANWHILE)
            return
        if not op.knows(found):
            self.kept[op.path] = reasons.Reason(reasons.CHANGED_SINCE)
            return
        self._exchange(op, name, set())

    def _exchange(self, op: "Op", name: bytes, seen: "set[bytes]") -> None:
        """Let an entry of our folder and what is at a path change places, and see what that was.

        If it is unknown, somebody saved meanwhile: the newest save goes back to the path. There
        may be one more by then: that one comes out, and goes back in turn.
        """
        displaced: bytes | None = name
        while displaced is not None and len(seen) <= _PATIENCE:
            displaced = self._swap(op, displaced)
            found = look_at(self.stage.fd, displaced) if displaced is not None else None
            if found is None or op.knows(found) or found.strong in seen:
                return
            self.kept[op.path] = _SAVED
            seen.add(found.strong)
        # It never stops: the last save that was displaced is rescued, and the next has the path.

    def _swap(self, op: "Op", name: bytes) -> "bytes | None":
        """Let an entry of our folder and one at a path change places; what that is called here.

        None if somebody saved in between, where a file system cannot exchange: that stays.
        """
        parent = self._parent(op)
        try:
            operations.exchange(self.stage.fd, name, parent, op.name)
            return name
        except OSError as problem:
            if problem.errno not in operations.CANNOT:
                raise
        # For a moment nothing is at the path.
        displaced = self.stage.unused(b"q" + name[1:].partition(b".")[0])
        operations.move(parent, op.name, self.stage.fd, displaced)
        try:
            operations.move(self.stage.fd, name, parent, op.name)
        except FileExistsError:
            self.kept[op.path] = _SAVED
            return None
        return displaced

    def _set_mode(self, op: "Op", wanted: "Entry") -> None:
        """Only the mode differs: the content is not touched."""
        if is_state(self.look(op), wanted):
            return
        # Opened before it is looked at: a file that somebody puts there now keeps its mode.
        file = operations.stand_for(self._parent(op), op.name)
        try:
            if op.knows(self.look(op)):
                operations.chmod_file(file, op.name, wanted.mode & 0o7777)
                self._sync_mode(file)
            else:
                self.kept[op.path] = reasons.Reason(reasons.CHANGED_SINCE)
        finally:
            os.close(file)

    def _set_folder_mode(self, op: "Op", forward: bool) -> None:
        wanted, other = op.sides(forward=forward)
        entry = wanted if op.path not in self.kept else other
        if entry is None or entry.kind != FOLDER:
            return
        fd = self._folder(op)
        is_set = os.fstat(fd).st_mode & 0o7777 == entry.mode & 0o7777
        if not is_set:
            operations.fchmod(fd, entry.mode & 0o7777)
        if not is_set or op.path in self._opened:
            self._sync_mode(fd)

    def _sync_mode(self, fd: int) -> None:
        if self._is_many:
            return  # the whole disk is synced in the end
        try:
            operations.fsync(fd)
        except OSError as problem:
            if problem.errno != errno.EBADF:
                raise
            # A descriptor that only stands for a file that nobody may open.
            operations.syncfs(self.root)

    def _sync(self) -> None:
        """Make names durable, while every folder can be opened."""
        if self._is_many:
            return  # the whole disk is synced in the end
        for way in sorted({op.way for op in self.ops}):
            folder = self._find_folder(way)
            if folder is not None:
                operations.fsync(folder)
        operations.fsync(self.stage.fd)

    # -- what came in between --------------------------------------------------------------

    def give_back(self) -> None:
        """Put saves back that were displaced when the process died, and not looked at yet."""
        self._descent.close()
        for op, name, state in self.strangers():
            if state.kind == FOLDER or op.path in self.kept or op.is_settled:
                continue
            found = self.look(op)
            try:
                if found is None:
                    operations.move(self.stage.fd, name, self._parent(op), op.name)
                elif op.knows(found) and found.kind != FOLDER:
                    self._exchange(op, name, {state.strong})
                else:
                    continue
            except OSError as problem:
                if problem.errno not in (*GONE, errno.EEXIST):
                    raise
                continue
            self.kept[op.path] = _SAVED

    def strangers(self) -> "Iterator[tuple[Op, bytes, State]]":
        """What lies in our folder and is no state that we know: somebody's save."""
        for number, name, state in list(self.stage.held()):
            if number < len(self.ops) and not self.ops[number].knows(state):
                yield self.ops[number], name, state

    def still_written(self) -> "dict[bytes, bytes]":
        """What lies in our folder while some process has it open for writing, and its path."""
        return {
            name: self.ops[number].path
            for number, name in self.stage.names()
            if number < len(self.ops) and self.stage.is_being_written(name)
        }

    # -- look ------------------------------------------------------------------------------

    def unfinished(self, *, forward: bool) -> "list[bytes]":
        """The paths that are not on their side; what somebody saved there by now stays."""
        self._descent.close()
        ops = self.stage.each(self.ops, CHECKING)
        return [op.path for op in ops if not self._is_done(op, forward=forward)]

    def done(self) -> "list[Op]":
        """The files and links that are back; a folder is not back before what is in it."""
        left = {*self.unfinished(forward=False), *(p for p, w in self.kept.items() if w == MOVED)}
        return [op for op in self.ops if op.path not in left and FOLDER not in op.kinds]

    def _is_hidden(self, op: "Op", forward: bool) -> bool:
        """Whether a path is in a folder that its owner may not look into any more."""
        above = {b"/".join(op.way[:depth]) for depth in range(1, len(op.way) + 1)}
        folders = [each.sides(forward=forward)[0] for each in self.ops if each.path in above]
        return any(entry is not None and entry.mode & 0o500 != 0o500 for entry in folders)

    def _is_done(self, op: "Op", *, forward: bool) -> bool:
        wanted, other = op.sides(forward=forward)
        try:
            found = self.look(op)
        except PermissionError:
            if not self._is_hidden(op, forward):
                raise
            return True  # it was looked at when it came
        if not op.knows(found) or (op.is_settled and not is_state(found, wanted)):
            self.kept.setdefault(op.path, _SAVED)
        if op.path in self.kept:
            return True
        if not is_state(found, wanted):
            return False
        if wanted is None or found is None or wanted.kind != FOLDER:
            return True
        if found.mode not in modes_of_folder(wanted, other):
            self.kept[op.path] = reasons.Reason(reasons.MODE_MEANWHILE)
        return found.mode == wanted.mode & 0o7777 or op.path in self.kept

    def changed(self) -> "list[bytes]":
        self._seen = {}
        moved = []
        for op in self.stage.each(self.ops, CHECKING):
            found = self.look(op)
            if not is_state(found, op.before):
                moved.append(op.path)
            elif found is not None:
                self._seen[op.path] = found
        return moved

    def require_apart(self) -> None:
        """An error if a path that shall appear is there already, under a name that differs in case.

        Such a disk has one file for both names, so one of them cannot come without the other.
        """
        self._descent.close()
        for op in self.ops:
            folder = self._find_folder(op.way) if op.before is None else None
            if folder is None or kind_at(folder, op.name) is None:
                continue
            for other in map(os.fsencode, os.listdir(folder)):
                if other == op.name:
                    break
                if fold(other) == fold(op.name) and _are_one(folder, other, op.name):
                    raise _one_file(self.named(b"/".join((*op.way, other))), self.named(op.path))

    def _require_two_names(self) -> None:
        """An error if two paths that shall appear would be one, on a disk that ignores case."""
        if not self.stage.ignores_case():
            return
        known: dict[bytes, bytes] = {}
        for op in self.ops:
            if op.after is None:
                continue
            first = known.setdefault(fold(op.path), op.path)
            if first != op.path:
                raise _one_file(self.named(first), self.named(op.path))

    def _glance(self, op: "Op") -> "State | None":
        """What is at a path now; not read again if it seems to be what it was.

        What is displaced is read in any case, after it cannot be taken for something else.
        """
        known, folder = self._seen.get(op.path), self._find_folder(op.way)
        if known is None or folder is None:
            return self.look(op)
        return glance_at(folder, op.name, known)

    def look(self, op: "Op") -> "State | None":
        folder = self._find_folder(op.way)
        return look_at(folder, op.name or b".") if folder is not None else None

    def _find_folder(self, way: "tuple[bytes, ...]") -> "int | None":
        try:
            return self._descent.open(way)
        except OSError as problem:
            if problem.errno in GONE:
                return None
            raise

    def _parent(self, op: "Op") -> int:
        return self._descent.open_anew(op.way)

    def _folder(self, op: "Op") -> int:
        return self._descent.open_anew((*op.way, op.name) if op.path else ())


def _one_file(one: bytes, other: bytes) -> BlockedError:
    return BlockedError(
        f"`{os.fsdecode(one)}` and `{os.fsdecode(other)}` are one file on this disk, which ignores"
        " upper and lower case",
        hint=(
            f"rename `{os.fsdecode(one)}` by hand",
            Action("other-paths"),
            "nothing was changed",
        ),
    )


def _are_one(folder: int, one: bytes, other: bytes) -> bool:
    found = [os.stat(name, dir_fd=folder, follow_symlinks=False) for name in (one, other)]
    return (found[0].st_dev, found[0].st_ino) == (found[1].st_dev, found[1].st_ino)


def _own() -> "Owner":
    return os.geteuid(), os.getegid()


def _is_mode(op: "Op") -> bool:
    """Whether a mode is set at a path, which no sync of the folder around it makes durable."""
    return op.is_in_place or any(entry.kind == FOLDER for entry in (op.before, op.after) if entry)
