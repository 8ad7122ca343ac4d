"""`takeback install` and `uninstall`: settings, backups, the canary, and what is said about it."""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import settings_files
import takeback
from settings_files import contents
from takeback import environment
from takeback.agents import agent as kinds
from takeback.agents.agent import FILES, Agent
from takeback.agents.dialects import claude_code, codex
from takeback.agents.registry import installable
from takeback.cli import app
from takeback.cli.text.reason_text import sentence
from takeback.disk import operations
from takeback.errors import RefusedError, TakebackError
from takeback.hooks import command, health, trial
from takeback.hooks import hook as troubles
from takeback.hooks import install as steps
from takeback.hooks.settings import json_settings, receipts, settings_file

PACKAGE = Path(takeback.__file__).parent
MAIN = str(PACKAGE / "__main__.py")
PLUGIN = PACKAGE / "plugin" / "claude-code"
BACKUP = "settings.json.before-takeback"
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "fish") if shutil.which(shell)]

OLD_LINE = (
    "test -x /old/takeback/hooks/ask -a -x /old/python -a -f /old/takeback/__main__.py && exec"
    " /old/takeback/hooks/ask /old/python -I -S /old/takeback/__main__.py hook || test -x"
    " /old/python -a -f /old/takeback/__main__.py && exec /old/python -I -S"
    " /old/takeback/__main__.py hook || true"
)

Run = Callable[..., "Said"]


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


