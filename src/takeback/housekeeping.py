"""All projects of a user at once: which stores there are, and how one is removed."""

import os

from takeback import opening
from takeback.errors import BusyError, DecisionNeededError, TakebackError, UnknownReferenceError
from takeback.model import known
from takeback.store import inventory, removal
from takeback.store.failures import FailingAs
from takeback.store.home import Home
from takeback.store.lock import Held, Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.known import KnownProject


class Housekeeping:
    """The folder of all stores, as somebody who tidies up sees it."""

    def __init__(self, home: bytes) -> None:
        self._home = Home(home)

    def projects(self, now: int) -> "list[KnownProject]":
        """Every store, the one used last first; also damaged ones and those of newer programs."""
        with FailingAs(TakebackError, "the stores could not be listed"):
            if not self._home.exists():
                return []
            self._finish_removals()
            return inventory.stores(self._home, now)

    def project(self, id: str, now: int) -> "KnownProject":
        """The one store whose id begins like this."""
        found = [each for each in self.projects(now) if id and each.id.startswith(id)]
        if len(found) != 1:
            how = "no" if not found else "more than one"
            raise UnknownReferenceError(
                f"there is {how} project whose id begins with `{id}`",
                hint="`takeback projects` lists them",
            )
        return found[0]

    def remove(
        self, id: str, now: int, *, even_if_in_use: bool = False, even_if_not_mounted: bool = False
    ) -> "KnownProject":
        """Remove a store with all that it holds; nothing brings it back.

        A store whose folder is still there, or may be on a disk that is not mounted, is removed
        only if that is said.
        """
        with FailingAs(TakebackError, "the store was not removed"):
            chosen = self.project(id, now)
            lock = Lock(self._home.lock_path)
            with opening.held_home(self._home, lock=lock):
                # What may have changed while somebody thought about it.
                chosen = self.project(chosen.id, now)
                refuse(chosen, in_use=even_if_in_use, not_mounted=even_if_not_mounted)
                self._remove(chosen, lock)
            return chosen

    def _remove(self, project: "KnownProject", lock: Lock) -> None:
        path = self._home.store_path(project.id)
        try:
            with Held(Lock(path + b"/lock"), patience=0):
                try:
                    removal.remove(self._home, project.id)
                except BaseException:
                    lock.leave_unclean()  # whoever comes next removes what is left
                    raise
        except BusyError:
            raise BusyError(
                f"another process is at work in project `{project.id}`: nothing was removed",
                hint="wait for it to finish, or stop it, and run the command again",
            ) from None

    def _finish_removals(self) -> None:
        """Delete what is left of stores whose removal was cut short."""
        if removal.leftovers(self._home):
            try:
                with opening.held_home(self._home, patience=0):
                    self._home.clean_up()
            except (BusyError, OSError):
                return  # somebody is at it, or it cannot be done yet; it is no store any more


def refuse(project: "KnownProject", *, in_use: bool, not_mounted: bool) -> None:
    """An error if a store must not be removed as things are."""
    where = os.fsdecode(project.root or b"?")
    if project.running:
        raise BusyError(
            f"a session may still be running in `{where}`: {', '.join(project.running)}",
            hint="end it first; one that nothing is heard of is over after a day",
        )
    if project.state in (known.HERE, known.REPLACED) and not in_use:
        raise DecisionNeededError(
            f"`{where}` is still there; without its store nothing in it can be taken back",
            hint=f"to remove it all the same: takeback projects --remove {project.id} "
            "--yes --even-if-in-use",
        )
    if project.state == known.NOT_MOUNTED and not not_mounted:
        raise DecisionNeededError(
            f"`{where}` cannot be reached; the disk that it is on may not be mounted",
            hint="mount it and look again; to remove the store all the same: takeback projects "
            f"--remove {project.id} --yes --even-if-not-mounted",
        )
