"""What to do next, as a command to run: the hints of errors, for people.

`import takeback` words the same codes as calls (`errors`). Facts are arguments of commands, so
they stand here as a shell reads them.
"""

from takeback.cli.text.reason_text import HOW_TO_FREE, sentence
from takeback.model.reasons import Action
from takeback.model.text.safe_text import shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.reasons import Fact, Reason

WORDS = {
    "apply-plan": "`takeback apply {plan}` applies it",
    "begin": "`takeback checkpoint` makes this folder a project",
    "checkpoint": "`takeback checkpoint` makes the first one",
    "choose-folder": "change to a project folder, or name one with -C DIR",
    "config": "`takeback config` lists all settings",
    "consent": "`--yes` confirms it",
    "continue-forgetting": "`takeback forget --continue` resumes it",
    "decide": "`--keep-mine`, `--take-back`, `--markers` or `--skip-conflicts` settles it",
    "decide-stays": "`--keep-mine` leaves it as it is",
    "diff": "`takeback diff --stat` lists what differs",
    "diff-since": "`takeback diff {ref} --stat` shows what differs between then and now",
    "doctor": "`takeback doctor` shows what is wrong",
    "effects": "`takeback effects` lists them",
    "guard-refusals": "`takeback guard allow` lists them",
    "guard-allow": "`takeback guard allow {id}`, in a terminal of your own, lets it run",
    "extract": "`takeback extract {ref} DIR` writes all files",
    "forget": "`takeback forget --help` lists what can be forgotten",
    "free-paths": HOW_TO_FREE,
    "gc": "`takeback gc` tries again",
    "gc-to-size": "`takeback gc --to-size SIZE` deletes the oldest states",
    "join": "`takeback relocate --join {id} -C {path}` continues its history here",
    "join-anyway": "`takeback relocate --join {id} --yes -C {path}` joins it",
    "join-back": "`takeback relocate --join {id} -C {path}` brings the old history back",
    "keep": "`takeback keep REF` protects a state from `takeback gc`",
    "kept": "`takeback keep` lists what is kept",
    "lessons": "`takeback lessons` lists them",
    "log": "`takeback log` shows turns and their ids",
    "log-all": "`takeback log --all` also shows undone turns",
    "log-tells": "`takeback log` still shows what was done",
    "new-history": "`takeback relocate --new` begins a new history and keeps the old one",
    "new-history-at": "`takeback relocate --new -C {path}` begins a new history here",
    "new-history-anyway": "`takeback relocate --new --yes -C {path}` begins a new history",
    "next-command": "the next `takeback` command tries again",
    "other-paths": "`-- PATH…` takes back only the paths that you name",
    "plan": "`takeback undo --dry-run` makes a plan",
    "plan-again": "`takeback {words}` plans it again",
    "projects": "`takeback projects` lists them",
    "rebuild": "`takeback doctor --rebuild` rebuilds the tables",
    "redo": "`takeback redo {turn}` puts it back",
    "redo-newest": "`takeback redo` puts back what was taken back last",
    "release-name": "`takeback keep --release {name}` removes its name",
    "remove-for-all": "`takeback participant remove {name} --user` removes it there",
    "remove-in-use": "`takeback projects --remove {id} --yes --even-if-in-use` "
    "removes it nevertheless",
    "remove-project": "`takeback projects --remove {id}` deletes the whole history",
    "remove-unmounted": "`takeback projects --remove {id} --yes --even-if-not-mounted` "
    "removes the store nevertheless",
    "restore-folder": "`takeback projects --restore {id} {path}` restores the folder",
    "resume-all": "`takeback resume` lets all of them go on",
    "participants": "`takeback participant` lists them",
    "remove-participant": "`takeback participant remove {name}` removes it first",
    "retry-participant": "`takeback participant retry {name}` tries again",
    "rollback": "`takeback rollback {ref}` restores that state",
    "rollback-anywhere": "`takeback rollback REF` restores any state",
    "rollback-first": "`takeback rollback {ref}` restores its first state",
    "sessions": "`takeback sessions` lists them",
    "set-aside": "`takeback verify --set-aside` records it and lets undo work again",
    "set-for-all": "`--user` sets it for all projects",
    "show": "`takeback show {turn}` lists what it changed",
    "show-state": "`takeback show {ref}` shows it",
    "store-again": "`takeback checkpoint --rehash` stores it again",
    "undo-at": "`takeback undo -C {path}` restores the folder",
    "undo-newest": "`takeback undo` takes back the newest turn",
    "undo-older": "`takeback undo {turn}` takes back the turn before",
    "undo-rollback": "`takeback undo {rollback}` takes back the rollback",
    "undo-shared": "`takeback undo {turns} --shared` takes it back, whichever session did it",
    "undo-together": "`takeback undo {turns}` takes back what only these turns share",
    "undo-turn-at": "`takeback undo -C {path}` takes back its last turn",
    "verify": "`takeback verify` shows what is damaged",
    "without-participants": "`takeback {words} --only {only}` leaves it out",
    "verify-paths": "`takeback verify` names its paths; check them",
}


def hint(parts: "Iterable[str | Action]", between: str = "; ") -> str:
    """What to do next, for people."""
    return between.join(each if isinstance(each, str) else _sentence(each) for each in parts)


def of_finding(action: "Reason | tuple[str | Action, ...]") -> str:
    """What to do about what `doctor` found: its own advice, or that of an error."""
    return hint(action) if isinstance(action, tuple) else sentence(action)


def _sentence(action: Action) -> str:
    said = WORDS.get(action.code, action.code)
    return said.format(**{name: _argument(fact) for name, fact in action.facts})


def _argument(fact: "Fact") -> str:
    return " ".join(map(shell_word, fact)) if isinstance(fact, tuple) else shell_word(str(fact))
