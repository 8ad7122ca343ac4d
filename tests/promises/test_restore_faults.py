"""Whatever breaks in a restore, at whatever step: the tree is before or after, never between.

A share of the faults that is always the same; `scripts/faults` tries every one of them.
"""

import json
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from faults import judge, syscalls
from faults.children import Tell, in_child
from faults.harness import Fault, open_project, parse
from faults.report import FULL, SECONDS, noted, stage
from faults.restores import (
    CHAIN,
    LINKS,
    MIXED,
    RENAMED_FOLDER,
    RESTORES,
    THOUSAND,
    TO_FOLDER,
    Restore,
)
from faults.rewinding import Rewinding
from faults.syncs import with_syncs
from hostile.ground import PLAIN_USER
from hostile.stage import in_child as in_own_world

NAMED = {restore.name: restore for restore in RESTORES}
KINDS = ("kill", "ENOSPC", "EIO", "EACCES")
MORE = {
    MIXED.name: ("interrupt", "torn", "half", "full", "broken"),
    TO_FOLDER.name: ("interrupt", "broken"),
    CHAIN.name: ("interrupt", "full"),
}
"""What else is tried where."""

SECONDS_FOR_A_THOUSAND = 2.0


class Tried(NamedTuple):
    """How many steps there are, at how many of them a fault was tried, and what was wrong."""

    steps: int
    faults: int
    wrong: list[str]


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(("name", "sync"), with_syncs(NAMED, MIXED.name))
def test_before_or_after(name: str, sync: bool) -> None:
    """After a fault at any step the tree is before or after, and the log knows which."""
    wrong = []
    restore = NAMED[name]
    with stage() as folder:
        theatre = None if _needs_rights_taken(restore) else Rewinding(restore, folder)
        for kind in (*KINDS, *MORE.get(restore.name, ())):
            with noted(scenario=restore.name, fault=kind, sync=sync) as note:
                if theatre is None:
                    tried = _with_rights_taken(restore, folder / kind, kind, sync)
                else:
                    tried = _play_all(theatre, kind, sync)
                note["steps"], note["faults"] = tried.steps, tried.faults
                note["wrong"] = len(tried.wrong)
                wrong += tried.wrong
    assert not wrong, "\n".join(wrong)


def _needs_rights_taken(restore: Restore) -> bool:
    return restore.plain and os.geteuid() == 0


def _with_rights_taken(restore: Restore, folder: Path, kind: str, sync: bool) -> Tried:
    """Play it as an ordinary user, to whom a folder can be closed."""
    folder.parent.chmod(0o755)
    folder.mkdir()
    os.chown(folder, PLAIN_USER, PLAIN_USER)
    said = folder / "said"

    def play() -> None:
        said.write_text(json.dumps(_play_all(Rewinding(restore, folder), kind, sync)))

    in_own_world(play, plain=True)
    return Tried(*json.loads(said.read_text()))


def _play_all(theatre: Rewinding, kind: str, sync: bool) -> Tried:
    faults = theatre.faults(kind, sync=sync, cache=True)
    chosen = faults if FULL and not theatre.restore.heavy else _share(theatre.restore, faults)
    wrong = []
    for number, fault in enumerate(chosen):
        found = theatre.play(fault)
        if FULL and not number % 10:
            found += judge.fsck(theatre.home)
        wrong += [f"{fault.replay}\n    {what}" for what in found]
    return Tried(len(theatre.steps()), len(chosen), wrong)


def _share(restore: Restore, faults: list[Fault]) -> list[Fault]:
    """The faults for `./check`: with each kind at other steps, more of the kills."""
    if FULL:
        return _spread(faults, 100)
    few = 2 if restore is MIXED else 1
    return _spread(faults, 4 * few if faults[0].kind == "kill" else few)[: 4 * few]


