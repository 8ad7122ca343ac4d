"""Claude Code, and hosts that run its hooks with its own payloads.

Recorded from 2.1.325: a tool call that was refused reports nothing but its batch; Esc reports
nothing at all; a sub-agent goes on after the `Stop` of its turn, and so do background shells.

Its conversation is a tree of lines in one file, each with a `uuid` and that of its parent. A prompt
and the results of its tools are lines of type `user` that carry its `promptId`. The file only
grows: going back leaves the lines of the old prompts, and the next prompt has an earlier parent.
Calls that were made at once hang beside the line that the conversation follows. Other lines, whole
requests among them, belong to nothing.
"""

import os

from takeback.agents import agent as kinds
from takeback.agents import transcripts
from takeback.agents.agent import (
    ABOVE,
    BEGINNING,
    BEGINS_HERE,
    PASSED,
    PROMPT_MISSING,
    UNREADABLE,
    CannotTrimError,
    Conversations,
    HookEvent,
    TrimmedConversation,
    fields,
    number_after,
    text,
)
from takeback.agents.dialects.claude_format import KINDS, ClaudeFormat, read_prompt
from takeback.model import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.agents.agent import Payload, Trial, Version
    from takeback.agents.transcripts import Line

READERS = (
    "Read", "Glob", "Grep", "LS", "NotebookRead", "LSP", "ToolSearch", "WebFetch", "WebSearch",
    "TodoRead", "TodoWrite", "AskUserQuestion", "ExitPlanMode", "BashOutput", "TaskOutput",
    "ListMcpResourcesTool", "ReadMcpResourceTool",
)  # fmt: skip
"""Tools that change no file. Unknown tools, and those of servers, may."""
LENIENT_SINCE = (2, 1, 101)
"""Before, one event that it does not know makes it ignore the whole settings file, permissions and
all, without a word in print mode (recorded from 2.1.73, 2.1.100 and 2.1.101)."""
_ALWAYS_KNOWN = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop",
    "SessionEnd",
)  # fmt: skip
_STARTED = ("firstStartVersion", "lastReleaseNotesSeen", "lastOnboardingVersion")
"""Where it notes versions that were started."""
_LARGEST = 64 << 20
_LONGEST = 1 << 33
"""Milliseconds: a hundred days."""
_REFUSED = "The user doesn't want to proceed with this tool use."
_EXIT_CODE = "Exit code "
_INTERRUPTED = "[Request interrupted by user"
_LONGEST_MARK = 100
_OF_COMMAND = "<local-command-"
_PROMPT_ID = b'"promptId":'
_ANSWER = 1 << 20
"""Bytes at the end of a conversation in which the answer is that a call is part of."""
_OF_ONE_FILE = ("queue-operation", "last-prompt", "file-history-snapshot", "file-history-delta")
"""Kinds of lines that mean nothing in a copy: what waits, where it ended, backups of its own."""


