"""A hook that starts from the linked file does what one without it does, and never less."""

import contextlib
import copy as copying
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from residents import files_of, helpers, until
from takeback import linked
from takeback.hooks import linking, troubles

PACKAGE = Path(takeback.__file__).parent
EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch", "Stop")


class Copy:
    """A copy of the package, which a test may damage, and an agent that calls its hooks."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "takeback"
        left_out = shutil.ignore_patterns("__pycache__", "plugin", "cli")
        shutil.copytree(PACKAGE, self.package, ignore=left_out)
        cached = importlib.util.cache_from_source(str(self.package / "hook.py"))
        self.file = Path(cached).with_suffix(".linked")
        self.pythons = ["-I", "-S"]
        self.calls = 0
        self.complete = b""
        """The file as it was when nothing was lacking."""

    def hook(self, said: bytes, **env: str) -> bytes:
        """What a hook answers; it always ends well."""
        command = [sys.executable, *self.pythons, str(self.package / "__main__.py"), "hook"]
        around = {**os.environ, "TAKEBACK_HELPER": "0", **env}
        done = subprocess.run(command, input=said, capture_output=True, check=False, env=around)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def turn(self, tree: Path, name: str, **env: str) -> list[bytes]:
        """One turn with a shell that writes a file; what is answered to each event."""
        answers = []
        for event in EVENTS:
            if event == "PostToolUse":
                (tree / name).write_text(name)
            answers.append(self.hook(payload(tree, event, name), **env))
        return answers

    def learn(self, tree: Path) -> linked.Linked:
        """Call hooks until the file has all that they need: sources must not be too young."""
        for number in range(50):
            before = self.inode()
            self.turn(tree, f"learning{number}")
            if before and self.inode() == before:
                self.complete = self.file.read_bytes()
                return self.read()
        pytest.fail("the file is never complete")

    def inode(self) -> int:
        """Which file it is; 0 if there is none."""
        return self.file.stat().st_ino if self.file.exists() else 0

    def read(self) -> linked.Linked:
        """What the file holds."""
        found = linked.Linked(str(self.package))
        found.open()
        return found

    def imported(self, code: str, tree: Path, event: str = "PreToolUse", call: str = "") -> Any:  # noqa: ANN401 -- as JSON has it
        """What a program prints after a start from the file, and after it heard an event."""
        program = (
            "import json, sys; folder, said = sys.argv[1:]; sys.path.append(folder[:-9])\n"
            "from takeback import environment, linked\n"
            "linked.begin(folder); linked.current.link_chain('takeback.hooks.hearing')\n"
            "from takeback.hooks import hearing\n"
            "words = environment.default_home(), b'', b'', b'/'\n"
            "hearing.hear(words, said.encode())\n"
            f"print(json.dumps({code}))"
        )
        self.calls += 1
        said = payload(tree, event, call or f"call {self.calls}").decode()
        command = [sys.executable, *self.pythons, "-c", program, str(self.package), said]
        done = subprocess.run(command, capture_output=True, check=True)
        return json.loads(done.stdout)


def payload(tree: Path, event: str, prompt: str) -> bytes:
    """An event of an agent."""
    said = {"session_id": "S", "cwd": str(tree), "prompt_id": prompt, "prompt": prompt}
    call = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": prompt}
    return json.dumps({**said, **call, "tool_calls": [], "hook_event_name": event}).encode()


def log_of(tree: Path) -> list[tuple[str, str, list[bytes]]]:
    """What the log tells of each turn."""
    with takeback.open(tree) as project:
        turns = [project.turn(turn.id) for turn in project.log().turns]
        return [(t.label, t.status, [change.path for change in t.changes]) for t in turns]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """One copy for all tests that leave its sources as they are."""
    return Copy(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def copy(shared: Copy, tree: Path, home: Path) -> Copy:
    """The shared copy, with a file that is complete."""
    assert home.exists()
    if shared.complete:
        shared.file.write_bytes(shared.complete)
    else:
        shared.learn(tree)
    return shared


@pytest.fixture
def own(tmp_path: Path, tree: Path, home: Path) -> Copy:
    """A copy whose sources a test may change, with a file that is complete."""
    assert home.exists()
    made = Copy(tmp_path / "own")
    made.learn(tree)
    return made


def test_with_and_without_the_file_the_log_is_the_same(copy: Copy, tmp_path: Path) -> None:
    """The same events give the same answers and the same log, with the file and without."""
    answers = []
    logs = []
    for kind in ("with", "without"):
        folder = tmp_path / kind
        folder.mkdir()
        if kind == "without":
            copy.pythons = ["-I", "-S", "-B"]  # nor does it write one
            copy.file.unlink()
        answers.append(copy.turn(folder, "one") + copy.turn(folder, "two"))
        logs.append(log_of(folder))
    copy.pythons = ["-I", "-S"]
    assert answers[0] == answers[1]
    assert logs[0] == logs[1]
    assert [(label, status) for label, status, _ in logs[0]] == [("two", "done"), ("one", "done")]
    assert not copy.file.exists()


def test_all_comes_from_the_file(copy: Copy, tree: Path) -> None:
    """Once it is complete, nothing of ours is looked for in folders, and nothing failed."""
    found = copy.imported("[sorted(linked.current.lacking), len(linked.current.pieces)]", tree)
    assert found[0] == []
    assert found[1] > len(linking.EACH_EVENT)


def test_what_is_linked_at_once_is_needed(copy: Copy, tree: Path) -> None:
    """What an event gets at once is no more than what it imports anyway."""
    chains = [set(names) for _, names in copy.read().chains.values()]
    assert chains[0] >= set(linking.EACH_EVENT)
    assert chains[1] >= set(linking.EACH_CHANGE)
    copy.file.unlink()
    copy.imported("[]", tree)
    (tree / "new").write_text("new")
    with_changes = set(copy.imported("list(sys.modules)", tree))
    without = set(copy.imported("list(sys.modules)", tree))
    assert chains[0] - without == set()
    assert chains[1] - with_changes == set()


def test_a_small_change_needs_no_openssl(copy: Copy, tree: Path) -> None:
    """To store a file and to read the objects before it, no hook loads OpenSSL."""
    copy.turn(tree, "before")
    for event in EVENTS[:2]:
        copy.hook(payload(tree, event, "small"))
    (tree / "before").write_text("changed")
    told = "[name in sys.modules for name in ('takeback.store.packwrite', '_hashlib')]"
    assert copy.imported(told, tree, "PostToolUse", "small") == [True, False]
    told = "[name in sys.modules for name in ('takeback.store.packread', '_hashlib')]"
    assert copy.imported(told, tree, "Stop", "small") == [True, False]


def test_modules_look_as_usual(copy: Copy, tree: Path) -> None:
    """A linked module has the names, the place and the source that an imported one has."""
    told = (
        "{n: [m.__name__, m.__package__, m.__file__, getattr(m, '__path__', None),"
        " m.__spec__.name, m.__spec__.origin, m.__spec__.parent, m.__spec__.cached,"
        " m.__loader__.get_source(n)[:20], m.__doc__,"
        " getattr(sys.modules[n.rpartition('.')[0]], n.rpartition('.')[2]) is m]"
        " for n, m in sorted(sys.modules.items()) if n.startswith('takeback.')"
        " and not n.endswith(('_statloop', '.linked'))}"
    )
    from_file = copy.imported(told, tree)
    copy.file.unlink()
    usual = copy.imported(told, tree)
    assert len(usual) > 50
    assert {name: from_file[name] for name in usual} == usual


def test_functions_know_their_file(copy: Copy, tree: Path) -> None:
    """Tracebacks name the source, and each module can be loaded once more."""
    told = (
        "[hearing.hear.__code__.co_filename, hearing.hear.__code__.co_firstlineno,"
        " __import__('importlib').reload(hearing).hear.__code__.co_firstlineno]"
    )
    name, first, again = copy.imported(told, tree)
    assert name == str(copy.package / "hooks/hearing.py")
    assert first == again > 1


def test_a_source_that_changed_is_used(own: Copy, tree: Path) -> None:
    """New code counts at once, also if neither the length nor the time of its file tells."""
    source = own.package / "hooks/witness.py"
    before, text = source.stat(), source.read_text()
    assert "(the prompt was not seen)" in text
    source.write_text(text.replace("(the prompt was not seen)", "(the prompt was overseen)"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    shutil.rmtree(own.package / "hooks/__pycache__")  # by which Python itself is deceived
    assert source.stat().st_size == before.st_size
    own.hook(payload(tree, "PreToolUse", "never said").replace(b'"S"', b'"T"'))
    assert log_of(tree)[0][0] == "(the prompt was overseen)"
    again = own.learn(tree)
    assert again.is_current("takeback.hooks.witness")
    told = "sys.modules['takeback.hooks.witness'].PROMPT_NOT_SEEN"
    assert own.imported(told, tree) == "(the prompt was overseen)"


def test_a_source_that_only_some_events_need(own: Copy, tree: Path, home: Path) -> None:
    """New code counts at once in a module that is not among those that each event gets."""
    (own.package / "hooks/notes.py").write_text("raise OSError('this is new')\n")
    own.turn(tree, "after")
    assert log_of(tree)[0][:2] == ("after", "done")
    assert "this is new" in str(troubles.read(os.fsencode(home))[-1]["problem"])


def test_every_cut_is_survived(copy: Copy, tree: Path) -> None:
    """Whatever length the file has, the event is recorded, and the file is made again."""
    whole = copy.file.read_bytes()
    index = linked.HEAD + int.from_bytes(whole[linked.HEAD - 16 : linked.HEAD - 8], "little")
    cuts = [0, linked.HEAD - 16, linked.HEAD - 1, linked.HEAD, index - 1, index + 100]
    for cut in [*cuts, len(whole) - 1]:
        copy.file.write_bytes(whole[:cut])
        (tree / "new").write_text(f"{cut}")
        copy.hook(payload(tree, "UserPromptSubmit", f"cut at {cut}"))
        assert log_of(tree)[0][0] == f"cut at {cut}"
        assert copy.file.stat().st_size > cut


def test_damage_is_survived(copy: Copy, tree: Path) -> None:
    """A flipped byte in the head, the index or some code, or another Python's magic: ignored."""
    whole = copy.file.read_bytes()
    index = linked.HEAD + int.from_bytes(whole[linked.HEAD - 16 : linked.HEAD - 8], "little")
    magic = len(linked.MAGIC) - 4
    places = [0, magic, magic + 1, linked.HEAD - 16, linked.HEAD - 9, linked.HEAD - 1]
    for place in [*places, linked.HEAD, index + 50, len(whole) - 50]:
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        copy.file.write_bytes(damaged)
        copy.hook(payload(tree, "UserPromptSubmit", f"flipped {place}"))
        assert log_of(tree)[0][0] == f"flipped {place}"


