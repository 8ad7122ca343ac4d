"""A net below the parser: commands in texts that a program or the shell itself may run.

It looks only where everything else said less than `program`. A substitution within quotes runs in
an array's index, in `let`, in `${x@P}`; a word that is a command line runs as a filter or a pager.
"""

import re

from takeback.guard.expansion import source_of
from takeback.guard.findings import UNKNOWN, Finding, Word, gravest_of
from takeback.model.beyond.effects import DESTRUCTIVE, PROGRAM, gravity
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from takeback.guard.call import Call
    from takeback.guard.scope import Scope
    from takeback.guard.shell import Shell

_TEXTUAL = frozenset(
    """
    echo printf grep egrep fgrep zgrep rg ag ack sed gsed awk gawk jq yq tee cat bat ls head tail
    test [ [[ expr say notify-send logger man info apropos which type whereis figlet banner
    basename dirname touch mkdir read export declare local readonly typeset alias trap set true
    false : cut tr yes seq tldr cheat pgrep history diff wc find fd unset gh glab hg svn jj
    """.split()
)
"""Programs of which the arguments are texts, names of files, or are judged elsewhere."""
_EXPANDING = frozenset("test [ declare typeset unset read export local readonly".split())
"""Those that expand the index of an array in what they are given."""
_GIT_RUNS = frozenset(("-c", "--config", "-u", "--upload-pack", "--exec", "--receive-pack"))
_QUOTED = frozenset(("raw_string", "ansi_c_string", "string"))
_INDEXED = frozenset(("subscript", "expansion"))
_SKIPPED = frozenset(("comment", "heredoc_body", "command_substitution", "process_substitution"))
_START = re.compile(r"^(?:\(\)\s*\{|[!|({]+)?\s*(?:[\w.]+=)?")


def is_light(found: "list[Finding]") -> bool:
    gravest = gravest_of(found)
    return gravest is None or gravity(gravest.effect) < gravity(PROGRAM)


# -- substitutions in quotes --------------------------------------------------------------------


def judge_quoted(shell: "Shell", root: "Node", text: str, scope: "Scope") -> None:
    """Judge `$(…)` and backticks that stand in quotes, where something could still expand them."""
    if "$(" not in text and "`" not in text:
        return
    for source in _texts_below(root):
        for inner in substitutions(source):
            before = len(shell.findings)
            shell.run_text(inner, scope.copy())
            _keep_grave(shell, before)


def _keep_grave(shell: "Shell", before: int) -> None:
    """Drop what was found in a text that may not run at all, unless it would be grave."""
    found = gravest_of(shell.findings[before:])
    if found is None or gravity(found.effect) < gravity(DESTRUCTIVE):
        del shell.findings[before:]


def _texts_below(node: "Node") -> "Iterator[str]":
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.type in _SKIPPED:
            waiting += node.named_children if node.type.endswith("substitution") else []
            continue
        if node.type in _QUOTED or node.type in _INDEXED:
            source = source_of(node)
            if node.type == "string":
                source = re.sub(r"\\([$`\"\\])", r"\1", source) if "\\" in source else ""
            if "$(" in source or "`" in source:
                yield source
        if node.type == "command" and _is_textual(node):
            waiting += [each for each in node.named_children if each.type not in _QUOTED]
        else:
            waiting += node.named_children


def _is_textual(node: "Node") -> bool:
    name = node.child_by_field_name("name")
    text = source_of(name) if name is not None else ""
    if text == "printf" and " -v" in source_of(node):
        return False
    return text in _TEXTUAL - _EXPANDING or text == "git"


def substitutions(text: str) -> "list[str]":
    """The commands of the outermost `$(…)` and backticks of a text."""
    found, at = [], 0
    while at < len(text):
        if text.startswith("$(", at) and not text.startswith("$((", at):
            end = _closing(text, at + 2)
            found.append(text[at + 2 : end])
            at = end
        elif text[at] == "`":
            end = text.find("`", at + 1)
            end = len(text) if end < 0 else end
            found.append(text[at + 1 : end])
            at = end
        at += 1
    return found


def _closing(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
        at += 1
    return at


# -- words that are command lines ---------------------------------------------------------------


def judge_words(call: "Call", args: "Sequence[Word]", before: int) -> None:
    """Judge words of a light command that read as a command line of a known program."""
    if call.name in _TEXTUAL and not (call.name == "printf" and "-v" in call.texts):
        return
    if not is_light(call.findings) or not is_light(call.shell.findings[before:]):
        return
    for word in _candidates(call, args):
        if len(call.shell.findings) > before + 40:
            return
        judge_value(call.shell, word.value, call.scope, call.raw)


def _candidates(call: "Call", args: "Sequence[Word]") -> "list[Word]":
    if call.name != "git":
        return [word for word in args if " " in word.value]
    found = []
    for at, word in enumerate(args):
        is_value = at > 0 and args[at - 1].value in _GIT_RUNS
        if " " in word.value and (is_value or word.value.startswith(("--upload-pack=", "--exec="))):
            found.append(word)
    return found


def judge_value(shell: "Shell", value: str, scope: "Scope", raw: str) -> bool:
    """Judge a text if it reads as a command line; whether it was a grave one."""
    grave = False
    for text in _readings(value):
        at = len(shell.findings)
        shell.run_text(text.replace(UNKNOWN, "${unknown}"), scope.copy())
        _keep_grave(shell, at)
        if len(shell.findings) > at:
            grave = True
            shell.findings.append(
                Finding(PROGRAM, "shell.word", Reason("runs-program", program=""), command=raw)
            )
    return grave


def _readings(value: str) -> "list[str]":
    """The command lines that a word may be: all of it, or what stands behind `=`, `!` or `|`."""
    found = []
    for text in (value, value.partition("=")[2]):
        plain = text.strip()
        start = _START.match(plain)
        plain = plain[start.end() :] if start is not None else plain
        plain = plain.rstrip("}); ") if text.lstrip().startswith(("(", "{")) else plain
        if " " in plain and is_program(plain) and plain not in found:
            found.append(plain)
    return found


def is_program(text: str) -> bool:
    from takeback.guard import knowledge
    from takeback.guard.programs import registry

    name = re.split(r"[\s;|&]", text, maxsplit=1)[0].strip("'\"\\").rpartition("/")[2]
    return name in registry.JUDGES or name in knowledge.programs()
