"""`takeback install` without a name, `install --all` and `uninstall --all`."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import settings_files
import takeback
from takeback.agents.registry import installable
from takeback.cli import app
from takeback.disk import operations
from takeback.hooks import trial

MAIN = Path(takeback.__file__).parent / "__main__.py"


class Said:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def json(self) -> dict[str, Any]:
        """The one object that `--json` printed."""
        said: dict[str, Any] = json.loads(self.out)
        return said


Run = Callable[..., Said]


class Machine:
    """A home with agents on it, and a PATH of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.bin = place / "bin"
        self.bin.mkdir()

    def has(self, *names: str) -> None:
        """Agents are installed here."""
        for name in names:
            (self.bin / installable()[name].program).touch(0o755)

    def contents(self) -> settings_files.Contents:
        """Everything that agents read."""
        return {
            name: data
            for name, data in settings_files.contents(self.place).items()
            if not name.startswith(("home/", "store/", "bin/"))
        }


@pytest.fixture
def machine(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """One without any agent; the folder is no project."""
    assert home.is_dir()
    monkeypatch.setattr(operations, "sync", False)
    monkeypatch.setattr(trial, "try_install", lambda *_: trial.TrialResult(6, 1.0))
    place = tmp_path / "ana"
    (place / "work").mkdir(parents=True)
    monkeypatch.chdir(place / "work")
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("PATH", str(place / "bin"))
    for agent in installable().values():
        monkeypatch.delenv(agent.variable or "NONE", raising=False)
    return Machine(place)


@pytest.fixture
def run(machine: Machine, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process."""
    assert machine.bin.is_dir()

    def call(*words: str) -> Said:
        code = app.main(list(words))
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call


def test_no_agent_is_found(machine: Machine, run: Run) -> None:
    """Then nothing is written, and the names that one can give are listed."""
    for words in ((), ("--all",), ("--json",)):
        said = run("install", *words)
        assert said.code == 1
        assert "claude-code" in said.err + said.out
        assert "takeback run -- COMMAND" in said.err + said.out
    assert machine.contents() == {}


def test_settings_alone_show_an_agent(machine: Machine, run: Run) -> None:
    """Settings that we did not make are somebody's, also where its command is not in PATH."""
    (machine.place / ".claude").mkdir()
    (machine.place / ".claude/settings.json").write_text('{"model": "opus"}')
    assert [one["agent"] for one in run("install", "--json").json()["agents"]] == ["claude-code"]
    (machine.place / ".claude/settings.json").write_text('{"hooks": "takeback hook"}')
    assert run("install").code == 1


def test_a_folder_that_is_not_there_installs_nothing(machine: Machine, run: Run) -> None:
    """Neither for one agent nor for all."""
    machine.has("claude-code")
    before = machine.contents()
    for words in (("--all",), ("claude-code",), ()):
        said = run("install", "-C", str(machine.place / "nowhere"), *words)
        assert said.code == 2
        assert "there is no folder" in said.err
    assert machine.contents() == before


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("pause", "nosuch"), "no session matches"),
        (("resume", "nosuch"), "not in a project yet"),
        (("resume",), "not in a project yet"),
    ],
)
def test_a_pause_of_an_unknown_session_makes_no_store(
    words: tuple[str, ...], part: str, machine: Machine, run: Run, home: Path
) -> None:
    """No session can be known where no project is, and nobody can be paused there."""
    said = run(*words)
    assert said.code == 2
    assert part in said.err
    assert machine.contents() == {}
    assert not (home / "projects").exists() or not [*(home / "projects").iterdir()]


def test_without_a_terminal_the_agents_are_listed(machine: Machine, run: Run) -> None:
    """Each with its command; nothing is written, and the exit code asks for a decision."""
    machine.has("claude-code", "codex")
    said = run("install")
    assert said.code == 3
    assert "`takeback install claude-code`" in said.out
    assert "`takeback install codex`" in said.out
    assert "gemini" not in said.out
    assert "`takeback install --all`" in said.err
    answer = run("install", "--json").json()
    assert answer["exit_code"] == 3
    assert [(one["agent"], one["installed"]) for one in answer["agents"]] == [
        ("claude-code", False),
        ("codex", False),
    ]
    assert machine.contents() == {}


