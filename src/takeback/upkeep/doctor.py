"""Examines one store that can be opened, part by part; nothing is changed here.

What `verify` does, every byte of every object, is not done again: here it is heads, sizes, indexes,
and everything besides the objects.

Makes again what follows from something else: nothing is lost by it, and nothing decided.

Looks at the files of the home folder and of a store without opening a ledger, and mends them.
"""

import os
import stat
import time
from importlib.util import find_spec

from takeback.disk import home as removal
from takeback.disk import machine, operations
from takeback.disk.home import parse_line, read_small
from takeback.effects.saved import area, care
from takeback.effects.verdict import MODES, OFF, is_lighter
from takeback.errors import DamagedStoreError, TakebackError
from takeback.ledger import schema
from takeback.model import reasons
from takeback.model.ids import is_stage
from takeback.model.reasons import Action, Reason
from takeback.model.results import ERROR, NOTE, WARNING, Finding, Part
from takeback.objects import git_view as view
from takeback.worktree.stat_cache import StatCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.disk.home import Home
    from takeback.store import Store


def mend(store: "Store") -> "Iterator[Reason]":
    """Put right what can be, with the lock held; say what.

    The tables come last: they are made from the events, if those are as they were written.
    """
    yield from store.mend_view()
    yield from _litter(store)
    yield from _indexes(store)
    yield from _tables(store)


def stages(root: bytes) -> "set[bytes]":
    """The folders of ours that are in a work tree."""
    return {name for name in os.listdir(root) if is_stage(name)}


def never_finished(store: "Store") -> "Iterator[bytes]":
    """The files that a process left which died: nothing refers to them."""
    yield from store.litter()
    yield from store.objects.half_written()
    # Packs that no event names may be what is left of a lost part of the ledger.
    if store.knows_its_packs() and not any(store.check_view()):
        for name in store.objects.stray_packs():
            yield store.packs_dir + b"/" + name.encode()


def _litter(store: "Store") -> "Iterator[Reason]":
    before = set(never_finished(store))
    store.recover()
    for path in sorted(before - set(never_finished(store))):
        name = os.fsdecode(os.path.basename(path))
        yield Reason(reasons.LITTER_REMOVED, name=name)


def _indexes(store: "Store") -> "Iterator[Reason]":
    for name in sorted(store.ledger.packs()):
        with store.objects.pack(name) as pack:
            what = pack.index_problem()
            if not what:
                continue
            try:
                pack.rewrite_index()
            except (DamagedStoreError, OSError):
                continue  # the pack itself is damaged, and that is found elsewhere
            yield Reason(reasons.INDEX_REMADE, problem=what)


def _tables(store: "Store") -> "Iterator[Reason]":
    wrong = [what for what in store.ledger.check() if what.code in reasons.OF_TABLES]
    if not wrong or any(store.check_anchor()):
        return  # the tables are all that still knows of events that are gone
    try:
        store.ledger.rebuild()
    except TakebackError:
        return
    yield Reason(reasons.TABLES_REMADE, count=len(wrong))


_REPAIR = Reason("repair")
_VERIFY = Reason("verify")
_AHEAD = 300
"""Seconds that a clock may be behind what was recorded before anybody needs to know."""
_SKEW = 5


def ledger(problems: "tuple[Reason, ...]", events: int) -> Part:
    """Pages, chain, and tables against events; `problems` are what was found."""
    part = Part("ledger", Reason("events-told", events=events))
    for what in problems:
        is_table = what.code in reasons.OF_TABLES
        action = _REPAIR if is_table else Reason("copy-and-verify")
        part.findings.append(Finding(ERROR, what, action, can_be_repaired=is_table))
    return part


def store_format(store: "Store") -> Part:
    """The format that the store is in."""
    return Part("store", Reason("format", path=os.fsdecode(store.path), format=schema.VERSION))


def packs(store: "Store") -> Part:
    """That each pack is there, begins as packs do, has its size and an index that fits."""
    names = sorted(store.ledger.packs())
    part = Part("packs", Reason("packs-fit", packs=len(names)))
    sizes = store.ledger.pack_sizes()
    for name in names:
        with store.objects.pack(name) as pack:
            what = pack.head_problem(sizes.get(name))
            if what is not None:
                part.findings.append(Finding(ERROR, what.with_facts(pack=name), _VERIFY))
                continue
            index = pack.index_problem()
            misnamed = "" if index else pack.name_problem()
        if misnamed:
            part.findings.append(Finding(ERROR, Reason(reasons.DAMAGED, problem=misnamed), _VERIFY))
        if index:
            found = Reason(reasons.DAMAGED, problem=index)
            part.findings.append(Finding(WARNING, found, _REPAIR, can_be_repaired=True))
    return part


