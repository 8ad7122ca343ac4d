"""Documents that are run: what their sessions show is typed into a terminal, and compared.

A page runs in an empty home folder, with Takeback installed from its wheel. Of its Markdown,
four things count:

- ```console: a line with `$` is typed, and what stands below it must be printed. Ids, times,
  durations and sizes may differ;
- <!-- run … -->: lines that are run unseen, before what follows. `project NAME` makes a small
  project and goes there, `cd` goes home, `ids` names ids anew, `rows N` resizes. `agent PROMPT
  CALL…` plays a turn of Claude Code through the installed hooks: each CALL is a shell command, or
  `edit PATH SED`; `agent-begins` leaves the turn open. `days-ago N takeback …` sets the clock back;
- <!-- type TEXT KEYS -->: when the next command shows TEXT, these keys are pressed;
- <!-- picture FILE TITLE -->: the session above it, or the full screen that it ended with, as a
  picture. With lines of `$` in the comment, these are run for it, unseen.

With UPDATE_SCREENS=1 a page is written anew where it is not what was printed.
"""

import contextlib
import difflib
import json
import os
import random
import re
import select
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import picture
from grid import BLANK, Cell, Grid
from terminal import PATIENCE, Terminal

ROOT = Path(__file__).resolve().parents[2]
PAYLOADS = Path(__file__).parent / "payloads/claude-code-2.1.325"
PIECES = re.compile(
    r"^(?P<open>```console\n)(?P<session>.*?)^```$"
    r"|^<!-- run\n(?P<run>.*?)^-->$|^<!-- type (?P<type>.*?) -->$"
    r"|^<!-- picture (?P<file>\S+) (?P<title>[^\n]*?)(?P<shots>(?:\n\$ [^\n]*)*)\s-->$",
    re.MULTILINE | re.DOTALL,
)
PROGRAMS = re.compile(
    r"(?P<program>^```python\n(?P<source>.*?)^```\n\nIt prints:\n\n```\n).*?^```$",
    re.MULTILINE | re.DOTALL,
)
HOME = "/srv/user/ada"
"""What the home folder is called in documents; as long as those that `mkdtemp` makes."""
TOOL = ".local/share/uv/tools/takeback"
"""Where an installed tool lies in a home folder."""
WHY = "Why? Agents are told (Enter skips):"
"""What a person at a terminal is asked after a restore; nobody answers on our pages."""
KEYS = {"ENTER": b"\r", "SPACE": b" ", "DOWN": b"\x1b[B", "UP": b"\x1b[A", "ESC": b"\x1b"}
VARYING = (
    r"\d+(?:\.\d+)? s\b",
    r"\b[\d.]+ [kMG]B\b",
    r"\b\d+ ms\b",
    r"(?:just now|\d+ seconds? ago)",
    r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?",
    r"\b\d\d:\d\d\b",
    r"\b[0-9a-f]{7,40}\b",
    r"\w+@[\w.-]+",
)
IDS = (
    "mvkxlpqstnzw",
    "krzpwsmxolty",
    "tqvnsylkuwpx",
    "zosplxvkmrwn",
    "xtqwnrvzlspo",
    "pnlmywrkxtvs",
)
"""What ids are called in documents, in the order in which a project shows them."""
ENGLISH = "lost|most|only|root|runs|sort|support|took|tool|turn|turns|work|your|yours"
TOKEN = re.compile(rf"\b(?!(?:{ENGLISH})\b)[k-z]{{4,12}}\b")
_BOLD = frozenset({"bold"})
UPDATE = bool(os.environ.get("UPDATE_SCREENS"))
SHIFTED = """
import sys, time
days = float(sys.argv.pop(1)) * 86400
now, now_ns = time.time, time.time_ns
time.time = lambda: now() - days
time.time_ns = lambda: now_ns() - int(days * 1e9)
from takeback.cli.app import entry
entry()
"""


