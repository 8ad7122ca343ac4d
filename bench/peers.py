"""What today's agents do to take a checkpoint and to go back to it, without the agents around them.

Each peer is one class: `first` sets its store up and takes the first checkpoint, `take` takes
another, `restore` goes back to one. They are the agents' git commands; what their own programs
cost (Node, Bun, Rust) is left out, which favours them.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from trees import clean, git

CODEX_BATCH = 64
OPENCODE_LARGEST = 2 << 20
OPENCODE_BATCH = 100


class Peer:
    """A way to take checkpoints of `tree`, with everything it keeps in `store`."""

    name = ""
    borrows = False
    """Whether the first checkpoint leans on the objects of the user's repository."""
    takes_after = False
    """Whether it takes a checkpoint when the agent has, not only before."""

    def __init__(self, tree: Path, store: Path) -> None:
        self.tree = tree
        self.store = store
        self.env = clean()
        self.changed: list[str] = []
        """The files that the agent changed since, for those who remember it."""

    def first(self) -> str:
        """Set the store up and take the first checkpoint."""
        raise NotImplementedError

    def take(self) -> str:
        """Take a checkpoint; return its name."""
        raise NotImplementedError

    def restore(self, name: str) -> None:
        """Go back to a checkpoint."""
        raise NotImplementedError

    def git(
        self, *arguments: str, stdin: bytes | None = None, accept: Iterable[int] = (0,)
    ) -> bytes:
        """Run git in the tree, with this peer's environment."""
        return git(self.tree, *arguments, env=self.env, stdin=stdin, accept=accept)

    def ask(self, *arguments: str) -> str:
        """Run git for a line of answer."""
        return self.git(*arguments).decode().strip()

    def use_private_git(self) -> None:
        """Work in a copy of the user's repository, so that peers do not meet in the real one."""
        private = self.store / "user.git"
        if not private.exists():
            shutil.copytree(self.tree / ".git", private, symlinks=True)
        self.env = clean(GIT_DIR=str(private), GIT_WORK_TREE=str(self.tree))

    def use_own_git(self) -> None:
        """Work in a repository of one's own."""
        self.env = clean(GIT_DIR=str(self.store / "own.git"), GIT_WORK_TREE=str(self.tree))

    def lean_on_the_user(self) -> None:
        """Begin the repository of one's own with the user's objects and index.

        Only for those who do not, where the first checkpoint is not what is measured: it spares
        minutes of compression. What is restored is then read from a pack, which favours them.
        """
        self.use_own_git()
        self.git("init", "-q", "-b", "main")
        own, users = self.store / "own.git", self.tree / ".git"
        (own / "objects/info/alternates").write_text(f"{users / 'objects'}\n")
        shutil.copyfile(users / "index", own / "index")


class PlainGit(Peer):
    """The least that git can do."""

    name = "git add + write-tree"
    takes_after = True

    def first(self) -> str:
        """Begin an empty repository."""
        self.use_own_git()
        self.git("init", "-q")
        self.git("config", "gc.auto", "0")
        return self.take()

    def take(self) -> str:
        """Everything into the index, the index into a tree."""
        self.git("add", "-A")
        return self.ask("write-tree")

    def restore(self, name: str) -> None:
        """The tree into the index and, where that changes something, into the files."""
        self.git("read-tree", "--reset", "-u", name)


