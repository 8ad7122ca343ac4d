"""Folders of a test, removed and filled again, also where somebody shut them."""

import os
import shutil
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    _open_up(folder)
    shutil.rmtree(folder)


def put_back(folder: Path, copy: Path) -> None:
    """Let a folder hold what a copy of it holds; it stays the same folder."""
    _open_up(folder)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    shutil.copytree(copy, folder, symlinks=True, dirs_exist_ok=True)


def _open_up(folder: Path) -> None:
    folder.chmod(0o700)
    for path, inside, _files in os.walk(folder):
        for name in inside:
            if not os.path.islink(f"{path}/{name}"):
                os.chmod(f"{path}/{name}", 0o700)
