"""`takeback run`: the command notices nothing, and what it did is recorded."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import program
import takeback
from hostile.stage import in_child as in_own_world
from takeback.cli.screens.child import TerminalWatch, Wait
from terminal import PATIENCE, Terminal

STARTED = [sys.executable, "-I", "-m", "takeback"]
pytestmark = pytest.mark.usefixtures("signals_as_in_a_terminal")

MINUS = "\N{MINUS SIGN}"

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(autouse=True)
def _in_the_tree(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a small project, with a store of their own."""
    assert home.is_dir()
    (tree / "sub").mkdir()
    (tree / "a.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(tree)


def run(*words: str | bytes, **more: Any) -> "subprocess.CompletedProcess[bytes]":  # noqa: ANN401 -- as subprocess takes them
    """Run a command through `takeback run`; options of ours come first, then `--`."""
    return subprocess.run(
        [*STARTED, "run", *words], capture_output=True, timeout=PATIENCE, check=False, **more
    )


def start(*words: str, **more: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401 -- as subprocess takes them
    """Start one, without waiting for it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*STARTED, "run", *words], **{**pipes, **more})


def turns() -> list[Any]:
    """The turns in the log, newest first."""
    with takeback.open(".") as project:
        rows = project.workspace.ledger._reader.rows("SELECT id FROM turns ORDER BY number DESC")
        return [project.turn(str(id)) for (id,) in rows]


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that must come soon."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)


def script(text: str) -> list[str]:
    """A shell script as the words of a command."""
    return ["--", "/bin/sh", "-c", text]


def python(text: str) -> list[str]:
    """A Python program as the words of a command."""
    return ["--", sys.executable, "-I", "-S", "-c", text]


# -- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 3, 42, 130, 255])
def test_the_exit_code_is_the_commands(code: int) -> None:
    """The exit code passes through, and says whether the turn is done or failed."""
    assert run(*script(f"exit {code}")).returncode == code
    assert [turn.status for turn in turns()] == ["failed" if code else "done"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT", "SIGQUIT", "SIGSEGV", "SIGPIPE"])
def test_a_command_that_a_signal_kills_kills_us_so(name: str) -> None:
    """Who waits for us sees the signal of which the command died."""
    number = signal.Signals[name]
    assert run(*script(f"echo x > b.txt; kill -{number.value} $$")).returncode == -number
    (turn,) = turns()
    assert (turn.status, turn.files) == ("interrupted", 1)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("no-such-command", 127, b"there is no command `no-such-command`"),
        ("./no-such-file", 127, b"there is no file `./no-such-file`"),
        ("./a.txt", 126, b"`./a.txt` is not executable"),
        ("./sub", 126, b"`./sub` is a folder"),
        ("./broken", 127, b"cannot be started"),
    ],
)
def test_what_cannot_be_started_leaves_no_turn_open(
    tree: Path, command: str, code: int, message: bytes
) -> None:
    """The codes are those of shells, the error says why, and no turn goes on."""
    (tree / "broken").write_text("#!/no/such/interpreter\n")
    (tree / "broken").chmod(0o755)
    done = run("--", command)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr
    assert [turn.status for turn in turns()] in ([], ["failed"])


def test_a_script_without_a_first_line_is_run_by_the_shell(tree: Path) -> None:
    """A text file that may be executed runs as it does when a shell is asked."""
    (tree / "tool").write_text('echo "$0 $1"\n')
    (tree / "tool").chmod(0o755)
    assert run("--", "./tool", "x").stdout == b"./tool x\n"


def test_a_command_is_looked_up_in_the_path(tree: Path) -> None:
    """A bare name is found where PATH says, and never in the current folder."""
    (tree / "sub" / "tool").write_text("#!/bin/sh\necho found\n")
    (tree / "sub" / "tool").chmod(0o755)
    path = f"{tree / 'sub'}:{os.environ['PATH']}"
    assert run("--", "tool", env={**os.environ, "PATH": path}).stdout == b"found\n"
    assert run("--", "tool").returncode == 127


def test_a_project_that_cannot_be_made_safe_runs_nothing(tree: Path) -> None:
    """With `--only-covered` the command does not start without a way back."""
    bad = tree / "no-store"
    bad.write_text("a file, not a folder")
    env = {**os.environ, "TAKEBACK_HOME": str(bad)}
    done = run("--only-covered", *script("touch ran"), env=env)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error: ")
    assert not (tree / "ran").exists()


def _damage(home: Path) -> None:
    (ledger,) = home.glob("projects/*/ledger.db")
    ledger.write_bytes(b"garbage" * 5000)


def _make_newer(home: Path) -> None:
    (ledger,) = home.glob("projects/*/ledger.db")
    db = sqlite3.connect(ledger)
    db.execute("PRAGMA user_version = 99")
    db.close()


def _open_to_all(home: Path) -> None:
    (store,) = home.glob("projects/*")
    store.chmod(0o755)


def _replace_packs(home: Path) -> None:
    (packs,) = home.glob("projects/*/git/objects/pack")
    packs.rename(packs.with_name("away"))
    packs.write_text("a file")


@pytest.mark.parametrize("break_it", [_damage, _make_newer, _open_to_all, _replace_packs])
@pytest.mark.parametrize("flags", [(), ("--json",), ("--session", "s")], ids=str)
def test_a_broken_store_never_blocks_a_command(
    tree: Path, home: Path, break_it: Callable[[Path], None], flags: tuple[str, ...]
) -> None:
    """The command runs as without us, and stderr says once that it is not covered."""
    run("-q", "--", "true")
    break_it(home)
    done = run(*flags, *script("cat; touch ran; exit 7"), input=b"in\n")
    assert (done.returncode, done.stdout) == (7, b"in\n")
    assert (tree / "ran").exists()
    assert b"Traceback" not in done.stderr
    if "--json" in flags:
        said = json.loads(done.stderr.splitlines()[-1])
        assert (said["covered"], said["exit_code"], bool(said["message"])) == (False, 7, True)
    else:
        assert done.stderr.count(b"not covered") == 1
        assert b"hint:" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk_never_blocks_a_command(tree: Path) -> None:
    """With no room for a checkpoint, or for the store itself, the command runs all the same."""
    in_own_world(lambda: _with_full_disk(tree), mounts=True)


def _with_full_disk(tree: Path) -> None:
    disk = tree.with_name("disk")
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=True)
    env = {**os.environ, "TAKEBACK_HOME": str(disk / "home")}
    for size in (0, 1_000_000):
        if size:
            run("-q", "--", "true", env=env)
            (tree / "large").write_bytes(os.urandom(size))
        else:
            (disk / "fill").write_bytes(b"x" * 380_000)
        done = run(*script("touch ran; exit 7"), env=env)
        assert (done.returncode, (tree / "ran").exists()) == (7, True), done.stderr
        assert done.stderr.count(b"not covered") == 1
        (tree / "ran").unlink()
        (disk / "fill").unlink(missing_ok=True)


def test_a_store_that_breaks_meanwhile_does_not_change_the_exit_code(home: Path) -> None:
    """When the end cannot be recorded, that is said, and the command's code is kept."""
    done = run(*script(f"echo x > b.txt; rm -rf '{home}/projects'; exit 7"))
    assert done.returncode == 7
    assert b"could not be recorded" in done.stderr
    assert b"Traceback" not in done.stderr


# -- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["npm", "--json", "test"], b"takeback run -- npm --json test"),
        (["npm", "run", "--", "x y"], b"takeback run -- npm run -- 'x y'"),
        ([], b"takeback run -- COMMAND"),
        (["--"], b"takeback run -- COMMAND"),
        (["--unheard-of", "--", "true"], b""),
    ],
)
def test_a_call_that_makes_no_sense_says_how_it_would(words: list[str], hint: bytes) -> None:
    """Where nobody can tell whose option it is, the error shows both calls."""
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert hint in done.stderr
    assert turns() == []


