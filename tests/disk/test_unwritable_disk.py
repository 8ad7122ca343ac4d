"""Where the store's disk takes no writes, what can be read is read, and nothing is a traceback.

The disk is a real one: a small file system that is full, has no inodes left, or is read-only.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import takeback
from agents import hook
from hostile.stage import in_child as in_own_world
from oracle import picture
from takeback.cli import app
from takeback.disk import operations
from terminal import Terminal

needs_mounts = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="needs root to mount a small disk: full and read-only disks are NOT TESTED",
)
OUT = "OUT"
READS = [
    [],
    ["log"],
    ["log", "--json", "--all"],
    ["sessions"],
    ["show", "@"],
    ["show", "@~1", "a.txt"],
    ["diff"],
    ["diff", "@~2", "@"],
    ["extract", "@~2", OUT],
    ["keep"],
    ["usage"],
    ["usage", "--by", "session"],
    ["verify"],
    ["verify", "--json"],
    ["projects"],
    ["config"],
    ["config", "--json"],
    ["install", "claude-code", "--dry-run"],
    ["uninstall", "claude-code"],
    ["--version"],
    ["help", "gc"],
]
WRITES = [
    ["checkpoint"],
    ["checkpoint", "--json"],
    ["undo", "--yes"],
    ["undo", "--dry-run"],
    ["undo", "@~1", "--yes", "--json"],
    ["redo"],
    ["rollback", "@~2", "--yes"],
    ["keep", "@"],
    ["verify", "--set-aside"],
    ["gc", "--dry-run"],
    ["forget", "n0.txt", "--yes"],
    ["relocate", "--new", "--yes"],
    ["config", "retention.days", "12"],
    ["doctor", "--rebuild"],
]
COLLECTS = [["gc"], ["gc", "--to-size", "1"]]
EXAMINES = [["doctor"], ["doctor", "--repair"], ["doctor", "--json"]]
STATES = {"full": "size=3m", "inodes": "nr_inodes=60", "read-only": "size=3m", "closed": "size=3m"}


def fill(disk: Path) -> None:
    """Leave no page free."""
    fd = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with contextlib.suppress(OSError):
        while os.write(fd, bytes(4096)):
            pass
    os.close(fd)


def use_inodes(disk: Path) -> None:
    """Leave no inode free."""
    (disk / "many").mkdir(exist_ok=True)
    with contextlib.suppress(OSError):
        for number in range(1000):
            os.close(os.open(disk / "many" / str(number), os.O_CREAT, 0o600))


def protect(disk: Path) -> None:
    """Let nobody write."""
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


BREAK: dict[str, Callable[[Path], None]] = {
    "full": fill,
    "inodes": use_inodes,
    "read-only": protect,
    "closed": protect,
}


def said(words: list[str]) -> tuple[int, str]:
    """How a command ended, and all it printed."""
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        code = app.main(words)
        out.flush()
        assert isinstance(out.buffer, io.BytesIO)
        return code, out.buffer.getvalue().decode() + err.getvalue()


def claude(event: str, tree: Path, **more: object) -> bytes:
    """An event of Claude Code."""
    common = {"session_id": "s1", "transcript_path": "", "cwd": str(tree), "prompt_id": "p1"}
    return json.dumps({**common, "hook_event_name": event, **more}).encode()


@contextlib.contextmanager
def small_disk(tree: Path, options: str) -> Iterator[Path]:
    """A disk with a store of three turns; the last one is only in the log of SQLite."""
    disk = tree.with_name("disk")
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "none", str(disk)]
    subprocess.run(mount, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAKEBACK_HOME", str(disk / "home"))
        patch.setenv("CLAUDE_CONFIG_DIR", str(tree.with_name("claude")))
        patch.chdir(tree)
        with takeback.open(tree) as project:
            project.checkpoint()
            session = project.session("claude")
            for number in range(2):
                with session.turn(f"prompt {number}"):
                    (tree / "a.txt").write_text(f"{number}\n")
                    (tree / f"n{number}.txt").write_text("n\n")
            session.end()
        hook(claude("UserPromptSubmit", tree, prompt="prompt by hook"))
        (tree / "a.txt").write_text("by hook\n")
        hook(claude("Stop", tree))
        hook(claude("SessionEnd", tree, reason="exit"))
        (log,) = disk.glob("home/projects/*/ledger.db-wal")
        assert log.stat().st_size > 0
        (tree / "a.txt").write_text("mine\n")
        yield disk


@needs_mounts
@pytest.mark.parametrize("state", STATES)
def test_every_command_copes_with_a_disk_that_takes_no_writes(tree: Path, state: str) -> None:
    """Reading commands answer, others name the disk and what to do; the tree stays as it was."""
    in_own_world(lambda: _try_all(tree, state), mounts=True)


def _try_all(tree: Path, state: str) -> None:
    with small_disk(tree, STATES[state]) as disk:
        if state == "closed":
            # The last process took the log into the file: SQLite has to make another to read.
            assert said(["log"])[0] == 0
            assert not [*disk.glob("home/projects/*/ledger.db-wal")]
        BREAK[state](disk)
        before = picture(tree)
        for words in READS:
            out = tree.with_name(f"out{len(words)}")
            code, told = said([str(out) if word == OUT else word for word in words])
            assert (code, "bug" in told, "error" in told) == (0, False, False), (words, told)
        assert (tree.with_name("out3") / "a.txt").read_text() == "0\n"
        assert "prompt by hook" in said(["log"])[1]
        assert "-by hook\n+mine" in said(["diff"])[1]
        assert "(damaged)" not in said(["projects"])[1]
        for words in (*WRITES, *COLLECTS):
            BREAK[state](disk)
            code, told = said(words)
            if words in COLLECTS and state in ("full", "inodes") and code == 0:
                continue
            assert (code, "bug" in told) == (1, False), (words, told)
            assert str(disk / "home") in told, (words, told)
            assert "--json" in words or "\n\nhint: " in told, (words, told)
            if state in ("full", "inodes"):
                left = "MB" if state == "full" else "no inodes"
                assert f"the disk at `{disk}`, which has " in told, (words, told)
                assert f"{left} left" in told, (words, told)
                assert "`takeback gc --to-size SIZE`" in told, (words, told)
        for words in EXAMINES:
            BREAK[state](disk)
            code, told = said(words)
            assert (code, "bug" in told) == (4, False), (words, told)
        _try_programs(tree)
        assert picture(tree) == before


def _try_programs(tree: Path) -> None:
    """`run` and `hook` do their work without cover, and say so."""
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "takeback", "run", "--", "sh", "-c", "echo ran; exit 7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (7, "ran\n")
    assert "not covered" in ran.stderr
    assert "Traceback" not in ran.stderr
    heard = hook(claude("UserPromptSubmit", tree, prompt="more", prompt_id="p2"))
    assert (heard.returncode, heard.stderr) == (0, b"")
    assert "does not cover" in json.loads(heard.stdout)["systemMessage"]


@needs_mounts
@pytest.mark.parametrize("what", ["", "index", "git/objects/pack/tmp-left"])
def test_gc_frees_space_on_a_full_disk(tree: Path, what: str) -> None:
    """`gc --to-size` deletes what can be made again, so that it has room to delete old files."""
    in_own_world(lambda: _collect(tree, what), mounts=True)


def _collect(tree: Path, what: str) -> None:
    with small_disk(tree, "size=6m") as disk:
        with takeback.open(tree) as project:
            session = project.session("claude")
            for number in range(24):
                with session.turn(f"later {number}"):
                    (tree / "large").write_bytes(os.urandom(60_000))
            session.end()
            store = disk / "home/projects" / project.id
        if what:
            # As large as the cache of a tree with some thousand files; as a merge that died leaves.
            with (store / what).open("ab") as file:
                file.truncate(1 << 20)
                file.write(bytes(1 << 20))
            (store / what).chmod(0o600)
        fill(disk)
        assert said(["checkpoint"])[0] == 1
        code, told = said(["gc", "--to-size", "1", "--json"])
        assert code == 0, told
        done = json.loads(told)
        assert done["turns"] > 0, done
        assert done["bytes_after"] < done["bytes_before"] - 100_000, done
        assert said(["checkpoint"])[0] == 0
        assert said(["verify"])[0] == 0
        assert "prompt by hook" in said(["log", "--all"])[1]


@needs_mounts
def test_what_a_disk_that_gets_full_stops_names_the_place(tree: Path) -> None:
    """A forget that stops half-way names the place and the disk, and goes on when there is room.

    Tries to begin a new history that fail leave no more than one empty store behind.
    """
    in_own_world(lambda: _stop_half_way(tree), mounts=True)


def _stop_half_way(tree: Path) -> None:
    with small_disk(tree, "size=3m") as disk:
        told = ""
        for pages in range(20, 200, 12):
            fill(disk)
            with (disk / "filler").open("r+b") as filler:
                filler.truncate(filler.seek(0, os.SEEK_END) - 4096 * pages)
            code, told = said(["forget", "n0.txt", "--yes"])
            assert (code in (0, 1, 5), "bug" in told) == (True, False), told
            if "not finished" in told or not code:
                break
        assert "forgetting is not finished: " in told
        assert str(disk / "home/projects") in told.partition("\n\nhint: ")[0]
        assert f"delete some files on the disk at `{disk}`, which has " in told
        assert "deletes the oldest states\n      the next `takeback` command" in told
        fill(disk)
        for _ in range(5):
            assert said(["relocate", "--new", "--yes"])[0] == 1
        assert len([*disk.glob("home/projects/*")]) <= 2
        (disk / "filler").unlink()
        assert said(["forget", "--continue"])[0] == 0
        assert said(["verify"])[0] == 0
        assert said(["show", "@~1", "n0.txt"])[0] == 2


@pytest.mark.parametrize("words", [["log"], ["log", "--all"], []])
@pytest.mark.usefixtures("signals_as_in_a_terminal", "home")
def test_a_rollback_in_the_log_is_shown_in_colour(
    tree: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal with colours, `log` shows a rollback that was not undone."""
    with takeback.open(tree) as project:
        made = project.checkpoint()
        with project.session("claude").turn("write a"):
            (tree / "a").write_text("a\n")
        project.rollback(made.id, yes=True)
        with project.session("claude").turn("write b"):
            (tree / "b").write_text("b\n")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = [sys.executable, "-I", "-m", "takeback", "-C", str(tree), *words]
    terminal = Terminal(shown)
    try:
        assert terminal.status() == 0
        assert b"Traceback" not in terminal.seen
        assert b"\x1b[" in terminal.seen
    finally:
        terminal.close()


