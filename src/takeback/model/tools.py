"""What is known about the tools of coding agents: what a call may change, and what it names.

A tool is known by its name alone, whoever offers it: `Write`, `write_file` and `WriteFile` are one.
The names are those of Claude Code, Codex, Gemini CLI, OpenCode, Cline, Cursor, Copilot, Windsurf
and the usual SDKs. What is not listed is `other`, which may claim whatever changed while it ran.
Two mistakes would hide a change from its author, so both need certainty: to say `read` of a tool
that writes, and `edit` of a tool that writes what it does not name.

What a call was given comes from outside. Nothing here raises, whatever it holds, and nothing here
works longer than the size of the input explains.
"""

from takeback.model.words import AGENT, EDIT, OTHER, READ, SHELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_PATHS = 1000
"""So many are looked at; of a call that may name more, nobody knows what it names."""
LONGEST_PATH = 4096
LONGEST_SUMMARY = 200

_LOOKED_AT = 4000  # of a text that is to be one line of 200 characters
_LINE_BREAK = " ⏎ "
_HISTORY = frozenset({b".aider.chat.history.md", b".aider.input.history", b".aider.llm.history"})
_CACHE = b".aider.tags.cache"

# Names as `_plain` spells them: lower case, without `_`, `-`, `.`, blanks and a number at the end.
_EDITS = frozenset(
    """
    edit write multiedit notebookedit create delete editor replace patch applypatch
    writefile editfile createfile deletefile removefile updatefile savefile appendfile appendtofile
    writetofile replaceinfile searchreplace searchandreplace strreplace stringreplace replacestring
    strreplaceeditor strreplacebasededittool strreplaceedittool texteditor
    applydiff insertcontent editnotebook editnotebookfile notebookwrite reapply
    replacestringinfile multireplacestringinfile inserteditintofile
    replacefilecontent multireplacefilecontent filewrite fileedit fswrite createdirectory
    """.split()
)
_SHELLS = frozenset(
    """
    bash sh zsh fish shell powershell pwsh cmd terminal console
    execcommand executecommand execcmd executecmd runcommand runcommands runcmd
    shellcommand shelltool localshell localshellcall runshell runshellcommand executeshell
    executeshellcommand bashcommand executebash runbash writebash writestdin bashtool
    runterminalcmd runterminalcommand runinterminal terminalcommand containerexec unifiedexec exec
    execute monitor python py pythonrepl pythonrepltool runpython executepython
    pythoninterpreter ipython runipython executeipythoncell jupyter jsrepl nodejs repl
    codeinterpreter codeexecution executecode runcode runscript runtask createandruntask runtests
    runnotebookcell
    """.split()
)
_READS = frozenset(
    """
    read readfile readfiles readmanyfiles readmultiplefiles readtextfile view viewfile viewimage
    fileread fsread notebookread readnotebook readlints geterrors
    ls list listdir listdirectory listfiles listcodedefinitionnames directorytree getfileinfo
    glob grep rg grepsearch grepfiles filesearch searchfiles searchfilecontent searchcodebase
    codebasesearch codesearch semanticsearch findfiles toolsearch lsp
    websearch webfetch googlewebsearch fetchwebpage fetchwebcontent
    todowrite todoread writetodos updatetodo managetodolist updateplan reportintent
    askuser askuserquestion askfollowupquestion question requestuserinput exitplanmode
    planmoderespond bashoutput readbash listbash taskoutput getterminaloutput waitagent
    listmcpresources listmcpresourcestool readmcpresource readmcpresourcetool
    """.split()
)
_AGENTS = frozenset(("agent", "task", "spawnagent"))

_FILE_SERVERS = frozenset(("filesystem", "fs", "serverfilesystem", "filesystemserver"))
_FILE_SERVER_TOOLS = {
    **dict.fromkeys(("writefile", "editfile", "createdirectory"), EDIT),
    **dict.fromkeys(
        """
        readfile readtextfile readmediafile readmultiplefiles listdirectory directorytree
        listdirectorywithsizes searchfiles getfileinfo listalloweddirectories
        """.split(),
        READ,
    ),
}

_OUR_LOOKS = frozenset(("status", "log", "show", "diff", "lessons"))
_OUR_ACTS = frozenset(
    "checkpoint note_lesson preview_undo preview_rollback apply apply_asking".split()
)
_OUR_NAMES = ("mcp", "plugin", "takeback")

_PATH_KEYS = frozenset(
    """
    filepath path notebookpath absolutepath targetfile targetnotebook relativepath filename file
    relativeworkspacepath dirpath oldpath newpath sourcepath destinationpath
    """.split()
)
_LIST_KEYS = frozenset(
    "paths files filepaths absolutepaths edits replacements changes operations".split()
)
_PATCH_MARKS = ("*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:")

