"""Looks at a store after a fault, in a new process, and says everything that is wrong with it."""

import fcntl
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import oracle
from faults import injection
from faults.children import Ended, Tell, in_child
from faults.folders import remove
from oracle import Picture
from takeback.project import Project

SECONDS_TO_RECOVER = 2.0

_HOME = {"config.toml", "lock", "projects", "registry"}
_STORE = {"birth", "clock", "git", "index", "ledger.db", "ledger.db-shm", "ledger.db-wal", "lock",
          "reserve", "root", "upkeep"}  # fmt: skip
_GIT = {"HEAD", "config", "objects", "refs"}


class Before(NamedTuple):
    """What the oracle saw before the fault: each checkpoint, and the tree to be captured."""

    checkpoints: Mapping[str, Picture]
    tree: Picture


def judge(
    attempts: Collection[Ended],
    kind: str,
    change: Callable[[], None],
    court: "Court",
) -> list[str]:
    """Everything that is wrong after a fault of this kind; nothing if all is well."""
    acked = {id for attempt in attempts for id in attempt.every("acked")}
    wrong = [what for attempt in attempts for what in _heard(attempt, kind)]

    def play(tell: Tell) -> None:
        for what in court.hold(acked, kind, attempts, change):
            tell({"wrong": what})

    session = in_child(play)
    if session.status:
        wrong.append(f"after the fault: {session.last('crashed') or session.status}")
    return wrong + session.every("wrong")


def _heard(attempt: Ended, kind: str) -> Iterator[str]:
    """What was wrong with the faulty call itself."""
    yield from attempt.every("broken")
    yield from attempt.every("crashed")
    fired = bool(attempt.every("fired"))
    if kind not in injection.KILLS and attempt.status:
        yield f"the process ended with status {attempt.status}"
    if kind == "short" and fired and not attempt.every("acked"):
        yield "a short write, which is no error, made the checkpoint fail"
    if not (attempt.every("acked") or attempt.every("refused") or fired):
        yield "the call neither succeeded nor failed"


class Court:
    """One store after one fault."""

    def __init__(self, tree: Path, home: Path, before: Before) -> None:
        self._tree = tree
        self._home = home
        self._before = before
        self._out = home.parent / "out"

    def hold(
        self,
        acked: set[str],
        kind: str,
        attempts: Collection[Ended],
        change: Callable[[], None],
    ) -> Iterator[str]:
        """Open, compare, go on working, and compare again."""
        start = time.monotonic()
        with self._open() as project:
            took = time.monotonic() - start
            if took > SECONDS_TO_RECOVER:
                yield f"opening took {took:.1f} s"
            present = [checkpoint.id for checkpoint in project.checkpoints()]
            yield from self._compare(present, acked, kind, attempts)
            yield from self._extract_all(project, present)
            yield from verified(project, "right after the fault")
            yield from self._go_on(project, present, change)
        yield from self._locked()
        yield from self._events()

    def _open(self) -> Project:
        return Project.open(os.fsencode(self._tree), home=os.fsencode(self._home))

    # -- right after the fault -------------------------------------------------------------

    def _compare(
        self, present: list[str], acked: set[str], kind: str, attempts: Collection[Ended]
    ) -> Iterator[str]:
        """No checkpoint is lost, and none is there that nobody was told of, unless killed."""
        for lost in (self._before.checkpoints.keys() | acked) - set(present):
            yield f"checkpoint {lost} is lost"
        unknown = set(present) - self._before.checkpoints.keys() - acked
        refused = [why for attempt in attempts for why in attempt.every("refused")]
        if len(unknown) > 1:
            yield f"there are {len(unknown)} checkpoints that nobody was told of"
        if unknown and kind in injection.ERRORS and refused:
            yield f"there is a checkpoint in spite of {refused[0]!r}"

    def _extract_all(self, project: Project, present: list[str]) -> Iterator[str]:
        for id in present:
            expected = self._before.checkpoints.get(id, self._before.tree)
            yield from self._extract(project, id, expected)

    def _extract(self, project: Project, id: str, expected: Picture) -> Iterator[str]:
        target = self._out / id
        self._out.mkdir(exist_ok=True)
        try:
            project.extract(id, target)
            for difference in oracle.differences(expected, oracle.picture(target))[:3]:
                yield f"checkpoint {id} is not whole: {difference}"
        except Exception as problem:
            yield f"checkpoint {id} cannot be extracted: {problem!r}"
        finally:
            remove(self._out)

    # -- going on --------------------------------------------------------------------------

    def _go_on(
        self, project: Project, present: list[str], change: Callable[[], None]
    ) -> Iterator[str]:
        """The next checkpoints are made as if nothing had happened."""
        again = project.checkpoint("the next one")
        whole = present[:1] and present[0] not in self._before.checkpoints
        if whole and again.new:
            yield "the tree was captured twice"
        if again.id not in present:
            yield from self._extract(project, again.id, self._before.tree)
        yield from self._litter(project)
        change()
        later = project.checkpoint("later")
        if not later.new:
            yield "a later change was not seen"
        yield from self._extract(project, later.id, oracle.picture(self._tree))
        yield from verified(project, "after going on")
        yield from self._litter(project)

    def _litter(self, project: Project) -> Iterator[str]:
        """Nothing lies in the store that has no business there."""
        home, store = self._home, self._home / "projects" / project.id
        git = store / "git"
        packs = self._known_packs(store)
        allowed = {
            home: _HOME,
            home / "projects": {project.id},
            store: _STORE,
            git: _GIT,
            git / "objects": {"info", "pack"},
            git / "objects/info": set(),
            git / "objects/pack": {f"{p}.{end}" for p in packs for end in ("idx", "keep", "pack")},
            git / "refs": {"heads", "takeback"},
            git / "refs/heads": {"checkpoints"},
            git / "refs/takeback": set(),
        }
        for folder, names in allowed.items():
            for name in set(os.listdir(folder)) - names:
                yield f"litter: {(folder / name).relative_to(home)}"

    def _known_packs(self, store: Path) -> list[str]:
        with sqlite3.connect(store / "ledger.db") as db:
            names = [name for (name,) in db.execute("SELECT name FROM packs")]
        db.close()
        return names

    # -- after everything is closed --------------------------------------------------------

    def _locked(self) -> Iterator[str]:
        for path in self._home.rglob("lock"):
            with path.open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield f"{path.name} is still held"

    def _events(self) -> Iterator[str]:
        for ledger in self._home.glob("projects/*/ledger.db"):
            db = sqlite3.connect(ledger)
            numbers = [seq for (seq,) in db.execute("SELECT seq FROM events ORDER BY seq")]
            db.close()
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"the events have gaps: {numbers}"


def verified(project: Project, when: str) -> Iterator[str]:
    """What `verify` and `doctor` find."""
    for damage in project.verify().damage[:3]:
        yield f"verify, {when}: {damage.what}"
    for what in project.upkeep.examine()[0][:3]:
        yield f"doctor, {when}: {what}"


def fsck(home: Path) -> list[str]:
    """What git says about every git view in a store."""
    said = []
    for git in home.glob("projects/*/git"):
        command = ["git", f"--git-dir={git}", "fsck", "--strict", "--full", "--no-dangling"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        words = (done.stdout + done.stderr).strip()
        if done.returncode or (words and "notice: No default references" not in words):
            said.append(f"git fsck: {words or done.returncode}")
    return said
