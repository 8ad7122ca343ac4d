"""Entries that are no file, folder or link, and doors to other file systems."""

import os
import stat
import subprocess

from hostile.ground import Ground
from hostile.tree import ROOT, Deed, Tree

_SOCKET = stat.S_IFSOCK
_DEVICES = {
    "null": (stat.S_IFCHR, (1, 3)),
    "endless-zeros": (stat.S_IFCHR, (1, 5)),
    "endless-random": (stat.S_IFCHR, (1, 9)),
    "terminal": (stat.S_IFCHR, (5, 0)),
    "whiteout": (stat.S_IFCHR, (0, 0)),
    "block": (stat.S_IFBLK, (7, 0)),
}


def _device(kind: int, number: tuple[int, int]) -> Deed:
    def build(ground: Ground) -> None:
        ground.file(b"a/file")
        ground.node(b"a/device", kind, number)

    return build


def _fifo(ground: Ground) -> None:
    ground.file(b"before")
    ground.fifo(b"pipe")
    ground.file(b"zz after")


def _fifo_like_a_file(ground: Ground) -> None:
    ground.fifo(b"src/main.py")
    ground.file(b"src/other.py")


def _fifo_with_two_names(ground: Ground) -> None:
    ground.fifo(b"one")
    os.link(ground.path(b"one"), ground.path(b"two"))


def _socket(ground: Ground) -> None:
    ground.node(b"run/agent.sock", _SOCKET)


def _socket_long_name(ground: Ground) -> None:
    ground.node(b"s" * 255, _SOCKET)


def _only_specials(ground: Ground) -> None:
    ground.fifo(b"folder/pipe")
    ground.node(b"folder/socket", _SOCKET)


def _crowd(ground: Ground) -> None:
    for number in range(150):
        ground.fifo(b"pipe-%03d" % number)
        ground.file(b"file-%03d" % number, b"%d" % number)


def _deep(ground: Ground) -> None:
    ground.fifo(b"a/" * 40 + b"pipe")


def _file(ground: Ground) -> None:
    ground.file(b"it", b"a file at first\n")
    ground.file(b"folder/inside")


def _special_instead(ground: Ground) -> None:
    ground.remove(b"it")
    ground.fifo(b"it")
    ground.remove(b"folder")
    ground.node(b"folder", _SOCKET)


def _special(ground: Ground) -> None:
    ground.fifo(b"it")
    ground.node(b"folder", _SOCKET)


def _file_instead(ground: Ground) -> None:
    ground.remove(b"it")
    ground.remove(b"folder")
    _file(ground)


def _git_special(ground: Ground) -> None:
    ground.fifo(b".git")
    ground.fifo(b"sub/.gitignore")
    ground.node(b"sub/.gitattributes", _SOCKET)


def _mount(*words: str | bytes) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


def _mounted_memory(ground: Ground) -> None:
    ground.folder(b"door")
    ground.file(b"beside")
    _mount("-t", "tmpfs", "tmpfs", ground.path(b"door"))
    ground.file(b"door/behind", b"on another disk\n")


def _mounted_over_files(ground: Ground) -> None:
    ground.file(b"door/hidden", b"below the mount\n")
    _mount("-t", "tmpfs", "tmpfs", ground.path(b"door"))


def _mounted_twice(ground: Ground) -> None:
    _mounted_memory(ground)
    ground.folder(b"door/second")
    _mount("-t", "tmpfs", "tmpfs", ground.path(b"door/second"))


def _mounted_processes(ground: Ground) -> None:
    ground.folder(b"a/proc")
    _mount("-t", "proc", "proc", ground.path(b"a/proc"))


def _bound_outside(ground: Ground) -> None:
    """A folder of the same disk: the device number does not give the door away."""
    ground.folder(b"door")
    _mount("--bind", ground.outside, ground.path(b"door"))


def _bound_file(ground: Ground) -> None:
    ground.file(b"door", b"below the mount\n")
    _mount("--bind", b"/proc/self/status", ground.path(b"door"))


def _bound_above(ground: Ground) -> None:
    """The tree within itself, without end for who goes in."""
    ground.folder(b"a/door")
    ground.file(b"a/file")
    _mount("--rbind", ground.root, ground.path(b"a/door"))