def test_a_folder_that_cannot_be_written(tree: Path, home: Path, tmp_path: Path) -> None:
    """Without a place for the file hooks go on without it, and leave nothing."""
    assert home.exists()
    copy = Copy(tmp_path / "own")
    cache = copy.file.parent
    cache.write_bytes(b"")
    copy.turn(tree, "no place")
    assert log_of(tree)[0][:2] == ("no place", "done")
    assert cache.read_bytes() == b""


def test_a_copied_package_has_its_own_code(own: Copy, tree: Path, tmp_path: Path) -> None:
    """A file that came along with a copy of the package is not used: its sources are others."""
    other = Copy(tmp_path / "other")
    shutil.copytree(own.package, other.package, dirs_exist_ok=True)
    inode = other.inode()
    assert inode
    other.hook(payload(tree, "UserPromptSubmit", "copied"))
    assert log_of(tree)[0][0] == "copied"
    other.learn(tree)
    told = "sys.modules['takeback.project'].Project.open.__code__.co_filename"
    assert other.imported(told, tree) == str(other.package / "project.py")


def test_another_name_of_the_same_package(copy: Copy, tree: Path, tmp_path: Path) -> None:
    """Through a link it is the same file, and functions know the name that was used."""
    inode = copy.inode()
    (tmp_path / "link").symlink_to(copy.package.parent)
    other = copying.copy(copy)
    other.package = tmp_path / "link" / "takeback"
    told = "sys.modules['takeback.project'].Project.open.__code__.co_filename"
    assert other.imported(told, tree) == str(other.package / "project.py")
    other.turn(tree, "linked")
    assert copy.inode() == inode


