"""One simple command while it is judged: its words, its input, and the findings about it."""

from takeback.guard.findings import NO_FLOW, Finding, Flow, Word, target_effect
from takeback.guard.scope import bytes_of
from takeback.model.beyond.effects import (
    COMPENSABLE,
    IN_GIT,
    IN_TREE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    OPAQUE,
    PROGRAM,
    READ,
    Outside,
    Target,
    gravity,
)  # fmt: skip
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.guard.scope import Scope
    from takeback.guard.shell import Shell


class Options:
    """The options and operands of a command line."""

    __slots__ = ("given", "operands")

    def __init__(self) -> None:
        self.given: dict[str, list[Word]] = {}
        self.operands: list[Word] = []

    def has(self, *names: str) -> bool:
        return any(name in self.given for name in names)

    def all(self, *names: str) -> "list[Word]":
        return [word for name in names for word in self.given.get(name, ())]

    def last(self, *names: str) -> "Word | None":
        found = self.all(*names)
        return found[-1] if found else None


_EMPTY = Word("")


def parse(args: "Sequence[Word]", valued: str = "", *, stops: bool = False) -> Options:
    """Options as getopt reads them; `valued` lists those that take a value.

    `stops` ends them at the first operand, as a launcher does before the command it starts.
    """
    takes = frozenset(valued.split())
    found = Options()
    waiting = list(args)
    while waiting:
        word = waiting.pop(0)
        text = word.value
        if text == "--":
            found.operands += waiting
            break
        if text.startswith("--"):
            name, mark, value = text.partition("=")
            if mark:
                found.given.setdefault(name, []).append(word.replace(value=value))
            elif name in takes and waiting:
                found.given.setdefault(name, []).append(waiting.pop(0))
            else:
                found.given.setdefault(name, []).append(_EMPTY)
        elif text.startswith("-") and len(text) > 1:
            _short(found, word, takes, waiting)
        else:
            found.operands.append(word)
            if stops:
                found.operands += waiting
                break
    return found


def _short(found: Options, word: Word, takes: "frozenset[str]", waiting: "list[Word]") -> None:
    text = word.value
    if text in takes:  # also `-name`, as find and java have them
        found.given.setdefault(text, []).append(waiting.pop(0) if waiting else _EMPTY)
        return
    for at, char in enumerate(text[1:], 1):
        name = "-" + char
        if name in takes:
            rest = text[at + 1 :]
            value = word.replace(value=rest) if rest else (waiting.pop(0) if waiting else _EMPTY)
            found.given.setdefault(name, []).append(value)
            return
        found.given.setdefault(name, []).append(_EMPTY)


