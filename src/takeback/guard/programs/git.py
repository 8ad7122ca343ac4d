"""What git would do: which of its commands publish, and which destroy what no commit holds."""

from takeback.guard import knowledge
from takeback.guard.findings import HIDDEN_FLOW, NO_FLOW, Finding, Flow, Word
from takeback.model.beyond.effects import (
    COMPENSABLE,
    DELETE,
    DESTRUCTIVE,
    INDEX,
    LOCAL,
    OBJECTS,
    OVERWRITE,
    PROGRAM,
    READ,
    REFLOG,
    REFS,
    STASH,
    WORKTREE,
    Target,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.guard.call import Call, Options

_GLOBAL = "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix"
_RUNS_CODE = ("core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.hookspath",
              "diff.external", "sequence.editor", "credential.helper", "core.gitproxy",
              "gpg.program", "core.askpass")  # fmt: skip


def git(call: "Call") -> Flow:
    from takeback.guard.call import parse

    options = parse(call.args, _GLOBAL, stops=True)
    if not options.operands:
        return call.add(READ, "git", "reads")
    for folder in options.all("-C", "--work-tree"):
        path = call.scope.absolute(folder.value)
        call.scope = call.scope.copy()
        call.scope.cwd = path or None
    if options.has("--exec-path") and options.last("--exec-path") != Word(""):
        call.add(PROGRAM, "git.exec-path", "runs-program")
    sub, rest = options.operands[0], options.operands[1:]
    if not sub.is_known:
        return call.shell.hide(call.raw, "hidden-name", "git.hidden")
    if _configured(call, options.all("-c"), sub.value):
        return NO_FLOW
    call.args = rest
    _run_by_options(call, sub.value)
    return _command(call, sub.value)


_RUNNERS = ("--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--extcmd",
            "-O")  # fmt: skip
_VALUED_RUNNERS = {"difftool": "-x --extcmd", "grep": "-O"}
_WRITERS = {"diff": "--output", "log": "--output", "show": "--output", "archive": "-o --output",
            "format-patch": "-o --output-directory --output"}  # fmt: skip


def _run_by_options(call: "Call", sub: str) -> None:
    """Options that make git run a command, or write a file that they name."""
    from takeback.guard.programs.files import overwrite

    valued = f"{_WRITERS.get(sub, '')} {_VALUED_RUNNERS.get(sub, '')}"
    options = call.options(valued)
    for word in options.all(*_RUNNERS, *(("-x",) if sub == "difftool" else ())):
        if word.value and sub != "rebase":
            call.run_text(word.value)
            call.add(PROGRAM, "git.option", "runs-program")
    if options.has("--ext-diff", "--textconv"):
        call.add(PROGRAM, "git.option", "runs-program")
    ends = options.all(*_WRITERS.get(sub, "").split())
    if sub == "bundle" and call.texts[:1] == ["create"] and len(call.args) > 1:
        ends = [call.args[1]]
    if ends:
        overwrite(call, ends, rule="git.output")


def _configured(call: "Call", given: "list[Word]", sub: str) -> bool:
    """What `-c name=value` makes git run; whether it says all that this call does."""
    for word in given:
        name, _, value = word.value.partition("=")
        name = name.lower()
        if name == f"alias.{sub.lower()}":
            if value.startswith("!"):
                call.run_text(value[1:])
            else:
                call.run_text(f"git {value}")
            return True
        if name in _RUNS_CODE or name.endswith((".textconv", ".command", ".cmd", ".driver")):
            call.run_text(value.removeprefix("!"))
            call.add(PROGRAM, "git.config", "runs-program")
    return False


def _command(call: "Call", sub: str) -> Flow:
    judge = _COMMANDS.get(sub)
    if judge is not None:
        given = judge(call)
        return given if given is not NO_FLOW else _flow(call, sub)
    return _known(call, sub)


def _known(call: "Call", sub: str) -> Flow:
    """What the knowledge file says of a command of git."""
    program = knowledge.programs()["git"]
    call.args = [Word(sub), *call.args]
    knowledge.judge(call, program)
    call.args = call.args[1:]
    return _flow(call, sub)


def _flow(call: "Call", sub: str) -> Flow:
    """What git writes: `ls-files` and `--name-only` name files of the tree."""
    from takeback.guard.findings import LISTING, TEXT

    texts = call.texts
    names = {"--name-only", "--modified", "--others", "-m", "-o"}
    if sub in {"ls-files", "ls-tree"} or names & set(texts):
        top = call.scope.root or call.scope.cwd or ""
        return Flow(LISTING, paths=(Word(f"{top}/*", is_glob=True),)) if top else HIDDEN_FLOW
    if sub == "rev-parse" and "--show-toplevel" in texts and call.scope.root:
        return Flow(TEXT, call.scope.root)
    return HIDDEN_FLOW


def _lose(
    call: "Call", rule: str, code: str, git: "tuple[str, ...]", *, instead: str = "",
    targets: "tuple[Target, ...]" = (),
) -> Flow:  # fmt: skip
    """Note that git destroys what no commit holds."""
    call.add(DESTRUCTIVE, rule, code, instead=instead, git=git, targets=targets)
    if call.scope.cwd is None:
        return NO_FLOW
    return NO_FLOW


def _tree(call: "Call", loss: str = OVERWRITE) -> "tuple[Target, ...]":
    """The whole working tree as a target."""
    return (call.scope.target(Word(".", "."), loss, is_recursive=True),)


def _paths(call: "Call", words: "list[Word]", loss: str = OVERWRITE) -> "tuple[Target, ...]":
    return tuple(call.scope.target(word, loss, is_recursive=True) for word in words)


def reset(call: "Call") -> Flow:
    options = call.options("--pathspec-from-file")
    if options.has("--hard", "--merge", "--keep"):
        return _lose(call, "git.reset", "git-discards", (WORKTREE, INDEX, REFS),
                     targets=_tree(call), instead="git stash")  # fmt: skip
    return call.add(LOCAL, "git.reset", "git-changes")


_PATH = r"\.[A-Za-z][A-Za-z0-9]{0,9}$|/$|\*"


def _looks_like_path(text: str) -> bool:
    import re

    return (
        text in {".", "..", ":/", "*"}
        or text.startswith(("./", ":", "/"))
        or bool(re.search(r"\.[A-Za-z][A-Za-z0-9]{0,9}$|/$|\*", text))
    )


def checkout(call: "Call") -> Flow:
    texts = call.texts
    after = call.args[texts.index("--") + 1 :] if "--" in texts else []
    options = call.options("-b -B --orphan --conflict --pathspec-from-file")
    makes = options.has("-b", "--orphan", "--track", "-t", "--detach")
    if not after and not makes and len(options.operands) > 1:
        after = options.operands[1:]  # the first one is where the paths come from
    paths = after or [
        word for word in options.operands if _looks_like_path(word.value) and not makes
    ]
    if paths or options.has("-p", "--patch", "--ours", "--theirs", "--pathspec-from-file"):
        return _lose(call, "git.checkout", "git-discards", (WORKTREE, INDEX),
                     targets=_paths(call, paths) or _tree(call), instead="git stash")  # fmt: skip
    if options.has("-f", "--force", "-B"):
        return _lose(call, "git.checkout", "git-discards", (WORKTREE, INDEX, REFS),
                     targets=_tree(call), instead="git stash")  # fmt: skip
    return call.add(LOCAL, "git.checkout", "git-changes")


def switch(call: "Call") -> Flow:
    options = call.options("-c -C --create --force-create --orphan")
    if options.has("-f", "--force", "--discard-changes", "-C", "--force-create"):
        return _lose(call, "git.switch", "git-discards", (WORKTREE, INDEX, REFS),
                     targets=_tree(call), instead="git stash")  # fmt: skip
    return call.add(LOCAL, "git.switch", "git-changes")


def restore(call: "Call") -> Flow:
    options = call.options("-s --source --pathspec-from-file")
    if options.has("-S", "--staged") and not options.has("-W", "--worktree"):
        return call.add(LOCAL, "git.restore", "git-changes")
    return _lose(call, "git.restore", "git-discards", (WORKTREE, INDEX),
                 targets=_paths(call, options.operands) or _tree(call),
                 instead="git stash")  # fmt: skip


def clean(call: "Call") -> Flow:
    options = call.options("-e --exclude")
    if options.has("-n", "--dry-run"):
        return call.add(READ, "git.clean", "reads")
    if not options.has("-f", "--force", "-i"):
        return call.add(READ, "git.clean", "reads")
    targets = _paths(call, options.operands, DELETE) or _tree(call, DELETE)
    return _lose(call, "git.clean", "git-cleans", (WORKTREE,), targets=targets,
                 instead="git clean -n")  # fmt: skip


def stash(call: "Call") -> Flow:
    texts = [text for text in call.texts if not text.startswith("-")]
    first = texts[0] if texts else "push"
    if first in {"drop", "clear"}:
        return _lose(call, f"git.stash.{first}", "git-drops-stash", (STASH,),
                     instead="git stash list")  # fmt: skip
    if first in {"list", "show"}:
        return call.add(READ, "git.stash", "reads")
    return call.add(LOCAL, "git.stash", "git-changes")


def branch(call: "Call") -> Flow:
    options = call.options("-u --set-upstream-to --sort --format --contains --merged --no-merged")
    forced = options.has("-f", "--force")
    if options.has("-D", "-M", "-C") or (options.has("-d", "--delete", "-m") and forced):
        return _lose(call, "git.branch.delete", "git-drops-refs", (REFS, REFLOG),
                     instead="git branch -d")  # fmt: skip
    if forced:
        return _lose(call, "git.branch.force", "git-drops-refs", (REFS,))
    changes = options.has("-d", "--delete", "-m", "--move", "-c", "--copy", "-u", "-t",
                          "--set-upstream-to", "--unset-upstream", "--edit-description",
                          "--track")  # fmt: skip
    lists = options.has("--list", "-l", "-a", "-r", "-v", "-vv", "--show-current", "--all",
                        "--contains", "--merged", "--no-merged", "--format", "--sort")  # fmt: skip
    if changes or (options.operands and not lists):
        return call.add(LOCAL, "git.branch", "git-changes")
    return call.add(READ, "git.branch", "reads")


def tag(call: "Call") -> Flow:
    options = call.options("-m -F -u --sort --format --contains --points-at -n --message")
    if options.has("-d", "--delete", "-f", "--force"):
        return _lose(call, "git.tag.delete", "git-drops-refs", (REFS,))
    if (
        options.has("-l", "--list", "--contains", "--points-at", "-n", "--sort", "-v")
        or not options.operands
    ):
        return call.add(READ, "git.tag", "reads")
    return call.add(LOCAL, "git.tag", "git-changes")


def push(call: "Call") -> Flow:
    options = call.options("-o --push-option --repo --receive-pack --exec")
    if options.has("-n", "--dry-run"):
        return call.add(READ, "git.push", "reads")
    forced = options.has("-f", "--force", "--force-with-lease", "--mirror", "-d", "--delete",
                         "--prune") or any(
        word.value.startswith(("+", ":")) for word in options.operands
    )  # fmt: skip
    rule = "git.push.force" if forced else "git.push"
    instead = "git push --dry-run"
    branch = _new_branch(options)
    if branch and not forced:
        remote = options.operands[0].value
        return call.publish("push", " ".join(["git push", *call.texts]), rule="git.push.new",
                            code="pushes", effect=COMPENSABLE,
                            inverse=f"git push {remote} --delete {branch}")  # fmt: skip
    target = " ".join(["git push", *call.texts])
    return call.publish("push", target, rule=rule, code="pushes", instead=instead)


_SHARED = frozenset(
    "main master trunk develop dev development staging production prod release stable HEAD".split()
)


def _new_branch(options: "Options") -> str:
    """The branch that `git push -u REMOTE BRANCH` publishes; empty if it is one that is shared."""
    words = [word.value for word in options.operands]
    if not options.has("-u", "--set-upstream") or len(words) != 2 or options.has("--tags"):
        return ""
    branch = words[1].rpartition(":")[2]
    is_shared = branch in _SHARED or branch.startswith(("release/", "refs/tags", "v"))
    known = all(word.is_known for word in options.operands) and ":" not in words[1]
    return "" if is_shared or not known else branch


def collect(call: "Call") -> Flow:
    if any(text.startswith("--prune") and text != "--prune=never" for text in call.texts):
        return _lose(call, "git.gc", "git-drops-objects", (OBJECTS,))
    return call.add(LOCAL, "git.gc", "git-changes")


def reflog(call: "Call") -> Flow:
    if {"expire", "delete", "drop"} & set(call.texts):
        return _lose(call, "git.reflog", "git-drops-reflog", (REFLOG, OBJECTS))
    return call.add(READ, "git.reflog", "reads")


def update_ref(call: "Call") -> Flow:
    return _lose(call, "git.update-ref", "git-drops-refs", (REFS,))


def worktree(call: "Call") -> Flow:
    texts = call.texts
    if "list" in texts:
        return call.add(READ, "git.worktree", "reads")
    if "remove" in texts and {"-f", "--force", "-ff"} & set(texts):
        words = [word for word in call.args if not word.value.startswith("-")][1:]
        return _lose(call, "git.worktree.remove", "deletes", (WORKTREE,),
                     targets=_paths(call, words, DELETE))  # fmt: skip
    return call.add(LOCAL, "git.worktree", "git-changes")


def rewrite(call: "Call") -> Flow:
    call.add(PROGRAM, "git.rewrite", "runs-program")
    return _lose(call, "git.rewrite", "git-rewrites", (WORKTREE, INDEX, REFS, REFLOG))


def rebase(call: "Call") -> Flow:
    options = call.options("-x --exec --onto -s -X --strategy")
    for word in options.all("-x", "--exec"):
        call.run_text(word.value)
    return call.add(LOCAL, "git.rebase", "git-changes")


def each_module(call: "Call") -> Flow:
    texts = call.texts
    if "foreach" in texts:
        words = [word for word in call.args[texts.index("foreach") + 1 :]
                 if word.value not in {"--recursive", "--quiet"}]  # fmt: skip
        if len(words) == 1:
            return call.run_text(words[0].value)
        return call.run(words)
    if "deinit" in texts and {"-f", "--force"} & set(texts):
        return _lose(call, "git.submodule", "git-discards", (WORKTREE,), targets=_tree(call))
    if {"status", "summary"} & set(texts) or not texts:
        return call.add(READ, "git.submodule", "reads")
    return call.add(LOCAL, "git.submodule", "git-changes")


def bisect(call: "Call") -> Flow:
    if call.texts[:1] == ["run"]:
        return call.run(call.args[1:])
    if call.texts[:1] in (["log"], ["view"]):
        return call.add(READ, "git.bisect", "reads")
    return call.add(LOCAL, "git.bisect", "git-changes")


def config(call: "Call") -> Flow:
    options: Options = call.options("--file -f --type --default")
    reads = options.has("--get", "--list", "-l", "--get-all", "--get-regexp", "--show-origin")
    words = [word.value for word in options.operands]
    if reads or words[:1] in (["get"], ["list"]) or (len(words) < 2 and not options.has("--unset")):
        return call.add(READ, "git.config", "reads")
    name = words[0].lower() if words else ""
    if len(words) > 1 and (name in _RUNS_CODE or words[1].startswith("!")):
        call.run_text(words[1].removeprefix("!"))
        call.add(PROGRAM, "git.config", "runs-program")
    return call.add(LOCAL, "git.config", "git-changes")


def remove(call: "Call") -> Flow:
    options = call.options("--pathspec-from-file")
    words = options.operands
    if options.has("-n", "--dry-run"):
        return call.add(READ, "git.rm", "reads")
    if options.has("--cached"):
        return call.add(LOCAL, "git.rm", "git-changes")
    return call.add(LOCAL, "git.rm", "git-changes", targets=_paths(call, words, DELETE))


def clone(call: "Call") -> Flow:
    for text in call.texts:
        if text.startswith("ext::"):
            call.shell.hide(call.raw, "hidden", "git.clone")
    return call.add(LOCAL, "git.clone", "changes-machine")


def rescued(found: Finding) -> Finding:
    return found


_COMMANDS: "dict[str, Callable[[Call], Flow]]" = {
    "reset": reset,
    "checkout": checkout,
    "switch": switch,
    "restore": restore,
    "clean": clean,
    "stash": stash,
    "branch": branch,
    "tag": tag,
    "push": push,
    "gc": collect,
    "reflog": reflog,
    "update-ref": update_ref,
    "worktree": worktree,
    "filter-branch": rewrite,
    "filter-repo": rewrite,
    "rebase": rebase,
    "submodule": each_module,
    "bisect": bisect,
    "config": config,
    "rm": remove,
    "clone": clone,
}

JUDGES: "dict[str, Callable[[Call], Flow]]" = {"git": git}
