"""A lesson as values: the words that somebody gave, and facts that Takeback computes.

No file's content and no command's output is ever part of it.
"""

from takeback.model.value import Value, path_text

ACTIVE, WAITING, WITHDRAWN, DROPPED = "active", "waiting", "withdrawn", "dropped"
"""Agents are told; the user has to accept it first; a redo put back what it is about; deleted."""
USER, AGENT = "user", "agent"
"""Whose words it is."""


class Lesson(Value):
    """What a restore taught, or what somebody noted.

    `text` are the words of the user, or of an agent (`source`). `verb` and `restore` are what took
    something back, empty if it was noted without one. `turns` are what that was about, the newest
    last, and `prompt` is the first line of that one's prompt. `raw_paths` are what these turns
    changed, with `files`, `added` and `removed` lines in all; `exit_code` is that of the last
    command of them that failed. `session` is the session that they, or the note, belong to.
    """

    id: str
    text: str
    status: str
    source: str
    at: float
    verb: str = ""
    restore: str = ""
    turns: "tuple[str, ...]" = ()
    prompt: str = ""
    raw_paths: "tuple[bytes, ...]" = ()
    files: int = 0
    added: int = 0
    removed: int = 0
    exit_code: "int | None" = None
    session: str = ""

    @property
    def paths(self) -> "tuple[str, ...]":
        """The paths as text, as `os.fsdecode` gives them."""
        return tuple(map(path_text, self.raw_paths))
