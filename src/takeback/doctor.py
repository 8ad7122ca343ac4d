"""Examines everything about a project and the folder of all stores, and repairs what it can.

It never stops at the first thing that is wrong: a store that cannot be opened is a finding, too.
"""

import os

from takeback import location
from takeback.capture.project_rules import ProjectRules
from takeback.disk.home import Home
from takeback.errors import BusyError, DamagedStoreError, NewerStoreError, TakebackError
from takeback.model import reasons, results
from takeback.model.reasons import Reason
from takeback.model.results import ERROR, NOTE, WARNING, Examined, Finding, Part
from takeback.project import Project
from takeback.store import Store
from takeback.upkeep import doctor, stores
from takeback.upkeep.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.disk.home import Root


class Doctor:
    """Examines what there is for a folder."""

    def __init__(self, path: bytes, *, home: bytes) -> None:
        self._path = path
        self._home = Home(home)

    def examine(self, now: float, *, repair: bool = False) -> Examined:
        """Look at everything; with `repair`, put right what can be without loss first."""
        found = Examined()
        if not os.path.lexists(self._home.path):
            nothing = Reason("nothing-stored", path=os.fsdecode(self._home.path))
            found.parts = [Part("place", nothing)]
            return found
        if repair:
            found.repaired += doctor.close(self._home, None)
        root, problem = self._root()
        id = root.id if root is not None else None
        if repair:
            found.repaired += self._repair(root)
        found.parts += [
            doctor.place(self._home),
            doctor.permissions(self._home, id),
            *doctor.guarded("registry", self._registry()),
            *doctor.guarded("others", self._others(id, now)),
            doctor.space(self._home),
            self._settings(id),
            self._folder(root, problem),
        ]
        if root is not None:
            found.parts += self._store(root, found, now)
        return found

    def _root(self) -> "tuple[Root | None, TakebackError | None]":
        try:
            found = location.find(self._path, home=self._home.path)
        except TakebackError as problem:
            return None, problem
        return (found[0] if found is not None else None), None

    # -- parts -----------------------------------------------------------------------------

    def _registry(self) -> "Iterator[Part]":
        yield doctor.registry(self._home)

    def _others(self, id: "str | None", now: float) -> "Iterator[Part]":
        """The stores of other projects, as they look from outside."""
        others = [each for each in stores.stores(self._home, int(now * 1e9)) if each.id != id]
        part = Part("others", Reason("other-stores", count=len(others)))
        for each in others:
            if each.health != results.SOUND:
                root = os.fsdecode(each.root) if each.root is not None else "?"
                what = Reason(
                    "store-unwell", id=each.id, root=root, health=each.health, problem=each.problem
                )
                severity, action = WARNING, Reason("doctor-there")
                if each.health == results.OLDER:
                    severity, action = NOTE, Reason("remove-store", id=each.id)
                part.findings.append(Finding(severity, what, action))
        yield part

    def _settings(self, id: "str | None") -> Part:
        part = Part("settings", Reason("settings-understood"))
        settings = Settings(self._home.path, id)
        if settings.one("recording.on").value is False:
            part.findings.append(Finding(WARNING, Reason("recording-off"), Reason("turn-on")))
        for misfit in settings.misfits():
            severity = ERROR if misfit.is_refused else WARNING
            path = os.fsdecode(misfit.path)
            what = Reason("misfit", problem=misfit.problem, path=path)
            part.findings.append(Finding(severity, what, misfit.hint))
        return part

    def _folder(self, root: "Root | None", problem: "TakebackError | None") -> Part:
        if problem is not None:
            return Part("project", None, [_failed(problem)])
        if root is None:
            return Part("project", Reason("no-project"))
        part = Part("project", Reason("at", path=os.fsdecode(root.path)))
        state = stores.state_of(self._home, root)
        if state != "here":
            part.findings.append(Finding(WARNING, Reason("folder-state", state=state)))
        if ProjectRules(root, self._home).is_remote():
            what = Reason("files-on-network-disk")
            part.findings.append(Finding(NOTE, what, Reason("looked-at-twice")))
        return part

    def _store(self, root: "Root", found: Examined, now: float) -> "Iterator[Part]":
        try:
            store = Store(self._home.store_path(root.id), root.id, root.line)
        except (TakebackError, OSError) as problem:
            yield Part("store", None, [_not_opened(problem)])
            return
        try:
            found.problems, found.events = _examined(store)
            around = ProjectRules(root, self._home)
            yield from doctor.guarded("store", iter([doctor.store_format(store)]))
            yield doctor.ledger(found.problems, found.events)
            yield from doctor.guarded("packs", (doctor.packs(s) for s in (store,)))
            yield from doctor.guarded("git view", (doctor.git_view(s) for s in (store,)))
            yield from doctor.guarded("stat cache", _stat_cache(store, around))
            yield from doctor.guarded("leftovers", _leftovers(store, around))
            yield from doctor.guarded("rescues", (doctor.rescues(s) for s in (store,)))
            yield from doctor.guarded("agents", (doctor.agents(s) for s in (store,)))
            yield from doctor.guarded("lessons", (doctor.lessons(s) for s in (store,)))
            mode = str(Settings(self._home.path, root.id).one("guard.mode").value)
            yield from doctor.guarded("guard", (doctor.guard(s, mode) for s in (store,)))
            yield from doctor.guarded("restores", (doctor.unfinished(s) for s in (store,)))
            yield from doctor.guarded("clock", (doctor.clock(s, now) for s in (store,)))
        finally:
            store.close()

    # -- repairing -------------------------------------------------------------------------

    def _repair(self, root: "Root | None") -> "Iterator[Reason]":
        yield from self._repair_registry()
        if root is None:
            return
        yield from doctor.close(self._home, root.id)
        try:
            with Project(root, self._home) as project:
                yield from project.upkeep.repair()
        except (TakebackError, OSError):
            return  # what is wrong is told by the examination that follows

    def _repair_registry(self) -> "Iterator[Reason]":
        try:
            if doctor.registry(self._home).findings:
                with location.held_home(self._home):
                    self._home.clean_up()
                    self._home.write_registry()
                yield Reason(reasons.REGISTRY_REMADE)
        except (TakebackError, OSError):
            return