def test_words_after_the_mark_are_not_ours() -> None:
    """Options that we have too reach the command, and every byte of its words."""
    given: list[str | bytes] = [
        "-C",
        "/nowhere",
        "--json",
        "--help",
        "-h",
        "--version",
        "--",
        "",
        "a b\n",
        b"\xff",
    ]
    show = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
    done = run(*python(show), *given)
    assert done.stdout == b"|".join(os.fsencode(word) for word in given)
    assert done.stderr.startswith(b"takeback: turn ")


def test_help_shows_examples() -> None:
    """`--help` is ours when it stands before the mark, and goes to stdout."""
    done = run("--help")
    assert done.returncode == 0
    assert b"takeback run npm run format" in done.stdout


# -- streams -----------------------------------------------------------------------------------


def test_streams_pass_through_untouched() -> None:
    """A megabyte of any bytes comes out of stdout and stderr as it went into stdin."""
    data = os.urandom(1 << 20)
    done = run("-q", *script("tee /dev/stderr"), input=data)
    assert done.stdout == data
    assert done.stderr == data


def test_stdout_is_the_commands_alone() -> None:
    """Whatever we have to say, the command's output is what it is without us."""
    for options in ([], ["--json"], ["-q"], ["-m", "label"]):
        done = run(*options, *script("echo out; echo x > b.txt; exit 3"))
        assert (done.stdout, done.returncode) == (b"out\n", 3)
    done = run("--json", "--", "no-such-command")
    assert done.stdout == b""
    assert json.loads(done.stderr)["exit_code"] == 127


