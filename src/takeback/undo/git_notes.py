"""Reports what of the user's git a restore leaves in place: commits, branches, stashes.

Another branch than when the turn ended is a doubt. All else that happened to git while a turn ran
stays, and the facts tell whether git can take it back without losing anything of the user's:

    can       a command takes it back, and all that it drops was made while the turn ran
    since     it was changed again since, so no command is told
    inside    (of a worktree) it is in the project, and some of its files went with the restore

Nobody knows who works while an agent waits: of a turn that was interrupted, or ran beside another,
or of several with other work between them, nothing is dropped.
"""

import os

from takeback.ledger.outside import git_state
from takeback.model import reasons
from takeback.model.beyond import git_changes
from takeback.model.beyond.git_changes import (
    BRANCH,
    DOING,
    GIT,
    HEAD,
    HEADS,
    INDEX,
    REFS,
    SHORT,
    STASH,
    TAGS,
    WORKTREE,
)
from takeback.model.reasons import Reason
from takeback.model.tree import REGULAR
from takeback.model.value import Value
from takeback.model.words import INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow
    from takeback.ledger.sessions import TurnRow
    from takeback.model.beyond.git_changes import Moves, State
    from takeback.model.plan import PlannedChange
    from takeback.undo.plans.select import Item
    from takeback.worktree.git.user_git import Commit


class Span(Value):
    """What happened to git over some turns; `branch` was checked out in the end.

    `last` is the event with which the newest ended. `is_sure` tells that all of it happened while
    they ran.
    """

    moves: "Moves"
    branch: "str | None"
    last: int
    is_sure: bool


def doubts(item: "Item", now: "State") -> "tuple[Reason, ...]":
    """What needs consent when a turn is taken back or put back."""
    then = git_state(item.git_after or item.git_before)
    if GIT not in now or then is None or now.get(BRANCH) == then.branch:
        return ()
    branches = {"then": then.branch or "", "now": now.get(BRANCH, "")}
    title = {"rollback" if item.restore is not None else "turn": item.title}
    return (Reason(reasons.OTHER_BRANCH, **title, **branches),)


def stays(
    ledger: "Ledger", items: "Sequence[Item]", now: "State", root: bytes
) -> "tuple[Reason, ...]":
    """What stays of git when turns are taken back: what they did, and what came since."""
    found = (ledger.turns.numbered(item.number) for item in items if item.restore is None)
    rows = sorted((row for row in found if row is not None), key=lambda row: row.opened)
    if not rows:
        return ()
    span, after = _span(ledger, rows), git_state(rows[-1].git_after)
    told = list(_told(ledger, span, now, root))
    head = now.get(HEAD)
    if (
        after is not None
        and after.branch == now.get(BRANCH)
        and not _is_at_or_below(root, head, after.head)
    ):
        since = _since(root, after.head, now.get(HEAD))
        told += [since] if since is not None else []
    return tuple(told)


def passed_over(
    ledger: "Ledger", session: "int | None", opened: int, now: "State", root: bytes
) -> "tuple[int, tuple[Reason, ...]]":
    """The turns since an event that changed git and no file: how many, and what stays of that."""
    count, told = 0, list[Reason]()
    for number in ledger.git.turns_without_files(session, opened):
        row = ledger.turns.numbered(number)
        found = list(_told(ledger, _span(ledger, [row]), now, root)) if row is not None else []
        count, told = count + bool(found), told + found
    return count, tuple(dict.fromkeys(told))


def since_state(
    ledger: "Ledger", target: "CheckpointRow", turns: "tuple[str, ...]", now: "State", root: bytes
) -> "tuple[Reason, ...]":
    """What stays of git when a rollback goes back to a state.

    Commits are told by where HEAD was when the oldest turn began that is gone back over, or by
    their stamps. Those that were made between turns are the user's.
    """
    moves = [*ledger.git.moves(target.event), *_unseen(ledger, now)]
    span = Span(git_changes.fold(moves), now.get(BRANCH), ledger.last_event(), is_sure=False)
    told = [each for each in _told(ledger, span, now, root) if each.code not in _OF_HEAD]
    rows = [row for row in map(ledger.turns.find, reversed(turns)) if row is not None]
    head = _head_since(ledger, rows, target.created, now, root) if HEAD in now else None
    return (head, *told) if head is not None else tuple(told)


