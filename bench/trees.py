"""Source-like trees that are the same in every run, as git repositories with one commit.

Files have a median of 3 KB, about ten share a folder, and an ignored `node_modules` lies beside
them. The repository of a tree is made by `git fast-import`, so its one pack holds everything.
"""

import os
import random
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

MEDIAN_BYTES = 3000
SPREAD = 1.0
LARGEST = 200_000
FILES_PER_FOLDER = 10
CORPUS_BYTES = 4 << 20
SETTLE_SECONDS = 0.05

_ENDINGS = (".py", ".ts", ".go", ".rs", ".java", ".md", ".css", ".json")
SYLLABLES = (
    "ac al an bu co de er fi gen ha in ka lo mu no or pa qui re sta ti un ver wa xi yo".split()
)
SHAPES = (
    "    {a} = {b}.{c}({d}, {e})\n",
    "    if {a}.{b} is not None and {c} > {n}:\n",
    "        return {a}({b}[{n}], {c}={d})\n",
    "def {a}_{b}({c}, {d}={n}):\n",
    "    # {a} {b} {c} before {d}, or the {e} is lost\n",
    '    raise {A}Error(f"{a} {b}: {{{c}}}")\n',
    "import {a}.{b} as {c}\n",
    "\n",
)


class Tree:
    """A tree on disk, and the chance by which it is edited."""

    def __init__(self, path: Path, files: list[str], corpus: bytes, seed: int) -> None:
        self.path = path
        self.files = files
        self._corpus = corpus
        self._chance = random.Random(seed)
        self._edits = 0

    def chosen(self, count: int) -> list[str]:
        """The files that are edited when so many are."""
        return random.Random(count).sample(self.files, count)

    def edit(self, count: int) -> None:
        """Give `count` files new content of their old size, and let the stamps age.

        They are the same random files each time: some agents look at everything that differs
        from the user's last commit, and that shall not become more from round to round.
        """
        for name in self.chosen(count):
            target = self.path / name
            self._edits += 1
            size = target.stat().st_size
            target.write_bytes(piece(self._corpus, self._chance, size, self._edits))
        self.settle()

    def write(self, name: str, content: bytes) -> None:
        """Give a file other content, if it has not got that already."""
        target = self.path / name
        if target.read_bytes() != content:
            target.write_bytes(content)

    def settle(self) -> None:
        """Let the stamps age."""
        time.sleep(SETTLE_SECONDS)

    def turn(self, size: int) -> None:
        """Change a few lines in random files that have `size` bytes together, as an agent does."""
        while size > 0:
            target = self.path / self._chance.choice(self.files)
            content = target.read_bytes()
            size -= len(content)
            self._edits += 1
            fresh = piece(self._corpus, self._chance, min(200, len(content)), self._edits)
            at = self._chance.randrange(len(content) - len(fresh) + 1)
            target.write_bytes(content[:at] + fresh + content[at + len(fresh) :])
        self.settle()


