"""The client of the helper in C: as if it were the one in Python, only faster."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import takeback
from agents import MAIN
from askers import DEADLINE, NOWHERE, Listener, built, python_client, request, run
from takeback.hooks import command, helper

ANSWER = b'{"systemMessage": "heard"}'
LARGEST = 64 << 20
NOBODY = 65534
SHORT_PATIENCE = "-DPATIENCE_MS=100"


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client in C, built without a warning."""
    return built(tmp_path_factory.mktemp("ask"))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name, as the path of a socket must be short."""
    folder = Path(tempfile.mkdtemp(prefix="ask-", dir="/tmp"))
    for name in ("home", "user/.local/share/takeback", "data/takeback", "work"):
        (folder / name).mkdir(parents=True, mode=0o700)
    yield folder
    end = time.monotonic() + DEADLINE
    while folder.exists():  # a helper that was ended may still close its files
        shutil.rmtree(folder, ignore_errors=time.monotonic() < end)


@pytest.fixture
def surroundings(place: Path) -> dict[str, str]:
    """All that is in the environment."""
    return {"TAKEBACK_HOME": str(place / "home"), "HOME": str(place / "user")}


@pytest.fixture
def instead(place: Path) -> str:
    """A program in place of Python, which says its arguments and what is on its stdin."""
    script = place / "instead of python"
    script.write_text('#!/bin/sh\necho "$@" ${TAKEBACK_HELPER-}\nexec cat\n')
    script.chmod(0o700)
    return str(script)


def fallen_back(payload: bytes, wants_helper: str = "") -> bytes:
    """What the program in place of Python says."""
    return f"-I -S {MAIN} hook{wants_helper}\n".encode() + payload


# -- the same words and stamp --------------------------------------------------------------------


class Row:
    """Surroundings: what is changed, where the helper is, and whether C asks it by itself."""

    def __init__(
        self,
        *,
        env: dict[str, str | None],
        at: str = "home",
        native: bool = True,
        cwd: str = "work",
        folder: Sequence[str] = (),
    ) -> None:
        self.env = env
        self.folder = folder
        self.at = at
        self.native = native
        self.cwd = cwd


# `PLACE` stands for the folder of the test.
ROWS = {
    "usual": Row(env={}),
    "home with a slash": Row(env={"TAKEBACK_HOME": "PLACE/home/"}, native=False),
    "home by way of": Row(env={"TAKEBACK_HOME": "PLACE/work/../home"}, native=False),
    "home with slashes": Row(env={"TAKEBACK_HOME": "PLACE//home"}, native=False),
    "home relative": Row(env={"TAKEBACK_HOME": "../home"}, native=False),
    "home empty": Row(env={"TAKEBACK_HOME": ""}, at="user/.local/share/takeback"),
    "home unset": Row(env={"TAKEBACK_HOME": None}, at="user/.local/share/takeback"),
    "data": Row(env={"TAKEBACK_HOME": None, "XDG_DATA_HOME": "PLACE/data"}, at="data/takeback"),
    "data by way of": Row(
        env={"TAKEBACK_HOME": None, "XDG_DATA_HOME": "PLACE/work/..//data/"}, at="data/takeback"
    ),
    "data relative": Row(
        env={"TAKEBACK_HOME": None, "XDG_DATA_HOME": "data"}, at="user/.local/share/takeback"
    ),
    "user unset": Row(env={"HOME": None}, native=False),
    "user empty": Row(env={"HOME": ""}, native=False),
    "user relative": Row(env={"HOME": "user"}, native=False),
    "user is the root": Row(env={"HOME": "/"}),
    "user is many roots": Row(env={"HOME": "///"}),
    "user with slashes": Row(
        env={"HOME": "PLACE//user///", "TAKEBACK_HOME": None}, at="user/.local/share/takeback"
    ),
    "started elsewhere": Row(env={}, folder=["PLACE/somewhere else"]),
    "started nowhere": Row(env={}, folder=[""]),
    "started in an odd folder": Row(env={}, folder=[os.fsdecode(b"/a\xff\n b/../")]),
    "started too deep": Row(env={}, folder=["/x" * 15_000], native=False),
    "of another agent": Row(env={"CLAUDE_PROJECT_DIR": "PLACE/x", "CODEX_HOME": "PLACE/y"}),
    "a helper is wanted": Row(env={"TAKEBACK_HELPER": "1"}),
    "a helper may be": Row(env={"TAKEBACK_HELPER": ""}),
    "in an odd folder": Row(env={}, cwd=os.fsdecode(b"a\xff\n b")),
    "in a deep folder": Row(env={}, cwd="/".join(["d" * 200] * 15)),
}


def placed(row: Row, place: Path, usual: dict[str, str]) -> dict[str, str]:
    """The environment of a row."""
    changed = {name: None if said is None else said.replace("PLACE", str(place))
               for name, said in row.env.items()}  # fmt: skip
    return {name: said for name, said in {**usual, **changed}.items() if said is not None}


@pytest.mark.skipif(sys.platform == "darwin", reason="data is elsewhere there")
@pytest.mark.parametrize("name", ROWS)
def test_both_clients_say_the_same(
    name: str, ask: Path, place: Path, surroundings: dict[str, str]
) -> None:
    """Words, stamp and payload are the same; what C does not know for sure, it leaves to Python."""
    row = ROWS[name]
    env = placed(row, place, surroundings)
    cwd = place / row.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    with Listener(place / row.at, answer=ANSWER) as listener:
        for client in (python_client(), [str(ask), *python_client()]):
            done = run([*client, *row.folder], b'{"x": 1}', env, cwd)
            assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER, b"")
        first, second = listener.heard
        assert (first[0], first[1][:4], first[2]) == (second[0], second[1][:4], second[2])
        assert first[0] == helper.MAGIC + helper.program_stamp() + b"\n"
        assert first[1][2:4] == (b"".join(map(os.fsencode, row.folder)), os.fsencode(cwd))
        ids = {words[4] for _, words, _ in listener.heard}
        assert [len(id) for id in ids] == [32, 32]  # each event has another
        run([str(ask), *python_client(NOWHERE), *row.folder], b"", env, cwd)
        assert len(listener.heard) == (3 if row.native else 2)


def test_nobody_is_asked_if_nobody_is_wanted(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """With `TAKEBACK_HELPER=0` the event goes to Python at once."""
    env = {**surroundings, "TAKEBACK_HELPER": "0"}
    with Listener(place / "home", answer=ANSWER) as listener:
        done = run([str(ask), *python_client(instead)], b"said", env)
        assert (done.stdout, listener.heard) == (fallen_back(b"said", " 0"), [])


def test_a_path_that_no_socket_has_is_left_to_python(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """The longest path that is asked is the same for both, and it is asked."""
    longest = helper.LONGEST_PATH - len(helper.NAME) - len(str(place)) - 1
    for length, native in ((longest, True), (longest + 1, False)):
        home = place / ("h" * length)
        home.mkdir()
        env = {**surroundings, "TAKEBACK_HOME": str(home)}
        with Listener(home, answer=ANSWER) as listener:
            done = run([str(ask), *python_client(instead)], b"said", env)
            assert done.stdout == (ANSWER if native else fallen_back(b"said"))
            assert len(listener.heard) == native


def test_a_folder_that_is_gone_is_left_to_python(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """Nobody knows where we are, so Python has to say what that means."""
    gone = ["sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", str(place / "work")]
    env = {**surroundings, "PATH": os.environ["PATH"]}
    with Listener(place / "home", answer=ANSWER) as listener:
        done = run([*gone, str(ask), *python_client(instead)], b"said", env)
        assert (done.stdout, listener.heard) == (fallen_back(b"said"), [])


@pytest.mark.parametrize(
    "main", ["takeback/__main__.py", "/takeback/__main__.py", "/a/../b/takeback/__main__.py",
             f"{MAIN.parent}/../takeback/__main__.py", f"/{MAIN}",
             "/nowhere/takeback/__main__.py", "/x/__main__.py", "/", "", "/" + "x" * 5000]
)  # fmt: skip
def test_a_program_that_is_not_known_is_left_to_python(
    main: str, ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """Without a path whose stamp is the same for Python, nobody is asked."""
    with Listener(place / "home", answer=ANSWER) as listener:
        done = run([str(ask), instead, "-I", "-S", main, "hook"], b"said", surroundings)
        assert done.stdout == f"-I -S {main} hook\nsaid".encode()
        assert listener.heard == []


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["", ".", "..", "a", "...", ".a"]), max_size=6))
def test_only_a_home_that_abspath_leaves_as_it_is_is_asked(ask: Path, pieces: list[str]) -> None:
    """Whatever `TAKEBACK_HOME` is, C asks where Python would, or not at all."""
    with tempfile.TemporaryDirectory(prefix="ask-", dir="/tmp") as place:
        chosen = "/".join([place, "b", "b", "b", *pieces])
        meant = os.path.abspath(chosen)
        os.makedirs(meant, exist_ok=True)
        env = {"HOME": place, "TAKEBACK_HOME": chosen}
        with Listener(Path(meant)) as listener:
            run([str(ask), *python_client(NOWHERE)], b"", env)
            assert [words[0] for _, words, _ in listener.heard] == (
                [os.fsencode(meant)] if chosen == meant else []
            )


@settings(max_examples=60)
@given(said=st.binary(max_size=300_000), answered=st.binary(max_size=300_000))
def test_any_bytes_go_through(ask: Path, said: bytes, answered: bytes) -> None:
    """Payloads and answers are bytes, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="ask-", dir="/tmp") as place:
        env = {"HOME": place, "TAKEBACK_HOME": place}
        with Listener(Path(place), answer=answered) as listener:
            done = run([str(ask), *python_client(NOWHERE)], said, env)
            assert (done.returncode, done.stdout, done.stderr) == (0, answered, b"")
            assert [payload for _, _, payload in listener.heard] == [said]


