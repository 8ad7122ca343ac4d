"""Which function judges which program; what is not here is looked up in the knowledge file."""

from takeback.guard import knowledge
from takeback.guard.call import Call
from takeback.guard.expansion import source_of
from takeback.guard.findings import (
    DOWNLOAD,
    FILE,
    HIDDEN_FLOW,
    NO_FLOW,
    UNKNOWN,
    Finding,
    Flow,
    Word,
)  # fmt: skip
from takeback.guard.programs import builtins, code, databases, files, git, launchers, network
from takeback.model.effects import OPAQUE, PROGRAM
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tree_sitter import Node

    from takeback.guard.rules import Rules
    from takeback.guard.scope import Scope
    from takeback.guard.shell import Shell

_SYSTEM = frozenset(
    """
    /bin /usr/bin /sbin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin /snap/bin
    """.split()
)
JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    **builtins.JUDGES,
    **files.JUDGES,
    **git.JUDGES,
    **launchers.JUDGES,
    **code.JUDGES,
    **databases.JUDGES,
    **network.JUDGES,
}


def judge_command(
    shell: "Shell", words: "Sequence[Word]", stdin: Flow, raw: str, scope: "Scope"
) -> Flow:
    """Judge one command by its program; gives what it writes."""
    word = words[0]
    folder, mark, base = word.value.rpartition("/")
    if not base and not mark and not word.raw.startswith(("$", '"$')):
        return NO_FLOW
    if UNKNOWN in base or not base or _hides(word):
        return shell.hide(raw, "hidden-name", "shell.hidden")
    call = Call(shell, scope, _plain(base), words[1:], stdin, raw)
    given = _judged(call, folder if mark else None, word)
    if network.sends_secret(call):
        call.publish("secret", rule="secret.sent", code="sends-secret")
        call.findings.insert(0, call.findings.pop())
    shell.findings += call.findings
    return given


def _hides(word: Word) -> bool:
    """Whether a program's name is a pattern: the shell would choose what runs."""
    return word.is_glob and word.value not in {"[", "[["}


def _plain(base: str) -> str:
    """The name under which a program is known: `python3.12` is `python`."""
    if base.startswith(("python", "pip")):
        return base.rstrip("0123456789.") or base
    return base


def _judged(call: Call, folder: "str | None", word: Word) -> Flow:
    if folder is not None:
        path = call.scope.absolute(word.value)
        if path in call.scope.written:
            return code.run_file(call, path)
        if folder not in _SYSTEM:
            return _by_path(call)
    given = by_name(call)
    if folder is None and "PATH" in call.scope.variables and call.name not in builtins.JUDGES:
        _raise_to_program(call)  # nobody knows which program the name means there
    return given


def _by_path(call: Call) -> Flow:
    """A program named by a path that is not the system's: nobody knows what is in it."""
    given = by_name(call)
    _raise_to_program(call)
    return given


def _raise_to_program(call: Call) -> None:
    reason = Reason("runs-program", program=call.name)
    call.findings = [each.at_least(PROGRAM, each.rule, reason) for each in call.findings]


def by_name(call: Call) -> Flow:
    judge = JUDGES.get(call.name)
    if judge is not None:
        return judge(call)
    program = knowledge.programs().get(call.name)
    if program is not None:
        knowledge.judge(call, program)
        return builtins.flow_of(call)
    call.add(PROGRAM, "program")
    return HIDDEN_FLOW


def content_of(word: Word, scope: "Scope") -> Flow:
    """What is in a file, if the same command line wrote it."""
    if word.flow is not None:
        return word.flow
    path = scope.absolute(word.value)
    known = scope.written.get(path)
    secret = network.is_secret(word.value)
    if known is not None:
        return known.replace(has_secret=known.has_secret or secret)
    return Flow(FILE, has_secret=secret)


def judge_variable(shell: "Shell", scope: "Scope", node: "Node") -> None:
    """Variables of which the value is a command that another program runs."""
    name = node.child_by_field_name("name")
    text = source_of(name) if name is not None else ""
    if text in _RUN_BY_OTHERS:
        value = scope.single(text)
        if value is None or not value.is_known:
            shell.hide(source_of(node), "hidden-name", "shell.variable")
        elif value.value:
            shell.run_text(value.value, scope.copy())
            shell.findings.append(
                Finding(PROGRAM, "shell.variable", Reason("runs-program", program=text),
                        command=source_of(node))
            )  # fmt: skip
    elif text in _LOADED or (text == "ENV" and "/" in source_of(node)):
        shell.findings.append(
            Finding(PROGRAM, "shell.variable", Reason("loads-code", program=text),
                    command=source_of(node))
        )  # fmt: skip
    elif text in _PROMPTS and any(mark in source_of(node) for mark in ("$(", "`")):
        value = scope.single(text)
        shell.run_text(f"echo {value.value if value is not None else ''}", scope.copy())


_PROMPTS = frozenset(("PS0", "PS1", "PS2", "PS4"))
_RUN_BY_OTHERS = frozenset(
    """
    GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_ASKPASS GIT_SSH
    GIT_PROXY_COMMAND PAGER EDITOR VISUAL BROWSER MANPAGER LESSOPEN PROMPT_COMMAND SUDO_ASKPASS
    SSH_ASKPASS FCEDIT RSYNC_RSH
    """.split()
)
_LOADED = frozenset("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV".split())


def with_rules(
    rules: "Rules", words: "Sequence[Word]", found: "list[Finding]", raw: str
) -> "list[Finding]":
    """Findings with the user's rules: these decide; those of the tree only make graver."""
    if not rules.rules and not rules.tree:
        return found
    from takeback.guard.rules import applied

    return applied(rules, [word.value for word in words], found, raw)


def is_opaque(found: "Sequence[Finding]") -> bool:
    return any(each.effect == OPAQUE for each in found)


_ = DOWNLOAD
