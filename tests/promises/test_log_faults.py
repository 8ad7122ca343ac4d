"""Whatever breaks while something is recorded: no event is lost, none is there twice.

A share of the faults that is always the same; `scripts/faults` tries every one of them.
"""

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from faults import injection, judge, syscalls
from faults.acts import ACTS, DEAD_SESSION, INTERRUPTED_TURN, TURN_END, Act
from faults.harness import Fault, Theatre, every_nth, parse
from faults.logbook import Logbook
from faults.report import FULL, SECONDS, noted, stage
from faults.syncs import with_syncs
from takeback.ledger.ledger import Ledger
from takeback.ledger.log import projections
from takeback.ledger.log.events import Event
from takeback.ledger.schema import Tables

MAKERS: dict[str, Callable[[Path], Theatre]] = {
    **{act.scenario.name: partial(Logbook, act) for act in ACTS},
}


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(("name", "sync"), with_syncs(MAKERS, TURN_END.scenario.name))
def test_recorded_once_or_not_at_all(name: str, sync: bool) -> None:
    """After a fault at any step each request has one event or none, and trying again completes."""
    wrong: list[str] = []
    with stage() as folder:
        theatre = MAKERS[name](folder)
        for kind in injection.ALL:
            if kind != "full":
                wrong += _play_all(theatre, kind, sync=sync)
    assert not wrong, "\n".join(wrong)


def _play_all(theatre: Theatre, kind: str, *, sync: bool) -> list[str]:
    wrong = []
    name = theatre.scenario.name
    faults = theatre.faults(kind, sync=sync, cache=True)
    chosen = faults if FULL else _share(kind, faults)
    with noted(scenario=name, fault=kind, sync=sync, cache=True) as note:
        note["steps"], note["faults"] = len(faults), len(chosen)
        for number, fault in enumerate(chosen):
            found = theatre.play(fault)
            if FULL and not number % 5:
                found += judge.fsck(theatre.home)
            wrong += [f"{fault.replay}\n    {what}" for what in found]
        note["wrong"] = len(wrong)
    return wrong


def _share(kind: str, faults: list[Fault]) -> list[Fault]:
    """The faults for `./check`: kills all along the way, other kinds late, where events are."""
    if kind == "kill":
        return [fault for fault in faults if fault.step % 12 == 3 * fault.sync]
    return [fault for fault in faults if fault.step >= faults[-1].step * (3 - fault.sync) // 4][:1]


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    "act", [TURN_END, INTERRUPTED_TURN, DEAD_SESSION], ids=lambda act: act.scenario.name
)
def test_killed_twice(act: Act) -> None:
    """Also the start that tries again may be killed at any of its steps."""
    wrong = []
    with stage() as folder, noted(killed_twice=act.scenario.name) as note:
        theatre = Logbook(act, folder)
        faults = theatre.faults("kill", sync=True, cache=True)
        played = 0
        for fault in every_nth(faults, 16 if FULL else 2):
            for step in count(1, 1 if FULL else len(faults) // 3):
                found = theatre.play_twice(fault, step)
                if found is None:
                    break
                played += 1
                wrong += [f"{fault}, then killed at step {step}: {what}" for what in found]
        note["faults"] = played
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not syscalls.TRACER, reason="needs strace")
@pytest.mark.parametrize("name", ["turn-end", "dead-session"])
def test_every_system_call(name: str) -> None:
    """Killed at any system call, or with any of them failing: once or not at all."""
    wrong = []
    with stage() as folder, noted(system_calls=name, closed=False) as note:
        theatre = MAKERS[name](folder)
        every = list(syscalls.calls(theatre))
        chosen = every if FULL else every[:: len(every) // 2]
        for call in chosen:
            wrong += [f"{call}: {what}" for what in syscalls.play(theatre, call, close=False)]
        note["faults"] = len(chosen)
    assert not wrong, "\n".join(wrong)


def test_replay(tmp_path: Path) -> None:
    """One fault, named in the environment as a failure prints it, or a fixed one."""
    fault = parse(os.environ.get("FAULT", "turn-end:kill:30:sync:cache"))
    if fault.scenario in MAKERS:
        assert MAKERS[fault.scenario](tmp_path).play(fault) == []


# -- does the harness see anything? ----------------------------------------------------------


def _forgets_to_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "_commit", lambda _self: None)


def _knows_no_requests(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "requested", lambda _self, _request: None)


def _writes_tables_later(patch: pytest.MonkeyPatch) -> None:
    """The tables are not written in the transaction of the event."""
    apply = projections.apply
    waiting: list[Event] = []

    def later(tables: Tables, event: Event) -> None:
        waiting.append(event)
        while len(waiting) > 1:
            apply(tables, waiting.pop(0))

    patch.setattr(projections, "apply", later)


@pytest.mark.parametrize(
    "break_it",
    [_forgets_to_commit, _knows_no_requests, _writes_tables_later],
    ids=lambda way: way.__name__.strip("_"),
)
def test_sabotage_is_seen(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product that breaks one rule of the log does not pass the harness."""
    with stage() as folder:
        theatre = Logbook(INTERRUPTED_TURN, folder)
        faults = theatre.faults("kill", sync=True, cache=True)
        break_it(monkeypatch)
        assert any(theatre.play(fault) for fault in reversed(faults))