class Stage:
    """A terminal in an empty home folder, with Takeback installed from its wheel."""

    def __init__(self, home: Path, tools: Path, *, rows: int = 60, columns: int = 80) -> None:
        self.home, self.tools = home, tools
        self.rows, self.columns = rows, columns
        self.cwd = home
        self.typed: list[tuple[str, bytes]] = []
        self.seen = Grid(rows, columns)
        self.shown: list[tuple[str, Grid]] = []
        (home / "bin").mkdir()
        self.env = {
            "PATH": f"{tools}:{home}/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(home),
            "USER": "ada",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TZ": "UTC",
            "TAKEBACK_HELPER": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "ada@example.com" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_DATE": "1700000000 +0000" for who in ("AUTHOR", "COMMITTER")},
        }
        self._claude = Claude(self)
        self._ids: list[str] = []

    def show(self, command: str) -> str:
        """What a command prints on a terminal, and its exit code if that is not 0."""
        place, said = self.home / "cwd", command
        command = TOKEN.sub(lambda found: self._as_meant(found[0]), command)
        script = (
            f"cd {shlex.quote(str(self.cwd))}\n{command}\ncode=$?; pwd -P > {place}; exit $code"
        )
        words = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in self.env.items())]
        sitting = Sitting([*words, "/bin/sh", "-c", script], self.rows, self.columns)
        try:
            written, code = sitting.watch(self.typed)
        finally:
            sitting.close()
        self.seen = Grid(self.rows, self.columns)
        self.seen.feed(self._homed(written.decode()).encode())
        self.shown.append((said, self.seen))
        self.typed = []
        self.cwd = Path(place.read_text().strip())
        place.unlink()
        return self.named(self.seen.text()) + (f"[exit {code}]\n" if code else "")

    def named(self, text: str) -> str:
        """A text with the ids that documents show."""
        known = ids_in(self.home / ".local/share/takeback")
        return TOKEN.sub(lambda found: self._as_shown(found[0], known), text)

    def picture(self, title: str) -> str:
        """What was shown since the last picture, or the full screen of the last command."""
        rows: list[list[Cell]] = []
        for command, grid in self.shown:
            prompt = [Cell("$", "90"), BLANK, *(Cell(char, "", _BOLD) for char in command)]
            rows += [prompt, *grid.lines()]
        if self.shown[-1][1].full:
            rows = self.shown[-1][1].full
        self.shown = []
        return picture.drawn([self._named_row(row) for row in rows], self.columns, title)

    def _named_row(self, row: list[Cell]) -> list[Cell]:
        text = self.named("".join(cell.char or "\0" for cell in row))
        return [
            cell._replace(char=char) if cell.char else cell
            for cell, char in zip(row, text, strict=True)
        ]

    def _homed(self, text: str) -> str:
        """A text in which the home folder has the name, and the length, that documents show."""
        for real, shown in ((self.tools.parent, f"{HOME}/{TOOL}"), (self.home, HOME)):
            assert len(str(real)) == len(shown)
            text = text.replace(str(real), shown)
        return text

    def _as_shown(self, word: str, known: set[str]) -> str:
        if len(word) == 12:
            known = known | {word}
        real = next((id for id in sorted(known) if id.startswith(word)), "")
        if not real:
            return word
        if real not in self._ids:
            self._ids.append(real)
        return shown_id(self._ids.index(real))[: len(word)]

    def _as_meant(self, word: str) -> str:
        """What somebody types who reads an id in a document."""
        shown = [shown_id(number) for number in range(len(self._ids))]
        meant = (real for real, id in zip(self._ids, shown, strict=True) if id.startswith(word))
        return next(meant, word)[: len(word)]

    def prepare(self, line: str) -> None:
        """Do what nobody sees."""
        words = shlex.split(line)
        if words[0] == "project":
            self._project(words[1])
        elif words == ["cd"]:
            self.cwd = self.home
        elif words == ["ids"]:
            self._ids = []
        elif words[0] == "rows":
            self.rows = int(words[1])
        elif words[0] in ("agent", "agent-begins", "agent-stops"):
            self._claude.play(words[0], words[1:])
        elif words[0] == "days-ago":
            python = [str(self.tools / "python"), "-I", "-c", SHIFTED, words[1]]
            self.run([*python, *words[3:]])
        else:
            self.run(["/bin/sh", "-c", line])

    def run(self, words: list[str], given: str = "") -> str:
        """Run a program without a terminal; it must succeed."""
        done = subprocess.run(
            words,
            input=given,
            cwd=self.cwd if self.cwd.is_dir() else self.home,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def _project(self, name: str) -> None:
        """A shop: some source in git, and a secret that git ignores."""
        self.cwd, self._ids = self.home / name, []
        files = {
            "src/pay.py": "def pay(cart):\n    return sum(cart)\n",
            "src/cart.py": "def add(cart, price):\n    cart.append(price)\n",
            ".env": "API_KEY=do-not-lose-me\n",
            ".gitignore": ".env\n",
            "README.md": "# Shop\n",
        }
        for path, text in files.items():
            (self.cwd / path).parent.mkdir(parents=True, exist_ok=True)
            (self.cwd / path).write_text(text)
        git = "git init -q -b main --template= && git add -A && git commit -qm 'first version'"
        self.run(["/bin/sh", "-c", git])


class Claude:
    """Claude Code as far as Takeback sees it: hooks of its settings, called with its payloads."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._prompts = self._calls = 0

    def play(self, how: str, words: list[str]) -> None:
        """A turn: the prompt, its tools one after the other, and the end, as far as asked for."""
        if how != "agent-stops":
            self._prompts += 1
            self._hear("UserPromptSubmit", prompt=words[0])
            for call in words[1:]:
                self._use(call)
        if how != "agent-begins":
            self._hear("Stop")

    def _use(self, call: str) -> None:
        kind, *rest = shlex.split(call)
        self._calls += 1
        tool, given = "Bash", {"command": call, "description": "…"}
        run = ["/bin/sh", "-c", call]
        if kind == "edit":
            tool, given = "Edit", {"file_path": str(self._stage.cwd / rest[0])}
            run = ["sed", "-i", rest[1], rest[0]]
        same = {"tool_input": given, "tool_use_id": f"toolu_{self._calls:024}"}
        self._hear("PreToolUse", tool, **same)
        self._stage.run(run)
        self._hear("PostToolUse", tool, **same)

    def _hear(self, event: str, tool: str = "", **more: Any) -> None:  # noqa: ANN401 -- as JSON has it
        stage = self._stage
        name = f"{event}.{tool}" if tool else event
        payload = json.loads((PAYLOADS / f"{name}.json").read_text())
        prompt = f"00000000-0000-4000-8000-{self._prompts:012}"
        payload |= {"cwd": str(stage.cwd), "prompt_id": prompt, **more}
        payload |= {"session_id": f"session-{stage.cwd.name}", "transcript_path": ""}
        settings = json.loads((stage.home / ".claude/settings.json").read_text())
        for group in settings["hooks"][event]:
            for hook in group["hooks"]:
                stage.run(["/bin/sh", "-c", hook["command"]], json.dumps(payload))


class Sitting(Terminal):
    """A terminal that somebody watches to the end, and types at when something is shown."""

    def watch(self, typed: list[tuple[str, bytes]]) -> tuple[bytes, int]:
        """What was written, and the exit code."""
        grid, waiting, written = Grid(self.rows, self.columns), list(typed), b""
        skipped = False
        while self._more(grid):
            written += self.seen
            grid.feed(self.seen)
            self.seen = b""
            while waiting and waiting[0][0] in grid.text():
                self.type(waiting.pop(0)[1])
            if grid.text().rstrip().endswith(WHY) and not skipped:
                skipped = True
                self.type(b"\r")
        assert not waiting, (waiting, grid.text())
        return written, self.status()

    def _more(self, grid: Grid) -> bool:
        assert select.select([self._fd], [], [], PATIENCE)[0], f"it waits:\n{grid.text()}"
        try:
            self.seen = os.read(self._fd, 65536)
        except OSError:  # the last process on it is gone
            return False
        return bool(self.seen)


def play(page: Path, stage: Stage) -> str:
    """The page as it should be: where what is printed is not what it says, what is printed."""
    text, done, made = page.read_text(), 0, ""
    for piece in PIECES.finditer(text):
        made += text[done : piece.start()]
        done = piece.end()
        if piece["run"]:
            for line in piece["run"].splitlines():
                stage.prepare(line)
        elif piece["type"]:
            shown, *keys = shlex.split(piece["type"])
            stage.typed.append((shown, b"".join(KEYS.get(key, key.encode()) for key in keys)))
        elif piece["file"]:
            shots = piece["shots"].split("\n$ ")[1:]
            stage.shown = [] if shots else stage.shown
            for command in shots:
                stage.show(command)
            keep(page.parent / piece["file"], stage.picture(piece["title"]))
        if piece["open"]:
            stage.shown = []
            session = "".join(_played(piece["session"], stage))
            made += f"```console\n{session}```"
        else:
            made += piece[0]
    return made + text[done:]


def _played(session: str, stage: Stage) -> Iterator[str]:
    for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        printed = stage.show(command)
        ended = re.findall(r"^\[exit \d+\]$", printed, re.MULTILINE)
        assert all(code in said for code in ended), (
            f"the page does not say that it fails:\n{printed}"
        )
        yield f"$ {command}\n{said if is_same(said, printed) else printed}"


def is_same(said: str, shown: str) -> bool:
    """Whether a page says what was shown, but for what is another in each run.

    Where a line breaks depends on the digits of a number: that counts only for pages that are
    written anew.
    """
    said, shown = (_whole_ids(text) for text in (said, shown))
    if not UPDATE:
        said, shown = (" ".join(re.sub(r"<[^>]*>", " ", text).split()) for text in (said, shown))
    return lasting(said) == lasting(shown)


def _whole_ids(picture: str) -> str:
    """A picture in which each id is one text: how much of it stands out depends on the others."""
    return re.sub(r'class="c35 bold"([^>]*>[a-z]+)</text>\s*<text[^>]*>', r"\1", picture)


def lasting(text: str) -> str:
    """What of a text is the same in each run; an id may be longer where another begins like it."""
    text = re.sub(r' (?:x|width|textLength)="[\d.]+"', "", text)  # of a picture
    for varying in VARYING:
        text = re.sub(varying, "VARIES", text)
    text = TOKEN.sub(lambda found: _number(found[0]), text)
    return re.sub(r" {2,}", "  ", text)


def _number(word: str) -> str:
    found = (number for number in range(99) if shown_id(number).startswith(word))
    return next((f"ID{number}" for number in found), word)


def shown_id(number: int) -> str:
    """The n-th id that documents show: some that are easy on the eye, then any."""
    if number < len(IDS):
        return IDS[number]
    return "".join(random.Random(number).choices("kmnpqrstvwxz", k=12))


def play_python(page: Path, folder: Path, home: Path) -> str:
    """The page as it should be: below each of its programs stands what that prints."""

    def made(piece: re.Match[str]) -> str:
        return f"{piece['program']}{printed(piece['source'], folder, home)}```"

    return PROGRAMS.sub(made, page.read_text())


def printed(source: str, folder: Path, home: Path) -> str:
    """What a program prints that runs without complaint."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", source],
        cwd=folder,
        env={**os.environ, "TAKEBACK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def ids_in(store: Path) -> set[str]:
    """All ids of all stores, also of those that are gone by now, as far as they can be read."""
    found = {path.name for path in store.glob("projects/*")}
    for path in store.glob("projects/*/ledger.db"):
        with contextlib.suppress(sqlite3.DatabaseError):
            db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            with contextlib.closing(db):
                for table in ("checkpoints", "turns", "steps", "sessions", "restores"):
                    found |= {id for (id,) in db.execute(f"SELECT id FROM {table}")}
    return found


def keep(file: Path, made: str) -> None:
    """Compare a picture with its file, or write it (UPDATE_SCREENS=1)."""
    is_kept = file.is_file() and is_same(file.read_text(), made)
    if UPDATE and not is_kept:
        file.parent.mkdir(exist_ok=True)
        file.write_text(made)
    else:
        hint = f"{file.name} is not what was shown; `scripts/pictures` makes it again"
        assert is_kept, f"{hint}\n{difference(file, made)}"


def difference(page: Path, made: str) -> str:
    """What a page says and what was printed, as a diff."""
    name = str(page.relative_to(ROOT))
    lines = page.read_text().splitlines(keepends=True), made.splitlines(keepends=True)
    return "".join(difflib.unified_diff(*lines, name, "printed"))
