"""What the tests of `log`, `show` and `sessions` share: a project with a history."""

import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import program
import takeback

ID = re.compile(r"(?<![a-z0-9])[k-z]{4,12}(?![a-z0-9])")


class Said:
    """What a command printed and how it ended."""

    def __init__(self, done: "subprocess.CompletedProcess[bytes]") -> None:
        self.code = done.returncode
        self.raw = done.stdout
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode()


def command(tree: Path, *words: str, **surroundings: str) -> Said:
    """Run `takeback` as a program, 80 columns wide unless told otherwise."""
    hidden = ("LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR")
    known = {name: value for name, value in os.environ.items() if name not in hidden}
    env = {**known, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "TZ": noon(), **surroundings}
    if surroundings.keys() & {"PYTHONIOENCODING", *hidden[:3]}:  # Python reads these when it starts
        started = [sys.executable, "-m", "takeback", *words]
        return Said(subprocess.run(started, cwd=tree, env=env, capture_output=True, check=False))
    return Said(program.run(words, tree, env))


class Story:
    """Six turns of two agents, of which each shows something else."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.project = takeback.open(tree)
        self.ids: dict[str, str] = {}
        self._write("a.py", "a\nb\n")
        self.ids["start"] = self.project.checkpoint("start").id
        self.claude = self.project.session(agent="claude", title="payments")
        self.codex = self.project.session(agent="codex")
        self.ids |= {"claude": self.claude.id, "codex": self.codex.id}
        self._steps()
        self._nothing()
        self._failure()
        self._shared()
        self._tell_apart()

    def _tell_apart(self) -> None:
        """Let no two ids begin alike, and none like a word, so that chance decides nothing."""
        new = {}
        beginnings = (first + second for first in "zx" for second in "klmnopqrstuvwxyz")
        for table in ("checkpoints", "turns", "steps", "sessions"):
            for number, id in self.project.workspace.ledger._reader.rows(
                f"SELECT number, id FROM {table}"
            ):
                new[id] = next(beginnings) + id[2:]
                self.sql(f"UPDATE {table} SET id = ? WHERE number = ?", new[id], number)
        for number, path, shared in self.project.workspace.ledger._reader.rows(
            "SELECT checkpoint, path, sessions FROM deltas WHERE who = 'shared'"
        ):
            names = " ".join(sorted(new[id] for id in shared.split()))
            named = "(SELECT number FROM paths WHERE path = ?)"
            change = f"UPDATE delta_rows SET sessions = ? WHERE checkpoint = ? AND path = {named}"
            self.sql(change, names, number, path)
        self.ids = {name: new[id] for name, id in self.ids.items()}
        self.claude.id, self.codex.id = self.ids["claude"], self.ids["codex"]

    def _write(self, name: str, text: str) -> None:
        (self.tree / name).write_text(text)

    def _steps(self) -> None:
        with self.claude.turn("Add a login form\nand keep it simple") as turn:
            with (
                turn.step("Task", {"description": "look into it"}) as above,
                above.step("Write", {"file_path": "login.py"}),
            ):
                self._write("login.py", "x\n" * 50)
            with turn.step("Bash", {"command": "mv a.py b.py; mkfifo pipe"}):
                (self.tree / "a.py").rename(self.tree / "b.py")
                os.mkfifo(self.tree / "pipe")
        self.ids["form"] = turn.id

    def _nothing(self) -> None:
        with self.claude.turn(
            "ログインフォームについて説明してください。できるだけ短くお願いします。"
        ) as turn:
            pass
        self.ids["explain"] = turn.id

    def _failure(self) -> None:
        turn = self.codex.turn("Make it binary")
        self._write("b.py", "zzz\n")
        (self.tree / "image").write_bytes(b"\0\1")
        turn.end("failed")
        self.ids["binary"] = turn.id

    def _shared(self) -> None:
        first, second = self.claude.turn("One of two"), self.codex.turn("The other")
        self._write("both.txt", "1\n")
        first.end()
        second.end("interrupted")
        self.ids |= {"one": first.id, "other": second.id}

    def age(self, *minutes: int) -> None:
        """Let the turns, newest first, have begun so many minutes ago."""
        for number, past in enumerate(reversed(minutes), start=1):
            # Twenty seconds more, so that a slow test still sees the same minute.
            at = int((time.time() - past * 60 - 20) * 1e9)
            self.sql("UPDATE turns SET started = ? WHERE number = ?", at, number)
        before = int((time.time() - max(minutes) * 60 - 620) * 1e9)
        self.sql("UPDATE names SET at = ?", before)

    def sql(self, statement: str, *values: object) -> None:
        """Change the tables behind everybody's back."""
        with sqlite3.connect(os.fsdecode(self.project.workspace.ledger.path)) as db:
            db.execute(statement, values)
        db.close()

    def masked(self, text: str) -> str:
        """Text in which ids are called by their names, of the same length, and times are hidden."""
        text = ID.sub(lambda found: self._called(found[0]), text)
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, [^,\n]*?(?:ago|now)", "<when>", text)
        text = re.sub(r"  \S+@\S+$", "  <account>", text, flags=re.MULTILINE)
        return re.sub(r"\d+\.\d s", "<took>", text)

    def _called(self, word: str) -> str:
        for name, id in self.ids.items():
            if id.startswith(word):
                return (name.upper() * 4)[: len(word)]
        return "<id>" if len(word) in (8, 12) else word


def noon() -> str:
    """A time zone in which it is about noon now, so that no test sees midnight."""
    return f"<noon>{int(time.gmtime().tm_hour) - 12:+d}"
