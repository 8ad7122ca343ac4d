"""Sentences for reasons, findings and actions: the one place where a code becomes words."""

from takeback.cli.text import git_text
from takeback.model import reasons
from takeback.model.plan import called
from takeback.model.results import PROJECT
from takeback.model.text.safe_text import shell_word
from takeback.model.words import KEEP_MINE, REDO, ROLLBACK, SKIP, TAKE_BACK, YOU, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from takeback.model.plan import Remark
    from takeback.model.reasons import Reason
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

    Facts = dict[str, Any]

HOW_TO_FREE = "see to these paths (`lsattr`, free space, mounts), or `takeback verify --set-aside`"
_MOST_NAMED = 3
_MOST_SHOWN = 10
_FORM = 'listeners = [["reindex", "--changed"]] is a list of commands, each a list of words'

_PLAIN = {
    reasons.YOURS: "yours",
    reasons.ALREADY: "already as it was",
    reasons.AGENTS_OWN: "the agent's own history",
    reasons.NOT_COVERED: "not covered ({why})",
    reasons.UNCOVERED_SINCE: "not covered ({why}){way_out}",
    reasons.NOT_COVERED_THEN: "not covered then ({why})",
    reasons.NOT_COVERED_STAYS: "not covered, so it stays",
    reasons.NOT_COVERED_NOW: "not covered any more ({why})",
    reasons.STEP_OPEN: "its step is not over",
    reasons.IN_THE_WAY: "in the way, and not covered ({why}): move it away",
    reasons.FOLDER_CONFLICTS: "its folder `{folder}` conflicts",
    reasons.NO_FOLDER_THEN: "`{folder}` will be no folder",
    reasons.NOT_EMPTY: "not empty: it holds {names}",
    reasons.HOLDS_OTHERS: "it holds {names}, which would have to go: move it away",
    reasons.OLD_NAME_CONFLICTS: "its old name `{path}` conflicts",
    reasons.DELETED_SINCE: "deleted since",
    reasons.MADE_AND_CHANGED: "made {by_this} and kept, for it was changed since",
    reasons.MADE_AND_RENAMED: "made {by_this} as `{name}`, and renamed since",
    reasons.MADE_ANEW: "deleted {by_this} and made anew since",
    reasons.OTHER_KIND: "made another kind of entry since",
    reasons.MODE_SINCE: "its mode was changed since",
    reasons.OTHER_TARGET: "led elsewhere since",
    reasons.CLOSED_AND_CHANGED: "closed to others {by_this}, and changed since",
    reasons.TOO_LARGE_TO_MERGE: "too large to be merged, and changed since",
    reasons.NO_TEXT: "no text that could be merged, and changed since",
    reasons.SAME_LINES: "changed in the same place since",
    reasons.HUNKS_LEFT: "some of its hunks",
    reasons.RENAMED_BETWEEN: "renamed {by_this}, and changed by others in between",
    reasons.RENAMED_AND_DELETED: "renamed {by_this} and deleted since",
    reasons.RENAMED_AGAIN: "renamed {by_this} to `{name}`, and since to this",
    reasons.CARRIES_CHANGES: "with what was changed since in `{path}`",
    reasons.WAS_RENAMED: "was `{path}`, and was renamed since",
    reasons.WITH_RENAME: "together with `{path}` (a rename)",
    reasons.WITH_MARKERS: "both versions, with conflict markers",
    reasons.SAVED_MEANWHILE: "saved while the restore ran",
    reasons.CHANGED_SINCE: "changed since",
    reasons.FOLDER_BY_NOW: "a folder by now",
    reasons.NOT_EMPTY_NOW: "not empty any more",
    reasons.REPLACED_BY_NOW: "something else is there by now",
    reasons.MADE_MEANWHILE: "made by somebody meanwhile",
    reasons.MODE_MEANWHILE: "its mode was changed meanwhile",
    reasons.OUT_OF_REACH: "its folder is not what it was any more",
    reasons.FOLDER_LOST: "its folder is not there any more, or nobody may open it: left as it is",
    reasons.NOT_SETUID: "not setuid any more: its owner could not be given back",
    reasons.SAVE_IN_STORE: "{save}",
    reasons.SAVE_RESCUED: "`{path}`: {save}",
    reasons.LATE_SAVE_RESCUED: "`{path}` was still written to: {save}",
    reasons.SAVED_BEFORE: (
        "saved just before it was replaced; `takeback show {checkpoint} {at}` prints it"
    ),
    reasons.IN_CHECKPOINT: "`takeback show {checkpoint} PATH` prints it",
    reasons.RESTORE_RUNS: "a restore is under way",
    reasons.TOO_MUCH_TO_READ: (
        "{files} files may have changed, too many to read here; `takeback diff --stat` does"
    ),
    reasons.NOT_LOOKED_AT: "{problem}",
    reasons.STILL_OPEN: (
        "some program has the old file open: what it writes there goes into the store"
    ),
    reasons.RESTORE_OPEN: "a restore was interrupted, and {problem}",
    reasons.NOT_TAKEN_BACK: "{problem}; " + HOW_TO_FREE,
    reasons.JOURNAL_DAMAGED: (
        "a restore was interrupted and cannot be taken back, because its journal is damaged; "
        "what it displaced is in {stage}: `takeback verify --set-aside` keeps both"
    ),
    reasons.FORGETTING: "something is being forgotten, and {problem}",
    reasons.FORGOT: (
        "forgetting was interrupted; it is finished now: everything was searched, and nothing is"
        " left"
    ),
    reasons.SET_ASIDE: (
        "a restore could not be taken back; its journal is in the log now, {displaced}"
    ),
    reasons.SET_ASIDE_UNREAD: (
        "the journal of a restore could not be read; it is in the log now, {displaced}"
    ),
    reasons.STAGE_REMOVED: "`{name}` was left of a restore; removed",
    reasons.LITTER_REMOVED: "`{name}` was never finished; removed",
    reasons.CACHE_REMOVED: (
        "the stat cache was of no use; removed, and the next checkpoint makes another"
    ),
    reasons.VIEW_REMADE: "the file `{file}` of the git view was {how}; made again",
    reasons.INDEX_REMADE: "{problem}; made again",
    reasons.TABLES_REMADE: (
        "{count} rows of the tables were not what the events say; all were made again"
    ),
    reasons.REGISTRY_REMADE: "the registry was made again from the stores",
    reasons.DAMAGED: "{problem}",
    reasons.FORGETTING_OPEN: (
        "something is being forgotten and is not done: `takeback forget --continue`"
    ),
    reasons.CONTENT_DAMAGED: "the content of `{name}` ({object}) is damaged",
    reasons.CONTENT_MISSING: "the content of `{name}` ({object}) is missing or damaged",
    reasons.COMMIT_LOST: (
        "the ledger lost its end: the git view knows the commit `{commit}`, the ledger does not"
    ),
    reasons.COMMIT_MISSING: "the commit `{commit}` of the git view is missing",
    reasons.OBJECT_MISSING: "the object `{object}`, which event {event} needs, is missing",
    reasons.LEDGER_CUT: "the ledger lost its end: event {event} was there and is not any more",
    reasons.VIEW_AHEAD: (
        "the git view shows the commit `{commit}`, which the ledger does not know: "
        "the ledger lost its end"
    ),
    reasons.PAGES_DAMAGED: "the ledger is damaged: {problem}",
    reasons.LEDGER_UNREADABLE: "the ledger cannot be read: {problem}",
    reasons.LEDGER_KINDS: "the ledger holds values of the wrong kind: {problem}",
    reasons.EVENT_MISSING: "event {event} of the ledger is missing",
    reasons.EVENT_CHANGED: "event {event} of the ledger was changed after it was written",
    reasons.DETAIL_CHANGED: "the detail of event {event} of the ledger is missing, or was changed",
    reasons.EVENT_UNCHAINED: "event {event} of the ledger does not follow from the one before",
    reasons.ARCHIVE_MISSING: "events {first} to {last} of the archive are missing",
    reasons.ARCHIVE_CHANGED: "{segment} were changed after they were written",
    reasons.ARCHIVED_EVENT_CHANGED: (
        "event {event} of the archive was changed after it was written"
    ),
    reasons.STATEMENT_WRONG: (
        "the statement of the table, index or view `{statement}` is not as it was made"
    ),
    reasons.ROW_WRONG: "the row `{row}` of the table `{table}` is not what the events say",
    reasons.ROW_MISSING: (
        "the row `{row}` of the table `{table}` is missing, which the events say"
    ),
    reasons.SETUID_DROPPED: (
        "`{path}` is not setuid or setgid any more: it has another owner than when it"
        " was captured, or nobody knows whose it was; `chmod` gives that back"
    ),
    reasons.LISTENER_INTERRUPTED: (
        "the listener `{name}` was interrupted, and nobody else was told"
    ),
    reasons.SETTINGS_UNREAD: (
        "{problem}; until you mend it, defaults count, and gc deletes nothing (`takeback config`)"
    ),
    reasons.LISTENERS_UNREAD: "nobody else was told: {problem}",
    reasons.LISTENER_RAISED: "a listener failed: {error}",
    reasons.LISTENER_MISSING: (
        "the listener `{name}` is not there; name a command of your PATH, or a whole path"
    ),
    reasons.LISTENER_NOT_STARTED: "the listener `{name}` could not be started: {why}",
    reasons.LISTENER_TOO_SLOW: (
        "the listener `{name}` did not end within {seconds} seconds and was stopped"
    ),
}
_FOUND = {
    "pack-unopened": "pack `{pack}` cannot be opened: {why}",
    "pack-no-file": "pack `{pack}` is not a plain file",
    "pack-no-pack": "pack `{pack}` does not begin as a pack does",
    "pack-size": "pack `{pack}` has {found:,} bytes instead of {expected:,}",
    "view-file-wrong": "the file `{file}` of the git view is not as it should be",
    "cache-unfit": (
        "the stat cache is damaged, or of another state: the next checkpoint takes longer"
    ),
    "unfinished-file": "`{path}` was never finished",
    "stage-left": "`{name}` in the work tree is left of a restore",
    "journal-unread": (
        "a restore was interrupted, and its journal cannot be read (it is in {stage})"
    ),
    "restore-unfinished": "the restore `{restore}` is not finished",
    "forget-unfinished": "forgetting `{id}` is not finished ({phase})",
    "events-ahead": "the newest event is {minutes:,} minutes in the future",
    "disk-clock-ahead": "the disk's clock is {seconds:,} seconds ahead of this machine's",
    "part-unread": "it cannot be read: {problem}",
    "network-disk": (
        "the stores are on a network file system ({kind}), where locks and syncs do not "
        "keep what they promise"
    ),
    "read-only": "the disk of `{path}` is read-only: nothing can be recorded",
    "no-inodes": "the disk of `{path}` has no inodes left: nothing can be recorded",
    "little-space": "only {mb:.0f} MB are free where the stores are",
    "not-yours": "`{path}` belongs to another user",
    "is-a-link": "`{path}` is a link",
    "reachable": "`{path}` can be reached by others (mode {mode})",
    "more-not-private": "{count} more files or folders are not private",
    "registry-wrong": "the registry is not what the stores say of {listed}",
    "registry-unread": "the registry has lines that nobody can read",
    "store-left": "`{path}` is left of a store whose removal was cut short",
    "store-unwell": "the store `{id}` of `{root}` is {health}: {problem}",
    "misfit": "{problem} (in `{path}`)",
    "folder-state": "its folder is {state}",
    "files-on-network-disk": "its files are on a network disk: whoever writes there is seen late",
    "store-unopened": "the store cannot be opened: {problem}",
    "hook-failed": "a hook failed{ago}: {what}: {problem}",
    "hooks-broken": "{title} cannot call Takeback from `{file}`: {problem}",
    "hooks-remark": "{remark} (`{file}`)",
    "recording-off": "Takeback is off here: agents and `takeback run` record nothing",
    "hooks-missing": "no hook is there for {listed} (`{file}`)",
}
_STATES = {
    "events-told": "{counted}, and the tables are as told by them",
    "format": "{path}, format {format}",
    "packs-fit": "{counted}, each with an index that fits",
    "view-fits": "its refs show what the ledger says",
    "cache-fits": "fits the newest checkpoint",
    "no-cache": "none, so the next checkpoint looks at everything",
    "no-folder-to-look-at": "not looked at: the project's folder is not there",
    "none": "none",
    "somebody-at-work": "not looked at: somebody is at work",
    "none-half-done": "none is half done",
    "clocks-agree": "clocks agree",
    "at": "{path}",
    "nothing-stored": "nothing was ever stored in `{path}`",
    "free": "{gb:.1f} GB free",
    "private": "only you can reach it",
    "projects": "{counted}",
    "other-stores": "{counted} can be opened",
    "settings-understood": "nothing in them that is not understood",
    "no-project": "you are in none; `takeback checkpoint` makes this folder one",
    "hooks": "{called}",
}
_ACTIONS = {
    "repair": "`takeback doctor --repair` puts it right",
    "verify": "`takeback verify` tells which checkpoints it touches",
    "copy-and-verify": (
        "copy the store before anything else; `takeback verify` tells which checkpoints it touches"
    ),
    "wait": "nothing is lost by it: a checkpoint makes it again",
    "set-restore-aside": "`takeback verify --set-aside` keeps it, and lets undo work again",
    "next-command": "the next command that writes takes it back, or says why it cannot",
    "go-on-forgetting": "`takeback forget --continue` goes on with it",
    "set-clock": "set the clock; the order of events does not depend on it, `10m` and the like do",
    "set-both-clocks": "is it a network disk? set both clocks",
    "move-home": "move the folder to a local disk, and set TAKEBACK_HOME",
    "make-writable": "make it writable; what was recorded is there",
    "delete-files": "delete some files there",
    "free-space": "free some; `takeback projects` lists stores",
    "close": "`takeback doctor --repair` closes it; look who has been there",
    "chown": "look who put it there: chown {user} {path}",
    "remake-registry": "`takeback doctor --repair` makes it again from the stores",
    "doctor-there": "run `takeback doctor` there; `takeback projects` lists all",
    "remove-store": "`takeback projects --remove {id}` deletes it",
    "looked-at-twice": "checkpoints look twice; nothing is lost",
    "update": "update Takeback; until then `takeback run` works without cover",
    "begin-anew": (
        "copy the store; what git can read is in its folder `git`; `takeback relocate --new`"
        " begins a new history, and the old one stays"
    ),
    "turn-not-covered": "that turn was not covered",
    "turn-on": "`takeback on` turns it on",
    "install": "`takeback install {agent}{flag}` puts it right",
    "mend-settings": "mend that file by hand, then run `takeback doctor` again",
    "install-missing": "`takeback install {agent}{flag}` adds what is missing",
}
_COUNTED = {
    "events-told": ("events", "event"),
    "packs-fit": ("packs", "pack"),
    "projects": ("count", "project"),
    "other-stores": ("count", "other store"),
}
_PLAIN |= {**_FOUND, **_STATES, **_ACTIONS}
_WAY_OUT = {
    "special": ": move it away",
    "too large": ": move it away",
    "unreadable": ": `chmod u+rwX` it",
    "other mount": ": unmount it",
}
_DECIDED = {
    KEEP_MINE: "; stays, as decided",
    SKIP: "; left as it is",
    TAKE_BACK: "; that goes, too",
}


