"""What happened to the user's git between two looks: moves of names, and findings made of them.

A look is a mapping of names to values, as `worktree/git/user_git` reads it:

    .git              `folder` and its number, `file` or `link`; not there without one
    branch, head      what is checked out; no branch if HEAD is detached, no head if it is unborn
    index             its checksum; not there if there is no index
    doing             `rebase`, `merge` and the like, if one is under way
    refs              why nobody can tell the references
    refs/...          the id that a reference names
    stash ID          the message of a stash
    worktree NAME     the folder of a linked worktree
"""

from takeback.model import reasons
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    State = Mapping[str, str]
    Move = tuple[str, str | None, str | None]
    """A name, its value before, and after; None if it was not there."""
    Moves = dict[str, tuple[str | None, str | None]]

GIT, REFS, BRANCH, HEAD, INDEX, DOING = ".git", "refs", "branch", "head", "index", "doing"
HEADS, TAGS, REMOTES = "refs/heads/", "refs/tags/", "refs/remotes/"
STASH, WORKTREE = "stash ", "worktree "
SHORT = 10
_MOST_NAMED = 5


def is_new_ground(before: "State", after: "State") -> bool:
    """Whether names of one look cannot be compared with those of the other."""
    return before.get(GIT) != after.get(GIT) or before.get(REFS) != after.get(REFS)


def moved(before: "State", after: "State") -> "list[Move]":
    """The names that changed. Of another repository, or of none, only that it is."""
    if before.get(GIT) != after.get(GIT):
        return [(GIT, before.get(GIT), after.get(GIT))]
    names = {name for name, _ in before.items() ^ after.items()}
    if before.get(REFS) != after.get(REFS):
        names = {name for name in names if not name.startswith(("refs/", STASH))}
    return [(name, before.get(name), after.get(name)) for name in sorted(names)]


def fold(moves: "Iterable[Move]") -> "Moves":
    """Moves in their order as one per name; what came back is none."""
    found: Moves = {}
    for name, old, new in moves:
        found[name] = (found[name][0] if name in found else old, new)
    return {name: (old, new) for name, (old, new) in found.items() if old != new}


def findings(moves: "Moves", branch: "str | None") -> "Iterator[Reason]":
    """What happened, the gravest first; many of a kind are named only in part.

    `branch` is checked out in the end: its commits are told as those of HEAD. A new checksum of the
    index is nothing: to read the status makes one.
    """
    if GIT in moves:
        yield _of_repository(*moves[GIT])
        return
    own = f"{HEADS}{branch}" if branch and BRANCH not in moves else ""
    renamed = _renamed(moves)
    yield from _of_head(moves, renamed)
    if moves.get(INDEX, ("", ""))[1] is None:
        yield Reason(reasons.INDEX_GONE)
    if moves.get(DOING, ("", None))[1] is not None:
        yield Reason(reasons.GIT_UNDER_WAY, what=str(moves[DOING][1]))
    if REFS in moves:
        yield Reason(reasons.REFS_UNKNOWN, why=moves[REFS][1] or moves[REFS][0] or "")
    kinds: dict[str, list[Reason]] = {}
    for found in (*_of_refs(moves, renamed, own), *_of_others(moves)):
        kinds.setdefault(found.code, []).append(found)
    for code, each in kinds.items():
        yield from each[:_MOST_NAMED]
        if len(each) > _MOST_NAMED:
            yield Reason(reasons.GIT_MORE, of=code, count=len(each) - _MOST_NAMED)


def _of_repository(old: "str | None", new: "str | None") -> Reason:
    if new is None:
        return Reason(reasons.GIT_GONE)
    return Reason(reasons.GIT_MADE if old is None else reasons.GIT_REPLACED)


def _renamed(moves: "Moves") -> "dict[str, str]":
    """The branches that got another name: one went and one came, both at the same commit."""
    gone: dict[str | None, list[str]] = {}
    came: dict[str | None, list[str]] = {}
    for name, (old, new) in moves.items():
        if name.startswith(HEADS) and (old is None or new is None):
            (came if old is None else gone).setdefault(old or new, []).append(name)
    pairs = ((gone[id], came[id]) for id in gone if id in came)
    return {old[0]: new[0] for old, new in pairs if len(old) == len(new) == 1}


def _of_head(moves: "Moves", renamed: "dict[str, str]") -> "Iterator[Reason]":
    old, new = moves.get(HEAD, (None, None))
    if BRANCH in moves:
        then, now = moves[BRANCH]
        if then and renamed.get(HEADS + then) == f"{HEADS}{now}":
            return
        facts = {"then": then or "", "now": now or ""}
        # A branch without a name is a commit.
        facts |= {"commit": old or ""} if not then else {}
        yield Reason(reasons.BRANCH_SWITCHED, **facts)
    elif HEAD in moves:
        yield Reason(reasons.HEAD_MOVED, old=(old or "")[:SHORT], new=(new or "")[:SHORT])


def _of_refs(moves: "Moves", renamed: "dict[str, str]", own: str) -> "Iterator[Reason]":
    for name, to in renamed.items():
        old, new = name[len(HEADS) :], to[len(HEADS) :]
        yield Reason(reasons.BRANCH_RENAMED, name=old, new=new, commit=_id(moves[name][0]))
    known = {*renamed, *renamed.values(), own}
    for name, (was, now) in moves.items():
        for prefix, codes in _CODES.items():
            if not name.startswith(prefix) or name in known:
                continue
            short = name[len(prefix) :]
            if now is None:
                yield Reason(codes[0], name=short, commit=_id(was))
            elif was is None:
                yield Reason(codes[1], name=short, commit=_id(now))
            else:
                yield Reason(codes[2], name=short, commit=_id(now), old=_id(was))


def _of_others(moves: "Moves") -> "Iterator[Reason]":
    for name, (old, new) in moves.items():
        if name.startswith(STASH):
            code = reasons.STASH_GONE if new is None else reasons.STASH_NEW
            text = old if new is None else new
            yield Reason(code, commit=name[len(STASH) :], message=text or "")
        elif name.startswith(WORKTREE):
            code = reasons.WORKTREE_GONE if new is None else reasons.WORKTREE_NEW
            yield Reason(code, path=(old if new is None else new) or "")
    remote = sum(name.startswith(REMOTES) for name in moves)
    if remote:
        yield Reason(reasons.REMOTES_MOVED, count=remote)


def _id(value: "str | None") -> str:
    return value or ""


_CODES = {
    HEADS: (reasons.BRANCH_GONE, reasons.BRANCH_NEW, reasons.BRANCH_MOVED),
    TAGS: (reasons.TAG_GONE, reasons.TAG_NEW, reasons.TAG_MOVED),
}