class ClaudeCode(ClaudeFormat):
    """Known by the names of its events; unlike Codex it sends no `turn_id`."""

    name = "claude-code"
    version_mark = b'"version":"'
    title = "Claude Code"
    proven = "2.1.325"
    seen = (
        "prompts", "edits", "shell", "sub-agents", "background commands", "permission dialogs",
        "Esc", "`/rewind`",
    )  # fmt: skip
    not_seen = ("when a turn ended that was killed",)
    kinds = KINDS
    folder = ".claude"
    file = "settings.json"
    local_file = "settings.local.json"
    program = "claude"
    marks = ("CLAUDECODE",)
    program_folder = "/claude-code/"
    goes_on_when_told = True
    variable = "CLAUDE_CONFIG_DIR"
    started_in = "CLAUDE_PROJECT_DIR"
    # A regular expression of JavaScript: all other tools. Some hosts match the whole name.
    matcher = f"^(?!(?:{'|'.join(READERS)})$).*"

    def __init__(self) -> None:
        self.conversations = ClaudeCodeConversations()

    def claims(self, payload: "Payload") -> bool:
        """It is one of its events, or one that we do not know and that has a prompt of its own."""
        return text(payload, "hook_event_name") in KINDS or "prompt_id" in payload

    def read(self, payload: "Payload") -> HookEvent:
        """One event."""
        event = super().read(payload)
        event.turn = text(payload, "prompt_id")
        event.failed = event.name == "PostToolUseFailure"
        if event.kind == kinds.PROMPT:
            read_prompt(event, payload)
        elif event.kind == kinds.AFTER_TOOL:
            _read_response(event, payload)
            took = payload.get("duration_ms")
            event.took = int(took) if isinstance(took, int | float) and 0 <= took < _LONGEST else -1
        elif event.kind == kinds.BATCH_OVER:
            _read_batch(event, payload.get("tool_calls"))
        return event

    # -- settings --------------------------------------------------------------------------

    def known_events(self, version: "Version | None") -> "tuple[str, ...]":
        """An old version gets only events that it knows; one that was never here will be new."""
        if version is None or version >= LENIENT_SINCE:
            return tuple(KINDS)
        return _ALWAYS_KNOWN

    def find_version(self, folder: bytes, search: "Iterable[str]") -> "Version | None":
        """Of the program in the search path, else the newest that was started; nothing is run."""
        for place in search:
            program = os.path.join(place, self.program)
            if os.path.isfile(program) and os.access(program, os.X_OK):
                return _version_of(os.path.realpath(program)) or _started(folder)
        return _started(folder)

    def settings_problems(self, settings: str) -> "list[str]":
        """Hooks may be switched off."""
        import json

        try:
            known = json.loads(settings.removeprefix("\ufeff") or "{}")
        except (ValueError, RecursionError):
            return []
        if not isinstance(known, dict) or known.get("disableAllHooks") is not True:
            return []
        return ["`disableAllHooks` is set in these settings, so Claude Code runs no hooks"]

    def trial(self, kind: str, trial: "Trial") -> "dict[str, object]":
        """As recorded; the first event has no prompt yet."""
        own = {"prompt_id": "trial"} if kind != kinds.SESSION_STARTS else {}
        return {**super().trial(kind, trial), **own}


def _read_batch(event: HookEvent, made: object) -> None:
    """The calls that the model made at once; one that was refused says so in its response."""
    all = [each for each in made if isinstance(each, dict)] if isinstance(made, list) else []
    no = [each for each in all if text(each, "tool_response").startswith(_REFUSED)]
    event.calls = tuple(filter(None, (text(each, "tool_use_id") for each in all)))
    event.refused = tuple(text(each, "tool_use_id") for each in no)


def _read_response(event: HookEvent, payload: "Payload") -> None:
    """What a tool said, and whether a shell or a sub-agent goes on in the background."""
    response = fields(payload, "tool_response")
    event.output = text(payload, "error", "tool_response") or "\n".join(
        filter(None, (text(response, "stdout"), text(response, "stderr")))
    )
    if event.tool_kind == words.SHELL:
        event.exit_code = number_after(_EXIT_CODE, event.output) if event.failed else 0
    event.task = text(response, "backgroundTaskId", "agentId")
    event.background = "backgroundTaskId" in response or response.get("isAsync") is True


# -- which version is installed ------------------------------------------------------------


def _version_of(program: str) -> "Version | None":
    """By the package that a program is in, or by a folder or a name that has a version in it."""
    folder = os.path.dirname(program)
    for _ in range(3):
        package = _read_json(os.path.join(folder, "package.json"))
        if str(package.get("name", "")).startswith("@anthropic-ai/claude-code"):
            return _parsed(package.get("version"))
        folder = os.path.dirname(folder)
    return max(filter(None, map(_parsed, program.split("/")[-3:])), default=None)


