"""Sentences for reasons, findings and actions: the one place where a code becomes words."""

from takeback.cli.screen import size
from takeback.cli.text import effect_text
from takeback.cli.text.restores import git_text
from takeback.model import reasons
from takeback.model.plan import called
from takeback.model.results import PROJECT
from takeback.model.text.safe_text import shell_word
from takeback.model.value import path_text
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

HOW_TO_FREE = "check these paths (`lsattr`, space, mounts), or run `takeback verify --set-aside`"
_MOST_NAMED, _MOST_SHOWN = 3, 10
_FORM = 'listeners = [["reindex", "--changed"]] is a list of commands, each a list of words'

_PLAIN = {
    reasons.GUARD_TAMPER: "it changes the guard, the hooks or the store of Takeback",
    reasons.YOURS: "yours",
    reasons.ALREADY: "already as it was",
    reasons.AGENTS_OWN: "the agent's own history",
    reasons.NOT_COVERED: "not covered ({why})",
    reasons.UNCOVERED_SINCE: "not covered ({why}){way_out}",
    reasons.NOT_COVERED_THEN: "not covered then ({why})",
    reasons.NOT_COVERED_STAYS: "not covered, so it is kept",
    reasons.NOT_COVERED_NOW: "no longer covered ({why})",
    reasons.STEP_OPEN: "its step is still running",
    reasons.IN_THE_WAY: "in the way, and not covered ({why}): move it away",
    reasons.FOLDER_CONFLICTS: "its folder `{folder}` conflicts",
    reasons.NO_FOLDER_THEN: "`{folder}` will not be a folder",
    reasons.NOT_EMPTY: "not empty: it holds {names}",
    reasons.HOLDS_OTHERS: "it holds {names}, which would be removed: move it away",
    reasons.OLD_NAME_CONFLICTS: "its old name `{path}` conflicts",
    reasons.DELETED_SINCE: "{who} deleted it since",
    reasons.MADE_AND_CHANGED: "made {by_this}, and {who} changed it since",
    reasons.MADE_AND_RENAMED: "made {by_this} as `{name}`, and {who} renamed it since",
    reasons.MADE_ANEW: "deleted {by_this}, and {who} created it again since",
    reasons.OTHER_KIND: "{who} replaced it with another kind of entry since",
    reasons.MODE_SINCE: "{who} changed its mode since",
    reasons.OTHER_TARGET: "{who} changed its target since",
    reasons.CLOSED_AND_CHANGED: "made private {by_this}, and {who} changed it since",
    reasons.TOO_LARGE_TO_MERGE: "too large to merge, and {who} changed it since",
    reasons.NO_TEXT: "not text, so it cannot be merged, and {who} changed it since",
    reasons.SAME_LINES: "{who} changed the same lines since",
    reasons.HUNKS_LEFT: "some of its hunks",
    reasons.RENAMED_AND_DELETED: "renamed {by_this}, and {who} deleted it since",
    reasons.RENAMED_AGAIN: "renamed {by_this} to `{name}`, and {who} renamed it to this since",
    reasons.CARRIES_CHANGES: "with what {who} changed since in `{path}`",
    reasons.WAS_RENAMED: "was `{path}`, renamed since",
    reasons.WITH_RENAME: "together with `{path}` (a rename)",
    reasons.WITH_MARKERS: "both versions, with conflict markers",
    reasons.SAVED_MEANWHILE: "saved while the restore ran",
    reasons.CHANGED_SINCE: "changed since",
    reasons.FOLDER_BY_NOW: "now a folder",
    reasons.NOT_EMPTY_NOW: "no longer empty",
    reasons.REPLACED_BY_NOW: "something else took its place",
    reasons.MADE_MEANWHILE: "created meanwhile",
    reasons.MODE_MEANWHILE: "its mode changed meanwhile",
    reasons.OUT_OF_REACH: "its folder was replaced",
    reasons.FOLDER_LOST: "its folder is gone or cannot be opened: left as it is",
    reasons.NOT_SETUID: "no longer setuid: its owner could not be restored",
    reasons.SAVE_IN_STORE: "{save}",
    reasons.SAVE_RESCUED: "`{path}`: {save}",
    reasons.LATE_SAVE_RESCUED: "`{path}` was still written to: {save}",
    reasons.SAVED_BEFORE: (
        "saved just before it was replaced; `takeback show {checkpoint} {at}` prints it"
    ),
    reasons.IN_CHECKPOINT: "`takeback show {checkpoint} PATH` prints it",
    reasons.UNKNOWN_TARGET: "which files `{text}` means is unknown before it runs",
    reasons.TOO_MANY_TO_SAVE: "too much to save in time: only {count} entries are saved",
    reasons.TOO_LARGE_TO_COPY: "too large to copy ({size} bytes)",
    reasons.NO_ROOM_TO_COPY: "not enough free space to copy it ({size} bytes)",
    reasons.CANNOT_BE_SAVED: "cannot be saved: {why}",
    reasons.HOLDS_STORE: "it holds Takeback's own store",
    reasons.RESCUED_STAYS: "what was rescued stays; redo does not delete it again",
    reasons.RESCUED_CHANGED: "its rescued copy was changed under another name",
    reasons.RESCUE_DAMAGED: "the rescue {rescue} lost the content of `{path}` (and {more} more)",
    reasons.RESCUED_LOST: "its rescued copy is gone",
    reasons.THERE_AGAIN: "it is there again, so it is kept; its rescued copy stays, too",
    reasons.GIT_STAYS: "Takeback never writes to a `.git` that is there",
    reasons.RESTORE_RUNS: "a restore is running",
    reasons.TOO_MUCH_TO_READ: (
        "{files} files may have changed, too many to read here; `takeback diff --stat` reads them"
    ),
    reasons.NOT_LOOKED_AT: "{problem}",
    reasons.STILL_OPEN: (
        "a program still has the old file open: what it writes is saved in the store"
    ),
    reasons.STATE_UNKNOWN: "its state then is not known",
    reasons.STATE_SINCE: "it changed since",
    reasons.NOT_AT_TAIL: "later turns were not undone",
    reasons.NOT_REACHED: "it cannot be reached: {problem}",
    reasons.NOT_REGISTERED: "no program that runs Takeback here registered it",
    reasons.NO_INVERSE: "this program does not know its inverse",
    reasons.NO_REDO: "nothing does it again",
    reasons.MOVE_FAILED: "{problem}",
    reasons.PARTICIPANT_MOVED: "`{name}` is now as the restore `{restore}` decided",
    reasons.PARTICIPANT_FAILED: (
        "`{name}` is not yet as the restore `{restore}` decided: {problem};"
        " `takeback participant retry {name}` tries again"
    ),
    reasons.PARTICIPANT_WAITS: "`{name}` is restored when its program registers it",
    reasons.RESTORE_OPEN: "a restore was interrupted, and {problem}",
    reasons.NOT_TAKEN_BACK: "{problem}; " + HOW_TO_FREE,
    reasons.JOURNAL_DAMAGED: (
        "a restore was interrupted and cannot be taken back, because its journal is damaged; "
        "what it displaced is in {stage}: `takeback verify --set-aside` keeps both"
    ),
    reasons.FORGETTING: "a `forget` was interrupted, and {problem}",
    reasons.FORGOT: (
        "a `forget` was interrupted; it is finished now: Takeback searched everything and found"
        " nothing left"
    ),
    reasons.SET_ASIDE: (
        "a restore could not be taken back; the log now holds its journal, {displaced}"
    ),
    reasons.SET_ASIDE_UNREAD: (
        "the journal of a restore could not be read; the log now holds it, {displaced}"
    ),
    reasons.STAGE_REMOVED: "removed `{name}`, left over from a restore",
    reasons.LITTER_REMOVED: "removed `{name}`, which was never finished",
    reasons.CACHE_REMOVED: (
        "removed the unusable stat cache; the next checkpoint writes a new one"
    ),
    reasons.VIEW_REMADE: "rebuilt the file `{file}` of the git view, which was {how}",
    reasons.INDEX_REMADE: "{problem}; rebuilt",
    reasons.TABLES_REMADE: (
        "{count} rows of the tables did not match the events; all tables were rebuilt"
    ),
    reasons.REGISTRY_REMADE: "rebuilt the registry from the stores",
    reasons.DAMAGED: "{problem}",
    reasons.PLAN_UNREAD: "the preview `{id}` cannot be read; nothing depends on it",
    "plan-again": "preview it again; `takeback gc` deletes it once it is too old",
    reasons.FORGETTING_OPEN: (
        "a `forget` is not finished: `takeback forget --continue` resumes it"
    ),
    reasons.CONTENT_DAMAGED: "the content of `{name}` ({object}) is damaged",
    reasons.CONTENT_MISSING: "the content of `{name}` ({object}) is missing or damaged",
    reasons.COMMIT_LOST: (
        "the ledger lost its end: the git view knows the commit `{commit}`, the ledger does not"
    ),
    reasons.COMMIT_MISSING: "the commit `{commit}` of the git view is missing",
    reasons.OBJECT_MISSING: "the object `{object}`, which event {event} needs, is missing",
    reasons.LEDGER_CUT: "the ledger lost its end: event {event} is missing",
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
        "the statement of the table, index or view `{statement}` was changed"
    ),
    reasons.ROW_WRONG: "the row `{row}` of the table `{table}` does not match the events",
    reasons.ROW_MISSING: ("the row `{row}` of the table `{table}` is missing"),
    reasons.SETUID_DROPPED: (
        "`{path}` is no longer setuid or setgid: its owner changed since it was captured, or is"
        " unknown; `chmod` sets it again"
    ),
    reasons.LISTENER_INTERRUPTED: (
        "the listener `{name}` was interrupted, and later listeners did not run"
    ),
    reasons.SETTINGS_UNREAD: (
        "{problem}; until you fix it, defaults apply and gc deletes nothing (`takeback config`)"
    ),
    reasons.LISTENERS_UNREAD: "no listener ran: {problem}",
    reasons.LISTENER_RAISED: "a listener failed: {error}",
    reasons.LISTENER_MISSING: (
        "there is no listener `{name}`; name a command in your PATH, or a full path"
    ),
    reasons.LISTENER_NOT_STARTED: "the listener `{name}` could not be started: {why}",
    reasons.LISTENER_TOO_SLOW: (
        "the listener `{name}` did not end within {seconds} seconds and was stopped"
    ),
}
_FOUND = {
    "pack-unopened": "pack `{pack}` cannot be opened: {why}",
    "pack-no-file": "pack `{pack}` is not a plain file",
    "pack-no-pack": "pack `{pack}` does not begin like a pack",
    "pack-size": "pack `{pack}` has {found:,} bytes instead of {expected:,}",
    "view-file-wrong": "the file `{file}` of the git view is wrong",
    "cache-unfit": ("the stat cache is damaged or outdated: the next checkpoint takes longer"),
    "unfinished-file": "`{path}` was never finished",
    "stage-left": "`{name}` in the work tree is left over from a restore",
    "journal-unread": (
        "a restore was interrupted, and its journal cannot be read (it is in {stage})"
    ),
    "participant-not-captured": (
        "`{name}` stays in undo and rollback, because it could not be captured: {problem}"
    ),
    "restore-unfinished": "the restore `{restore}` is not finished",
    "forget-unfinished": "the `forget` with id `{id}` is not finished ({phase})",
    "events-ahead": "the newest event is {minutes:,} minutes in the future",
    "disk-clock-ahead": "the disk's clock is {seconds:,} seconds ahead of this machine's",
    "part-unread": "it cannot be read: {problem}",
    "network-disk": (
        "the stores are on a network file system ({kind}), where locks and syncs are not reliable"
    ),
    "read-only": "the disk of `{path}` is read-only: nothing can be recorded",
    "no-inodes": "the disk of `{path}` has no inodes left: nothing can be recorded",
    "little-space": "only {mb:.0f} MB are free where the stores are",
    "not-yours": "`{path}` belongs to another user",
    "is-a-link": "`{path}` is a link",
    "reachable": "`{path}` can be opened by other users (mode {mode})",
    "more-not-private": "{count} more files or folders are not private",
    "registry-wrong": "the registry does not match the stores: {listed}",
    "registry-unread": "the registry has unreadable lines",
    "store-left": "`{path}` is left over from a store whose removal was interrupted",
    "store-unwell": "the store `{id}` of `{root}` is {health}: {problem}",
    "misfit": "{problem} (in `{path}`)",
    "folder-state": "its folder is {state}",
    "files-on-network-disk": "its files are on a network disk: changes of others are seen late",
    "store-unopened": "the store cannot be opened: {problem}",
    "hook-failed": "a hook failed{ago}: {what}: {problem}",
    "hooks-broken": "{title} cannot call Takeback from `{file}`: {problem}",
    "hooks-remark": "{remark} (`{file}`)",
    "agents-running": "{count} in the middle of a turn",
    "lessons-known": "{count} lessons, {relapses} relapses",
    "lessons-wait": "{some} for you: agents are not told what one of them noted",
    "agents-paused": "{whom} paused: calls are refused until `takeback resume`",
    "recording-off": "Takeback is off here: agents and `takeback run` record nothing",
    "hooks-outdated": (
        "hooks for {listed} are not those of this version, so some calls may not be reported"
        " (`{file}`)"
    ),
    "tools-unreported": (
        "{title} reported no tool while {counted} changed (turn `{turn}`): its hooks may not fire"
    ),
    "hooks-missing": "hooks are missing for {listed} (`{file}`)",
}
_STATES = {
    "events-told": "{counted}, and the tables match them",
    "format": "{path}, format {format}",
    "packs-fit": "{counted}, each with a matching index",
    "view-fits": "its refs match the ledger",
    "cache-fits": "matches the newest checkpoint",
    "rescues-fit": "{count} kept, {in_units} that no other file has",
    "no-cache": "none, so the next checkpoint reads everything",
    "no-folder-to-look-at": "not checked: the project's folder is gone",
    "none": "none",
    "somebody-at-work": "not checked: another process is working",
    "none-half-done": "none is unfinished",
    "clocks-agree": "clocks agree",
    "at": "{path}",
    "nothing-stored": "nothing was ever stored in `{path}`",
    "free": "{gb:.1f} GB free",
    "private": "only you can open it",
    "projects": "{counted}",
    "other-stores": "{counted}",
    "settings-understood": "all settings are known",
    "no-project": "you are not in a project; `takeback checkpoint` makes this folder one",
    "hooks": "{called}",
}
_ACTIONS = {
    "repair": "`takeback doctor --repair` repairs it",
    "verify": "`takeback verify` lists the affected checkpoints",
    "copy-and-verify": ("copy the store first; `takeback verify` lists the affected checkpoints"),
    "wait": "nothing is lost: the next checkpoint rebuilds it",
    "set-restore-aside": "`takeback verify --set-aside` records it and lets undo work again",
    "next-command": "the next command that writes takes it back, or reports why it cannot",
    "go-on-forgetting": "`takeback forget --continue` resumes it",
    "set-clock": "set the clock; times such as `10m` depend on it, the order of events does not",
    "set-both-clocks": "is it a network disk? set both clocks",
    "move-home": "move the folder to a local disk, and set TAKEBACK_HOME",
    "make-writable": "make it writable; the history is intact",
    "delete-files": "delete some files there",
    "free-space": "free some space; `takeback projects` lists stores",
    "close": "`takeback doctor --repair` makes it private; check who opened it",
    "chown": "check who put it there, then run `chown {user} {path}`",
    "remake-registry": "`takeback doctor --repair` rebuilds it from the stores",
    "doctor-there": "run `takeback doctor` there; `takeback projects` lists all projects",
    "remove-store": "`takeback projects --remove {id}` deletes it",
    "looked-at-twice": "checkpoints read twice; nothing is lost",
    "update": "update Takeback; until then `takeback run` works without cover",
    "begin-anew": (
        "copy the store; what git can read is in its folder `git`; `takeback relocate --new`"
        " begins a new history and keeps the old one"
    ),
    "turn-not-covered": "that turn was not covered",
    "turn-on": "`takeback on` turns it on",
    "list-participants": "`takeback participant` lists all of them",
    "retry-participant": "`takeback participant retry {name}` tries again",
    "let-go-on": "`takeback resume` lets them go on",
    "install": "`takeback install {agent}{flag}` repairs it",
    "mend-settings": "fix that file by hand, then run `takeback doctor` again",
    "install-anew": "`takeback install {agent}{flag}` renews them",
    "install-missing": "`takeback install {agent}{flag}` adds what is missing",
}
_COUNTED = {
    "events-told": ("events", "event"),
    "packs-fit": ("packs", "pack"),
    "projects": ("count", "project"),
    "other-stores": ("count", "other store"),
    "tools-unreported": ("count", "path"),
}
_PLAIN |= {**_FOUND, **_STATES, **_ACTIONS, **effect_text.GUARD}
_WAY_OUT = {
    "special": ": move it away",
    "too large": ": move it away",
    "unreadable": ": `chmod u+rwX` it",
    "other mount": ": unmount it",
}
_DECIDED = {
    KEEP_MINE: "; kept, as you chose",
    SKIP: "; left as it is",
    TAKE_BACK: "; {whose} change is removed, too",
}