class Call:
    """A simple command, and where its findings go."""

    __slots__ = ("args", "findings", "name", "raw", "scope", "shell", "stdin")

    def __init__(
        self, shell: "Shell", scope: "Scope", name: str, args: "Sequence[Word]", stdin: Flow,
        raw: str,
    ) -> None:  # fmt: skip
        self.shell = shell
        self.scope = scope
        self.name = name
        self.args = list(args)
        self.stdin = stdin
        self.raw = raw
        self.findings: list[Finding] = []

    @property
    def texts(self) -> "list[str]":
        return [word.value for word in self.args]

    def options(self, valued: str = "", *, stops: bool = False) -> Options:
        return parse(self.args, valued, stops=stops)

    def add(
        self,
        effect: str,
        rule: str = "",
        code: str = "",
        *,
        instead: str = "",
        inverse: str = "",
        targets: "Iterable[Target]" = (),
        git: "Iterable[str]" = (),
        outside: "Outside | None" = None,
        **facts: str,
    ) -> Flow:
        """Note what this command does; gives the flow of a command that writes nothing known."""
        git = tuple(git)
        folder = self.scope.cwd
        self.findings.append(
            Finding(
                effect,
                rule or self.name,
                Reason(code or _USUAL_REASON.get(effect, effect), program=self.name, **facts),
                instead,
                inverse,
                tuple(targets),
                git,
                (bytes_of(folder),) if git and folder else (),
                () if outside is None else (outside,),
                self.raw,
            )
        )
        return NO_FLOW

    def add_targets(
        self, targets: "Iterable[Target]", code: str, *, rule: str = "", lightest: str = INSIDE
    ) -> Flow:
        """Note what is deleted or overwritten; its class follows from where it is."""
        targets = tuple(targets)
        kept = [each for each in targets if not self.is_harmless(each)]
        effect = target_effect(kept, lightest)
        if any(each.where != IN_TREE for each in targets) and gravity(effect) < gravity(LOCAL):
            effect = LOCAL
        if self.scope.root and any(each.path == bytes_of(self.scope.root) for each in kept):
            return self.add_root(kept, code, rule)
        if kept and all(each.path.endswith(b".lock") and each.where == IN_GIT for each in kept):
            return self.add(LOCAL, rule, "git-changes", targets=targets)
        git = _git_of(kept)
        self.add(effect, rule, code, targets=targets, git=git)
        if git:
            self._in_git_folders(kept)
        return NO_FLOW

    def add_root(self, targets: "Sequence[Target]", code: str, rule: str = "") -> Flow:
        from takeback.model.beyond.effects import DELETE, DESTRUCTIVE, MOVE, WHOLE_GIT

        is_whole = any(
            each.loss in {DELETE, MOVE} and each.path == bytes_of(self.scope.root)
            for each in targets
        )
        git = (WHOLE_GIT,) if is_whole else ()
        effect = DESTRUCTIVE if is_whole else target_effect(targets)
        return self.add(effect, rule, code, targets=targets, git=git)

    def is_harmless(self, target: Target) -> bool:
        """Whether nothing older than this command line is lost with a target."""
        path = target.path.decode("utf-8", "surrogateescape")
        return self.scope.is_made(path)

    def _in_git_folders(self, targets: "Iterable[Target]") -> None:
        folders = []
        for each in targets:
            before, mark, _ = (each.path + b"/").partition(b"/.git/")
            if mark and before not in folders:
                folders.append(before)
        self.findings[-1] = self.findings[-1].replace(git_dirs=tuple(folders))

    def run(self, words: "Sequence[Word]", stdin: "Flow | None" = None) -> Flow:
        """Judge the command that this one starts."""
        return self.shell.invoke(words, stdin or self.stdin, self.raw, self.scope)

    def run_text(self, text: str) -> Flow:
        """Judge a command line that this one starts in a shell."""
        return self.shell.run_text(text, self.scope, self.stdin)

    def publish(
        self, kind: str, target: str = "", host: str = "", *, rule: str = "", code: str = "",
        instead: str = "", inverse: str = "", effect: str = IRREVERSIBLE,
    ) -> Flow:  # fmt: skip
        """Note an effect that others can see."""
        outside = Outside(kind, target or self.raw, host, effect, inverse)
        return self.add(
            effect, rule, code or "outside", instead=instead, inverse=inverse, outside=outside,
            kind=kind, host=host,
        )  # fmt: skip


_USUAL_REASON = {
    READ: "reads", INSIDE: "changes-files", LOCAL: "changes-machine", PROGRAM: "runs-program",
    OPAQUE: "hidden", IRREVERSIBLE: "outside", COMPENSABLE: "outside", "destructive": "destroys",
    "transactional": "in-database",
}  # fmt: skip


def _git_of(targets: "Iterable[Target]") -> "tuple[str, ...]":
    """What of git is lost with targets in a `.git`."""
    from takeback.model.beyond.effects import INDEX, OBJECTS, REFLOG, REFS, STASH, WHOLE_GIT

    found: dict[str, None] = {}
    for each in targets:
        path = each.path.decode("utf-8", "surrogateescape")
        if each.where != IN_GIT and not (path + "/").endswith("/.git/"):
            continue
        inner = (path + "/").partition("/.git/")[2]
        first = inner.partition("/")[0]
        what = {"index": INDEX, "objects": OBJECTS, "logs": REFLOG, "refs": REFS, "HEAD": REFS,
                "packed-refs": REFS}  # fmt: skip
        if not inner.strip("/") or first == "*":
            found[WHOLE_GIT] = None
        elif first in what:
            found[STASH if inner.startswith(("refs/stash", "logs/refs/stash")) else what[first]] = (
                None
            )
    return tuple(found)