def _unseen(ledger: "Ledger", now: "State") -> "list[git_changes.Move]":
    known = ledger.git.state()
    return git_changes.moved(known, now) if known else []


def _head_since(
    ledger: "Ledger", rows: "list[TurnRow]", moment: int, now: "State", root: bytes
) -> "Reason | None":
    before = git_state(rows[0].git_before) if rows else None
    if before is not None and before.branch != now.get(BRANCH):
        return None  # that another one is checked out is told, and so are branches that moved
    known = _between(root, before.head, now[HEAD]) if before is not None else []
    start, is_sure = (
        before.head if before is not None else now[HEAD],
        _is_one_line(ledger, rows, now),
    )
    if known is not None:
        since = _made_since(root, now[HEAD], moment)
        if len(since) > len(known):
            start, is_sure = since[-1].parent, False
    if start == now[HEAD]:
        return None
    span = Span({HEAD: (start, now[HEAD])}, now.get(BRANCH), 0, is_sure)
    return next(iter(_of_head(span, now, root)), None)


def _is_one_line(ledger: "Ledger", rows: "list[TurnRow]", now: "State") -> bool:
    """Whether HEAD moved only while these turns ran."""
    last = now.get(HEAD)
    for row in reversed(rows):
        before, after = git_state(row.git_before), git_state(row.git_after)
        if not _is_its_own(ledger, row) or before is None or after is None or after.head != last:
            return False
        if {before.branch, after.branch} != {now.get(BRANCH)}:
            return False
        last = before.head
    return bool(rows)


# -- of turns ------------------------------------------------------------------------------


def _is_its_own(ledger: "Ledger", row: "TurnRow") -> bool:
    """Whether what moved while a turn ran is the turn's, as far as anybody can tell."""
    if row.status == INTERRUPTED or ledger.git.moved_while_idle(row.opened, row.closed):
        return False
    return not ledger.git.is_overlapped(row.number, row.opened, row.closed)


def _span(ledger: "Ledger", rows: "list[TurnRow]") -> Span:
    moves: Moves = {}
    is_sure = all(_is_its_own(ledger, row) for row in rows)
    for row in rows:
        for name, (old, new) in git_changes.fold(ledger.git.moves(row.opened, row.closed)).items():
            first, last = moves.get(name, (old, old))
            is_sure = is_sure and last == old
            moves[name] = (first, new)
    moves = {name: both for name, both in moves.items() if both[0] != both[1]}
    after = git_state(rows[-1].git_after or rows[-1].git_before)
    branch = after.branch if after is not None else None
    return Span(moves, branch, rows[-1].closed or ledger.last_event(), is_sure)


def _told(ledger: "Ledger", span: Span, now: "State", root: bytes) -> "Iterator[Reason]":
    """What happened and still is, with what can be done about it.

    What moves a branch comes before what checks it out.
    """
    every = list(git_changes.findings(span.moves, span.branch))
    since = [*ledger.git.moves(span.last), *_unseen(ledger, now)]
    if GIT not in now or any(name == GIT for name, _, _ in since):
        # Another repository, or none: of what was in this one, nothing can be done.
        yield from every if now.get(GIT) == span.moves.get(GIT, ("", now.get(GIT)))[1] else ()
        return
    last = [each for each in every if each.code == reasons.BRANCH_SWITCHED]
    for each in (*(each for each in every if each not in last), *last):
        judge = _JUDGES.get(each.code)
        if each.code == reasons.HEAD_MOVED:
            yield from _of_head(span, now, root)
        elif judge is None:
            yield each
        else:
            found = _Found(dict(each.facts), span, now, root)
            facts = judge(found)
            if facts is not None:
                yield each.with_facts(**(facts if found.can_be_typed() else {}))


class _Found(Value):
    facts: "dict[str, reasons.Fact]"
    span: Span
    now: "State"
    root: bytes

    def __getitem__(self, name: str) -> str:
        return str(self.facts[name])

    def can_be_typed(self) -> bool:
        """Whether names and ids mean in a command what they say: anybody may write into `.git`."""
        names = (str(self.facts.get(each, "")) for each in ("name", "new", "then", "path"))
        ids = (str(self.facts.get(each, "")) for each in ("commit", "old"))
        is_plain = all(not name.startswith(("-", "(")) and "\ufffd" not in name for name in names)
        return is_plain and not any(id.strip("0123456789abcdef") for id in ids)

    def is_now(self, name: str) -> "str | None":
        return self.now.get(name)


