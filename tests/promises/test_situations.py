"""Situations in which trust is won or lost, compared with docs/contributing/situations.md.

What is printed, the exit code and what is on disk have to be what the page says (UPDATE_SCREENS=1
writes it). Besides, nothing may be lost in any of them: what a file held before a command is in the
tree or in the store after it.
"""

import contextlib
import hashlib
import os
import re
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import program
from agents import MAIN, Agent
from pages import ids_in
from situations import Situation, situations
from takeback.errors import TakebackError
from takeback.ledger.ledger import Ledger
from takeback.objects.object_store import ObjectStore

PAGE = Path(__file__).parents[2] / "docs/contributing/situations.md"
HEAD = """# Situations

For users who want to know what they would see. Each situation is played by
`tests/promises/test_situations.py`, which compares what is printed, the exit code and the files on
disk with this page, and checks that nothing is lost. `UPDATE_SCREENS=1 ./check
tests/promises/test_situations.py` writes it anew. Ids, hashes, times and sizes of stores are
replaced.
"""
ALL = list(situations())
UPDATE = bool(os.environ.get("UPDATE_SCREENS"))
PLAYED: dict[str, str] = {}
UNCOVERED = {
    "Turned off",
    "The store was deleted",
    "A ledger that is damaged",
    "The disk of the store is full",
    "The store belongs to another user",
}
"""Where `takeback run` says that it records nothing, and runs the command."""
NOT_OURS = ("store", "bin", "home", "cwd")
LEFT_OUT = {".git", "node_modules"}
SMALL = 1 << 20
PLAIN = re.compile(r"[^$|<>;&]*")
WHO = {"GIT_AUTHOR_NAME": "Ana", "GIT_AUTHOR_EMAIL": "ana@example.com"}


class Stage:
    """A folder for one situation: a project, a home and a store."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.cwd = folder / "tree"
        self.store = folder / "store"
        (folder / "home").mkdir(parents=True)
        self.cwd.mkdir()
        tools = folder / "bin"
        tools.mkdir()
        (tools / "takeback").write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {MAIN} "$@"\n')
        (tools / "takeback").chmod(0o755)
        known = {name: value for name, value in os.environ.items() if name == "TMPDIR"}
        dates = {"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}
        committer = {name.replace("AUTHOR", "COMMITTER"): value for name, value in WHO.items()}
        self.env = {
            **known,
            **WHO,
            **dates,
            **committer,
            "PATH": f"{tools}:/usr/bin:/bin:/usr/sbin:/sbin",  # no agent of this machine
            "HOME": str(folder / "home"),
            "TAKEBACK_HOME": str(self.store),
            "TAKEBACK_HELPER": "0",
            "ANA": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "COLUMNS": "100",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
        }
        for name in ("HOME", "TAKEBACK_HOME", "TZ"):
            patch.setenv(name, self.env[name])
        self._ids: set[str] = set()
        self._agents: dict[str, Agent] = {}
        self._calls: dict[str, object] = {}
        self.closing = contextlib.ExitStack()

    def play(self, situation: Situation) -> str:
        """The situation as the page shows it."""
        if os.geteuid() != 0 and any("chown" in line for line in situation.lines):
            pytest.skip("needs root to give files to another user: this situation is NOT TESTED")
        shown = []
        for line in situation.lines:
            command = line.removeprefix("$ ")
            before = contents(self.folder)
            code, printed = self._do(command)
            self._ids |= ids_in(self.store)
            if command.startswith("takeback") and not is_uncovered(situation, command):
                assert lost(before, self.folder) == [], f"{command}\n{printed}"
            if line.startswith("$"):
                ended = f"[exit {code}]\n" if code else ""
                shown.append(f"{line}\n{printed}{ended}")
            else:
                assert code == 0 or command.startswith("takeback"), f"{command}\n{printed}"
        files = "".join(f"{line}\n" for line in listing(self.folder / "tree"))
        text = "".join(shown) + (f"\nOn disk:\n{files}" if files else "\nOn disk: no files\n")
        return self._replaced(text)

    def _do(self, line: str) -> tuple[int, str]:
        words = shlex.split(line)
        if words[0] == "agent":
            return 0, self._agent(*words[1:])
        if words[0] == "disk":
            return self._disk(words[1])
        if words[0] == "takeback" and PLAIN.fullmatch(line.partition(" -- ")[0]):
            done = program.text(words[1:], self.cwd, self.env)
            return done.returncode, done.stdout + done.stderr
        place = self.folder / "cwd"
        ran = subprocess.run(
            ["/bin/sh", "-c", f"{line}\ncode=$?; pwd -P > {place}; exit $code"],
            cwd=self.cwd if self.cwd.is_dir() else self.folder,
            env=self.env,
            capture_output=True,
            check=False,
        )
        self.cwd = Path(place.read_text().strip())
        return ran.returncode, (ran.stdout + ran.stderr).decode()

    def _agent(self, name: str, does: str, *words: str) -> str:
        agent = self._agents.setdefault(name, Agent(self.cwd, f"S-{name}"))
        answer: dict[str, object] = {}
        if does == "prompt":
            answer = agent.prompt(words[0])
        elif does == "begin":
            self._calls[name] = agent.begin("Bash", {"command": "make"})
        elif does == "end":
            self._calls.pop(name).over()  # type: ignore[attr-defined]
        elif does == "edit":
            agent.edit(words[0], words[1] + "\n")
        else:
            answer = agent.stop()
        said = answer.get("hookSpecificOutput")
        told = said.get("additionalContext", "") if isinstance(said, dict) else ""
        return f"{told}\n" if told else ""

    def _disk(self, state: str) -> tuple[int, str]:
        """A small disk for the store with a turn in it, which then takes no writes."""
        if sys.platform != "linux" or os.geteuid() != 0:
            pytest.skip("needs root to mount a small disk: this situation is NOT TESTED")
        self.store.mkdir(mode=0o700)
        disk = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "none", str(self.store)]
        subprocess.run(disk, check=True)
        self.closing.callback(subprocess.run, ["umount", "-l", str(self.store)], check=True)
        (self.cwd / "a.txt").write_text("1\n")
        run = ["run", "-q", "-m", "edit", "--", "sh", "-c", "echo 2 > a.txt"]
        for words in (["checkpoint"], run):
            assert program.text(words, self.cwd, self.env).returncode == 0
        self._ids |= ids_in(self.store)
        if state == "full":
            fill(self.store / "filler")
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(self.store)], check=True)
        return 0, ""

    def _replaced(self, text: str) -> str:
        """Without what is another at each run."""
        for id in sorted(self._ids, key=len, reverse=True):
            for size in range(len(id), 3, -1):
                text = re.sub(rf"(?<![\w]){id[:size]}(?![\w])", "ID", text)
        text = text.replace(str(self.folder), "/srv/ana")
        text = re.sub(r"(?<![\w/.-])[0-9a-f]{7,40}(?![\w.-])", "SHA", text)
        text = re.sub(r"takeback apply [k-z]{12}", "takeback apply ID", text)
        text = re.sub(r"/rescue/[k-z]{12}", "/rescue/ID", text)
        text = re.sub(r"\d+(\.\d+)? s(?=\W)", "0 s", text)
        text = re.sub(r"[\d.]+ [kM]?B(?= in |  )", "SIZE", text)
        text = re.sub(r"(?<=Session  ID  run  )\S+", "ana@laptop", text)
        text = re.sub(r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?", "DATE", text)
        return re.sub(r"\b\d\d:\d\d\b", "TIME", text)


def fill(file: Path) -> None:
    """Leave no page free."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with contextlib.suppress(OSError):
        while os.write(fd, bytes(4096)):
            pass
    os.close(fd)


