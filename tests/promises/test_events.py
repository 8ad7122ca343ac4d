"""Many processes write one log, some of them killed: no gap, no event lost, none twice."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

import pytest

import oracle
from faults.children import Child, Tell
from faults.judge import fsck
from faults.report import FULL, SECONDS, noted, stage
from spoken import spoken
from takeback.disk.lock import PATIENCE
from takeback.ledger.log.events import Event
from takeback.project import Project
from takeback.session import Session

WORKERS = 8
EACH = 500 if FULL else 40
"""How many requests each worker makes; each is one event, besides the checkpoints it needs."""
ROUND = 5
"""A turn, a step in it, its end, a checkpoint, and the end of the turn."""
KILL_AFTER = 50 if FULL else 20


@pytest.mark.timeout(SECONDS)
def test_each_event_once() -> None:
    """Eight processes write their events while one after the other is killed and comes back."""
    with stage() as folder, noted(events=WORKERS, each=EACH) as note:
        tree, home = folder / "tree", folder / "home"
        tree.mkdir()
        with _opened(tree, home) as project:
            project.checkpoint()
        crowd = _Crowd(tree, home)
        begin = time.monotonic()
        crowd.run()
        assert crowd.broken == []
        assert len(crowd.acked) == WORKERS * (EACH + 1)
        assert crowd.kills >= WORKERS * EACH // KILL_AFTER // 2
        assert crowd.longest < PATIENCE
        with _opened(tree, home) as project:
            written = list(project.workspace.ledger.events())
            note["acked"], note["killed"] = len(crowd.acked), crowd.kills
            note["written"], note["retried"] = len(written), crowd.retried
            note["longest_wait_ms"] = int(crowd.longest * 1000)
            note["per_second"] = int(len(written) / (time.monotonic() - begin))
            wrong = [*_judge(written, crowd.acked), *_judge_store(project, tree, folder / "out")]
        wrong += fsck(home)
        assert not wrong, "\n".join(wrong[:20])


def _opened(tree: Path, home: Path) -> Project:
    return Project.open(os.fsencode(tree), home=os.fsencode(home))


def _is_held(worker: int) -> bool:
    """Half of the workers hold their sessions, which others close when they are killed."""
    return worker % 2 == 1


class _Crowd:
    """The workers, and whoever kills them."""

    def __init__(self, tree: Path, home: Path) -> None:
        self._tree = tree
        self._home = home
        self.acked: dict[str, str] = {}
        self.broken: list[str] = []
        self.longest = 0.0
        self.kills = 0
        self.retried = 0
        self._children: dict[int, Child] = {}

    def run(self) -> None:
        """Start everybody, listen, kill now and then, and start the killed again."""
        with DefaultSelector() as ears:
            for worker in range(WORKERS):
                self._start(worker, ears)
            while ears.get_map():
                for key, _ in ears.select():
                    self._listen(int(key.data), ears)

    def _start(self, worker: int, ears: DefaultSelector) -> None:
        child = Child(lambda tell: self._work(tell, worker))
        self._children[worker] = child
        ears.register(child.fileno(), EVENT_READ, worker)

    def _listen(self, worker: int, ears: DefaultSelector) -> None:
        child = self._children[worker]
        heard = child.hear()
        if heard is None:
            ears.unregister(child.fileno())
            if os.WIFSIGNALED(child.end().status):
                self._start(worker, ears)
        elif "crashed" in heard:
            self.broken.append(str(heard["crashed"]))
        else:
            self._note(str(heard["request"]), str(heard["result"]))
            self.longest = max(self.longest, float(str(heard["took"])))

    def _note(self, request: str, result: str) -> None:
        if request not in self.acked:
            self.acked[request] = result
            if len(self.acked) % KILL_AFTER == 0:
                self._kill_somebody()
            return
        self.retried += 1
        if self.acked[request] != result:
            self.broken.append(f"{request} gave {self.acked[request]}, tried again {result}")

    def _kill_somebody(self) -> None:
        """Kill the next one in turn, whatever it is doing."""
        for turn in range(WORKERS):
            victim = self._children[(self.kills + turn) % WORKERS].pid
            if _is_running(victim):
                os.kill(victim, signal.SIGKILL)
                self.kills += 1
                return

    # -- in the worker -----------------------------------------------------------------------

    def _work(self, tell: Tell, worker: int) -> None:
        """Go on where the last one of this name was killed; ask again what was asked already."""
        done = sum(request.startswith(f"{worker}-") for request in self.acked)
        with _opened(self._tree, self._home) as project:
            begin = time.monotonic()

            def say(request: str, result: str) -> None:
                nonlocal begin
                took = str(time.monotonic() - begin)
                tell({"request": f"{worker}-{request}", "result": result, "took": took})
                begin = time.monotonic()

            asked, held = f"{worker}-session", _is_held(worker)
            session = project.session("claude", id=f"of {worker}", held=held, request=asked)
            say("session", session.id)
            for number in range(max(0, done - 1) // ROUND, EACH // ROUND):
                for request, result in self._round(project, session, worker, number):
                    say(request, result)

    def _round(
        self, project: Project, session: Session, worker: int, number: int
    ) -> Iterator[tuple[str, str]]:
        def ask(what: str) -> str:
            return f"{worker}-{number}-{what}"

        turn = session.turn(f"turn {number}", request=ask("turn"))
        yield f"{number}-turn", turn.id
        step = turn.step("Write", {"file_path": f"of-{worker}"}, request=ask("step"))
        yield f"{number}-step", step.id
        (self._tree / f"of-{worker}").write_text(f"{worker} {number}\n" * 20)
        step.end(request=ask("step-end"))
        yield f"{number}-step-end", ""
        yield f"{number}-checkpoint", project.checkpoint("", request=ask("checkpoint")).id
        turn.end(request=ask("turn-end"))
        yield f"{number}-turn-end", ""


def _is_running(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


# -- the judgement ---------------------------------------------------------------------------

_RESULT = ("session", "turn", "step", "checkpoint")
"""What requests return is the id that their events say under this name."""


def _judge(written: list[Event], acked: dict[str, str]) -> Iterator[str]:
    """What is wrong with the log."""
    if [event.seq for event in written] != list(range(1, len(written) + 1)):
        yield "the events have gaps"
    asked = {event.request: event for event in written if event.request}
    times = Counter(event.request for event in written if event.request)
    yield from (f"{request} is there {n} times" for request, n in times.items() if n > 1)
    for event in written:
        if any(not 0 < parent < event.seq for parent in event.parents if isinstance(parent, int)):
            yield f"event {event.seq} follows from {event.parents}"
    last: dict[str, int] = {}
    for request, result in acked.items():
        worker, what = request.split("-")[0], request.split("-", 2)[-1]
        found = asked.get(request)
        if found is None:
            # A turn that others closed while its process was dead needs no end of its own.
            if not (what.endswith("-end") and _is_held(int(worker))):
                yield f"{request} was acknowledged and is lost"
            continue
        if what in _RESULT and (found.payload or {}).get(what) != result:
            yield f"{request} gave {result}, the log says {found.payload}"
        if found.seq <= last.get(worker, 0):
            yield f"{request} stands before what its process did before"
        last[worker] = found.seq


def _judge_store(project: Project, tree: Path, out: Path) -> Iterator[str]:
    """What is wrong with everything that follows from the log."""
    yield from spoken(project.upkeep.examine()[0])
    yield from spoken(project.verify().problems)
    newest = project.checkpoint()
    project.extract(newest.id, out)
    yield from oracle.differences(oracle.picture(tree), oracle.picture(out))
    yield from spoken(project.upkeep.examine()[0])
    query = "SELECT label FROM turns WHERE closed IS NULL"
    yield from (
        f"`{label}` is still open" for (label,) in project.workspace.ledger._reader.rows(query)
    )