@pytest.fixture
def place(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an agent's settings, which its variables name; the tree is no project."""
    assert home.is_dir()
    monkeypatch.setattr(operations, "sync", False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".gemini"  # one that no variable names
    for agent in installable().values():
        if agent.variable:
            monkeypatch.setenv(agent.variable, str(folder))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no agent of the person at the keyboard
    return folder


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process."""
    assert not place.exists()

    def call(*words: str) -> Said:
        code = app.main(list(words))
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary is tried by tests of its own; here it would only take its time."""
    monkeypatch.setattr(trial, "try_install", lambda *_: trial.TrialResult(6, 1.0))


def planned(
    path: Path,
    home: Path,
    scope: str = steps.USER,
    *,
    agent: Agent = claude_code.AGENT,
    python: str = sys.executable,
    main: str = MAIN,
) -> steps.Installation:
    """What an install would write."""
    script = command.script(python, main)
    return steps.installation(
        agent, scope, os.fsencode(path), home=os.fsencode(home), script=script
    )


def install(path: Path, home: Path, scope: str = steps.USER) -> None:
    """Install for Claude Code without trying it out."""
    steps.install(planned(path, home, scope), os.fsencode(home))


def uninstall(path: Path, home: Path, *, agent: Agent = claude_code.AGENT) -> steps.Removal:
    """Take it out again."""
    made = steps.removals(agent, os.fsencode(path), os.fsencode(home))
    steps.uninstall(made, os.fsencode(home))
    return made[0]


# -- settings files ----------------------------------------------------------------------------


@pytest.mark.parametrize("agent", installable().values(), ids=installable())
def test_settings_are_as_they_were(agent: Agent, place: Path, home: Path) -> None:
    """Each varied file gets the hooks once, with a backup, and is the same to the byte without."""
    varied = settings_files.varied_for(agent)
    assert len({tuple(sorted(each.items())) for each in varied.values()}) == len(varied) >= 50
    for name, files in varied.items():
        settings_files.write(place, files)
        before, was_there = contents(place), place.exists()
        _survives(agent, place, home, before)
        assert contents(place) == before, name
        assert place.exists() == was_there
        shutil.rmtree(place, ignore_errors=True)


def _survives(agent: Agent, place: Path, home: Path, before: settings_files.Contents) -> None:
    """Install twice, uninstall; everything around it stays."""
    path = Path(os.fsdecode(steps.settings_path(agent, os.fsencode(place))))
    own = str(path.relative_to(place))
    steps.install(planned(path, home, agent=agent), os.fsencode(home))
    installed = contents(place)
    assert installed[own] != before.get(own)
    assert own not in before or installed[f"{own}.before-takeback"] == before[own]
    assert before.items() - {(own, before.get(own))} <= installed.items()
    assert not planned(path, home, agent=agent).changes
    assert uninstall(path, home, agent=agent).is_exact
    assert receipts.read(os.fsencode(home)) == {}
    assert not (home / command.SCRIPT).exists()


@pytest.mark.parametrize("name", settings_files.REFUSED)
def test_settings_that_cannot_be_understood_are_left_alone(
    name: str, place: Path, run: Run
) -> None:
    """A file that is no JSON, or has something else where hooks belong, is refused untouched."""
    place.mkdir()
    path = place / "settings.json"
    path.write_bytes(settings_files.REFUSED[name])
    before = contents(place)
    for verb in ("install", "uninstall"):
        said = run(verb, "claude-code")
        assert said.code == 1
        assert "left as it is" in said.err
        assert str(path) in said.err
        assert "hint:" in said.err
    assert contents(place) == before


def test_a_link_stays_a_link(place: Path, home: Path, tmp_path: Path) -> None:
    """What a link leads to is written; the backup is where the agent's settings are."""
    place.mkdir()
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text('{"model": "x"}\n')
    path = place / "settings.json"
    path.symlink_to("../dotfiles/claude.json")
    install(path, home)
    assert path.is_symlink()
    assert not real.is_symlink()
    assert json_settings.ours(real.read_text())
    assert sorted(contents(place)) == ["settings.json", BACKUP]
    uninstall(path, home)
    assert path.is_symlink()
    assert real.read_text() == '{"model": "x"}\n'
    assert sorted(contents(place.parent / "dotfiles")) == ["claude.json"]


def test_a_link_to_nothing_is_followed(place: Path, home: Path, tmp_path: Path) -> None:
    """A link whose file is not made yet leads to where the file is made, and removed again."""
    place.mkdir()
    (place / "settings.json").symlink_to(tmp_path / "dotfiles" / "claude.json")
    install(place / "settings.json", home)
    assert (tmp_path / "dotfiles" / "claude.json").is_file()
    uninstall(place / "settings.json", home)
    assert not (tmp_path / "dotfiles").exists()
    assert (place / "settings.json").is_symlink()


def test_a_file_with_two_names_keeps_both(place: Path, home: Path) -> None:
    """A hard link, as some managers of dotfiles make them, is written in place."""
    place.mkdir()
    path = place / "settings.json"
    path.write_text("{}")
    os.link(path, place / "other")
    install(path, home)
    assert path.stat().st_ino == (place / "other").stat().st_ino
    assert json_settings.ours((place / "other").read_text())
    uninstall(path, home)
    assert (place / "other").read_text() == path.read_text() == "{}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(place: Path, home: Path) -> None:
    """A file of somebody else, whom root installs for, is still theirs."""
    place.mkdir()
    path = place / "settings.json"
    path.write_text("{}")
    path.chmod(0o604)
    os.chown(path, 1234, 4321)
    install(path, home)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o604)
    assert sorted(contents(place)) == ["settings.json", BACKUP]


def test_a_read_only_file_is_refused(place: Path, run: Run) -> None:
    """Somebody protected it, or a program makes it; both are told what to do."""
    place.mkdir()
    path = place / "settings.json"
    path.write_text("{}")
    path.chmod(0o444)
    before = contents(place)
    said = run("install", "claude-code")
    assert said.code == 1
    assert "read-only" in said.err
    assert f"chmod u+w {path}" in said.err
    assert "--dry-run" in said.err
    assert contents(place) == before
    shown = run("install", "claude-code", "--dry-run")
    assert shown.code == 0
    assert "takeback-hook" in shown.out
    assert contents(place) == before


def test_a_backup_that_is_gone_is_not_named(place: Path, run: Run) -> None:
    """The hooks are taken out by the text alone then."""
    place.mkdir()
    (place / "settings.json").write_text('{"a": 1}')
    assert run("install", "claude-code").code == 0
    (place / BACKUP).unlink()
    said = run("uninstall", "claude-code")
    assert said.code == 0
    assert "is kept" not in said.out + said.err
    assert (place / "settings.json").read_text() == '{"a": 1}'


def test_a_folder_in_its_place_is_refused(place: Path, home: Path) -> None:
    """What is no file is not written."""
    (place / "settings.json").mkdir(parents=True)
    with pytest.raises(RefusedError, match="is not a file"):
        install(place / "settings.json", home)


def test_what_somebody_wrote_meanwhile_is_not_lost(place: Path, home: Path) -> None:
    """If an agent writes its settings between our look and our write, ours fails."""
    place.mkdir()
    path = place / "settings.json"
    path.write_text("{}")
    made = planned(path, home)
    path.write_text('{"model": "new"}')
    with pytest.raises(TakebackError, match="another program changed it"):
        steps.install(made, os.fsencode(home))
    assert {name: data for name, (_, data) in contents(place).items()} == {
        "settings.json": b'{"model": "new"}'
    }
    assert receipts.read(os.fsencode(home)) == {}


# -- changed since -----------------------------------------------------------------------------


def test_what_was_changed_since_is_kept(place: Path, home: Path) -> None:
    """If the file was edited, only what is ours goes, and the backup of before stays."""
    place.mkdir()
    path = place / "settings.json"
    path.write_text('{\n  "hooks": {\n    "Stop": []\n  }\n}\n')
    install(path, home)
    said = json.loads(path.read_text())
    path.write_text(json.dumps({"model": "x", **said}, indent=2))
    made = uninstall(path, home)
    assert not made.is_exact
    assert json.loads(path.read_text()) == {"model": "x", "hooks": {"Stop": []}}
    assert (place / BACKUP).read_text() == '{\n  "hooks": {\n    "Stop": []\n  }\n}\n'
    install(path, home)
    assert sorted(contents(place)) == ["settings.json", BACKUP, f"{BACKUP}.2"]
    uninstall(path, home)
    assert sorted(contents(place)) == ["settings.json", BACKUP]


def test_a_file_that_we_made_goes_if_nothing_else_is_in_it(place: Path, home: Path) -> None:
    """Edited back and forth, it is empty without our hooks; with somebody's words it stays."""
    path = place / "settings.json"
    install(path, home)
    path.write_text(json.dumps(json.loads(path.read_text())))
    uninstall(path, home)
    assert not place.exists()
    install(path, home)
    path.write_text(json.dumps({"model": "x", **json.loads(path.read_text())}))
    uninstall(path, home)
    assert json.loads(path.read_text()) == {"model": "x"}


def test_a_lost_receipt_costs_nothing_but_blanks(place: Path, home: Path) -> None:
    """Our hooks are known by themselves, and all else is still as it was."""
    place.mkdir()
    path = place / "settings.json"
    path.write_bytes(settings_files.varied()["hooks of others: tabs"] or b"")
    before = path.read_bytes()
    install(path, home)
    (home / "installed").write_text("damaged\n[1]\n{}\n")
    assert uninstall(path, home).changes
    assert path.read_bytes() == before


def test_an_old_line_is_replaced(place: Path, home: Path) -> None:
    """The long lines of before become the short one; the file's first backup stays."""
    place.mkdir()
    path = place / "settings.json"
    path.write_text('{"model": "x" }')
    made = planned(path, home)
    groups = claude_code.AGENT.groups(OLD_LINE, OLD_LINE)
    made.edits[0].data = json_settings.put_in('{"model": "x" }', groups).encode()
    steps.install(made, os.fsencode(home))
    assert "/old/python" in path.read_text()
    install(path, home)
    assert "/old/python" not in path.read_text()
    assert sorted(contents(place)) == ["settings.json", BACKUP]
    assert uninstall(path, home).is_exact
    assert {name: data for name, (_, data) in contents(place).items()} == {
        "settings.json": b'{"model": "x" }'
    }


# -- faults ------------------------------------------------------------------------------------


@pytest.fixture
def stops() -> Iterator[Callable[[int, Callable[[], None]], None]]:
    """At so many steps on the disk a function is called, which ends what is done."""

    def at(number: int, stop: Callable[[], None]) -> None:
        left = [number]

        def hook(_: str, __: tuple[object, ...]) -> None:
            left[0] -= 1
            if left[0] == 0:
                stop()

        operations.hook = hook

    yield at
    operations.hook = None


@pytest.mark.parametrize("data", [None, b'{"model": "x"}\n'], ids=["no file", "a file"])
def test_an_install_that_fails_changes_nothing(
    data: bytes | None, place: Path, home: Path, stops: Callable[..., None]
) -> None:
    """Whichever step fails, the settings are as they were, or the install is done."""
    path = place / "settings.json"
    if data is not None:
        place.mkdir()
        path.write_bytes(data)
    before = contents(place)

    def fail() -> None:
        raise OSError(28, "No space left on device")

    for number in range(1, 100):
        stops(number, fail)
        try:
            install(path, home)
        except TakebackError:
            operations.hook = None
            assert contents(place) == before
            assert place.exists() == (data is not None)
        else:
            break
    operations.hook = None
    assert number > 8
    uninstall(path, home)
    assert contents(place) == before


@pytest.mark.parametrize("data", [None, b'{"model": "x"}\n'], ids=["no file", "a file"])
def test_a_crash_can_be_cleaned_up(
    data: bytes | None, place: Path, home: Path, stops: Callable[..., None]
) -> None:
    """Whichever step an install or an uninstall dies at, an uninstall leaves what was before."""
    path = place / "settings.json"
    if data is not None:
        place.mkdir()
        path.write_bytes(data)
    before = contents(place)

    def dies(number: int, act: Callable[[], object]) -> bool:
        child = os.fork()
        if child == 0:
            stops(number, lambda: os._exit(9))
            act()
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

    number = 0
    while dies(number := number + 1, lambda: install(path, home)):
        install(path, home)
        assert uninstall(path, home).changes
        assert contents(place) == before, number
    assert number > 8
    number = 0
    while dies(number := number + 1, lambda: uninstall(path, home)):
        uninstall(path, home)
        assert contents(place) == before, number
        assert place.exists() == (data is not None)
        install(path, home)
    assert number > 4


# -- the command line --------------------------------------------------------------------------


def sung(python: str, main: str, agent: Agent = claude_code.AGENT) -> trial.TrialResult:
    """Try out what may be installed."""
    made = planned(Path("/nowhere/x.json"), Path("/nowhere"), agent=agent, python=python, main=main)
    return trial.try_install(made, dict(os.environ))


def test_the_configuration_folder_may_be_elsewhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents that follow the XDG specification look where its variable says; others do not."""
    assert home.is_dir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    agents = installable()
    found = {
        name: os.fsdecode(environment.settings_folder("", agents[name].folder))
        for name in ("opencode", "kilo", "gemini-cli")
    }
    assert found["opencode"] == str(tmp_path / "xdg/opencode")
    assert found["kilo"] == str(tmp_path / "xdg/kilo")
    assert found["gemini-cli"].endswith("/.gemini")


@pytest.mark.parametrize("agent", installable().values(), ids=installable())
def test_the_canary_sings(agent: Agent) -> None:
    """The command line of this very program records a prompt and lets it be taken back."""
    played = {kinds.SESSION_STARTS, kinds.PROMPT, kinds.BEFORE_TOOL, kinds.AFTER_TOOL, kinds.STOPS}
    played.add(kinds.SESSION_ENDS)
    assert sung(sys.executable, MAIN, agent).events == len(played & set(agent.kinds.values()))


def test_an_installed_package_works_at_any_path(tmp_path: Path) -> None:
    """Without `site`, in a folder with blanks and quotes in its name, without other packages."""
    packages = tmp_path / """it's a "site" $HOME""" / "lib"
    shutil.copytree(PACKAGE, packages / "takeback", ignore=shutil.ignore_patterns("*.so"))
    python = packages / "py thon"
    python.symlink_to(Path(sys.executable).resolve())
    sung(str(python), str(packages / "takeback" / "__main__.py"))


def test_a_client_for_another_machine_is_named(tmp_path: Path) -> None:
    """If the client in C cannot run here, as in a folder that was copied, it is said what to do."""
    shutil.copytree(PACKAGE, tmp_path / "takeback")
    ask = tmp_path / "takeback" / "hooks" / "ask"
    ask.write_bytes(b"\x7fELF of another processor")
    ask.chmod(0o755)
    with pytest.raises(TakebackError, match=r"hooks/ask` is not for this machine; remove it"):
        sung(sys.executable, str(tmp_path / "takeback" / "__main__.py"))
    ask.unlink()
    sung(sys.executable, str(tmp_path / "takeback" / "__main__.py"))


def told(shell: str, line: str, event: str = "", **env: str) -> str:
    """What a command line prints; it ends well, and without a word of the shell."""
    done = subprocess.run(
        [shell, "-c", line],
        input=f'{{"hook_event_name":"{event}"}}' if event else "{}",
        env={"PATH": "/nowhere", "HOME": os.environ["HOME"], **env},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_a_takeback_that_is_gone_stops_nobody(shell: str, tmp_path: Path) -> None:
    """In every shell the command line ends well and silently; at a prompt it says what is wrong."""
    shell = shutil.which(shell) or shell
    script = tmp_path / "it's gone" / command.SCRIPT
    assert told(shell, command.line(str(script)), "UserPromptSubmit") == ""
    tells = command.line(str(script), tells=True)
    assert "not covered" in json.loads(told(shell, tells))["systemMessage"]
    assert told(shell, command.shared_line(), "UserPromptSubmit") == ""
    script.parent.mkdir()
    script.write_text(command.script("/nowhere/python", str(script.parent / "__main__.py")))
    for line in (command.line(str(script)), tells):
        assert told(shell, line, "PreToolUse") == ""
        said = json.loads(told(shell, line, "UserPromptSubmit"))
        assert "not covered" in said["systemMessage"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_line_works_in_every_shell(shell: str, tmp_path: Path) -> None:
    """Agents run it by whichever shell their user has."""
    script = tmp_path / command.SCRIPT
    script.write_text(command.script(sys.executable, MAIN))
    shell = shutil.which(shell) or shell
    assert told(shell, command.line(str(script)), TAKEBACK_HOME=str(tmp_path / "home")) == ""


def test_the_command_line_is_short_and_names_no_version(place: Path, home: Path) -> None:
    """No Python, no version of anything, no place but the home of the stores."""
    path = place / "settings.json"
    install(path, home)
    for one in json_settings.ours(path.read_text()):
        is_prompt = one.event == "UserPromptSubmit"
        assert len(one.command.replace(str(home), "")) < (210 if is_prompt else 100)
        assert "python" not in one.command.replace(str(home), "").lower()
        assert not re.search(r"[0-9]", one.command.replace(str(home), ""))
    script = home / command.SCRIPT
    assert (stat.S_IMODE(script.stat().st_mode), script.is_symlink()) == (0o600, False)
    uninstall(path, home)
    assert not script.exists()


@pytest.mark.parametrize("way", ["command", "PATH", "another Python"])
def test_an_upgrade_of_python_breaks_no_hook(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the interpreter is gone, the script finds Takeback by its command or another Python."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "takeback").write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{MAIN}" "$@"\n')
    (tools / "takeback").chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    made = planned(Path("/nowhere/x.json"), Path("/nowhere"), python="/gone/python3.11")
    main = "/gone/lib/python3.11/site-packages/takeback/__main__.py"
    if way == "command":
        made.script = command.script("/gone/python3.11", main, str(tools / "takeback"))
    elif way == "PATH":
        monkeypatch.setenv("PATH", f"/usr/bin:/bin:{tools}")
        made.script = command.script("/gone/python3.11", main)
    else:
        made.script = made.script.replace("/usr/bin/python3", os.path.realpath(sys.executable))
    assert trial.try_install(made, dict(os.environ)).events == 6


def test_nothing_of_the_tree_runs_when_takeback_is_gone(tmp_path: Path) -> None:
    """A `takeback` in the folder of the agent is not the one that is looked for in the PATH."""
    tree, script = tmp_path / "tree", tmp_path / command.SCRIPT
    script.write_text(command.script("/gone/python", "/gone/takeback/__main__.py"))
    for folder in (tree, tree / "bin"):
        folder.mkdir()
        (folder / "takeback").write_text("#!/bin/sh\necho ran\n")
        (folder / "takeback").chmod(0o755)
    line = command.line(str(script), started_in="STARTED_IN")
    for path in (".", "", "bin", f"{tree}", f"{tree}/bin", f"::.:{tree}/bin:./bin"):
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env={"PATH": path, "STARTED_IN": str(tree)},
            cwd=tree / "bin",
            input=b"{}",
            capture_output=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == (b"", b""), path


def test_versions_in_paths_are_avoided(tmp_path: Path) -> None:
    """Homebrew's links and names without a patch level are preferred, if they are the same file."""
    kept = tmp_path / "Cellar" / "takeback" / "1.2.0" / "libexec" / "main.py"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert command.lasting(str(kept)) == str(kept)
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "takeback").symlink_to(kept.parent.parent)
    assert command.lasting(str(kept)) == str(tmp_path / "opt" / "takeback" / "libexec" / "main.py")
    python = tmp_path / "python" / "cpython-3.12.4-linux" / "bin" / "python3.12"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / "python" / "cpython-3.12-linux").symlink_to("cpython-3.12.4-linux")
    assert command.lasting(str(python)) == str(python).replace("3.12.4", "3.12")
    (tmp_path / "python" / "cpython-3.12-linux").unlink()
    (tmp_path / "python" / "cpython-3.12-linux").mkdir()
    assert command.lasting(str(python)) == str(python)


def test_a_checkout_names_its_own_environment(tmp_path: Path) -> None:
    """The launcher runs the interpreter behind `.venv`; agents are told the one that stays."""
    real = tmp_path / "versions" / "python3.11"
    real.parent.mkdir()
    real.touch()
    main = tmp_path / "src" / "takeback" / "__main__.py"
    assert command.python_for(str(real), str(main)) == str(real)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(real)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    assert command.python_for(str(real), str(main)) == str(tmp_path / ".venv" / "bin" / "python")


def test_an_environment_has_one_name(tmp_path: Path) -> None:
    """Started as `python3`, it is installed as `python`, so that the command line is the same."""
    tools = tmp_path / "venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").touch()
    (tools / "python3").symlink_to("python")
    main = str(tmp_path / "venv" / "lib" / "takeback" / "__main__.py")
    assert command.python_for(str(tools / "python3"), main) == str(tools / "python3")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert command.python_for(str(tools / "python3"), main) == str(tools / "python")
    (tools / "python3").unlink()
    (tools / "python3").touch()
    assert command.python_for(str(tools / "python3"), main) == str(tools / "python3")


def test_a_path_that_is_not_unicode_is_refused() -> None:
    """JSON cannot hold it, so nothing is installed that could not work."""
    with pytest.raises(RefusedError, match="not Unicode"):
        command.line(os.fsdecode(b"/a\xff/takeback-hook"))
    with pytest.raises(RefusedError, match="not Unicode"):
        command.script("/bin/python", os.fsdecode(b"/a\xff/takeback/__main__.py"))


# -- the commands ------------------------------------------------------------------------------


def test_an_install_tells_what_it_did(run: Run, place: Path, tree: Path) -> None:
    """Settings, backup, events, checkpoint and the way back are named; again, nothing changes."""
    place.mkdir()
    (place / "settings.json").write_text('{\n\t"model": "opus"\n}')
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / "a.txt").write_text("a\n")
    before = contents(place)
    said = run("install", "claude-code", "-C", str(tree))
    assert said.code == 0
    assert "Claude Code now calls Takeback, at 11 events." in said.out
    for part in ("settings.json", BACKUP, "tried out", "checkpoint"):
        assert part in said.out
    assert "`takeback uninstall claude-code` removes exactly this" in said.err
    installed = contents(place)
    again = run("install", "claude-code", "-C", str(tree), "--json").json()
    assert (again["changed"], again["diff"], again["canary"]["events"]) == (False, [], 6)
    assert again["backup"] == str(place / BACKUP)
    assert contents(place) == installed
    assert "hook" in run("log", "-C", str(tree)).err + again["command"]
    gone = run("uninstall", "claude-code")
    assert "is as it was before" in gone.out
    assert "`takeback install claude-code` installs it again" in gone.err
    assert contents(place) == before
    none = run("uninstall", "claude-code")
    assert (none.code, "nothing to remove" in none.out) == (0, True)


