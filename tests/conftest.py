"""What every test gets: a known umask, no settings of the person at the keyboard, fast folders.

Test folders are made in `/dev/shm` where that is safe: thousands of small trees with fsync are
faster in memory than on a disk. Safe means that it holds at most half of the memory, so that a test
which fills it gets ENOSPC, or that so much memory is free that no run fills it (a whole one holds
100 MB at a time). Elsewhere such a test would have the kernel kill other people's processes, so the
usual temporary folder is used. `pytest --basetemp=DIR` puts them elsewhere, which is the way to try
a certain file system.

With `CI` set, hypothesis tries the same examples in each run and remembers none, so that a run
depends on nothing but the commit. At home it looks for new ones.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import wheels
from cases import Work
from takeback.disk import operations, programs

MEMORY = Path("/dev/shm")
ROOM_NEEDED = 1 << 30
ROOM_FOR_ANYTHING = 8 << 30

hypothesis.settings.register_profile("home", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "home")


def pytest_configure(config: pytest.Config) -> None:
    """Put `tmp_path` into memory, unless the caller chose a place."""
    if config.option.basetemp or "PYTEST_DEBUG_TEMPROOT" in os.environ:
        return
    if is_safe_memory(MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


def is_safe_memory(folder: Path) -> bool:
    """Whether a folder in memory has room, and is full before the machine's memory is."""
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return False
    room = os.statvfs(folder)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    is_bounded = room.f_blocks * room.f_frsize <= memory // 2
    free = min(room.f_bavail * room.f_frsize, _free_memory())
    return free >= (ROOM_NEEDED if is_bounded else ROOM_FOR_ANYTHING)


def _free_memory() -> int:
    """What programs can still take without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, size, *_ = line.split()
        if name == "MemAvailable:":
            return int(size) << 10
    return 0


@pytest.fixture
def signals_as_in_a_terminal() -> Iterator[None]:
    """What `nohup`, or a shell that starts something in the background, ignores is not ignored."""
    asked = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    ignored = [number for number in asked if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        is_interrupt = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def _known_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fix the umask, and hide the person's own store, home folder and git settings.

    No session that ends here leaves a `takeback gc` behind; what a test starts as a program does.
    """
    nobody = tmp_path_factory.mktemp("nobody")
    before = os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "start_ourselves", lambda *_, **__: False)
        for name in [name for name in os.environ if name.startswith(("GIT_", "TAKEBACK_", "XDG_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(nobody))
        patch.setenv("TAKEBACK_HOME", str(nobody / "takeback"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield
    os.umask(before)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    return wheels.shared_wheel(folder.parent if is_worker else folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private and empty folder for stores, which `TAKEBACK_HOME` names."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TAKEBACK_HOME", str(folder))
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty folder to be captured."""
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def work(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """An empty tree in which an agent can work; nothing waits for the disk."""
    monkeypatch.setattr(operations, "sync", False)
    ours = Work(tree, home)
    yield ours
    ours.close()
