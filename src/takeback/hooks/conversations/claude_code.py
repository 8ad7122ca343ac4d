"""Claude Code: a tree of lines, each with a `uuid` and that of its parent, in one file.

Recorded from 2.1.325. A prompt and the results of its tools are lines of type `user` that carry
its `promptId`. The file only grows: who goes back leaves the lines of the old prompts, and the
next prompt has an earlier parent. Calls that were made at once hang beside the line that the
conversation follows. Other lines, whole requests among them, belong to nothing.
"""

import os

from takeback.hooks import transcripts
from takeback.hooks.conversations.trimmed import (
    ABOVE,
    BEGINNING,
    PASSED,
    CannotTrimError,
    Trimmed,
    as_uuid,
)
from takeback.hooks.transcripts import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.hooks.transcripts import Line

_INTERRUPTED = "[Request interrupted by user"
_LONGEST_MARK = 100
_OF_COMMAND = "<local-command-"
_PROMPT_ID = b'"promptId":'
_OF_ONE_FILE = ("queue-operation", "last-prompt", "file-history-snapshot", "file-history-delta")
"""Kinds of lines that mean nothing in a copy: what waits, where it ended, backups of its own."""


# -- the end of the file, for hooks --------------------------------------------------------


def interrupted_at(path: str, prompt: str) -> "float | None":
    """When the turn before a prompt was interrupted."""
    line = _interruption(path, prompt)
    return transcripts.seconds(line) if line is not None else None


def was_at_work(path: str, prompt: str) -> bool:
    """Whether a tool ran when that was; else a dialog waited, and the answer was no.

    The two lines differ in this alone (2.1.325).
    """
    line = _interruption(path, prompt)
    return line is not None and "interruptedMessageId" in line


def interrupted_prompt(path: str) -> str:
    """The prompt of the turn that was interrupted last; empty if nobody says."""
    line = _interruption(path, "")
    return text(line, "promptId") if line is not None else ""


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


def before(path: str, prompt: str) -> "Iterator[tuple[str, str]]":
    """The prompts before one, on its line and beside it; nothing while it is not written yet."""
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
            raise CannotTrimError("the conversation begins with this turn")
        end = chain[0].number
        kept = {node.number for node in chain} | self._beside(chain, first)
        self.relinked = {number: to for number, to in self.relinked.items() if number in kept}
        return kept, end

    def _first(self, prompt: str) -> _Node:
        found = [node for node in self.nodes if node.prompt == prompt and not node.aside]
        if not prompt or not found:
            raise CannotTrimError("its prompt is not in the file any more")
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


def trim(path: str, prompt: str) -> Trimmed:
    """The conversation up to a prompt, under a new id, beside the file that it is from."""
    try:
        tree = _Tree(path)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise CannotTrimError(f"its file cannot be read: {why}") from None
    kept, end = tree.kept_before(prompt)
    own_id = _uuid4()
    mended = len(tree.relinked)
    return Trimmed(
        own_id,
        os.path.join(os.path.dirname(path), f"{own_id}.jsonl"),
        _copied(path, tree, kept, end, own_id),
        folder=tree.folder,
        command=("claude", "--resume", own_id),
        remarks=("lines were missing in the middle",) if mended else (),
    )


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
        from takeback.model import jsontext

        line["parentUuid"] = parent or None
        line.pop("logicalParentUuid", None)
        raw = jsontext.dumps(line).encode()
    return transcripts.renamed(raw.strip(), ("sessionId",), text(line, "sessionId"), own_id)


def _uuid4() -> str:
    data = bytearray(os.urandom(16))
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    return as_uuid(bytes(data))
