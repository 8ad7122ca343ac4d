"""What the shell does by itself, and what simple programs write to their output."""

from takeback.guard.expansion import decode_escapes
from takeback.guard.findings import (
    DECODED,
    DOWNLOAD,
    FILE,
    HIDDEN,
    HIDDEN_FLOW,
    LISTING,
    NO_FLOW,
    NOTHING,
    TEXT,
    UNKNOWN,
    Flow,
    Word,
)  # fmt: skip
from takeback.guard.scope import MADE
from takeback.model.beyond.effects import DESTRUCTIVE, LOCAL, PROGRAM, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.guard.call import Call


def cd(call: "Call") -> Flow:
    """`cd` and its kind move the folder in which what follows runs."""
    operands = [word for word in call.args if not word.value.startswith("-") or word.value == "-"]
    call.add(READ, "shell.cd", "reads")
    scope = call.scope
    if call.name == "popd" or (operands and operands[0].value == "-"):
        scope.cwd = None
    elif not operands:
        scope.cwd = scope.home or None
    else:
        word = operands[0]
        path = scope.absolute(word.value)
        if "CDPATH" in scope.variables and not word.value.startswith(("/", "./", "../", "~")):
            path = ""
        scope.cwd = path if path and word.is_known and not word.is_glob else None
    return NO_FLOW


def evaluate(call: "Call") -> Flow:
    """`eval` of what is known is judged; of anything else nobody knows what runs."""
    text = " ".join(call.texts)
    if UNKNOWN in text:
        return call.shell.hide(call.raw, "eval", "shell.eval")
    return call.run_text(text)


def alias(call: "Call") -> Flow:
    for text in call.texts:
        name, mark, value = text.partition("=")
        if mark:
            call.scope.aliases[name] = value
    return call.add(READ, "shell.alias", "reads")


def remember_path(call: "Call") -> Flow:
    """`hash -p PATH NAME` makes a name mean another program."""
    words = [word for word in call.args if not word.value.startswith("-")]
    if any(text.startswith("-") and "p" in text for text in call.texts) and len(words) == 2:
        call.scope.aliases[words[1].value] = words[0].raw
    return call.add(READ, "shell.hash", "reads")


def page(call: "Call") -> Flow:
    """`less '+!command'` runs a command."""
    for text in call.texts:
        _, mark, command = text.partition("!")
        if text.startswith("+") and mark:
            call.run_text(command)
            call.shell.hide(call.raw, "hidden", "less.run")
    call.add(READ, call.name, "reads")
    return flow_of(call)


def stop(call: "Call") -> Flow:
    """`kill`: a process can be started again; `kill -1` takes everything the user runs."""
    operands = [text for text in call.texts if text in {"-1", "0"}]
    is_all = bool(operands) and call.texts[-1] == "-1" and len(call.texts) > 1
    code = "stops-machine" if is_all else "stops-process"
    if any(text in {"-l", "-L", "-0"} for text in call.texts):
        return call.add(READ, call.name, "reads")
    return call.add(DESTRUCTIVE if is_all else LOCAL, call.name, code)


def trap(call: "Call") -> Flow:
    """The command of a trap runs later, in the same shell."""
    call.add(READ, "shell.trap", "reads")
    operands = [word for word in call.args if not word.value.startswith("-")]
    if not operands or len(operands) == 1 or not operands[0].value:
        return NO_FLOW
    if not operands[0].is_known:
        return call.shell.hide(call.raw, "eval", "shell.trap")
    return call.run_text(operands[0].value)


def source(call: "Call") -> Flow:
    from takeback.guard.programs import code

    if not call.args:
        return NO_FLOW
    word = call.args[0]
    if word.flow is not None and word.flow.kind != FILE:
        return code.run_flow(call, word.flow)
    return code.run_file(call, call.scope.absolute(word.value))


def read_variable(call: "Call") -> Flow:
    """`read` and `mapfile`: names of files that came through the pipe are known to be such."""
    for word in call.args:
        name = word.value
        if name.startswith("-") or not name.replace("_", "a").isalnum():
            continue
        paths = call.stdin.paths if call.stdin.kind == LISTING else ()
        call.scope.variables[name] = (_any_of(paths),)
    return call.add(READ, "shell.read", "reads")


def _any_of(paths: "tuple[Word, ...]") -> Word:
    return paths[0].replace(is_glob=True) if len(paths) == 1 else Word(UNKNOWN)


