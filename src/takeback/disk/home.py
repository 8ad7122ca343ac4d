"""The folder that holds every project's store, and which project is where.

home/                    0700
  registry               one line per project: id, device, inode, path; made anew when lost.
                         Before the path of a detached history there is a `-`
  lock                   held while the registry or a new store is written
  config.toml            the user's settings, if any
  projects/ID/           one store, see `store.py`
    root                 the project's own line of the registry: the truth
    birth                when the folder was made that this line is about, where that is known

Remove a whole store: first it loses its name, then its files go.

With its new name it is no store any more: nothing finds it, and whoever holds the home's lock next
removes what is left of it. A crash leaves a store that is whole, or one that is as good as gone.

Settings: TOML files in the home folder and in a project's store, never in the work tree.
"""

import os
import stat
import zlib

from takeback.disk import operations
from takeback.errors import UnsafeRootError, UnsafeStoreError, UsageError
from takeback.model import ids
from takeback.model.reasons import Action
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SUFFIX = b".removed"


def remove(home: "Home", id: str) -> None:
    """Take a store away. With the home's lock held, and the store's own."""
    projects = home.path + b"/projects/"
    # Never the name of one that is still on its way out.
    doomed = projects + id.encode() + SUFFIX
    if os.path.lexists(doomed):
        delete(doomed)
    operations.rename(projects + id.encode(), doomed)
    operations.fsync_dir(projects)
    home.write_registry()
    delete(doomed)


def leftovers(home: "Home") -> "list[bytes]":
    """The stores that were on their way out when a process died."""
    try:
        names = os.listdir(home.path + b"/projects")
    except FileNotFoundError:
        return []
    return [home.path + b"/projects/" + name for name in names if name.endswith(SUFFIX)]


