"""Nothing of the user's is touched, nothing is run, and nobody else can look in."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import oracle
import takeback
from faults import canaries
from faults.canaries import Traps, git_environment, python
from faults.report import stage
from hostile.stage import in_child
from takeback.disk import operations
from takeback.errors import TakebackError, UnsafeRootError, UnsafeStoreError

MAIN = str(Path(takeback.__file__).parent / "__main__.py")
CHECKPOINTS = 200
NOBODY = 65534
AS_ROOT = os.geteuid() == 0

needs_root = pytest.mark.skipif(not AS_ROOT, reason="needs root: files of another user")
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")


# -- nothing is touched ----------------------------------------------------------------------


def test_the_repository_is_not_touched() -> None:
    """After 200 checkpoints the user's `.git` has the same bytes, modes, inodes and stamps."""
    with stage() as folder:
        tree = folder / "tree"
        tree.mkdir()
        _repository(tree)
        before = oracle.picture(tree / ".git"), oracle.stamps(tree / ".git")
        with takeback.open(tree, home=folder / "home") as project:
            made = [_edit_and_checkpoint(project, tree, number) for number in range(CHECKPOINTS)]
        after = oracle.picture(tree / ".git"), oracle.stamps(tree / ".git")
        assert oracle.differences(before[0], after[0]) == []
        assert oracle.differences(before[1], after[1]) == []
        assert len(set(made)) == CHECKPOINTS


def _edit_and_checkpoint(project: takeback.Project, tree: Path, number: int) -> str:
    (tree / f"file{number % 7}").write_bytes(b"%d\n" % number)
    (tree / f"folder{number % 5}").mkdir(exist_ok=True)
    (tree / f"folder{number % 5}/own{number}").write_bytes(b"%d" % number)
    if number % 3 == 0:
        os.rename(tree / f"file{number % 7}", tree / "renamed")
    edited = oracle.stamps(tree)
    id = project.checkpoint().id
    assert oracle.differences(edited, oracle.stamps(tree)) == []
    return id


def _repository(tree: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tree, env=git_environment(tree.parent), check=True)

    git("init", "-q", "-b", "main")
    for number in range(7):
        (tree / f"file{number}").write_bytes(b"committed\n")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    (tree / "file1").write_bytes(b"stashed\n")
    git("stash", "-q")
    git("tag", "v1")
    (tree / "file2").write_bytes(b"staged\n")
    git("add", "file2")


# -- nothing is run --------------------------------------------------------------------------


@pytest.fixture
def traps() -> Iterator[Traps]:
    """A repository full of traps."""
    with stage() as folder:
        yield canaries.lay(folder, folder / "home")


def test_the_traps_work(traps: Traps) -> None:
    """Git and python themselves, used as people use them, walk into the traps."""
    git = shutil.which("git")
    assert git
    (traps.tree / "file").write_text("changed\n")
    own = git_environment(traps.tree.parent)
    for words in (["add", "file"], ["diff"], ["commit", "-m", "two"], ["checkout", "-b", "b"]):
        subprocess.run([git, *words], cwd=traps.tree, env=own, capture_output=True, check=False)
    traps.run([python(), "-c", "import sqlite3"])
    traps.run(["git", "log"])
    sprung = " ".join(traps.sprung())
    for name in ("/trap", "/hooks/pre-commit", "/programs/git", "sitecustomize.py", "sqlite3.py"):
        assert name in sprung


COMMANDS: tuple[list[str], ...] = (
    ["checkpoint", "-m", "first"],
    [],
    ["checkpoint"],
    ["verify"],
    ["usage"],
    ["extract", "@", "../out"],
    ["checkpoint", "--json"],
)


@pytest.mark.parametrize("traced", [pytest.param(True, marks=needs_strace), False])
def test_nothing_runs(traps: Traps, traced: bool) -> None:
    """No command, run inside the tree, springs a trap or starts a program."""
    programs = set()
    for number, words in enumerate(COMMANDS):
        (traps.tree / "file").write_text(f"{number // 2}\n")
        command = [python(), "-I", "-S", MAIN, *words]
        trace = traps.tree.parent / "trace"
        if traced:
            tracer = [shutil.which("strace") or "", "-f", "-qq", "-s", "999", "-o", str(trace)]
            command = [*tracer, "-e", "trace=execve,execveat", *command]
        done = traps.run(command)
        assert done.returncode == 0, done.stderr
        if traced:
            programs |= set(re.findall(r'execve(?:at)?\((?:\w+, )?"([^"]*)"', trace.read_text()))
    assert traps.sprung() == []
    assert programs == ({python()} if traced else set())


