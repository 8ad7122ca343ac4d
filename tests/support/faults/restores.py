"""The restores that faults are tried on: how the tree came about, and what is asked for.

The first state is there before any agent; each further one is made by a turn. Then come the
verbs: those of `ready` are over when the fault strikes, those of `verbs` are what it strikes.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from faults.scenarios import write
from oracle import Picture
from takeback.model.plan import Report
from takeback.model.words import REDO, ROLLBACK, UNDO
from takeback.project import Project

Make = Callable[[Path], None]
Expected = Callable[[Sequence[Picture]], Picture]


class Verb(NamedTuple):
    """One restore, and how the tree looks when it is done."""

    name: str
    expected: Expected
    """The tree afterwards, told from pictures of the states; nobody asks the product."""
    back: int = 0
    """For a rollback: before which turn, counted from the first."""
    paths: Sequence[str] = ()

    def do(self, project: Project, turns: Sequence[str], request: str | None = None) -> Report:
        """Do it; consent is given, so that it also goes over what the verb itself left."""
        if self.name == UNDO:
            return project.undo(paths=self.paths, yes=True, request=request)
        if self.name == REDO:
            return project.redo(paths=self.paths, yes=True, request=request)
        back = f"{turns[self.back]}-"
        return project.rollback(back, paths=self.paths, yes=True, request=request)


class Restore(NamedTuple):
    """One kind of restore."""

    name: str
    states: Sequence[Make]
    verbs: Sequence[Verb]
    ready: Sequence[Verb] = ()
    plain: bool = False
    """Means nothing to root: it is played with the rights of an ordinary user."""
    heavy: bool = False
    """So many steps that `./check` tries a few faults only."""

    @property
    def reverse(self) -> str:
        """The verb that takes the last one back."""
        return REDO if self.verbs[-1].name == UNDO else UNDO


def state(number: int) -> Expected:
    """Exactly one of the states."""
    return lambda states: states[number]


def only(paths: Sequence[str], back: int, now: int) -> Expected:
    """A state in which some paths, and what is below them, are as in another one."""
    wanted = [path.encode() for path in paths]

    def is_in(path: bytes) -> bool:
        return any(path == top or path.startswith(top + b"/") for top in wanted)

    def mix(states: Sequence[Picture]) -> Picture:
        stays = {path: entry for path, entry in states[now].items() if not is_in(path)}
        return stays | {path: entry for path, entry in states[back].items() if is_in(path)}

    return mix


# -- states --------------------------------------------------------------------------------


def _nothing(_tree: Path) -> None:
    """An empty folder."""


def _some(tree: Path) -> None:
    """A few files of every kind, in folders, with a link and an empty folder."""
    for number in range(8):
        folder = tree / ("a", "a/deep", "b", "c")[number % 4]
        write(folder / f"file{number}", b"first %d\n" % number * (number + 1))
    write(tree / "tool.sh", b"#!/bin/sh\n", 0o755)
    write(tree / "secret", b"0600\n", 0o600)
    (tree / "link").symlink_to("a/deep")
    (tree / "empty").mkdir()


def _mixed(tree: Path) -> None:
    """Changed, deleted, made, of another mode: files, folders and links."""
    write(tree / "a/file0", b"second\n")
    write(tree / "b/file2", b"FIRST 2\n" * 3)
    (tree / "a/deep/file5").unlink()
    write(tree / "b/new", b"new\n")
    write(tree / "new/folder/file", b"new too\n", 0o640)
    (tree / "tool.sh").chmod(0o644)
    (tree / "c").chmod(0o700)
    (tree / "empty").rmdir()
    (tree / "link").unlink()
    (tree / "link").symlink_to("b")
    (tree / "secret").unlink()
    (tree / "made").mkdir()


def _moved(tree: Path) -> None:
    """A folder with its files, and folders in it, under another name and in another place."""
    os.rename(tree / "a", tree / "moved")
    os.rename(tree / "c", tree / "moved/deep/c")
    write(tree / "moved/deep/file1", b"and changed\n")


def _swapped(tree: Path) -> None:
    """Two files that changed names, also across folders, and two folders."""
    for one, other in (("a/file0", "a/file4"), ("b/file2", "c/file3"), ("b", "c")):
        os.rename(tree / one, tree / "third")
        os.rename(tree / other, tree / one)
        os.rename(tree / "third", tree / other)


def _files_for_folders(tree: Path) -> None:
    """Files where folders were: a full one, an empty one, one with folders in it."""
    for path in (tree / "a/deep", tree / "a", tree / "b", tree / "empty"):
        for inside in path.iterdir():
            inside.unlink()
        path.rmdir()
    for name in ("a", "b", "empty"):
        write(tree / name, b"now a file\n")


def _folders_for_files(tree: Path) -> None:
    """Folders where files were: an empty one and two with something in them."""
    for name in ("a/file0", "secret", "tool.sh"):
        (tree / name).unlink()
    (tree / "a/file0").mkdir()
    write(tree / "secret/inside/deep", b"in a folder\n")
    write(tree / "tool.sh/file", b"too\n", 0o600)
    (tree / "tool.sh/link").symlink_to("file")


def _links_for_all(tree: Path) -> None:
    """Links where a file and a folder were, and a folder and a file where links were."""
    (tree / "other").symlink_to("secret")
    (tree / "a/file0").unlink()
    (tree / "a/file0").symlink_to("../../outside")
    (tree / "c/file3").unlink()
    (tree / "c/file7").unlink()
    (tree / "c").rmdir()
    (tree / "c").symlink_to("a")
    (tree / "link").unlink()
    write(tree / "link/inside", b"in a folder now\n")
    (tree / "loop").unlink()
    write(tree / "loop", b"a file now\n")


def _some_with_a_loop(tree: Path) -> None:
    _some(tree)
    (tree / "loop").symlink_to("loop")


def _emptied(tree: Path) -> None:
    """Nothing is left."""
    for path in sorted(tree.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def _deep(tree: Path) -> None:
    """Forty folders in one another, each with a file in it."""
    folder = tree
    for level in range(40):
        folder /= "down"
        write(folder / "file", b"%d\n" % level)


def _deep_elsewhere(tree: Path) -> None:
    """The forty folders are gone; a few others are there, and at the bottom something new."""
    _emptied(tree)
    folder = tree
    for _ in range(10):
        folder /= "elsewhere"
    write(folder / "file", b"new\n")


def _many(tree: Path) -> None:
    """Three hundred files in ten folders."""
    for number in range(300):
        write(tree / f"folder{number % 10}" / f"{number:03}", b"%d " % number * (number % 9 + 1))


def _many_changed(tree: Path) -> None:
    """A hundred changed, a hundred deleted and a hundred made."""
    for number in range(200):
        path = tree / f"folder{number % 10}" / f"{number:03}"
        if number % 2:
            write(path, b"changed %d\n" % number)
        else:
            path.unlink()
            write(path.with_name(f"new{number}"), b"%d\n" % number)


def _thousand(tree: Path) -> None:
    """A thousand files in twenty folders."""
    for number in range(1000):
        write(tree / f"folder{number % 20}" / f"{number:03}", b"%d " % number * (number % 9 + 1))


def _thousand_changed(tree: Path) -> None:
    """Each of them changed."""
    for number in range(1000):
        write(tree / f"folder{number % 20}" / f"{number:03}", b"changed %d\n" % number)


def _read_only(tree: Path) -> None:
    """Folders that nobody may write to, with files in them."""
    write(tree / "shut/file", b"first\n", 0o444)
    write(tree / "shut/gone", b"first\n")
    write(tree / "shut/inner/file", b"first\n")
    write(tree / "open", b"first\n")
    (tree / "shut/inner").chmod(0o555)
    (tree / "shut").chmod(0o555)


def _read_only_changed(tree: Path) -> None:
    """Somebody opened them, changed what is in them, and shut them again."""
    (tree / "shut").chmod(0o755)
    (tree / "shut/inner").chmod(0o755)
    (tree / "shut/file").unlink()
    write(tree / "shut/file", b"second\n", 0o444)
    (tree / "shut/gone").unlink()
    write(tree / "shut/new", b"new\n")
    write(tree / "shut/inner/file", b"second\n", 0o400)
    write(tree / "shut/made/file", b"new\n")
    write(tree / "open", b"second\n")
    for folder in ("shut/made", "shut/inner", "shut"):
        (tree / folder).chmod(0o555)


ODD = (
    b"\xff\xfe", b"new\nline", b".GIT", b"git~1", b"back\\slash", b"-rf", b"*", b" ", b"\x1b[2J",
    b"n" * 255, b".gitattributes", b"CON", b"dot.", b"e\xcc\x81", b"\xc3\xa9",
)  # fmt: skip


def _odd(tree: Path) -> None:
    """Files and folders with names that are hard to say."""
    for number, name in enumerate(ODD):
        path = tree / os.fsdecode(name)
        if number % 3 == 2:
            write(path / os.fsdecode(ODD[0]), b"in a folder %d\n" % number)
        else:
            write(path, b"odd %d\n" % number)
    os.symlink(b"\xff\xfe", os.fsencode(tree) + b"/link\xff")


def _odd_changed(tree: Path) -> None:
    """Half of them changed, the others deleted, and others made."""
    for number, name in enumerate(ODD):
        path = tree / os.fsdecode(name)
        if number % 3 == 0:
            write(path, b"CHANGED\n")
        elif number % 3 == 1:
            path.unlink()
        else:
            write(path / "made\nhere", b"new\n")
            (path / os.fsdecode(ODD[0])).unlink()
    os.unlink(os.fsencode(tree) + b"/link\xff")
    os.symlink(b"gone\xff", os.fsencode(tree) + b"/link\xff")
    write(tree / "\udcfa", b"new\n")


def _forty(tree: Path) -> None:
    """Forty files in four folders."""
    for number in range(40):
        write(tree / "nswe"[number % 4] / f"{number:02}", b"first %d\n" % number)


def _forty_changed(tree: Path) -> None:
    """Each of them changed, deleted, or of another mode; and as many made."""
    for number in range(40):
        path = tree / "nswe"[number % 4] / f"{number:02}"
        if number % 3 == 0:
            write(path, b"second\n")
        elif number % 3 == 1:
            path.unlink()
        else:
            path.chmod(0o600)
        write(path.with_name(f"new{number:02}"), b"new %d\n" % number)


PART = [f"{'nswe'[n % 4]}/{name}{n:02}" for n in (0, 7, 14, 21, 28, 35) for name in ("", "new")]
"""Twelve of the paths that `_forty_changed` changes, of all kinds."""


# -- scenarios -----------------------------------------------------------------------------

_UNDO, _REDO = Verb(UNDO, state(0)), Verb(REDO, state(1))
_BACK = Verb(ROLLBACK, state(0))

MIXED = Restore("mixed", (_some, _mixed), [_UNDO])
RENAMED_FOLDER = Restore("renamed-folder", (_some, _moved), [_BACK])
SWAPPED = Restore("swapped-names", (_some, _swapped), [_REDO], [_UNDO])
TO_FOLDER = Restore("file-to-folder", (_some, _files_for_folders), [_UNDO])
TO_FILE = Restore("folder-to-file", (_some, _files_for_folders), [_REDO], [_UNDO])
LINKS = Restore("links", (_some_with_a_loop, _links_for_all), [_BACK])
FILLED = Restore("empty-to-full", (_some, _emptied), [_BACK])
EMPTIED = Restore("full-to-empty", (_nothing, _some), [_UNDO])
DEEP = Restore("forty-deep", (_deep, _deep_elsewhere), [_UNDO])
READ_ONLY = Restore("read-only-folder", (_read_only, _read_only_changed), [_UNDO], plain=True)
ODD_NAMES = Restore("odd-names", (_odd, _odd_changed), [_BACK])
PARTIAL = Restore("part", (_forty, _forty_changed), [Verb(ROLLBACK, only(PART, 0, 1), paths=PART)])
CHAIN = Restore("undo-redo-undo", (_some, _folders_for_files), [_UNDO, _REDO, _UNDO])
MANY = Restore("three-hundred", (_many, _many_changed), [_UNDO], heavy=True)
THOUSAND = Restore("a-thousand", (_thousand, _thousand_changed), [_UNDO], heavy=True)
"""Only for how long recovery takes."""

RESTORES = (
    MIXED, RENAMED_FOLDER, SWAPPED, TO_FOLDER, TO_FILE, LINKS, FILLED, EMPTIED, DEEP, READ_ONLY,
    ODD_NAMES, PARTIAL, CHAIN, MANY,
)  # fmt: skip