def sentence(reason: "Reason", verb: str = "", path: str = "") -> str:
    """A reason in words; `verb` is what the plan does, `path` what the reason is about."""
    facts: Facts = dict(reason.facts)
    made = _MADE.get(reason.code)
    if made is not None:
        decided = _DECIDED.get(facts.get("decision", ""), "")
        return made(facts) + decided.format(whose="that")
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
        facts["in_units"] = size(facts["bytes"])
    if "calls" in facts:
        facts["called"] = "; ".join(calls(reason))
    for name in ("ids", "missing"):
        if name in facts:
            facts["listed"] = ", ".join(facts[name])
    facts["flag"] = " --project" if facts.get("scope") == PROJECT else ""
    if reason.code in _COUNTED:
        name, one = _COUNTED[reason.code]
        facts["counted"] = count(facts[name], one) if facts[name] else f"no {one}"
    template, by = _PLAIN.get(reason.code, reason.code), names(facts.get("by") or ())
    said = template.format(**facts, who=by or "others")
    said += f" by {by}" if by and "{who}" not in template else ""
    decided = _DECIDED.get(facts.get("decision", ""), "")
    done = "; it is private now" if facts.get("closed") else ""
    return said + decided.format(whose="your" if by == YOU else "that") + done


def calls(reason: "Reason") -> "list[str]":
    """Which agents call Takeback and which do not, a line each."""
    from takeback.agents.registry import installable

    facts: Facts = dict(reason.facts)
    silent = [
        f"{installable()[name].title} is on this machine and does not call Takeback:"
        f" `takeback install {name}`"
        for name in facts["silent"]
    ]
    none = "no agent calls Takeback; `takeback install` sets one up"
    return [*(facts["calls"] or ([] if silent else [none])), *silent]


