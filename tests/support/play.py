"""A small language for histories: agents with tools, hands that change files, and who was who.

    p.a.edit("x")            an edit tool of agent `a` starts and names x
    with p.b.shell(): …      a shell of agent `b`, from its start to its end
    p.tool.write("x")        the tool that runs writes x; for the file system it is just a write
    p.you.save("x")          your editor saves x

A story ends with what the log says, as text: `a1 named` is the first step of agent `a`, which
named the path; `a2 shell` its second, in whose window it changed; `A1 turn` its first turn, which
was a window of its own; `shared a b`; `you`. Several deltas of one path follow each other.
"""

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import takeback
from takeback.ledger import schema
from takeback.session import Session, Step, Turn

OLD = 1_000_000_000
"""A Sunday in September 2001."""
APART = 0.04
"""Seconds after which the stamps of two writes, and what the log says, can be told apart."""

Id = str | None

_AUTHORS = (
    "SELECT d.path, d.who, d.how, z.id, t.id, s.id, d.sessions, d.checkpoint FROM deltas d"
    " LEFT JOIN sessions z ON z.number = d.session LEFT JOIN turns t ON t.number = d.turn"
    " LEFT JOIN steps s ON s.number = d.step ORDER BY d.checkpoint, d.path"
)


class Hands:
    """Whoever changes files: a tool, a person, an editor. Nobody can tell by the files."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._texts = itertools.count(1)

    def text(self) -> str:
        """A text that nobody has written before."""
        return f"text {next(self._texts)} of {id(self)}\n"

    def write(self, *paths: str) -> None:
        """Write files in place, as a truncating save does, and the folders above them."""
        for path in paths:
            file = self._tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.text())

    def save(self, path: str) -> None:
        """Save as editors do: write a new file beside the old one and put it in its place."""
        aside = self._tree / f"{path}.tmp~"
        aside.write_text(self.text())
        aside.rename(self._tree / path)

    def remove(self, *paths: str) -> None:
        """Remove files, or folders with all that is in them."""
        for path in paths:
            place = self._tree / path
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink()

    def move(self, path: str, to: str) -> None:
        """Move a file or folder inside the tree."""
        (self._tree / path).rename(self._tree / to)

    def bring(self, path: str) -> None:
        """Move a file in from outside, which keeps the old date it has."""
        outside = self._tree.parent / f"outside-{next(self._texts)}"
        outside.write_text(self.text())
        os.utime(outside, (OLD, OLD))
        outside.rename(self._tree / path)

    def bring_folder(self, path: str, *files: str) -> None:
        """Move a folder in from outside, with files that nobody touches meanwhile."""
        outside = self._tree.parent / f"outside-{next(self._texts)}"
        for file in files:
            place = outside / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self.text())
        time.sleep(APART)
        outside.rename(self._tree / path)

    def unpack(self, *paths: str, date: int = OLD) -> None:
        """Write files and set their dates, as `tar` and `cp -p` do."""
        for path in paths:
            self.write(path)
            self.date(path, date)

    def date(self, path: str, date: int) -> None:
        """Set the date of a file, as `touch -d` does."""
        os.utime(self._tree / path, (date, date))

    def chmod(self, path: str, mode: int = 0o750) -> None:
        """Change the permission bits alone."""
        (self._tree / path).chmod(mode)

    def link(self, path: str, target: str) -> None:
        """Make a link, or let one lead elsewhere."""
        place = self._tree / path
        if place.is_symlink():
            place.unlink()
        place.symlink_to(target)

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it."""
        (self._tree / path).mkdir(parents=True)


