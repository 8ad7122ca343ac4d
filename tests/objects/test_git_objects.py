"""Git's objects as bytes, judged by git itself."""

import os
import subprocess
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takeback.objects import git_objects
from takeback.objects.git_objects import BLOB, COMMIT, TREE
from takeback.objects.pack_write import PackWriter

NASTY_NAMES = [
    *(b".", b"..", b".git", b".GIT", b".Git", b".git ", b".git.", b".git...", b".git::$INDEX"),
    *(b".gitmodules", b".GITMODULES", b".gitattributes", b".gitignore", b".mailmap"),
    *(b"git~1", b"GIT~1", b"git~2", b"gitmod~1", b"GITMOD~4", b"gi7eba~1", b"GI7EB~10"),
    *(b"gitatt~1", b"gi7d29~1", b"gitign~1", b"gi250a~1", b"mailma~1", b"maba30~1"),
    *(b"~1000000", b"g~123456", b"gi7eba~1.", b"gi7eba~1 ", b"gitmod~1..."),
    *(
        ".g\u200cit".encode(),
        "\u200d.git".encode(),
        ".git\ufeff".encode(),
        b"\xe2\x80\x8e.gitmodules",
    ),
    *(b"a\\.git", b"\\.git\\x", b"a\\.gitmodules", b"\\", b"%", b"%2E", b"%2Egit", b"%5C", b"100%"),
    *(b"\xff\xfe", b"\x01", b"a\nb", b"-rf", b" ", b"con", b"a:b", b"~", b"~1", b"x~", b"\x7f"),
    *(b"n" * 255, b"%" * 255),
]
HOSTILE_MODULES = b'[submodule "x"]\n\tpath = -x\n\turl = --upload-pack=evil\n'


class Git:
    """A bare repository, and git run in it with no settings but git's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run("init", "--bare", "--quiet", str(folder))
        self.packs = os.fsencode(folder / "objects" / "pack")

    def run(self, *args: str, code: int | None = 0, data: bytes = b"") -> bytes:
        """Run git, which must end with `code` if one is given; return all that it printed."""
        done = subprocess.run(
            ["git", "--git-dir", str(self.folder), *args],
            env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            input=data,
            check=False,
        )
        assert code is None or done.returncode == code, done.stdout
        return done.stdout

    def complaints(self) -> bytes:
        """Return all that a strict check finds fault with, in every object that is there."""
        said = self.run("fsck", "--strict", "--no-dangling", "--no-progress", code=None)
        lines = said.splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(b"notice: "))


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """An empty bare repository."""
    return Git(tmp_path / "view.git")


def write_tree(git: Git, entries: list[tuple[int, bytes, bytes]]) -> bytes:
    """Put a tree with the given (mode, name in the tree, content) into the repository."""
    writer = PackWriter(git.packs)
    rows = [(mode, name, writer.add(BLOB, content)) for mode, name, content in entries]
    tree = writer.add(TREE, git_objects.encode_tree(rows))
    writer.finish()
    return tree


def test_ids_are_gits(git: Git) -> None:
    """An id is the one that git computes."""
    for data in (b"", b"hello\n", bytes(range(256)) * 40):
        theirs = git.run("hash-object", "-t", "blob", "--stdin", data=data).strip()
        assert git_objects.object_id(BLOB, data).hex().encode() == theirs
    assert git_objects.object_id(TREE, b"").hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_tree_is_gits(git: Git) -> None:
    """A tree has the bytes that git writes for the same entries, in git's order."""
    blob = git.run("hash-object", "-w", "--stdin", data=b"x").strip()
    folder = git.run("mktree", data=b"100644 blob " + blob + b"\tz\n").strip()
    names = [b"a", b"a.c", b"a-b", b"a0", b"B"]
    rows = [(git_objects.MODE_FILE, name, bytes.fromhex(blob.decode())) for name in names]
    rows += [
        (git_objects.MODE_TREE, name, bytes.fromhex(folder.decode()))
        for name in (b"aa", b"a+", b"b")
    ]
    rows.append((git_objects.MODE_TREE, b"a.", bytes.fromhex(folder.decode())))
    listing = b"".join(
        b"%06o %s %s\t%s\n"
        % (mode, b"tree" if mode == git_objects.MODE_TREE else b"blob", oid.hex().encode(), name)
        for mode, name, oid in rows
    )
    theirs = git.run("mktree", data=listing).strip()
    assert git_objects.object_id(TREE, git_objects.encode_tree(rows)).hex().encode() == theirs