def sentence(reason: "Reason", verb: str = "", path: str = "") -> str:
    """A reason in words; `verb` is what the plan does, `path` what the reason is about."""
    facts: Facts = dict(reason.facts)
    made = _MADE.get(reason.code)
    if made is not None:
        return made(facts) + _DECIDED.get(facts.get("decision", ""), "")
    facts["by_this"] = "by the undo" if verb == REDO else "by this turn"
    facts["at"] = shell_word(path)
    facts["way_out"] = _WAY_OUT.get(facts.get("why", ""), "")
    if "name" in facts and "count" in facts:
        more = facts["count"] - 1
        facts["names"] = f"`{facts['name']}`" + (f" and {more:,} more" if more else "")
    if "size" in facts:
        facts["save"] = _save(facts)
    if "folders" in facts:
        facts["displaced"] = _displaced(facts["folders"])
    if "bytes" in facts:
        facts |= {"gb": facts["bytes"] / 1e9, "mb": facts["bytes"] / 1e6}
    if "calls" in facts:
        none = "no agent calls Takeback; `takeback install AGENT` lets one"
        facts["called"] = "; ".join(facts["calls"]) or none
    for name in ("ids", "missing"):
        if name in facts:
            facts["listed"] = ", ".join(facts[name])
    facts["flag"] = " --project" if facts.get("scope") == PROJECT else ""
    if reason.code in _COUNTED:
        name, one = _COUNTED[reason.code]
        facts["counted"] = count(facts[name], one) if facts[name] else f"no {one}"
    said = _PLAIN.get(reason.code, reason.code).format(**facts)
    by = f" by {names(facts['by'])}" if facts.get("by") else ""
    done = "; it is private now" if facts.get("closed") else ""
    return said + by + _DECIDED.get(facts.get("decision", ""), "") + done


