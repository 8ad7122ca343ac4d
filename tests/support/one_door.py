"""Finds calls that change the disk in Python source, by reading its syntax tree.

Names are followed through imports (`import os as o`, `from os import rename as r`) and through
`getattr(os, "rename")`, and a mutating function is reported wherever it is named, called or not:
handing it to somebody else would get around the door just as well.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

DOOR = "takeback.disk.operations"

OS_FUNCTIONS = frozenset(
    """
    chflags chmod chown copy_file_range fchmod fchown fdatasync fsync ftruncate lchflags lchmod
    lchown link lockf makedirs mkdir mkfifo mknod posix_fallocate pwrite pwritev remove removedirs
    removexattr rename renames replace rmdir sendfile setxattr splice symlink sync truncate unlink
    utime write writev
    """.split()
)
OPEN_FLAGS = frozenset(["O_APPEND", "O_CREAT", "O_RDWR", "O_TMPFILE", "O_TRUNC", "O_WRONLY"])
LOCKS = frozenset(["F_OFD_SETLK", "F_OFD_SETLKW", "F_SETLK", "F_SETLKW", "flock", "lockf"])
WHOLE_MODULES = frozenset(["shutil", "tempfile"])
OPENERS = frozenset(["codecs.open", "io.FileIO", "io.open", "open", "os.fdopen"])
READ_MODES = frozenset(["r", "rb", "rt"])
PATH_METHODS = frozenset(
    """
    chmod hardlink_to lchmod mkdir rename rmdir symlink_to touch truncate unlink write_bytes
    write_text
    """.split()
)
CONNECTIONS = frozenset(["con", "conn", "connection", "database", "db"])
SQL_CHANGES = frozenset(
    """
    ALTER ANALYZE ATTACH BEGIN COMMIT CREATE DELETE DROP END INSERT REINDEX RELEASE REPLACE
    ROLLBACK SAVEPOINT UPDATE VACUUM
    """.split()
)


class Mutation(NamedTuple):
    """One place in a module that changes the disk."""

    line: int
    what: str


def find_mutations(source: str) -> list[Mutation]:
    """Every place in `source` that changes the disk without going through the door."""
    tree = ast.parse(source)
    names = _Names(tree)
    found = {
        Mutation(node.lineno, what)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.ImportFrom)
        for what in _judge(node, names)
    }
    return sorted(found)


class _Names:
    """What the names of a module stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self._full: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._add_import(node)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self._full[alias.asname or alias.name] = _unposix(f"{node.module}.{alias.name}")
            elif isinstance(node, ast.Assign) and (text := _literal(node.value)) is not None:
                self._texts.update((t.id, text) for t in node.targets if isinstance(t, ast.Name))

    def _add_import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self._full[alias.asname] = _unposix(alias.name)
            else:
                top = alias.name.partition(".")[0]
                self._full[top] = _unposix(top)

    def full(self, node: ast.expr) -> str:
        """The dotted name of an expression with imports resolved, "" if it has none."""
        if isinstance(node, ast.Name):
            return self._full.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.full(node.value)
            return f"{owner}.{node.attr}" if owner else f"?.{node.attr}"
        return ""

    def text(self, node: ast.expr) -> str | None:
        """The text (or its beginning) that an expression is known to have."""
        return self._texts.get(node.id) if isinstance(node, ast.Name) else _literal(node)


def _unposix(name: str) -> str:
    return f"os{name.removeprefix('posix')}" if name.partition(".")[0] == "posix" else name


def _literal(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return _literal(node.values[0])
    if isinstance(node, ast.BinOp):
        return _literal(node.left)
    return None


def _judge(node: ast.expr | ast.ImportFrom, names: _Names) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield from _judge_name(_unposix(f"{node.module}.{alias.name}"))
    elif isinstance(node, ast.Attribute | ast.Name):
        yield from _judge_name(names.full(node))
    elif isinstance(node, ast.Call):
        yield from _judge_call(node, names)


def _judge_name(name: str) -> Iterator[str]:
    module, _, last = name.rpartition(".")
    mutating = (
        (module == "os" and last in OS_FUNCTIONS | OPEN_FLAGS)
        or (module == "fcntl" and last in LOCKS)
        or module.partition(".")[0] in WHOLE_MODULES
    )
    if mutating:
        yield name


def _judge_call(call: ast.Call, names: _Names) -> Iterator[str]:
    name = names.full(call.func)
    if name == "getattr" and len(call.args) > 1 and (text := names.text(call.args[1])):
        yield from _judge_name(f"{names.full(call.args[0])}.{text}")
    elif name in OPENERS:
        yield from _judge_mode(call, name)
    elif name == "os.open":
        yield from _judge_flags(call)
    elif name == "mmap.mmap":
        yield from _judge_mapping(call)
    elif isinstance(call.func, ast.Attribute) and not name.startswith(("os.", DOOR)):
        yield from _judge_method(call, call.func, names)


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if len(call.args) > position:
        return call.args[position]
    return next((k.value for k in call.keywords if k.arg == keyword), None)


def _judge_mode(call: ast.Call, name: str) -> Iterator[str]:
    mode = _argument(call, 1, "mode")
    if mode is not None and _literal(mode) not in READ_MODES:
        yield f"{name} for writing"


def _judge_flags(call: ast.Call) -> Iterator[str]:
    # Named flags are reported as names, wherever they stand; this is for numbers.
    flags = _argument(call, 1, "flags")
    numbers = [n for n in ast.walk(flags) if isinstance(n, ast.Constant)] if flags else []
    if any(number.value != 0 for number in numbers):
        yield "os.open with flags as a number"


def _judge_mapping(call: ast.Call) -> Iterator[str]:
    limits = [k.value for k in call.keywords if k.arg in {"access", "prot"}]
    if not any(isinstance(v, ast.Attribute) and v.attr.endswith("_READ") for v in limits):
        yield "mmap.mmap that can be written"


def _judge_method(call: ast.Call, method: ast.Attribute, names: _Names) -> Iterator[str]:
    name, given = method.attr, len(call.args)
    if name in PATH_METHODS or (name == "replace" and given == 1 and not call.keywords):
        yield f".{name}()"
    elif name == "open" and any(_literal(a) not in READ_MODES for a in call.args if _literal(a)):
        yield ".open() for writing"
    elif name in {"executemany", "executescript"}:
        yield f".{name}()"
    elif name == "execute" and call.args and _changes(names.text(call.args[0])):
        yield f".execute({(names.text(call.args[0]) or '').split()[0]} …)"
    elif name in {"commit", "rollback"} and _last(method.value).lstrip("_") in CONNECTIONS:
        yield f".{name}() of a database"


def _changes(statement: str | None) -> bool:
    words = (statement or "").upper().replace(";", " ").split()
    return bool(words) and words[0] in SQL_CHANGES


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
