"""Why something is, stays or failed: a code and facts. Doors make the sentences.

Facts are plain: text, numbers, or tuples of text. A path in them is text as `os.fsdecode` gives it.
"""

from takeback.model.value import Value
from takeback.model.words import word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.model.text.json_text import Json
    from takeback.model.tree import Entry

    Fact = str | int | tuple[str, ...]

# -- of a path that conflicts, stays, or is left alone ------------------------------------------

YOURS = "yours"
ALREADY = "already-as-it-was"
SHARED = "shared"
ALL_SHARED = "all-shared"
AGENTS_OWN = "agents-own"
NOT_COVERED = "not-covered"
NOT_COVERED_THEN = "not-covered-then"
NOT_COVERED_STAYS = "not-covered-stays"
NOT_COVERED_NOW = "not-covered-now"
STEP_OPEN = "step-open"
IN_THE_WAY = "in-the-way"
UNCOVERED_SINCE = "uncovered-since"
FOLDER_CONFLICTS = "folder-conflicts"
FOLDER_GONE = "folder-gone"
NO_FOLDER = "no-folder"
NO_FOLDER_THEN = "no-folder-then"
NOT_EMPTY = "not-empty"
HOLDS_OTHERS = "holds-others"
OLD_NAME_CONFLICTS = "old-name-conflicts"
DELETED_SINCE = "deleted-since"
MADE_AND_CHANGED = "made-and-changed"
MADE_AND_RENAMED = "made-and-renamed"
MADE_ANEW = "made-anew"
OTHER_KIND = "other-kind"
MODE_SINCE = "mode-since"
OTHER_TARGET = "other-target"
CLOSED_AND_CHANGED = "closed-and-changed"
TOO_LARGE_TO_MERGE = "too-large-to-merge"
NO_TEXT = "no-text"
SAME_LINES = "same-lines"
HUNKS_LEFT = "hunks-left"
RENAMED_AND_DELETED = "renamed-and-deleted"
RENAMED_AGAIN = "renamed-again"

# -- with what a change goes, or with what it is merged -----------------------------------------

CARRIES_CHANGES = "carries-changes"
WAS_RENAMED = "was-renamed"
WITH_RENAME = "with-rename"
MERGED = "merged"
WITH_MARKERS = "with-markers"

# -- what needs consent, and what no restore takes back -----------------------------------------

OTHER_BRANCH = "other-branch"
AFTER_STOP = "after-stop"
PERHAPS_RAN = "perhaps-ran"
AT_TERMINAL = "at-terminal"
NO_TOOL_EVENT = "no-tool-event"
UNKNOWN_AUTHOR = "unknown-author"
OUTSIDE_CHANGES = "outside-changes"
OUTSIDE_STAYS = "outside-stays"
COMMITS_STAY = "commits-stay"
COMMITS_SINCE = "commits-since"
HEAD_STAYS = "head-stays"
UNCOVERED_CHANGED = "uncovered-changed"

# -- why the guard refuses a call, and what stays of its effects ---------------------------------

GUARD_ERROR = "guard-error"
GUARD_TAMPER = "guard-tamper"
GUARD_LIGHTER = "guard-lighter"
# -- of a participant that stays, or could not be moved -----------------------------------------

STATE_UNKNOWN = "state-unknown"
STATE_SINCE = "state-since"
NOT_AT_TAIL = "not-at-tail"
NOT_REACHED = "not-reached"
NOT_REGISTERED = "not-registered"
NO_INVERSE = "no-inverse"
NO_REDO = "no-redo"
MOVE_FAILED = "move-failed"
PARTICIPANT_MOVED = "participant-moved"
PARTICIPANT_FAILED = "participant-failed"
PARTICIPANT_WAITS = "participant-waits"

# -- why the user decides, and not the agent that asks ------------------------------------------

IN_CONFLICT = "in-conflict"
OUTSIDE_PROJECT = "outside-project"
OF_OTHERS = "of-others"
TURNS_OF_OTHERS = "turns-of-others"
OTHERS_AT_WORK = "others-at-work"
MOVES_PARTICIPANTS = "moves-participants"

# -- what was saved before a command that destroys ------------------------------------------------