def test_commits_make_a_history(git: Git) -> None:
    """Git shows our commits as a history, and a strict check has nothing to say."""
    writer = PackWriter(git.packs)
    tree = writer.add(TREE, b"")
    first = writer.add(COMMIT, git_objects.encode_commit(tree, [], -5, b"one\0two"))
    last = writer.add(
        COMMIT, git_objects.encode_commit(tree, [first], 86400, "zwölf\n\nmore\n\n".encode())
    )
    writer.finish()
    git.run("update-ref", "refs/heads/main", last.hex())
    shown = git.run("log", "--format=%H %at %an <%ae>|%B", "main")
    assert shown.decode() == (
        f"{last.hex()} 86400 Takeback <takeback@localhost>|zwölf\n\nmore\n\n"
        f"{first.hex()} 0 Takeback <takeback@localhost>|one two\n\n"
    )
    assert git.complaints() == b""


@pytest.mark.parametrize("mode", [git_objects.MODE_FILE, git_objects.MODE_LINK])
def test_git_accepts_every_nasty_name(git: Git, mode: int) -> None:
    """No name, escaped, makes a strict check object, as a file or as a link with any content."""
    names = [git_objects.escape_name(raw) for raw in NASTY_NAMES]
    tree = write_tree(git, [(mode, name, HOSTILE_MODULES) for name in names])
    assert git.complaints() == b""
    listed = git.run("ls-tree", "-z", "--name-only", tree.hex()).split(b"\0")[:-1]
    assert sorted(map(unquote_to_bytes, listed)) == sorted(NASTY_NAMES)


def test_git_accepts_folders_with_nasty_names(git: Git) -> None:
    """The same names are good for folders."""
    writer = PackWriter(git.packs)
    empty = writer.add(TREE, b"")
    rows = [(git_objects.MODE_TREE, git_objects.escape_name(raw), empty) for raw in NASTY_NAMES]
    writer.add(TREE, git_objects.encode_tree(rows))
    writer.finish()
    assert git.complaints() == b""


@pytest.mark.parametrize(
    "name", [b".git", b".GIT", b"git~1", b"gitmod~1", b"gi7eba~1", b"~1000000"]
)
def test_git_objects_without_escaping(git: Git, name: bytes) -> None:
    """Names that we escape are ones that git really objects to (so the tests above can fail)."""
    write_tree(git, [(git_objects.MODE_LINK, name, HOSTILE_MODULES)])
    assert git.complaints() != b""


@given(st.binary(min_size=1, max_size=255))
def test_escaping_has_an_inverse(raw: bytes) -> None:
    """Unescaping gives back any name, and the escaped form is one that a tree can hold."""
    name = git_objects.escape_name(raw)
    assert unquote_to_bytes(name) == raw
    assert b"/" not in name
    assert b"\0" not in name
    assert name not in (b"", b".", b"..")


def test_usual_names_stay_as_they_are() -> None:
    """Names without anything odd are the same in the view."""
    for raw in (b"main.py", b".env", b"github", b"README.md~", "grün".encode(), b"~$doc", b"m~"):
        assert git_objects.escape_name(raw) == raw


def test_an_empty_name_cannot_be_escaped() -> None:
    """There is no entry without a name."""
    with pytest.raises(ValueError, match="has a name"):
        git_objects.escape_name(b"")


ODD_BYTES = st.sampled_from(
    [
        b".",
        b"g",
        b"G",
        b"i",
        b"t",
        b"~",
        b"1",
        b" ",
        b"\\",
        b"%",
        b":",
        b"\xe2\x80\x8c",
        b"\xff",
        b"m",
    ]
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sets(
        st.binary(min_size=1, max_size=12) | st.lists(ODD_BYTES, min_size=1).map(b"".join),
        min_size=20,
        max_size=60,
    )
)
def test_git_accepts_any_escaped_name(
    tmp_path_factory: pytest.TempPathFactory, raws: set[bytes]
) -> None:
    """A strict check accepts trees with whatever names, made near to git's own on purpose."""
    git = Git(tmp_path_factory.mktemp("names") / "view.git")
    names = [git_objects.escape_name(raw) for raw in raws]
    write_tree(git, [(git_objects.MODE_LINK, name, HOSTILE_MODULES) for name in names])
    assert git.complaints() == b""


@given(st.sampled_from([COMMIT, TREE, BLOB]), st.integers(0, 2**63 - 1))
def test_entry_heads_have_an_inverse(kind: int, size: int) -> None:
    """The head of a pack entry gives back kind and size, whatever follows it."""
    head = git_objects.entry_head(kind, size)
    assert len(head) <= git_objects.LONGEST_ENTRY_HEAD
    assert git_objects.parse_entry_head(head + b"\xffmore") == (kind, size, len(head))


@pytest.mark.parametrize("head", [b"", b"\xb0", b"\xb0\x80", b"\xbf" + b"\xff" * 20])
def test_broken_entry_heads_are_refused(head: bytes) -> None:
    """A head that breaks off, or goes on for ever, is an error."""
    with pytest.raises(ValueError, match="head of a pack entry"):
        git_objects.parse_entry_head(head)
