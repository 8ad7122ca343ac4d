"""What the tests named after peers' cases share: a tree, its project, an agent, a git."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import oracle
import takeback
from hostile.ground import git_environment
from takeback.session import Session, Turn


class Work:
    """A tree in which an agent and you work, and what one asks of it afterwards."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.home = home
        self._project: takeback.Project | None = None
        self._session: Session | None = None

    @property
    def project(self) -> takeback.Project:
        """The project, opened when first used."""
        if self._project is None:
            self._project = takeback.open(self.tree, home=self.home)
        return self._project

    def close(self) -> None:
        """Close the project; the next use opens it again."""
        if self._project is not None:
            self._project.close()
        self._project = self._session = None

    # -- files -----------------------------------------------------------------------------

    def write(self, **files: str) -> None:
        """Write texts; `a__b_txt` is `a/b.txt`."""
        for name, text in files.items():
            self.put(name.replace("__", "/").replace("_", "."), text)

    def put(self, name: str, content: str | bytes, mode: int | None = None) -> None:
        """Write one file, and the folders above it."""
        place = self.tree / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            place.chmod(mode)

    def text(self, name: str) -> str:
        """What a file holds."""
        return (self.tree / name).read_text()

    def has(self, *names: str) -> bool:
        """Whether all of these are there, as whatever."""
        return all(os.path.lexists(self.tree / name) for name in names)

    def has_none(self, *names: str) -> bool:
        """Whether nothing of these is there."""
        return not any(os.path.lexists(self.tree / name) for name in names)

    def remove(self, *names: str) -> None:
        """Remove files, or folders with all that is in them."""
        for name in names:
            place = self.tree / name
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink()

    def move(self, name: str, to: str) -> None:
        """Move something, into a new folder too."""
        (self.tree / to).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).rename(self.tree / to)

    def mode(self, name: str) -> int:
        """The permission bits of something."""
        return (self.tree / name).lstat().st_mode & 0o7777

    def written(self, name: str) -> "tuple[int, ...]":
        """What tells that a file was written or replaced; reading it changes nothing of it."""
        found = (self.tree / name).lstat()
        return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def picture(self) -> oracle.Picture:
        """All that is in the tree, but git's own files."""
        whole = oracle.picture(self.tree)
        return {path: told for path, told in whole.items() if b".git" not in path.split(b"/")}

    # -- the agent, and taking back --------------------------------------------------------

    @property
    def session(self) -> Session:
        """The agent's session."""
        if self._session is None:
            self._session = self.project.session(agent="agent")
        return self._session

    @contextmanager
    def turn(self, label: str = "do it") -> Iterator[Turn]:
        """The agent works on a prompt."""
        with self.session.turn(label) as turn:
            yield turn

    def checkpoint(self) -> str:
        """Make a checkpoint, and name it."""
        return self.project.checkpoint().id

    def undo(self, *paths: str, turn: "Turn | str | None" = None) -> takeback.Report:
        """Take back."""
        return self.project.undo(turn, paths=paths)

    def redo(self, *paths: str, turn: "Turn | str | None" = None) -> takeback.Report:
        """Put back."""
        return self.project.redo(turn, paths=paths)

    def rollback(self, ref: str, *paths: str) -> takeback.Report:
        """Go back to a state."""
        return self.project.rollback(ref, paths=paths)

    def left_out(self) -> dict[str, str]:
        """What the newest checkpoint does not hold, and why."""
        left = self.project.status().left_out
        return {os.fsdecode(each.path): each.reason for each in left}

    # -- git -------------------------------------------------------------------------------

    def git(self, *words: str, within: str = "") -> str:
        """Run git in the tree, free of anybody's settings; return what it says."""
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", *words],
            cwd=self.tree / within,
            env=git_environment(os.fsencode(self.tree.parent)),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def repository(self, **files: str) -> None:
        """Make the tree a repository with one commit of these files."""
        self.git("init", "-q")
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "first")

    def dot_git(self) -> oracle.Picture:
        """Everything in `.git`, with its stamps."""
        stamps, contents = oracle.stamps(self.tree / ".git"), oracle.picture(self.tree / ".git")
        return {path: stamp + contents[path] for path, stamp in stamps.items()}


def paths_of(plan: takeback.Plan) -> dict[str, str]:
    """What a plan would do to each path."""
    return {os.fsdecode(change.path): change.verb for change in plan.changes}