def _failed(problem: TakebackError) -> Finding:
    return Finding(ERROR, Reason(reasons.DAMAGED, problem=str(problem)), problem.actions)


def _examined(store: Store) -> "tuple[tuple[Reason, ...], int]":
    """What is wrong with the log, and how many events it has."""
    try:
        lost = tuple(store.check_anchor())
        with store.ledger.snapshot() as log:
            return (*log.check(), *lost), log.last_event()
    except (TakebackError, OSError) as problem:
        return (Reason(reasons.DAMAGED, problem=str(problem)),), 0


def _not_opened(problem: Exception) -> Finding:
    action = getattr(problem, "actions", ())
    if isinstance(problem, NewerStoreError):
        action = Reason("update")
    elif isinstance(problem, DamagedStoreError):
        action = Reason("begin-anew")
    return Finding(ERROR, Reason("store-unopened", problem=str(problem)), action)


def _stat_cache(store: Store, around: ProjectRules) -> "Iterator[Part]":
    mark = None
    try:
        with around.site() as site:
            mark = around.mark(site)
    except (TakebackError, OSError):
        pass  # the folder is not there; that is told elsewhere
    yield doctor.stat_cache(store, mark)


def _leftovers(store: Store, around: ProjectRules) -> "Iterator[Part]":
    try:
        root = around.open_root()
    except (TakebackError, OSError):
        root = None
    try:
        yield doctor.leftovers(store, root, is_held=_is_held(store))
    finally:
        if root is not None:
            os.close(root)


def _is_held(store: Store) -> bool:
    """Whether somebody is at work; that the last one died stays as it is said in the lock."""
    for lock in (store.lock, store.gc_lock):
        if lock is store.gc_lock and not os.path.lexists(lock.path):
            continue
        try:
            died = lock.acquire(0)
        except BusyError:
            return True
        except OSError:
            return False  # the disk takes no writes, so nobody is at work
        if died:
            lock.leave_unclean()
        lock.release()
    return False
