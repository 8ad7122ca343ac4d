"""Listeners: programs of the user's own hear which paths a restore changed, and harm nothing."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from spoken import sentence
from takeback import Plan, PlannedChange, Report, listeners
from takeback.model.reasons import Reason

pytestmark = pytest.mark.usefixtures("signals_as_in_a_terminal")

HEAR = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"


def report(*paths: bytes, id: str = "kkkkkkkkkkkk") -> Report:
    """A restore that changed some paths."""
    changes = tuple(PlannedChange(path, "write", None, None) for path in paths)
    plan = Plan("undo", base="0" * 64, target="", title="add a form", changes=changes)
    return Report(plan, id=id, before="llllllllllll", after="mmmmmmmmmmmm")


def hearing(heard: Path) -> list[str]:
    """A listener that keeps what it hears."""
    return [sys.executable, "-I", "-c", HEAR, str(heard)]


def script(path: Path, *lines: str) -> str:
    """An executable of the user's."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    path.chmod(0o700)
    return str(path)


def test_a_listener_hears_what_changed(tree: Path, tmp_path: Path) -> None:
    """One JSON object on one line says which restore it was, where, and which paths changed."""
    heard = tmp_path / "heard"
    done = report(b"src/pay.py", b"odd\xff")
    assert listeners.tell([hearing(heard)], done, os.fsencode(tree)) == []
    assert heard.read_bytes().count(b"\n") == 1
    assert json.loads(heard.read_text()) == {
        "event": "restore",
        "verb": "undo",
        "restore": "kkkkkkkkkkkk",
        "root": {"path": str(tree)},
        "paths": [
            {"path": "src/pay.py"},
            {"path": "odd\N{REPLACEMENT CHARACTER}", "path_b64": "b2Rk/w=="},
        ],
        "before": "llllllllllll",
        "after": "mmmmmmmmmmmm",
    }


def test_a_listener_starts_in_the_project(tree: Path, tmp_path: Path) -> None:
    """The folder in which a listener runs is the project's root."""
    here = script(tmp_path / "bin/here", f'pwd -P > "{tmp_path}/where"')
    assert listeners.tell([[here]], report(b"a"), os.fsencode(tree)) == []
    assert (tmp_path / "where").read_text() == f"{tree.resolve()}\n"


def test_a_listener_is_found_in_the_path(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain name means the command that a shell would find."""
    script(tmp_path / "bin/reindex", f'echo "$1" > "{tmp_path}/given"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert listeners.tell([["reindex", "now"]], report(b"a"), os.fsencode(tree)) == []
    assert (tmp_path / "given").read_text() == "now\n"


@pytest.mark.parametrize("name", ["reindex", "./reindex", "bin/../reindex"])
def test_no_listener_is_found_from_the_work_tree(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A program in the tree, where agents write, does not run by a name that leads there."""
    script(tree / "reindex", f'touch "{tmp_path}/ran"')
    (tree / "bin").mkdir()
    monkeypatch.chdir(tree)
    monkeypatch.setenv("PATH", f".::bin:{os.environ['PATH']}")
    (problem,) = listeners.tell([[name]], report(b"a"), os.fsencode(tree))
    assert sentence(problem).startswith(f"there is no listener `{name}`")
    assert not (tmp_path / "ran").exists()


def test_what_a_listener_prints_is_not_ours(
    tree: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither stdout, which may be JSON for a program, nor stderr gets a word of a listener."""
    loud = script(tmp_path / "bin/loud", "echo out", "echo err >&2")
    assert listeners.tell([[loud]], report(b"a"), os.fsencode(tree)) == []
    assert capfd.readouterr() == ("", "")


def test_listeners_that_fail_are_told_and_the_others_run(tree: Path, tmp_path: Path) -> None:
    """Each problem is a sentence with the listener's name, and stops nobody else."""
    heard = tmp_path / "heard"
    fails = script(tmp_path / "bin/fails", "exit 3")
    dies = script(tmp_path / "bin/dies", "kill -9 $$")
    plain = tmp_path / "bin/plain"
    plain.write_text("no program\n")
    commands = [[fails], [dies], [str(plain)], ["/nowhere/at/all"], hearing(heard)]
    problems = listeners.tell(commands, report(b"a"), os.fsencode(tree))
    assert list(map(sentence, problems)) == [
        f"the listener `{fails}` failed: exit code 3",
        f"the listener `{dies}` failed: ended by signal 9",
        f"the listener `{plain}` could not be started: Permission denied",
        "there is no listener `/nowhere/at/all`; name a command in your PATH, or a full path",
    ]
    assert heard.exists()


def test_a_listener_that_hangs_is_stopped(tree: Path, tmp_path: Path) -> None:
    """After its time a listener is ended, together with what it started."""
    hangs = script(tmp_path / "bin/hangs", f'echo $$ > "{tmp_path}/pid"', "sleep 600 & wait")
    began = time.monotonic()
    (problem,) = listeners.tell([[hangs]], report(b"a"), os.fsencode(tree), longest=0.5)
    assert (
        sentence(problem)
        == f"the listener `{hangs}` did not end within 0.5 seconds and was stopped"
    )
    assert time.monotonic() - began < 30
    group = int((tmp_path / "pid").read_text())
    while time.monotonic() - began < 30 and is_alive(group):
        threading.Event().wait(0.01)
    assert not is_alive(group)


def is_alive(group: int) -> bool:
    """Whether a group of processes has a member that is not only waiting to be buried."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


def test_a_listener_need_not_listen(tree: Path) -> None:
    """One that ends without reading a word of a long message did nothing wrong."""
    paths = [b"a/long/path/%d" % number for number in range(50_000)]
    assert listeners.tell([["true"]], report(*paths), os.fsencode(tree)) == []


def test_an_interrupt_ends_the_waiting_only(tree: Path, tmp_path: Path) -> None:
    """Ctrl-C while a listener runs stops it and those after it; the restore stays reported."""
    heard = tmp_path / "heard"
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    hangs = script(tmp_path / "bin/hangs", f'echo > "{fifo}"', "sleep 600")

    def interrupt() -> None:
        fifo.read_bytes()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    problems = listeners.tell([[hangs], hearing(heard)], report(b"a"), os.fsencode(tree))
    assert problems == [Reason("listener-interrupted", name=hangs)]
    assert not heard.exists()


@pytest.mark.parametrize(
    "setting",
    ["reindex", {"reindex": 1}, 3, None, ["reindex"], [[]], [[1]], [[""]], [["a\0b"]]],
    ids=repr,
)
def test_a_setting_that_makes_no_sense_is_told(tree: Path, setting: object) -> None:
    """Whatever the settings say, nothing breaks, and the sentence shows how it is written."""
    (problem,) = listeners.tell(setting, report(b"a"), os.fsencode(tree))
    assert '[["reindex", "--changed"]]' in sentence(problem)


def test_nobody_hears_of_nothing(tree: Path, tmp_path: Path) -> None:
    """A restore that had nothing to do is not told."""
    heard = tmp_path / "heard"
    assert listeners.tell([hearing(heard)], report(id=""), os.fsencode(tree)) == []
    assert not heard.exists()
