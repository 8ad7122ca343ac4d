"""aider has no hooks: its chat history says what was asked for, and which files it edited.

    #### add a test        a prompt, each line of it, with two blanks at the end
    > Applied edit to a.py  what aider says itself

What the model says stands there as it is, so a heading of its own looks almost like a prompt.
"""

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NAME = "aider"
_LAUNCHERS = ("uv", "uvx", "pipx")
CHAT = ("--chat-history-file", "AIDER_CHAT_HISTORY_FILE", ".aider.chat.history.md")
INPUT = ("--input-history-file", "AIDER_INPUT_HISTORY_FILE", ".aider.input.history")
"""Where aider keeps what was said and what was typed: an option, a variable, else this name."""
_PROMPT, _EDIT, _END = "#### ", "> Applied edit to ", "  "
_ANSWERS = re.compile(r"\(Y\)es/\(N\)o.*: \w+$")
_MOST_AT_ONCE = 1 << 22

# Commands that change no file, so that no turn begins with them.
_TALK = frozenset(
    """
    /add /drop /ls /tokens /help /clear /reset /exit /quit /map /map-refresh /settings /model
    /models /editor-model /weak-model /chat-mode /read-only /report /save /multiline-mode /copy
    /copy-context /think-tokens /reasoning-effort /context /diff /web /voice /paste /load
    """.split()
)


def is_aider(words: "Sequence[str]") -> bool:
    """Whether a command line starts aider."""
    name = os.path.basename(words[0])
    if name == NAME:
        return True
    rest = [os.path.basename(word).partition("@")[0] for word in words[1:6]]
    if name.startswith("python"):
        return "-m" in rest and rest[rest.index("-m") + 1 : rest.index("-m") + 2] == [NAME]
    return name in _LAUNCHERS and NAME in rest


def top(folder: str) -> str:
    """Where aider's paths begin: the top of the repository, else the folder itself."""
    at = os.path.abspath(folder)
    while not os.path.exists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return os.path.abspath(folder)
        at = above
    return at


def history_file(
    which: "tuple[str, str, str]",
    words: "Sequence[str]",
    environment: "Mapping[str, str]",
    folder: str,
) -> str:
    """The file in which aider keeps one of its histories."""
    option, variable, usual = which
    named = environment.get(variable, "")
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            named = after
        elif word.startswith(option + "="):
            named = word.partition("=")[2]
    return os.path.join(folder, named) if named else os.path.join(top(folder), usual)


class ChatHistory:
    """The chat history of aider from now on: what was asked for, and what was edited."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = self._size()
        self._rest = b""
        self._before = ""

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def news(self) -> "Iterator[tuple[str, str]]":
        """What was written since the last time: ("prompt", text) and ("edit", path)."""
        size = self._size()
        if size <= self._read:
            self._read = size  # it was cut off: what is written from now on counts
            return
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                data = file.read(_MOST_AT_ONCE)
        except OSError:
            return
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        prompt: list[str] = []
        for line in (raw.decode("utf-8", "replace") for raw in lines):
            begins = bool(prompt) or not self._before
            self._before = line
            if line.startswith(_PROMPT) and line.endswith(_END) and begins:
                prompt.append(line[len(_PROMPT) :].rstrip())
                continue
            yield from _asked(prompt)
            prompt = []
            if line.startswith(_EDIT) and line.endswith(_END):
                yield "edit", line[len(_EDIT) :].rstrip()
        yield from _asked(prompt)


def _asked(lines: "list[str]") -> "Iterator[tuple[str, str]]":
    """A prompt, unless it is an answer to a question of aider, or only talk about the talk."""
    text = "\n".join(lines).strip()
    if not text or text == "<blank>" or _ANSWERS.search(text) or text.split()[0] in _TALK:
        return
    yield "prompt", text
