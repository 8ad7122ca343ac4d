"""Too much of something: bytes, entries, depth, names for one file, or nothing at all."""

import os
import random
from collections.abc import Callable

from hostile.ground import Ground
from hostile.tree import Deed, Tree, nothing

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_MIB = 1 << 20
_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # what git calls an empty file


def _noise(length: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(length)


def _empty_files(ground: Ground) -> None:
    for number in range(50):
        ground.file(b"%d" % number, b"")


def _boundaries(ground: Ground) -> None:
    """Files one byte around every size at which somebody's buffer may end."""
    for power in range(0, 21, 2):
        for size in ((1 << power) - 1, 1 << power, (1 << power) + 1):
            ground.file(b"%d" % size, _noise(size, size))


def _large(size: int) -> Deed:
    """Bytes that do not compress, in one file."""

    def build(ground: Ground) -> None:
        ground.file(b"noise", _noise(size))

    return build


def _change_in_the_middle(ground: Ground) -> None:
    size = os.stat(ground.path(b"noise")).st_size
    ground.overwrite(b"noise", size // 2, b"!")


def _one_byte(size: int) -> Deed:
    """One byte again and again, which compresses to almost nothing."""

    def build(ground: Ground) -> None:
        with open(ground.path(b"same"), "wb") as file:
            file.writelines(b"a" * _MIB for _ in range(size // _MIB))

    return build


def _sparse(size: int) -> Deed:
    """A hole with a few bytes at both ends and in the middle."""

    def build(ground: Ground) -> None:
        ground.file(b"sparse", b"start")
        ground.overwrite(b"sparse", size // 2, b"middle")
        ground.overwrite(b"sparse", size - 3, b"end")

    return build


def _tracked(name: bytes, make: Deed) -> Deed:
    """A large file that the user's git knows, which is why it must not be left out."""

    def build(ground: Ground) -> None:
        make(ground)
        ground.git("init", "-q")
        ground.git("update-index", "--add", "--cacheinfo", f"100644,{_EMPTY},{name.decode()}")

    return build


def _hole(ground: Ground) -> None:
    ground.file(b"hole", b"")
    os.truncate(ground.path(b"hole"), 3 * _MIB + 1)


def _many(count: int) -> Deed:
    def build(ground: Ground) -> None:
        for number in range(count):
            ground.file(b"all here/%06d" % number, b"%d" % number)

    return build


def _same_content(ground: Ground) -> None:
    for number in range(400):
        ground.file(b"%d/%d" % (number % 10, number), b"one content for all\n")


def _empty_folders(ground: Ground) -> None:
    for number in range(400):
        ground.folder(b"%02d/%03d" % (number % 20, number))


def _long_names(ground: Ground) -> None:
    for number in range(120):
        ground.file(b"%03d" % number + b"n" * 252, b"%d" % number)


def _deep(levels: int, name: Callable[[int], bytes]) -> Deed:
    """Folders in folders, with a file at the bottom and one every hundred levels."""

    def build(ground: Ground) -> None:
        folder = os.open(ground.root, _FOLDER)
        for level in range(levels):
            os.mkdir(name(level), 0o755, dir_fd=folder)
            below = os.open(name(level), _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
            if level % 100 == 99 or level == levels - 1:
                file = os.open(b"file", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder)
                os.write(file, b"at level %d\n" % level)
                os.close(file)
        os.close(folder)

    return build


def _same_chain_twice(ground: Ground) -> None:
    """Two deep folders with equal content: one object may serve both."""
    ground.file(b"one/" + b"d/" * 60 + b"file", b"the same\n")
    ground.file(b"two/" + b"d/" * 60 + b"file", b"the same\n")


def _doubling(ground: Ground) -> None:
    """A folder tree in which every level holds two equal halves."""
    for number in range(64):
        path = b"".join(b"%d/" % (number >> bit & 1) for bit in range(6))
        ground.file(path + b"leaf", b"equal\n")


def _hard_links(count: int) -> Deed:
    def build(ground: Ground) -> None:
        ground.file(b"names/first", b"one file, many names\n")
        for number in range(count):
            os.link(ground.path(b"names/first"), ground.path(b"names/%05d" % number))

    return build


def _write_through_one(ground: Ground) -> None:
    """A change through one name changes what all the others hold."""
    ground.append(b"names/first", b"more\n")


def _rebuildable(name: bytes, count: int) -> Deed:
    def build(ground: Ground) -> None:
        ground.file(b"src/main.js")
        for number in range(count):
            ground.file(name + b"/package-%d/index-%d.js" % (number % 20, number))

    return build


def _rebuildable_bytes(ground: Ground) -> None:
    ground.file(b"py/.venv/lib/huge.so", bytes(12 * _MIB))
    ground.file(b"py/main.py")


def _ignored(count: int) -> Deed:
    def build(ground: Ground) -> None:
        ground.git("init", "-q")
        ground.file(b".gitignore", b"output/\n")
        ground.file(b"main.py")
        for number in range(count):
            ground.file(b"output/%d" % number)

    return build


_GIT = {b".git": "version control"}

SIZES = (
    Tree("size-empty", nothing),
    Tree("size-empty-files", _empty_files),
    Tree("size-boundaries", _boundaries),
    Tree("size-noise-3m", _large(3 * _MIB + 1), edit=_change_in_the_middle),
    Tree("size-noise-9m", _large(9 * _MIB), edit=_change_in_the_middle),
    Tree("size-noise-20m", _large(20 * _MIB), {b"noise": "too large"}),
    Tree("size-noise-20m-tracked", _tracked(b"noise", _large(20 * _MIB)), _GIT),
    Tree("size-one-byte-9m", _one_byte(9 * _MIB)),
    Tree("size-one-byte-1g", _tracked(b"same", _one_byte(1024 * _MIB)), _GIT, slow=True),
    Tree("size-sparse-9m", _sparse(9 * _MIB)),
    Tree("size-sparse-5g", _sparse(5 * 1024 * _MIB), {b"sparse": "too large"}),
    Tree(
        "size-sparse-5g-tracked",
        _tracked(b"sparse", _sparse(5 * 1024 * _MIB)),
        _GIT,
        slow=True,
    ),
    Tree("size-hole", _hole),
    Tree("size-many", _many(700)),
    Tree("size-20000", _many(20_000), slow=True),
    Tree("size-same-content", _same_content),
    Tree("size-empty-folders", _empty_folders),
    Tree("size-long-names", _long_names),
    Tree("size-deep", _deep(300, lambda level: b"d%d" % level)),
    Tree("size-deep-1100", _deep(1100, lambda _: b"d")),
    Tree("size-deep-3000", _deep(3000, lambda _: b"d"), slow=True),
    Tree("size-deep-long-path", _deep(100, lambda _: b"n" * 255)),
    Tree("size-same-chain-twice", _same_chain_twice),
    Tree("size-doubling", _doubling),
    Tree("size-hard-links", _hard_links(300), edit=_write_through_one),
    Tree("size-hard-links-60000", _hard_links(60_000), slow=True, edit=_write_through_one),
    Tree("size-rebuildable-small", _rebuildable(b"node_modules", 60)),
    Tree(
        "size-rebuildable",
        _rebuildable(b"node_modules", 260),
        {b"node_modules": "rebuildable"},
    ),
    Tree(
        "size-rebuildable-below",
        _rebuildable(b"web/app/node_modules", 260),
        {b"web/app/node_modules": "rebuildable"},
    ),
    Tree("size-rebuildable-bytes", _rebuildable_bytes, {b"py/.venv": "rebuildable"}),
    Tree("size-ignored-small", _ignored(150), _GIT),
    Tree("size-ignored", _ignored(260), {**_GIT, b"output": "ignored"}),
)