@pytest.mark.usefixtures("quick")
def test_codex_is_told_about_trust(run: Run, place: Path) -> None:
    """Its hooks do nothing until they are trusted, which only its user can do."""
    said = run("install", "codex")
    assert "`Trust all and continue`" in said.err
    assert "`/hooks`" in said.err
    assert "asks once" in said.err
    hooks = json.loads((place / "hooks.json").read_text())["hooks"]
    assert list(hooks) == list(codex.AGENT.kinds)


def in_project(agent: Agent, tree: Path) -> Path:
    """The settings of an agent in a project, or the first file of several."""
    folder = tree / (agent.project_folder or agent.folder)
    return Path(os.fsdecode(steps.settings_path(agent, os.fsencode(folder), steps.PROJECT)))


WITH_PROJECTS = {n: a for n, a in installable().items() if a.project_folder is not None}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("agent", WITH_PROJECTS.values(), ids=WITH_PROJECTS)
def test_a_project_has_settings_of_its_own(
    agent: Agent, run: Run, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --project the folder of the agent in the project's root is meant, and a first look."""
    (tree / "src").mkdir()
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    words = (agent.name, "--project", "-C", str(tree / "src"))
    if not agent.local_file:
        missing = run("install", *words)
        assert (missing.code, "PATH has no `takeback`" in missing.err) == (1, True)
        (tmp_path / "takeback").touch(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    said = run("install", *words, "--json").json()
    path = in_project(agent, tree)
    assert (said["file"], said["scope"], said["changed"]) == (str(path), "project", True)
    assert said["checkpoint"]
    assert stat.S_IMODE(path.stat().st_mode) == (0o755 if agent.executable else 0o644)
    assert said["inverse"] == f"takeback uninstall {agent.name} --project"
    nothing = run("uninstall", agent.name)
    assert "nothing to remove" in nothing.out
    assert f"`takeback uninstall {agent.name} --project -C {tree}` removes it" in nothing.err
    gone = run("uninstall", agent.name, "--project", "-C", str(tree), "--json").json()
    assert (gone["changed"], gone["as_before"]) == (True, True)
    assert "` removes it" not in run("uninstall", agent.name).err
    assert not path.parent.exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("agent", WITH_PROJECTS.values(), ids=WITH_PROJECTS)
def test_colleagues_are_not_disturbed(
    agent: Agent,
    shell: str,
    run: Run,
    tree: Path,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shared file names nothing of this machine, and no line says a word elsewhere."""
    (tmp_path / "takeback").touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert run("install", agent.name, "--project", "-C", str(tree)).code == 0
    shared = in_project(agent, tree).parent / (agent.file or agent.file_names()[0]).split("/")[-1]
    assert shared.exists() == (not agent.local_file)
    assert not shared.exists() or str(tmp_path) not in shared.read_text()
    made = planned(in_project(agent, tree), home, steps.PROJECT, agent=agent)
    assert not made.changes
    shutil.rmtree(home)  # as on the machine of a colleague
    lines = {line: event for event, line in made.commands.items()}
    for line, event in lines.items():
        assert told(shutil.which(shell) or shell, line, event) == ""


def test_an_agent_without_settings_of_a_project_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And names what works instead."""
    monkeypatch.setattr(claude_code.ClaudeCode, "project_folder", None)
    said = run("install", "claude-code", "--project")
    assert (said.code, "`takeback install claude-code`" in said.err) == (2, True)


@pytest.mark.usefixtures("quick")
def test_hooks_in_shared_settings_move_to_your_own(run: Run, tree: Path, home: Path) -> None:
    """An older version put them into the file that colleagues share; both verbs take them out."""
    shared, own = (tree / ".claude" / name for name in ("settings.json", "settings.local.json"))
    for words in (("install", "uninstall"), ("uninstall",)):
        shared.parent.mkdir(exist_ok=True)
        shared.write_text('{"model": "x"}')
        before = contents(tree)
        install(shared, home, steps.PROJECT)
        for verb in words:
            said = run(verb, "claude-code", "--project", "-C", str(tree), "--json").json()
            assert said["changed"]
            assert own.exists() == (verb == "install")
            assert contents(tree)[".claude/settings.json"] == before[".claude/settings.json"]
        assert contents(tree) == before
    shared.write_text("{")  # a colleague's slip of the finger keeps nobody from their own file
    assert run("install", "claude-code", "--project", "-C", str(tree)).code == 0
    assert run("uninstall", "claude-code", "--project", "-C", str(tree)).code == 0
    assert (shared.read_text(), own.exists()) == ("{", False)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("agent", installable().values(), ids=installable())
def test_an_agent_that_is_not_there_is_said(
    agent: Agent, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command, or anything that it noted in its folder, shows that it is there."""
    for _ in range(2):  # what we wrote ourselves shows nothing
        said = run("install", agent.name)
        assert (said.code, f"no `{agent.program}` is in" in said.err) == (0, True)
    assert run("install", agent.name, "--json").json()["agent_found"] is False
    folder = Path(os.fsdecode(environment.settings_folder(agent.variable, agent.folder)))
    (folder / "history.jsonl").touch()
    assert "does not seem to be installed" not in run("install", agent.name).err
    (folder / "history.jsonl").unlink()
    (tmp_path / agent.program).touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert run("install", agent.name, "--json").json()["agent_found"] is True


def test_a_dry_run_prints_tabs_as_they_are(run: Run, place: Path) -> None:
    """Settings may be indented with tabs, and may have letters beyond ASCII."""
    place.mkdir()
    (place / "settings.json").write_text('{\n\t"model": "ü\\n\x7f"\n}')
    said = run("install", "claude-code", "--dry-run").out
    assert '+\t"model": "ü\\n\\x7f",\n' in said


def test_a_dry_run_shows_and_writes_nothing(run: Run, place: Path, home: Path) -> None:
    """The diff of the settings is what the install would do to them; so for the way back."""
    place.mkdir()
    (place / "settings.json").write_text('{\n  "model": "opus"\n}')
    before, stores = contents(place), contents(home)
    said = run("install", "claude-code", "--dry-run")
    assert '-  "model": "opus"' in said.out
    assert '+  "model": "opus",' in said.out
    assert '+    "PreToolUse": [' in said.out
    assert "nothing was written" in said.err
    assert run("install", "claude-code", "--dry-run", "--json").json()["changed"] is False
    assert (contents(place), contents(home)) == (before, stores)
    install(place / "settings.json", home)
    installed = contents(place)
    assert '-    "PreToolUse": [' in run("uninstall", "claude-code", "--dry-run").out
    assert contents(place) == installed


def test_what_does_not_work_is_not_installed(
    run: Run, place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the canary fails, nothing is written, and the reason is said."""
    broken = place.parent / "takeback" / "__main__.py"
    broken.parent.mkdir()
    broken.write_text("import sys; sys.exit('no such module: sqlite')")
    monkeypatch.setattr("takeback.cli.commands.install._MAIN", str(broken))
    said = run("install", "claude-code")
    assert said.code == 1
    assert "no such module: sqlite" in said.err
    assert "nothing was installed" in said.err
    assert not place.exists()
    assert receipts.read(os.fsencode(home)) == {}
    broken.write_text("")
    assert "nothing was recorded" in run("install", "claude-code").err
    broken.write_text('print(\'{"systemMessage": "does not cover this"}\')')
    assert "does not cover this" in run("install", "claude-code").err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("install", "vim"), "use one of claude-code, "),
        (("install", "claude"), "did you mean `claude-code`?"),
        (("uninstall", "Codex"), "did you mean `codex`?"),
        (("install", "vibe"), "did you mean `mistral-vibe`?"),
        (("install", "openhands"), "use one of claude-code, "),
        (("install", "VS Code"), "`takeback install claude-code`"),
        (("install", "aider"), "`takeback run -- aider`"),
        (("uninstall",), "needs AGENT"),
        (("install", "--all", "codex"), "`--all` takes no names"),
        (("install", "codex", "--user", "--project"), "exclude each other"),
        (("uninstall", "vim"), "not an agent"),
    ],
)
def test_calls_that_make_no_sense(words: tuple[str, ...], part: str, run: Run) -> None:
    """Wrong words are told, with a hint."""
    said = run(*words)
    assert said.code == 2
    assert part in said.err
    assert "hint:" in said.err


@pytest.mark.usefixtures("quick")
def test_hooks_that_are_switched_off_are_told(run: Run, place: Path) -> None:
    """Settings that keep all hooks from running are worth a word."""
    place.mkdir()
    (place / "settings.json").write_text('{"disableAllHooks": true}')
    assert "disableAllHooks" in run("install", "claude-code").err


# -- versions ----------------------------------------------------------------------------------

NEWER = {"PermissionRequest", "PostToolUseFailure", "PostToolBatch", "StopFailure"}


def write(path: Path, said: object) -> None:
    """Make a file that says something in JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said))


@pytest.mark.parametrize("version", ["1.0.128", "2.0.65", "2.1.100", "2.1.101", "2.1.325", "3.0.0"])
@pytest.mark.parametrize("how", ["package", "native", "started", "started before"])
def test_old_versions_get_no_events_that_they_refuse(
    version: str, how: str, tmp_path: Path, run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 2.1.101 an unknown event costs the user all settings, so it is left out."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    if how == "package":
        package = tmp_path / "lib" / "node_modules" / "@anthropic-ai" / "claude-code"
        write(package / "package.json", {"name": "@anthropic-ai/claude-code", "version": version})
        program = package / "cli.js"
    else:
        program = tmp_path / "share" / "claude" / "versions" / version
    if how in {"package", "native"}:
        write(program, "")
        program.chmod(0o755)
        (tools / "claude").symlink_to(program)
        write(place / ".claude.json", {"firstStartVersion": "0.2.9"})
    else:
        first = {"firstStartVersion": "1.0.0"} if how == "started before" else {}
        write(place / ".claude.json", {**first, "lastReleaseNotesSeen": version})
    said = run("install", "claude-code", "--dry-run", "--json").json()
    is_old = tuple(map(int, version.split("."))) < (2, 1, 101)
    assert set(claude_code.AGENT.kinds) - set(said["events"]) == (NEWER if is_old else set())


def test_an_unknown_version_gets_all_events(run: Run, place: Path, tmp_path: Path) -> None:
    """An agent that was never here will be a new one; what cannot be read says nothing."""
    assert len(run("install", "claude-code", "--dry-run", "--json").json()["events"]) == 11
    write(place / ".claude.json", ["2.0.0"])
    assert len(run("install", "claude-code", "--dry-run", "--json").json()["events"]) == 11
    found = claude_code.AGENT.find_version(os.fsencode(tmp_path / ".claude"), [])
    assert found is None
    write(tmp_path / ".claude.json", {"firstStartVersion": "2.0.1"})
    found = claude_code.AGENT.find_version(os.fsencode(tmp_path / ".claude"), [])
    assert found == (2, 0, 1)
    assert codex.AGENT.known_events(found) == tuple(codex.AGENT.kinds)


@pytest.mark.usefixtures("quick")
def test_an_upgrade_adds_the_rest(run: Run, place: Path, home: Path) -> None:
    """The doctor tells what an old agent refuses and a new one lacks; install puts both right."""
    write(place / ".claude.json", {"lastReleaseNotesSeen": "2.1.50"})
    assert "too old for PermissionRequest, PostToolUseFailure" in run("install", "claude-code").err
    assert examined(place, home)[1] == []
    write(place / ".claude.json", {"lastReleaseNotesSeen": "2.1.200"})
    assert (
        "hooks are missing for PermissionRequest, PostToolUseFailure" in examined(place, home)[1][0]
    )
    assert run("install", "claude-code", "--json").json()["changed"]
    assert examined(place, home)[1] == []
    write(place / ".claude.json", {"lastReleaseNotesSeen": "2.1.50"})
    assert "ignores the whole file" in examined(place, home)[1][0]
    run("uninstall", "claude-code")
    assert sorted(contents(place)) == [".claude.json"]


# -- the plugin --------------------------------------------------------------------------------


def test_the_plugin_has_the_same_hooks() -> None:
    """Its hooks are those of an install, but for the command that finds Takeback."""
    told = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
    run = 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/takeback.sh"'
    wanted = claude_code.AGENT.groups(run, f"{run} tell")
    assert told["hooks"] == {event: [group] for event, group in wanted.items()}
    assert json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())["name"] == "takeback"


@pytest.mark.parametrize("way", ["in the PATH", "around it"])
def test_the_plugin_finds_takeback(way: str, tmp_path: Path) -> None:
    """The canary sings through it: by the command in the PATH, or by the package around it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    plugin = PLUGIN
    if way == "in the PATH":
        (tools / "takeback").write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{MAIN}" "$@"\n')
        (tools / "takeback").chmod(0o755)
        plugin = tmp_path / "a copy"
        shutil.copytree(PLUGIN, plugin)
    else:
        (tools / "python3").symlink_to(Path(sys.executable).resolve())
    told = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    commands = {event: groups[0]["hooks"][0]["command"] for event, groups in told.items()}
    surroundings = {
        **os.environ,
        "PATH": f"{tools}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "CLAUDE_PLUGIN_ROOT": str(plugin),
    }
    assert trial.try_hooks(claude_code.AGENT, commands, surroundings).events == 6


def test_the_plugin_is_in_the_package() -> None:
    """Every file of it is named by what goes into a release."""
    project = tomllib.loads((PACKAGE.parent.parent / "pyproject.toml").read_text())
    named = project["tool"]["setuptools"]["package-data"]["takeback"]
    shipped = {path for pattern in named for path in PACKAGE.glob(pattern)}
    files = {path for path in (PACKAGE / "plugin").rglob("*") if path.is_file()}
    assert shipped >= files
    assert len(files) == 11


def test_a_plugin_without_takeback_stops_nobody(tmp_path: Path) -> None:
    """Without the command it ends well, and tells so at a prompt only."""
    shutil.copytree(PLUGIN, tmp_path / "plugin")
    script = str(tmp_path / "plugin" / "hooks" / "takeback.sh")
    for more, is_told in (([], False), (["tell"], True)):
        done = subprocess.run(
            ["/bin/sh", script, *more],
            env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("does not cover" in done.stdout) == is_told
        assert not is_told or json.loads(done.stdout)


# -- health ------------------------------------------------------------------------------------


def examined(place: Path, home: Path, **more: Any) -> tuple[str, list[str]]:  # noqa: ANN401
    """What the doctor would say if all is well, and what is not."""
    folders = {agent.name: os.fsencode(place) for agent in (claude_code.AGENT, codex.AGENT)}
    survey = health.survey(os.fsencode(home), folders, **more)
    part = health.part(survey, troubles.read(os.fsencode(home)), 1000.0)
    return sentence(part.state) if part.state else "", [
        sentence(finding.what) for finding in part.findings
    ]


def test_nothing_is_installed(place: Path, home: Path) -> None:
    """Without hooks that is all there is to say, and nothing is wrong with it."""
    said, wrong = examined(place, home)
    assert said.startswith("no agent calls Takeback")
    assert wrong == []


def test_a_good_install_is_fine(place: Path, home: Path, tree: Path) -> None:
    """Where the hooks are, that they run, and when they were last heard."""
    path = place / "settings.json"
    install(path, home)
    with takeback.open(tree, home=home) as project:
        said, wrong = examined(place, home, project=project, surroundings=dict(os.environ))
        assert wrong == []
        is_built = os.access(command.client(MAIN), os.X_OK)
        calls = f"Claude Code calls Takeback at 11 events{' by the client in C' * is_built}"
        assert said.startswith(f"{calls}, no event in this project yet (`{path}`)")
        project.session("claude-code", id="s").turn("go").end()
        times = health.heard(project)
    folders = {"claude-code": os.fsencode(place)}
    hooked = health.look(health.places(os.fsencode(home), folders), os.fsencode(home), folders)
    survey = health.Survey(tuple(hooked), times)
    then = health.part(survey, [], times["claude-code"] + 7200)
    assert then.state
    assert sentence(then.state) == f"{calls}, last event in this project 2 hours ago (`{path}`)"


def test_a_line_of_before_works_on(place: Path, home: Path) -> None:
    """It is heard by Python; another install replaces it, and an uninstall takes either out."""
    path = place / "settings.json"
    old = (
        f"test -x {sys.executable} -a -f {MAIN} && exec {sys.executable} -I -S {MAIN} hook || true"
    )
    groups = claude_code.AGENT.groups(old, old)
    hooks = {"hooks": {event: [group] for event, group in groups.items()}}
    for again in (False, True):
        place.mkdir(exist_ok=True)
        path.write_text(json.dumps(hooks))
        said, wrong = examined(place, home, surroundings=dict(os.environ))
        assert wrong == []
        assert "Claude Code calls Takeback at 11 events, no event" in said
        if again:
            install(path, home)
            assert json_settings.ours(path.read_text())[0].command == command.line(
                str(home / command.SCRIPT), started_in="CLAUDE_PROJECT_DIR"
            )
            assert json.dumps(old) not in path.read_text()
        uninstall(path, home)
        assert json_settings.ours(path.read_text() if path.exists() else "") == []


def test_what_is_wrong_is_found(place: Path, home: Path) -> None:
    """A program that is gone, hooks that are missing, a file that is broken, a hook that failed."""
    path = place / "settings.json"
    install(path, home)
    text = path.read_text()

    def wrong() -> str:
        return "; ".join(examined(place, home)[1])

    script = (home / command.SCRIPT).read_text()
    (home / command.SCRIPT).write_text(script.replace(sys.executable, "/gone/python"))
    assert "its interpreter `/gone/python` is gone: hooks search for another" in wrong()
    (home / command.SCRIPT).write_text(script.replace(MAIN, "/gone/takeback/__main__.py"))
    assert "its program `/gone/takeback/__main__.py` is gone" in wrong()
    (home / command.SCRIPT).unlink()
    assert f"its script `{home / command.SCRIPT}` is gone" in wrong()
    (home / command.SCRIPT).write_text(script)
    groups = claude_code.AGENT.groups(OLD_LINE, OLD_LINE)
    path.write_text(json.dumps({"hooks": {event: [group] for event, group in groups.items()}}))
    assert "its interpreter `/old/python` is gone" in wrong()
    without = json.loads(text)
    del without["hooks"]["Stop"]
    path.write_text(json.dumps({**without, "disableAllHooks": True}))
    assert "hooks are missing for Stop" in wrong()
    assert "disableAllHooks" in wrong()
    old = text.replace("$).*", "$)")  # never matches where a host compares whole names
    assert old != text
    path.write_text(old)
    assert "hooks for PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure are" in wrong()
    assert "not those of this version" in wrong()
    path.write_text("{")
    assert "line 1, column 2" in wrong()
    for at in (940, 1000 - 8 * 86400):
        troubles.note(os.fsencode(home), at * 10**9, "codex", "Stop", "s", "the disk is full")
    path.write_text(text)
    assert wrong() == "a hook failed 1 minute ago: codex Stop: the disk is full"


def test_a_program_that_does_not_work_is_found(place: Path, home: Path) -> None:
    """The command is run as the agent would, and what it says is told."""
    broken = place.parent / "takeback" / "__main__.py"
    broken.parent.mkdir()
    broken.write_text("import sys; sys.exit('no such module')")
    made = planned(place / "hooks.json", home, agent=codex.AGENT, main=str(broken))
    steps.install(made, os.fsencode(home))
    _, (wrong, *_) = examined(place, home, surroundings=dict(os.environ))
    assert "no such module" in wrong


def hashed(event: str, group: dict[str, Any]) -> str:
    """The hash of a hook, written out as Codex 0.166.0 does."""
    name = re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()
    (hook,) = group["hooks"]
    said = (
        f'{{"event_name":"{name}","hooks":[{{"async":false,"command":{json.dumps(hook["command"])},'
        f'"timeout":{hook["timeout"]},"type":"command"}}]}}'
    )
    return f"sha256:{hashlib.sha256(said.encode()).hexdigest()}"


def test_what_codex_trusts_never_changes() -> None:
    """It remembers these hashes; another command line, time limit or matcher means another one."""
    script = "/srv/ana/.local/share/takeback/takeback-hook"
    groups = codex.AGENT.groups(command.line(script), command.line(script, tells=True))
    found = [hashed(event, group)[7:15] for event, group in groups.items()]
    assert (
        found == "7de4ba98 8f5fa94b eb0cf6f7 9dadbc59 2f3f2354 6097878b 20ea3990 c401ffb6".split()
    )


def test_codex_has_to_trust_its_hooks(place: Path, home: Path) -> None:
    """As long as `config.toml` does not say that all are trusted, they are not."""
    path = place / "hooks.json"
    made = planned(path, home, agent=codex.AGENT)
    steps.install(made, os.fsencode(home))

    def wrong(*trusted: str) -> str:
        (place / "config.toml").write_text("".join(trusted))
        return "; ".join(examined(place, home)[1])

    assert "does not seem to trust them" in wrong()
    hooks = json.loads(path.read_text())["hooks"]
    trust = [
        f'[hooks.state."{path}:{number}:0:0"]\ntrusted_hash = "{hashed(event, group)}"\n'
        for number, (event, (group,)) in enumerate(hooks.items())
    ]
    assert wrong(*trust) == ""
    assert "does not seem to trust them" in wrong(*trust[1:])
    assert "does not seem to trust them" in wrong(*trust, "enabled = false\n")
    elsewhere = [one.replace(str(path), "/other/hooks.json") for one in trust]
    assert "does not seem to trust them" in wrong(*elsewhere)
    (place / "config.toml").write_text("[")
    assert "cannot be read" in examined(place, home)[1][0]


def test_an_install_elsewhere_is_remembered(place: Path, home: Path, tree: Path) -> None:
    """The doctor knows of settings in other projects, by what was kept of their install."""
    path = tree / ".claude" / "settings.json"
    install(path, home, steps.PROJECT)
    assert str(path) in examined(place, home)[0]


def test_the_doctor_looks_at_hooks(
    run: Run, place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are one part of its examination, and what is wrong with them does not break a store."""
    monkeypatch.setenv("HOME", str(place / "nobody"))
    install(place / "settings.json", home)
    said = run("doctor")
    assert "Claude Code calls Takeback at 11 events" in said.out
    (place / "settings.json").write_text("{")
    told = run("doctor", "--json").json()
    assert {"name": "hooks", "ok": False} in told["parts"]
    assert told["ok"] is True
    refused = run("install", "claude-code")
    assert (refused.code, "was left as it is" in refused.err) == (1, True)
    said = run("doctor")
    assert "fix that file by hand" in said.out + said.err
    assert "repairs it" not in said.out + said.err


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("agent", installable().values(), ids=installable())
def test_the_doctor_knows_each_agent(
    agent: Agent, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not here, here without hooks, with hooks; and hooks of another version."""
    for each in installable().values():
        monkeypatch.delenv(each.variable or "NONE", raising=False)
    monkeypatch.setattr(trial, "try_hooks", lambda *_: trial.TrialResult(6, 1.0))

    def known() -> dict[str, Any]:
        (found,) = (x for x in run("doctor", "--json").json()["agents"] if x["agent"] == agent.name)
        return dict(found)

    assert (known()["found"], known()["file"], known()["works"]) == (False, None, False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / agent.program).touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert known()["found"] is True
    missing = f"{agent.title} is on this machine and does not call Takeback"
    assert missing in " ".join(run("doctor").out.split())
    file = Path(run("install", agent.name, "--json").json()["file"])
    assert (known()["file"], known()["works"], known()["last_event"]) == (str(file), True, None)
    assert (known()["missing"], known()["outdated"]) == ([], [])
    assert missing not in " ".join(run("doctor").out.split())
    text = file.read_text()
    older = re.sub(r"^(command = )", r"older = 1\n\1", text, flags=re.MULTILINE)
    older = re.sub(r'("(?:command|bash)":)', r'"older": 1, \1', older)
    file.write_text(older if agent.form != FILES else text + "\n")
    assert known()["outdated"]
    said = run("doctor").out
    assert "not those of this version" in " ".join(said.split())
    assert f"`takeback install {agent.name}` renews them" in said
    assert run("install", agent.name).code == 0
    assert known()["outdated"] == []


def test_a_settings_file_is_read_with_care(tmp_path: Path) -> None:
    """One that is far too large is refused, and so is a pipe, without waiting for it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RefusedError, match="is not a file"):
        settings_file.read(os.fsencode(tmp_path / "pipe"))
    with (tmp_path / "large").open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(RefusedError, match="too large"):
        settings_file.read(os.fsencode(tmp_path / "large"))