def of_remark(remark: "Remark", verb: str = "") -> str:
    return sentence(remark.reason, verb, remark.raw_path.decode("utf-8", "surrogateescape"))


def in_short(stays: "Sequence[Reason]") -> "list[str]":
    """What stays, without how to get rid of it: commits, else only that git does."""
    of_git = [each for each in stays if each.code in git_text.STAYING]
    others = [each for each in stays if each not in of_git]
    said = [sentence(each) for each in others if each.code != reasons.UNCOVERED_CHANGED]
    counted = (reasons.COMMITS_STAY, reasons.COMMITS_SINCE)
    for each in of_git:
        then = " since then" if each.code == reasons.COMMITS_SINCE else ""
        said += [git_text.commits(dict(each.facts), then)] if each.code in counted else []
    is_more = any(each.code not in counted for each in of_git)
    return [*said, "git stays as it is"] if is_more else said


def as_json(reason: "Reason | None", masker: "Masker", verb: str = "", path: str = "") -> "Json":
    if reason is None:
        return None
    facts = reason.as_json() | {"text": sentence(reason, verb, path)}
    return {name: _masked(fact, masker) for name, fact in facts.items()}


def _masked(fact: "Json", masker: "Masker") -> "Json":
    if isinstance(fact, list):
        return [_masked(each, masker) for each in fact]
    if not isinstance(fact, str):
        return fact
    return masker.words(fact.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def shown(paths: "Sequence[str]", most: int = _MOST_SHOWN) -> str:
    named = [f"`{path or '.'}`" for path in paths[:most]]
    more = [f"{len(paths) - most:,} more"] if len(paths) > most else []
    return ", ".join(named + more)


# -- those that take more than a template ------------------------------------------------------


def _folder_gone(facts: "Facts") -> str:
    return f"its folder `{facts['folder']}` is gone" if "folder" in facts else "its folder is gone"


def _no_folder(facts: "Facts") -> str:
    what = f"not covered ({facts['why']})" if facts["why"] else "no folder any more"
    return f"`{facts['folder']}` is {what}"


def names(names: "Sequence[str]") -> str:
    """Who did something; many turns are counted, with the first and the last of them."""
    turns = [name for name in names if name != YOU]
    if len(turns) > _MOST_NAMED:
        turns = [f"{len(turns):,} turns, first {turns[0]}, last {turns[-1]}"]
    return " and ".join([YOU, *turns] if YOU in names else turns)


def _shared(facts: "Facts") -> str:
    partners = facts.get("partners") or ("another session",)
    return f"shared with {names(partners)}, so it stays"


def _all_shared(facts: "Facts") -> str:
    partners = facts.get("partners") or ("another session",)
    return f"what {called(facts['turn'], is_turn=True)} did is shared with {names(partners)}"


def _merged(facts: "Facts") -> str:
    others = names([name for name in facts["by"] if name != YOU])
    if YOU not in facts["by"]:
        return f"merged with the changes of {others}" if others else "merged with what is there"
    return f"merged with your changes{f' and those of {others}' if others else ''}"


def _other_branch(facts: "Facts") -> str:
    is_turn = "turn" in facts
    what = called(facts["turn"] if is_turn else facts["rollback"], is_turn=is_turn)
    return (
        f"{what} ended on {_branch(facts['then'])}, and {_branch(facts['now'])} is checked out now"
    )


def _branch(name: str) -> str:
    return f"the branch `{name}`" if name else "no branch"


def _after_stop(facts: "Facts") -> str:
    turn = called(facts["turn"], is_turn=True)
    when = f"after {turn} had stopped, while a command of it ran on in the background"
    return _perhaps_yours(facts, when)


def _perhaps_ran(facts: "Facts") -> str:
    turn = called(facts["turn"], is_turn=True)
    why = "a permission dialog waited, or its process was killed"
    return _perhaps_yours(facts, f"when it is not known whether a command of {turn} ran ({why})")


def _at_terminal(facts: "Facts") -> str:
    turn = called(facts["turn"], is_turn=True)
    return _perhaps_yours(facts, f"while {turn} had your terminal")


def _perhaps_yours(facts: "Facts", when: str) -> str:
    paths = facts["paths"]
    said = f"{count(len(paths), 'path')} changed {when}, and may be your own work"
    return f"{said}: {shown(paths, _MOST_NAMED)}"


def _outside_changes(facts: "Facts") -> str:
    paths = facts["paths"]
    files = count(len(paths), "file")
    return f"this also changes {files} outside the project: {shown(paths, _MOST_NAMED)}"


def _uncovered_changed(facts: "Facts") -> str:
    return f"not covered, and changed since: {shown(facts['paths'], _MOST_NAMED)}"


def _outside_stays(facts: "Facts") -> str:
    stay = "stays as it is" if facts["count"] == 1 else "stay as they are"
    return f"{count(facts['count'], 'file')} outside the project {stay}"


def _save(facts: "Facts") -> str:
    read = f"`takeback show {facts['restore']} --rescued PATH` prints it"
    return f"a save of {facts['size']:,} bytes that came in between is in the store; {read}"


def _displaced(folders: "Sequence[str]") -> str:
    if not folders:
        return "and there is no folder of it"
    return "what was displaced is in " + " and ".join(f"`{name}`" for name in folders)


def _restore(facts: "Facts") -> str:
    return f"the {facts['verb']} {'to' if facts['verb'] == ROLLBACK else 'of'} {facts['title']}"


def _taken_back(facts: "Facts") -> str:
    lost, kept = facts["lost"], facts["kept"]
    done = f"but not at {shown(lost)}" if lost else "and everything is as it was before"
    said = f"{_restore(facts)} was interrupted; it was taken back, {done}"
    if kept:
        both = list(zip(kept, facts["why"], strict=True))
        named = [f"`{path}` ({_PLAIN.get(why, why)})" for path, why in both[:_MOST_SHOWN]]
        named += [f"{len(kept) - _MOST_SHOWN:,} more"] if len(kept) > _MOST_SHOWN else []
        said += f"; left as found: {', '.join(named)}"
    return said


def _stuck(facts: "Facts") -> str:
    what = f"{_restore(facts)} was interrupted and could not be taken back yet"
    return f"{what}; it is about {shown(facts['paths'])}; {HOW_TO_FREE}"


def _listeners_wrong(facts: "Facts") -> str:
    if "count" in facts:
        return f"{facts['count']} of `listeners` in the settings cannot be understood: {_FORM}"
    return f"`listeners` in the settings is not understood: {_FORM}"


def _listener_failed(facts: "Facts") -> str:
    status = facts["status"]
    how = f"exit code {status}" if status > 0 else f"ended by signal {-status}"
    return f"the listener `{facts['name']}` failed: {how}"


_MADE: "dict[str, Callable[[Facts], str]]" = {
    reasons.FOLDER_GONE: _folder_gone,
    reasons.NO_FOLDER: _no_folder,
    reasons.SHARED: _shared,
    reasons.ALL_SHARED: _all_shared,
    reasons.MERGED: _merged,
    reasons.OTHER_BRANCH: _other_branch,
    reasons.UNCOVERED_CHANGED: _uncovered_changed,
    reasons.AFTER_STOP: _after_stop,
    reasons.PERHAPS_RAN: _perhaps_ran,
    reasons.AT_TERMINAL: _at_terminal,
    reasons.OUTSIDE_CHANGES: _outside_changes,
    reasons.OUTSIDE_STAYS: _outside_stays,
    reasons.TAKEN_BACK: _taken_back,
    reasons.RESTORE_STUCK: _stuck,
    reasons.LISTENERS_WRONG: _listeners_wrong,
    reasons.LISTENER_FAILED: _listener_failed,
    **git_text.STAYING,
}
SENTENCES = _PLAIN.keys() | _MADE.keys()
"""The codes that have words here."""