def test_all_that_are_found_are_installed_and_removed(machine: Machine, run: Run) -> None:
    """Those that are not here get nothing; a second time there is nothing to do."""
    machine.has(*installable())
    before = machine.contents()
    said = run("install", "--all")
    assert (said.code, said.err.count("error")) == (0, 0)
    assert all(f"{agent.title} now calls Takeback" in said.out for agent in installable().values())
    assert "`takeback uninstall --all` takes Takeback out of all agents again" in said.err
    again = run("install")
    assert (again.code, again.out.count("calls Takeback already")) == (0, len(installable()))
    assert all(one["installed"] for one in run("install", "--json").json()["agents"])
    shown = run("uninstall", "--all", "--dry-run", "--json").json()["agents"]
    assert [one["agent"] for one in shown] == list(installable())
    gone = run("uninstall", "--all", "--json").json()["agents"]
    assert all(one["changed"] and one["as_before"] for one in gone)
    assert machine.contents() == before
    assert "No agent calls Takeback" in run("uninstall", "--all").out


@pytest.mark.parametrize("names", [("kilo", "opencode"), ("opencode", "kilo")])
@pytest.mark.parametrize("way", [("--all",), ("opencode",), ("kilo",)])
def test_a_folder_around_two_agents_goes_with_the_last(
    names: tuple[str, ...], way: tuple[str, ...], machine: Machine, run: Run
) -> None:
    """Kilo and OpenCode are both in `.config`, which the first of them made."""
    machine.has(*names)
    before = sorted(machine.place.rglob("*"))
    for name in names:
        assert run("install", name).code == 0
    assert run("uninstall", *way).code == 0
    run("uninstall", "--all")
    assert [path for path in sorted(machine.place.rglob("*")) if path not in before] == []


def test_a_dry_run_of_all_writes_nothing(machine: Machine, run: Run) -> None:
    """It shows each file."""
    machine.has("claude-code", "codex")
    said = run("install", "--all", "--dry-run")
    assert said.code == 0
    assert ".claude/settings.json" in said.out
    assert ".codex/hooks.json" in said.out
    assert machine.contents() == {}


def test_one_that_fails_does_not_stop_the_others(machine: Machine, run: Run) -> None:
    """It is named with the reason, and the exit code says that not all was done."""
    machine.has("claude-code", "codex")
    (machine.place / ".claude").mkdir()
    (machine.place / ".claude/settings.json").write_text("{")
    said = run("install", "--all")
    assert said.code == 5
    assert "error: Claude Code: " in said.err
    assert "not valid JSON" in said.err
    assert "Codex now calls Takeback" in said.out
    assert (machine.place / ".codex/hooks.json").is_file()
    failed, done = run("install", "--all", "--json").json()["agents"]
    assert (failed["agent"], failed["error"]) == ("claude-code", "RefusedError")
    assert failed["hint"]
    assert done["agent"] == "codex"
    gone = run("uninstall", "--all", "--json")  # a broken file that never had hooks is no failure
    assert (gone.code, [one["agent"] for one in gone.json()["agents"]]) == (0, ["codex"])
    assert run("install", "codex").code == 0
    (machine.place / ".codex/hooks.json").write_text("{")
    left = run("uninstall", "--all")
    assert (left.code, "error: Codex: " in left.err) == (1, True)
    (machine.place / ".codex/hooks.json").unlink()
    (machine.bin / "codex").unlink()
    assert run("install", "--all").code == 1


def test_several_names_are_several_agents(machine: Machine, run: Run) -> None:
    """Also of agents that are not here."""
    said = run("install", "claude-code", "codex", "--json").json()["agents"]
    assert [(one["agent"], one["agent_found"]) for one in said] == [
        ("claude-code", False),
        ("codex", False),
    ]
    assert run("uninstall", "claude-code", "codex").code == 0
    assert machine.contents() == {}


@pytest.mark.parametrize("answers", ["yn", "nn"])
def test_on_a_terminal_each_agent_is_a_question(answers: str, machine: Machine, home: Path) -> None:
    """A yes installs that one; without any, nothing is written."""
    machine.has("claude-code", "codex")
    ours, theirs = pty.openpty()
    env = {
        "HOME": str(machine.place),
        "PATH": f"{machine.bin}:/usr/bin:/bin",
        "TAKEBACK_HOME": str(home),
        "TERM": "xterm",
    }
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(MAIN), "install"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=machine.place / "work",
        env=env,
    ) as child:
        os.close(theirs)
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # the terminal is closed
    os.close(ours)
    text = shown.decode()
    assert "Record Claude Code?" in text
    assert "Record Codex?" in text
    is_installed = answers == "yn"
    assert (machine.place / ".claude/settings.json").is_file() == is_installed
    assert not (machine.place / ".codex").exists()
    assert child.returncode == (0 if is_installed else 3)
    assert ("nothing was installed" in text) != is_installed
