"""The user's git is read as plain files, agrees with git, and is left as it was."""

import hashlib
import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from takeback.worktree.git import index as git_index
from takeback.worktree.git.user_git import (
    Head,
    Repository,
    find_repository,
    is_settled,
    look,
    top_of_repository,
)

Shape = Callable[[Path], Path]


def git(where: Path, *words: str, stdin: bytes = b"") -> bytes:
    """Run git as somebody, and give what it prints."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    options = [*who, "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(where), *options, *words]
    return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout


def plain(where: Path) -> Path:
    """Make a repository with a commit, odd names, a link and folders."""
    where.mkdir()
    git(where, "init", "-q")
    for name in (b"a", b"d/b", b"d/e/c", b"x y", b"\xff\xfe", b"new\nline", b"n" * 200 + b"/deep"):
        path = where / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name)
    (where / "link").symlink_to("a")
    git(where, "add", "-A")
    git(where, "commit", "-qm", "one")
    (where / "untracked").write_text("u")
    return where


def linked_worktree(where: Path) -> Path:
    """Make a second work tree of a repository."""
    main = plain(where)
    git(main, "worktree", "add", "-q", "-b", "side", "../side")
    (where.parent / "side" / "more").write_text("m")
    git(where.parent / "side", "add", "more")
    return where.parent / "side"


def submodule(where: Path) -> Path:
    """Make a repository within another, the way git keeps them."""
    plain(where.parent / "library")
    main = plain(where)
    git(main, "submodule", "add", "-q", "../library", "lib")
    return main / "lib"


def with_submodule(where: Path) -> Path:
    """Make a repository that has a submodule."""
    return submodule(where).parent


def unborn(where: Path) -> Path:
    """Make a repository without any commit, but with a staged file."""
    where.mkdir()
    git(where, "init", "-q")
    (where / "a").write_text("a")
    git(where, "add", "a")
    return where


def fresh(where: Path) -> Path:
    """Make a repository in which nothing was ever done."""
    where.mkdir()
    git(where, "init", "-q")
    return where


def emptied(where: Path) -> Path:
    """Make a repository whose index lists nothing."""
    plain(where)
    git(where, "rm", "-rqf", "--cached", ".")
    return where


def detached(where: Path) -> Path:
    """Check out a commit instead of a branch."""
    plain(where)
    git(where, "checkout", "-q", "--detach")
    return where


def packed(where: Path) -> Path:
    """Pack very many references, so that the wanted one is not in the first piece."""
    plain(where)
    git(where, "checkout", "-qb", "zz/last")
    git(where, "commit", "-q", "--allow-empty", "-m", "two")
    git(where, "pack-refs", "--all", "--prune")
    path = where / ".git/packed-refs"
    head, first, rest = path.read_text().partition("\n")
    many = "".join(f"{'0' * 39}1 refs/heads/a{n:05}/{'x' * 60}\n" for n in range(11_000))
    path.write_text(head + first + many + rest)
    assert path.stat().st_size > 1 << 20
    return where


def version_4(where: Path) -> Path:
    """Use the index format that shares the beginnings of names."""
    plain(where)
    for number in range(300):
        (where / f"d/{'p' * (number % 190)}{number}").touch()
    git(where, "add", "-A")
    git(where, "update-index", "--index-version", "4")
    return where


def split(where: Path) -> Path:
    """Split the index, then add, change and remove entries in the upper half."""
    plain(where)
    for number in range(300):
        (where / f"f{number:03}").touch()
    git(where, "add", "-A")
    git(where, "update-index", "--split-index")
    git(where, "-c", "splitIndex.maxPercentChange=100", "rm", "-q", "--cached", "a", "f007", "f290")
    git(where, "-c", "splitIndex.maxPercentChange=100", "rm", "-q", "--cached", "f1?0")
    (where / "a/").unlink()
    (where / "f100").write_text("changed")
    (where / "zzz").touch()
    options = ("-c", "splitIndex.maxPercentChange=100")
    git(where, *options, "update-index", "--add", "f100", "zzz", "d/b")
    assert list((where / ".git").glob("sharedindex.*"))
    return where


def intent_to_add(where: Path) -> Path:
    """Promise a file to git without its content: this needs index version 3."""
    plain(where)
    git(where, "add", "-N", "untracked")
    assert (where / ".git/index").read_bytes()[7] == 3
    return where


def conflict(where: Path) -> Path:
    """Leave a merge unfinished: one path then has three entries."""
    plain(where)
    for branch, content in (("left", "l"), ("right", "r")):
        git(where, "checkout", "-qb", branch, "main")
        (where / "a").write_text(content)
        git(where, "commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(where, "merge", "-q", "left")
    return where


def sha256(where: Path) -> Path:
    """Make a repository with the longer hash."""
    where.mkdir()
    git(where, "init", "-q", "--object-format=sha256")
    for name in ("a", "b/c", "long" * 50):
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_text(name)
    git(where, "add", "-A")
    git(where, "commit", "-qm", "one")
    return where


def sha256_version_4(where: Path) -> Path:
    """Use the longer hash and the shorter names."""
    sha256(where)
    git(where, "update-index", "--index-version", "4")
    return where


def sha256_split(where: Path) -> Path:
    """Use the longer hash and a split index."""
    sha256(where)
    git(where, "update-index", "--split-index")
    git(where, "-c", "splitIndex.maxPercentChange=100", "rm", "-q", "--cached", "a")
    return where


def sha256_emptied(where: Path) -> Path:
    """Use the longer hash in an index that lists nothing."""
    sha256(where)
    git(where, "rm", "-rqf", "--cached", ".")
    return where


def long_name(where: Path) -> Path:
    """Track a path longer than an entry's length field can say."""
    plain(where)
    blob = git(where, "hash-object", "-w", "--stdin", stdin=b"").decode().strip()
    name = "/".join(["q" * 250] * 20)
    git(where, "update-index", "--index-info", stdin=f"100644 {blob}\t{name}\n".encode())
    return where