class OpenCode(Peer):
    """OpenCode 1.18: a private repository that borrows the user's objects."""

    name = "OpenCode"
    borrows = True
    takes_after = True
    _settings = (
        "core.longpaths=true",
        "core.symlinks=true",
        "core.autocrlf=false",
        "core.quotepath=false",
    )
    _once = (
        "core.autocrlf=false core.longpaths=true core.symlinks=true core.fsmonitor=false "
        "feature.manyFiles=true index.version=4 index.threads=true core.untrackedCache=true"
    )

    def __init__(self, tree: Path, store: Path) -> None:
        super().__init__(tree, store)
        self._dir = store / "snapshot.git"
        self._config = [part for setting in self._settings for part in ("-c", setting)]

    def first(self) -> str:
        """Begin a repository with the user's objects and a copy of the user's index."""
        git(
            self.tree, "init", "-q", env=clean(GIT_DIR=str(self._dir), GIT_WORK_TREE=str(self.tree))
        )
        for setting in self._once.split():
            self.git("--git-dir", str(self._dir), "config", *setting.split("="))
        users = self.tree / ".git"
        (self._dir / "objects/info").mkdir(parents=True, exist_ok=True)
        (self._dir / "objects/info/alternates").write_text(f"{users / 'objects'}\n")
        if (users / "index").exists():
            shutil.copyfile(users / "index", self._dir / "index")
        return self.take()

    def take(self) -> str:
        """Ask what changed and what is new, side by side; add just that."""
        self._copy_excludes()
        changed, fresh = self._ask_what_changed()
        names = list(dict.fromkeys([*changed, *fresh]))
        if names:
            self._add(names, set(fresh))
        return self._run("write-tree").decode().strip()

    def restore(self, name: str) -> None:
        """A checkpoint for the way back, then the files; what it shows afterwards is left out."""
        self.take()
        self.check_out(name)

    def check_out(self, name: str) -> None:
        """Check the files out, a hundred at a time, after asking which of them there were."""
        for start in range(0, len(self.changed), OPENCODE_BATCH):
            batch = self.changed[start : start + OPENCODE_BATCH]
            if len(batch) > 1:
                self._run("ls-tree", "--name-only", name, "--", *batch)
            self._run("checkout", name, "--", *batch)

    def check_out_all(self, name: str) -> None:
        """What its redo does: check everything out."""
        self._run("read-tree", name)
        self._run("checkout-index", "-a", "-f")

    def _command(self, *arguments: str) -> list[str]:
        return [
            *self._config,
            "--git-dir",
            str(self._dir),
            "--work-tree",
            str(self.tree),
            *arguments,
        ]

    def _run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        return self.git(*self._command(*arguments), stdin=stdin)

    def _copy_excludes(self) -> None:
        asked = ("rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
        users = Path(self.git(*asked).decode().strip())
        text = users.read_text().rstrip() if users.exists() else ""
        (self._dir / "info").mkdir(exist_ok=True)
        (self._dir / "info/exclude").write_text(text + "\n")

    def _ask_what_changed(self) -> tuple[list[bytes], list[bytes]]:
        questions = (
            ("diff-files", "--name-only", "-z", "--", "."),
            ("ls-files", "--full-name", "--others", "--exclude-standard", "-z", "--", "."),
        )
        asked = [
            subprocess.Popen(
                ["git", *self._command(*question)],
                cwd=self.tree,
                env=self.env,
                stdout=subprocess.PIPE,
            )
            for question in questions
        ]
        changed, fresh = (split(process.communicate()[0]) for process in asked)
        return changed, fresh

    def _add(self, names: list[bytes], fresh: set[bytes]) -> None:
        users = ("--git-dir", str(self.tree / ".git"), "--work-tree", str(self.tree))
        check = ("check-ignore", "--no-index", "--stdin", "-z")
        asked = b"".join(name + b"\0" for name in names)
        ignored = set(split(self.git(*self._config, *users, *check, stdin=asked, accept=(0, 1))))
        wanted = [
            name
            for name in names
            if name not in ignored and not (name in fresh and self._is_large(name))
        ]
        self._copy_excludes()
        paths = b"".join(b":(top,literal)" + name + b"\0" for name in wanted)
        self._run(
            "add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=paths
        )

    def _is_large(self, name: bytes) -> bool:
        try:
            return (self.tree / name.decode()).stat().st_size > OPENCODE_LARGEST
        except OSError:
            return False


class Codex(Peer):
    """Codex' ghost commits (until April 2026), in the user's own repository."""

    name = "Codex ghost commit"
    borrows = True

    def first(self) -> str:
        """Nothing is set up."""
        self.use_private_git()
        return self.take()

    def take(self) -> str:
        """HEAD into an index of its own, what changed on top of it, a commit of that."""
        self.git("rev-parse", "--is-inside-work-tree")
        self.git("rev-parse", "--show-toplevel")
        head = self.ask("rev-parse", "--verify", "HEAD")
        paths = changed_paths(self.git("status", "--porcelain=2", "-z", "--untracked-files=all"))
        usual = self.env
        with tempfile.TemporaryDirectory(dir=self.store) as folder:
            self.env = {**usual, "GIT_INDEX_FILE": f"{folder}/index"}
            try:
                return self._commit(head, paths)
            finally:
                self.env = usual

    def restore(self, name: str) -> None:
        """Ask what is new, to remove it afterwards; the commit's files on top of the tree."""
        self.git("rev-parse", "--is-inside-work-tree")
        self.git("rev-parse", "--show-toplevel")
        self.git("status", "--porcelain=2", "-z", "--untracked-files=all")
        self.git("restore", "--source", name, "--worktree", "--", ".")

    def _commit(self, head: str, paths: list[str]) -> str:
        self.git("read-tree", head)
        for start in range(0, len(paths), CODEX_BATCH):
            self.git("add", "--all", "--", *paths[start : start + CODEX_BATCH])
        tree = self.ask("write-tree")
        return self.ask("commit-tree", tree, "-p", head, "-m", "snapshot")


class ClineOld(Peer):
    """Cline until 2025, Roo and Kilo: a shadow repository with a commit per checkpoint."""

    name = "Cline (old), Roo"
    takes_after = True

    def first(self) -> str:
        """Begin the shadow repository."""
        self.use_own_git()
        self.git("init", "-q")
        for key, value in (
            ("gc.auto", "0"),
            ("core.worktree", str(self.tree)),
            ("commit.gpgSign", "false"),
        ):
            self.git("config", key, value)
        return self.take()

    def take(self) -> str:
        """Add everything and commit, changed or not."""
        self.git("add", ".", "--ignore-errors")
        self.git("commit", "-q", "-m", "checkpoint", "--allow-empty", "--no-verify")
        return self.ask("rev-parse", "HEAD")

    def restore(self, name: str) -> None:
        """Remove what is new, reset the rest."""
        self.git("clean", "-q", "-f", "-d")
        self.git("reset", "-q", "--hard", name)


class ClineSdk(Peer):
    """Cline's SDK: stashes that nobody applies, in the user's own repository."""

    name = "Cline SDK"
    borrows = True

    def __init__(self, tree: Path, store: Path) -> None:
        super().__init__(tree, store)
        self._taken = 0

    def first(self) -> str:
        """Nothing is set up."""
        self.use_private_git()
        self.git("rev-parse", "--is-inside-work-tree")
        return self.take()

    def take(self) -> str:
        """Stash without touching the tree; new files would be added in a commit of their own."""
        self._taken += 1
        # It ends with 1 where files have new stamps and their old content: nothing to stash.
        stash = self.git("stash", "create", "checkpoint", accept=(0, 1)).decode().strip()
        if self.git("ls-files", "--others", "--exclude-standard", "-z"):
            raise RuntimeError("the benchmark makes no new files")
        if not stash:
            return self.ask("rev-parse", "HEAD")
        self.git("update-ref", f"refs/cline/checkpoints/s/{self._taken}", stash)
        return stash

    def restore(self, name: str) -> None:
        """Reset to the user's commit; the stash on top, if there was something to stash."""
        self.git("reset", "-q", "--hard", "HEAD")
        self.git("clean", "-q", "-f", "-d")
        if self.ask("rev-parse", "HEAD") != name:
            self.git("stash", "apply", "-q", name)


class Gemini(Peer):
    """Gemini CLI: a shadow repository, a commit where something changed."""

    name = "Gemini CLI"

    def first(self) -> str:
        """Begin the shadow repository with an empty commit."""
        self.use_own_git()
        self.git("--version")
        self.git("init", "-q", "-b", "main")
        self.git("config", "gc.auto", "0")
        self.git("commit", "-q", "--allow-empty", "-m", "Initial commit")
        return self.take()

    def take(self) -> str:
        """Add everything, ask whether that changed anything, commit."""
        self.git("add", ".")
        status = self.git("status", "--porcelain", "-b", "-u", "--null")
        if status.count(b"\0") > 1:
            self.git("commit", "-q", "-m", "checkpoint", "--no-verify")
        return self.ask("rev-parse", "HEAD")

    def restore(self, name: str) -> None:
        """The commit's files on top of the tree; what is new goes."""
        self.git("restore", "--source", name, ".")
        self.git("clean", "-q", "-f", "-d")


PEERS: tuple[type[Peer], ...] = (PlainGit, OpenCode, Codex, ClineOld, ClineSdk, Gemini)


def split(answer: bytes) -> list[bytes]:
    """The names in an answer of git's with `-z`."""
    return [name for name in answer.split(b"\0") if name]


def changed_paths(status: bytes) -> list[str]:
    """The paths in an answer of `git status --porcelain=2 -z`; the benchmark renames nothing."""
    paths = []
    for line in split(status):
        if line.startswith(b"? "):
            paths.append(line[2:].decode())
        elif line.startswith(b"1 "):
            paths.append(line.split(b" ", 8)[8].decode())
    return paths