def _started(folder: bytes) -> "Version | None":
    """Its notes are in its folder, or beside one that has the usual name."""
    versions: list[Version | None] = []
    notes = [os.path.join(folder, b".claude.json")] if folder else []
    if os.path.basename(folder) == AGENT.folder.encode():
        notes.append(os.path.join(os.path.dirname(folder), b".claude.json"))
    for path in notes:
        known = _read_json(os.fsdecode(path))
        versions += [_parsed(known.get(name)) for name in _STARTED]
    return max(filter(None, versions), default=None)


def _read_json(path: str) -> "dict[str, object]":
    import json

    try:
        if os.path.getsize(path) > _LARGEST:
            return {}
        with open(path, "rb") as file:
            known = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _parsed(version: object) -> "Version | None":
    import re

    pattern = r"(?<![0-9.])([0-9]+)\.([0-9]+)\.([0-9]+)(?![0-9.])"
    numbers = re.search(pattern, version) if isinstance(version, str) else None
    return (int(numbers[1]), int(numbers[2]), int(numbers[3])) if numbers else None


# -- conversations -------------------------------------------------------------------------


class ClaudeCodeConversations(Conversations):
    """The files that Claude Code writes."""

    def interrupted_at(self, path: str, prompt: str) -> "float | None":
        """When the turn before a prompt was interrupted."""
        line = _interruption(path, prompt)
        return transcripts.seconds(line) if line is not None else None

    def was_at_work(self, path: str, prompt: str) -> bool:
        """Whether a tool ran when that was; else a dialog waited, and the answer was no.

        The two lines differ in this alone (2.1.325).
        """
        line = _interruption(path, prompt)
        return line is not None and "interruptedMessageId" in line

    def interrupted_prompt(self, path: str) -> str:
        """The prompt of the turn that was interrupted last; empty if nobody says."""
        line = _interruption(path, "")
        return text(line, "promptId") if line is not None else ""

    def before(self, path: str, prompt: str) -> "Iterator[tuple[str, str]]":
        """The prompts before one, on its line and beside it; none while it is not written yet."""
        lines = transcripts.backwards(path)
        line = _last_of(lines, prompt)
        if line is None:
            return
        passed = {"", prompt}
        wanted = _parent(line)
        if _is_top(line):
            yield BEGINNING, ""
        for raw in lines:
            found = transcripts.read(raw) if _mentions(raw, wanted) else None
            if found is None or text(found, "uuid") != wanted:
                other = _prompt_id(raw)
                if other not in passed:
                    passed.add(other)
                    yield PASSED, other
                continue
            if text(found, "promptId") not in ("", prompt):
                yield ABOVE, text(found, "promptId")
            if _is_top(found):
                yield BEGINNING, ""
            wanted = _parent(found)

    def calls_beside(self, path: str, call: str) -> "tuple[str, ...] | None":
        """Each call has a line of its own; those of one answer have the same id of a message."""
        if not os.path.isfile(path):
            return ()
        found: list[str] = []
        answer = ""
        for raw in transcripts.backwards(path, _ANSWER):
            line = transcripts.read(raw) if b'"tool_use"' in raw else None
            if line is None or line.get("type") != "assistant":
                continue
            message = text(transcripts.inner(line, "message"), "id")
            if message != answer:
                if call in found:
                    break
                answer, found = message, []
            found += _calls(line)
        if call not in found:
            return None
        return tuple(each for each in found if each != call) if answer else ()

    def trim(self, path: str, prompt: str) -> TrimmedConversation:
        """The conversation up to a prompt, under a new id, beside the file that it is from."""
        try:
            tree = _Tree(path)
        except OSError as problem:
            raise CannotTrimError(UNREADABLE, problem.strerror or str(problem)) from None
        kept, end = tree.kept_before(prompt)
        own_id = transcripts.uuid4()
        return TrimmedConversation(
            own_id,
            os.path.join(os.path.dirname(path), f"{own_id}.jsonl"),
            _copied(path, tree, kept, end, own_id),
            folder=tree.folder,
            command=("claude", "--resume", own_id),
            repaired=bool(tree.relinked),
        )