UNKNOWN_TARGET = "unknown-target"
TOO_MANY_TO_SAVE = "too-many-to-save"
TOO_LARGE_TO_COPY = "too-large-to-copy"
NO_ROOM_TO_COPY = "no-room-to-copy"
CANNOT_BE_SAVED = "cannot-be-saved"
HOLDS_STORE = "holds-store"
RESCUED_CHANGED = "rescued-changed"
RESCUED_STAYS = "rescued-stays"
RESCUED_LOST = "rescued-lost"
RESCUE_DAMAGED = "rescue-damaged"
THERE_AGAIN = "there-again"
GIT_STAYS = "git-stays"

# -- what happened to the user's git ------------------------------------------------------------

GIT_GONE = "git-gone"
GIT_MADE = "git-made"
GIT_REPLACED = "git-replaced"
GIT_UNDER_WAY = "git-under-way"
GIT_MORE = "git-more"
ONLY_GIT = "only-git"
HEAD_MOVED = "head-moved"
BRANCH_SWITCHED = "branch-switched"
BRANCH_GONE = "branch-gone"
BRANCH_NEW = "branch-new"
BRANCH_MOVED = "branch-moved"
BRANCH_RENAMED = "branch-renamed"
TAG_GONE = "tag-gone"
TAG_NEW = "tag-new"
TAG_MOVED = "tag-moved"
REMOTES_MOVED = "remotes-moved"
REFS_UNKNOWN = "refs-unknown"
STASH_GONE = "stash-gone"
STASH_NEW = "stash-new"
STASHES_SAVED = "stashes-saved"
INDEX_GONE = "index-gone"
INDEX_SAVED = "index-saved"
LOGS_SAVED = "logs-saved"
OBJECTS_SAVED = "objects-saved"
STAGED_STAYS = "staged-stays"
WORKTREE_NEW = "worktree-new"
WORKTREE_GONE = "worktree-gone"
OF_GIT = (
    GIT_GONE, GIT_MADE, GIT_REPLACED, GIT_UNDER_WAY, GIT_MORE, ONLY_GIT, HEAD_MOVED,
    BRANCH_SWITCHED, BRANCH_GONE, BRANCH_NEW, BRANCH_MOVED, BRANCH_RENAMED, TAG_GONE, TAG_NEW,
    TAG_MOVED, REMOTES_MOVED, REFS_UNKNOWN, STASH_GONE, STASH_NEW, STASHES_SAVED,
    INDEX_GONE, INDEX_SAVED, LOGS_SAVED, OBJECTS_SAVED, STAGED_STAYS,
    WORKTREE_NEW, WORKTREE_GONE, COMMITS_STAY, COMMITS_SINCE, HEAD_STAYS,
)  # fmt: skip

# -- what came in between while a restore ran ---------------------------------------------------

SAVED_MEANWHILE = "saved-meanwhile"
CHANGED_SINCE = "changed-since"
FOLDER_BY_NOW = "folder-by-now"
NOT_EMPTY_NOW = "not-empty-now"
REPLACED_BY_NOW = "replaced-by-now"
MADE_MEANWHILE = "made-meanwhile"
MODE_MEANWHILE = "mode-meanwhile"
OUT_OF_REACH = "out-of-reach"
FOLDER_LOST = "folder-lost"
NOT_SETUID = "not-setuid"
SAVE_IN_STORE = "save-in-store"
SAVED_BEFORE = "saved-before"
IN_CHECKPOINT = "in-checkpoint"
STILL_OPEN = "still-open"

# -- what a process left that died, and what became of it ----------------------------------------

TAKEN_BACK = "restore-taken-back"
NOT_TAKEN_BACK = "restore-not-taken-back"
RESTORE_OPEN = "restore-open"
RESTORE_STUCK = "restore-stuck"
JOURNAL_DAMAGED = "journal-damaged"
SAVE_RESCUED = "save-rescued"
LATE_SAVE_RESCUED = "late-save-rescued"
FORGETTING = "forgetting"
FORGOT = "forgot"
SET_ASIDE_UNREAD = "set-aside-unread"
SET_ASIDE = "set-aside"

# -- why nobody could look at the files ----------------------------------------------------------

