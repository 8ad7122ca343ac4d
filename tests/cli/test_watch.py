"""`takeback watch`: what nobody claims is of an unknown author, and undo of it asks."""

import contextlib
import json
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from terminal import PATIENCE, Terminal

STARTED = [sys.executable, "-I", "-m", "takeback"]
pytestmark = pytest.mark.usefixtures("signals_as_in_a_terminal")


@pytest.fixture(autouse=True)
def _in_the_tree(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home.is_dir()
    (tree / "src").mkdir()
    (tree / "a.txt").write_text("one\n")
    (tree / "src/b.py").write_text("b = 1\n")
    monkeypatch.chdir(tree)


class Watcher:
    """A `takeback watch` that runs, and the lines that it prints."""

    def __init__(
        self, *words: str, program: "list[str] | None" = None, quiet: str = "0.15"
    ) -> None:
        command = [*(program or STARTED), "watch", "--json", "--quiet", quiet, *words]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert "watching" in self.line()

    def line(self) -> Any:  # noqa: ANN401 -- JSON
        """The next line, as soon as it comes."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "it printed nothing"
        return json.loads(self.process.stdout.readline())

    def end(self, by: int = signal.SIGINT) -> "tuple[int, list[Any], str]":
        """Its exit code, the rest of its lines, and what it complained about."""
        self.process.send_signal(by)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture
def watching() -> Iterator[Callable[..., Watcher]]:
    """Start watches; they are gone afterwards."""
    with contextlib.ExitStack() as stack:

        def start(*words: str, **more: Any) -> Watcher:  # noqa: ANN401 -- as it takes them
            found = Watcher(*words, **more)
            stack.enter_context(found.process)
            stack.callback(found.process.kill)
            return found

        yield start


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*STARTED, *words], capture_output=True, text=True, timeout=PATIENCE, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def files() -> dict[str, bytes]:
    """All files of the tree: the plain copy that everything is compared with."""
    return {str(p): p.read_bytes() for p in sorted(Path().rglob("*")) if p.is_file()}


def agents() -> list[tuple[str, str]]:
    """Agent and paths of all turns, the newest first."""
    with takeback.open(".") as project:
        found = [project.turn(turn.id) for turn in project.log(all=True).turns]
    return [(turn.agent, " ".join(change.path for change in turn.changes)) for turn in found]


def test_a_quiet_moment_ends_a_turn_and_undo_of_it_asks(watching: Callable[..., Watcher]) -> None:
    """Two bursts are two turns; each goes back exactly, and never without consent."""
    Path("a.txt").write_text("before the watch\n")
    watch = watching()
    first = files()
    Path("src/api/deep").mkdir(parents=True)
    for name in ("x.py", "y.py", "z.py"):
        Path("src/api", name).write_text(name)
    Path("src/api/deep/new.py").write_text("new\n")
    Path("src/b.py").unlink()
    turn = watch.line()
    assert turn["agent"] == "unknown"
    assert turn["label"].split(" ", 1)[1] == "src/api, 5 files"
    assert [(by["who"], by["how"]) for by in turn["authors"]] == [("step", "unknown")]
    second = files()
    Path("a.txt").write_text("second burst\n")
    assert watch.line()["label"].split(" ", 1)[1] == "a.txt"
    third = files()

    refused = command("undo")
    assert refused.returncode == 3
    assert "by an unknown author, and may be your own work: `a.txt`" in refused.stderr
    assert "takeback undo --yes" in refused.stderr
    assert files() == third
    with takeback.open(".") as project:
        project.undo(turn["id"], yes=True)  # the middle one, by its id
        assert files() == {**first, "a.txt": b"second burst\n"}
        project.redo(yes=True)
        assert files() == third
        Path("a.txt").write_text("just now\n")
        assert [change.author.how for change in project.now().changes] == ["unknown"]
        project.undo(yes=True)  # need not wait for the quiet
        assert files() == third
        project.undo(yes=True)
        assert files() == second

    code, lines, _ = watch.end()
    assert (code, lines[-1]["turns"]) == (0, 3)
    assert [line["label"].split(" ")[1] for line in lines[:-1]] == ["a.txt"], "a restore is no turn"
    with takeback.open(".") as project:
        assert project.verify().problems == ()
        log = project.log(all=True)
        project.rebuild()
        assert project.log(all=True) == log


def test_what_others_claim_is_theirs(watching: Callable[..., Watcher]) -> None:
    """A step of an agent and `takeback run` are no unknown's; what changes beside them is."""
    watch = watching(quiet="30")
    with (
        takeback.open(".") as project,
        project.session("agent") as session,
        session.turn("edit", whole=False) as turn,
    ):
        with turn.step("Bash", {"command": "make"}):
            Path("a.txt").write_text("by the agent\n")
        Path("src/b.py").write_text("between two steps\n")
        with turn.step("Write", {"file_path": "c.txt"}):
            Path("c.txt").write_text("by the agent\n")
    assert command("run", "--", "cp", "a.txt", "d.txt").returncode == 0
    Path("e.txt").write_text("last\n")
    code, lines, _ = watch.end(signal.SIGTERM)
    assert code == 0
    found = agents()
    assert found == [
        ("unknown", "e.txt"),
        ("run", "d.txt"),
        ("unknown", "src/b.py"),
        ("agent", "a.txt c.txt"),
    ]
    assert [line.get("label", "").split(" ")[-1] for line in lines] == ["src/b.py", "e.txt", ""]
    # The agent's turn goes back as without a watch.
    with takeback.open(".") as project:
        project.undo(next(turn.id for turn in project.log().turns if turn.agent == "agent"))
    assert files() == {
        "a.txt": b"one\n",
        "d.txt": b"by the agent\n",
        "e.txt": b"last\n",
        "src/b.py": b"between two steps\n",
    }


def test_files_that_never_rest_make_turns_all_the_same(watching: Callable[..., Watcher]) -> None:
    """A turn has a greatest length."""
    watch = watching("--longest", "0.3", quiet="0.2")
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        with open("log.txt", "a") as file:
            file.write("line\n")
        time.sleep(0.03)
    assert watch.line()["changes"][0]["path"] == "log.txt"
    assert watch.line()["changes"][0]["path"] == "log.txt"


def test_there_is_one_watch_and_another_after_it_was_killed(
    watching: Callable[..., Watcher],
) -> None:
    """A second one is refused; what a killed one left is recorded as yours, and nothing is lost."""
    watch = watching(quiet="60")
    second = command("watch")
    assert second.returncode == 1
    assert f"process {watch.process.pid} watches this project already" in second.stderr
    Path("a.txt").write_text("nobody looked\n")
    watch.process.kill()
    watch.process.wait()
    third = watching()
    with takeback.open(".") as project:
        assert b"".join(project.read("@", "a.txt")) == b"nobody looked\n"
        (change,) = project.recorded(project.log().here).changes
        assert (change.path, change.author.who) == ("a.txt", "you")
    Path("a.txt").write_text("seen\n")
    assert third.line()["agent"] == "unknown"
    assert agents() == [("unknown", "a.txt")]


POLLED = """
import sys
from takeback.cli import app
from takeback.cli.commands import watch as command
from takeback.worktree import watch
watch._allowed = lambda: 0
command._POLLED_EVERY = 0.05
sys.exit(app.main(sys.argv[1:]))
"""


def test_without_inotify_stamps_are_compared(watching: Callable[..., Watcher]) -> None:
    """Where the kernel reports nothing, changes and deletions are found all the same."""
    watch = watching(program=[sys.executable, "-I", "-c", POLLED])
    Path("a.txt").write_text("two\n")
    assert watch.line()["label"].endswith("a.txt")
    Path("src/b.py").unlink()
    (change,) = watch.line()["changes"]
    assert (change["path"], change["verb"]) == ("src/b.py", "delete")
    _, lines, _ = watch.end()
    assert lines[-1]["turns"] == 2


def test_a_folder_that_is_deleted_can_be_restored(
    watching: Callable[..., Watcher], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch ends with the command that brings back what it had recorded."""
    watch = watching()
    Path("a.txt").write_text("two\n")
    watch.line()
    before = files()
    monkeypatch.chdir("/")
    shutil.rmtree(tree)
    out, err = watch.process.communicate(timeout=PATIENCE)
    assert (watch.process.returncode, err) == (1, "")
    hint = json.loads(out)["hint"]
    words = hint.split("`")[1].split(" ")
    assert words[:3] == ["takeback", "projects", "--restore"], hint
    assert command(*words[1:]).returncode == 0
    monkeypatch.chdir(tree)
    assert files() == before


FULL = """
import errno, os, sys
from takeback.cli import app
from takeback.cli.commands import watch as command
from takeback.disk import operations
command._RETRY = 0.1
create = operations.create
def full(path, *rest, **more):
    if os.path.exists("../full"):
        raise OSError(errno.ENOSPC, "No space left on device", path)
    return create(path, *rest, **more)
operations.create = full
sys.exit(app.main([word for word in sys.argv[1:] if word != "--json"]))
"""


def test_a_full_disk_is_reported_and_nothing_is_lost(tree: Path) -> None:
    """The watch goes on, says once that it cannot record, and records when it can."""
    full = tree.parent / "full"
    process = Terminal([sys.executable, "-I", "-c", FULL, "watch", "--quiet", "0.1"])
    process.expect(b"watching")
    full.write_text("")
    Path("a.txt").write_text("two\n")
    process.expect(b"nothing can be recorded now")
    full.unlink()
    process.expect(b"a.txt")
    process.expect(b"recording again")
    process.type(b"\x03")
    process.expect(b"recorded 1 turn")
    process.expect(b"asks")
    assert process.status() == 0
    process.close()
    assert agents() == [("unknown", "a.txt")]


def test_off_stops_it_and_on_lets_it_go_on(watching: Callable[..., Watcher]) -> None:
    """While Takeback is off, what changes is yours; a watch that begins then is refused."""
    watch = watching(program=[sys.executable, "-I", "-c", POLLED])
    with takeback.open(".") as project:
        project.recorder().turn_off()
    Path("a.txt").write_text("unrecorded\n")
    time.sleep(0.4)
    refused = command("watch")
    assert refused.returncode == 1
    assert "`takeback on`" in refused.stderr
    with takeback.open(".") as project:
        project.checkpoint()
        project.recorder().turn_on()
    Path("src/b.py").write_text("recorded\n")
    assert watch.line()["label"].endswith("src/b.py")
    assert agents() == [("unknown", "src/b.py")]
    assert watch.end()[0] == 0


def test_seconds_are_numbers() -> None:
    """What is no number of seconds is refused."""
    refused = command("watch", "--quiet", "nan")
    assert refused.returncode == 2
    assert "`nan` is not a number of seconds" in refused.stderr