def test_much_output_needs_no_memory() -> None:
    """Output of many megabytes flows from the command to its reader."""
    with start("-q", *script("head -c 50000000 /dev/zero"), stdin=subprocess.DEVNULL) as process:
        assert process.stdout
        assert len(process.stdout.read()) == 50_000_000
    assert process.returncode == 0


def test_a_reader_that_goes_away_ends_the_command() -> None:
    """The command gets SIGPIPE as it does without us."""
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" | head -c 1', "sh", *STARTED, "run", "-q", "--", "yes"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"y", b"")
    assert [turn.status for turn in turns()] == ["interrupted"]


def test_nobody_listening_to_us_changes_nothing() -> None:
    """When the reader of stderr is gone, the command's code is still ours, and all is recorded."""
    reader, writer = os.pipe()
    os.close(reader)
    words = [*STARTED, "run", *script("echo x > b.txt; exit 7")]
    assert subprocess.run(words, stderr=writer, timeout=PATIENCE, check=False).returncode == 7
    os.close(writer)
    (turn,) = turns()
    assert (turn.status, turn.files) == ("failed", 1)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_closed_for_the_command_too(tree: Path, closed: str) -> None:
    """What the caller closed is closed in the command, and everything is recorded as ever."""
    words = ["/bin/sh", "-c", f'"$@" {closed}', "sh", *STARTED, "run"]
    look = "import os; open('seen', 'w').write(' '.join(sorted(os.listdir('/proc/self/fd'))))"
    subprocess.run([*words, *python(look)], timeout=PATIENCE, check=True, capture_output=True)
    gone = {"<&-": {"0"}, ">&-": {"1"}, "2>&-": {"2"}}
    missing = set().union(*(gone[part] for part in closed.split()))
    seen = set((tree / "seen").read_text().split())
    # The program's own listing and file take the numbers that are free.
    assert len(seen) == 3 - len(missing) + 2
    (turn,) = turns()
    assert (turn.status, turn.files) == ("done", 1)


def test_the_command_inherits_no_descriptor_of_ours() -> None:
    """It has stdin, stdout, stderr and what our caller meant for it, no lock and no ledger."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    done = run("--", "ls", "/proc/self/fd", pass_fds=(writer,))
    os.close(reader)
    os.close(writer)
    assert set(map(int, done.stdout.split())) == {0, 1, 2, min({3, 4} - {writer}), writer}


def test_background_children_are_not_waited_for() -> None:
    """The command's end is the end, whatever it leaves running."""
    before = time.monotonic()
    done = run(*script("sleep 20 >/dev/null 2>&1 & echo $!"))
    os.kill(int(done.stdout), signal.SIGKILL)
    assert time.monotonic() - before < 15


# -- surroundings ------------------------------------------------------------------------------


