"""Sentences for what `takeback doctor` finds, and the commands that put it right."""

from takeback.cli import reason_text
from takeback.hooks.install import PROJECT
from takeback.model.masking import CLOSED
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from takeback.model.json_text import Json
    from takeback.model.reasons import Reason

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
    "set-aside": "`takeback verify --set-aside` keeps it, and lets undo work again",
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
    "hint": "{text}",
    "update": "update Takeback; until then `takeback run` works without cover",
    "begin-anew": (
        "copy the store; what git can read is in its folder `git`; `takeback relocate --new`"
        " begins a new history, and the old one stays"
    ),
    "turn-not-covered": "that turn was not covered",
    "install": "`takeback install {agent}{flag}` puts it right",
    "install-missing": "`takeback install {agent}{flag}` adds what is missing",
}
SENTENCES = {**_STATES, **_ACTIONS, **_FOUND}
_COUNTED = {
    "events-told": ("events", "event"),
    "packs-fit": ("packs", "pack"),
    "projects": ("count", "project"),
    "other-stores": ("count", "other store"),
}


def sentence(reason: "Reason") -> str:
    """A finding, an action or a repair in words."""
    if reason.code not in SENTENCES:
        return reason_text.sentence(reason)
    facts: dict[str, Any] = dict(reason.facts)
    if "bytes" in facts:
        facts |= {"gb": facts["bytes"] / 1e9, "mb": facts["bytes"] / 1e6}
    if "calls" in facts:
        none = "no agent calls Takeback; `takeback install AGENT` lets one"
        facts["called"] = "; ".join(facts["calls"]) or none
    for fact in facts.values():
        if isinstance(fact, tuple):
            facts = {**facts, "listed": ", ".join(fact)}
    facts["flag"] = " --project" if facts.get("scope") == PROJECT else ""
    if reason.code in _COUNTED:
        name, one = _COUNTED[reason.code]
        facts["counted"] = count(facts[name], one)
    done = "; it is private now" if facts.get("closed") else ""
    return SENTENCES[reason.code].format(**facts) + done


def state(reason: "Reason | None") -> str:
    """What there is to know of a part in which all is well."""
    if reason is None:
        return ""
    if reason.code == "other-stores" and not dict(reason.facts)["count"]:
        return "there are none"
    return sentence(reason)


def as_json(reason: "Reason | None") -> "Json":
    """As documented in docs/json.md: code, facts, and the sentence."""
    if reason is None:
        return None
    return reason_text.with_text(reason, sentence(reason), CLOSED)
