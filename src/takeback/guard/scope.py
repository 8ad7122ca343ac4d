"""What is known while a command line is judged: folders, variables, functions, files written."""

import posixpath

from takeback.guard.findings import UNKNOWN, Word
from takeback.model.beyond.effects import IN_GIT, IN_TREE, NOWHERE, OUTSIDE, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node

    from takeback.guard.findings import Flow

MEMORY = "/dev/shm/"  # noqa: S108 (a name, not a file)
TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/dev/shm")  # noqa: S108 (names, not files)
DEVICES = frozenset(
    ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/zero")
)
MADE = "/tmp/takeback.made"  # noqa: S108 (a name, not a file)
"""Where `mktemp` makes something: a name that nothing else has."""


def is_device(path: str) -> bool:
    """Whether a path is below `/dev`, and no file in the memory that is mounted there."""
    return path.startswith("/dev/") and not path.startswith(MEMORY)


def text_of(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def bytes_of(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _may_be_git(name: str) -> bool:
    """Whether a name is `.git`, or a pattern that the shell expands to it."""
    if name == ".git":
        return True
    if not name.startswith((".", "[")) or not set("*?[") & set(name):
        return False
    from fnmatch import fnmatchcase

    return fnmatchcase(".git", name)


class Scope:
    """A shell's state, as far as it can be told from the command alone."""

    __slots__ = (
        "aliases",
        "cwd",
        "depth",
        "functions",
        "home",
        "links",
        "made",
        "root",
        "variables",
        "written",
    )

    def __init__(self, cwd: "str | None", root: str, home: str) -> None:
        self.cwd = cwd
        self.root = root
        self.home = home
        self.depth = 0
        self.variables: dict[str, tuple[Word, ...]] = {}
        self.functions: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.written: dict[str, Flow] = {}
        self.made: set[str] = set()
        self.links: dict[str, str] = {}

    def copy(self) -> "Scope":
        """The state of a subshell, which changes nothing outside; files stay written."""
        made = Scope(self.cwd, self.root, self.home)
        made.depth = self.depth
        made.variables = dict(self.variables)
        made.functions = dict(self.functions)
        made.aliases = dict(self.aliases)
        made.written, made.made, made.links = self.written, self.made, self.links
        return made

    def elsewhere(self) -> "Scope":
        """The state on another machine or in a container: no path there is one of the project."""
        made = self.copy()
        made.cwd, made.root, made.home = None, "", ""
        made.written, made.made, made.links = {}, set(), {}
        return made

    def absolute(self, text: str) -> str:
        """A path of a command as an absolute one; empty if it is not known."""
        if text.startswith("~"):
            first, _, rest = text.partition("/")
            if first == "~" and self.home:
                text = f"{self.home}/{rest}"
            elif self.home:
                text = f"{posixpath.dirname(self.home)}/{first[1:]}/{rest}"
        if not text.startswith("/"):
            if self.cwd is None or text.startswith(UNKNOWN):
                return ""
            text = f"{self.cwd}/{text}"
        known, mark, rest = text.partition(UNKNOWN)
        if mark:
            # What is not known may be any name there, so the folder stands for it.
            is_bound = known.strip("/") and "/.." not in rest
            return self._followed(posixpath.normpath(known + "*")) if is_bound else ""
        path = posixpath.normpath(text)
        return self._followed(path[1:] if path.startswith("//") else path)

    def _followed(self, path: str) -> str:
        """A path behind the links that the same command line made."""
        for link, end in self.links.items():
            if path == link or path.startswith(link + "/"):
                return end + path[len(link) :]
        return path

    def where(self, path: str) -> str:
        """Where an absolute path is; `root` itself counts as git, for `.git` is in it."""
        if not path:
            return NOWHERE
        if self.root and (path == self.root or path.startswith(self.root + "/")):
            names = path[len(self.root) :].split("/")
            return IN_GIT if any(map(_may_be_git, names)) else IN_TREE
        return OUTSIDE

    def is_temporary(self, path: str) -> bool:
        """Whether a path is in a folder for temporary files, and not such a folder itself."""
        return any(path.startswith(each + "/") for each in TEMPORARY)

    def is_made(self, path: str) -> bool:
        """Whether the same command line made this path, so that nothing older is lost with it."""
        return bool(path) and (
            path in self.made
            or path.startswith(MADE)
            or any(path.startswith(each + "/") for each in self.made)
        )

    def target(self, word: Word, loss: str, *, is_recursive: bool = False) -> Target:
        """A word of a command as a path that loses what it holds."""
        path = self.absolute(word.value)
        is_glob = word.is_glob or (bool(path) and not word.is_known)
        return Target(
            bytes_of(path), loss, self.where(path), is_recursive, is_glob and bool(path),
            word.raw or word.value,
        )  # fmt: skip

    def single(self, name: str) -> "Word | None":
        """The value of a variable, if it is known and is one word."""
        found = self.variables.get(name)
        if found is not None:
            return found[0] if found else Word("")
        known = {"HOME": self.home, "PWD": self.cwd, "USER": "user", "TMPDIR": "/tmp"}  # noqa: S108
        value = known.get(name)
        return Word(value) if value else None