def git_view(store: "Store") -> Part:
    """That the refs show what the ledger says."""
    part = Part("git view", Reason("view-fits"))
    for what in store.check_view():
        part.findings.append(Finding(ERROR, what, _VERIFY))
    for commit in view.lost(store.git_dir):
        what = Reason(reasons.COMMIT_LOST, commit=commit.hex())
        part.findings.append(Finding(ERROR, what, _VERIFY))
    if not part.findings:
        for name, content in view.wanted_files(store.ledger).items():
            if read_small(store.git_dir + name) != content:
                what = Reason("view-file-wrong", file=os.fsdecode(name[1:]))
                part.findings.append(Finding(WARNING, what, _REPAIR, can_be_repaired=True))
    return part


def stat_cache(store: "Store", mark: "bytes | None") -> Part:
    """That the stat cache can be read, and is about the newest checkpoint."""
    part = Part("stat cache", Reason("cache-fits"))
    newest = store.ledger.checkpoints.newest()
    if newest is None or not os.path.lexists(store.index_path):
        part.state = Reason("no-cache")
    elif mark is None:
        part.state = Reason("no-folder-to-look-at")
    elif not StatCache(store.index_path, mark).load(newest.number, newest.tree):
        what = Reason("cache-unfit")
        part.findings.append(Finding(NOTE, what, Reason("wait"), can_be_repaired=True))
    return part


def leftovers(store: "Store", root: "int | None", *, is_held: bool) -> Part:
    """Files that a process left which died: in the store, and our folders in the work tree."""
    part = Part("leftovers", Reason("none"))
    if is_held:
        part.state = Reason("somebody-at-work")
        return part
    for path in never_finished(store):
        what = Reason("unfinished-file", path=os.fsdecode(path))
        part.findings.append(Finding(NOTE, what, _REPAIR, can_be_repaired=True))
    known = {row.stage for row in store.ledger.journal.read()}
    for name in map(os.fsencode, os.listdir(root)) if root is not None else ():
        if is_stage(name) and name not in known:
            what = Reason("stage-left", name=os.fsdecode(name))
            part.findings.append(Finding(WARNING, what, _REPAIR, can_be_repaired=True))
    return part


def rescues(store: "Store") -> Part:
    """What was saved before commands that destroy: that it is there, and nothing else is."""
    count, size = care.taken(store)
    part = Part("rescues", Reason("rescues-fit", count=count, bytes=size))
    for what in care.damage(store):
        part.findings.append(Finding(ERROR, what, _VERIFY))
    known = [row.id for row in store.ledger.rescues.there()]
    for place in {area.in_store(store), *store.ledger.rescues.all_areas()}:
        for id in area.strays(place, known):
            what = Reason("unfinished-file", path=os.fsdecode(place) + "/" + id)
            part.findings.append(Finding(NOTE, what, _REPAIR, can_be_repaired=True))
    return part


def agents(store: "Store") -> Part:
    """Who works now, and who is paused."""
    from takeback.capture.safe_points import running_sessions
    from takeback.ledger.journal import ALL_SESSIONS

    running = len(running_sessions(store.ledger))
    part = Part("agents", Reason("agents-running", count=running))
    paused = store.ledger.sessions.paused()
    if paused:
        some = f"{len(paused)} session{'s are' if len(paused) > 1 else ' is'}"
        whom = "all agents are" if ALL_SESSIONS in paused else some
        what = Reason("agents-paused", whom=whom)
        part.findings.append(Finding(WARNING, what, Reason("let-go-on")))
    return part


def lessons(store: "Store") -> Part:
    """What agents are told of undone work, and whether any lesson waits for the user."""
    taught, waiting, relapsed = store.ledger.lessons.counts()
    part = Part("lessons", Reason("lessons-known", count=taught, relapses=relapsed))
    if waiting:
        some = "1 lesson waits" if waiting == 1 else f"{waiting} lessons wait"
        part.findings.append(Finding(NOTE, Reason("lessons-wait", some=some), (Action("lessons"),)))
    return part