_CAN: "dict[str, reasons.Fact]" = {"can": 1}
_SINCE: "dict[str, reasons.Fact]" = {"since": 1}


def _repository(found: _Found) -> "dict[str, reasons.Fact] | None":
    """What became of `.git` is told as long as it is so."""
    return {} if found.is_now(GIT) == found.span.moves[GIT][1] else None


def _lost_name(prefix: str) -> "Callable[[_Found], dict[str, reasons.Fact] | None]":
    def judge(found: _Found) -> "dict[str, reasons.Fact] | None":
        """A name that went can come again, unless another is in its place."""
        name = prefix + found["name"]
        now = found.is_now(name)
        if now is not None:
            return None if now == found["commit"] else _SINCE
        taken = any(each.startswith(name + "/") for each in found.now)
        above = any(name[:at] in found.now for at, c in enumerate(name) if c == "/")
        return {} if taken or above or REFS in found.now else _CAN

    return judge


def _moved_name(prefix: str) -> "Callable[[_Found], dict[str, reasons.Fact] | None]":
    def judge(found: _Found) -> "dict[str, reasons.Fact] | None":
        now = found.is_now(prefix + found["name"])
        if now == found["old"]:
            return None
        if now != found["commit"]:
            return _SINCE
        is_used = found["name"] == found.is_now(BRANCH) or DOING in found.now
        is_free = prefix != HEADS or not is_used
        return _CAN if is_free and found.span.is_sure else {}

    return judge


def _new_branch(found: _Found) -> "dict[str, reasons.Fact] | None":
    """A branch may go if its commit is the one that is checked out, under another name."""
    now = found.is_now(HEADS + found["name"])
    if now is None:
        return None
    if now != found["commit"]:
        return _SINCE
    is_in_use = found["name"] == found.is_now(BRANCH) or _has_worktrees(found.now)
    is_merged = now == found.is_now(HEAD) and not is_in_use
    return _CAN if is_merged and found.span.is_sure else {}


def _new_tag(found: _Found) -> "dict[str, reasons.Fact] | None":
    return {} if found.is_now(TAGS + found["name"]) == found["commit"] else None


def _renamed(found: _Found) -> "dict[str, reasons.Fact] | None":
    old, new = (found.is_now(HEADS + found[name]) for name in ("name", "new"))
    if old is not None and new is None:
        return None
    if old is not None or new != found["commit"]:
        return _SINCE
    return _CAN if found.span.is_sure else {}


def _switched(found: _Found) -> "dict[str, reasons.Fact] | None":
    then, now = found["then"], found.is_now(BRANCH)
    if (now or "") == then:
        return None
    if (now or "") != found["now"]:
        return _SINCE
    name = HEADS + then
    goal = found.is_now(name) if then else found["commit"]
    if found.span.is_sure and then and name in found.span.moves:
        goal = found.span.moves[name][0]
    if DOING in found.now or not goal or HEAD not in found.now:
        return {}
    return {**_CAN, "same": int(goal == found.now[HEAD])}


def _lost_stash(found: _Found) -> "dict[str, reasons.Fact] | None":
    is_there = STASH + found["commit"] in found.now
    return None if is_there else {} if REFS in found.now else _CAN


def _new_stash(found: _Found) -> "dict[str, reasons.Fact] | None":
    return {} if STASH + found["commit"] in found.now else None


def _lost_index(found: _Found) -> "dict[str, reasons.Fact] | None":
    if INDEX in found.now:
        return None
    return _CAN if HEAD in found.now else {}


def _new_worktree(found: _Found) -> "dict[str, reasons.Fact] | None":
    paths = [path for name, path in found.now.items() if name.startswith(WORKTREE)]
    if found["path"] not in paths:
        return None
    is_inside = found["path"].startswith(found.root.decode("utf-8", "replace") + "/")
    if is_inside:
        return {"inside": 1}
    return _CAN if found.span.is_sure else {}


def _lost_worktree(found: _Found) -> "dict[str, reasons.Fact] | None":
    return None if found["path"] in found.now.values() else {}


def _under_way(found: _Found) -> "dict[str, reasons.Fact] | None":
    return {} if found.is_now(DOING) == found["what"] else None


def _has_worktrees(now: "State") -> bool:
    return any(name.startswith(WORKTREE) for name in now)