def of_remark(remark: "Remark", verb: str = "") -> str:
    return sentence(remark.reason, verb, path_text(remark.raw_path))


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
    what = f"not covered ({facts['why']})" if facts["why"] else "no longer a folder"
    return f"`{facts['folder']}` is {what}"


def names(names: "Sequence[str]") -> str:
    """Who did something; many turns are counted, with the first and the last of them."""
    turns = [name for name in names if name != YOU]
    if len(turns) > _MOST_NAMED:
        turns = [f"{len(turns):,} turns, first {turns[0]}, last {turns[-1]}"]
    return " and ".join([YOU, *turns] if YOU in names else turns)


def _shared(facts: "Facts") -> str:
    partners = facts.get("partners") or ("another session",)
    return f"shared with {names(partners)}, so it is kept"


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
    when = f"after {turn} ended, while its command still ran in the background"
    return _perhaps_yours(facts, when)


def _perhaps_ran(facts: "Facts") -> str:
    turn = called(facts["turn"], is_turn=True)
    why = "a permission dialog waited, or its process was killed"
    return _perhaps_yours(facts, f"while a command of {turn} may have run ({why})")


def _at_terminal(facts: "Facts") -> str:
    turn = called(facts["turn"], is_turn=True)
    return _perhaps_yours(facts, f"while {turn} had your terminal")


