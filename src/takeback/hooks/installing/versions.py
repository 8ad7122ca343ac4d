"""Which events the agent that is installed here knows.

Claude Code before 2.1.101 takes a settings file for broken that names an event it does not know,
and leaves out all of it, permissions and all, without a word in print mode (recorded from 2.1.73,
2.1.100 and 2.1.101). So such events are left out for it. Its version is read, not asked for:
nobody's program is started.
"""

import json
import os
import re

from takeback.hooks.installing.agents import CLAUDE_CODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.hooks.installing.agents import Agent

    Version = tuple[int, int, int]

LENIENT_SINCE = (2, 1, 101)
_ALWAYS_KNOWN = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop",
    "SessionEnd",
)  # fmt: skip
_VERSION = re.compile(r"(?<![0-9.])([0-9]+)\.([0-9]+)\.([0-9]+)(?![0-9.])")
_STARTED = ("firstStartVersion", "lastReleaseNotesSeen", "lastOnboardingVersion")
"""What Claude Code notes of versions that were started."""
_LARGEST = 64 << 20


def events(agent: "Agent", version: "Version | None") -> "tuple[str, ...]":
    """The events that can be named in the agent's settings.

    Of an agent that was never here nothing is known; it will be a new one.
    """
    if agent is not CLAUDE_CODE or version is None or version >= LENIENT_SINCE:
        return agent.kinds
    return tuple(event for event in agent.kinds if event in _ALWAYS_KNOWN)


def found(agent: "Agent", folder: bytes, search: "Iterable[str]") -> "Version | None":
    """The version of an agent: of the program in the search path, else the newest that was started.

    `folder` is that of the user's settings.
    """
    if agent is not CLAUDE_CODE:
        return None
    for place in search:
        program = os.path.join(place, "claude")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return _of_program(os.path.realpath(program)) or _started(folder)
    return _started(folder)


def shown(version: "Version") -> str:
    """A version for people."""
    return ".".join(map(str, version))


def _of_program(path: str) -> "Version | None":
    """By the package that a program is in, or by a folder or a name that says it."""
    folder = os.path.dirname(path)
    for _ in range(3):
        said = _read(os.path.join(folder, "package.json"))
        if str(said.get("name", "")).startswith("@anthropic-ai/claude-code"):
            return _parsed(said.get("version"))
        folder = os.path.dirname(folder)
    named = [_parsed(part) for part in path.split("/")[-3:]]
    return max(filter(None, named), default=None)


def _started(folder: bytes) -> "Version | None":
    versions = []
    for path in _notes(folder):
        said = _read(path)
        versions += [_parsed(said.get(name)) for name in _STARTED]
    return max(filter(None, versions), default=None)


def _notes(folder: bytes) -> "Iterator[str]":
    """Where Claude Code notes things: in its folder, or beside one that has the usual name."""
    if folder:
        yield os.fsdecode(os.path.join(folder, b".claude.json"))
        if os.path.basename(folder) == CLAUDE_CODE.folder.encode():
            yield os.fsdecode(os.path.join(os.path.dirname(folder), b".claude.json"))


def _read(path: str) -> "dict[str, object]":
    try:
        if os.path.getsize(path) > _LARGEST:
            return {}
        with open(path, "rb") as file:
            said = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _parsed(said: object) -> "Version | None":
    numbers = _VERSION.search(said) if isinstance(said, str) else None
    return (int(numbers[1]), int(numbers[2]), int(numbers[3])) if numbers else None