def test_the_library_runs_nothing(traps: Traps) -> None:
    """A program of its own that uses the library inside the tree springs no trap either."""
    source = str(Path(takeback.__file__).parent.parent)
    program = (
        f"import sys; sys.path.append({source!r}); import takeback; p = takeback.open('.');"
        "p.checkpoint(); p.verify(); p.status(); p.usage(); p.extract('@', '../out')"
    )
    done = traps.run([python(), "-I", "-c", program])
    assert done.returncode == 0, done.stderr
    assert traps.sprung() == []


# -- nobody else can look in -----------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777], ids=oct)
@pytest.mark.parametrize("plain", [pytest.param(True, marks=needs_root), False])
def test_the_store_is_private(umask: int, plain: bool) -> None:
    """Whatever the umask, from its first moment nothing in a store is open to anybody else."""
    with stage() as folder:
        if plain:
            os.chown(folder, NOBODY, NOBODY)
        in_child(lambda: _work_with_umask(folder, umask), plain=plain)


def _work_with_umask(folder: Path, umask: int) -> None:
    """Look at all modes before every single step, so also right after each creation."""
    tree, home = folder / "tree", folder / "home"
    tree.mkdir()
    (tree / "file").write_text("1")
    os.umask(umask)
    seen: set[str] = set()

    def look(_step: str, _args: tuple[object, ...]) -> None:
        seen.update(_open_to_others(home))

    operations.hook = look
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        (tree / "file").write_text("2")
        project.checkpoint()
        look("", ())
        project.verify()
    look("", ())
    operations.hook = None
    assert seen == set()
    # And still usable by ourselves, whatever bits the umask took away.
    with takeback.open(tree, home=home) as project:
        assert project.verify().ok
    _check_exact_modes(home)


def _open_to_others(home: Path) -> Iterator[str]:
    for path in (home, *home.rglob("*")):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue
        allowed = 0o700 if path.is_dir() else 0o600
        if mode & ~allowed:
            yield f"{path.relative_to(home)} {mode:o}"


def _check_exact_modes(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))


@needs_strace
def test_files_are_created_private() -> None:
    """The kernel is never asked to make a file that others could open, not for an instant."""
    with stage() as folder:
        tree = folder / "tree"
        tree.mkdir()
        (tree / "file").write_text("1")
        trace = folder / "trace"
        calls = "trace=open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat"
        for words in (["checkpoint"], ["extract", "@", "../out"]):
            command = ["strace", "-f", "-qq", "-s", "999", "-A", "-o", str(trace), "-e", calls]
            subprocess.run(
                [*command, python(), "-I", "-S", MAIN, *words],
                cwd=tree,
                env={"TAKEBACK_HOME": str(folder / "home"), "PATH": os.environ["PATH"]},
                umask=0,
                check=True,
                capture_output=True,
            )
        made = re.findall(
            r'"([^"]*)"(?:, [A-Z_|]*O_CREAT[A-Z_|]*)?, (0[0-7]*)\)', trace.read_text()
        )
        assert len(made) > 10
        # SQLite would also make the ledger, but finds that we did.
        others = [(path, mode) for path, mode in made if not path.endswith("/ledger.db")]
        assert [pair for pair in others if int(pair[1], 8) & 0o077] == []


def _open_to_group(home: Path, _store: Path) -> None:
    home.chmod(0o750)


def _open_to_all(home: Path, _store: Path) -> None:
    home.chmod(0o701)


def _store_open(_home: Path, store: Path) -> None:
    store.chmod(0o770)


def _home_a_link(home: Path, _store: Path) -> None:
    home.rename(home.with_name("elsewhere"))
    home.symlink_to("elsewhere")


def _store_a_link(_home: Path, store: Path) -> None:
    store.rename(store.with_name("elsewhere"))
    store.symlink_to("elsewhere")


def _home_a_file(home: Path, _store: Path) -> None:
    shutil.rmtree(home)
    home.write_text("")


UNSAFE = (_open_to_group, _open_to_all, _store_open, _home_a_link, _store_a_link, _home_a_file)


@pytest.mark.parametrize("spoil", UNSAFE, ids=lambda way: way.__name__.strip("_"))
def test_an_open_store_is_refused(spoil: Callable[[Path, Path], None]) -> None:
    """A store that others can reach, or that is somewhere else than it says, is not used."""
    with stage() as folder:
        _refused_after(folder, spoil)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o777, 0o1777], ids=oct)