def test_the_surroundings_are_the_callers_and_two_more() -> None:
    """The command sees the same variables, folder, umask and limits, plus session and turn."""
    show = (
        "import json, os, resource, signal; print(json.dumps([dict(os.environ), os.getcwd(),"
        " os.umask(0), resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit("
        "resource.RLIMIT_CORE), os.getpgrp(), os.getsid(0), sorted(signal.pthread_sigmask(0, [])),"
        " [s for s in sorted(signal.valid_signals()) if signal.getsignal(s) is signal.SIG_IGN]]))"
    )
    run("-q", "--", "true")
    odd = {**os.environ, "ODD": "\udcff", "TAKEBACK_TURN": "outer"}
    direct = subprocess.run(python(show)[1:], capture_output=True, env=odd, check=True, cwd="sub")
    through = run("-q", *python(show), env=odd, cwd="sub")
    expected, seen = json.loads(direct.stdout), json.loads(through.stdout)
    turn = turns()[0]
    ours = {"TAKEBACK_SESSION": turn.session, "TAKEBACK_TURN": turn.id}
    assert seen[0] == {**expected[0], **ours}
    assert seen[1:] == expected[1:]


def test_the_project_around_a_subfolder_is_recorded(tree: Path) -> None:
    """In a folder below the root the command runs there, and the whole project is looked at."""
    run("--", "true")
    assert run(*script("pwd; echo x > ../a.txt"), cwd="sub").stdout == f"{tree}/sub\n".encode()
    assert [change.path for change in turns()[0].changes] == ["a.txt"]


def test_another_project_can_be_named(tree: Path) -> None:
    """With `-C` that project is recorded; the command runs where the caller is."""
    other = tree.with_name("other")
    other.mkdir()
    done = run("-C", str(tree), *script(f"pwd; echo x > '{tree}/b.txt'"), cwd=other)
    assert done.stdout == f"{other}\n".encode()
    assert [change.path for change in turns()[0].changes] == ["b.txt"]


def test_runs_of_one_name_are_one_session() -> None:
    """Without a name each run is a session of its own."""
    for options in (["--session", "x"], ["--session", "x"], [], []):
        run(*options, "--", "true")
    assert len({turn.session for turn in turns()}) == 3


def test_a_run_inside_a_run_is_a_step_of_it() -> None:
    """What it changes belongs to the turn that was there first, which tells of it."""
    inner = [*STARTED, "run", *script("echo x > b.txt; exit 5")]
    done = run("-m", "outer", "--", *inner)
    assert done.returncode == 5
    part, whole, change = done.stderr.decode().splitlines()[:3]
    (turn,) = turns()
    assert part == f"takeback: part of turn {turn.id[:6]}, which reports when it ends"
    assert '"outer"  failed, exit code 5  1 file  ' in whole
    assert change.split()[:2] == ["create", "b.txt"]


def test_a_run_inside_another_projects_turn_is_a_turn(tree: Path) -> None:
    """A turn of another project, or one that is over, is none to be part of."""
    other = tree.with_name("other")
    other.mkdir()
    run("-C", str(other), "--", *STARTED, "run", "-m", "inner", *script("echo x > b.txt"))
    (turn,) = turns()
    assert (turn.label, turn.files) == ("inner", 1)
    run("-m", "late", "--", "true", env={**os.environ, "TAKEBACK_TURN": turn.id})
    assert [turn.label for turn in turns()] == ["late", "inner"]


# -- what is told ------------------------------------------------------------------------------


def test_what_changed_is_told(tree: Path) -> None:
    """The summary has the command, the counts, a line for each path."""
    (tree / "gone.txt").write_text("x\n")
    done = run(*script("echo three >> a.txt; printf 'n\\nm\\n' > sub/new.txt; rm gone.txt"))
    head, *lines = done.stderr.decode().splitlines()
    (turn,) = turns()
    assert head.startswith(f'takeback: turn {turn.id[:6]}  "/bin/sh -c ')
    assert f"  3 files  +3 {MINUS}1  (" in head
    assert [line.split() for line in lines[:3]] == [
        ["write", "a.txt", "+1", f"{MINUS}0"],
        ["delete", "gone.txt", "+0", f"{MINUS}1"],
        ["create", "sub/new.txt", "+2", f"{MINUS}0"],
    ]
    undo, show = (named.split()[1:] for named in lines[3].split("`")[1::2])
    shown = subprocess.run([*STARTED, *show], capture_output=True, check=True).stdout
    assert f"Turn {turn.id}".encode() in shown
    subprocess.run([*STARTED, *undo], capture_output=True, check=True)
    assert (tree / "a.txt").read_text() == "one\ntwo\n"


