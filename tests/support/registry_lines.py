"""Lines of the registry, and of the `root` of a store, changed for tests."""

from collections.abc import Callable
from pathlib import Path


def rewrite(file: Path, change: Callable[[str], str]) -> None:
    """Change each line of a file: `id device inode path`."""
    file.write_text("".join(f"{change(line)}\n" for line in file.read_text().splitlines()))
