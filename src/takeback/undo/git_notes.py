"""What the user's git has to do with a restore: it is never written, and it is told about.

Another branch than when the turn ended is a doubt; commits that the turn made stay, and the
command that would take them back is told. So are commits that came after the turn.
"""

from takeback.ledger.sessions import git_state
from takeback.model.history import GitState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.model.json_text import Json
    from takeback.undo.select import Item
    from takeback.worktree.user_git import Commit

_SHORT = 10
_MOST_REVERTED = 8


def doubts(item: "Item", git: "Json") -> "tuple[str, ...]":
    """What needs consent when a turn is taken back or put back."""
    now, then = _state(git), git_state(item.git_after or item.git_before)
    if now is None or then is None or now.branch == then.branch:
        return ()
    return (f"{item.called} ended on {_branch(then)}, and {_branch(now)} is checked out now",)


def stays(item: "Item", git: "Json", root: bytes) -> "tuple[str, ...]":
    """The commits that stay when a turn is taken back: its own, and those that came since."""
    now, then = _state(git), git_state(item.git_after or item.git_before)
    before = git_state(item.git_before)
    if now is None or then is None or before is None:
        return ()
    told = [_stays(root, before, then, now)]
    if now.branch == then.branch:
        told.append(_came_since(root, then, now))
    return tuple(filter(None, told))


def commits_since(
    ledger: "Ledger", target: "CheckpointRow", turns: "tuple[str, ...]", git: "Json", root: bytes
) -> "tuple[str, ...]":
    """The commits since the state that a rollback goes back to; they stay.

    Where HEAD was is recorded with turns only. If there is none to ask, or commits came before
    the oldest of those that are gone back over, the stamps of the commits tell.
    """
    now = _state(git)
    if now is None or now.head is None:
        return ()
    before = _before_oldest(ledger, turns)
    known = _between(root, before, now) if before is not None else []
    if known is not None:
        since = _since(root, now.head, target.created)
        if len(since) > len(known):
            before = GitState(now.branch, since[-1].parent, None)
    said = _stays(root, before, now, now) if before is not None else ""
    return (said,) if said else ()


def _before_oldest(ledger: "Ledger", turns: "tuple[str, ...]") -> "GitState | None":
    """The user's git when the oldest of these turns began."""
    oldest = ledger.turns.find(turns[-1]) if turns else None
    return git_state(oldest.git_before) if oldest is not None else None


def _stays(root: bytes, before: "GitState", after: "GitState", now: "GitState") -> str:
    """The commits between two moments in words, with the command that takes them back."""
    if before.head == after.head or after.head is None:
        return ""
    between = _between(root, before, after)
    count = len(between) if between is not None else None
    commits = f"1 commit stays ({after.head[:_SHORT]})"
    if count != 1:
        commits = f"{count or 'some'} commits stay (up to {after.head[:_SHORT]})"
    if now.branch != after.branch:
        return f"{commits} on {_branch(after)}"
    if now.head != after.head:
        return commits + _revert(root, after, now, between)
    if before.head is None:
        return f"{commits}: `git update-ref -d HEAD` takes {_them(count)} back"
    reset = f"`git reset --soft {before.head[:_SHORT]}`"
    if count is None:
        # Amended, reset, or packed by git: only where HEAD was is known.
        return f"HEAD stays at {after.head[:_SHORT]}: {reset} brings it back to where it was"
    return f"{commits}: {reset} takes {_them(count)} back"


def _revert(root: bytes, after: "GitState", now: "GitState", between: "list[Commit] | None") -> str:
    """The command that takes back commits with others on top of them; empty if none is known."""
    if not between or _between(root, after, now) is None:
        return ""
    if not any(commit.is_merge for commit in between):
        span = f"{str(between[-1].parent)[:_SHORT]}..{between[0].id[:_SHORT]}"
        return f": `git revert --no-commit {span}` takes {_them(len(between))} back"
    if len(between) > _MOST_REVERTED:
        return "; `git revert` takes each back, the newest first, and merges with `-m 1`"
    each = " && ".join(map(_revert_one, between))
    return f": `{each}` takes {_them(len(between))} back"


def _revert_one(commit: "Commit") -> str:
    # What came with a merge goes with it; git has to be told which side is the line.
    line = "-m 1 " if commit.is_merge else ""
    return f"git revert --no-commit {line}{commit.id[:_SHORT]}"


def _came_since(root: bytes, then: "GitState", now: "GitState") -> str:
    """The commits that somebody made after the turn, in words."""
    if now.head is None or now.head == then.head:
        return ""
    between = _between(root, then, now)
    count = len(between) if between is not None else None
    if count == 1:
        return f"1 commit since then stays ({now.head[:_SHORT]})"
    return f"{count or 'some'} commits since then stay (up to {now.head[:_SHORT]})"


def _between(root: bytes, before: "GitState", after: "GitState") -> "list[Commit] | None":
    """The commits between two moments, newest first; None if nobody can tell."""
    from takeback.worktree import user_git

    repository = user_git.find_repository(root)
    if repository is None or before.head is None or after.head is None:
        return None
    return repository.commits_between(before.head, after.head)


def _since(root: bytes, newest: str, moment: int) -> "list[Commit]":
    from takeback.worktree import user_git

    repository = user_git.find_repository(root)
    return repository.commits_since(newest, moment) if repository is not None else []


def _them(count: "int | None") -> str:
    return "it" if count == 1 else "them"


def _branch(state: "GitState") -> str:
    return f"the branch `{state.branch}`" if state.branch else "no branch"


def _state(git: "Json") -> "GitState | None":
    from takeback.model import json_text

    return None if git is None else git_state(json_text.dumps(git))
