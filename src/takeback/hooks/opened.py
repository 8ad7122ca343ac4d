"""The project of an event: opened for it, or still open from the event before.

To open one, and to look at its tree for the first time, is most of what an event costs.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.project import Project


class ProjectCache:
    """The project of the last event, as long as opening it again would give the same."""

    __slots__ = ("_key", "_project", "_standing", "_watches")

    def __init__(self, *, watches: bool = False) -> None:
        self._watches = watches
        self._key: tuple[bytes, ...] = ()
        self._project: Project | None = None
        self._standing: tuple[object, ...] = ()

    def project(self, where: bytes, home: bytes, user_home: bytes) -> "tuple[Project, bool]":
        """The project that a folder is in, and whether it was opened just now."""
        key = (where, home, user_home)
        known = self._project
        if known is not None and self._key == key and known.standing() == self._standing:
            known.recover_early()  # as whoever opens it does
            return known, False
        self.close()

        from takeback.project import Project

        found = self._project = Project.open(where, home=home, user_home=user_home)
        self._key, self._standing = key, found.standing()
        if self._watches:
            found.watch_tree()
        return found, True

    def rest(self) -> None:
        """Let go of packs until the next event: what is removed from the store shall be gone."""
        if self._project is not None:
            self._project.objects.close()

    def settle(self) -> None:
        """Do what the next event is faster with, once nobody waits for this one."""
        if self._project is not None:
            self._project.settle_watch()

    def close(self) -> None:
        """Close what is open."""
        known, self._project = self._project, None
        if known is not None:
            known.close()