def _no_tool_event(facts: "Facts") -> str:
    turn = called(facts["turn"], is_turn=True)
    return _perhaps_yours(facts, f"without a tool event while {turn} ran")


def _unknown_author(facts: "Facts") -> str:
    return _perhaps_yours(facts, "while `takeback watch` ran, by an unknown author")


def _perhaps_yours(facts: "Facts", when: str) -> str:
    paths = facts["paths"]
    said = f"{count(len(paths), 'path')} changed {when}, and may be your own work"
    return f"{said}: {shown(paths, _MOST_NAMED)}"


def _outside_changes(facts: "Facts") -> str:
    paths = facts["paths"]
    files = count(len(paths), "file")
    return f"this also changes {files} outside the project: {shown(paths, _MOST_NAMED)}"


_FOR_THE_USER = {
    reasons.IN_CONFLICT: "in conflict with what others changed since: {}",
    reasons.OUTSIDE_PROJECT: "outside the project: {}",
    reasons.OF_OTHERS: "you or other sessions changed {}, too",
    reasons.TURNS_OF_OTHERS: "it takes back turns of other sessions: {}",
    reasons.OTHERS_AT_WORK: "at work on these files now: {}",
    reasons.MOVES_PARTICIPANTS: "it also moves {}, which is not in the files",
}


