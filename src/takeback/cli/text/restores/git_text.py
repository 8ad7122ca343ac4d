"""What happened to the user's git, in words; and the commands by which git takes it back.

Takeback never writes to git. A command is told only where the facts say that it can do what is
said, and that it drops nothing but what was made while the turn ran (`undo/git_notes`). Files are
restored by then, and the index is not: `git read-tree -im HEAD X` brings those of its entries to X
that are as in HEAD, and leaves alone what somebody staged.
"""

from takeback.model import reasons
from takeback.model.beyond.git_changes import SHORT
from takeback.model.text.safe_text import shell_word
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from takeback.model.reasons import Reason

    Facts = dict[str, Any]

_MOST_IN_SHORT = 2
_UNTYPED = "\N{REPLACEMENT CHARACTER}"


def happened(reason: "Reason") -> str:
    """What was done, as `deleted the branch x (4f7c0e21aa)`."""
    facts: Facts = dict(reason.facts)
    facts["at"] = facts.get("commit", "")[:SHORT]
    facts["from"] = facts.get("old", "")[:SHORT] or "no commit"
    if reason.code == reasons.BRANCH_SWITCHED:
        return f"switched from {_on(facts['then'])} to {_on(facts['now'])}"
    if reason.code == reasons.GIT_MORE:
        return _more(facts)
    if reason.code == reasons.REMOTES_MOVED:
        return f"moved {count(facts['count'], 'remote branch', 'remote branches')}"
    said = _HAPPENED[reason.code]
    if reason.code in (reasons.STASH_GONE, reasons.STASH_NEW) and facts["message"]:
        said += ": {message}"
    return said.format(**facts)


def in_short(found: "Iterable[Reason]") -> str:
    """The first of what happened, and how much more there is."""
    said = [happened(reason) for reason in found]
    more = [f"{len(said) - _MOST_IN_SHORT} more"] if len(said) > _MOST_IN_SHORT else []
    return ", ".join(said[:_MOST_IN_SHORT] + more)


def _more(facts: "Facts") -> str:
    return (
        f"{facts['count']:,} more of these: {_HAPPENED[facts['of']].split(' {')[0].split(' `')[0]}"
    )


_HAPPENED = {
    reasons.GIT_GONE: "deleted `.git`",
    reasons.GIT_MADE: "created a git repository",
    reasons.GIT_REPLACED: "replaced `.git`",
    reasons.GIT_UNDER_WAY: "left a {what} in progress",
    reasons.HEAD_MOVED: "moved HEAD from {from} to {new}",
    reasons.BRANCH_GONE: "deleted the branch `{name}` ({at})",
    reasons.BRANCH_NEW: "created the branch `{name}` ({at})",
    reasons.BRANCH_MOVED: "moved the branch `{name}` from {from} to {at}",
    reasons.BRANCH_RENAMED: "renamed the branch `{name}` to `{new}`",
    reasons.TAG_GONE: "deleted the tag `{name}` ({at})",
    reasons.TAG_NEW: "created the tag `{name}` ({at})",
    reasons.TAG_MOVED: "moved the tag `{name}` from {from} to {at}",
    reasons.REFS_UNKNOWN: "the state of branches, tags and stashes is unknown ({why})",
    reasons.STASH_GONE: "dropped a stash ({at})",
    reasons.STASH_NEW: "created a stash ({at})",
    reasons.INDEX_GONE: "deleted the index",
    reasons.WORKTREE_NEW: "added the worktree `{path}`",
    reasons.WORKTREE_GONE: "removed the worktree `{path}`",
}


# -- what stays when files go back -----------------------------------------------------------


def commits(facts: "Facts", then: str = "") -> str:
    if facts["count"] == 1:
        return f"1 commit{then} stays"
    return f"{facts['count'] or 'some'} commits{then} stay"


def _up_to(facts: "Facts") -> str:
    return f" ({facts['head']})" if facts["count"] == 1 else f" (up to {facts['head']})"


def _commits_since(facts: "Facts") -> str:
    return commits(facts, " since then") + _up_to(facts)


def _commits_stay(facts: "Facts") -> str:
    them = "it" if facts["count"] == 1 else "them"
    return _head(facts, commits(facts) + _up_to(facts), f"takes {them} back")