_JUDGES = {
    reasons.GIT_GONE: _repository,
    reasons.GIT_MADE: _repository,
    reasons.GIT_REPLACED: _repository,
    reasons.GIT_UNDER_WAY: _under_way,
    reasons.BRANCH_GONE: _lost_name(HEADS),
    reasons.BRANCH_NEW: _new_branch,
    reasons.BRANCH_MOVED: _moved_name(HEADS),
    reasons.BRANCH_RENAMED: _renamed,
    reasons.BRANCH_SWITCHED: _switched,
    reasons.TAG_GONE: _lost_name(TAGS),
    reasons.TAG_NEW: _new_tag,
    reasons.TAG_MOVED: _moved_name(TAGS),
    reasons.STASH_GONE: _lost_stash,
    reasons.STASH_NEW: _new_stash,
    reasons.INDEX_GONE: _lost_index,
    reasons.WORKTREE_NEW: _new_worktree,
    reasons.WORKTREE_GONE: _lost_worktree,
}
_OF_HEAD = (reasons.COMMITS_STAY, reasons.HEAD_STAYS)


# -- commits -------------------------------------------------------------------------------


def _of_head(span: Span, now: "State", root: bytes) -> "Iterator[Reason]":
    """The commits on the branch that is checked out, and whether a reset drops only those."""
    old, new = span.moves[HEAD]
    head, is_here = now.get(HEAD), now.get(BRANCH) == span.branch
    if new is None or (is_here and head != new and _is_at_or_below(root, head, old)):
        return  # somebody took the commits back
    between = _between(root, old, new)
    count = len(between) if between is not None else 0
    if between is None and old is not None:
        # Amended, reset, or packed by git: only where HEAD was is known.
        found = Reason(reasons.HEAD_STAYS, head=new[:SHORT], then=old[:SHORT])
    else:
        found = Reason(reasons.COMMITS_STAY, count=count, head=new[:SHORT])
    if now.get(BRANCH) != span.branch:
        yield found.with_facts(branch=span.branch or "", elsewhere=1)
    elif now.get(HEAD) != new:
        yield found.with_facts(later=1)
    elif not span.is_sure or DOING in now:
        yield found
    elif old is None:
        yield found.with_facts(unborn=1)
    else:
        yield found.with_facts(reset=old[:SHORT])


def _since(root: bytes, then: "str | None", now: "str | None") -> "Reason | None":
    """The commits that somebody made after the turn."""
    if now is None:
        return None
    between = _between(root, then, now)
    known = len(between) if between is not None else 0
    return Reason(reasons.COMMITS_SINCE, count=known, head=now[:SHORT])


_MOVES_HEAD = (
    reasons.COMMITS_STAY,
    reasons.COMMITS_SINCE,
    reasons.HEAD_STAYS,
    reasons.HEAD_MOVED,
    reasons.BRANCH_SWITCHED,
    reasons.GIT_UNDER_WAY,
)
"""After these the index is that of another commit, and their own commands bring it back."""


def staged(
    root: bytes, changes: "Iterable[PlannedChange]", now: "State", told: "Sequence[Reason]"
) -> "tuple[Reason, ...]":
    """What goes back in the tree, and stays in the index as the turn left it."""
    if any(each.code in _MOVES_HEAD for each in told):
        return ()
    from takeback.worktree.git import user_git

    files = {
        change.raw_path: change.before.oid
        for change in changes
        if not change.outside and change.before is not None and change.before.kind == REGULAR
    }
    repository = user_git.find_repository(root)
    found = repository.staged(files) if files and repository is not None else []
    paths = tuple(map(os.fsdecode, found))
    return (Reason(reasons.STAGED_STAYS, paths=paths, born=bool(now.get(HEAD))),) if paths else ()


def _is_at_or_below(root: bytes, head: "str | None", other: "str | None") -> bool:
    """Whether a commit is another one, or one that the other was made on, as far as is known."""
    return head == other or _between(root, head, other) is not None


def _between(root: bytes, older: "str | None", newer: "str | None") -> "list[Commit] | None":
    """The commits between two, newest first; None if nobody can tell."""
    from takeback.worktree.git import user_git

    repository = user_git.find_repository(root)
    if repository is None or older is None or newer is None:
        return None
    return repository.commits_between(older, newer)


def _made_since(root: bytes, newest: str, moment: int) -> "list[Commit]":
    from takeback.worktree.git import user_git

    repository = user_git.find_repository(root)
    return repository.commits_since(newest, moment) if repository is not None else []