class Tool:
    """A step that runs, to be used in a `with` block or ended by hand."""

    def __init__(self, agent: "Agent", step: Step) -> None:
        self._agent = agent
        self.step = step

    def end(self, status: str = "done") -> None:
        """Let the tool be done."""
        self.step.end(status)

    def detach(self) -> None:
        """Let the tool return while what it started goes on."""
        self.step.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Agent:
    """One agent's session; its turns and steps are numbered in the order they begin."""

    def __init__(self, play: "Play", letter: str, session: Session) -> None:
        self._play = play
        self.letter = letter
        self.session = session
        self.turn: Turn | None = None
        self._steps = itertools.count(1)
        self._turns = itertools.count(1)
        play.names[session.id] = letter

    def prompt(self, *, whole: bool = False, interrupted_at: float | None = None) -> Turn:
        """A prompt is submitted; without `whole` the agent reports each of its steps."""
        turn = self.session.turn("do it", whole=whole, interrupted_at=interrupted_at)
        self._play.names[turn.id] = f"{self.letter.upper()}{next(self._turns)}"
        self.turn = turn
        return turn

    def stop(self, status: str = "done", *, at: float | None = None) -> None:
        """The agent stops."""
        assert self.turn is not None
        self.turn.end(status, ended_at=at)

    def edit(self, *paths: str, inside: Tool | None = None) -> Tool:
        """An edit tool starts that names these paths."""
        if len(paths) == 1:
            return self.use("Edit", {"file_path": paths[0]}, inside=inside)
        edits = [{"file_path": path} for path in paths]
        return self.use("MultiEdit", {"edits": edits}, inside=inside)

    def shell(self, *, inside: Tool | None = None) -> Tool:
        """A shell starts."""
        return self.use("Bash", {"command": "make"}, inside=inside)

    def read(self, *paths: str) -> Tool:
        """A tool starts that only looks."""
        return self.use("Read", {"file_path": paths[0]} if paths else {})

    def sub_agent(self, *, inside: Tool | None = None) -> Tool:
        """A sub-agent starts, which reports steps of its own."""
        return self.use("Task", {"prompt": "help"}, inside=inside)

    def use(
        self,
        name: str,
        given: Mapping[str, object],
        *,
        inside: Tool | None = None,
        cwd: Path | None = None,
    ) -> Tool:
        """Any tool starts, perhaps inside another step; the first one begins a turn."""
        above = inside.step if inside is not None else self.turn or self.prompt()
        step = above.step(name, given, cwd=cwd)
        self._play.names[step.id] = f"{self.letter}{next(self._steps)}"
        return Tool(self, step)


class Play:
    """A tree, its project, and agents `a`, `b` and `c` that begin when they are first named."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.home = home
        self.project = takeback.open(tree, home=home)
        self.you = Hands(tree)
        self.tool = Hands(tree)
        self.names: dict[str, str] = {}
        self._agents: dict[str, Agent] = {}
        self._real_clock = time.time_ns
        self._ahead = 0

    def agent(self, letter: str, *, safe_points: str | None = None, held: bool = True) -> Agent:
        """The agent with this letter, who is made with these options when first named."""
        if letter not in self._agents:
            session = self.project.session(f"agent-{letter}", safe_points=safe_points, held=held)
            self._agents[letter] = Agent(self, letter, session)
        return self._agents[letter]

    @property
    def a(self) -> Agent:
        """The first agent."""
        return self.agent("a")

    @property
    def b(self) -> Agent:
        """The second agent."""
        return self.agent("b")

    @property
    def c(self) -> Agent:
        """The third agent."""
        return self.agent("c")

    def look(self) -> None:
        """Somebody asks for a checkpoint."""
        self.project.checkpoint()

    def pause(self) -> float:
        """Let enough time go by for stamps to tell; return a time in the middle of it."""
        time.sleep(APART)
        now = time.time()
        time.sleep(APART)
        return now

    @contextmanager
    def clock(self, seconds: int) -> Iterator[Callable[[int], None]]:
        """Set the machine's clock ahead (or back), as the program sees it; give it another push."""

        def push(by: int) -> None:
            self._ahead += by * 1_000_000_000

        push(seconds)
        time.time_ns = lambda: self._real_clock() + self._ahead
        try:
            yield push
        finally:
            time.time_ns = self._real_clock
            self._ahead = 0

    def tables(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row of every table that follows from the log."""
        ledger = self.project.workspace.ledger
        return {table: ledger._reader.rows(f"SELECT * FROM {table}") for table in schema.TABLES}

    def authors(self, since: int = 1) -> dict[str, str]:
        """What the log says of each path, checkpoint by checkpoint."""
        told: dict[str, str] = {}
        for path, *author, checkpoint in self.project.workspace.ledger._reader.rows(_AUTHORS):
            if checkpoint > since:
                name = os.fsdecode(path)
                text = self._author(*author)
                told[name] = f"{told[name]}, {text}" if name in told else text
        return told

    def _author(self, who: str, how: str, session: Id, turn: Id, step: Id, sessions: str) -> str:
        if who == "step":
            assert session is not None
            assert turn is not None
            # The step, its turn and its session must belong together.
            assert self.names[turn].lower()[0] == self.names[session]
            assert not step or self.names[step][0] == self.names[session]
            return f"{self.names[step or turn]} {how}"
        assert (session, turn, step) == (None, None, None), "only steps are in a session"
        letters = sorted(self.names[id] for id in sessions.split())
        return " ".join([who, *letters])

    def close(self) -> None:
        """Close the project."""
        self.project.close()