def _interruption(path: str, prompt: str) -> "Line | None":
    """The line of the interruption that ended the turn before a prompt."""
    passed = {prompt}
    for raw in transcripts.backwards(path):
        if b'"user"' not in raw and b'"stop_hook_summary"' not in raw:
            continue
        line = transcripts.read(raw)
        if line is None or line.get("isSidechain") is True:
            continue
        if line.get("subtype") == "stop_hook_summary":
            return None
        if _is_interruption(line):
            return line
        if _is_of_command(line):
            passed.add(text(line, "promptId"))
        elif _begins_prompt(line) and text(line, "promptId") not in passed:
            return None
    return None


def _last_of(lines: "Iterator[bytes]", prompt: str) -> "Line | None":
    """The last line of a prompt; whatever comes before it is still to come then."""
    for raw in lines:
        line = transcripts.read(raw) if _mentions(raw, prompt) else None
        if line is not None and text(line, "promptId") == prompt and not _is_aside(line):
            return line
    return None


def _mentions(raw: bytes, id: str) -> bool:
    """Whether a line may be the one that is looked for; long ones are not read for nothing."""
    return bool(id) and id.encode("utf-8", "surrogatepass") in raw


def _is_top(line: "Line") -> bool:
    """Whether a conversation begins here; before a summary something was, also if nobody knows."""
    return not _parent(line) and line.get("subtype") != "compact_boundary"


def _is_aside(line: "Line") -> bool:
    return line.get("isSidechain") is True or not text(line, "uuid")


def _parent(line: "Line") -> str:
    return text(line, "parentUuid") or text(line, "logicalParentUuid")


def _prompt_id(raw: bytes) -> str:
    """The prompt that a line belongs to, without reading all of a long line."""
    value = raw.partition(_PROMPT_ID)[2].lstrip()
    return value[1:].partition(b'"')[0].decode("utf-8", "replace") if value[:1] == b'"' else ""


def _blocks(line: "Line") -> "list[object]":
    content = transcripts.inner(line, "message").get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _calls(line: "Line") -> "list[str]":
    uses = [each for each in _blocks(line) if isinstance(each, dict)]
    return [text(each, "id") for each in uses if each.get("type") == "tool_use"]


def _texts(line: "Line") -> "list[str]":
    found = [block.get("text") for block in _blocks(line) if isinstance(block, dict)]
    return [each for each in found if isinstance(each, str)]


def _is_interruption(line: "Line") -> bool:
    return line.get("type") == "user" and any(
        said.startswith(_INTERRUPTED) and len(said) < _LONGEST_MARK for said in _texts(line)
    )


def _is_of_command(line: "Line") -> bool:
    """Whether a line is of a command of the agent itself, such as `/model`: it asks nobody."""
    return any(said.startswith(_OF_COMMAND) for said in _texts(line))


def _begins_prompt(line: "Line") -> bool:
    """Whether a line is what somebody asked for, and no result of a tool or what goes with it."""
    if line.get("type") != "user" or not text(line, "promptId") or _is_interruption(line):
        return False
    if line.get("isMeta") is True or line.get("isCompactSummary") is True:
        return False
    return not _is_result(line)


def _is_result(line: "Line") -> bool:
    blocks = _blocks(line)
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


# -- all of it, to trim it -----------------------------------------------------------------


class _Node:
    """A line of the tree, without what it says."""

    __slots__ = ("aside", "begins", "kind", "number", "parent", "prompt", "result", "tied", "uuid")

    def __init__(self, number: int, line: "Line") -> None:
        self.number = number
        self.uuid = text(line, "uuid")
        self.parent = _parent(line)
        self.tied = bool(text(line, "parentUuid"))
        """Whether the parent must be in the file; what a summary stands for need not."""
        self.prompt = text(line, "promptId")
        self.kind = text(line, "type")
        self.aside = line.get("isSidechain") is True
        self.begins = _begins_prompt(line)
        self.result = self.kind == "assistant" or (self.kind == "user" and _is_result(line))