def _naming(text: str) -> "Callable[[Facts], str]":
    """A sentence that names the only fact that there is."""
    return lambda facts: text.format(shown(next(iter(facts.values())), _MOST_NAMED))


def _uncovered_changed(facts: "Facts") -> str:
    return f"not covered, and changed since: {shown(facts['paths'], _MOST_NAMED)}"


def _outside_stays(facts: "Facts") -> str:
    stay = "stays as it is" if facts["count"] == 1 else "stay as they are"
    return f"{count(facts['count'], 'file')} outside the project {stay}"


def _save(facts: "Facts") -> str:
    read = f"`takeback show {facts['restore']} --rescued PATH` prints it"
    return f"a save of {facts['size']:,} bytes made during the restore is in the store; {read}"


def _displaced(folders: "Sequence[str]") -> str:
    if not folders:
        return "and no displaced files are left"
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
    return f"{what}; affected: {shown(facts['paths'])}; {HOW_TO_FREE}"


def _listeners_wrong(facts: "Facts") -> str:
    if "count" in facts:
        return f"{facts['count']} of `listeners` in the settings are invalid: {_FORM}"
    return f"`listeners` in the settings is invalid: {_FORM}"


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
    reasons.NO_TOOL_EVENT: _no_tool_event,
    reasons.UNKNOWN_AUTHOR: _unknown_author,
    reasons.OUTSIDE_CHANGES: _outside_changes,
    reasons.OUTSIDE_STAYS: _outside_stays,
    **{code: _naming(text) for code, text in _FOR_THE_USER.items()},
    reasons.TAKEN_BACK: _taken_back,
    reasons.RESTORE_STUCK: _stuck,
    reasons.LISTENERS_WRONG: _listeners_wrong,
    reasons.LISTENER_FAILED: _listener_failed,
    **git_text.STAYING,
}
SENTENCES = _PLAIN.keys() | _MADE.keys()
"""The codes that have words here."""