def is_uncovered(situation: Situation, command: str) -> bool:
    """Whether a command is one that Takeback does not record, as it says."""
    return command.startswith("takeback run") and situation.title in UNCOVERED


def files(folder: Path) -> Iterator[Path]:
    """All files of projects, without what Takeback leaves out."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if inside[0] not in NOT_OURS and LEFT_OUT.isdisjoint(inside[:-1]):
            yield path


def contents(folder: Path) -> dict[bytes, Path]:
    """What the small files hold, as git names it."""
    found = {}
    for path in files(folder):
        if stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size < SMALL:
            data = path.read_bytes()
            head = b"blob %d\0" % len(data)
            found[hashlib.sha1(head + data, usedforsecurity=False).digest()] = path
    return found


def lost(before: dict[bytes, Path], folder: Path) -> list[Path]:
    """Files whose content is neither in the tree now nor in a store."""
    missing = set(before) - set(contents(folder))
    for path in (folder / "store/projects").glob("*/ledger.db") if missing else ():
        ledger = Ledger(os.fsencode(path), writable=False)
        objects = ObjectStore(os.fsencode(path.parent / "git/objects/pack"), ledger)
        try:
            missing = {oid for oid in missing if not objects.is_sound(oid)}
        except TakebackError:
            continue
        finally:
            objects.close()
            ledger.close()
    return [before[oid] for oid in missing]


def listing(folder: Path) -> list[str]:
    """What is on disk, a line for each entry."""
    lines = []
    for path in files(folder) if folder.is_dir() else ():
        name, status = path.relative_to(folder), path.lstat()
        if stat.S_ISLNK(status.st_mode):
            lines.append(f"  {name} -> {path.readlink()}")
        elif stat.S_ISDIR(status.st_mode):
            lines.append(f"  {name}/")
        elif status.st_size > 200:
            lines.append(f"  {name}  {status.st_size:,} bytes")
        else:
            lines.append(f"  {name}  {path.read_bytes().decode('utf-8', 'replace')!r}")
    return lines


@cache
def sections() -> dict[str, str]:
    """What the page says of each situation, by its title."""
    parts = re.split(r"^### (.+)\n\n```console\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {parts[n]: parts[n + 1].partition("```")[0] for n in range(0, len(parts), 2)}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A place to play one."""
    made = Stage(tmp_path / "ana", monkeypatch)
    time.tzset()
    with made.closing:
        yield made


@pytest.mark.parametrize("situation", ALL, ids=[each.title for each in ALL])
def test_what_is_shown_and_kept(situation: Situation, stage: Stage) -> None:
    """What is printed, how it ended and what is on disk are as the page says; nothing is lost."""
    text = stage.play(situation)
    if UPDATE:
        PLAYED[situation.title] = text
    else:
        assert text == sections()[situation.title]


def test_the_page_has_all_of_them() -> None:
    """In the same order, and at least sixty."""
    if UPDATE:
        write_page()
    assert list(sections()) == [each.title for each in ALL]
    assert len(ALL) >= 60


def write_page() -> None:
    """Put the page together from what was played."""
    page, group = [HEAD], ""
    for situation in ALL:
        if situation.group != group:
            group = situation.group
            page.append(f"\n## {group}\n")
        page.append(f"\n### {situation.title}\n\n```console\n{PLAYED[situation.title]}```\n")
    PAGE.write_text("".join(page))