@pytest.mark.parametrize("gone", ["projects/*", "projects"])
def test_a_store_that_was_removed_by_hand_is_no_traceback(
    tree: Path, home: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command says what is missing, or begins anew; none takes it for a bug of its own."""
    monkeypatch.setattr(operations, "sync", False)
    monkeypatch.chdir(tree)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tree.with_name("claude")))
    (tree / "a.txt").write_text("a\n")
    before = picture(tree)
    saved = tree.with_name("saved")
    with takeback.open(tree) as project:
        project.checkpoint()
    home.rename(saved)
    for number, words in enumerate([*READS, *WRITES, *EXAMINES][:: 1 + ("*" not in gone)]):
        shutil.copytree(saved, home)
        for path in home.glob(gone):
            shutil.rmtree(path)
        out = str(tree.with_name(f"out{number}"))
        _, told = said([out if word == OUT else word for word in words])
        assert "bug" not in told, (words, told)
        assert "system refused" not in told, (words, told)
        shutil.rmtree(home, ignore_errors=True)
    assert picture(tree) == before


@pytest.mark.parametrize("words", [["bogus"], ["bogus", "--json"], ["log", "--json"], ["log"]])
@pytest.mark.usefixtures("home")
def test_nobody_who_listens_is_no_traceback(tree: Path, words: list[str]) -> None:
    """Where the answer or the error cannot be written, the exit code tells, and no traceback."""
    with takeback.open(tree) as project:
        project.checkpoint()
    command = [sys.executable, "-I", "-m", "takeback", *words]
    for is_full in (False, True)[: 1 + os.path.exists("/dev/full")]:
        for is_one in (False, True):
            reader, writer = os.pipe()
            os.close(reader)
            with open("/dev/full" if is_full else writer, "w", closefd=True) as deaf:
                both = deaf if is_one else subprocess.PIPE
                done = subprocess.run(command, cwd=tree, stdout=deaf, stderr=both, check=False)
            if is_full:
                os.close(writer)
            assert b"Traceback" not in (done.stderr or b"")
            wanted = (2,) if "bogus" in words else (1,) if is_full else (0,)
            assert done.returncode in wanted, (is_full, is_one, done.stderr)


BROKEN = """
import runpy, sys, time
time.localtime = {}.pop
sys.argv = ["takeback", *sys.argv[1:]]
runpy.run_module("takeback", run_name="__main__")
"""


@pytest.mark.usefixtures("home")
def test_a_bug_is_told_in_a_sentence(tree: Path, tmp_path: Path) -> None:
    """An unexpected error shows no traceback but a file with one, and what to do with it."""
    with takeback.open(tree) as project:
        project.checkpoint()

    def ran(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-I", "-c", BROKEN, *words]
        env = {**os.environ, "TMPDIR": str(tmp_path), **more}
        return subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, check=False
        )

    done = ran("log")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    first, _, hint = done.stderr.strip().partition("\n\n")
    assert first.startswith("error: this is a bug in Takeback; your files are safe (KeyError")
    (details,) = tmp_path.glob("takeback-*.txt")
    assert hint.startswith("hint: report it with the details in")
    assert str(details) in hint
    assert "Traceback" in details.read_text()
    assert details.stat().st_mode & 0o777 == 0o600
    assert "Traceback" in ran("log", TAKEBACK_DEBUG="1").stderr