def test_only_some_of_many_changes_are_told() -> None:
    """Ten paths are shown, the rest is counted."""
    done = run(*script("for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo x > n$n; done"))
    assert b"  and 3 more\n" in done.stderr
    assert done.stderr.count(b"  create  ") == 10


def test_nothing_changed_is_one_line() -> None:
    """A command that changes nothing gets one line, and none when quiet."""
    done = run("--", "true")
    assert b'"true"  nothing changed  (' in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert run("--quiet", "--", "true").stderr == b""


def test_json_is_the_last_line_of_stderr() -> None:
    """Programs find the whole turn there, with how the command ended."""
    done = run("--json", *script("echo err >&2; echo x > b.txt; exit 3"))
    said = json.loads(done.stderr.splitlines()[-1])
    (turn,) = turns()
    assert (said["id"], said["exit_code"], said["signal"]) == (turn.id, 3, None)
    (change,) = said["changes"]
    assert (change["path"], change["verb"], change["origin"]) == ("b.txt", "create", None)
    assert (change["added"], change["removed"], change["how"]) == (1, 0, "shell")


@pytest.mark.parametrize(
    "label", ["\x1b[2Jx", "a\nb", "\u202ex", b"\xff", "x" * 5000, " ", "-n", "`$(id)`", "'\""]
)
def test_labels_cannot_act(label: str | bytes) -> None:
    """A label of any bytes is recorded and shown on one harmless line."""
    done = run("-m", label, "--", "true")
    assert done.returncode == 0
    assert not set(done.stderr.decode()) & {"\x1b", "\u202e"}
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 1500


def test_names_of_files_cannot_act() -> None:
    """Files named to repaint the terminal are shown as text."""
    done = run(*python("open('bad\\x1b[2J\\nname', 'w')"))
    assert b"bad\\x1b[2J\\x0aname" in done.stderr


# -- signals -----------------------------------------------------------------------------------

CATCHES = """
import os, signal, sys, time
def say(number, frame):
    os.write(1, b"%d\\n" % number)
for number in ({numbers}):
    signal.signal(number, say)
os.write(1, b"ready\\n")
end = time.monotonic() + 20
while time.monotonic() < end and not os.path.exists("stop"):
    time.sleep(0.01)
open("written", "w").write("x")
sys.exit({code})
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGALRM"])
def test_a_signal_for_us_reaches_the_command(tree: Path, name: str) -> None:
    """A signal that the command handles is passed on, once, and does not end us."""
    number = signal.Signals[name]
    with start("-q", *python(CATCHES.format(numbers=f"{number.value},", code=0))) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.value}\n".encode()
        (tree / "stop").touch()
        assert process.stdout.read() == b""
    assert process.returncode == 0
    (turn,) = turns()
    assert (turn.status, "written" in [change.path for change in turn.changes]) == ("done", True)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1"])
def test_a_signal_that_ends_the_command_ends_us_after_it_is_recorded(name: str) -> None:
    """The command dies of it, what it did until then is kept, the turn is interrupted."""
    number = signal.Signals[name]
    with start(*script("echo x > b.txt; echo ready; exec sleep 20")) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        process.wait(PATIENCE)
    assert process.returncode == -number
    (turn,) = turns()
    assert (turn.status, [change.path for change in turn.changes]) == ("interrupted", ["b.txt"])


def test_many_signals_do_not_end_us() -> None:
    """However often somebody insists, the turn is closed before we are gone."""
    with start(*script("echo ready; exec sleep 20")) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        while process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
    assert -process.returncode in {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    assert [turn.status for turn in turns()] == ["interrupted"]


def test_a_signal_that_came_too_early_starts_nothing(tree: Path) -> None:
    """When the end is asked for before the command could start, it does not start."""

    def be_told_early() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)

    done = run("--", "touch", "ran", preexec_fn=be_told_early)
    assert (done.returncode, (tree / "ran").exists()) == (-signal.SIGTERM, False)
    assert [turn.status for turn in turns()] == ["interrupted"]


def test_a_signal_that_comes_too_late_changes_nothing() -> None:
    """When the command is over, its code is the answer, whatever waits to be delivered."""
    late = "trap '' VTALRM; kill -STOP $PPID; kill -VTALRM $PPID; (sleep 0.2; kill -CONT $PPID) &"
    assert run(*script(f"{late} exit 7")).returncode == 7


def test_signals_that_are_ignored_stay_so() -> None:
    """Below `nohup` the command ignores SIGHUP as well."""
    ask = "import signal; print(signal.getsignal(signal.SIGHUP).name)"
    words = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *STARTED, "run", "-q", *python(ask)]
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"SIG_IGN\n"


def test_a_runner_that_is_killed_leaves_a_turn_that_is_closed() -> None:
    """After SIGKILL the next start finds the turn and what was done in it."""
    with start(*script("echo x > b.txt; echo $$; exec sleep 20")) as process:
        assert process.stdout
        command = int(process.stdout.readline())
        process.kill()
        process.wait(PATIENCE)
        os.kill(command, signal.SIGKILL)
    assert run("-m", "next", "--", "true").returncode == 0
    newest, older = turns()
    assert (newest.label, newest.files) == ("next", 0)
    assert (older.status, [change.path for change in older.changes]) == ("interrupted", ["b.txt"])


# -- terminals ---------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[Callable[[list[str]], Terminal]]:
    """Makes terminals, and cleans up after them."""
    made: list[Terminal] = []

    def make(words: list[str]) -> Terminal:
        made.append(Terminal(words))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_command_has_the_terminal(terminal: Callable[[list[str]], Terminal]) -> None:
    """It is a terminal of the right size, in raw mode if it likes, and tells of resizing."""
    program = """