SHAPES = [
    plain, linked_worktree, submodule, with_submodule, unborn, fresh, emptied, detached, packed,
    version_4, split, intent_to_add, conflict, sha256, sha256_version_4, sha256_split,
    sha256_emptied, long_name,
]  # fmt: skip


def found(where: Path) -> Repository:
    """Find the repository, which must be there."""
    repository = find_repository(os.fsencode(where))
    assert repository is not None
    return repository


def head_by_git(where: Path) -> Head:
    """Ask git itself what is checked out."""
    try:
        commit = git(where, "rev-parse", "--verify", "-q", "HEAD").decode().strip()
    except subprocess.CalledProcessError:
        commit = None
    try:
        branch = git(where, "symbolic-ref", "-q", "--short", "HEAD").strip()
    except subprocess.CalledProcessError:
        branch = None
    return Head(branch, commit)


def stamps(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything about all entries below a folder, access times aside."""
    result: dict[str, tuple[object, ...]] = {}
    for path in [folder, *folder.rglob("*")]:
        info = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        about = (info.st_mode, info.st_ino, info.st_nlink, info.st_size, info.st_uid)
        result[str(path)] = (*about, info.st_mtime_ns, info.st_ctime_ns, content)
    return result


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_git_and_leaves_no_trace(shape: Shape, tmp_path: Path) -> None:
    """Head, paths and checksum are git's, for every shape, and no byte or stamp moves."""
    where = shape(tmp_path / "work")
    head = head_by_git(where)
    listed = frozenset(git(where, "ls-files", "-z").split(b"\0")) - {b""}
    index = Path(os.fsdecode(found(where).git_dir)) / "index"
    before = stamps(tmp_path)

    repository = found(where)
    assert repository.head() == head
    assert repository.read_index() == git_index.Index(listed, complete=True)
    assert repository.tracked_files() == listed
    if index.exists():
        size = 32 if shape.__name__.startswith("sha256") else 20
        assert repository.index_checksum() == index.read_bytes()[-size:].hex()
    else:
        assert repository.index_checksum() is None

    state = repository.state()
    shown = git(where, "for-each-ref", "--format=%(refname) %(objectname) %(symref)").decode()
    rows = [line.split(" ") for line in shown.splitlines()]
    refs = {name: f"ref: {target}" if target else id for name, id, target in rows}
    told = {name: id for name, id in state.items() if name.startswith("refs/")}
    assert told == ({} if len(refs) > 10_000 else refs)
    assert (state.get("branch"), state.get("head")) == (
        head.branch.decode() if head.branch is not None else None,
        head.commit,
    )
    assert ("index" in state) == index.exists()

    assert stamps(tmp_path) == before


def test_stashes_worktrees_and_what_is_under_way(tmp_path: Path) -> None:
    """What else a turn records is what git lists."""
    where = plain(tmp_path / "work")
    git(where, "worktree", "add", "-q", "../side")
    for text in "12":
        (where / "a").write_text(text)
        git(where, "stash", "push", "-q", "-m", f"number {text}")
    git(where, "pack-refs", "--all")
    (where / ".git/MERGE_HEAD").write_text("0" * 40)
    state = found(where).state()
    listed = git(where, "reflog", "show", "--format=%H\t%gs", "refs/stash").decode().splitlines()
    stashes = dict(line.split("\t") for line in listed)
    assert len(stashes) == 2
    assert {n[6:]: text for n, text in state.items() if n.startswith("stash ")} == stashes
    assert state["worktree side"] == str(tmp_path / "side")
    assert state["doing"] == "merge"


def test_a_look_at_nothing_new_reads_no_reference(tmp_path: Path) -> None:
    """Stamps are the same while git does nothing, and others whenever a reference moves."""
    where = packed(tmp_path / "work")
    before = found(where).stamps()
    assert found(where).stamps() == before
    assert not is_settled(before, time.time_ns())
    assert is_settled(before, time.time_ns() + 10**10)
    for words in (("branch", "b"), ("pack-refs", "--all"), ("branch", "-D", "b"), ("stash",)):
        (where / "a").write_text("changed")
        git(where, *words)
        now = found(where).stamps()
        assert now != before
        before = now


def test_too_many_references_are_unknown(tmp_path: Path) -> None:
    """Beyond 10,000 nobody looks; up to there it takes well below a second."""
    where = plain(tmp_path / "work")
    id = git(where, "rev-parse", "HEAD").decode().strip()
    lines = [f"{id} refs/tags/v{number:05}\n" for number in range(9_999)]
    (where / ".git/packed-refs").write_text("".join(lines))
    started = time.process_time()
    state = found(where).state()
    assert time.process_time() - started < 3
    assert sum(name.startswith("refs/") for name in state) == 10_000
    (where / ".git/packed-refs").write_text("".join(lines) + f"{id} refs/tags/more\n")
    state = found(where).state()
    assert (state["refs"], state["branch"], state["head"]) == ("too many", "main", id)
    assert not any(name.startswith("refs/") for name in state)


def test_a_sparse_index_is_known_to_be_incomplete(tmp_path: Path) -> None:
    """Of a sparse index the single files are listed, and that there are more is said."""
    where = plain(tmp_path / "work")
    git(where, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(where, "sparse-checkout", "set", "d")
    shown = git(where, "ls-files", "--sparse", "-z").split(b"\0")
    assert any(name.endswith(b"/") for name in shown)
    files = frozenset(name for name in shown if name and not name.endswith(b"/"))
    assert found(where).read_index() == git_index.Index(files, complete=False)


def test_an_index_without_its_hash_is_read(tmp_path: Path) -> None:
    """Where git was told to skip the hash, the paths are known and the checksum is not."""
    where = plain(tmp_path / "work")
    index = where / ".git/index"
    index.write_bytes(index.read_bytes()[:-20] + bytes(20))
    assert found(where).tracked_files() == frozenset(git(where, "ls-files", "-z").split(b"\0")[:-1])
    assert found(where).index_checksum() is None


def test_a_missing_shared_half_is_unknown(tmp_path: Path) -> None:
    """A split index without its shared half gives nothing rather than half the truth."""
    where = split(tmp_path / "work")
    for half in (where / ".git").glob("sharedindex.*"):
        half.unlink()
    assert found(where).read_index() == git_index.UNKNOWN


def test_reftable_is_unknown(tmp_path: Path) -> None:
    """A repository with its references in tables has no branch and commit for us."""
    where = plain(tmp_path / "work")
    (where / ".git/reftable").mkdir()
    (where / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    assert found(where).head() == Head(None, None)
    assert found(where).state()["refs"] == "reftable"


def test_head_as_a_link_is_read_not_followed(tmp_path: Path) -> None:
    """The oldest way to write HEAD, a symbolic link, still names the branch."""
    where = plain(tmp_path / "work")
    head = head_by_git(where)
    (where / ".git/HEAD").unlink()
    (where / ".git/HEAD").symlink_to("refs/heads/main")
    assert found(where).head() == head


@pytest.mark.parametrize("marker", [".git", ".jj", ".hg", ".svn"])
def test_the_top_of_a_tree_is_found(marker: str, tmp_path: Path) -> None:
    """The nearest folder with a mark of version control is the top, from any depth."""
    deep = tmp_path / "outer" / "inner" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    (tmp_path / "outer" / "inner" / marker).mkdir()
    inner = os.fsencode(tmp_path / "outer" / "inner")
    assert top_of_repository(os.fsencode(deep)) == inner
    assert top_of_repository(inner) == inner
    assert top_of_repository(os.path.dirname(inner)) == os.path.dirname(inner)


def test_the_top_of_a_linked_work_tree_is_its_own(tmp_path: Path) -> None:
    """A `.git` file marks a top as well as a folder does; a pipe of that name does not."""
    where = linked_worktree(tmp_path / "work")
    (where / "sub").mkdir()
    assert top_of_repository(os.fsencode(where / "sub")) == os.fsencode(where)
    os.mkfifo(where / "sub/.git")
    assert top_of_repository(os.fsencode(where / "sub")) == os.fsencode(where)


def test_no_repository_is_none(tmp_path: Path) -> None:
    """A folder without git, one that is not there, and nonsense paths have no repository."""
    for path in (tmp_path, tmp_path / "missing", tmp_path / ("n" * 300)):
        assert find_repository(os.fsencode(path)) is None
    assert find_repository(b"a\0b") is None


GIT_FILES = [
    b"", b"gitdir:", b"gitdir: ", b"gitdir: \n", b"gitdir: missing", b"gitdir: a\0b", b"\xff" * 99,
    b"gitdir: .git", b"gitdir: /dev", b"gitdir: " + b"x" * 70_000, b"gitdir: " + b"../" * 9000,
    b"gitdir: " + b"n" * 5000, b"GITDIR: real",
]  # fmt: skip


@pytest.mark.parametrize("content", GIT_FILES)
def test_a_nonsense_git_file_is_no_repository(content: bytes, tmp_path: Path) -> None:
    """A `.git` file that leads nowhere is as if there were none."""
    (tmp_path / ".git").write_bytes(content)
    assert find_repository(os.fsencode(tmp_path)) is None


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither `.git` itself nor anything inside is reached through a link."""
    where = plain(tmp_path / "work")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.git").symlink_to(where / ".git")
    assert find_repository(os.fsencode(tmp_path / "other")) is None
    for name in ("index", "refs"):
        (where / ".git" / name).rename(tmp_path / name)
        (where / ".git" / name).symlink_to(tmp_path / name)
    assert found(where).head() == Head(b"main", None)
    assert found(where).read_index() == git_index.UNKNOWN
    assert found(where).index_checksum() is None
    assert found(where).state()["refs"] == "unreadable"
    assert look(os.fsencode(tmp_path / "other")) == ({".git": "link", "refs": "link"}, None)


def test_loops_end(tmp_path: Path) -> None:
    """Links to themselves, references to themselves and a folder as its own git end at once."""
    where = plain(tmp_path / "work")
    (where / ".git/refs/heads/main").write_text("ref: refs/heads/main\n")
    assert found(where).head() == Head(b"main", None)
    (where / ".git/commondir").write_text(".\n")
    assert found(where).head() == Head(b"main", None)
    for name in ("index", "HEAD"):
        (where / ".git" / name).unlink()
        (where / ".git" / name).symlink_to(name)
    assert found(where).head() == Head(None, None)
    assert found(where).read_index() == git_index.UNKNOWN


@pytest.mark.parametrize(
    "name",
    ["HEAD", "index", "commondir", "packed-refs", "refs/heads/main", "refs/x", "logs/refs/stash"],
)
@pytest.mark.timeout(20)
def test_a_pipe_does_not_hang(name: str, tmp_path: Path) -> None:
    """A pipe in place of any file is not waited for."""
    where = plain(tmp_path / "work")
    path = where / ".git" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    repository = find_repository(os.fsencode(where))
    assert (repository is None) == (name == "HEAD")
    if repository is not None:
        assert repository.head().branch == b"main"
        assert repository.read_index().complete == (name != "index")
        assert (repository.index_checksum() is None) == (name == "index")
        assert ("refs" in repository.state()) == (name == "packed-refs")
        repository.stamps()


@pytest.mark.parametrize(
    "target", ["refs/heads/../../../../secret", "refs/heads//x", "/etc/passwd", "refs/a b", "../x"]
)
def test_a_reference_cannot_lead_out(target: str, tmp_path: Path) -> None:
    """HEAD naming a path outside of the references is unknown, and nothing is read there."""
    where = plain(tmp_path / "work")
    (tmp_path / "secret").write_text("a" * 40 + "\n")
    (where / ".git/HEAD").write_text(f"ref: {target}\n")
    assert found(where).head() == Head(None, None)


def test_a_huge_index_is_not_read(tmp_path: Path) -> None:
    """Ten gigabytes of holes, with a good beginning or a bad one, cost neither time nor memory."""
    where = plain(tmp_path / "work")
    index = where / ".git/index"
    for start in (index.read_bytes(), b"", b"DIRC\0\0\0\2\xff\xff\xff\xff"):
        index.write_bytes(start)
        os.truncate(index, 10 << 30)
        started = time.process_time()
        assert found(where).read_index() == git_index.UNKNOWN
        found(where).index_checksum()
        assert time.process_time() - started < 3


def test_few_bytes_cannot_make_huge_names(tmp_path: Path) -> None:
    """A version 4 index that grows each name out of the one before is refused in time."""
    where = plain(tmp_path / "work")
    count = 200_000
    entry = bytes(60) + b"\x0f\xff\0"
    body = b"DIRC\0\0\0\4" + count.to_bytes(4) + entry + b"n" * 4095 + b"\0"
    body += (bytes(60) + b"\x0f\xff\1" + b"n\0") * (count - 1)
    (where / ".git/index").write_bytes(body + hashlib.sha1(body).digest())
    assert found(where).read_index() == git_index.UNKNOWN


@pytest.mark.parametrize("shape", [plain, version_4, split, sha256])
def test_damage_never_crashes_and_never_lies(shape: Shape, tmp_path: Path) -> None:
    """A damaged index is unknown: flipped, cut, grown, or shuffled, and also with a good hash."""
    where = shape(tmp_path / "work")
    repository = found(where)
    index = where / ".git/index"
    good = index.read_bytes()
    choose = random.Random(11)
    hash_size = 32 if shape is sha256 else 20
    digest = hashlib.sha256 if shape is sha256 else hashlib.sha1
    for number in range(150):
        bad = bytearray(good)
        for _ in range(choose.randint(1, 4)):
            at = choose.randrange(len(bad))
            bad[at] ^= choose.randint(1, 255)
        if choose.random() < 0.3:
            del bad[choose.randrange(len(bad)) :]
        if choose.random() < 0.2:
            bad += choose.randbytes(choose.randint(1, 60))
        index.write_bytes(bad)
        assert bad == good or repository.read_index() == git_index.UNKNOWN, number
        repository.index_checksum()
        body = bytes(bad[:-hash_size])
        index.write_bytes(body + digest(body).digest())
        assert all(type(name) is bytes for name in repository.tracked_files())


@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "commondir", "refs/heads/main", "index"])
def test_noise_never_crashes(name: str, tmp_path: Path) -> None:
    """Random bytes in place of any file give unknown, never an exception."""
    where = plain(tmp_path / "work")
    choose = random.Random(name)
    for _ in range(60):
        noise = choose.randbytes(choose.choice((0, 1, 12, 41, 300, 70_000)))
        prefix = choose.choice((b"", b"ref: ", b"ref: refs/", b"DIRC\0\0\0\2\0\0\0\1", b"0" * 40))
        (where / ".git" / name).write_bytes(prefix + noise)
        repository = find_repository(os.fsencode(where))
        if repository is None:
            assert name == "HEAD"
            continue
        head = repository.head()
        assert head.commit is None or len(head.commit) in {40, 64}
        assert repository.read_index().complete or not repository.tracked_files()
        repository.index_checksum()
        refs = {n: id for n, id in repository.state().items() if n.startswith("refs/")}
        assert all(
            id.startswith("ref: ") or not id.strip("0123456789abcdef") for id in refs.values()
        )


def test_a_hundred_thousand_paths_are_read_fast(tmp_path: Path) -> None:
    """An index of 100,000 paths takes well below a second of CPU in either format."""
    where = plain(tmp_path / "work")
    blob = git(where, "hash-object", "-w", "--stdin", stdin=b"").decode().strip()
    lines = "".join(
        f"100644 {blob}\tpackages/p{n % 100}/src/m{n % 1000}/file{n}.py\n" for n in range(100_000)
    )
    git(where, "update-index", "--index-info", stdin=lines.encode())
    for version in ("2", "4"):
        git(where, "update-index", "--index-version", version)
        started = time.process_time()
        index = found(where).read_index()
        assert time.process_time() - started < 2
        assert index.complete
        assert len(index.files) > 100_000
