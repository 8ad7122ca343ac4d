"""Find out what a tree looks like now, through directory descriptors and never through a link.

With a stat cache only the folders and entries that its stat loop reports are looked at; without
one, everything is. Nothing in the tree stops a scan: what cannot be captured becomes an entry
with the reason. File contents are not read here; what needs reading is collected in `pending`.
"""

import errno
import os

from takeback.disk.descent import Descent
from takeback.disk.machine import Mounts
from takeback.model import words
from takeback.model.ids import is_area, is_stage
from takeback.model.tree import FOLDER, KIND, LINK, REGULAR
from takeback.worktree.folders import CHANGED, DENIED, GONE, Folder, Node, load, mark_racy
from takeback.worktree.stat_cache import is_big, reports, subfolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from takeback.capture.project_rules import LimitRules

    Records = bytes | bytearray
    Within = Iterable[bytes] | None
    """Folders to which a look is limited, with those above them; None for all."""

hook: "Callable[[str, bytes], None] | None" = None
"""Called as ("listed", path) after a folder was listed. Set by tests only."""

VERSION_CONTROL = frozenset((b".git", b".jj", b".hg", b".svn"))
GONE_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE)
"""What the system says of something that is not there, or is of another kind by now."""
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system says when this process lacks something: nothing is wrong with the tree."""
_STICKY = (words.REBUILDABLE, words.IGNORED)


class StrangeRoot(Exception):
    """The records are about another root than the one that is looked at."""


class Scan:
    """One look at a tree.

    `pending` holds (folder, node) for every file and link whose content must be read.
    `removed` holds the offsets of records whose folders are gone.
    A folder that something vanished from after it was listed is `unsure`: the entry may have been
    deleted, or a folder above it was moved away for a moment. It is listed once more, and if that
    does not help, its stamps are not trusted next time.
    """

    def __init__(
        self,
        root: int,
        rules: "LimitRules",
        strangers: "Mapping[tuple[int, int], int]",
        mounts: "frozenset[bytes] | None",
    ) -> None:
        self.pending: list[tuple[Folder, Node]] = []
        self.removed: set[int] = set()
        self.descent = Descent(root)
        self._root = root
        self._rules = rules
        self._strangers = strangers
        self._mounts = Mounts(mounts, os.fstat(root).st_dev)
        self._loaded: dict[int, Folder] = {}
        self._found: list[Folder] = []
        self._records: Records = b""
        self._unsure: list[Folder] = []
        self._has_lost = False
        self._verdicts: dict[bytes, int] = {}

    def close(self) -> None:
        self.descent.close()

    # -- everything ------------------------------------------------------------------------

    def whole(self) -> Folder:
        root = Folder(b"", None)
        root.stamp(os.fstat(self._root))
        root.judged = True
        self._explore(root)
        self._collect()
        self.settle()
        return root

    # -- what changed ----------------------------------------------------------------------

    def changes(self, records: "Records", within: "Within" = None) -> "Folder | None":
        """Look at what is no longer as `records` say; None if everything is."""
        self._records = records
        for offset, status, ancestors, indices in reports(records, self._root, within):
            above = self._load_chain(records, ancestors)
            if status in (GONE, DENIED):
                self._replace_folder(above, records, offset)
                continue
            folder = self._load(records, offset, above)
            if status == CHANGED and above is not None and self._mounts.cover(folder.path()):
                self._replace_folder(above, records, offset)
                continue
            names = list(folder.nodes)
            for index in indices:
                self._look_again(folder, names[index])
            if status == CHANGED:
                self._list_again(folder)
        self.pending = [todo for todo in self.pending if self._is_attached(todo[0])]
        self._collect()
        self.settle()
        return self._loaded.get(0)

    def _load_chain(self, records: "Records", offsets: "Iterable[int]") -> "Folder | None":
        folder = None
        for offset in offsets:
            folder = self._load(records, offset, folder)
        return folder

    def _load(self, records: "Records", offset: int, parent: "Folder | None") -> Folder:
        folder = self._loaded.get(offset)
        if folder is None:
            folder = self._loaded[offset] = load(records, offset, parent)
            node = parent.nodes.get(folder.name) if parent is not None else None
            if parent is not None and node is not None and node.is_folder:
                parent.children.setdefault(folder.name, folder)
        return folder

    def _replace_folder(self, parent: "Folder | None", records: "Records", offset: int) -> None:
        if parent is None:
            raise StrangeRoot
        name = load(records, offset, parent).name
        self.removed.add(offset)
        self._forget(parent, name)
        self._classify_name(parent, name)

    def _look_again(self, folder: Folder, name: bytes) -> None:
        node = folder.nodes.get(name)
        found = self._lstat(folder, name)
        if node is None or found is None:
            return
        same_kind = (node.mode ^ found.st_mode) & KIND == 0
        kind = found.st_mode & KIND
        if node.reason or not same_kind or kind not in (REGULAR, LINK):
            self._reconsider(folder, node, found)
            return
        if self._mounts.hold(folder.path(), name, found):
            self._leave_out(folder, name, found, words.OTHER_MOUNT)
            return
        if node.mode != found.st_mode:
            folder.changed = True
        node.stamp(found)
        folder.touched = True
        self.pending.append((folder, node))

    def _reconsider(self, folder: Folder, node: Node, found: os.stat_result) -> None:
        """Something left out has changed, or what was captured is of another kind now."""
        still_large = found.st_size > self._rules.file_limit and node.inode == found.st_ino
        if node.reason == words.TOO_LARGE and still_large:
            # Asking whether git tracks it by now means reading the whole index, at each change.
            node.stamp(found)
            folder.touched = True
            return
        if node.reason in _STICKY:
            # If it is still big, it need not be asked about again: that can be slow.
            self._verdicts[folder.path_of(node.name)] = node.reason
        self._forget(folder, node.name)
        self._classify(folder, node.name, found)

    def _list_again(self, folder: Folder) -> None:
        listed = self._list(folder)
        if listed is None:
            return
        names = set(listed)
        gone = [known for known in folder.nodes if known not in names]
        if folder.offset >= 0 and any(folder.nodes[name].is_folder for name in gone):
            offsets = subfolders(self._records, folder.offset)
            self.removed.update(offsets[name] for name in gone if name in offsets)
        for name in gone:
            self._forget(folder, name)
        fresh = [name for name in listed if name not in folder.nodes]
        if not fresh:
            return
        bounded = self._is_bounded(folder)
        for name in fresh:
            found = self._lstat(folder, name)
            if found is None:
                continue
            if bounded and not (name in VERSION_CONTROL or self._rules.keeps(folder.path_of(name))):
                self._leave_out(folder, name, found, words.REBUILDABLE)
            else:
                self._classify(folder, name, found)

    def _is_bounded(self, folder: Folder) -> bool:
        """Whether new entries here would grow a rebuildable folder that is big already."""
        outermost = None
        above: Folder | None = folder
        while above is not None and above.parent is not None:
            if self._rules.is_rebuildable(above.name) and above.offset >= 0:
                outermost = above
            above = above.parent
        if outermost is None:
            return False
        if not is_big(self._records, outermost.offset, self._rules.entry_limit):
            return False
        return bool(self._rules.leaves_out_folder(outermost.path()))

    # -- new folders -----------------------------------------------------------------------

    def _explore(self, start: Folder) -> None:
        """List a new folder and everything below it that the rules do not leave out."""
        stack = [start]
        while stack:
            folder = stack.pop()
            if self._has_lost and not self._is_attached(folder):
                continue
            folder.mark = len(stack)
            listed = self._list(folder)
            if listed is None:
                continue
            verdict = self._verdicts.get(folder.path()) if self._verdicts else None
            if verdict and len(listed) > self._rules.entry_limit:
                folder.entries_below = len(listed)
                self._give_up(folder, verdict)
                continue
            bytes_here = 0
            fd = self.descent.open(folder.way())
            for name in listed:
                try:
                    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as problem:
                    self._cannot_look(folder, name, problem)
                    continue
                self._classify(folder, name, found, stack)
                if found.st_mode & KIND == REGULAR:
                    bytes_here += found.st_size
            self._found.append(folder)
            self._weigh(folder, len(listed), bytes_here, stack)

    def _weigh(self, folder: Folder, entries: int, size: int, stack: "list[Folder]") -> None:
        """Count new entries for every folder above, and ask the rules where a limit is passed."""
        over = []
        above: Folder | None = folder
        while above is not None and not above.judged:
            above.entries_below += entries
            above.bytes_below += size
            if above.entries_below > self._rules.entry_limit:
                above.judged = True
                over.append(above)
            elif above.rebuildable and above.bytes_below > self._rules.byte_limit:
                above.rebuildable = False
                over.append(above)
            above = above.parent
        for big in reversed(over):
            path = big.path()
            reason = self._verdicts.get(path) or self._rules.leaves_out_folder(path)
            if reason:
                del stack[big.mark :]
                self._give_up(big, reason)
                return

    def _give_up(self, folder: Folder, reason: int) -> None:
        parent = folder.parent
        if parent is None:
            return
        parent.children.pop(folder.name, None)
        node = parent.nodes[folder.name]
        node.flags = reason
        node.set_seen(folder.entries_below, folder.bytes_below)

    def _collect(self) -> None:
        for folder in self._found:
            if self._is_attached(folder):
                for node in folder.nodes.values():
                    if not node.reason and node.mode & KIND != FOLDER:
                        self.pending.append((folder, node))
        self._found.clear()

    @staticmethod
    def _is_attached(folder: Folder) -> bool:
        while folder.parent is not None:
            if folder.parent.children.get(folder.name) is not folder:
                return False
            folder = folder.parent
        return True

    # -- entries ---------------------------------------------------------------------------

    def _classify_name(self, folder: Folder, name: bytes) -> None:
        found = self._lstat(folder, name)
        if found is not None:
            self._classify(folder, name, found)

    def _classify(
        self,
        folder: Folder,
        name: bytes,
        found: os.stat_result,
        stack: "list[Folder] | None" = None,
    ) -> None:
        """Note a name that was not known before. New folders are explored now, or stacked."""
        reason = self._reason(folder, name, found)
        node = folder.nodes[name] = Node(name)
        node.stamp(found)
        node.flags = reason
        folder.touched = folder.changed = True
        if reason:
            return
        if found.st_mode & KIND == FOLDER:
            child = folder.children[name] = Folder(name, folder)
            child.stamp(found)
            child.rebuildable = self._rules.is_rebuildable(name)
            if stack is None:
                self._explore(child)
            else:
                stack.append(child)
        elif stack is None:
            self.pending.append((folder, node))

    def _reason(self, folder: Folder, name: bytes, found: os.stat_result) -> int:
        kind = found.st_mode & KIND
        if name in VERSION_CONTROL:
            return words.VERSION_CONTROL
        if self._mounts.hold(folder.path(), name, found):
            return words.OTHER_MOUNT
        if kind == FOLDER:
            known = self._strangers.get((found.st_dev, found.st_ino), 0)
            return known or (words.STORE if is_area(name) else 0)
        if kind == REGULAR:
            return self._reason_of_file(folder, name, found.st_size)
        return 0 if kind == LINK else words.SPECIAL

    def _reason_of_file(self, folder: Folder, name: bytes, size: int) -> int:
        if self._rules.may_hold(name) and self._rules.holds(folder.path_of(name)):
            return words.PARTICIPANT
        is_large = size > self._rules.file_limit
        return self._rules.leaves_out_file(folder.path_of(name)) if is_large else 0

    def _leave_out(self, folder: Folder, name: bytes, found: os.stat_result, reason: int) -> None:
        node = folder.nodes[name] = Node(name)
        node.stamp(found)
        node.flags = reason
        # What could not be entered this time may be open the next, without any stamp changing.
        mark_racy(node, reason == words.UNREADABLE)
        folder.children.pop(name, None)
        folder.touched = folder.changed = True

    def _forget(self, folder: Folder, name: bytes) -> None:
        if folder.nodes.pop(name, None) is not None:
            folder.children.pop(name, None)
            folder.touched = folder.changed = True

    def look_once_more(self, folder: Folder, name: bytes) -> None:
        """An entry turned out to be something else than a moment ago: see what it is now."""
        if self._is_attached(folder):
            self._forget(folder, name)
            self._classify_name(folder, name)

    def settle(self) -> None:
        """List the folders once more from which something vanished: it may have another name."""
        unsure, self._unsure = self._unsure, []
        for folder in unsure:
            if not folder.unsure or not self._is_attached(folder):
                continue
            for node in list(folder.nodes.values()):
                if node.reason == words.UNREADABLE:
                    self._forget(folder, node.name)
            self._list_again(folder)
        self._collect()

    def _doubt(self, folder: Folder) -> None:
        folder.unsure = folder.touched = True
        self._unsure.append(folder)

    # -- the disk --------------------------------------------------------------------------

    def _list(self, folder: Folder) -> "list[bytes] | None":
        """The names in a folder, sorted; None if it cannot be listed, which is then noted."""
        try:
            fd = self.descent.open(folder.way())
            # Stamps first: what changes after this will be seen next time.
            folder.stamp(os.fstat(fd))
            listed = sorted(map(os.fsencode, os.listdir(fd)))
            if folder.parent is None:
                listed = [name for name in listed if not is_stage(name)]
        except OSError as problem:
            self._cannot_enter(folder, problem)
            return None
        folder.unsure = False
        if hook is not None:
            hook("listed", folder.path())
        return listed

    def _cannot_enter(self, folder: Folder, problem: OSError) -> None:
        if not self._is_attached(folder):
            return
        # What is open may have been moved; from here on only names count.
        self.descent.close()
        parent = folder.parent
        while parent is not None and problem.errno not in SHORTAGES:
            try:
                fd = self.descent.open(parent.way())
            except OSError as above:
                folder, parent, problem = parent, parent.parent, above
            else:
                self._lose(parent, folder, fd, problem)
                return
        raise problem

    def _lose(self, parent: Folder, folder: Folder, fd: int, problem: OSError) -> None:
        """Take a folder that cannot be entered out of the one above, which is open as `fd`."""
        self._has_lost = True
        self._forget(parent, folder.name)
        if folder.offset >= 0:
            self.removed.add(folder.offset)
        try:
            found = os.stat(folder.name, dir_fd=fd, follow_symlinks=False)
        except OSError as gone:
            self._cannot_look(parent, folder.name, gone)
            return
        if found.st_mode & KIND != FOLDER:
            self._classify(parent, folder.name, found)
            return
        self._leave_out(parent, folder.name, found, words.UNREADABLE)
        if problem.errno in GONE_ERRORS:
            # It was away only for a moment.
            self._doubt(parent)

    def _lstat(self, folder: Folder, name: bytes) -> "os.stat_result | None":
        """What an entry is; None if it is gone or cannot be looked at, which is then noted."""
        try:
            fd = self.descent.open(folder.way())
        except OSError as problem:
            # That says something about the folder, and nothing about the entry.
            self._cannot_enter(folder, problem)
            return None
        try:
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as problem:
            self._cannot_look(folder, name, problem)
            return None

    def _cannot_look(self, folder: Folder, name: bytes, problem: OSError) -> None:
        known = folder.nodes.get(name)
        if known is not None and known.reason == words.UNREADABLE and not known.mode:
            return
        self._forget(folder, name)
        if problem.errno in SHORTAGES:
            raise problem
        if problem.errno in GONE_ERRORS:
            self._doubt(folder)
            return
        node = folder.nodes[name] = Node(name)
        node.flags = words.UNREADABLE
        folder.touched = folder.changed = True
