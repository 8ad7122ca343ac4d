"""Everything whose way back is timed, behind one face.

A round is: `before` an agent's turn, files are edited, `after` it, and `restore`, which alone is
timed. Whether a way back scans the tree and syncs what it writes is said for each.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from contenders import Takeback
from footprint import MAIN, timed
from peers import OpenCode, Peer


class Restorer:
    """Something that takes files back."""

    name = ""
    scans = True
    """Whether it looks at the whole tree, and so knows what else changed."""
    syncs = False
    """Whether what it wrote survives a power cut when it says that it is done."""

    def __init__(self) -> None:
        self.files: list[str] = []
        """What the agent edits in this round."""

    def first(self) -> None:
        """Set up; the tree is as it shall be again after each round."""

    def before(self) -> None:
        """What is done before the agent edits."""

    def after(self) -> None:
        """What is done when the agent has edited."""

    def restore(self) -> float:
        """Take the edits back; return the seconds."""
        raise NotImplementedError


class WarmUndo(Restorer):
    """`project.undo()` in a process that is there already."""

    name = "Takeback"
    syncs = True

    def __init__(self, worker: Takeback) -> None:
        super().__init__()
        self._worker = worker

    def before(self) -> None:
        """Begin a turn."""
        self._worker.begin()

    def after(self) -> None:
        """End the turn."""
        self._worker.end()

    def restore(self) -> float:
        """Take the turn back."""
        return self._worker.undo()


class ColdUndo(WarmUndo):
    """`takeback undo`, from the start of the process to its end; the agent had another process."""

    name = "`takeback undo`, cold"

    def __init__(self, worker: Takeback, tree: Path, home: Path) -> None:
        super().__init__(worker)
        python = str(Path(sys.executable).resolve())
        self.command = [python, "-I", "-S", str(MAIN), "-C", str(tree), "undo"]
        self._environment = {**os.environ, "TAKEBACK_HOME": str(home)}

    def restore(self) -> float:
        """Run the command."""
        return timed(self.command, self._environment)


class ColdPreview(ColdUndo):
    """`takeback undo --dry-run`, which only says what would be done."""

    name = "`takeback undo --dry-run`, cold"

    def restore(self) -> float:
        """Run the command, and take the turn back outside the time."""
        seconds = timed([*self.command, "--dry-run"], self._environment)
        self._worker.undo()
        return seconds


class PeerRestore(Restorer):
    """A peer's git commands."""

    def __init__(self, peer: Peer, name: str = "") -> None:
        super().__init__()
        self.name = name or peer.name
        self._peer = peer
        self._target = ""

    def first(self) -> None:
        """Set the store up, with the user's objects where the peer would copy them."""
        self._peer.store.mkdir(parents=True)
        if not self._peer.borrows:
            self._peer.lean_on_the_user()
        self._target = self._peer.first()

    def before(self) -> None:
        """Take a checkpoint of the state that is gone back to."""
        self._peer.changed = self.files
        if not self._peer.takes_after:
            self._target = self._peer.take()

    def after(self) -> None:
        """Take one of what the agent did, if the peer does that; its index then knows it all."""
        if self._peer.takes_after:
            self._peer.take()

    def restore(self) -> float:
        """Run the commands."""
        before = time.perf_counter()
        self._back()
        return time.perf_counter() - before

    def _back(self) -> None:
        self._peer.restore(self._target)


class OpenCodeFiles(PeerRestore):
    """OpenCode without its checkpoint for the way back: only the files it knows of."""

    scans = False

    def __init__(self, peer: OpenCode) -> None:
        super().__init__(peer, "OpenCode, its `checkout` alone")
        self._open_code = peer

    def _back(self) -> None:
        self._open_code.check_out(self._target)


class OpenCodeAll(PeerRestore):
    """OpenCode's redo, which checks everything out."""

    def __init__(self, peer: OpenCode) -> None:
        super().__init__(peer, "OpenCode, its redo: `checkout-index -a -f`")
        self._open_code = peer

    def _back(self) -> None:
        self._open_code.check_out_all(self._target)


class CopyBack(Restorer):
    """What Claude Code does: a copy of each file that an edit tool named, copied back.

    It sees no shell, and it takes nothing that could be gone back to. Done here by a warm Python.
    """

    scans = False

    def __init__(self, tree: Path, store: Path, *, synced: bool) -> None:
        super().__init__()
        self.name = "copying back, each file synced" if synced else "Claude Code: copying back"
        self.syncs = synced
        self._tree = tree
        self._store = store

    def before(self) -> None:
        """Copy what an edit tool is about to change."""
        shutil.rmtree(self._store, ignore_errors=True)
        self._store.mkdir(parents=True)
        for number, name in enumerate(self.files):
            shutil.copy(self._tree / name, self._store / f"{number}@v1")

    def restore(self) -> float:
        """Copy back what differs, content and mode."""
        before = time.perf_counter()
        for number, name in enumerate(self.files):
            self._copy(self._store / f"{number}@v1", self._tree / name)
        return time.perf_counter() - before

    def _copy(self, backup: Path, target: Path) -> None:
        content = backup.read_bytes()
        if target.read_bytes() == content:
            return
        with target.open("wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), backup.stat().st_mode & 0o777)
            if self.syncs:
                file.flush()
                os.fsync(file.fileno())
