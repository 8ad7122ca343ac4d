"""Forget beside everything else: gc before and after it, others at work, and going on later."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from cases import Work
from spoken import spoken
from takeback.errors import UnfinishedError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.upkeep import search

SECRET = "KEY=sekrit-4711\n"


def states(work: Work, many: int) -> list[str]:
    """Checkpoints in which a secret and something else change."""
    found = []
    for number in range(many):
        work.put("s", f"{SECRET}{number}\n")
        work.put("dir/plain", f"{number}\n")
        found.append(work.checkpoint())
    return found


def trim(work: Work, last: int) -> None:
    """Let the files of the first checkpoints go, as gc does when they are old."""
    with work.project.workspace.held():
        said = {"checkpoints": [[1, last]]}
        work.project.workspace.ledger.record(NewEvent(events.HISTORY_TRIMMED, said, time.time_ns()))


def require_sound(work: Work) -> None:
    """The store is whole, and git has nothing to complain of."""
    assert [damage.what for damage in work.project.verify().damage] == []
    done = subprocess.run(
        ["git", "--git-dir", work.project.git_dir, "fsck", "--strict", "--no-dangling"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_after_gc_and_before_it(work: Work) -> None:
    """Let go, merged, pinned, forgotten, merged again: what is kept can be read all the time."""
    refs = states(work, 8)
    work.project.keep(refs[1], "a pin")
    with work.project.workspace.held():
        said = {"checkpoints": [[1, 1], [3, 4]]}
        work.project.workspace.ledger.record(NewEvent(events.HISTORY_TRIMMED, said, time.time_ns()))
    work.project.gc(full=True)
    require_sound(work)
    work.project.forget(["s"])
    require_sound(work)
    work.project.gc(full=True)
    require_sound(work)
    for number in (1, 4, 5, 6, 7):
        read = b"".join(work.project.read(refs[number], b"dir/plain"))
        assert read == f"{number}\n".encode()
    with pytest.raises(takeback.TakebackError, match="no longer kept"):
        work.project.read(refs[2], b"dir/plain")


def test_what_was_let_go_and_not_swept_is_forgotten_too(work: Work) -> None:
    """The packs still hold the files of states that are no longer kept; afterwards they do not."""
    states(work, 4)
    trim(work, 3)
    work.project.forget(text="sekrit-4711")
    work.close()
    assert all(SECRET.encode() not in data for data in objects(work))
    require_sound(work)


def test_a_text_that_only_leftovers_hold_is_forgotten(work: Work) -> None:
    """A merged text of a restore that never came about is in a pack, and in no state."""
    work.put("a", "x\n")
    work.checkpoint()
    with work.project.workspace.held():
        writer = work.project.workspace.store.pack_writer()
        writer.add(3, b"merged sekrit-4711 text\n")
        packs = {"packs": pack_facts(writer.finish())}
        work.project.workspace.ledger.record(NewEvent(events.TEXTS_MERGED, packs, time.time_ns()))
    assert any(b"sekrit-4711" in data for data in objects(work))
    work.project.forget(text="sekrit-4711")
    assert not any(b"sekrit-4711" in data for data in objects(work))
    with pytest.raises(takeback.UnknownReferenceError, match="nothing of it"):
        work.project.forget(text="sekrit-4711")
    require_sound(work)


def test_what_was_captured_again_before_it_was_done_goes_too(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go on while a forget waits to be finished; in the end nothing is left all the same."""

    def found(*_args: object) -> int:
        raise UnfinishedError("somebody was in the way")

    refs = states(work, 2)
    with monkeypatch.context() as patch:
        patch.setattr(search, "prove", found)
        with pytest.raises(UnfinishedError):
            work.project.forget(["s"])
        work.put("dir/plain", "later\n")
        later = work.checkpoint()
        assert b"".join(work.project.read(later, b"s"))
        assert any("a `forget` was interrupted" in told for told in spoken(work.project.recovered))
    assert work.project.continue_forgetting()
    for ref in (*refs, later):
        with pytest.raises(takeback.UnknownReferenceError, match="forgotten"):
            work.project.read(ref, b"s")
    assert not work.project.continue_forgetting()
    require_sound(work)


WORKER = """
import os, sys, time
from pathlib import Path
import takeback
tree, kind, ref = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
print("ready", flush=True)
number = 0
while not (tree.parent / "stop").exists():
    number += 1
    with takeback.open(tree) as project:
        if kind == "write":
            (tree / "theirs").write_text(str(number))
            project.checkpoint()
        else:
            assert b"".join(project.read(ref, b"dir/plain")) == b"0\\n"
            project.log()
print(number, flush=True)
"""


def test_others_go_on_meanwhile(work: Work) -> None:
    """One process captures and one reads while this one forgets, again and again: no failure."""
    refs = states(work, 3)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(work.tree), kind, refs[0]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind in ("write", "read")
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for number in range(4):
        work.put("s", f"{SECRET} again {number}\n")
        work.checkpoint()
        work.project.forget(["s"])
    (work.tree.parent / "stop").write_text("")
    said = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    assert all(int(out) > 0 for out, _ in said)
    work.remove("s")
    work.checkpoint()
    require_sound(work)


def objects(work: Work) -> list[bytes]:
    """What every object in the packs holds, as git reads them."""
    git = os.fsdecode(work.project.git_dir)
    done = subprocess.run(
        ["git", "--git-dir", git, "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True, check=True,
    )  # fmt: skip
    return [done.stdout, *(path.read_bytes() for path in Path(git).rglob("*") if path.is_file())]


@pytest.mark.parametrize("names", [False, True])
def test_while_a_turn_runs(work: Work, names: bool) -> None:
    """The turn goes on, ends, and can be taken back but for what was forgotten."""
    work.put("s", SECRET)
    work.put("a", "one\n")
    work.checkpoint()
    with work.turn("both") as turn:
        with turn.step("Bash", {"command": "x"}):
            work.put("s", "by the turn\n")
            work.put("a", "two\n")
        work.project.forget(["s"], names=names)
        with turn.step("Bash", {"command": "y"}):
            work.put("s", "by the turn, again\n")
            work.put("b", "new\n")
    assert work.project.turn(turn.id).status == "done"
    work.project.undo(turn)
    assert work.text("a") == "one\n"
    assert work.has_none("b")
    assert work.text("s") in ("by the turn\n", "by the turn, again\n")
    require_sound(work)