def make(path: Path, count: int, seed: int = 7) -> Tree:
    """Write a tree of `count` files with its repository into the new folder `path`."""
    chance = random.Random(seed)
    corpus = make_corpus(chance)
    files = list(file_names(chance, count))
    path.mkdir(parents=True)
    importer = _Import(path)
    content = b"node_modules/\n*.log\n"
    (path / ".gitignore").write_bytes(content)
    importer.add(".gitignore", content)
    for number, name in enumerate(files):
        content = piece(corpus, chance, random_size(chance), number)
        write_file(path / name, content)
        importer.add(name, content)
    importer.finish()
    for number in range(max(2000, count // 10)):
        name = f"node_modules/p{number // 40}/lib/f{number}.js"
        write_file(path / name, piece(corpus, chance, 1500, number))
    return Tree(path, files, corpus, seed + 1)


def make_corpus(chance: random.Random) -> bytes:
    """A few MB of lines that look and compress like source text."""
    words = ["".join(chance.choices(SYLLABLES, k=chance.choice((1, 2, 2, 3)))) for _ in range(3000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    drawn = chance.choices(words, weights, k=500_000)
    lines, size = [], 0
    while size < CORPUS_BYTES:
        at = chance.randrange(len(drawn) - 5)
        names = dict(zip("abcde", drawn[at : at + 5], strict=True))
        shape = chance.choice(SHAPES)
        lines.append(shape.format(**names, A=names["a"].title(), n=chance.randrange(100)))
        size += len(lines[-1])
    return "".join(lines).encode()


def random_size(chance: random.Random) -> int:
    """The size of one file."""
    return min(LARGEST, int(chance.lognormvariate(0, SPREAD) * MEDIAN_BYTES) + 40)


def piece(corpus: bytes, chance: random.Random, size: int, number: int) -> bytes:
    """Content of exactly `size` bytes that no other number gives."""
    head = b"# number %d of the tree, %08x\n" % (number, chance.getrandbits(32))
    start = chance.randrange(len(corpus) - LARGEST)
    return (head + corpus[start : start + size])[:size]


def file_names(chance: random.Random, count: int) -> Iterator[str]:
    """The paths of `count` files, about ten to a folder, folders in folders."""
    folders = ["src"]
    made = 0
    while made < count:
        folder = folders[-1]
        for _ in range(min(count - made, chance.randint(5, 15))):
            yield f"{folder}/module_{made:06d}{chance.choice(_ENDINGS)}"
            made += 1
        parent = folders[(len(folders) - 1) // 4]
        folders.append(f"{parent}/part_{len(folders):05d}")


def write_file(path: Path, content: bytes) -> None:
    """Write a file, making the folders above it."""
    try:
        path.write_bytes(content)
    except FileNotFoundError:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)


class _Import:
    """A repository in the making: one commit, one pack, and an index that knows the files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        git(path, "init", "-q", "-b", "main")
        command = ["git", "-c", "pack.compression=1", "fast-import", "--quiet", "--depth=0"]
        self._process = subprocess.Popen(command, cwd=path, stdin=subprocess.PIPE, env=clean())
        assert self._process.stdin is not None
        self._pipe = self._process.stdin
        self._pipe.write(b"commit refs/heads/main\ncommitter a <a@b> 1700000000 +0000\ndata 0\n")

    def add(self, name: str, content: bytes) -> None:
        """Put one file into the commit."""
        self._pipe.write(b"M 100644 inline %s\ndata %d\n" % (name.encode(), len(content)))
        self._pipe.write(content)
        self._pipe.write(b"\n")

    def finish(self) -> None:
        """Commit, and let the index say that the work tree is as committed."""
        self._pipe.close()
        if self._process.wait():
            raise RuntimeError("git fast-import failed")
        git(self._path, "read-tree", "HEAD")
        git(self._path, "update-index", "-q", "--refresh")


def make_empty_repository(path: Path) -> None:
    """A repository with one empty commit at `path`, as the `.git` of some tree."""
    path.mkdir()
    git(path, "init", "-q", "-b", "main", "--bare", ".")
    git(path, "config", "core.bare", "false")
    tree = git(path, "mktree", stdin=b"").strip().decode()
    commit = git(path, "--git-dir", ".", "commit-tree", "-m", "empty", tree).strip().decode()
    git(path, "--git-dir", ".", "update-ref", "refs/heads/main", commit)


def git(
    cwd: Path,
    *arguments: str,
    env: dict[str, str] | None = None,
    stdin: bytes | None = None,
    accept: Iterable[int] = (0,),
) -> bytes:
    """Run git with nobody's settings; return what it printed."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=cwd,
        env=env or clean(),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        check=False,
    )
    if done.returncode not in accept:
        raise RuntimeError(f"git {arguments} ended with {done.returncode}: {done.stderr[:500]!r}")
    return done.stdout


def clean(**more: str) -> dict[str, str]:
    """An environment in which git sees no settings of the person who runs this."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    person = {
        f"GIT_{who}_{what}": "bench@localhost"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    nothing = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return {**kept, **person, **nothing, "GIT_TERMINAL_PROMPT": "0", **more}