def guard(store: "Store", mode: str) -> Part:
    """The mode of the guard, and whether it was switched off or made lighter."""
    ledger = store.ledger.effects
    refused, done = ledger.counts()
    part = Part("guard", Reason("guard-known", mode=mode, refused=refused, effects=done))
    if mode == OFF:
        part.findings.append(Finding(WARNING, Reason("guard-is-off")))
    elif not all(map(find_spec, ("tree_sitter", "tree_sitter_bash"))):
        part.findings.append(Finding(WARNING, Reason("guard-cannot-read")))
    for row in ledger.modes()[:1]:
        if row.after in MODES and row.before in MODES and is_lighter(row.after, row.before):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.at / 1e9))
            facts = {"before": row.before, "after": row.after, "by": row.author, "when": when}
            part.findings.append(Finding(NOTE, Reason(reasons.GUARD_LIGHTER, **facts)))
    return part


def unfinished(store: "Store") -> Part:
    """Restores that were interrupted, and words that are still to be forgotten."""
    part = Part("restores", Reason("none-half-done"))
    ledger = store.ledger
    for row in ledger.journal.damaged():
        what = Reason("journal-unread", stage=row.stage)
        part.findings.append(Finding(ERROR, what, Reason("set-restore-aside")))
    for id in ledger.plans.damaged():
        what = Reason(reasons.PLAN_UNREAD, id=id)
        part.findings.append(Finding(WARNING, what, Reason("plan-again")))
    for open_row in ledger.journal.read():
        what = Reason("restore-unfinished", restore=open_row.id)
        part.findings.append(Finding(WARNING, what, Reason("next-command"), can_be_repaired=True))
    for owed in ledger.participants.owed():
        code = reasons.PARTICIPANT_FAILED if owed.problem else reasons.PARTICIPANT_WAITS
        what = Reason(code, name=owed.name, restore=owed.restore[:8], problem=owed.problem)
        advice = Reason("retry-participant", name=owed.name)
        part.findings.append(Finding(WARNING, what, advice))
    for each in ledger.participants.at().values():
        if each.problem:
            what = Reason("participant-not-captured", name=each.name, problem=each.problem)
            part.findings.append(Finding(WARNING, what, Reason("list-participants")))
    forget = ledger.forgets.under_way()
    if forget is not None:
        what = Reason("forget-unfinished", id=forget[0], phase=forget[1])
        part.findings.append(Finding(WARNING, what, Reason("go-on-forgetting")))
    return part


def clock(store: "Store", now: float) -> Part:
    """That time goes forward, and the disk's clock is ours."""
    part = Part("clock", Reason("clocks-agree"))
    last = store.ledger.last_event_at()
    ahead = last / 1e9 - now if last is not None else 0.0
    if ahead > _AHEAD:
        what = Reason("events-ahead", minutes=round(ahead / 60))
        part.findings.append(Finding(WARNING, what, Reason("set-clock")))
    try:
        touched = os.lstat(store.clock_path).st_mtime
    except OSError:
        return part
    if touched - now > _SKEW:
        what = Reason("disk-clock-ahead", seconds=round(touched - now))
        part.findings.append(Finding(WARNING, what, Reason("set-both-clocks")))
    return part


def guarded(name: str, look: "Iterator[Part]") -> "Iterator[Part]":
    """The parts of a look; what goes wrong in it is a finding of its own."""
    try:
        yield from look
    except (TakebackError, OSError, ValueError, TypeError) as problem:
        action = _VERIFY if isinstance(problem, DamagedStoreError) else ()
        what = Reason("part-unread", problem=str(problem))
        yield Part(name, None, [Finding(ERROR, what, action)])


_LITTLE, _HARDLY_ANY = 1_000_000_000, 100_000_000
_MOST_NAMED = 5
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def place(home: "Home") -> Part:
    """Where the stores are, and whether that is a disk to rely on."""
    part = Part("place", Reason("at", path=os.fsdecode(home.path)))
    kind = machine.network_file_system(home.path)
    if kind is not None:
        what = Reason("network-disk", kind=kind)
        part.findings.append(Finding(ERROR, what, Reason("move-home")))
    return part


