"""Judges calls by the tool: what a harness declares, MCP annotations, agents' own tools."""

from takeback.guard.findings import Word
from takeback.guard.judge import from_findings, judge_command
from takeback.model import words
from takeback.model.beyond import effects
from takeback.model.beyond.effects import (
    CLASSES,
    DELETE,
    DESTRUCTIVE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    OPAQUE,
    OVERWRITE,
    PROGRAM,
    READ,
    Judgement,
    Outside,
    Target,
    gravity,
)  # fmt: skip
from takeback.model.reasons import Reason
from takeback.model.tools import named_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.guard.rules import Rules
    from takeback.guard.scope import Scope

_COMMAND_KEYS = ("command", "cmd", "commands", "commandLine", "CommandLine", "command_line", "argv",
                 "input", "script", "code", "chars")  # fmt: skip
_CODE_TOOLS = ("python", "py", "jupyter", "ipython", "notebook", "node", "repl", "js",
               "interpreter", "codeexecution", "executecode", "runcode")  # fmt: skip


def judge_call(
    tool: str,
    given: "Mapping[str, object]",
    kind: str,
    scope: "Scope",
    rules: "Rules",
    declared: "str | Mapping[str, object] | None",
    annotations: "Mapping[str, object] | None",
) -> Judgement:
    """What a call would do; the first source that knows decides."""
    from takeback.guard import rules as guard_rules

    own = _own(tool, given, kind, scope, rules)
    found = _declared(declared, tool) or _annotated(tool, annotations, rules)
    if found is not None and kind != words.SHELL:
        own = found.replace(targets=own.targets, git=own.git, git_dirs=own.git_dirs)
    return guard_rules.with_tool_rules(rules, tool, own)


def _declared(declared: "str | Mapping[str, object] | None", tool: str) -> "Judgement | None":
    """What a harness says of its own tool."""
    if declared is None:
        return None
    fields: Mapping[str, object] = {"class": declared} if isinstance(declared, str) else declared
    effect = str(fields.get("class", ""))
    if effect not in CLASSES:
        return Judgement(OPAQUE, "declared", Reason("unknown-class", tool=tool))
    inverse = str(fields.get("inverse") or "")
    outside: tuple[Outside, ...] = ()
    if effect in {effects.COMPENSABLE, IRREVERSIBLE}:
        outside = (Outside("tool", tool, "", effect, inverse),)
    reason = Reason("declared", tool=tool, text=str(fields.get("reason") or ""))
    return Judgement(effect, "declared", reason, "", inverse, outside=outside)


def _annotated(
    tool: str, annotations: "Mapping[str, object] | None", rules: "Rules"
) -> "Judgement | None":
    """What an MCP server says of its tool, if the user trusts the server.

    Without trust, annotations count only where they make a call graver.
    """
    if not tool.lower().startswith("mcp__") or not isinstance(annotations, dict):
        return None
    server = tool[5:].partition("__")[0]
    reads = annotations.get("readOnlyHint", False) is True
    destroys = annotations.get("destructiveHint", True) is not False
    is_open = annotations.get("openWorldHint", True) is not False
    if reads:
        effect, code = READ, "reads"
    elif is_open:
        effect, code = IRREVERSIBLE, "outside"
    else:
        effect, code = (DESTRUCTIVE, "destroys") if destroys else (LOCAL, "changes-machine")
    if server not in rules.trusted and gravity(effect) <= gravity(PROGRAM):
        return None
    outside = (Outside("tool", tool, "", effect),) if effect == IRREVERSIBLE else ()
    return Judgement(effect, "mcp", Reason(code, tool=tool, kind="tool"), outside=outside)


def _own(
    tool: str, given: "Mapping[str, object]", kind: str, scope: "Scope", rules: "Rules"
) -> Judgement:
    if kind == words.SHELL:
        return _shell(tool, given, scope, rules)
    if kind == words.EDIT:
        return _edit(tool, given, scope)
    if kind == words.READ:
        return _read(tool, given)
    return Judgement(PROGRAM, "tool", Reason("runs-program", tool=tool))


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _shell(tool: str, given: "Mapping[str, object]", scope: "Scope", rules: "Rules") -> Judgement:
    text, key = _command_of(given)
    name = _plain(tool)
    if text is None:
        return Judgement(PROGRAM, "tool", Reason("runs-program", tool=tool))
    for place in (
        "workdir",
        "cwd",
        "working_directory",
        "workingDirectory",
        "dir_path",
        "directory",
        "Cwd",
    ):
        folder = given.get(place)
        if isinstance(folder, str) and folder:
            scope.cwd = scope.absolute(folder) or None
    if any(name.startswith(each) or each in name for each in _CODE_TOOLS) or (
        key in {"code", "script"} and "shell" not in name and "bash" not in name
    ):
        return _code(text, name, scope, rules)
    return judge_command(text, scope, rules)


def _code(text: str, name: str, scope: "Scope", rules: "Rules") -> Judgement:
    from takeback.guard.call import Call
    from takeback.guard.findings import NO_FLOW
    from takeback.guard.programs.code import judge_code
    from takeback.guard.shell import Shell

    shell = Shell(rules)
    language = "node" if "js" in name or "node" in name else "python"
    call = Call(shell, scope, language, (), NO_FLOW, text)
    judge_code(call, language, text)
    return from_findings([*shell.findings, *call.findings])


def _command_of(given: "Mapping[str, object]") -> "tuple[str | None, str]":
    """The command line of a shell call, and the name under which it stands."""
    import shlex

    if not hasattr(given, "get"):
        return None, ""
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value, key
        if (
            isinstance(value, list | tuple)
            and value
            and all(isinstance(each, str) for each in value)
        ):
            if key == "commands":
                return "\n".join(value), key
            return shlex.join(value), key
    return None, ""


def _edit(tool: str, given: "Mapping[str, object]", scope: "Scope") -> Judgement:
    """An edit tool writes the files it names; those of the project are covered."""
    paths = named_paths(tool, given)
    loss = DELETE if "delete" in tool.lower() or "remove" in tool.lower() else OVERWRITE
    targets: list[Target] = []
    for path in paths:
        text = path.decode("utf-8", "surrogateescape")
        targets.append(scope.target(Word(text, text), loss))
    if not targets:
        return Judgement(PROGRAM, "tool.edit", Reason("runs-program", tool=tool))
    effect = INSIDE
    for each in targets:
        if each.where != effects.IN_TREE:
            deletes = loss == DELETE or each.where == effects.NOWHERE
            here = DESTRUCTIVE if deletes else LOCAL
            effect = max(effect, here, key=gravity)
    code = "changes-files" if effect == INSIDE else "overwrites"
    return Judgement(effect, "tool.edit", Reason(code, tool=tool), targets=tuple(targets))


def _read(tool: str, given: "Mapping[str, object]") -> Judgement:
    """A tool that reads; one that may send a request is judged by its method."""
    method = given.get("method") if hasattr(given, "get") else None
    if isinstance(method, str) and method.lower() not in {"get", "head", "options", ""}:
        from takeback.guard.programs.network import host_in, is_local_host

        host = host_in(str(value) for value in given.values())
        if host and is_local_host(host):
            return Judgement(LOCAL, "tool.fetch", Reason("sends-local", tool=tool, host=host))
        outside = Outside("request", f"{method.upper()} {host}".strip(), host)
        reason = Reason("sends", tool=tool, host=host)
        return Judgement(IRREVERSIBLE, "tool.fetch", reason, outside=(outside,))
    return Judgement(READ, "tool.read", Reason("reads", tool=tool))