_COMMAND_KEYS = ("command", "commands", "cmd", "commandline", "argv", "code", "script", "chars")
_SEARCH_KEYS = ("pattern", "query", "regex", "searchterm", "url", "urls", "glob")
_TOLD_KEYS = (
    "description",
    "title",
    "question",
    "prompt",
    "message",
    "name",
    "task",
    "instruction",
    "plan",
)
_SUMMARY_KEYS = {
    SHELL: (_COMMAND_KEYS, _TOLD_KEYS),
    READ: (_SEARCH_KEYS, None, _TOLD_KEYS),
    AGENT: (_TOLD_KEYS,),
    EDIT: (None, _TOLD_KEYS),
    OTHER: (_COMMAND_KEYS, _SEARCH_KEYS, None, _TOLD_KEYS),
}
"""Where to look for what a person wants to see, in this order; None stands for the paths."""


def is_agents_own(path: bytes) -> bool:
    """Whether an agent keeps its own history there, beside the user's files: aider does."""
    names = path.split(b"/")
    return names[-1] in _HISTORY or any(name.startswith(_CACHE) for name in names)


def our_tool(tool: str) -> str:
    """The name of a tool of `takeback mcp`, however an agent spells it; empty for all others.

    `mcp__takeback__apply`, `mcp__plugin_takeback_takeback__apply`, `takeback-apply`: all are
    `apply`. A name without `takeback` in it may be anybody's.
    """
    if len(tool) > 100 or "takeback" not in tool.lower():
        return ""
    words = "".join(c if c.isalnum() else " " for c in tool.lower()).split()
    while words and words[0] in _OUR_NAMES:
        del words[0]
    name = "_".join(words)
    return name if name in _OUR_LOOKS or name in _OUR_ACTS else ""


def acts_for_us(tool: str) -> bool:
    """Whether a tool of ours does more than look.

    Such a call is a step, by which the server finds its session. It claims no change: while it
    waits for an answer, the user may be at work.
    """
    return our_tool(tool) in _OUR_ACTS


def kind_of(tool: str) -> str:
    """What a tool may change: edit, shell, read, agent, or other if nobody told us."""
    tool = str(tool)  # what a payload calls a name may be anything
    if our_tool(tool) in _OUR_LOOKS:
        return READ
    if tool[:5].lower() == "mcp__":
        server, _, name = tool[5:].partition("__")
        return _FILE_SERVER_TOOLS.get(_plain(name), OTHER) if _is_file_server(server) else OTHER
    plain = _plain(tool)
    for names, kind in ((_EDITS, EDIT), (_SHELLS, SHELL), (_READS, READ), (_AGENTS, AGENT)):
        if plain in names:
            return kind
    return OTHER


def claim_of(
    tool: str, given: "Mapping[str, object]", kind: str = ""
) -> "tuple[str, tuple[bytes, ...]]":
    """The kind of one call and the paths it names; `kind` is that of the tool, if it is known.

    A call of an edit tool whose input names no file, or more than are listed, counts as `other`:
    what it changes would else be taken for somebody else's work.
    """
    kind = kind or kind_of(tool)
    paths, are_all = _named(kind, given)
    if kind == EDIT and not (paths and are_all):
        kind = OTHER
    return kind, paths


def spelled_out(paths: "Iterable[bytes]", user_home: bytes) -> "tuple[bytes, ...]":
    """The paths as given, and what some agents make of a `~/` or an `@` at the beginning."""
    found: dict[bytes, None] = {}
    for path in paths:
        found[path] = None
        meant = path.removeprefix(b"@")
        if meant.startswith(b"~/") and user_home:
            meant = user_home + meant[1:]
        if meant:
            found[meant] = None
    return tuple(found)


def named_paths(tool: str, given: "Mapping[str, object]") -> "tuple[bytes, ...]":
    """The paths that a call's input names, as given, each once; none for shells and agents."""
    return _named(kind_of(tool), given)[0]


def _named(kind: str, given: object) -> "tuple[tuple[bytes, ...], bool]":
    """The paths that are named, and whether these are all."""
    if kind in {SHELL, AGENT}:
        return (), True
    found: dict[bytes, None] = {}
    for count, text in enumerate(_texts_of_paths(given)):
        if count >= MOST_PATHS:
            return tuple(found), False
        _add(found, text)
    if kind == EDIT and not found:
        for text in _texts(given):
            _add_patched(found, text)
    return tuple(found), len(found) < MOST_PATHS


def summary_of(tool: str, given: "Mapping[str, object]") -> str:
    """One short line for people: the command of a shell, the path of an edit, and so on."""
    for keys in _SUMMARY_KEYS[kind_of(tool)]:
        line = _paths_line(tool, given) if keys is None else _first_line(given, keys)
        if line:
            return line
    return ""