def delete(path: bytes) -> None:
    """Delete a folder with all that is in it; links are not followed."""
    folders, stack = [], [path]
    while stack:
        folder = stack.pop()
        folders.append(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    operations.unlink(entry.path)
    for folder in reversed(folders):
        operations.rmdir(folder)
    operations.fsync_dir(os.path.dirname(path))


_MADE_BY_FIRST_USE = (b"registry.", b"root.", b"birth.", b"HEAD.", b"config.")


class Root(Value):
    """A project's folder as we know it: by id, by device and inode, and by path.

    `birth` is when the folder was made, in nanoseconds, if it was looked at just now; else 0.
    `line` is the line of the history that the folder's states are.

    A `detached` history was in this folder, and another one is now. If its own folder still is
    somewhere, the inode finds it. Without an inode the user let go of it, and only joins it again.
    """

    id: str
    device: int
    inode: int
    path: bytes
    birth: int = 0
    line: str = "main"
    detached: bool = False

    def is_folder(self, found: os.stat_result) -> bool:
        """Whether this is the very folder, whatever its path."""
        return (self.device, self.inode) == (found.st_dev, found.st_ino)

    def is_there(self) -> bool:
        try:
            return self.is_folder(os.lstat(self.path))
        except OSError:
            return False

    def entry(self) -> bytes:
        """One line of the registry."""
        path = self.path.replace(b"%", b"%25").replace(b"\n", b"%0A")
        mark = b"-" if self.detached else b""
        return b"%s %d %d %s%s\n" % (self.id.encode(), self.device, self.inode, mark, path)


def parse_line(line: bytes) -> "Root | None":
    """A line of the registry; None if it is damaged."""
    fields = line.rstrip(b"\n").split(b" ", 3)
    if len(fields) != 4 or not fields[1].isdigit() or not fields[2].isdigit():
        return None
    is_detached = fields[3].startswith(b"-")
    path = fields[3][is_detached:].replace(b"%0A", b"\n").replace(b"%25", b"%")
    if not fields[0].isalpha() or not path.startswith(b"/") or b"\0" in path:
        return None
    id = fields[0].decode("ascii", "replace")
    return Root(id, int(fields[1]), int(fields[2]), path, detached=is_detached)


class Home(Value):
    """All stores of one user on one machine."""

    path: bytes

    @property
    def lock_path(self) -> bytes:
        return self.path + b"/lock"

    def store_path(self, id: str) -> bytes:
        return self.path + b"/projects/" + id.encode()

    def exists(self) -> bool:
        """Whether anything was ever stored here; refuses a home that others can reach."""
        return not _is_open_and_empty(self.path) and require_private(self.path)

    def create(self) -> None:
        missing = []
        path = self.path
        while not os.path.lexists(path):
            missing.append(path)
            path = os.path.dirname(path)
        if missing:
            _require_own_place(path, self.path)
        for folder in reversed(missing):
            make_folder(folder)
        if _is_open_and_empty(self.path):
            _close(self.path)
        require_private(self.path)
        refuse_network(self.path)
        if not os.path.lexists(self.path + b"/projects"):
            make_folder(self.path + b"/projects")

    def roots(self) -> "list[Root]":
        """Every project we know, from the registry."""
        text = read_small(self.path + b"/registry")
        found = [parse_line(line) for line in text.split(b"\n")]
        return [root for root in found if root is not None]

    def roots_from_stores(self) -> "list[Root]":
        """Every project we know, from the stores themselves."""
        return sorted(self._each_root(), key=lambda root: root.id)

    def _each_root(self) -> "Iterator[Root]":
        try:
            names = os.listdir(self.path + b"/projects")
        except FileNotFoundError:
            return
        for name in names:
            root = parse_line(read_small(self.path + b"/projects/" + name + b"/root"))
            if root is not None and root.id.encode() == name:
                yield root

    def confirms(self, root: Root) -> bool:
        """Whether a store itself says what the registry says of it."""
        store = self.store_path(root.id)
        own = parse_line(read_small(store + b"/root"))
        if own is None or own.id != root.id:
            return os.path.lexists(store + b"/ledger.db")
        # A line that was cut short still names a path: the one whose folder is there is right.
        return own.entry() == root.entry() or (root.is_there() and not own.is_there())

    def birth(self, root: Root) -> int:
        """When the folder of a project was made, in nanoseconds; 0 if that was never known."""
        checksum, _, said = read_small(self.store_path(root.id) + b"/birth").partition(b" ")
        birth, _, line = said.partition(b" ")
        is_whole = checksum == b"%08x" % zlib.crc32(said)
        return int(birth) if is_whole and line == root.entry() else 0

    def _write_root(self, root: Root) -> None:
        if root.birth:
            # First, and with the line that it belongs to: what is cut short is only not known.
            said = b"%d %s" % (root.birth, root.entry())
            told = b"%08x %s" % (zlib.crc32(said), said)
            replace_file(self.store_path(root.id) + b"/birth", told, durable=False)
        replace_file(self.store_path(root.id) + b"/root", root.entry(), durable=True)

    def unclaimed(self) -> "str | None":
        """The id of a store that a first use made and did not live to claim."""
        for name in map(os.fsdecode, os.listdir(self.path + b"/projects")):
            is_id = len(name) == ids.LENGTH and ids.is_prefix(name)
            if is_id and os.path.isdir(self.store_path(name)):
                held = set(os.listdir(self.store_path(name)))
                if held <= {b"git", b"birth"} and require_private(self.store_path(name)):
                    return name
        return None

    def clean_up(self) -> None:
        """Remove what a process left that died while it held the home's lock."""
        projects = self.path + b"/projects/"
        paths = (projects + name for name in os.listdir(projects))
        stores = [path for path in paths if os.path.isdir(path)]
        views = [store + b"/git" for store in stores if os.path.isdir(store + b"/git")]
        for folder in (self.path, *stores, *views):
            for name in os.listdir(folder):
                if name.endswith(b".tmp") and name.startswith(_MADE_BY_FIRST_USE):
                    operations.unlink(folder + b"/" + name)

        left = leftovers(self)
        if left:
            # First, or a store would be missed of which nothing tells that it was removed.
            self.write_registry()
        for doomed in left:
            delete(doomed)

    def known_roots(self) -> "list[Root]":
        """Every project that has a store, by what that says, or else by what the registry says."""
        found = {known.id: known for known in self.roots_from_stores()}
        for known in self.roots():
            # A store that cannot say any more where its project is, but the registry can.
            if known.id not in found and os.path.lexists(self.store_path(known.id) + b"/ledger.db"):
                found[known.id] = known
        return [found[id] for id in sorted(found)]

    def record(self, root: Root) -> None:
        """Remember where a project is: in its store first, then in the registry."""
        self._write_root(root)
        known, own = self.known_roots(), {each.id for each in self.roots_from_stores()}
        for other in known:
            if other.id not in own:
                self._write_root(other)
        self._write_lines(known)

    def write_registry(self) -> None:
        """Make the registry again from what the stores say of themselves."""
        self._write_lines(self.roots_from_stores())

    def _write_lines(self, roots: "Iterable[Root]") -> None:
        lines = b"".join(root.entry() for root in roots)
        replace_file(self.path + b"/registry", lines, durable=False)


def require_private(path: bytes) -> bool:
    """False if there is nothing at `path`; an error if others own it or can reach it."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    shown = os.fsdecode(path)
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeStoreError(
            f"the store `{shown}` is not a folder",
            hint="move it away, or set TAKEBACK_HOME to a folder that only you can open",
        )
    if found.st_uid != os.geteuid():
        raise UnsafeStoreError(
            f"the store `{shown}` belongs to another user",
            hint="run as that user, or set TAKEBACK_HOME to a folder of your own",
        )
    if found.st_mode & 0o077:
        raise UnsafeStoreError(
            f"other users can open the store `{shown}`",
            hint=f"check who opened it, then run `chmod 700 {shown}`",
        )
    return True


def _is_open_and_empty(path: bytes) -> bool:
    """Whether this is the user's own folder, open to others, in which nothing can be seen yet."""
    try:
        found = os.lstat(path)
        is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        return is_own and found.st_mode & 0o077 != 0 and not os.listdir(path)
    except OSError:
        return False


def _close(path: bytes) -> None:
    """Close a folder that was empty; an error if another user put something into it just now."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        operations.fchmod(fd, 0o700)
        owners = {os.lstat(name, dir_fd=fd).st_uid for name in os.listdir(fd)}
    finally:
        os.close(fd)
    if owners - {os.geteuid()}:
        raise UnsafeStoreError(
            f"another user wrote into the store `{os.fsdecode(path)}`",
            hint="check it, or set TAKEBACK_HOME to a folder that only you can open",
        )


def _require_own_place(folder: bytes, path: bytes) -> None:
    """An error if root would make a store in a user's folder, which locks that user out of it."""
    if os.geteuid() == 0 != os.lstat(folder).st_uid:
        raise UnsafeStoreError(
            f"the store `{os.fsdecode(path)}` would belong to root, in a folder of another user",
            hint="run as that user, or set TAKEBACK_HOME to a folder of your own",
        )


def refuse_unsafe(path: bytes, home: "Home", user_home: bytes) -> None:
    """An error for folders that must never become a project."""
    shown = os.fsdecode(path)
    if path == b"/":
        raise UnsafeRootError(
            "`/` cannot be a project: it is the whole machine",
            hint=Action("choose-folder"),
        )
    if user_home and path == os.path.realpath(user_home):
        raise UnsafeRootError(
            f"your home folder `{shown}` cannot be a project: it holds much more than one",
            hint=Action("choose-folder"),
        )
    refuse_inside_store(path, home)


def refuse_inside_store(path: bytes, home: "Home") -> None:
    """An error for anything at or below the folder of all stores."""
    inside = os.path.realpath(home.path)
    if (os.path.realpath(path) + b"/").startswith(inside + b"/"):
        raise UnsafeRootError(
            f"`{os.fsdecode(path)}` is inside Takeback's own store",
            hint="name a folder outside of it",
        )


def refuse_network(path: bytes) -> None:
    """An error if `path` is on a network disk, where locks and syncs cannot be relied on."""
    from takeback.disk import machine

    kind = machine.network_file_system(path)
    if kind is not None:
        raise UnsafeStoreError(
            f"the store `{os.fsdecode(path)}` would be on a network file system ({kind}), "
            "where locks and syncs do not keep what they promise",
            hint="set TAKEBACK_HOME to a folder on a local disk",
        )


def replace_file(path: bytes, *parts: "bytes | bytearray", durable: bool) -> None:
    """Give a small file of the store new content, whole or not at all."""
    temporary = b"%s.%d.tmp" % (path, os.getpid())
    if os.path.lexists(temporary):
        operations.unlink(temporary)
    fd = operations.create(temporary)
    try:
        try:
            for part in parts:
                operations.write(fd, part)
            if durable:
                operations.fsync(fd)
        finally:
            os.close(fd)
        operations.rename(temporary, path)
    except BaseException as problem:
        operations.discard(temporary)
        if isinstance(problem, OSError) and problem.filename is None:
            problem.filename = path
        raise
    if durable:
        operations.fsync_dir(os.path.dirname(path))


def make_folder(path: bytes) -> None:
    """Make a folder of the store, private and durable; it may be there already."""
    try:
        operations.mkdir(path)
    except FileExistsError:
        # Another first use was quicker, or was cut short.
        return
    operations.fsync_dir(os.path.dirname(path))


def read_small(path: bytes, limit: int = 16 * 1024 * 1024) -> bytes:
    """What a small file of the store holds; empty when no plain file is there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


def size_of(path: bytes) -> int:
    """How large a file is; 0 if it is gone."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def settings_in(path: bytes, name: str) -> "dict[str, object]":
    """One table of a settings file; empty if there is none."""
    found = tables_in(path).get(name, {})
    return found if isinstance(found, dict) else {}


def tables_in(path: bytes) -> "dict[str, object]":
    """All that a settings file says; nothing if there is none."""
    text = read_small(path, limit=1 << 20)
    if not text:
        _refuse_other(path)
        return {}
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(
            f"the settings in `{os.fsdecode(path)}` cannot be read: {problem}",
            hint=Action("doctor"),
        ) from None


def with_value(text: str, table: str, key: str, value: "object | None") -> str:
    """The text of a settings file with `[table] key` set, or removed for None; comments stay."""
    import tomllib

    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text += "\n" if text and not text.endswith("\n") else ""
    try:
        file = tomlkit.parse(text)
        if value is None:
            inner = file.get(table, {})
            inner.pop(key, None)
            if not inner and table in file and not _has_head(text, table):
                file.pop(table)  # it was there for what it held only
        else:
            if table not in file:
                if text:
                    file.add(tomlkit.nl())
                file[table] = tomlkit.table()
            file[table][key] = value  # a TypeError if it is no table
        after = tomlkit.dumps(file)
        if tomllib.loads(after) == file.unwrap():
            return after
    except TOMLKitError as problem:
        raise UsageError(f"the settings cannot be read: {problem}", hint="fix them first") from None
    except (TypeError, AttributeError, tomllib.TOMLDecodeError):
        pass  # there is something else under the name of the table
    raise UsageError(
        f"`{table}.{key}` is written in a form that Takeback cannot edit",
        hint="edit the file by hand",
    )


def _has_head(text: str, table: str) -> bool:
    """Whether a table is written with a line of its own, and not only by tables inside of it."""
    return any(line.strip().startswith(f"[{table}]") for line in text.splitlines())


def _refuse_other(path: bytes) -> None:
    """An error if something stands in the place of a file, so that no setting is passed over."""
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return
    if kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise UsageError(
            f"the settings in `{os.fsdecode(path)}` cannot be read: it is not a plain file",
            hint="check it, and move it away",
        )
