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
    "begin": "`takeback checkpoint` makes this folder a project",
    "checkpoint": "`takeback checkpoint` makes the first one",
    "choose-folder": "go into a folder with your work and try again, or name one with -C DIR",
    "config": "`takeback config` lists all of them",
    "consent": "`--yes` goes on all the same",
    "continue-forgetting": "`takeback forget --continue` goes on with it",
    "decide": "`--keep-mine`, `--take-back`, `--markers` or `--skip-conflicts` decides",
    "diff": "`takeback diff --stat` lists what differs",
    "diff-since": "`takeback diff {ref} --stat` shows what differs between then and now",
    "doctor": "`takeback doctor` shows what is wrong",
    "extract": "`takeback extract {ref} DIR` writes everything",
    "forget": "`takeback forget --help` lists what can be forgotten",
    "free-paths": HOW_TO_FREE,
    "gc": "`takeback gc` tries again",
    "gc-to-size": "`takeback gc --to-size SIZE` deletes old states",
    "join": "if its history belongs to this folder: takeback relocate --join {id} -C {path}",
    "join-anyway": "to go ahead: takeback relocate --join {id} --yes -C {path}",
    "join-back": "it is kept, and the way back will be: takeback relocate --join {id} -C {path}",
    "keep": "`takeback keep REF` keeps a state in time",
    "kept": "`takeback keep` lists what is kept",
    "log": "`takeback log` shows turns and their ids",
    "log-all": "`takeback log --all` shows the whole history, undone turns, too",
    "log-tells": "`takeback log` still tells what was done",
    "new-history": "`takeback relocate --new` begins a new history; the old one stays unchanged",
    "new-history-at": "to begin a new history here: takeback relocate --new -C {path}",
    "new-history-anyway": "to go ahead: takeback relocate --new --yes -C {path}",
    "next-command": "the next `takeback` command tries again",
    "other-paths": "`-- PATH…` takes back only the paths that you name",
    "plan": "`takeback undo --dry-run` makes one",
    "plan-again": "`takeback {words}` plans it again",
    "projects": "`takeback projects` lists them",
    "rebuild": "`takeback doctor --rebuild` makes the tables again",
    "redo": "`takeback redo {turn}` puts it back",
    "redo-newest": "`takeback redo` puts back what was taken back last",
    "release-name": "`takeback keep --release {name}` removes its name",
    "remove-in-use": "to remove it all the same: "
    "takeback projects --remove {id} --yes --even-if-in-use",
    "remove-project": "`takeback projects --remove {id}` deletes the whole history",
    "remove-unmounted": "to remove the store all the same: "
    "takeback projects --remove {id} --yes --even-if-not-mounted",
    "restore-folder": "`takeback projects --restore {id} {path}` makes the folder anew",
    "rollback": "`takeback rollback {ref}` goes back to that state",
    "rollback-anywhere": "`takeback rollback REF` goes back to any state",
    "rollback-first": "`takeback rollback {ref}` goes to its first state",
    "sessions": "`takeback sessions` lists them",
    "set-aside": "`takeback verify --set-aside` keeps it as it is, and work goes on",
    "set-for-all": "`--user` sets it for all projects",
    "show": "`takeback show {turn}` lists what it changed",
    "show-state": "`takeback show {ref}` shows it",
    "store-again": "`takeback checkpoint --rehash` stores it again",
    "undo-at": "`takeback undo -C {path}` brings the folder back",
    "undo-newest": "`takeback undo` takes back the newest turn",
    "undo-older": "`takeback undo {turn}` takes back what came before",
    "undo-rollback": "`takeback undo {rollback}` takes the rollback back",
    "undo-shared": "`takeback undo {turns} --shared` takes it back, whoever did it",
    "undo-together": "`takeback undo {turns}` takes back what only these turns share",
    "undo-turn-at": "`takeback undo -C {path}` takes back the last turn in it",
    "verify": "`takeback verify` shows what is damaged",
    "verify-paths": "`takeback verify` names its paths; see to them",
}


def hint(parts: "Iterable[str | Action]") -> str:
    """What to do next, for people."""
    return "; ".join(each if isinstance(each, str) else _sentence(each) for each in parts)


def of_finding(action: "Reason | tuple[str | Action, ...]") -> str:
    """What to do about what `doctor` found: its own advice, or that of an error."""
    return hint(action) if isinstance(action, tuple) else sentence(action)


def _sentence(action: Action) -> str:
    said = WORDS.get(action.code, action.code)
    return said.format(**{name: _argument(fact) for name, fact in action.facts})


def _argument(fact: "Fact") -> str:
    return " ".join(map(shell_word, fact)) if isinstance(fact, tuple) else shell_word(str(fact))
