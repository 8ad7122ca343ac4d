"""Reports commits and branches that a restore leaves in place. Never writes them.

Another branch than when the turn ended is a doubt. Commits of the turn stay, and so do commits
that came after it; what would take them back is among the facts.
"""

from takeback.ledger.sessions import git_state
from takeback.model import reasons
from takeback.model.history import GitState
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.ledger.events import CheckpointRow
    from takeback.ledger.ledger import Ledger
    from takeback.model.json_text import Json
    from takeback.model.reasons import Fact
    from takeback.undo.select import Item
    from takeback.worktree.user_git import Commit

_SHORT = 10
_MOST_REVERTED = 8


def doubts(item: "Item", git: "Json") -> "tuple[Reason, ...]":
    """What needs consent when a turn is taken back or put back."""
    now, then = _state(git), git_state(item.git_after or item.git_before)
    if now is None or then is None or now.branch == then.branch:
        return ()
    branches = {"then": then.branch or "", "now": now.branch or ""}
    title = {"rollback" if item.restore is not None else "turn": item.title}
    return (Reason(reasons.OTHER_BRANCH, **title, **branches),)


def stays(item: "Item", git: "Json", root: bytes) -> "tuple[Reason, ...]":
    """The commits that stay when a turn is taken back: its own, and those that came since."""
    now, then = _state(git), git_state(item.git_after or item.git_before)
    before = git_state(item.git_before)
    if now is None or then is None or before is None:
        return ()
    found = [_stays(root, before, then, now)]
    if now.branch == then.branch:
        found.append(_came_since(root, then, now))
    return tuple(reason for reason in found if reason is not None)


def commits_since(
    ledger: "Ledger", target: "CheckpointRow", turns: "tuple[str, ...]", git: "Json", root: bytes
) -> "tuple[Reason, ...]":
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
    found = _stays(root, before, now, now) if before is not None else None
    return (found,) if found is not None else ()


def _before_oldest(ledger: "Ledger", turns: "tuple[str, ...]") -> "GitState | None":
    """The user's git when the oldest of these turns began."""
    oldest = ledger.turns.find(turns[-1]) if turns else None
    return git_state(oldest.git_before) if oldest is not None else None


def _stays(root: bytes, before: "GitState", after: "GitState", now: "GitState") -> "Reason | None":
    """The commits between two moments, and what takes them back."""
    if before.head == after.head or after.head is None:
        return None
    between = _between(root, before, after)
    known = len(between) if between is not None else 0
    found = Reason(reasons.COMMITS_STAY, count=known, head=after.head[:_SHORT])
    if now.branch != after.branch:
        return found.with_facts(branch=after.branch or "", elsewhere=True)
    if now.head != after.head:
        return found.with_facts(**_revert(root, after, now, between))
    if before.head is None:
        return found.with_facts(unborn=True)
    back = before.head[:_SHORT]
    if between is None:
        # Amended, reset, or packed by git: only where HEAD was is known.
        return Reason(reasons.HEAD_STAYS, head=after.head[:_SHORT], reset=back)
    return found.with_facts(reset=back)


def _revert(
    root: bytes, after: "GitState", now: "GitState", between: "list[Commit] | None"
) -> "dict[str, Fact]":
    """What takes back commits with others on top of them; nothing if that is not known."""
    if not between or _between(root, after, now) is None:
        return {}
    if not any(commit.is_merge for commit in between):
        return {"span": f"{str(between[-1].parent)[:_SHORT]}..{between[0].id[:_SHORT]}"}
    if len(between) > _MOST_REVERTED:
        return {"each": True}
    # What came with a merge goes with it; git has to be told which side is the line.
    line = ("-m 1 " if commit.is_merge else "" for commit in between)
    ids = (commit.id[:_SHORT] for commit in between)
    return {"reverts": tuple(flag + id for flag, id in zip(line, ids, strict=True))}


def _came_since(root: bytes, then: "GitState", now: "GitState") -> "Reason | None":
    """The commits that somebody made after the turn."""
    if now.head is None or now.head == then.head:
        return None
    between = _between(root, then, now)
    known = len(between) if between is not None else 0
    return Reason(reasons.COMMITS_SINCE, count=known, head=now.head[:_SHORT])


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


def _state(git: "Json") -> "GitState | None":
    from takeback.model import json_text

    return None if git is None else git_state(json_text.dumps(git))