# -- whatever fails, Python hears the event ------------------------------------------------------


def closes_at_once(connection: socket.socket) -> None:
    """It may be gone before anything is said."""
    connection.close()


def hears_and_closes(connection: socket.socket) -> None:
    """As a helper of another version does."""
    request(connection)


def never_answers(connection: socket.socket) -> None:
    """It waits for the other end to go."""
    request(connection)
    while connection.recv(1):
        pass


def says(answer: bytes) -> "Callable[[socket.socket], None]":
    """It says this, and goes."""

    def behave(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(answer)

    return behave


BAD = {
    "closes at once": closes_at_once,
    "hears and closes": hears_and_closes,
    "says a part of the answer": says(b"10\n12345"),
    "says a part of the length": says(b"10"),
    "says no length": says(b"\n12345"),
    "says less than nothing": says(b"-1\n"),
    "says something else": says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "says too much": says(b"%d\n" % (LARGEST + 1)),
    "says far too much": says(b"9" * 5000 + b"\n"),
    "says bytes": says(bytes(range(256))),
}


@pytest.mark.parametrize("size", [0, 10, 1 << 20], ids=["nothing", "little", "much"])
@pytest.mark.parametrize("name", BAD)
def test_a_helper_that_fails_costs_nothing(
    name: str, size: int, ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """Python is started in its place, with the whole payload, and nothing was answered before."""
    said = os.urandom(size)
    with Listener(place / "home", BAD[name]):
        done = run([str(ask), *python_client(instead)], said, surroundings)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == fallen_back(said)


def hears_nothing(connection: socket.socket) -> None:
    """It waits for the other end to go, and reads nothing of what is said."""
    gone = select.poll()
    gone.register(connection, 0)  # a connection that is closed is told in any case
    gone.poll(1000 * DEADLINE)


@pytest.mark.parametrize("behave", [never_answers, hears_nothing])
@pytest.mark.parametrize("size", [0, 1 << 20], ids=["nothing", "much"])
def test_patience_has_an_end(
    behave: "Callable[[socket.socket], None]", size: int, tmp_path: Path, place: Path,
    surroundings: dict[str, str], instead: str,
) -> None:  # fmt: skip
    """Who is not answered for a while, or cannot say it all, goes to Python, which does not ask."""
    hasty = built(tmp_path, SHORT_PATIENCE)
    said = os.urandom(size)
    began = time.monotonic()
    with Listener(place / "home", behave):
        done = run([str(hasty), *python_client(instead)], said, surroundings)
    assert (done.returncode, done.stdout) == (0, fallen_back(said, " 0"))
    assert time.monotonic() - began < DEADLINE / 2  # or the other end was the one that went


def test_patience_is_the_same() -> None:
    """The limits in C are those in Python."""
    source = (MAIN.parent / "hooks" / "_ask.c").read_text()
    assert f"PATIENCE_MS {1000 * helper.PATIENCE:.0f} " in source
    assert f"LONGEST_PATH = {helper.LONGEST_PATH} " in source
    assert f"LARGEST = 1 << {helper._MOST.bit_length() - 1} " in source
    assert helper._MOST == 1 << 26


def no_socket(_path: str) -> None:
    """There is nothing."""


def stale_socket(path: str) -> None:
    """Of a helper that was killed."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)


def full_socket(path: str) -> None:
    """Not a socket at all."""
    Path(path).write_text("not a socket")


@pytest.mark.parametrize("make", [no_socket, stale_socket, full_socket, os.mkdir])
@pytest.mark.parametrize("size", [0, 1 << 20], ids=["nothing", "much"])
def test_without_a_helper_python_hears(
    make: "Callable[[str], None]", size: int, ask: Path, place: Path,
    surroundings: dict[str, str], instead: str,
) -> None:  # fmt: skip
    """Whatever is in its place."""
    make(str(place / "home" / "helper.sock"))
    said = os.urandom(size)
    done = run([str(ask), *python_client(instead)], said, surroundings)
    assert (done.returncode, done.stdout, done.stderr) == (0, fallen_back(said), b"")


def test_large_payloads_are_asked_or_passed_on(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """The largest that Python asks about is asked; what is larger, Python gets, and all of it."""
    at_most = bytes(LARGEST)
    with Listener(place / "home", answer=ANSWER) as listener:
        done = run([str(ask), *python_client(instead)], at_most, surroundings)
        assert done.stdout == ANSWER
        assert listener.heard[0][2] == at_most
        larger = bytes(70 << 20) + b"the end"
        done = run([str(ask), *python_client(instead)], larger, surroundings)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == fallen_back(larger)
        assert len(listener.heard) == 1


def test_an_answer_that_is_too_large_is_none(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """As in Python: whoever says so much is no helper."""
    for size in (LARGEST, LARGEST + 1):
        with Listener(place / "home", says(b"%d\n" % size + bytes(size))):
            done = run([str(ask), *python_client(instead)], b"said", surroundings)
        assert done.stdout == (bytes(size) if size == LARGEST else fallen_back(b"said"))


def test_without_files_in_memory_others_are_used(
    tmp_path: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """Systems that have none pass a payload on by a file that has no name."""
    plain = built(tmp_path, "-DWITHOUT_MEMFD")
    said = os.urandom(1 << 20)
    with Listener(place / "home", closes_at_once):
        done = run([str(plain), *python_client(instead)], said, surroundings)
    assert (done.returncode, done.stdout, done.stderr) == (0, fallen_back(said), b"")


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED") or os.geteuid() != 0, reason="needs root")
def test_another_user_is_told_nothing(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """Whoever took the place of the helper, only a process of the same user hears the event."""
    with Listener(place / "home", answer=ANSWER) as listener:
        os.seteuid(NOBODY)
        try:
            listener.listen_again()
        finally:
            os.seteuid(0)
        done = run([str(ask), *python_client(instead)], b"said", surroundings)
        assert (done.stdout, done.returncode) == (fallen_back(b"said"), 0)
    assert listener.heard == []


# -- it always ends well -------------------------------------------------------------------------


@pytest.mark.parametrize("more", [[], [NOWHERE], python_client(NOWHERE), ["/"], [""]])
def test_a_hook_never_fails(more: list[str], ask: Path, surroundings: dict[str, str]) -> None:
    """If there is not even a Python, it ends with 0 and says nothing."""
    done = run([str(ask), *more], b"said", surroundings)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_only_hooks_are_asked_about(
    ask: Path, place: Path, surroundings: dict[str, str], instead: str
) -> None:
    """Any other command is what it becomes."""
    with Listener(place / "home", answer=ANSWER) as listener:
        for more in (["-I", "-S", str(MAIN), "status"], [*python_client()[1:], "x", "y"], []):
            done = run([str(ask), instead, *more], b"said", surroundings)
            assert done.stdout == " ".join(more).encode() + b"\nsaid"
        assert listener.heard == []


@pytest.mark.parametrize("without", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_what_is_closed_does_not_matter(
    without: str, ask: Path, place: Path, surroundings: dict[str, str]
) -> None:
    """Without stdin Python is asked, which knows that case; without stdout the event is heard."""
    shell = ["sh", "-c", f'exec "$@" {without}', "sh"]
    env = {**surroundings, "PATH": os.environ["PATH"]}
    with Listener(place / "home", answer=ANSWER) as listener:
        done = run([*shell, str(ask), *python_client()], b"said", env)
        assert len(listener.heard) == ("<" not in without)
    assert (done.returncode, ANSWER in done.stdout) == (0, False)


def test_nobody_reads_the_answer(ask: Path, place: Path, surroundings: dict[str, str]) -> None:
    """An agent that went away is no error."""
    reader, writer = os.pipe()
    os.close(reader)
    with Listener(place / "home", answer=ANSWER) as listener:
        program = [str(ask), *python_client(NOWHERE)]
        done = subprocess.run(program, input=b"said", stdout=writer, env=surroundings, check=False)
        assert (done.returncode, len(listener.heard)) == (0, 1)
    os.close(writer)


def test_an_interrupt_is_not_noticed(
    ask: Path, place: Path, surroundings: dict[str, str], signals_as_in_a_terminal: None
) -> None:
    """Ctrl-C while the helper works ends the hook well, as it does in Python."""
    del signals_as_in_a_terminal
    asked = threading.Event()

    def behave(connection: socket.socket) -> None:
        request(connection)
        asked.set()
        connection.recv(1)

    with Listener(place / "home", behave):
        program = [str(ask), *python_client(NOWHERE)]
        process = subprocess.Popen(program, stdin=subprocess.DEVNULL, env=surroundings)
        assert asked.wait(DEADLINE)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 0


# -- with a real helper --------------------------------------------------------------------------


def test_a_real_helper_answers_both_the_same(
    ask: Path, tree: Path, place: Path, surroundings: dict[str, str]
) -> None:
    """The first event leaves a helper behind; later ones are heard without Python, and once."""
    home = place / "home"
    (tree / "a").write_text("a\n")

    def tell(session: str, event: str, client: list[str], **more: object) -> bytes:
        said = {"session_id": session, "cwd": str(tree), "hook_event_name": event, **more}
        done = run(client, json.dumps(said).encode(), surroundings, tree)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    native = [str(ask), *python_client(NOWHERE)]
    tell("S1", "SessionStart", [str(ask), *python_client()])
    with helper_at(home):
        for session in ("S1", "S2", "S3"):
            tell(session, "UserPromptSubmit", native, prompt=f"go {session}", prompt_id="P1")
        call = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": "T"}
        tell("S3", "PreToolUse", native, prompt_id="P1", **call)
        (tree / "a").write_text("b\n")
        tell("S3", "PostToolUse", native, prompt_id="P1", **call, tool_response="")
        with takeback.open(tree, home=home) as project:
            project.undo(because="no")
        answers = [
            tell(session, "UserPromptSubmit", client, prompt="on", prompt_id="P2")
            for session, client in (("S1", native), ("S2", python_client()))
        ]
        assert answers[0] == answers[1]
        assert b"took back" in answers[0]
        with takeback.open(tree, home=home) as project:
            labels = sorted(turn.label for turn in project.log().turns)
    assert labels == ["go S1", "go S2", "on", "on"]  # what was undone is not shown


@contextlib.contextmanager
def helper_at(home: Path) -> Iterator[None]:
    """The helper that a hook left behind, until the end of this."""
    end = time.monotonic() + DEADLINE
    with socket.socket(socket.AF_UNIX) as connection:
        while connection.connect_ex(str(home / "helper.sock")) != 0:
            assert time.monotonic() < end, "no helper was left behind"
            time.sleep(0.01)
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    try:
        yield
    finally:
        os.kill(struct.unpack("3i", found)[0], signal.SIGKILL)


# -- as it is installed --------------------------------------------------------------------------


@pytest.mark.parametrize("shell", [s for s in ("sh", "bash", "zsh", "fish") if shutil.which(s)])
def test_the_installed_line_uses_what_is_there(
    shell: str, ask: Path, place: Path, surroundings: dict[str, str]
) -> None:
    """One script: the client in C if it was built, else Python, at any path."""
    package = place / """it's a "pa ck" $HOME""" / "takeback"
    for name in ("hooks", "agents", "capture", "ledger", "undo"):
        (package / name).mkdir(parents=True)
    (package / "__main__.py").touch()
    (package / "version.py").touch()
    python = package.parent / "py thon"
    python.write_text("#!/bin/sh\necho python; exec cat\n")
    python.chmod(0o700)
    env = {**surroundings, "PATH": os.environ["PATH"]}
    env["STARTED_IN"] = "/some where"
    script = package / command.SCRIPT
    script.write_text(command.script(str(python), str(package / "__main__.py")))
    made = command.line(str(script), started_in="STARTED_IN")
    with Listener(place / "home", answer=ANSWER) as listener:
        assert run([shell, "-c", made], b"1", env).stdout == b"python\n1"
        shutil.copy(ask, command.client(str(package / "__main__.py")))
        assert run([shell, "-c", made], b"2", env).stdout == ANSWER
        assert [(said[2], payload) for _, said, payload in listener.heard] == [
            (b"/some where", b"2")
        ]
