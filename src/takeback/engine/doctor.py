"""Examines one store that can be opened, part by part; nothing is changed here.

What `verify` does, every byte of every object, is not done again: here it is heads, sizes, indexes,
and everything besides the objects.
"""

import os
import stat

from takeback.engine import mending
from takeback.errors import DamagedStoreError, TakebackError
from takeback.model.counting import count
from takeback.model.findings import ERROR, NOTE, WARNING, Finding, Part
from takeback.model.staging import is_stage
from takeback.store import journal, schema, view
from takeback.store.home import read_small
from takeback.store.packread import PackFile
from takeback.store.statcache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.store.store import Store

_REPAIR = "`takeback doctor --repair` puts it right"
_VERIFY = "`takeback verify` tells which checkpoints it touches"
_AHEAD = 300
"""Seconds that a clock may be behind what was recorded before anybody needs to know."""
_SKEW = 5
_HEAD = b"PACK\0\0\0\2"


def ledger(problems: "tuple[str, ...]", events: int) -> Part:
    """Pages, chain, and tables against events; `problems` are what was found."""
    part = Part("ledger", f"{count(events, 'event')}, and the tables are as told by them")
    for what in problems:
        is_table = "of the table" in what
        advice = _REPAIR if is_table else "copy the store before anything else; " + _VERIFY
        part.findings.append(Finding(ERROR, what, advice, can_be_repaired=is_table))
    return part


def store_format(store: "Store") -> Part:
    """The format that the store is in."""
    rows = store.ledger.rows("PRAGMA user_version")
    return Part("store", f"{os.fsdecode(store.path)}, format {rows[0][0]} of {schema.VERSION}")


def packs(store: "Store") -> Part:
    """That each pack is there, begins as packs do, has its size and an index that fits."""
    names = sorted(store.ledger.packs())
    part = Part("packs", f"{count(len(names), 'pack')}, each with an index that fits")
    sizes = {
        str(name): int(size) for name, size in store.ledger.rows("SELECT name, bytes FROM packs")
    }
    for name in names:
        base = store.packs_dir + b"/" + name.encode()
        what = _pack_problem(base + b".pack", sizes.get(name))
        if what:
            part.findings.append(Finding(ERROR, f"pack `{name}` {what}", _VERIFY))
            continue
        with PackFile(base) as pack:
            index = pack.index_problem()
            misnamed = "" if index else pack.name_problem()
        if misnamed:
            part.findings.append(Finding(ERROR, misnamed, _VERIFY))
        if index:
            part.findings.append(Finding(WARNING, index, _REPAIR, can_be_repaired=True))
    return part


def _pack_problem(path: bytes, size: "int | None") -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        return f"cannot be opened: {problem.strerror}"
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return "is not a plain file"
        if os.pread(fd, len(_HEAD), 0) != _HEAD:
            return "does not begin as a pack does"
        found = os.fstat(fd).st_size
    finally:
        os.close(fd)
    if size is not None and found != size:
        return f"has {found:,} bytes instead of {size:,}"
    return ""


def git_view(store: "Store") -> Part:
    """That the refs show what the ledger says."""
    part = Part("git view", "its refs show what the ledger says")
    for what in store.check_view():
        part.findings.append(Finding(ERROR, what, _VERIFY))
    for commit in view.lost(store.git_dir):
        what = f"the ledger lost its end: the view knows the commit `{commit.hex()}`"
        part.findings.append(Finding(ERROR, what, _VERIFY))
    if not part.findings:
        for name, content in view.wanted_files(store.ledger).items():
            if read_small(store.git_dir + name) != content:
                what = f"the file `{os.fsdecode(name[1:])}` of the git view is not as it should be"
                part.findings.append(Finding(WARNING, what, _REPAIR, can_be_repaired=True))
    return part


def stat_cache(store: "Store", mark: "bytes | None") -> Part:
    """That the stat cache can be read, and is about the newest checkpoint."""
    part = Part("stat cache", "fits the newest checkpoint")
    newest = store.ledger.newest()
    if newest is None or not os.path.lexists(store.index_path):
        part.said = "none, so the next checkpoint looks at everything"
    elif mark is None:
        part.said = "not looked at: the project's folder is not there"
    elif not StatCache(store.index_path, mark).load(newest.number, newest.tree):
        what = "the stat cache is damaged, or of another state: the next checkpoint takes longer"
        advice = "nothing is lost by it: a checkpoint makes it again"
        part.findings.append(Finding(NOTE, what, advice, can_be_repaired=True))
    return part


def leftovers(store: "Store", root: "int | None", *, is_held: bool) -> Part:
    """Files that a process left which died: in the store, and our folders in the work tree."""
    part = Part("leftovers", "none")
    if is_held:
        part.said = "not looked at: somebody is at work"
        return part
    for path in mending.never_finished(store):
        what = f"`{os.fsdecode(path)}` was never finished"
        part.findings.append(Finding(NOTE, what, _REPAIR, can_be_repaired=True))
    known = {row.stage for row in journal.read(store.ledger)}
    for name in map(os.fsencode, os.listdir(root)) if root is not None else ():
        if is_stage(name) and name not in known:
            what = f"`{os.fsdecode(name)}` in the work tree is left of a restore"
            part.findings.append(Finding(WARNING, what, _REPAIR, can_be_repaired=True))
    return part


def unfinished(store: "Store") -> Part:
    """Restores that were interrupted, and words that are still to be forgotten."""
    part = Part("restores", "none is half done")
    ledger = store.ledger
    for row in journal.damaged(ledger):
        what = f"a restore was interrupted, and its journal cannot be read (it is in {row.stage})"
        advice = "`takeback verify --set-aside` keeps it, and lets undo work again"
        part.findings.append(Finding(ERROR, what, advice))
    for open_row in journal.read(ledger):
        what = f"the restore `{open_row.id}` is not finished"
        advice = "the next command that writes takes it back, or says why it cannot"
        part.findings.append(Finding(WARNING, what, advice, can_be_repaired=True))
    for id, phase in ledger.rows("SELECT id, phase FROM forgetting"):
        what = f"forgetting `{id}` is not finished ({phase})"
        part.findings.append(Finding(WARNING, what, "`takeback forget --continue` goes on with it"))
    return part


def clock(store: "Store", now: float) -> Part:
    """That time goes forward, and the disk's clock is ours."""
    part = Part("clock", "as the log and the disk tell the time")
    last = store.ledger.rows("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
    ahead = float(last[0][0]) / 1e9 - now if last else 0.0
    if ahead > _AHEAD:
        what = f"the newest event is {ahead / 60:,.0f} minutes in the future"
        advice = "set the clock; the order of events does not depend on it, `10m` and the like do"
        part.findings.append(Finding(WARNING, what, advice))
    try:
        touched = os.lstat(store.clock_path).st_mtime
    except OSError:
        return part
    if touched - now > _SKEW:
        what = f"the disk's clock is {touched - now:,.0f} seconds ahead of this machine's"
        part.findings.append(Finding(WARNING, what, "is it a network disk? set both clocks"))
    return part


def guarded(name: str, look: "Iterator[Part]") -> "Iterator[Part]":
    """The parts of a look; what goes wrong in it is a finding of its own."""
    try:
        yield from look
    except (TakebackError, OSError, ValueError, TypeError) as problem:
        advice = _VERIFY if isinstance(problem, DamagedStoreError) else ""
        yield Part(name, "", [Finding(ERROR, f"it cannot be read: {problem}", advice)])