def set_options(call: "Call") -> Flow:
    """`set -- a b` sets the arguments."""
    texts = call.texts
    if "--" in texts:
        from takeback.guard import shell

        shell.set_arguments(call.scope, call.args[texts.index("--") + 1 :])
    return call.add(READ, "shell.set", "reads")


def echo(call: "Call") -> Flow:
    call.add(READ, call.name, "reads")
    return flow_of(call)


def make_temporary(call: "Call") -> Flow:
    """`mktemp`: a new file or folder, which nothing older is in."""
    call.add(LOCAL, "mktemp", "changes-machine")
    name = f"{MADE}{len(call.scope.made)}"
    call.scope.made.add(name)
    return Flow(TEXT, name)


def flow_of(call: "Call") -> Flow:
    """What a program that only reads writes to its output."""
    maker = _FLOWS.get(call.name)
    if maker is not None:
        return maker(call)
    secret = call.stdin.has_secret or any(word.has_secret for word in call.args)
    return Flow(HIDDEN, has_secret=secret) if secret else HIDDEN_FLOW


def _echoed(call: "Call") -> Flow:
    texts = call.texts
    flags = ""
    while texts and texts[0].startswith("-") and set(texts[0][1:]) <= set("neE") and texts[0][1:]:
        flags += texts.pop(0)
    text = " ".join(texts)
    secret = any(word.has_secret for word in call.args)
    if "e" in flags and "\\" in text:
        return Flow(DECODED, decode_escapes(text), has_secret=secret)
    globbed = tuple(word for word in call.args if word.is_glob)
    if globbed and len(globbed) == len(texts):
        return Flow(LISTING, text, globbed, secret)
    return Flow(TEXT, text + ("" if "n" in flags else "\n"), has_secret=secret)


def _printed(call: "Call") -> Flow:
    words = call.args[2:] if call.texts[:1] == ["-v"] else call.args
    if call.texts[:1] == ["-v"] and len(call.args) > 1:
        call.scope.variables[call.args[1].value] = (Word(UNKNOWN),)
    if not words:
        return NO_FLOW
    shape, given = words[0].value, [word.value for word in words[1:]]
    secret = any(word.has_secret for word in words)
    coded = "\\x" in shape or "\\0" in shape or "\\1" in shape or "\\u" in shape or "%b" in shape
    text = _formatted(decode_escapes(shape), given)
    return Flow(DECODED if coded else TEXT, text, has_secret=secret)


def _formatted(shape: str, given: "list[str]") -> str:
    import re

    pieces = re.split(r"(%%|%[-0-9.]*[a-zA-Z])", shape)
    if len(pieces) < 3:
        return shape
    made, waiting = "", list(given)
    while True:
        for piece in pieces:
            if piece == "%%":
                made += "%"
            elif piece[:1] == "%" and len(piece) > 1:
                value = waiting.pop(0) if waiting else ""
                made += value if piece[-1] in "sdiq" else UNKNOWN
            else:
                made += piece
        if not waiting or "%" not in shape.replace("%%", ""):
            return made


def _catted(call: "Call") -> Flow:
    from takeback.guard.programs.registry import content_of

    operands = [word for word in call.args if not word.value.startswith("-") or word.value == "-"]
    if not operands or (len(operands) == 1 and operands[0].value == "-"):
        return call.stdin
    flows = [call.stdin if word.value == "-" else content_of(word, call.scope) for word in operands]
    secret = any(each.has_secret for each in flows)
    if all(each.kind == TEXT for each in flows):
        return Flow(TEXT, "".join(each.text for each in flows), has_secret=secret)
    kinds = {each.kind for each in flows}
    kind = next((each for each in (DOWNLOAD, DECODED, HIDDEN) if each in kinds), FILE)
    return Flow(kind, has_secret=secret)


_PICKERS = frozenset("jq yq awk gawk cut tr rev paste".split())
"""Filters that give values of a file, and not the file."""


def filtered(call: "Call") -> Flow:
    """A filter passes on names of files, and what was downloaded stays downloaded."""
    from takeback.guard.programs.network import is_secret

    operands = [word for word in call.args if not word.value.startswith("-")]
    secret = call.stdin.has_secret or any(
        word.has_secret or is_secret(word.value) for word in operands
    )
    if call.stdin.kind in {LISTING, DOWNLOAD, DECODED}:
        kind = call.stdin.kind
    elif call.stdin.kind == TEXT:
        kind = TEXT if call.name in {"tee", "head", "tail", "cat"} else DECODED
    else:
        is_whole = call.stdin.kind == NOTHING and call.name not in _PICKERS
        kind = FILE if operands and is_whole else HIDDEN
    text = call.stdin.text if kind == TEXT else ""
    return Flow(kind, text, call.stdin.paths, secret)


