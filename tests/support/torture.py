"""One turn that does everything an agent can do to a folder, row by row.

The letters are those of a comparison of agents' own undo features; rows after `r` are what else
went wrong in one of them. `make` fills a folder, `SCRIPT` is the turn, `edit_afterwards` is what
the user does before anything is taken back. Tools save as edit tools do, by a new file in the
place of the old one; the rest is done as shells do it.
"""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

BINARY = bytes(range(256)) * 40
BIG = b"0123456789abcdef" * (3 << 16)
SHARED = b"one\n" + b"".join(b"line %d\n" % number for number in range(2, 10)) + b"last\n"
"""The turn edits the first line of this, and the user the last one."""


class Row(NamedTuple):
    """What the turn does in one row, and the paths that it changes by that."""

    what: str
    turn: str
    paths: tuple[str, ...]


ROWS = {
    "a": Row("edited by a tool", "tool a.txt one ONE", ("a.txt",)),
    "b1": Row("created by a tool", "echo new > b1.tmp; mv b1.tmp b1.txt", ("b1.txt",)),
    "b2": Row(
        "created by a tool in a new folder",
        "mkdir -p new/dir; echo new > new/dir/b2.txt",
        ("new", "new/dir", "new/dir/b2.txt"),
    ),
    "b3": Row("created by the shell", "echo new > b3.txt", ("b3.txt",)),
    "c": Row("deleted by the shell", "rm c.txt", ("c.txt",)),
    "d": Row("edited by the shell", "sed -i s/one/two/ d.txt", ("d.txt",)),
    "e1": Row("ignored, overwritten by a tool", "tool .env s3cret lost", (".env",)),
    "e2": Row("ignored, overwritten by the shell", "echo lost > .env.local", (".env.local",)),
    "e3": Row("ignored, in a folder", "echo lost > build/out.o", ("build/out.o",)),
    "f1": Row("untracked, edited by a tool", "tool f1.txt one ONE", ("f1.txt",)),
    "f2": Row("untracked, edited by the shell", "echo more >> f2.txt", ("f2.txt",)),
    "g1": Row("mode only", "chmod +x g1.sh", ("g1.sh",)),
    "g2": Row("content and mode", "tool g2.sh one ONE", ("g2.sh",)),
    "g3": Row("CRLF without a last line end", "tool g3.txt one ONE", ("g3.txt",)),
    "h1": Row("empty folder removed", "rmdir h1", ("h1",)),
    "h2": Row("empty folder made", "mkdir h2", ("h2",)),
    "i": Row("binary changed", "printf '\\000\\377' >> i.bin", ("i.bin",)),
    "j1": Row("link re-pointed", "ln -sfn a.txt j1", ("j1",)),
    "j2": Row("link made, and one that leads nowhere", "ln -s a.txt j2; ln -s x j3", ("j2", "j3")),
    "k1": Row("edited by a tool, and by the user later", "tool k1.txt one ONE", ("k1.txt",)),
    "m1": Row("nested repository, by a tool", "tool nested/m1.txt one ONE", ("nested/m1.txt",)),
    "m2": Row("nested repository, by the shell", "rm nested/m2.txt", ("nested/m2.txt",)),
    "n": Row("renamed", "mv n.txt n2.txt", ("n.txt", "n2.txt")),
    "o1": Row("half staged", "tool staged.txt three four", ("staged.txt",)),
    "folder renamed": Row("with all in it", "mv dir dir2", ("dir", "dir/x", "dir2", "dir2/x")),
    "renamed and edited": Row("at once", "mv r.txt r2.txt; echo >> r2.txt", ("r.txt", "r2.txt")),
    "odd names": Row(
        "edited, deleted and made",
        "echo more >> 'ü ñ.txt'; rm ':colon.txt'; echo > 'a \"b\" \\c';"
        " echo > \"$(printf 'new\\nline')\"; echo > \"$(printf '\\377')\"; echo > -n",
        ("ü ñ.txt", ":colon.txt", 'a "b" \\c', "new\nline", "\udcff", "-n"),
    ),
    "ignore rules": Row(
        "changed together with what they hid",
        "echo '*.txt' > .gitignore; echo lost > hidden.txt",
        (".gitignore", "hidden.txt"),
    ),
    "3 MB": Row("untracked, changed", "printf x >> big.bin", ("big.bin",)),
    "file to folder": Row("", "rm kind1; mkdir kind1; echo > kind1/x", ("kind1", "kind1/x")),
    "folder to file": Row("", "rm -r kind2; echo > kind2", ("kind2", "kind2/x")),
    "file to link": Row("", "rm kind3; ln -s a.txt kind3", ("kind3",)),
    "link to folder": Row("", "rm kind4; mkdir kind4", ("kind4",)),
    "folder to link": Row("", "rmdir kind5; ln -s /etc kind5", ("kind5",)),
    "private": Row("made readable", "chmod 644 private", ("private",)),
    "closed": Row("folder without write permission", "chmod 755 closed; rm closed/x; "
                  "echo > closed/y; chmod 555 closed", ("closed/x", "closed/y")),
    "folder's mode": Row("", "chmod 700 moded", ("moded",)),
    "swapped": Row("two names", "mv sw1 t; mv sw2 sw1; mv t sw2", ("sw1", "sw2")),
    "case": Row("of a name only", "mv Case case", ("Case", "case")),
    "deep": Row(
        "removed with everything below", "rm -r deep", ("deep", "deep/d/e/f", "deep/d/e/empty")
    ),
    "emptied": Row("and filled", ": > full.txt; echo full > empty.txt", ("full.txt", "empty.txt")),
}  # fmt: skip
"""In `k1` the user edits another place of the same file later, which is merged; `q`, files outside
of the project, have tests of their own. `k2`, `m3`, `o2`, `o3`, `p`, `r`, `r2` and `l` are what the
tests look at."""

