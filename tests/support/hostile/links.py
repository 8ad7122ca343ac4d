"""Symbolic links: to nowhere, to everywhere, to themselves, and where nobody expects one."""

from hostile.ground import Ground
from hostile.tree import Deed, Tree

_TARGETS = {
    "dangling": b"nowhere",
    "dangling-deep": b"no/where/at/all",
    "absolute": b"/etc/passwd",
    "absolute-root": b"/",
    "to-here": b".",
    "to-parent": b"..",
    "to-grandparents": b"../../../../../../../../../../../..",
    "to-itself": b"link",
    "process-root": b"/proc/self/root",
    "process-descriptor": b"/proc/self/fd/0",
    "process-memory": b"/proc/self/mem",
    "endless-device": b"/dev/zero",
    "terminal": b"/dev/tty",
    "target-4095": b"t/" * 2047 + b"t",
    "target-255": b"t" * 255,
    "target-newline": b"two\nlines",
    "target-return": b"dir\r",
    "target-colour": b"\x1b[2J",
    "target-not-utf8": b"\xff\xfe\xc0\xaf",
    "target-slash-at-end": b"folder/",
    "target-many-slashes": b"///folder//.//inside",
    "target-space": b" ",
    "target-git": b".git/config",
    "target-option": b"--upload-pack=touch evil",
}


def _points_to(target: bytes) -> Deed:
    def build(ground: Ground) -> None:
        ground.file(b"folder/inside")
        ground.link(b"link", target)
        ground.link(b"folder/link", target)

    return build


def _outside(ground: Ground) -> None:
    ground.link(b"folder", ground.outside)
    ground.link(b"file", ground.beyond(b"secret"))
    ground.link(b"relative", b"../outside/secret")


def _store(ground: Ground) -> None:
    ground.link(b"store", ground.home)
    ground.link(b"a/store", b"../../home")


def _loop(ground: Ground) -> None:
    ground.link(b"one", b"two")
    ground.link(b"two", b"three")
    ground.link(b"three", b"one")


def _folders_in_a_circle(ground: Ground) -> None:
    ground.link(b"a/to-b", b"../b")
    ground.link(b"b/to-a", b"../a")
    ground.file(b"a/file")


def _chain(ground: Ground) -> None:
    ground.file(b"link-000", b"the end\n")
    for number in range(1, 60):
        ground.link(b"link-%03d" % number, b"link-%03d" % (number - 1))


def _special(ground: Ground) -> None:
    ground.fifo(b"pipe")
    ground.link(b"to-pipe", b"pipe")


def _same_bytes(ground: Ground) -> None:
    """A link and a file that share one object: only the kind tells them apart."""
    ground.file(b"file", b"some/target")
    ground.link(b"link", b"some/target")


def _crowd(ground: Ground) -> None:
    for number in range(150):
        ground.link(b"many/%d" % number, b"one and the same")


def _git_files(ground: Ground) -> None:
    """Links where git reads a file of its own; its checker refuses some of them."""
    for name in (b".gitmodules", b".gitattributes", b".gitignore", b".mailmap"):
        ground.link(name, b"../outside/secret")
        ground.link(b"sub/" + name, b"/etc/passwd")


def _git_linked(ground: Ground) -> None:
    ground.link(b".git", b"../outside")


def _folder(ground: Ground) -> None:
    ground.file(b"swapped/inside", b"in the folder\n")
    ground.file(b"swapped/deeper/inside", b"deeper\n")


def _folder_becomes_link(ground: Ground) -> None:
    ground.remove(b"swapped")
    ground.link(b"swapped", ground.outside)


def _link(ground: Ground) -> None:
    ground.link(b"swapped", ground.outside)


def _link_becomes_folder(ground: Ground) -> None:
    ground.remove(b"swapped")
    _folder(ground)


def _link_becomes_file(ground: Ground) -> None:
    ground.remove(b"swapped")
    ground.file(b"swapped", ground.outside)


def _link_turns(ground: Ground) -> None:
    ground.remove(b"swapped")
    ground.link(b"swapped", ground.outside[::-1])


LINKS = (
    *(Tree(f"link-{what}", _points_to(target)) for what, target in _TARGETS.items()),
    Tree("link-outside", _outside),
    Tree("link-store", _store),
    Tree("link-loop", _loop),
    Tree("link-folders-in-a-circle", _folders_in_a_circle),
    Tree("link-chain", _chain),
    Tree("link-special", _special, {b"pipe": "special"}),
    Tree("link-same-bytes", _same_bytes),
    Tree("link-crowd", _crowd),
    Tree("link-git-files", _git_files),
    Tree("link-git", _git_linked, {b".git": "version control"}),
    Tree("link-from-folder", _folder, edit=_folder_becomes_link),
    Tree("link-to-folder", _link, edit=_link_becomes_folder),
    Tree("link-to-file", _link, edit=_link_becomes_file),
    Tree("link-turned", _link, edit=_link_turns),
)