class _Tree:
    """The lines of a file that belong together, and which of them a prompt follows on."""

    def __init__(self, path: str) -> None:
        self.nodes: list[_Node] = []
        self.folder = ""
        for number, raw in enumerate(transcripts.forwards(path)):
            line = transcripts.read(raw)
            if line is not None and text(line, "uuid"):
                self.nodes.append(_Node(number, line))
                self.folder = self.folder or text(line, "cwd")
        self._known = {node.uuid: node for node in self.nodes}
        self.relinked: dict[int, str] = {}
        """Lines whose parent is not in the file, and the one that they get instead."""

    def kept_before(self, prompt: str) -> "tuple[set[int], int]":
        """The numbers of the lines before a prompt, and of the last of them on its line."""
        first = self._first(prompt)
        chain = list(self._up(first))
        if not any(node.kind in ("user", "assistant") for node in chain):
            raise CannotTrimError(BEGINS_HERE)
        end = chain[0].number
        kept = {node.number for node in chain} | self._beside(chain, first)
        self.relinked = {number: to for number, to in self.relinked.items() if number in kept}
        return kept, end

    def _first(self, prompt: str) -> _Node:
        found = [node for node in self.nodes if node.prompt == prompt and not node.aside]
        if not prompt or not found:
            raise CannotTrimError(PROMPT_MISSING)
        return next((node for node in found if node.begins), found[0])

    def _up(self, node: _Node) -> "Iterator[_Node]":
        """The nodes above one, the nearest first; where a line is missing, the one before it."""
        seen, end = {node.number}, node.number
        while node.parent:
            above = self._known.get(node.parent)
            if above is None or above.number in seen or above.number > end:
                above = self._nearest(node, seen)
                if node.tied:
                    self.relinked[node.number] = above.uuid if above is not None else ""
                if above is None:
                    return
            seen.add(above.number)
            yield above
            node = above

    def _nearest(self, node: _Node, seen: "set[int]") -> "_Node | None":
        for each in reversed(self.nodes):
            if each.number < node.number and each.number not in seen and not each.aside:
                return each
        return None

    def _beside(self, chain: "list[_Node]", first: _Node) -> "set[int]":
        """Calls made at once, and their results: they hang beside the line, and belong to it."""
        kept = {node.uuid for node in chain}
        prompts = {node.prompt for node in chain} | {""}
        found = set()
        for node in self.nodes:
            is_part = node.result and not node.aside and node.prompt in prompts
            if is_part and node.number < first.number and node.parent in kept:
                kept.add(node.uuid)
                found.add(node.number)
        return found


def _copied(path: str, tree: _Tree, kept: "set[int]", end: int, own_id: str) -> "Iterator[bytes]":
    """The lines of a copy, as they stand but for the name of the conversation."""
    dropped = {node.uuid for node in tree.nodes if node.number not in kept}
    numbers = {node.number for node in tree.nodes}
    for number, raw in enumerate(transcripts.forwards(path)):
        if number > end and number not in kept:
            continue
        line = transcripts.read(raw)
        if line is None or (number in numbers and number not in kept):
            continue
        if number not in numbers and not _is_of_all(line, dropped):
            continue
        yield _renamed(raw, line, own_id, tree.relinked.get(number))


def _is_of_all(line: "Line", dropped: "set[str]") -> bool:
    """Whether a line outside the tree still means something in a copy."""
    if text(line, "type") in _OF_ONE_FILE:
        return False
    return not any(isinstance(value, str) and value in dropped for value in line.values())


def _renamed(raw: bytes, line: "Line", own_id: str, parent: "str | None") -> bytes:
    """A line with another id of its conversation, and with another parent if it needs one."""
    if parent is not None:
        from takeback.model.text import json_text

        line["parentUuid"] = parent or None
        line.pop("logicalParentUuid", None)
        raw = json_text.dumps(line).encode()
    return transcripts.renamed(raw.strip(), ("sessionId",), text(line, "sessionId"), own_id)


AGENT = ClaudeCode()
