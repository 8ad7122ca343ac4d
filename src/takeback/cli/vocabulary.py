"""The words that one can type after `takeback`: commands, other names of them, and what is meant.

A word that means exactly one command, and harms nothing, works. For any other, Takeback says
which command does it: nobody shall get a rollback for having typed `restore`.
"""

import os

from takeback.cli import app, parser
from takeback.errors import UsageError
from takeback.model.text.safe_text import shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ALIASES = {
    "status": "status",
    "st": "status",
    "history": "log",
    "save": "checkpoint",
    "snapshot": "checkpoint",
    "pin": "keep",
    "settings": "config",
}
_UNDO = ("undo TURN", "takes back one turn, and keeps the rest")
_UNDO_PATH = ("undo -- PATH", "takes back what the newest turn did there")
_ROLLBACK = ("rollback REF", "brings everything back to that state")
_FILE = ("rollback REF -- PATH", "brings a path back to that state")
_TOUCHED = ("log PATH", "lists the turns that touched a file")
_TURNS = ("log", "lists turns")
_CHECKPOINT = ("checkpoint -m NAME", "records the files as they are now")
_OLD_FILE = ("show REF PATH", "prints a file as it was")
_FORGET = ("forget PATH", "deletes a path from the history, for good")
_EXPIRED = ("gc --dry-run", "shows what expired and can be deleted")
_BACK = (_UNDO, _UNDO_PATH, _FILE, _ROLLBACK)
_MEANT = {
    "restore": (*_BACK, ("redo", "puts back what was taken back last")),
    "recover": _BACK,
    "revert": _BACK,
    "back": _BACK,
    "reset": _BACK,
    "rewind": _BACK,
    "checkout": (_FILE, _ROLLBACK),
    "goto": (_ROLLBACK,),
    "list": (
        _TURNS,
        ("log --checkpoints", "lists checkpoints"),
        ("sessions", "lists conversations"),
        ("projects", "lists projects"),
    ),
    "ls": (_TURNS, ("sessions", "lists conversations"), _OLD_FILE),
    "blame": (_TOUCHED,),
    "cat": (_OLD_FILE,),
    "init": (
        ("install", "lets agents call Takeback"),
        ("checkpoint", "makes this folder a project, as the first turn does"),
    ),
    "setup": (("install", "lets agents call Takeback"),),
    "commit": (_CHECKPOINT,),
    "tag": (_CHECKPOINT, ("keep REF -m NAME", "names an earlier state, and keeps it")),
    "name": (_CHECKPOINT, ("keep REF -m NAME", "names an earlier state, and keeps it")),
    "stash": (_CHECKPOINT, _ROLLBACK),
    "search": (("log --grep TEXT", "lists the turns whose prompt has a text"), _TOUCHED),
    "grep": (("log --grep TEXT", "lists the turns whose prompt has a text"),),
    "find": (("log --grep TEXT", "lists the turns whose prompt has a text"), _TOUCHED),
    "compare": (("diff A B", "shows what changed between two states"),),
    "pick": (("undo -i", "lets you choose files and hunks"),),
    "unpin": (("keep --release REF", "lets a state expire again"),),
    "rm": (_FORGET,),
    "remove": (_FORGET, ("projects --remove ID", "deletes the whole history of a project")),
    "delete": (_FORGET, ("projects --remove ID", "deletes the whole history of a project")),
    "clean": (_EXPIRED,),
    "prune": (_EXPIRED,),
    "purge": (_EXPIRED, _FORGET),
    "check": (("verify", "checks every byte in the store"), ("doctor", "shows what is wrong")),
    "fsck": (("verify", "checks every byte in the store"),),
    "size": (("usage", "shows how much disk the history takes"),),
    "du": (("usage", "shows how much disk the history takes"),),
    "disable": (("off", "stops recording agents in this project"),),
    "enable": (("on", "records agents in this project again"),),
    "stop": (("off", "stops recording agents in this project"),),
    "start": (("on", "records agents in this project again"),),
}
_MOST = 3


def command(word: str, rest: "Sequence[str]") -> str:
    """The command that a word means; an error that says what was meant if there is none."""
    if not word:
        return "status"
    if word in app.COMMANDS or word in ALIASES:
        return ALIASES.get(word, word)
    given = [each for each in rest if not each.startswith("-")]
    hints = _lines(_MEANT[word], given) if word in _MEANT else _guesses(word, given)
    raise UsageError(f"there is no command `{word}`", hint=tuple(hints))


def _lines(meant: "tuple[tuple[str, str], ...]", given: "list[str]") -> "list[str]":
    return [f"`takeback {_filled(line, given)}` {does}" for line, does in meant]


def _filled(line: str, given: "list[str]") -> str:
    """A command line with what was given in the places where it belongs."""
    paths = [shell_word(each) for each in given if _is_path(each)]
    others = [shell_word(each) for each in given if not _is_path(each)]
    places = {"PATH": paths, "TURN": others, "REF": others, "TEXT": others}
    return " ".join(" ".join(places.get(word) or [word]) for word in line.split())


def _is_path(word: str) -> bool:
    """Whether somebody means a file: it may be gone, which is why he asks."""
    is_ref = word.startswith("@") or ":" in word
    return os.path.lexists(word) or (not is_ref and ("/" in word or "." in word))


def _guesses(word: str, given: "list[str]") -> "list[str]":
    """What may have been meant: a command spelt wrongly, a file, the id of a turn."""
    if _is_path(word):
        return [f"`takeback log {shell_word(word)}` lists the turns that touched it"]
    known = [each for each in app.COMMANDS if each != "hook"]
    close = parser.alike(word, [*known, *ALIASES, *_MEANT], _MOST)
    if close and close[0] in _MEANT:
        return _lines(_MEANT[close[0]], given)
    found = dict.fromkeys(ALIASES.get(each, each) for each in close if each not in _MEANT)
    if found:
        # Who mistypes a word that only shows something is not led to one that changes files.
        return [
            _guess(name, given) for name in sorted(found, key=lambda name: bool(_warning(name)))
        ]
    from takeback.model import ids

    if ids.is_prefix(word) and len(word) > 3:
        return [f"`takeback show {word}` shows the turn or checkpoint with this id"]
    return ["`takeback help` lists the commands"]


def _guess(name: str, given: "list[str]") -> str:
    command, warning = app.load(name).COMMAND, _warning(name)
    needed = [each for each in command.operands if not each.startswith(("[", "--"))]
    called = " ".join(("takeback", command.name, *(map(shell_word, given) if given else needed)))
    called = " ".join(called.split())
    if not warning:
        return f"did you mean `{called}`?"
    has_trial = any("--dry-run" in option.flags for option in command.options)
    trial = f": `{called} --dry-run` shows how" if has_trial else ""
    return f"did you mean `{called}`? It {warning}{trial}"


def _warning(name: str) -> str:
    return app.load(name).COMMAND.warning
