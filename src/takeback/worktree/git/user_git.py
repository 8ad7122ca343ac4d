"""The user's git, read as plain files: never run, never written, its settings never obeyed.

Everything here may have been made by somebody hostile. So each file is opened without
following links, only if it is a regular file, and only up to a size; whatever makes no sense
is "unknown" (None, or empty), never an exception.
"""

import os
import stat
import zlib

from takeback.model.value import Value
from takeback.worktree.git import index as git_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SMALL_FILE = 64 << 10
_LARGEST_PACKED_REFS = 256 << 20
_CHUNK = 1 << 20
_LONGEST_REF = 4096
_MOST_COUNTED = 1000
_MOST_HOPS = 5
_LONGEST_TIME = 15
_HEADS = b"refs/heads/"
_REFS_OF_ONE_WORKTREE = (b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/")
_HEX = b"0123456789abcdef"
_LENGTHS = (40, 64)
_VERSION_CONTROL_FOLDERS = (b".jj", b".hg", b".svn")
_MOST_REFS = 10_000
_MOST_FOLDERS = 5_000
_MOST_STASHES = 1_000
_LARGEST_LISTING = 16 << 20
_RACY = 2_500_000_000
"""A stamp that is younger, in nanoseconds, may hide another change."""
_UNDER_WAY = {
    b"rebase-merge": "rebase",
    b"rebase-apply": "rebase",
    b"MERGE_HEAD": "merge",
    b"CHERRY_PICK_HEAD": "cherry-pick",
    b"REVERT_HEAD": "revert",
    b"BISECT_LOG": "bisect",
}
_STAMPED = (b"", b"HEAD", b"index")
_STAMPED_IN_COMMON = (b"", b"packed-refs", b"logs/refs/stash", b"worktrees", b"reftable")

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Head(Value):
    """What is checked out: a branch (also one without commits yet), a commit, or unknown.

    `branch` is the name below refs/heads, or the whole name of any other reference; None when
    HEAD is detached. `commit` is None when the branch is unborn or cannot be read.
    """

    branch: bytes | None
    commit: str | None


class Commit(Value):
    """A commit, and the one that it follows on its line; None if it is the first.

    `time` is what it says itself of when it was made, in seconds; 0 if that makes no sense.
    """

    id: str
    parent: str | None
    time: int


class Repository(Value):
    """The git folder of one work tree; `common_dir` is where all its work trees share."""

    git_dir: bytes
    common_dir: bytes

    def head(self) -> Head:
        text = _read_reference(self.git_dir, b"HEAD")
        name = _symbolic_target(text)
        if name is None:
            return Head(None, _commit_id(text))
        if not _is_reference_name(name) or name == b"refs/heads/.invalid":
            return Head(None, None)  # the latter is what a reftable repository has in HEAD
        return Head(name.removeprefix(_HEADS), self._resolve(name))

    def index_checksum(self) -> str | None:
        """Give the hash at the end of the index: it changes whenever the index does.

        None when there is no index, it is damaged, or git was told to leave the hash out.
        """
        fd = open_regular(self.git_dir, b"index")
        if fd is None:
            return None
        try:
            return git_index.read_checksum(fd)
        except OSError:
            return None
        finally:
            os.close(fd)

    def read_index(self) -> "git_index.Index":
        fd = open_regular(self.git_dir, b"index")
        if fd is None:
            return git_index.EMPTY if self._has_no_index() else git_index.UNKNOWN
        try:
            return git_index.read_index(fd, self._open_shared_index)
        except OSError:
            return git_index.UNKNOWN
        finally:
            os.close(fd)

    def staged(self, files: "Mapping[bytes, bytes]") -> list[bytes]:
        """Those of the paths that the index has with just this object, as far as it can be told."""
        fd = open_regular(self.git_dir, b"index")
        if fd is None:
            return []
        try:
            return git_index.with_objects(fd, files)
        except OSError:
            return []
        finally:
            os.close(fd)

    def tracked_files(self) -> frozenset[bytes]:
        return self.read_index().files

    def _has_no_index(self) -> bool:
        try:
            os.lstat(os.path.join(self.git_dir, b"index"))
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False

    def _open_shared_index(self, checksum: str) -> int | None:
        name = b"sharedindex." + checksum.encode()
        fd = open_regular(self.git_dir, name)
        return fd if fd is not None else open_regular(self.common_dir, name)

    def commits_between(self, older: str, newer: str) -> "list[Commit] | None":
        """The commits between two of one line, newest first; None if that cannot be told easily.

        Fresh commits are files of their own. What git has packed is not looked into.
        """
        found: list[Commit] = []
        while (found[-1].parent if found else newer) != older:
            commit = self._commit((found[-1].parent if found else newer) or "")
            if commit is None or len(found) >= _MOST_COUNTED:
                return None
            found.append(commit)
        return found

    def commits_since(self, newest: str, moment: int) -> "list[Commit]":
        """The commits of a line that were made after a moment, newest first.

        Git writes each into a file of its own, whose stamp tells when to the instant; but not in
        a copy of a repository, so the seconds that it says itself have to agree. What git has
        packed is taken for old.
        """
        found: list[Commit] = []
        commit = self._commit(newest)
        while commit is not None and len(found) < _MOST_COUNTED:
            if self._stamp_of(commit.id) <= moment or commit.time < moment // 10**9:
                break
            found.append(commit)
            commit = self._commit(commit.parent or "")
        return found

    def _stamp_of(self, id: str) -> int:
        try:
            return os.lstat(os.path.join(self.common_dir, _file_of(id))).st_mtime_ns
        except OSError:
            return 0

    def _commit(self, id: str) -> "Commit | None":
        data = read_regular(self.common_dir, _file_of(id)) if id else None
        if data is None:
            return None
        try:
            text = zlib.decompressobj().decompress(data, _SMALL_FILE)
        except zlib.error:
            return None
        if not text.startswith(b"commit "):
            return None
        lines = text.partition(b"\n\n")[0].split(b"\n")
        parents = [_commit_id(line[7:]) for line in lines if line.startswith(b"parent ")]
        parent = parents[0] if parents else None
        return Commit(id, parent, time=_time_of(lines))

    # -- all that a turn records -----------------------------------------------------------

    def state(self) -> "dict[str, str]":
        """HEAD, index, refs, stash, worktrees by name, as `model/beyond/git_changes` compares."""
        head, refs, found = self.head(), _References(self.common_dir).read(), {}
        if head.branch is not None:
            found["branch"] = _text(head.branch)
        if head.commit is not None:
            found["head"] = head.commit
        if not self._has_no_index():
            found["index"] = self.index_checksum() or str(_stamp(self.git_dir, b"index"))
        for name, what in _UNDER_WAY.items():
            if _mode_of(os.path.join(self.git_dir, name)):
                found["doing"] = what
                break
        if isinstance(refs, str):
            return {**found, "refs": refs, **self._worktrees()}
        stash = refs.pop("refs/stash", "")
        return {**found, **refs, **(self._stashes(stash) if stash else {}), **self._worktrees()}

    def stamps(self) -> "list[object]":
        """What changes whenever git changes what `state` tells; newest stamp first.

        Git replaces files and never writes into them, so the folders of refs tell for what is in
        them. What is checked out is read: somebody may write that by hand.
        """
        head = self.head()
        found = [_stamp(self.git_dir, name) for name in _STAMPED]
        found += [_stamp(self.common_dir, name) for name in _STAMPED_IN_COMMON]
        found += _References(self.common_dir).stamps()
        newest = max((stamp[0] for stamp in found if stamp), default=0)
        return [newest, head.branch, head.commit, self.index_checksum(), found]

    def _stashes(self, newest: str) -> "dict[str, str]":
        log = read_regular(self.common_dir, b"logs/refs/stash", _LARGEST_LISTING) or b""
        found = {}
        for line in log.splitlines()[-_MOST_STASHES:]:
            about, _, message = line.partition(b"\t")
            id = _commit_id(b"".join(about.split(b" ", 2)[1:2]))
            if id is not None:
                found[f"stash {id}"] = _text(message)
        return found or {f"stash {newest}": ""}

    def _worktrees(self) -> "dict[str, str]":
        try:
            names = sorted(os.listdir(os.path.join(self.common_dir, b"worktrees")))
        except OSError:
            return {}
        found = {}
        for name in names[:_MOST_STASHES]:
            told = read_regular(self.common_dir, b"worktrees/%s/gitdir" % name) or b""
            path = told.rstrip(b"\r\n").removesuffix(b"/.git")
            found[f"worktree {_text(name)}"] = _text(path)
        return found

    def _resolve(self, name: bytes) -> str | None:
        for _ in range(_MOST_HOPS):
            own = name.startswith(_REFS_OF_ONE_WORKTREE)
            text = _read_reference(self.git_dir if own else self.common_dir, name)
            if text is None:
                return _find_packed(self.common_dir, name)
            target = _symbolic_target(text)
            if target is None:
                return _commit_id(text)
            if not _is_reference_name(target):
                return None
            name = target
        return None


def _file_of(id: str) -> bytes:
    return b"objects/%s/%s" % (id[:2].encode(), id[2:].encode())


def _time_of(lines: "list[bytes]") -> int:
    said = [line.split()[-2:] for line in lines if line.startswith(b"committer ")]
    seconds = said[0][0] if said else b""
    return int(seconds) if seconds.isdigit() and len(seconds) < _LONGEST_TIME else 0


class _References:
    """The references of a repository: packed ones, and those that are files of their own."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self._found: dict[str, str] = {}
        self._folders: list[tuple[int, ...]] = []

    def read(self) -> "dict[str, str] | str":
        """Each by its name; or why nobody can tell."""
        if _mode_of(os.path.join(self._folder, b"reftable")):
            return "reftable"
        if _mode_of(os.path.join(self._folder, b"packed-refs")):
            packed = read_regular(self._folder, b"packed-refs", _LARGEST_LISTING)
            if packed is None:
                return "unreadable"
            self._read_packed(packed)
        if not self._walk(b"refs", files=True):
            return "unreadable"
        if len(self._found) > _MOST_REFS:
            return "too many"
        own = tuple(map(_text, _REFS_OF_ONE_WORKTREE))
        return {name: id for name, id in self._found.items() if not name.startswith(own)}

    def stamps(self) -> "list[tuple[int, ...]]":
        """The stamps of all folders that hold references."""
        self._walk(b"refs", files=False)
        return self._folders

    def _read_packed(self, data: bytes) -> None:
        digits = _HEX.decode()
        for line in _text(data).split("\n"):
            id, _, name = line.partition(" ")
            if name[:5] == "refs/" and len(id) in _LENGTHS and not id.strip(digits):
                self._found[name] = id

    def _walk(self, name: bytes, *, files: bool) -> bool:
        try:
            fd = os.open(os.path.join(self._folder, name), _FOLDER_FLAGS)
        except OSError:
            return False
        try:
            return self._walk_open(fd, name + b"/", files=files)
        except OSError:
            return False
        finally:
            os.close(fd)

    def _walk_open(self, fd: int, above: bytes, *, files: bool) -> bool:
        told = os.fstat(fd)
        self._folders.append((told.st_mtime_ns, told.st_ino))
        if len(self._folders) > _MOST_FOLDERS:
            return False
        folders, loose = [], []
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(os.fsencode(entry.name))
                elif files and not entry.name.endswith(".lock"):
                    loose.append(os.fsencode(entry.name))
        for name in loose:
            self._read_loose(fd, name, above + name)
        for name in sorted(folders):
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
            try:
                if not self._walk_open(inner, above + name + b"/", files=files):
                    return False
            finally:
                os.close(inner)
        return True

    def _read_loose(self, fd: int, name: bytes, whole: bytes) -> None:
        if len(self._found) > _MOST_REFS:
            return
        file = _open_last(name, fd)
        if file is None:
            return
        try:
            text = os.read(file, _LONGEST_REF)
        finally:
            os.close(file)
        target = _symbolic_target(text)
        value = _commit_id(text) if target is None else f"ref: {_text(target)}"
        if value is not None:
            self._found[_text(whole)] = value


def look(root: bytes) -> "tuple[dict[str, str], Repository | None]":
    """What is at `.git` below a folder, under that name, and the repository if it can be read.

    Another folder at the same place is another repository, so its number belongs to it.
    """
    try:
        told = os.lstat(os.path.join(root, b".git"))
    except OSError:
        return {}, None
    repository = find_repository(root)
    kind = "link" if stat.S_ISLNK(told.st_mode) else "file"
    if stat.S_ISDIR(told.st_mode):
        kind = f"folder {told.st_ino}"
    return {".git": kind} if repository is not None else {".git": kind, "refs": kind}, repository


def is_settled(stamps: "list[object]", now: int) -> bool:
    """Whether no change may hide behind the stamps, which are read at a time in nanoseconds."""
    return int(str(stamps[0])) < now - _RACY


def _stamp(folder: bytes, name: bytes) -> "tuple[int, ...]":
    try:
        told = os.lstat(os.path.join(folder, name))
    except OSError:
        return ()
    return told.st_mtime_ns, told.st_ino, told.st_size


def _text(data: bytes) -> str:
    """As the ledger can hold it: a name that is no UTF-8 is not told exactly."""
    return data.decode("utf-8", "replace")


def find_repository(root: bytes) -> Repository | None:
    """Find the git folder of the work tree whose top is `root` (parents are not searched).

    A `.git` that is a link is not followed, so such a repository is not seen.
    """
    git_dir: bytes | None = os.path.join(root, b".git")
    if is_regular(os.path.join(root, b".git")):
        git_dir = _read_git_file(root)
    if git_dir is None or _read_reference(git_dir, b"HEAD") is None:
        return None
    return Repository(git_dir, _common_dir(git_dir))


def top_of_repository(path: bytes) -> bytes | None:
    """Find the nearest folder, `path` itself or above it, that is under version control."""
    folder = os.path.abspath(path)
    while True:
        if _is_version_controlled(folder):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def open_regular(folder: bytes, name: bytes) -> int | None:
    """Open the file `name` below `folder` for reading, if it is regular and behind no link.

    The kind is looked at before opening, because to open a pipe or a device already does
    something, and again afterwards, because the entry may have been replaced.
    """
    *folders, last = name.split(b"/")
    try:
        folder_fd = os.open(folder, _FOLDER_FLAGS)
    except (OSError, ValueError):
        return None
    try:
        for part in folders:
            inner_fd = os.open(part, _FOLDER_FLAGS, dir_fd=folder_fd)
            os.close(folder_fd)
            folder_fd = inner_fd
        return _open_last(last, folder_fd)
    except (OSError, ValueError):
        return None
    finally:
        os.close(folder_fd)


def read_regular(folder: bytes, name: bytes, limit: int = _SMALL_FILE) -> bytes | None:
    """Read the file `name` below `folder`; None if it is not regular, or larger than `limit`."""
    fd = open_regular(folder, name)
    if fd is None:
        return None
    try:
        data = git_index.read_bytes(fd, 0, limit + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data if len(data) <= limit else None


def is_regular(path: bytes) -> bool:
    return stat.S_ISREG(_mode_of(path))


def _mode_of(path: bytes) -> int:
    """0 if there is nothing, or nothing can be known."""
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _open_last(name: bytes, folder_fd: int) -> int | None:
    if not stat.S_ISREG(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode):
        return None
    fd = os.open(name, _FILE_FLAGS, dir_fd=folder_fd)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def _read_git_file(root: bytes) -> bytes | None:
    text = read_regular(root, b".git")
    if text is None or not text.startswith(b"gitdir: "):
        return None
    named = text.removeprefix(b"gitdir: ").rstrip(b"\r\n")
    return os.path.normpath(os.path.join(root, named)) if _is_path(named) else None


def _common_dir(git_dir: bytes) -> bytes:
    named = (read_regular(git_dir, b"commondir") or b"").rstrip(b"\r\n")
    return os.path.normpath(os.path.join(git_dir, named)) if _is_path(named) else git_dir


def _is_path(named: bytes) -> bool:
    return bool(named) and b"\0" not in named


def _read_reference(folder: bytes, name: bytes) -> bytes | None:
    """Read a reference file; very old git made HEAD a link, whose text is as good."""
    text = read_regular(folder, name)
    if text is None and name == b"HEAD":
        try:
            return b"ref: " + os.readlink(os.path.join(folder, name))
        except (OSError, ValueError):
            return None
    return text


def _symbolic_target(text: bytes | None) -> bytes | None:
    if text is None or not text.startswith(b"ref:"):
        return None
    return text.removeprefix(b"ref:").strip(b" \t\r\n")


def _is_reference_name(name: bytes) -> bool:
    """Whether this may be looked up below the git folder without leaving it."""
    if not name.startswith(b"refs/") or len(name) > _LONGEST_REF:
        return False
    if any(byte < 0x21 or byte == 0x7F for byte in name):
        return False
    return not any(part in (b"", b".", b"..") for part in name.split(b"/"))


def _commit_id(text: bytes | None) -> str | None:
    digits = (text or b"").rstrip(b" \t\r\n").lower()
    if len(digits) not in _LENGTHS or digits.strip(_HEX):
        return None
    return digits.decode()


def _find_packed(folder: bytes, name: bytes) -> str | None:
    """Look a reference up in packed-refs, piece by piece: it may list very many."""
    fd = open_regular(folder, b"packed-refs")
    if fd is None:
        return None
    try:
        if os.fstat(fd).st_size > _LARGEST_PACKED_REFS:
            return None
        return _search_packed(fd, b" " + name)
    except OSError:
        return None
    finally:
        os.close(fd)


def _search_packed(fd: int, wanted: bytes) -> str | None:
    rest = b""
    while len(rest) <= _SMALL_FILE:
        chunk = os.read(fd, _CHUNK)
        lines, _, rest = (rest + (chunk or b"\n")).rpartition(b"\n")
        at = (lines + b"\n").find(wanted + b"\n")
        if at >= 0:
            return _commit_id(lines[lines.rfind(b"\n", 0, at) + 1 : at])
        if not chunk:
            break
    return None


def _is_version_controlled(folder: bytes) -> bool:
    mode = _mode_of(os.path.join(folder, b".git"))
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return True
    others = (os.path.join(folder, name) for name in _VERSION_CONTROL_FOLDERS)
    return any(stat.S_ISDIR(_mode_of(path)) for path in others)
