"""Before destructive git: copy what git has no second copy of, in the user's repository.

HEAD, refs, packed-refs, logs and index are copied, and what is under way; objects are linked, which
never change, and only before something that removes them. Nothing here runs git or writes there:
whoever wants the state back gets the commands.
"""

import os

from takeback.effects.saved.targets import Wanted
from takeback.model.beyond import effects
from takeback.worktree.git import user_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.effects.saved.area import Held
    from takeback.effects.saved.saving import Saver
    from takeback.model.beyond.effects import Judgement

INDEX, LOGS, OBJECTS = b"index", b"logs", b"objects"
_OWN = (
    b"HEAD", INDEX, b"ORIG_HEAD", b"FETCH_HEAD", b"MERGE_HEAD", b"MERGE_MSG", b"CHERRY_PICK_HEAD",
    b"REVERT_HEAD", LOGS, b"refs",
)  # fmt: skip
"""What each work tree has of its own; in the main one it is all together."""
_SHARED = (b"packed-refs", b"refs", LOGS)
_REMOVES_OBJECTS = (effects.OBJECTS, effects.REFLOG)


def save(saver: "Saver", judgement: "Judgement") -> "tuple[tuple[bytes, int], ...]":
    """Copy the state of each repository; their folders, each with the number of its copy."""
    found: dict[bytes, int] = {}
    for folder in judgement.git_dirs:
        top = user_git.top_of_repository(os.path.realpath(folder))
        repository = user_git.find_repository(top) if top is not None else None
        if repository is None:
            continue
        parts = {repository.git_dir: _OWN, repository.common_dir: _SHARED}
        if repository.git_dir == repository.common_dir:
            parts = {repository.git_dir: (*_OWN, b"packed-refs")}
        for git_dir, names in parts.items():
            if git_dir in found:
                continue
            number = found[git_dir] = len(found)
            for name in names:
                path = os.path.join(git_dir, name)
                if os.path.lexists(path):
                    saver.save_apart(Wanted(path, effects.OVERWRITE, True), git_dir, number)
        if any(each in _REMOVES_OBJECTS for each in judgement.git):
            path = os.path.join(repository.common_dir, OBJECTS)
            wanted = Wanted(path, effects.DELETE, True)
            saver.save_apart(wanted, repository.common_dir, found[repository.common_dir])
    return tuple(found.items())


def folder_of(number: int) -> bytes:
    """The folder of a rescue in which the copy of a repository lies, laid out as it is."""
    return b"git%d" % number


def left(held: "tuple[Held, ...]", changed: "set[bytes]") -> "Iterator[Held]":
    """What is kept of copies of git: all of the state, if any of it changed; gone objects."""
    has_moved = any(each.path in changed for each in held if not _is_object(each))
    for each in held:
        if each.path in changed if _is_object(each) else has_moved:
            yield each


def _is_object(held: "Held") -> bool:
    return held.name.split(b"/")[1:2] == [OBJECTS]
