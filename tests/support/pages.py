"""Documents that are run: what their sessions show is typed into a terminal, and compared.

A page runs in an empty home folder, with Takeback installed from its wheel. Of its Markdown,
three things count:

- ```console: a line with `$` is typed, and what stands below it must be printed. Ids, times,
  durations and sizes may differ;
- <!-- run … -->: lines that are run unseen, before what follows. `project NAME` makes a small
  project and goes there; `agent PROMPT CALL…` plays a turn of Claude Code through the hooks that
  are installed, with one `CALL` for each tool: a shell command, or `edit PATH SED`;
  `agent-begins` is the same without the end; `days-ago N WORDS…` runs Takeback with another clock;
- <!-- type TEXT KEYS -->: when the next command shows TEXT, these keys are pressed.

With UPDATE_SCREENS=1 a page is written anew where it is not what was printed.
"""

import contextlib
import difflib
import json
import os
import re
import select
import shlex
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grid import Grid
from terminal import PATIENCE, Terminal

ROOT = Path(__file__).resolve().parents[2]
PAYLOADS = Path(__file__).parent / "payloads/claude-code-2.1.325"
PIECES = re.compile(
    r"^(?P<open>```console\n)(?P<session>.*?)^```$"
    r"|^<!-- run\n(?P<run>.*?)^-->$|^<!-- type (?P<type>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
HOME = "/srv/home/ada"
"""What the home folder is called in documents; as long as those that `mkdtemp` makes."""
TOOL = ".local/share/uv/tools/takeback"
"""Where an installed tool lies in a home folder."""
KEYS = {"ENTER": b"\r", "SPACE": b" ", "DOWN": b"\x1b[B", "UP": b"\x1b[A", "ESC": b"\x1b"}
VARYING = (
    r"\d+(?:\.\d+)? s\b",
    r"\b[\d.]+ (?:[kM]B|bytes)(?= in |  |$)",
    r"\b\d+ ms\b",
    r"(?:just now|\d+ seconds? ago)",
    r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?",
    r"\b\d\d:\d\d\b",
    r"\b[0-9a-f]{7,40}\b",
    r"\w+@[\w.-]+",
)
TOKENS = re.compile(rf"(?P<varies>{'|'.join(VARYING)})|(?P<id>\b[k-z]{{2,12}}\b)|(?P<gap> {{2,}})")
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
        }
        self._claude = Claude(self)

    def show(self, command: str) -> str:
        """What a command prints on a terminal, and its exit code if that is not 0."""
        place = self.home / "cwd"
        script = (
            f"cd {shlex.quote(str(self.cwd))}\n{command}\ncode=$?; pwd -P > {place}; exit $code"
        )
        words = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in self.env.items())]
        sitting = Sitting([*words, "/bin/sh", "-c", script], self.rows, self.columns)
        try:
            self.seen, code = sitting.watch(self.typed)
        finally:
            sitting.close()
        self.typed = []
        self.cwd = Path(place.read_text().strip())
        place.unlink()
        return self.named(self.seen.text()) + (f"[exit {code}]\n" if code else "")

    def named(self, text: str) -> str:
        """A text in which this home folder has the name that it has in documents."""
        tool = str(self.tools.parent)
        return text.replace(tool, f"{HOME}/{TOOL}").replace(str(self.home), HOME)

    def prepare(self, line: str) -> None:
        """Do what nobody sees."""
        words = shlex.split(line)
        if words[0] == "project":
            self._project(words[1])
        elif words[0] in ("agent", "agent-begins", "agent-stops"):
            self._claude.play(words[0], words[1:])
        elif words[0] == "days-ago":
            python = [str(self.tools / "python"), "-I", "-c", SHIFTED, words[1]]
            self.run([*python, *words[3:]])
        else:
            self.run(["/bin/sh", "-c", line])

    def run(self, words: list[str], given: str = "", cwd: Path | None = None) -> str:
        """Run a program without a terminal; it must succeed."""
        done = subprocess.run(
            words,
            input=given,
            cwd=cwd or self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def _project(self, name: str) -> None:
        """A shop: some source in git, and a secret that git ignores."""
        self.cwd = self.home / name
        files = {
            "src/pay.py": "def pay(cart):\n    return sum(cart)\n",
            "src/cart.py": "def add(cart, price):\n    cart.append(price)\n",
            ".env": "STRIPE_KEY=sk_live_51H8x2\n",
            ".gitignore": ".env\n",
            "README.md": "# Shop\n",
        }
        for path, text in files.items():
            (self.cwd / path).parent.mkdir(parents=True, exist_ok=True)
            (self.cwd / path).write_text(text)
        git = "git init -q -b main && git add -A && git commit -qm 'first version'"
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

    def watch(self, typed: list[tuple[str, bytes]]) -> tuple[Grid, int]:
        """What was shown, and the exit code."""
        grid, waiting = Grid(self.rows, self.columns), list(typed)
        while self._more():
            grid.feed(self.seen)
            self.seen = b""
            while waiting and waiting[0][0] in grid.text():
                self.type(waiting.pop(0)[1])
        assert not waiting, (waiting, grid.text())
        return grid, self.status()

    def _more(self) -> bool:
        assert select.select([self._fd], [], [], PATIENCE)[0], f"nothing more: {self.seen!r}"
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
        if piece["open"]:
            session = "".join(_played(piece["session"], stage))
            made += f"```console\n{session}```"
        else:
            made += piece[0]
    return made + text[done:]


def _played(session: str, stage: Stage) -> Iterator[str]:
    for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        printed = stage.show(command)
        same = is_same(said, printed, ids_in(stage.home / ".local/share/takeback"))
        yield f"$ {command}\n{said if same else printed}"


def is_same(said: str, printed: str, ids: set[str]) -> bool:
    """Whether what a page says was printed, but for ids, times and sizes."""
    ours, theirs = said.splitlines(), printed.splitlines()
    return len(ours) == len(theirs) and all(
        re.fullmatch(_pattern(line, ids), our) for our, line in zip(ours, theirs, strict=True)
    )


def _pattern(line: str, ids: set[str]) -> str:
    """What a printed line looks like in any run."""
    made, done = "", 0
    for token in TOKENS.finditer(line):
        made += re.escape(line[done : token.start()])
        done = token.end()
        if token["gap"]:
            made += " +"
        elif token["varies"]:
            made += f"(?:{'|'.join(VARYING)})"
        elif any(id.startswith(token[0]) for id in ids) or len(token[0]) == 12:
            made += "[k-z]{2,12}"
        else:
            made += re.escape(token[0])
    return made + re.escape(line[done:])


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


def difference(page: Path, made: str) -> str:
    """What a page says and what was printed, as a diff."""
    name = str(page.relative_to(ROOT))
    lines = page.read_text().splitlines(keepends=True), made.splitlines(keepends=True)
    return "".join(difflib.unified_diff(*lines, name, "printed"))