def test_an_empty_home_of_ones_own_is_closed(mode: int) -> None:
    """Nothing in it was ever shown, so the first use makes it private; reading leaves it alone."""
    with stage() as folder:
        tree, home = folder / "tree", folder / "home"
        tree.mkdir()
        home.mkdir()
        home.chmod(mode)
        assert takeback.Project.find(os.fsencode(tree), home=os.fsencode(home)) is None
        assert stat.S_IMODE(home.stat().st_mode) == mode
        with takeback.open(tree, home=home) as project:
            project.checkpoint()
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


@needs_root
def test_an_empty_home_of_somebody_else_is_refused() -> None:
    """It is not ours to close."""
    with stage() as folder:
        (folder / "tree").mkdir()
        (folder / "home").mkdir()
        os.chown(folder / "home", NOBODY, NOBODY)
        with pytest.raises(UnsafeStoreError, match="belongs to another user"):
            takeback.open(folder / "tree", home=folder / "home").checkpoint()
        assert os.listdir(folder / "home") == []


@needs_root
def test_somebody_who_was_quicker_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another user put into the folder before it was closed is not taken for a store."""
    with stage() as folder:
        (folder / "tree").mkdir()
        home = folder / "home"
        home.mkdir()
        home.chmod(0o777)
        close = operations.fchmod

        def late(fd: int, mode: int) -> None:
            (home / "config.toml").touch()
            os.chown(home / "config.toml", NOBODY, NOBODY)
            close(fd, mode)

        monkeypatch.setattr(operations, "fchmod", late)
        with pytest.raises(UnsafeStoreError, match="another user wrote"):
            takeback.open(folder / "tree", home=home).checkpoint()


@needs_root
@pytest.mark.parametrize("inner", [False, True], ids=["home", "store"])
def test_somebody_elses_store_is_refused(inner: bool) -> None:
    """A store that belongs to another user is not used."""

    def give_away(home: Path, store: Path) -> None:
        os.chown(store if inner else home, NOBODY, NOBODY)

    with stage() as folder:
        _refused_after(folder, give_away)


def _refused_after(folder: Path, spoil: Callable[[Path, Path], None]) -> None:
    tree, home = folder / "tree", folder / "home"
    tree.mkdir()
    (tree / "file").write_text("1")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        store = Path(os.fsdecode(project.status().store))
    spoil(home, store)
    before = oracle.picture(folder), oracle.stamps(tree)
    with pytest.raises(UnsafeStoreError):
        takeback.open(tree, home=home).checkpoint()
    assert oracle.differences(before[0], oracle.picture(folder)) == []
    assert oracle.differences(before[1], oracle.stamps(tree)) == []


@pytest.mark.parametrize("name", ["lock", "ledger.db", "git", "git/objects/pack", "root"])
def test_links_in_the_store_are_not_followed(name: str) -> None:
    """A file or folder of the store that became a link makes nothing appear elsewhere."""
    with stage() as folder:
        tree, home, elsewhere = folder / "tree", folder / "home", folder / "elsewhere"
        tree.mkdir()
        (tree / "file").write_text("1")
        with takeback.open(tree, home=home) as project:
            project.checkpoint()
            store = Path(os.fsdecode(project.status().store))
        os.rename(store / name, elsewhere)
        (store / name).symlink_to(elsewhere)
        (tree / "file").write_text("2")
        before = oracle.stamps(folder)[b"elsewhere"]
        inside = oracle.picture(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes()
        try:
            with takeback.open(tree, home=home) as project:
                project.checkpoint()
        except TakebackError:
            pass
        now = oracle.picture(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes()
        assert inside == now
        assert before == oracle.stamps(folder)[b"elsewhere"]


# -- some folders are never a project --------------------------------------------------------


def test_unsafe_roots_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """`/`, the home folder and the store itself cannot be a project, and nothing is made."""
    with stage() as folder:
        person, home = folder / "person", folder / "home"
        person.mkdir()
        monkeypatch.setenv("HOME", str(person))
        for root in (Path("/"), person):
            with pytest.raises(UnsafeRootError):
                takeback.open(root, home=home)
        assert not home.exists()
        (person / "work").mkdir()
        with takeback.open(person / "work", home=home) as project:
            project.checkpoint()
        for inside in (home, home / "projects", home / "projects" / project.id):
            with pytest.raises(UnsafeRootError):
                takeback.open(inside, home=home)