def space(home: "Home") -> Part:
    """How much room there is."""
    found = os.statvfs(home.path)
    free = found.f_bavail * found.f_frsize
    part = Part("space", Reason("free", bytes=free))
    shown = os.fsdecode(home.path)
    if found.f_flag & os.ST_RDONLY:
        what = Reason("read-only", path=shown)
        part.findings.append(Finding(ERROR, what, Reason("make-writable")))
    if found.f_files and not found.f_favail:
        what = Reason("no-inodes", path=shown)
        part.findings.append(Finding(ERROR, what, Reason("delete-files")))
    if free < _LITTLE:
        severity = ERROR if free < _HARDLY_ANY else WARNING
        what = Reason("little-space", bytes=free)
        part.findings.append(Finding(severity, what, Reason("free-space")))
    return part


def permissions(home: "Home", id: "str | None") -> Part:
    """That nobody else can reach anything: 0700 and 0600, whatever the umask was."""
    part = Part("permissions", Reason("private"))
    wrong = list(_not_private(home, id))
    for path, how in wrong[:_MOST_NAMED]:
        entry = os.lstat(path)
        is_ours = entry.st_uid == os.geteuid()
        # A file that is open in a folder that is not is nothing that anybody could reach.
        is_reached = not is_ours or not stat.S_ISREG(entry.st_mode)
        shown = os.fsdecode(path)
        action = Reason("close")
        if not is_ours:
            action = Reason("chown", user=os.geteuid(), path=shown)
        severity = ERROR if is_reached else WARNING
        what = how.with_facts(path=shown)
        part.findings.append(Finding(severity, what, action, can_be_repaired=is_ours))
    if len(wrong) > _MOST_NAMED:
        more = Reason("more-not-private", count=len(wrong) - _MOST_NAMED)
        part.findings.append(Finding(ERROR, more, can_be_repaired=True))
    return part


def close(home: "Home", id: "str | None") -> "Iterator[Reason]":
    """Make everything private that is ours and is not; say what."""
    for path, how in list(_not_private(home, id)):
        found = os.lstat(path)
        if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode):
            continue
        try:
            fd = os.open(path, _OPEN)
        except OSError:
            continue
        try:
            operations.fchmod(fd, 0o700 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0o600)
        finally:
            os.close(fd)
        yield how.with_facts(path=os.fsdecode(path), closed=True)


def _not_private(home: "Home", id: "str | None") -> "Iterator[tuple[bytes, Reason]]":
    tops = [home.path, home.path + b"/projects", home.path + b"/registry", home.path + b"/lock"]
    tops.append(home.path + b"/config.toml")
    inner = _below(home.store_path(id)) if id is not None else ()
    # What was linked there has the modes of the user's own files, which it may still be.
    linked = home.store_path(id) + b"/rescue/" if id is not None else b""
    for path in (*tops, *inner):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if linked and path.startswith(linked) and not stat.S_ISDIR(found.st_mode):
            continue
        if found.st_uid != os.geteuid():
            yield path, Reason("not-yours")
        elif stat.S_ISLNK(found.st_mode):
            yield path, Reason("is-a-link")
        elif found.st_mode & 0o077:
            yield path, Reason("reachable", mode=f"{stat.S_IMODE(found.st_mode):04o}")


def _below(path: bytes) -> "Iterator[bytes]":
    yield path
    stack = [path]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    yield entry.path
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
        except OSError:
            continue


def registry(home: "Home") -> Part:
    """That the registry says of each project what its store says."""
    known = {root.id: root.entry() for root in home.roots_from_stores()}
    part = Part("registry", Reason("projects", count=len(known)))
    lines = [line for line in read_small(home.path + b"/registry").split(b"\n") if line]
    listed = {root.id: root.entry() for root in map(parse_line, lines) if root is not None}
    action = Reason("remake-registry")
    if listed != known:
        odd = sorted(id for id in listed.keys() | known.keys() if listed.get(id) != known.get(id))
        what = Reason("registry-wrong", ids=tuple(odd[:_MOST_NAMED]))
        part.findings.append(Finding(WARNING, what, action, can_be_repaired=True))
    elif len(listed) != len(lines):
        what = Reason("registry-unread")
        part.findings.append(Finding(WARNING, what, action, can_be_repaired=True))
    for name in sorted(os.listdir(home.path)):
        if name.endswith(b".tmp"):
            what = Reason("unfinished-file", path=os.fsdecode(home.path + b"/" + name))
            part.findings.append(Finding(NOTE, what, action, can_be_repaired=True))
    for left in removal.leftovers(home):
        what = Reason("store-left", path=os.fsdecode(left))
        part.findings.append(Finding(NOTE, what, action, can_be_repaired=True))
    return part