RESTORE_RUNS = "restore-runs"
TOO_MUCH_TO_READ = "too-much-to-read"
NOT_LOOKED_AT = "not-looked-at"

# -- what was put right -------------------------------------------------------------------------

STAGE_REMOVED = "stage-removed"
LITTER_REMOVED = "litter-removed"
CACHE_REMOVED = "cache-removed"
VIEW_REMADE = "view-remade"
INDEX_REMADE = "index-remade"
TABLES_REMADE = "tables-remade"
REGISTRY_REMADE = "registry-remade"

# -- what is damaged ----------------------------------------------------------------------------

DAMAGED = "damaged"
FORGETTING_OPEN = "forgetting-open"
PLAN_UNREAD = "plan-unread"
CONTENT_DAMAGED = "content-damaged"
CONTENT_MISSING = "content-missing"
COMMIT_LOST = "commit-lost"
COMMIT_MISSING = "commit-missing"
OBJECT_MISSING = "object-missing"
LEDGER_CUT = "ledger-cut"
VIEW_AHEAD = "view-ahead"
PAGES_DAMAGED = "pages-damaged"
LEDGER_UNREADABLE = "ledger-unreadable"
LEDGER_KINDS = "ledger-kinds"
EVENT_MISSING = "event-missing"
EVENT_CHANGED = "event-changed"
DETAIL_CHANGED = "detail-changed"
EVENT_UNCHAINED = "event-unchained"
ARCHIVE_MISSING = "archive-missing"
ARCHIVE_CHANGED = "archive-changed"
ARCHIVED_EVENT_CHANGED = "archived-event-changed"
STATEMENT_WRONG = "statement-wrong"
ROW_WRONG = "row-wrong"
ROW_MISSING = "row-missing"
OF_TABLES = (STATEMENT_WRONG, ROW_WRONG, ROW_MISSING)
"""What is made right by making the tables again from the events."""

# -- what went wrong after a restore was done ----------------------------------------------------

SETUID_DROPPED = "setuid-dropped"
SETTINGS_UNREAD = "settings-unread"
LISTENERS_UNREAD = "listeners-unread"
LISTENERS_WRONG = "listeners-wrong"
LISTENER_INTERRUPTED = "listener-interrupted"
LISTENER_RAISED = "listener-raised"
LISTENER_MISSING = "listener-missing"
LISTENER_NOT_STARTED = "listener-not-started"
LISTENER_TOO_SLOW = "listener-too-slow"
LISTENER_FAILED = "listener-failed"


class Reason(Value):
    """A code and what belongs to it: `Reason(NOT_EMPTY, name="a", count=2)`."""

    code: str
    facts: "tuple[tuple[str, Fact], ...]"

    def __init__(self, code: str, **facts: "Fact") -> None:
        super().__init__(code, tuple(facts.items()))

    def __repr__(self) -> str:
        facts = "".join(f", {name}={fact!r}" for name, fact in self.facts)
        return f"{type(self).__name__}({self.code!r}{facts})"

    def with_facts(self, **facts: "Fact") -> "Reason":
        return Reason(self.code, **{**dict(self.facts), **facts})

    def as_json(self) -> "dict[str, Json]":
        fields: dict[str, Json] = {"code": self.code}
        for name, fact in self.facts:
            fields[name] = list(fact) if isinstance(fact, tuple) else fact
        return fields


class Action(Reason):
    """What to do next; facts are arguments: `Action("redo", turn="kmqvtwxz")`.

    Each door has its own words for it: `cli/text/action_text` a command, `errors` a call.
    """

    def __init__(self, code: str, **facts: "Fact") -> None:
        super().__init__(code, **facts)


def from_json(fields: "Mapping[str, Json]") -> Reason:
    facts: dict[str, Fact] = {}
    for name, fact in fields.items():
        if isinstance(fact, list):
            facts[name] = tuple(map(str, fact))
        elif name != "code":
            facts[name] = fact if isinstance(fact, int) else str(fact)
    return Reason(str(fields["code"]), **facts)


def not_covered(entry: "Entry | None", code: str = NOT_COVERED) -> Reason:
    """Why nobody knows what is there."""
    return Reason(code, why=word(entry.reason if entry is not None else 0))