_TOOL = 'tool() { sed "s/$2/$3/" "$1" > "$1.tmp" && mv "$1.tmp" "$1"; }\n'
SCRIPT = "set -e\n" + _TOOL + "".join(row.turn + "\n" for row in ROWS.values())

PATHS = tuple(os.fsencode(path) for row in ROWS.values() for path in row.paths)


def git(where: Path, *words: str) -> str:
    """Run git as somebody."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(where), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make(tree: Path) -> None:
    """Fill a folder with what the turn will work on."""
    _write(tree, dict.fromkeys(_PLAIN, b"one\n"))
    _write(tree, _SPECIAL)
    for name in ("h1", "kind5", "moded", "deep/d/e/empty"):
        (tree / name).mkdir(parents=True)
    (tree / "j1").symlink_to("c.txt")
    (tree / "kind4").symlink_to("a.txt")
    (tree / "g2.sh").chmod(0o755)
    (tree / ".env").chmod(0o600)
    (tree / "private").chmod(0o600)
    (tree / "closed").chmod(0o555)
    git(tree / "nested", "init", "-q")
    git(tree / "nested", "add", "-A")
    git(tree / "nested", "commit", "-qm", "nested")


_PLAIN = (
    "a.txt", "c.txt", "d.txt", "g1.sh", "g2.sh", "n.txt", "dir/x", "r.txt", "ü ñ.txt",
    ":colon.txt", "kind1", "kind2/x", "kind3", "closed/x", "Case", "deep/d/e/f", "full.txt",
    "nested/m1.txt", "nested/m2.txt", "f1.txt", "f2.txt", "other.txt", "sub/folder/x", "hidden.txt",
    "unloved.txt",
)  # fmt: skip
_SPECIAL = {
    ".env": b"KEY=s3cret\n",
    ".env.local": b"KEY=s3cret too\n",
    ".gitignore": b".env*\nbuild/\nhidden.txt\n",
    "build/out.o": BINARY,
    "g3.txt": b"one\r\ntwo\r\nthree",
    "i.bin": BINARY,
    "k1.txt": SHARED,
    "big.bin": BIG,
    "private": b"for my eyes only\n",
    "staged.txt": b"one\nthree\n",
    "sw1": b"1\n",
    "sw2": b"2\n",
    "empty.txt": b"",
}
_UNTRACKED = ("f1.txt", "f2.txt", "big.bin")


def _write(tree: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def commit(tree: Path) -> None:
    """Let the user's git know some of it: committed, staged, half staged, stashed, not at all."""
    git(tree, "add", "-A", "--", ".", ":!nested", *(f":!{name}" for name in _UNTRACKED))
    git(tree, "commit", "-qm", "one")
    stage_and_stash(tree)


def stage_and_stash(tree: Path) -> None:
    """Leave a stash, a tag, a staged file and a half staged one."""
    (tree / "other.txt").write_text("stashed\n")
    git(tree, "stash", "-q")
    git(tree, "tag", "v1")
    (tree / "staged.txt").write_text("two\n")
    (tree / "unloved.txt").write_text("staged\n")
    git(tree, "add", "staged.txt", "unloved.txt")
    (tree / "staged.txt").write_text("two\nthree\n")


def edit_afterwards(tree: Path) -> None:
    """What the user does after the turn: a new file, edits, a removal, a mode."""
    shared = tree / "k1.txt"
    shared.write_bytes(edit_elsewhere(shared.read_bytes()))
    (tree / "usernew.txt").write_text("made by the user\n")
    (tree / "sub/mine").mkdir()
    (tree / "sub/mine/too.txt").write_text("made by the user\n")
    (tree / "other.txt").write_text("edited by the user\n")
    (tree / "unloved.txt").unlink()
    (tree / "sub/folder/x").chmod(0o640)


def edit_elsewhere(content: bytes) -> bytes:
    """What the user does to a file that the turn edited, too."""
    return content.replace(b"last\n", b"last, says the user\n")
