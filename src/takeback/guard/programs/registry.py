"""Which function judges which program; what is not here is looked up in the knowledge file."""

import re

from takeback.guard import knowledge
from takeback.guard.call import Call
from takeback.guard.expansion import source_of
from takeback.guard.findings import (
    DECODED,
    DOWNLOAD,
    FILE,
    HIDDEN_FLOW,
    NO_FLOW,
    TEXT,
    UNKNOWN,
    Finding,
    Flow,
    Word,
)  # fmt: skip
from takeback.guard.programs import (
    builtins,
    code,
    databases,
    files,
    git,
    hidden,
    launchers,
    network,
)
from takeback.model.beyond.effects import PROGRAM
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
    before = len(shell.findings)
    given = _judged(call, folder if mark else None, word)
    if network.sends_secret(call):
        call.publish("secret", rule="secret.sent", code="sends-secret")
        call.findings.insert(0, call.findings.pop())
    _judge_downloaded(call)
    hidden.judge_words(call, words[1:], before)
    shell.findings += call.findings
    return given


def _judge_downloaded(call: Call) -> None:
    """Code for a program's `-e` or `-c` that a download or a decoder wrote."""
    for before, word in zip(call.args, call.args[1:], strict=False):
        if word.source in {DOWNLOAD, DECODED} and before.value in _CODE_OPTIONS:
            if all(each.effect == PROGRAM for each in call.findings):
                call.shell.hide(call.raw, "downloads-and-runs", "shell.download")
            return


_CODE_OPTIONS = frozenset("-e -c -E -r --eval --execute --command --exec -x".split())


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
    if call.name not in JUDGES:
        knowledge.judge_by_words(call)
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
    if word.value == "/dev/null":
        return Flow(TEXT)
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
    judge_named(shell, scope, text, scope.single(text), source_of(node))


def judge_named(shell: "Shell", scope: "Scope", text: str, value: "Word | None", raw: str) -> None:
    given = value.value if value is not None else UNKNOWN
    if text in _RUN_BY_OTHERS or text.endswith(_ENDINGS):
        if UNKNOWN in given:
            shell.hide(raw, "hidden-name", "shell.variable")
        elif given and given not in _PLAIN_VALUES:
            shell.run_text(given, scope.copy())
            _note_variable(shell, text, "runs-program", raw)
    elif text in _LOADED or _loads_by_value(text, given):
        _note_variable(shell, text, "loads-code", raw)
    elif text.startswith("BASH_FUNC_"):
        body = given.partition("{")[2].rpartition("}")[0]
        shell.run_text(body, scope.copy())
        _note_variable(shell, text, "loads-code", raw)
    elif text in _PROMPTS and any(mark in raw for mark in ("$(", "`")):
        shell.run_text(f"echo {given}", scope.copy())


def _loads_by_value(name: str, value: str) -> bool:
    return (name == "ENV" and "/" in value) or (
        name == "NODE_OPTIONS" and _LOADS.search(value) is not None
    )


def _note_variable(shell: "Shell", name: str, code: str, raw: str) -> None:
    shell.findings.append(
        Finding(PROGRAM, "shell.variable", Reason(code, program=name), command=raw)
    )


_PROMPTS = frozenset(("PS0", "PS1", "PS2", "PS4"))
_RUN_BY_OTHERS = frozenset(
    """
    GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_ASKPASS GIT_SSH
    GIT_PROXY_COMMAND PAGER EDITOR VISUAL BROWSER MANPAGER LESSOPEN LESSCLOSE PROMPT_COMMAND
    SUDO_ASKPASS SSH_ASKPASS FCEDIT RSYNC_RSH GREP_COMMAND
    """.split()
)
_ENDINGS = ("_PAGER", "_EDITOR", "_ASKPASS", "_RSH", "_SSH_COMMAND", "_BROWSER", "_OPENER")
_PLAIN_VALUES = frozenset(
    "cat less more true false : head vi vim nvim nano emacs code none echo bat delta ssh".split()
)
"""Programs that show or edit a file, as the values of such variables."""
_LOADS = re.compile(r"(?:^|\s)(?:-r|-e|--require|--import|--loader|--experimental-loader|--eval)\b")
_LOADED = frozenset(
    """
    LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH BASH_ENV
    PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB PERL5DB RUBYOPT RUBYLIB
    JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS NODE_PATH ZDOTDIR LUA_INIT GIT_EXEC_PATH
    GIT_TEMPLATE_DIR GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
    """.split()
)


def with_rules(
    rules: "Rules", words: "Sequence[Word]", found: "list[Finding]", raw: str
) -> "list[Finding]":
    """Findings with the user's rules: these decide; those of the tree only make graver."""
    if not rules.rules and not rules.tree:
        return found
    from takeback.guard.rules import applied

    return applied(rules, [word.value for word in words], found, raw)
