"""Lines of the registry, and of the `root` of a store, changed for tests."""

import zlib
from collections.abc import Callable
from pathlib import Path


def rewrite(file: Path, change: Callable[[str], str]) -> None:
    """Change each line of a file: `id device inode path`, without its checksum."""
    lines = [line.split(" ", 1)[1] for line in file.read_text().splitlines()]
    said = [change(line) for line in lines]
    file.write_text("".join(f"{zlib.crc32(line.encode()):08x} {line}\n" for line in said))