def _spread(faults: list[Fault], number: int) -> list[Fault]:
    """At most so many, evenly over the steps; where they begin depends on the kind of fault."""
    apart = max(1, len(faults) // number)
    begin = sum(map(ord, faults[0].kind)) + apart // 2 * faults[0].sync
    return faults[begin % apart :: apart]


def test_replay(tmp_path: Path) -> None:
    """One fault, named in the environment as a failure prints it, or a fixed one."""
    fault = parse(os.environ.get("FAULT", "mixed:kill:80:sync:cache"))
    known = [restore for restore in RESTORES if restore.name == fault.scenario]
    assert [Rewinding(restore, tmp_path).play(fault) for restore in known] in ([], [[]])


# -- recovery ----------------------------------------------------------------------------------


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    "restore", [MIXED, RENAMED_FOLDER, TO_FOLDER, LINKS], ids=lambda restore: restore.name
)
def test_killed_twice(restore: Restore) -> None:
    """Also recovery may be killed at any of its steps: the next one ends in before or after."""
    _break_recovery(restore, "kill", 8 if FULL else 2)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EACCES", "broken", "interrupt"])
def test_recovery_that_fails(kind: str) -> None:
    """If recovery meets an error it says so, and the next start recovers."""
    _break_recovery(MIXED, kind, 3 if FULL else 2)


def _break_recovery(restore: Restore, kind: str, number: int) -> None:
    wrong = []
    with stage() as folder, noted(killed_twice=f"{restore.name}, {kind} in recovery") as note:
        theatre = Rewinding(restore, folder)
        played = 0
        for first in _some(theatre.interruptions(1 if FULL else 9), number):
            for step in count(1 if FULL else 4, 1 if FULL else 13):
                found = theatre.play_recovery(first, kind, step)
                if found is None:
                    break
                played += 1
                wrong += [f"{first}, then {kind} at step {step}: {what}" for what in found]
        note["faults"] = played
    assert played
    assert not wrong, "\n".join(wrong)


def _some(faults: list[Fault], number: int) -> Iterator[Fault]:
    """So many of the faults, from the first to the last."""
    for place in range(number):
        yield faults[place * (len(faults) - 1) // (number - 1)]


@pytest.mark.timeout(SECONDS)
def test_a_thousand_files_recover_within_two_seconds() -> None:
    """Whoever comes next has the tree back, and is told, before he gets impatient."""
    with stage() as folder:
        theatre = Rewinding(THOUSAND, folder)
        steps = theatre.steps()
        moves = [n for n, step in enumerate(steps, 1) if step in ("exchange", "move")]
        for step in (moves[0], moves[len(moves) // 2], moves[-1]):
            # On a machine that has other things to do, one of three tries may be slow.
            tries = (_time_to_recover(theatre, step) for _ in range(3))
            assert any(took <= SECONDS_FOR_A_THOUSAND for took in tries), f"killed at {step}"


def _time_to_recover(theatre: Rewinding, step: int) -> float:
    theatre.interrupt(Fault(theatre.restore.name, "kill", step))

    def play(tell: Tell) -> None:
        start = time.monotonic()
        with open_project(theatre.tree, theatre.home) as project:
            tell({"took": str(time.monotonic() - start), "said": bool(project.recovered)})

    ended = in_child(play)
    assert ended.last("said"), ended
    assert theatre.places() == ["0"]
    return float(str(ended.last("took")))


# -- system calls ------------------------------------------------------------------------------


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not syscalls.TRACER, reason="needs strace")
@pytest.mark.parametrize("restore", [MIXED, TO_FOLDER], ids=lambda restore: restore.name)
def test_every_system_call(restore: Restore) -> None:
    """Killed at any system call, or with any of them failing: before or after, also in SQLite."""
    wrong = []
    with stage() as folder, noted(system_calls=restore.name, closed=False) as note:
        theatre = Rewinding(restore, folder)
        every = list(syscalls.calls(theatre))
        chosen = every if FULL else every[3 :: len(every) // 4]
        for call in chosen:
            wrong += [f"{call}: {what}" for what in syscalls.play(theatre, call, close=False)]
        note["faults"] = len(chosen)
    assert not wrong, "\n".join(wrong)