import os, signal, sys, time, tty
print([os.isatty(n) for n in (0, 1, 2)], os.get_terminal_size(), os.ttyname(0))
print(os.tcgetpgrp(0) == os.getpgrp())
signal.signal(signal.SIGWINCH, lambda *_: os.write(1, b"now %d %d\\n" % os.get_terminal_size()))
tty.setraw(0)
print("raw", flush=True)
print("key", os.read(0, 1), flush=True)
print("key", os.read(0, 1), flush=True)
"""
    screen = terminal([*STARTED, "run", *python(program)])
    screen.expect(b"[True, True, True] os.terminal_size(columns=77, lines=33)")
    screen.expect(b"True")
    screen.expect(b"raw")
    screen.resize(20, 40)
    screen.expect(b"now 40 20")
    screen.type(b"\x03")  # raw: a key like any other
    screen.expect(b"key b'\\x03'")
    screen.type(b"\x1a")
    screen.expect(b"key b'\\x1a'")
    screen.expect(b"nothing changed")
    assert screen.status() == 0


def test_ctrl_c_ends_the_command_and_is_recorded(
    terminal: Callable[[list[str]], Terminal],
) -> None:
    """Ctrl-C reaches the command, we record what it did and end as it ended."""
    screen = terminal([*STARTED, "run", *script("echo x > b.txt; echo ready; exec sleep 20")])
    screen.expect(b"ready")
    screen.type(b"\x03")
    screen.expect(b"create  b.txt")
    assert screen.status() == -signal.SIGINT
    (turn,) = turns()
    assert (turn.status, turn.files) == ("interrupted", 1)


@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_a_key_that_the_command_handles_arrives_once(
    terminal: Callable[[list[str]], Terminal], key: bytes, number: int
) -> None:
    """The terminal tells the command already, so we do not pass it on a second time."""
    program = f"""
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}, signal.SIGTERM])
print("ready", flush=True)
while (found := signal.sigwaitinfo([{int(number)}, signal.SIGTERM])).si_signo != signal.SIGTERM:
    print("passed on" if found.si_code <= 0 else "pressed", flush=True)
