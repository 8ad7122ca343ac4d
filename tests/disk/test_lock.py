"""The lock of a store: other opens, forks and interrupts neither drop it nor keep it."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType, FunctionType

import pytest

import takeback
from takeback.cli import app
from takeback.disk.lock import PATIENCE, Held, Lock
from takeback.errors import BusyError

MAIN = Path(app.__file__).parent.parent / "__main__.py"


def _command(tree: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-I", MAIN, *words], cwd=tree, check=True, capture_output=True)


def test_a_second_open_does_not_drop_the_locks_of_the_first(tree: Path, home: Path) -> None:
    """Two Projects in one process and a third in another: no acknowledged checkpoint vanishes."""
    (tree / "a").write_text("0")
    with takeback.open(tree, home=home) as first:
        made = [first.checkpoint().id]
        with takeback.open(tree, home=home):
            _command(tree, "checkpoint")
            for number in range(3):
                (tree / "a").write_text(f"{number + 1}")
                made.append(first.checkpoint().id)
    with takeback.open(tree, home=home) as later:
        assert [c.id for c in later.checkpoints()] == made[::-1]
        assert later.verify().problems == ()


def test_a_project_may_be_carried_over_a_fork(tree: Path, home: Path) -> None:
    """What a forked child checkpoints stays, whatever its parent does with the same Project."""
    (tree / "a").write_text("parent")
    project = takeback.open(tree, home=home)
    project.checkpoint("parent")
    go, told = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.read(go[0], 1)
            (tree / "a").write_text("child")
            os.write(told[1], project.checkpoint("child").id.encode())
            status = 0
        finally:
            os._exit(status)
    project.close()
    os.write(go[1], b"!")
    assert os.waitpid(child, 0)[1] == 0
    made = os.read(told[0], 99).decode()
    for end in (*go, *told):
        os.close(end)
    with takeback.open(tree, home=home) as later:
        assert next(c.id for c in later.checkpoints()) == made
        assert later.verify().problems == ()


@pytest.mark.parametrize("moment", [Held.__exit__, Held._give_back, Held._let_go, Lock.release])
def test_an_interrupt_before_the_lock_is_given_back_does_not_keep_it(
    tmp_path: Path, moment: FunctionType
) -> None:
    """Ctrl-C before the first step of leaving the block leaves lock and mutex to others."""
    lock = Lock(os.fsencode(tmp_path / "lock"))

    def interrupt(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is moment.__code__:
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    with pytest.raises(KeyboardInterrupt), Held(lock):
        sys.settrace(interrupt)
    sys.settrace(before)
    assert not lock.is_held
    taken: list[bool] = []
    other = threading.Thread(target=lambda: taken.append(lock.mutex.acquire(blocking=False)))
    other.start()
    other.join()
    assert taken == [True]
    Lock(lock.path).acquire(patience=0)


def test_a_lock_that_an_interrupt_left_is_not_taken_from_who_took_it_since(tmp_path: Path) -> None:
    """What is given back late is not given back while somebody works inside of it."""
    lock = Lock(os.fsencode(tmp_path / "lock"))
    left = Held(lock)
    left.__enter__()
    with Held(lock):
        del left
        with pytest.raises(BusyError):
            Lock(lock.path).acquire(patience=0)
    assert not lock.is_held


class _Interrupted(Lock):
    """A lock that is interrupted when it was just taken."""

    def acquire(self, patience: float = PATIENCE) -> bool:
        """Take it, and be interrupted."""
        super().acquire(patience)
        raise KeyboardInterrupt


class _InterruptedLater(Lock):
    """A lock that is interrupted when it is about to be given back."""

    def release(self, anchor: bytes = b"") -> None:
        """Be interrupted."""
        del anchor
        raise KeyboardInterrupt


def test_an_interrupt_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Ctrl-C in the moment in which the lock is taken or given back leaves it to others."""
    path = os.fsencode(tmp_path / "lock")
    for kind in (_Interrupted, _InterruptedLater):
        with pytest.raises(KeyboardInterrupt), Held(kind(path)):
            pass
        with Held(Lock(path), patience=0):
            pass


@pytest.mark.parametrize("restores", [True, False])
def test_a_restore_is_waited_for_longer(tmp_path: Path, restores: bool) -> None:
    """Who may wait for a restore does so beyond the usual patience, and for nothing else."""
    path = os.fsencode(tmp_path / "lock")
    holder, waiter = Lock(path), Lock(path)
    holder.acquire()
    if restores:
        holder.announce_restore()
    waiter.restore_deadline = time.monotonic() + 10
    threading.Timer(0.3, holder.release).start()
    if restores:
        assert waiter.acquire(0.1) is False
        waiter.release()
    else:
        with pytest.raises(BusyError):
            waiter.acquire(0.1)