def _head_stays(facts: "Facts") -> str:
    said = f"HEAD stays at {facts['head']}; it was at {facts['then']}"
    return _head(facts, said, "brings it back")


def _head(facts: "Facts", said: str, does: str) -> str:
    if facts.get("elsewhere"):
        return f"{said} on {_on(facts['branch'])}"
    if facts.get("later"):
        return f"{said}, below later commits: commit the restored files to take it back there, too"
    if facts.get("unborn"):
        return f"{said}: `git update-ref -d HEAD` {does}, and leaves its files staged"
    if "reset" not in facts:
        return said
    back = facts["reset"]
    return f"{said}: `git read-tree -im HEAD {back} && git reset --soft {back}` {does}"


def _switched(facts: "Facts") -> str:
    said = f"{_on(facts['now'])} stays checked out; before, it was {_on(facts['then'])}"
    if not facts.get("can"):
        return said
    goal = facts["then"] or facts["commit"][:SHORT]
    switch = f"git switch {shell_word(goal)}" if facts["then"] else f"git switch --detach {goal}"
    # The files are those of the other branch by now, which a bare switch takes for your changes.
    index = "" if facts["same"] else f"git read-tree -im HEAD {shell_word(goal)} && "
    return _with(facts, said, f"{index}{switch}", "switches back")


def _branch_gone(facts: "Facts") -> str:
    said = f"the branch `{facts['name']}` stays deleted"
    return _with(facts, said, _made("branch", facts), "brings it back")


def _tag_gone(facts: "Facts") -> str:
    said = f"the tag `{facts['name']}` stays deleted"
    return _with(facts, said, _made("tag", facts), "brings it back")


def _made(what: str, facts: "Facts") -> str:
    return f"git {what} {shell_word(facts['name'])} {facts['commit'][:SHORT]}"


def _branch_new(facts: "Facts") -> str:
    said = f"the new branch `{facts['name']}` stays ({facts['commit'][:SHORT]})"
    return _with(facts, said, f"git branch -d {shell_word(facts['name'])}", "deletes it")


def _branch_moved(facts: "Facts") -> str:
    said = f"the branch `{facts['name']}` stays at {facts['commit'][:SHORT]}"
    command = f"git branch -f {shell_word(facts['name'])} {facts['old'][:SHORT]}"
    return _with(facts, said, command, "moves it back")


def _tag_moved(facts: "Facts") -> str:
    said = f"the tag `{facts['name']}` stays at {facts['commit'][:SHORT]}"
    command = f"git tag -f {shell_word(facts['name'])} {facts['old'][:SHORT]}"
    return _with(facts, said, command, "moves it back")


def _branch_renamed(facts: "Facts") -> str:
    said = f"the branch `{facts['name']}` stays renamed to `{facts['new']}`"
    names = f"{shell_word(facts['new'])} {shell_word(facts['name'])}"
    return _with(facts, said, f"git branch -m {names}", "renames it back")


def _stash_gone(facts: "Facts") -> str:
    message = f"-m {shell_word(facts['message'])} " if facts["message"] else ""
    command = f"git stash store {message}{facts['commit']}"
    return _with(facts, "a dropped stash stays dropped", command, "brings it back")


def _stash_new(facts: "Facts") -> str:
    message = f": {facts['message']}" if facts["message"] else ""
    return f"a new stash stays ({facts['commit'][:SHORT]}){message}"


def _worktree_new(facts: "Facts") -> str:
    said = f"the new worktree `{facts['path']}` stays"
    if facts.get("inside"):
        return f"{said}; only its files in the project were restored"
    does = "removes it if nothing in it is uncommitted"
    return _with(facts, said, f"git worktree remove {shell_word(facts['path'])}", does)


def _only_git(facts: "Facts") -> str:
    turns = "1 newer turn" if facts["count"] == 1 else f"{facts['count']:,} newer turns"
    return f"skipped {turns} that changed only git:"


def _with(facts: "Facts", said: str, command: str, does: str) -> str:
    if facts.get("since"):
        return f"{said}; it was changed again since"
    if not facts.get("can") or _UNTYPED in command:
        return said
    return f"{said}: `{command}` {does}"


_MOST_STAGED = 6