def test_two_hooks_write_it_at_once(copy: Copy, tree: Path) -> None:
    """Hooks that find no file at the same time leave a whole one, and nothing else."""
    copy.file.unlink()
    command = [sys.executable, "-I", "-S", str(copy.package / "__main__.py"), "hook"]
    env = {**os.environ, "TAKEBACK_HELPER": "0"}
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        for _ in range(4)
    ]
    for number, process in enumerate(both):
        process.communicate(payload(tree, "UserPromptSubmit", f"at once {number}"))
        assert process.returncode == 0
    assert {label for label, _, _ in log_of(tree)} >= {f"at once {n}" for n in range(4)}
    assert len(copy.read().pieces) > len(linking.EACH_EVENT)
    assert [p for p in copy.file.parent.iterdir() if p.name.startswith(copy.file.name)] == [
        copy.file
    ]


def test_what_a_killed_hook_left_is_removed(copy: Copy, tree: Path) -> None:
    """A half-written file of a hook that was killed goes with the next file, a new one stays."""
    old, new = (copy.file.with_name(f"{copy.file.name}.{pid}") for pid in (1, 2))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    copy.file.unlink()
    copy.hook(payload(tree, "UserPromptSubmit", "tidy"))
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()


@pytest.mark.parametrize(
    "name", ["takeback.project", "takeback.hooks.hearing", "takeback.hooks.entry"]
)
def test_a_module_that_fails_is_imported_as_usual(copy: Copy, tree: Path, name: str) -> None:
    """If code from the file cannot be run, its source is, and the event is recorded."""
    program = (
        f"import sys; sys.path.append({str(copy.package.parent)!r})\n"
        "from takeback import linked\n"
        "real, failed = linked.run, []\n"
        "def run(code, module):\n"
        "    real(code, module)\n"
        f"    if module.__name__ == {name!r}: failed.append(module); raise LookupError\n"
        "linked.run = run\n"
        f"linked.begin({str(copy.package)!r})\n"
        "from takeback.hooks import entry; entry.main()\n"
        "assert len(failed) == 1\n"
        f"assert sys.modules[{name!r}].__spec__.origin\n"
        "assert linked.current not in sys.meta_path\n"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    env = {**os.environ, "TAKEBACK_HELPER": "0"}
    said = payload(tree, "UserPromptSubmit", f"without {name}")
    done = subprocess.run(command, input=said, capture_output=True, check=False, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert log_of(tree)[0][0] == f"without {name}"


@pytest.fixture
def helped(copy: Copy, home: Path) -> Iterator[Copy]:
    """A copy whose hooks leave a helper behind, which ends with the test."""
    yield copy
    for pid in helpers(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_the_helper_works_after_a_linked_start(helped: Copy, tree: Path, home: Path) -> None:
    """A helper that was left behind by such a hook hears events, and imports what it lacks."""
    helped.hook(payload(tree, "SessionStart", "helped"), TAKEBACK_HELPER="1")
    until(lambda: helpers(home) and (home / "hooks.sock").exists(), "a helper")
    (pid,) = helpers(home)
    helped.turn(tree, "helped", TAKEBACK_HELPER="1")
    assert log_of(tree)[0] == ("helped", "done", [b"helped"])
    assert helpers(home) == [pid]
    assert str(helped.file) not in files_of(pid)
