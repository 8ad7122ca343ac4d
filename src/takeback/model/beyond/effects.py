"""What a tool call would do: nine classes in the order of their gravity, and a judgement.

A judgement is made before a call runs, from the call alone. Everything in it is a code, a fact or
text from the knowledge file; doors make the sentences.
"""

from takeback.model.reasons import Reason
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.text.json_text import Json

READ, INSIDE, TRANSACTIONAL, LOCAL = "read", "inside", "transactional", "local"
PROGRAM, COMPENSABLE, DESTRUCTIVE = "program", "compensable", "destructive"
OPAQUE, IRREVERSIBLE = "opaque", "irreversible"
CLASSES = (
    READ, INSIDE, TRANSACTIONAL, LOCAL, PROGRAM, COMPENSABLE, DESTRUCTIVE, OPAQUE, IRREVERSIBLE,
)  # fmt: skip
"""From the lightest to the gravest; why in this order: decision record 0120."""

DELETE, OVERWRITE, TRUNCATE, MOVE, MODE = "delete", "overwrite", "truncate", "move", "mode"
"""How a path loses what it holds; a moved path is still there under another name."""

IN_TREE, IN_GIT, OUTSIDE, NOWHERE = "tree", "git", "outside", "unknown"
"""Where a path is: in the project, in its `.git`, elsewhere, or not known before the call runs."""

WORKTREE, INDEX, REFS, STASH, REFLOG, OBJECTS, WHOLE_GIT = (
    "worktree", "index", "refs", "stash", "reflog", "objects", "whole",
)  # fmt: skip
"""What of a git repository a call may destroy."""


def gravity(effect: str) -> int:
    """How grave a class is; an unknown one is as grave as opaque."""
    return CLASSES.index(effect if effect in CLASSES else OPAQUE)


def gravest(effects: "Iterable[str]") -> str:
    return max(effects, key=gravity, default=READ)


class Target(Value):
    """A path that a call deletes, overwrites, truncates or moves.

    `path` is absolute; empty if it is not known before the call runs, and `text` is then what the
    command says. A glob is not expanded: `is_glob` says that `path` is a pattern of the shell, in
    which `**` stands for any number of folders, as `glob(recursive=True)` has it.
    `is_recursive` says that everything below a folder is meant, too.
    """

    path: bytes
    loss: str
    where: str = IN_TREE
    is_recursive: bool = False
    is_glob: bool = False
    text: str = ""

    @property
    def is_known(self) -> bool:
        return bool(self.path)


class Outside(Value):
    """An effect that others can see: `kind` such as push, publish, request, mail or database.

    `target` is what it is about, in the words of the command: `git push origin main`.
    """

    kind: str
    target: str
    host: str = ""
    effect: str = IRREVERSIBLE
    inverse: str = ""


class Part(Value):
    """One simple command that would run, with a class of its own."""

    command: str
    effect: str
    rule: str
    reason: "Reason | None" = None


class Judgement(Value):
    """The class of a call, the rule that decided, and what the call would destroy or publish.

    The class is that of the gravest part. `targets`, `git` and `outside` are those of all parts:
    an irreversible call may delete files, too. `root` of git is in `git_dirs`: the folders in
    which destructive git would run, absolute.
    """

    effect: str
    rule: str
    reason: Reason
    instead: str = ""
    inverse: str = ""
    parts: "tuple[Part, ...]" = ()
    targets: "tuple[Target, ...]" = ()
    git: "tuple[str, ...]" = ()
    git_dirs: "tuple[bytes, ...]" = ()
    outside: "tuple[Outside, ...]" = ()

    def as_json(self) -> "dict[str, Json]":
        from takeback.model.text.json_text import path_fields

        return {
            "class": self.effect,
            "rule": self.rule,
            "reason": self.reason.as_json(),
            "instead": self.instead or None,
            "inverse": self.inverse or None,
            "parts": [
                {"command": each.command, "class": each.effect, "rule": each.rule}
                for each in self.parts
            ],
            "targets": [
                {
                    **(path_fields(each.path) if each.path else {"path": None}),
                    "loss": each.loss,
                    "where": each.where,
                    "recursive": each.is_recursive,
                    "glob": each.is_glob,
                    "text": each.text or None,
                }
                for each in self.targets
            ],
            "git": list(self.git),
            "outside": [
                {
                    "kind": each.kind,
                    "target": each.target,
                    "host": each.host or None,
                    "class": each.effect,
                    "inverse": each.inverse or None,
                }
                for each in self.outside
            ],
        }


FILES, GIT, ON_MACHINE, UNKNOWN, COMMAND, TAMPER = (
    "files", "git", "local", "unknown", "command", "tamper",
)  # fmt: skip
"""Kinds of effects of which the judge names no target outside."""


class Effect(Value):
    """What a call did outside the files, as it was recorded.

    `status` is how its step ended, or `refused`; `undone` how its inverse ended, if it was run.
    """

    id: str
    turn: str
    session: str
    agent: str
    step: str
    at: float
    effect: str
    kind: str
    target: str
    host: str
    inverse: str
    rule: str
    status: str
    undone: str