def _searched(call: "Call") -> Flow:
    """`grep -l` names files; any other `grep` is a filter."""
    flags = [text for text in call.texts if text.startswith("-")]
    lists = any(
        text in {"--files-with-matches", "--files"} or (text[1:2] != "-" and "l" in text)
        for text in flags
    )
    if not lists:
        return filtered(call)
    operands = [word for word in call.args if not word.value.startswith("-")][1:]
    return _listing(call, operands or [Word(".")])


def _listed(call: "Call") -> Flow:
    operands = [word for word in call.args if not word.value.startswith("-")]
    return _listing(call, operands or [Word(".")])


def _listing(call: "Call", operands: "list[Word]") -> Flow:
    paths = []
    for word in operands:
        path = call.scope.absolute(word.value)
        below = path and word.is_known and not word.is_glob
        value = f"{path}/*" if below else path
        paths.append(Word(value or UNKNOWN, word.raw, is_glob=True))
    secret = call.stdin.has_secret
    return Flow(LISTING, paths=tuple(paths), has_secret=secret)


def _decoded(call: "Call") -> Flow:
    secret = call.stdin.has_secret
    from takeback.guard.programs.network import is_secret

    secret = secret or any(is_secret(text) for text in call.texts)
    if call.stdin.kind == DOWNLOAD:
        return Flow(DOWNLOAD, has_secret=secret)
    return Flow(DECODED, has_secret=secret)


def _here(call: "Call") -> Flow:
    return Flow(TEXT, call.scope.cwd) if call.scope.cwd else HIDDEN_FLOW


def _found_program(call: "Call") -> Flow:
    operands = [text for text in call.texts if not text.startswith("-")]
    return Flow(TEXT, operands[-1]) if operands else NO_FLOW


def _named(call: "Call") -> Flow:
    import posixpath

    operands = [text for text in call.texts if not text.startswith("-")]
    if not operands or UNKNOWN in operands[0]:
        return HIDDEN_FLOW
    if call.name in {"realpath", "readlink"}:
        path = call.scope.absolute(operands[-1])
        return Flow(TEXT, path) if path else HIDDEN_FLOW
    if call.name == "dirname":
        return Flow(TEXT, posixpath.dirname(operands[0]) or ".")
    ending = operands[1] if len(operands) > 1 else ""
    return Flow(TEXT, posixpath.basename(operands[0]).removesuffix(ending))


def _environment(_call: "Call") -> Flow:
    return Flow(HIDDEN, has_secret=True)


def program(call: "Call") -> Flow:
    call.add(PROGRAM, call.name)
    return HIDDEN_FLOW


_FLOWS: "dict[str, Callable[[Call], Flow]]" = {
    "echo": _echoed,
    "printf": _printed,
    "cat": _catted,
    "bat": _catted,
    "ls": _listed,
    "find": _listed,
    "fd": _listed,
    "tree": _listed,
    "grep": _searched,
    "egrep": _searched,
    "rg": _searched,
    "ag": _searched,
    **dict.fromkeys(
        "head tail sort uniq sed awk gawk cut tr tee rev jq yq less more nl tac fold shuf wc "
        "column paste fgrep xargs pv".split(),
        filtered,
    ),
    **dict.fromkeys(
        "base64 base32 xxd openssl gunzip zcat gzip bzip2 bunzip2 xz unxz zstd uudecode gpg "
        "basenc od hexdump uncompress".split(),
        _decoded,
    ),
    "pwd": _here,
    "which": _found_program,
    "basename": _named,
    "dirname": _named,
    "realpath": _named,
    "readlink": _named,
    "printenv": _environment,
}

JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    "cd": cd,
    "pushd": cd,
    "popd": cd,
    "eval": evaluate,
    "alias": alias,
    "trap": trap,
    "hash": remember_path,
    "less": page,
    "more": page,
    "kill": stop,
    "source": source,
    ".": source,
    "read": read_variable,
    "mapfile": read_variable,
    "readarray": read_variable,
    "set": set_options,
    "echo": echo,
    "printf": echo,
    "mktemp": make_temporary,
}
