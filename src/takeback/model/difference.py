"""One difference between two states of a tree."""

from takeback.model.tree import FOLDER, REGULAR
from takeback.model.tree import LINK as LINK_KIND
from takeback.model.value import Value
from takeback.model.words import CREATE, DELETE, LINK, MKDIR, MODE, OMIT, RENAME, RMDIR, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.tree import Entry

LARGEST = 10 << 20
"""Files above this are only said to differ; two of them are held in memory at a time."""
_MADE = {REGULAR: CREATE, LINK_KIND: LINK, FOLDER: MKDIR}
_MADE_OF_ANOTHER = {REGULAR: WRITE, LINK_KIND: LINK, FOLDER: MKDIR}


class Difference(Value):
    """What is not the same at one path; `before` and `after` are the entries, None where absent.

    The verb says what one would do to get from the first state to the second. `omit` means
    that one state left the path out, so that nobody knows what it held: an entry with a
    reason. `origin` is the path that a renamed file has in the first state.
    """

    path: bytes
    verb: str
    before: "Entry | None"
    after: "Entry | None"
    origin: "bytes | None" = None

    @property
    def is_other_kind(self) -> bool:
        """Whether a file, a link or a folder became something else of these."""
        before, after = self.before, self.after
        return before is not None and after is not None and before.kind != after.kind

    @property
    def is_large(self) -> bool:
        return any(e is not None and e.size > LARGEST for e in (self.before, self.after))

    @property
    def reason(self) -> int:
        """Why a state left the path out; 0 if both know what it held."""
        return (self.before.reason if self.before else 0) or (
            self.after.reason if self.after else 0
        )


def judge(path: bytes, before: "Entry | None", after: "Entry | None") -> "Difference | None":
    """How the entries of a path differ in themselves; None if they do not."""
    out_before = before is not None and before.reason != 0
    out_after = after is not None and after.reason != 0
    if out_before or out_after:
        # Unknown is not absent: neither was it made nor deleted.
        return None if out_before and out_after else Difference(path, OMIT, before, after)
    verb = _verb(before, after)
    return Difference(path, verb, before, after) if verb else None


def _verb(before: "Entry | None", after: "Entry | None") -> str:
    if after is None:
        return "" if before is None else RMDIR if before.kind == FOLDER else DELETE
    if before is None:
        return _MADE.get(after.kind, CREATE)
    if before.kind != after.kind:
        return _MADE_OF_ANOTHER.get(after.kind, WRITE)
    if after.kind != FOLDER and before.strong != after.strong:
        return _MADE_OF_ANOTHER.get(after.kind, WRITE)
    return MODE if before.mode != after.mode and after.kind != LINK_KIND else ""


def with_renames(found: "list[Difference]") -> "list[Difference]":
    """Say `rename` where a file is gone and one with the same content, not empty, appeared."""
    gone: dict[bytes, list[Difference]] = {}
    for d in found:
        if d.verb == DELETE and d.before is not None and d.before.size and d.before.kind == REGULAR:
            gone.setdefault(d.before.strong, []).append(d)
    moved: set[bytes] = set()
    told: list[Difference] = []
    for d in found:
        candidates = gone.get(d.after.strong) if d.after and d.verb == CREATE else None
        if not candidates:
            told.append(d)
            continue
        origin = candidates.pop(_nearest(d.path, candidates))
        moved.add(origin.path)
        told.append(Difference(d.path, RENAME, origin.before, d.after, origin.path))
    return [d for d in told if d.verb != DELETE or d.path not in moved]


def _nearest(path: bytes, candidates: "list[Difference]") -> int:
    """Which of several equal files was probably moved: one of the same name, else the first."""
    name = path.rpartition(b"/")[2]
    same = (n for n, d in enumerate(candidates) if d.path.rpartition(b"/")[2] == name)
    return next(same, 0)
