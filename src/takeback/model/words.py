"""The words of the log: how things end, what steps are, who did it, what happened to a path.

Why an entry is listed but not captured. The codes are part of the store's format.

Numbers and lists in sentences.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RUNNING, DONE, FAILED, INTERRUPTED = "running", "done", "failed", "interrupted"
STATUSES = (RUNNING, DONE, FAILED, INTERRUPTED)
WAITING, REFUSED = "waiting", "refused"
"""What else a step may be: nobody knows whether it has begun; it never did."""

EDIT, SHELL, READ, AGENT, OTHER = "edit", "shell", "read", "agent", "other"
KINDS = (EDIT, SHELL, READ, AGENT, OTHER)
"""What a step may claim depends on its kind: see `capture/attribution`."""

LONGEST_SILENCE = 3600 * 1_000_000_000
"""A window without an end closes so long after its session's last sign of life: nanoseconds."""

STEP, YOU, SHARED, RESTORE = "step", "you", "shared", "restore"
NAMED, BY_SHELL, BY_TURN = "named", "shell", "turn"
PERHAPS = "perhaps"
"""Of a step of which nobody knows when it began: it may as well be the user's."""
UNREPORTED = "unreported"
"""In a turn of an agent that has reported no tool so far: perhaps it never does."""
RESCUED = "rescued"
"""Saved just before a command destroyed it: no checkpoint holds it."""
UNKNOWN = "unknown"
"""Changed while `takeback watch` ran, by nobody who said so; also the agent of such turns."""

WRITE, CREATE, DELETE, MODE = "write", "create", "delete", "mode"
RELINK, MKDIR, RMDIR, RENAME = "link", "mkdir", "rmdir", "rename"
MERGE = "merge"
KEEP_MINE, TAKE_BACK, MARKERS, SKIP = "keep-mine", "take-back", "markers", "skip-conflicts"
DECISIONS = (KEEP_MINE, TAKE_BACK, MARKERS, SKIP)
"""How a conflict can be decided."""
UNDO, REDO, ROLLBACK = "undo", "redo", "rollback"
"""What a restore is."""
MINUTES, MINUTES_OF_AGENTS = 15, 5
"""How long a plan that was shown can be applied; and one that an agent made."""
OMIT = "omit"
"""A path that appeared and is not covered, so that it cannot be taken back."""

GONE = "(forgotten)"
"""What stands where words were that somebody forgot."""

LOOKING, READING, WRITING, HASHING = "looking", "reading", "writing", "hashing"
MERGING_PACKS, SEARCHING_PACKS = "merging-packs", "searching-packs"
FOLLOWING, FINDING_NEEDED = "following-checkpoints", "finding-needed"
ATTRIBUTING, TRYING_HOOKS = "attributing-usage", "trying-hooks"
PREPARING, CHANGING = "preparing-files", "changing-files"
CHECKING, CLEANING = "checking-files", "cleaning-up"
"""What long work is doing, as `Progress` reports it."""


CAPTURED = 0
VERSION_CONTROL = 1
OTHER_MOUNT = 2
SPECIAL = 3
UNREADABLE = 4
TOO_LARGE = 5
REBUILDABLE = 6
IGNORED = 7
STORE = 8
ANOTHER_PROJECT = 9
FORGOTTEN = 10
PARTICIPANT = 11

WORDS = {
    VERSION_CONTROL: "version control",
    OTHER_MOUNT: "other mount",
    SPECIAL: "special",
    UNREADABLE: "unreadable",
    TOO_LARGE: "too large",
    REBUILDABLE: "rebuildable",
    IGNORED: "ignored",
    STORE: "store",
    ANOTHER_PROJECT: "another project",
    FORGOTTEN: "forgotten",
    PARTICIPANT: "participant",
}

EXPLAINED = {
    VERSION_CONTROL: "Takeback never reads or writes version control data",
    OTHER_MOUNT: "another file system is mounted here",
    SPECIAL: "a FIFO, socket or device has no content",
    UNREADABLE: "permission denied, or the disk could not be read",
    TOO_LARGE: "above the size limit and not tracked by git",
    REBUILDABLE: "large, and can be rebuilt",
    IGNORED: "an ignored folder with many entries",
    STORE: "Takeback's own store",
    ANOTHER_PROJECT: "has a history of its own",
    FORGOTTEN: "deleted from the history by `forget`",
    PARTICIPANT: "a database that moves with the files by itself, as a participant",
}


def word(code: int) -> str:
    """The word for a reason, also for one that a newer version wrote."""
    return WORDS.get(code, f"reason {code}")


def count(number: int, one: str, many: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def either(names: "Iterable[str]") -> str:
    """`a`, `a or b`, `a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