def _staged(facts: "Facts") -> str:
    paths = facts["paths"]
    it = "it" if len(paths) == 1 else "them"
    said = f"the index still has {count(len(paths), 'file')} as the turn left {it}"
    if not facts["born"] or len(paths) > _MOST_STAGED:
        return f"{said}: `git status` shows what is staged"
    named = " ".join(map(shell_word, paths))
    return f"{said}: `git restore --staged -- {named}` unstages {it}"


def _on(branch: str) -> str:
    return f"the branch `{branch}`" if branch else "no branch"


def _copied(facts: "Facts") -> str:
    source, target = (shell_word(facts[name]) for name in ("source", "target"))
    if facts.get("folder"):
        return f"cp -R {source}/. {target}/"
    return f"cp {source} {target}"


def _stashes(facts: "Facts") -> str:
    source, target = str(facts["source"]), str(facts["target"])
    names = ("logs/refs/stash", "refs/stash")
    copies = (
        f"cp {shell_word(f'{source}/{name}')} {shell_word(f'{target}/{name}')}" for name in names
    )
    return " && ".join([f"mkdir -p {shell_word(f'{target}/logs/refs')}", *copies])


STAYING: "dict[str, Callable[[Facts], str]]" = {
    reasons.COMMITS_STAY: _commits_stay,
    reasons.COMMITS_SINCE: _commits_since,
    reasons.HEAD_STAYS: _head_stays,
    reasons.GIT_GONE: lambda _: (
        "`.git` stays deleted, with commits, branches, stashes and index; Takeback does not cover"
        " git, so restore it from a clone or a backup"
    ),
    reasons.GIT_MADE: lambda _: "the new git repository stays",
    reasons.GIT_REPLACED: lambda _: (
        "`.git` was replaced; Takeback does not cover the old repository"
    ),
    reasons.GIT_UNDER_WAY: lambda facts: (
        f"a {facts['what']} is in progress: `git status` shows how to end it"
    ),
    reasons.GIT_MORE: lambda facts: f"and {_more(facts)}",
    reasons.ONLY_GIT: _only_git,
    reasons.HEAD_MOVED: lambda facts: f"HEAD stays at {facts['new']}",
    reasons.BRANCH_SWITCHED: _switched,
    reasons.BRANCH_GONE: _branch_gone,
    reasons.BRANCH_NEW: _branch_new,
    reasons.BRANCH_MOVED: _branch_moved,
    reasons.BRANCH_RENAMED: _branch_renamed,
    reasons.TAG_GONE: _tag_gone,
    reasons.TAG_NEW: lambda facts: (
        f"the new tag `{facts['name']}` stays ({facts['commit'][:SHORT]})"
    ),
    reasons.TAG_MOVED: _tag_moved,
    reasons.REMOTES_MOVED: lambda facts: (
        f"{count(facts['count'], 'remote branch', 'remote branches')} moved:"
        " Takeback leaves them where they are"
    ),
    reasons.REFS_UNKNOWN: lambda facts: (
        f"the state of branches, tags and stashes is unknown ({facts['why']})"
    ),
    reasons.STASH_GONE: _stash_gone,
    reasons.STASH_NEW: _stash_new,
    reasons.INDEX_GONE: lambda facts: _with(
        facts,
        "the index stays deleted",
        "git read-tree HEAD",
        "rebuilds it, with nothing staged",
    ),
    reasons.INDEX_SAVED: lambda facts: (
        f"the index stays as it is: `{_copied(facts)}` brings back what was staged"
    ),
    reasons.STASHES_SAVED: lambda facts: (
        f"{count(facts['count'], 'dropped stash stays', 'dropped stashes stay')} dropped:"
        f" `{_stashes(facts)}` brings the list back as it was"
    ),
    reasons.LOGS_SAVED: lambda facts: (
        f"the reflogs stay as they are: `{_copied(facts)}` brings back the old ones"
    ),
    reasons.OBJECTS_SAVED: lambda facts: (
        f"objects that git removed stay away: `{_copied(facts)}` brings them back"
    ),
    reasons.STAGED_STAYS: _staged,
    reasons.WORKTREE_NEW: _worktree_new,
    reasons.WORKTREE_GONE: lambda facts: f"the worktree `{facts['path']}` stays removed",
}
