"""Whatever breaks, and at whatever step: a checkpoint is absent or whole, and the next start works.

A share of the faults that is always the same; `scripts/faults` tries every one of them.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count, cycle
from pathlib import Path

import pytest

from faults import injection, judge, syscalls
from faults.children import Tell, in_child
from faults.durability import Volatile
from faults.fulldisk import fill_more_and_more
from faults.harness import Fault, Theatre, every_nth, parse
from faults.report import FULL, SECONDS, noted, stage
from faults.scenarios import (
    DELETES,
    FILLING,
    FIRST,
    LARGE,
    NO_CHANGE,
    SCENARIOS,
    SMALL,
    Scenario,
)
from faults.syncs import with_syncs
from hostile.stage import in_child as in_own_world
from takeback.disk import operations
from takeback.ledger.ledger import Ledger
from takeback.ledger.log.events import CheckpointRow
from takeback.objects.pack_write import PackWriter
from takeback.project import Project
from takeback.store import Store

NAMED = {scenario.name: scenario for scenario in SCENARIOS}
FEW, MANY = 3, 16
"""How many faults of a kind are tried where not every step is."""


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(("name", "sync"), with_syncs(NAMED, SMALL.name))
def test_absent_or_whole(name: str, sync: bool, tmp_path: Path) -> None:
    """After a fault at any step the checkpoint is absent or whole, and nothing else suffered."""
    wrong: list[str] = []
    scenario = NAMED[name]
    on_disk = tmp_path if scenario is LARGE or (FULL and sync and not scenario.heavy) else None
    with stage(on_disk) as folder:
        theatre = Theatre(scenario, folder)
        for kind in _kinds(scenario, sync):
            for cache in (True, False) if FULL and not scenario.heavy else (True,):
                wrong += _play_all(theatre, kind, sync=sync, cache=cache)
    assert not wrong, "\n".join(wrong)


def _play_all(theatre: Theatre, kind: str, *, sync: bool, cache: bool) -> list[str]:
    faults = theatre.faults(kind, sync=sync, cache=cache)
    chosen = faults if FULL else list(_share(theatre.scenario, kind, faults))
    wrong = []
    with noted(scenario=theatre.scenario.name, fault=kind, sync=sync, cache=cache) as note:
        note["steps"], note["faults"] = len(faults), len(chosen)
        for number, fault in enumerate(chosen):
            found = theatre.play(fault)
            if not number % 5:
                found += judge.fsck(theatre.home)
            wrong += [f"{fault.replay}\n    {what}" for what in found]
        note["wrong"] = len(wrong)
    return wrong


def _kinds(scenario: Scenario, sync: bool) -> tuple[str, ...]:
    if scenario is FILLING:
        return ("full",)
    if scenario.heavy and not FULL:
        return ("kill",) if sync else ("ENOSPC", "EIO")
    if scenario is LARGE and not sync:
        return ("kill", "ENOSPC", "EIO")
    return tuple(kind for kind in injection.ALL if kind != "full")


def _share(scenario: Scenario, kind: str, faults: list[Fault]) -> Iterator[Fault]:
    """The faults for `./check`: every fourth step of one scenario, every eleventh of the others."""
    chosen: Iterator[Fault]
    if not scenario.heavy and kind in _everywhere(scenario):
        apart = 4 if scenario is SMALL else 11
        chosen = (fault for fault in faults if fault.step % apart == fault.sync)
    elif scenario is SMALL:
        chosen = every_nth(faults, FEW)
    else:
        chosen = iter([faults[sum(map(ord, kind)) % len(faults)]])
    for fault, cache in zip(chosen, cycle((True, True, False)), strict=False):
        yield fault._replace(cache=cache)


def _everywhere(scenario: Scenario) -> tuple[str, ...]:
    """The kinds of fault that `./check` tries all along a scenario."""
    return ("kill", "ENOSPC", *injection.WRITES_ONLY) if scenario is SMALL else ("kill", "full")


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("scenario", [FIRST, SMALL], ids=lambda scenario: scenario.name)
def test_killed_twice(scenario: Scenario) -> None:
    """Also the start that cleans up after a kill may be killed at any of its steps."""
    wrong = []
    with stage() as folder, noted(killed_twice=scenario.name) as note:
        theatre = Theatre(scenario, folder)
        faults = theatre.faults("kill", sync=True, cache=True)
        played = 0
        for fault in every_nth(faults, MANY if FULL else FEW):
            for step in count(1, 1 if FULL else len(faults) // FEW):
                found = theatre.play_twice(fault, step)
                if found is None:
                    break
                played += 1
                wrong += [f"{fault}, then killed at step {step}: {what}" for what in found]
        note["faults"] = played
    assert not wrong, "\n".join(wrong)


def test_replay(tmp_path: Path) -> None:
    """One fault, named in the environment as a failure prints it, or a fixed one."""
    fault = parse(os.environ.get("FAULT", "small:kill:12:sync:cache"))
    known = [scenario for scenario in SCENARIOS if scenario.name == fault.scenario]
    assert all(Theatre(scenario, tmp_path).play(fault) == [] for scenario in known)


def test_all_is_synced_before_the_commit(tmp_path: Path) -> None:
    """When the ledger commits a checkpoint, a power cut could not take anything it needs."""
    tree, home = tmp_path / "tree", tmp_path / "home"
    tree.mkdir()
    FIRST.edit(tree)
    books = Volatile()

    def play(tell: Tell) -> None:
        operations.hook = books
        with Project.open(os.fsencode(tree), home=os.fsencode(home)) as project:
            project.checkpoint()
        needed = [path for path in books.at_commit[-1] if _is_needed(path, home)]
        tell({"lost": sorted(os.path.relpath(path, home) for path in needed)})

    assert in_child(play).last("lost") == []


def _is_needed(path: str, home: Path) -> bool:
    if not Path(path).is_relative_to(home):
        return False
    # The ledger is synced by SQLite, which also syncs the folder it is in.
    return os.path.isdir(path) or path.endswith(".pack") or os.path.basename(path) == "root"


# -- real disks and real system calls --------------------------------------------------------


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system")
@pytest.mark.parametrize("scenario", [FIRST, SMALL], ids=lambda scenario: scenario.name)
def test_a_full_disk(scenario: Scenario) -> None:
    """On a file system that is really full a checkpoint fails in our words, or is whole."""

    def play() -> None:
        with stage() as folder, noted(full_disk=scenario.name) as note:
            wrong = fill_more_and_more(
                scenario, folder, 1 if FULL else 4, lambda tried: note.update(fillings=tried)
            )
            assert not wrong, "\n".join(wrong)

    in_own_world(play, mounts=True)


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not syscalls.TRACER, reason="needs strace")
@pytest.mark.parametrize("close", [True, False], ids=["closed", "left"])
@pytest.mark.parametrize(
    "scenario", [FIRST, NO_CHANGE, SMALL, DELETES], ids=lambda scenario: scenario.name
)
def test_every_system_call(scenario: Scenario, close: bool) -> None:
    """Killed at any system call, or with any of them failing: absent or whole, also in SQLite."""
    wrong = []
    with stage() as folder, noted(system_calls=scenario.name, closed=close) as note:
        theatre = Theatre(scenario, folder)
        every = list(syscalls.calls(theatre))
        chosen = every if FULL else every[close :: len(every) // FEW]
        for call in chosen:
            wrong += [f"{call}: {what}" for what in syscalls.play(theatre, call, close=close)]
        note["faults"] = len(chosen)
    assert not wrong, "\n".join(wrong)


# -- does the harness see anything? ----------------------------------------------------------


def _never_cleans_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "recover", lambda _self: None)


def _commits_before_the_pack_is_there(patch: pytest.MonkeyPatch) -> None:
    finish, rename = PackWriter.finish, operations.rename
    waiting: list[tuple[bytes, bytes]] = []

    def early(writer: PackWriter) -> object:
        patch.setattr(operations, "rename", lambda *names: waiting.append(names))
        try:
            return finish(writer)
        finally:
            patch.setattr(operations, "rename", rename)

    def late(store: Store, row: CheckpointRow, before: CheckpointRow | None) -> None:
        for names in waiting:
            rename(*names)
        publish(store, row, before)

    publish = Store.publish
    patch.setattr(PackWriter, "finish", early)
    patch.setattr(Store, "publish", late)


def _forgets_to_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "_commit", lambda _self: None)


SABOTAGE = (
    _never_cleans_up,
    _commits_before_the_pack_is_there,
    _forgets_to_commit,
)


@pytest.mark.parametrize("break_it", SABOTAGE, ids=lambda way: way.__name__.strip("_"))
def test_sabotage_is_seen(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product that breaks one rule of the protocol does not pass the harness."""
    with stage() as folder:
        theatre = Theatre(SMALL, folder)
        faults = theatre.faults("kill", sync=True, cache=True)
        break_it(monkeypatch)
        assert any(theatre.play(fault) for fault in reversed(faults))