def _overlay(ground: Ground, where: bytes, options: bytes = b"") -> None:
    """Lay one folder over another; both are beside the tree, with what was put there before."""
    layers = []
    for layer in (b"lower", b"upper", b"work"):
        layers.append(ground.base + b"/" + layer)
        os.makedirs(layers[-1], exist_ok=True)
    options += b"lowerdir=%b,upperdir=%b,workdir=%b" % tuple(layers)
    _mount("-t", "overlay", "overlay", "-o", options, where)


def _fill_lower(ground: Ground) -> None:
    for name in (b"kept", b"changed", b"deleted"):
        with open(ground.base + b"/lower/" + name, "wb") as file:
            file.write(b"from below: " + name)


def _overlay_below(ground: Ground) -> None:
    ground.folder(b"door")
    _overlay(ground, ground.path(b"door"))
    ground.file(b"door/behind")


def _overlay_whole(ground: Ground) -> None:
    """The tree itself is an overlay: some files come from below, one was deleted."""
    os.mkdir(ground.base + b"/lower")
    _fill_lower(ground)
    _overlay(ground, ground.root)
    ground.append(b"changed", b", changed above")
    ground.remove(b"deleted")


def _overlay_two_disks(ground: Ground) -> None:
    """An overlay whose files show the device numbers of two disks, none of them the folder's."""
    os.mkdir(ground.base + b"/lower")
    _mount("-t", "tmpfs", "tmpfs", ground.base + b"/lower")
    _fill_lower(ground)
    _overlay(ground, ground.root, b"xino=off,")
    ground.append(b"changed", b", changed above")
    ground.file(b"folder/inside")


_PIPES = {b"pipe-%03d" % number: "special" for number in range(150)}
_DOOR = {b"door": "other mount"}

KINDS = (
    Tree("kind-fifo", _fifo, {b"pipe": "special"}),
    Tree("kind-fifo-like-a-file", _fifo_like_a_file, {b"src/main.py": "special"}),
    Tree("kind-fifo-two-names", _fifo_with_two_names, {b"one": "special", b"two": "special"}),
    Tree("kind-socket", _socket, {b"run/agent.sock": "special"}),
    Tree("kind-socket-long-name", _socket_long_name, {b"s" * 255: "special"}),
    Tree(
        "kind-only-specials",
        _only_specials,
        {b"folder/pipe": "special", b"folder/socket": "special"},
    ),
    Tree("kind-crowd", _crowd, _PIPES),
    Tree("kind-fifo-deep", _deep, {b"a/" * 40 + b"pipe": "special"}),
    Tree(
        "kind-file-becomes-special",
        _file,
        edit=_special_instead,
        left_out_after={b"it": "special", b"folder": "special"},
    ),
    Tree(
        "kind-special-becomes-file",
        _special,
        {b"it": "special", b"folder": "special"},
        edit=_file_instead,
        left_out_after={},
    ),
    Tree(
        "kind-git-special",
        _git_special,
        {
            b".git": "version control",
            b"sub/.gitignore": "special",
            b"sub/.gitattributes": "special",
        },
    ),
    *(
        Tree(f"kind-device-{what}", _device(kind, number), {b"a/device": "special"}, ROOT)
        for what, (kind, number) in _DEVICES.items()
    ),
    Tree("mount-memory", _mounted_memory, _DOOR, ROOT),
    Tree("mount-over-files", _mounted_over_files, _DOOR, ROOT),
    Tree("mount-twice", _mounted_twice, _DOOR, ROOT),
    Tree("mount-processes", _mounted_processes, {b"a/proc": "other mount"}, ROOT),
    Tree("mount-same-disk", _bound_outside, _DOOR, ROOT),
    Tree("mount-file", _bound_file, _DOOR, ROOT),
    Tree("mount-of-itself", _bound_above, {b"a/door": "other mount"}, ROOT),
    Tree("mount-overlay-below", _overlay_below, _DOOR, ROOT),
    Tree("mount-overlay-whole", _overlay_whole, who=ROOT),
    Tree("mount-overlay-two-disks", _overlay_two_disks, who=ROOT),
)
