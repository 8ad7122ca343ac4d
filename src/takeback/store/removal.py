"""Remove a whole store: first it loses its name, then its files go.

With its new name it is no store any more: nothing finds it, and whoever holds the home's lock next
removes what is left of it. A crash leaves a store that is whole, or one that is as good as gone.
"""

import os

from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.home import Home

SUFFIX = b".removed"


def remove(home: "Home", id: str) -> None:
    """Take a store away. With the home's lock held, and the store's own."""
    projects = home.path + b"/projects/"
    # Never the name of one that is still on its way out.
    doomed = projects + id.encode() + SUFFIX
    if os.path.lexists(doomed):
        delete(doomed)
    fsops.rename(projects + id.encode(), doomed)
    fsops.fsync_dir(projects)
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
                    fsops.unlink(entry.path)
    for folder in reversed(folders):
        fsops.rmdir(folder)
    fsops.fsync_dir(os.path.dirname(path))
