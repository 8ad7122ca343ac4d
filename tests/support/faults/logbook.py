"""Plays an act of the log with a fault at another step each time, and judges what is left."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from faults import injection
from faults.acts import Act, Ids
from faults.children import Ended, Tell, in_child
from faults.harness import Theatre, open_project, settle
from faults.judge import Before, Court, verified
from takeback.project import Project

_SHAPE = (
    "SELECT agent, own_id, ended IS NULL, turns FROM sessions ORDER BY number",
    "SELECT label, status, whole, closed IS NULL, before, after, steps FROM turns ORDER BY number",
    "SELECT paths, files, added, removed, uncounted FROM turns ORDER BY number",
    "SELECT turn, tool, kind, status, background, closed IS NULL FROM steps ORDER BY number",
    "SELECT checkpoint, path, verb, who, how, session, turn, step FROM deltas",
    "SELECT * FROM changes",
    "SELECT turn, step, before IS NULL, after IS NULL, reason, changed FROM outside",
    "SELECT kind, count(*) FROM events GROUP BY kind",
)


class Logbook(Theatre):
    """A store in which an act has begun, and what its log looks like when all goes well."""

    def __init__(self, act: Act, folder: Path) -> None:
        self._act = act
        self._ids: Ids = {}
        super().__init__(act.scenario, folder)
        self._shape = self._played_well()

    def prepare(self, home: Path) -> None:
        """Play the beginning of the act, in a process that ends without a word."""

        def play(tell: Tell) -> None:
            tell({"ids": [f"{k} {v}" for k, v in self._act.begin(self.opened(home)).items()]})

        begun = in_child(play)
        assert begun.status == 0, begun
        ids = begun.last("ids")
        assert isinstance(ids, list)
        self._ids = dict(pair.split(" ") for pair in ids)
        settle(self.tree.parent)

    def act(self, project: Project, label: str) -> Iterator[str]:
        """The requests of the act, each with its result."""
        del label
        for request, result in self._act.play(project, self._ids):
            yield f"{request} {result}"

    @property
    def work(self) -> str:
        """The act in one line of a program."""
        name = self.scenario.name
        return f"from faults.acts import perform; perform({name!r}, project, {self._ids!r}, tell)"

    def court(self) -> Court:
        """The judge of logs."""
        return _LogCourt(self.tree, self.home, self.before, self.act, self._shape)

    def opened(self, home: Path) -> Project:
        """The project, with the store of a certain home."""
        return open_project(self.tree, home)

    def _played_well(self) -> list[str]:
        self.reset()

        def play(tell: Tell) -> None:
            with self.opened(self.home) as project:
                for _ in self.act(project, ""):
                    pass
                tell({"shape": shape(project)})

        played = in_child(play).last("shape")
        assert isinstance(played, list)
        return played


def shape(project: Project) -> list[str]:
    """What the log says, without ids and times."""
    return [repr(row) for query in _SHAPE for row in project.workspace.ledger._reader.rows(query)]


class _LogCourt(Court):
    """One store after a fault in the middle of an act."""

    def __init__(
        self,
        tree: Path,
        home: Path,
        before: Before,
        act: Callable[[Project, str], Iterator[str]],
        shape: list[str],
    ) -> None:
        super().__init__(tree, home, before)
        self._act = act
        self._shape = shape
        self._acked: set[str] = set()

    def _compare(
        self, present: list[str], acked: set[str], kind: str, attempts: Collection[Ended]
    ) -> Iterator[str]:
        """Nothing acknowledged is lost, and what was refused with an error is not there."""
        del attempts
        self._acked = acked
        for lost in self._before.checkpoints.keys() - set(present):
            yield f"checkpoint {lost} is lost"
        told = {word.split(" ")[0] for word in acked}
        found = self._requests()
        yield from (f"request {r} is there {n} times" for r, n in found.items() if n > 1)
        yield from (f"request {r} was acknowledged and is lost" for r in told - found.keys())
        if kind in injection.ERRORS:
            unknown = found.keys() - told
            yield from (f"request {r} is there in spite of an error" for r in unknown)

    def _go_on(
        self, project: Project, present: list[str], change: Callable[[], None]
    ) -> Iterator[str]:
        """Trying again gives the first results and completes the act; then work goes on."""
        del present
        again = set(self._act(project, ""))
        for first in self._acked - again:
            yield f"the first answer was {first!r}, trying again gave {sorted(again)}"
        yield from (f"request {r} is there {n} times" for r, n in self._requests().items() if n > 1)
        made = shape(project)
        for missing in [row for row in self._shape if row not in made][:3]:
            yield f"the log should say {missing}"
        for more in [row for row in made if row not in self._shape][:3]:
            yield f"the log should not say {more}"
        yield from verified(project, "after trying again")
        yield from self._litter(project)
        change()
        if not project.checkpoint("later").new:
            yield "a later change was not seen"
        yield from verified(project, "after going on")

    def _requests(self) -> Counter[str]:
        (ledger,) = self._home.glob("projects/*/ledger.db")
        db = sqlite3.connect(ledger)
        rows = db.execute("SELECT request FROM events WHERE request IS NOT NULL").fetchall()
        db.close()
        return Counter(str(request) for (request,) in rows)