def one_line(text: str) -> str:
    """A text as one line of at most 200 characters, that every file and terminal can hold."""
    lines = [" ".join(line.split()) for line in text[:_LOOKED_AT].splitlines()]
    line = _LINE_BREAK.join(filter(None, lines)).replace("\0", "�")
    line = line.encode("utf-8", "replace").decode()
    return line if len(line) <= LONGEST_SUMMARY else line[: LONGEST_SUMMARY - 1] + "…"


def inside(root: bytes, cwd: bytes, path: bytes) -> "bytes | None":
    """A named path relative to the project's root; None if it is not below it.

    `cwd` is where a relative path begins. `..` is resolved by the names alone: where a link leads
    is not known here.
    """
    if not path or b"\0" in path or not root.startswith(b"/"):
        return None
    if not path.startswith(b"/"):
        if not cwd.startswith(b"/"):
            return None
        path = cwd + b"/" + path
    above, names = _resolved(root), _resolved(path)
    if len(names) <= len(above) or names[: len(above)] != above:
        return None
    return b"/".join(names[len(above) :])


def _resolved(path: bytes) -> "list[bytes]":
    names: list[bytes] = []
    for name in path.split(b"/"):
        if name == b"..":
            del names[-1:]
        elif name not in {b"", b"."}:
            names.append(name)
    return names


def _plain(name: str) -> str:
    """The spelling under which a name is looked up; names too long to be one are nothing."""
    if len(name) > 100:
        return ""
    plain = name.lower()
    for mark in "_-. ":
        plain = plain.replace(mark, "")
    return plain.rstrip("0123456789")


def _is_file_server(name: str) -> bool:
    return _plain(name) in _FILE_SERVERS


def _items(value: object) -> "Iterator[tuple[str, object]]":
    """The named members of an input, with plain names; a bare text is its only member."""
    # Loaded with Python itself; `collections.abc` would load more than twice as much.
    from _collections_abc import Mapping

    if isinstance(value, str):
        yield "", value
    elif isinstance(value, Mapping):
        for count, (name, inner) in enumerate(value.items()):
            if count >= MOST_PATHS:
                return
            if isinstance(name, str):
                yield _plain(name), inner


def _texts_of_paths(given: object) -> "Iterator[object]":
    for name, value in _items(given):
        if name in _PATH_KEYS:
            yield value
        elif name in _LIST_KEYS:
            yield from _listed_paths(value)


def _listed_paths(value: object) -> "Iterator[object]":
    """The paths of a list of paths, of a list of objects that name one, or of an object by path."""
    if isinstance(value, dict):
        yield from value
    elif isinstance(value, list | tuple):
        for member in value:
            yield member  # looked at, and counted, also if it is no path
            yield from (inner for name, inner in _items(member) if name in _PATH_KEYS)


def _texts(given: object) -> "Iterator[str]":
    """The texts in an input that may be a patch: the values, and the members of short lists."""
    for _, value in _items(given):
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from (member for member in value[:16] if isinstance(member, str))


def _add(found: "dict[bytes, None]", text: object) -> None:
    if isinstance(text, str):
        try:
            text = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return
    if isinstance(text, bytes) and 0 < len(text) <= LONGEST_PATH and b"\0" not in text:
        found[text] = None


def _add_patched(found: "dict[bytes, None]", patch: str) -> None:
    """The files that a patch in the form of `apply_patch` adds, updates, deletes and moves."""
    at = patch.find("*** ")
    while at >= 0 and len(found) < MOST_PATHS:
        end = patch.find("\n", at)
        end = len(patch) if end < 0 else end
        # A mark counts only at the start of its line: elsewhere it is the content of a file.
        start = patch.rfind("\n", 0, at) + 1
        if not patch[start:at].strip(" \t"):
            for mark in _PATCH_MARKS:
                if patch.startswith(mark, at):
                    _add(found, patch[at + len(mark) : end].strip())
        at = patch.find("*** ", end)


def _first_line(given: object, keys: "Iterable[str]") -> str:
    values = dict(_items(given))
    for key in keys:
        value = values.get(key)
        if isinstance(value, list | tuple):
            mark = "\n" if key.endswith("s") else " "
            value = mark.join(member for member in value[:100] if isinstance(member, str))
        line = one_line(value) if isinstance(value, str) else ""
        if line:
            return line
    return ""


def _paths_line(tool: str, given: "Mapping[str, object]") -> str:
    paths = named_paths(tool, given)
    if not paths:
        return ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    line = one_line(paths[0].decode("utf-8", "replace"))
    return line[: LONGEST_SUMMARY - len(more)] + more
