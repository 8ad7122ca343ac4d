"""Whatever breaks while a store is put in order: nothing that should stay is lost, and it goes on.

A share of the faults that is always the same; `scripts/faults` tries every one of them.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path

import pytest

from faults import judge
from faults.harness import Fault, every_nth, parse
from faults.report import FULL, SECONDS, noted, stage
from faults.tidying import NAME, Tidying
from takeback.disk import operations
from takeback.ledger.log import archive
from takeback.ledger.retention import Care
from takeback.objects import pack_merge
from takeback.objects.pack_merge import Order
from takeback.store import Store

KINDS = ("kill", "ENOSPC", "EIO", "EACCES", "torn", "half", "interrupt", "full", "broken")
FEW = {"kill": 6, "ENOSPC": 3, "EIO": 2}


@pytest.fixture(scope="module")
def theatre() -> Iterator[Tidying]:
    """A store that has something to let go and much to put together."""
    with stage() as folder:
        yield Tidying(folder)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost(kind: str, theatre: Tidying) -> None:
    """After a fault at any step what is kept is whole, undo works, and the next run ends it."""
    faults = theatre.faults(kind, sync=True)
    chosen = faults if FULL else list(every_nth(faults, FEW.get(kind, 1)))
    wrong = []
    with noted(scenario=NAME, fault=kind, sync=True) as note:
        note["steps"], note["faults"] = len(theatre.steps()), len(chosen)
        for number, fault in enumerate(chosen):
            found = theatre.play(fault)
            if not number % 5:
                found += judge.fsck(theatre.home)
            wrong += [f"{fault.replay}\n    {what}" for what in found]
        note["wrong"] = len(wrong)
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(SECONDS)
def test_killed_twice(theatre: Tidying) -> None:
    """Also the run that goes on after a kill may be killed at any of its steps."""
    faults = theatre.faults("kill", sync=True)
    wrong, played = [], 0
    with noted(killed_twice=NAME) as note:
        for fault in every_nth(faults, 12 if FULL else 2):
            for step in count(3, 5 if FULL else len(faults) // 2):
                found = theatre.play_twice(fault, step)
                if found is None:
                    break
                played += 1
                wrong += [f"{fault}, then killed at step {step}: {what}" for what in found]
        note["faults"] = played
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(SECONDS)
def test_killed_while_events_are_archived(theatre: Tidying) -> None:
    """An event is in the log or in the archive, whenever the process dies."""
    wrong = []
    every = theatre.steps_of_archive()
    for step in chain.from_iterable(every if FULL else every[:1]):
        fault = Fault(NAME, "kill", step, sync=True)
        wrong += [f"{fault.replay}\n    {what}" for what in theatre.play(fault)]
    assert not wrong, "\n".join(wrong)


def test_replay(tmp_path: Path) -> None:
    """One fault, named in the environment as a failure prints it, or a fixed one."""
    fault = parse(os.environ.get("FAULT", f"{NAME}:kill:40:sync:cache"))
    if fault.scenario == NAME:
        assert Tidying(tmp_path).play(fault) == []


# -- does the harness see anything? ------------------------------------------------------------


def _removes_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Old packs go as soon as the new ones are written."""
    merge = pack_merge.merge

    def eager(directory: bytes, pieces: object, **options: object) -> object:
        wanted = list(pieces)  # type: ignore[call-overload]
        made = merge(directory, wanted, **options)  # type: ignore[arg-type]
        for name in {piece.source for piece in wanted} - {pack.name for pack in made}:
            operations.unlink(directory + b"/" + name + b".pack")
        return made

    patch.setattr(pack_merge, "merge", eager)


def _forgets_files_outside(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Care, "outside_above", lambda *_: ())


def _never_sweeps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "sweep", lambda *_: False)


def _drops_what_it_should_copy(patch: pytest.MonkeyPatch) -> None:
    pieces = Order.pieces

    def fewer(order: Order) -> list[pack_merge.Piece]:
        wanted = list(pieces(order))
        sources = [piece.source for piece in wanted]
        return [p for p in wanted if not (p.series == b"flog" and sources.count(p.source) > 1)]

    patch.setattr(Order, "pieces", fewer)


def _archives_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(archive, "_pack", lambda _: zlib.compress(b"[]"))


SABOTAGE = (
    _removes_before_the_commit,
    _forgets_files_outside,
    _never_sweeps,
    _drops_what_it_should_copy,
    _archives_nothing,
)


@pytest.mark.parametrize("break_it", SABOTAGE, ids=lambda way: way.__name__.strip("_"))
def test_sabotage_is_seen(
    break_it: Callable[[pytest.MonkeyPatch], None],
    theatre: Tidying,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A product that breaks one rule of the protocol does not pass the harness."""
    faults = theatre.faults("kill", sync=True)
    break_it(monkeypatch)
    assert any(theatre.play(fault) for fault in every_nth(list(reversed(faults)), 12))