"""
    screen = terminal([*STARTED, "run", *python(program)])
    screen.expect(b"ready")
    for _ in range(20):
        screen.type(key)
        assert b"passed on" not in screen.expect(b"pressed")
    os.kill(screen.process, signal.SIGTERM)
    assert b"passed on" not in screen.expect(b"takeback: turn")
    assert screen.status() == 0


def test_a_terminal_that_is_closed_ends_the_command_and_is_recorded(
    terminal: Callable[[list[str]], Terminal],
) -> None:
    """When the window is closed, the command gets SIGHUP and what it did is kept."""
    screen = terminal([*STARTED, "run", *script("echo x > b.txt; echo ready; exec sleep 20")])
    screen.expect(b"ready")
    screen.hang_up()
    assert os.waitstatus_to_exitcode(os.waitpid(screen.process, 0)[1]) == -signal.SIGHUP
    screen.process = 0
    (turn,) = turns()
    assert (turn.status, turn.files) == ("interrupted", 1)


def test_ctrl_z_stops_both_and_fg_wakes_both(
    terminal: Callable[[list[str]], Terminal],
) -> None:
    """In a shell with job control the prompt comes back, and `fg` goes on where it was."""
    shell = terminal(["/bin/bash", "--norc", "--noprofile", "-i"])
    shell.type(b"PS1='prom''pt> '\n")
    shell.expect(b"prompt> ")
    line = " ".join(STARTED) + " run -- /bin/sh -c 'echo rea''dy; read x; echo got:$x; echo x > b'"
    for _ in range(2):
        shell.type(line.encode() + b"\n")
        shell.expect(b"ready")
        shell.type(b"\x1a")
        shell.expect(b"Stopped")
        shell.expect(b"prompt> ")
        shell.type(b"fg\n")
        shell.type(b"hello\n")
        shell.expect(b"got:hello")
        shell.expect(b"takeback: turn")
        shell.expect(b"prompt> ")
    shell.type(b"exit 0\n")
    assert shell.status() == 0
    assert [turn.status for turn in turns()] == ["done", "done"]


def test_a_job_in_the_background_stops_when_it_reads(
    terminal: Callable[[list[str]], Terminal],
) -> None:
    """A command in the background that wants input is stopped, as any job."""
    shell = terminal(["/bin/bash", "--norc", "--noprofile", "-i"])
    shell.type(b"PS1='prom''pt> '\n")
    shell.expect(b"prompt> ")
    shell.type(" ".join(STARTED).encode() + b" run -- /bin/sh -c 'read x; echo got:$x' &\n")
    shell.expect(b"prompt> ")
    shell.type(b"until jobs -s | grep -q .; do sleep 0.05; done; echo sto''pped\n")
    shell.expect(b"stopped")
    shell.type(b"fg\nhello\n")
    shell.expect(b"got:hello")
    shell.expect(b"takeback: turn")
    shell.type(b"exit 0\n")
    assert shell.status() == 0


def test_a_stopped_command_on_a_bare_terminal_does_not_stop_us(
    terminal: Callable[[list[str]], Terminal],
) -> None:
    """Where a terminal has no shell that could wake us, we wait for the command."""
    screen = terminal([*STARTED, "run", *script("echo ready; read x; echo got:$x")])
    screen.expect(b"ready")
    command = child_of(screen.process)
    os.kill(command, signal.SIGSTOP)
    until(lambda: state(command) == "T", "the command is stopped")
    time.sleep(0.1)
    assert state(screen.process) != "T"
    os.kill(command, signal.SIGCONT)
    screen.type(b"x\n")
    screen.expect(b"got:x")
    assert screen.status() == 0


def test_a_stopped_command_without_a_shell_does_not_stop_us() -> None:
    """Where nobody would wake us, we wait until somebody wakes the command."""
    with start(*script("echo $$; read x; echo got:$x"), start_new_session=True) as process:
        assert process.stdout
        assert process.stdin
        command = int(process.stdout.readline())
        os.kill(command, signal.SIGSTOP)
        until(lambda: state(command) == "T", "the command is stopped")
        time.sleep(0.1)
        assert state(process.pid) != "T"
        os.kill(command, signal.SIGCONT)
        process.stdin.write(b"x\n")
        process.stdin.close()
        assert process.stdout.read() == b"got:x\n"
    assert process.returncode == 0


def child_of(process: int) -> int:
    """The one child of a process."""
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def state(process: int) -> str:
    """The state of a process, as the kernel calls it."""
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


# -- somebody sits at the terminal ---------------------------------------------------------------

AGENT = """
import os, sys, termios, time, tty
before = termios.tcgetattr(0)
tty.setraw(0)
open(".aider.chat.history.md", "a").write("# a talk\\n")
os.mkdir(".aider.tags.cache.v4")
open(".aider.tags.cache.v4/cache.db", "w").write("tags")
print("ready", end="\\r\\n", flush=True)
os.read(0, 1)
open("made.txt", "w").write("by the agent\\n")
termios.tcsetattr(0, termios.TCSANOW, before)
print("bye")
"""


@pytest.fixture
def typed() -> None:
    """An agent with a screen of its own ran; meanwhile somebody edited a file by hand."""
    terminal = Terminal([*STARTED, "run", *python(AGENT)])
    terminal.expect(b"ready")
    Path("a.txt").write_text("one\ntwo\nby hand\n")
    time.sleep(0.3)
    terminal.type(b"q")
    terminal.expect(b"asks first, because it may be your own work")
    assert terminal.status() == 0
    terminal.close()


@pytest.mark.usefixtures("typed")
def test_what_somebody_may_have_edited_at_the_terminal_is_asked_about() -> None:
    """An undo of an agent with a screen of its own takes no hand edit unasked."""
    asked = subprocess.run([*STARTED, "undo"], capture_output=True, check=False, text=True)
    assert asked.returncode == 3
    assert "2 paths changed while" in asked.stderr
    assert "had your terminal, and may be your own work: `a.txt`, `made.txt`" in asked.stderr
    assert Path("a.txt").read_text() == "one\ntwo\nby hand\n"
    assert Path("made.txt").exists()


@pytest.mark.usefixtures("typed")
def test_the_history_of_aider_stays() -> None:
    """What aider keeps of its talks beside the files is not taken back; by its path it is."""
    words = ["undo", "--yes", "@~0", "--", ".aider.chat.history.md"]
    subprocess.run([*STARTED, *words], capture_output=True, check=True)
    assert not Path(".aider.chat.history.md").exists()
    subprocess.run([*STARTED, "redo"], capture_output=True, check=True)
    done = subprocess.run([*STARTED, "undo", "--yes"], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert "the agent's own history" in done.stdout
    assert not Path("made.txt").exists()
    assert Path(".aider.chat.history.md").read_text() == "# a talk\n"
    assert Path(".aider.tags.cache.v4/cache.db").read_text() == "tags"


def test_a_command_that_only_prints_on_a_terminal_is_taken_back_at_once() -> None:
    """A short command that reads no keys leaves no doubt."""
    terminal = Terminal([*STARTED, "run", *script("sleep 0.3; echo x > made.txt")])
    terminal.expect(b"`takeback undo`")
    assert terminal.status() == 0
    terminal.close()
    assert subprocess.run([*STARTED, "undo"], capture_output=True, check=False).returncode == 0
    assert not Path("made.txt").exists()


@pytest.mark.parametrize(("seconds", "is_long"), [(59, False), (61, True)])
def test_a_minute_at_the_terminal_is_time_to_edit(seconds: int, is_long: bool) -> None:
    """A command that runs for more than a minute leaves time to edit, if it has a terminal."""
    ours, theirs = os.openpty()
    times = iter([100.0, 100.0 + seconds])
    with TerminalWatch(theirs, lambda: next(times)) as terminal:
        pass
    assert terminal.was_interactive is is_long
    with open(os.devnull, "rb") as nothing, TerminalWatch(nothing.fileno()) as other:
        pass
    assert not other.was_interactive
    os.close(ours)
    os.close(theirs)


def test_the_name_of_a_session_means_it(tree: Path, home: Path) -> None:
    """`run --session NAME` gives a name that `undo --session` takes."""
    assert home.is_dir()
    for name in ("one", "two"):
        program.text(["run", "--session", "nightly", "--", "touch", name], tree)
    done = program.text(["undo", "--session", "nightly", "--yes"], tree)
    assert done.returncode == 0
    assert not {"one", "two"} & set(os.listdir(tree))


def test_an_end_that_another_thread_heard_of_is_seen() -> None:
    """The signal goes to whichever thread does not block it; nobody waits for a second one."""
    process = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], {})
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert Wait(process).until_over().code == 7
