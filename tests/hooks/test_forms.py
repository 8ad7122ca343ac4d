"""Every form of settings keeps the same promises: entries in JSON, tables in TOML, whole files."""

import itertools
import json
import os
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import goblin
import settings_files
from takeback.agents.agent import BLOCK, ENTRIES, FILES, Agent
from takeback.agents.registry import installable
from takeback.disk import operations
from takeback.errors import RefusedError, TakebackError
from takeback.hooks import command, trial
from takeback.hooks import install as steps
from takeback.hooks.settings import forms, receipts, toml_settings


class Entries(goblin.Goblin):
    """Flat entries, a version beside them, a command line under a name of its own."""

    name = "entries"
    form = ENTRIES
    file = "hooks.json"
    matcher = "dig|scratch"
    command_key = "bash"
    preface = {"version": 1}  # noqa: RUF012 -- never changed


class Block(goblin.Goblin):
    """Tables of TOML."""

    name = "block"
    form = BLOCK
    file = "config.toml"
    matcher = 'a "quoted" \\ one'


class Files(goblin.Goblin):
    """A manifest and a program."""

    name = "files"
    form = FILES
    file = ""
    executable = True
    project_folder = ".cave"

    def files(self, command: str, reporting: str, events: object = None) -> dict[str, str]:
        """The program has the command lines."""
        del events
        manifest = json.dumps({"name": "takeback", "by": "written by takeback install."})
        return {
            "plugins/takeback/run": f"#!/bin/sh\n{command}\n{reporting}\n",
            "plugins/takeback/plugin.json": manifest,
        }


LINES = (command.shared_line(), command.shared_line())
AGENTS = (Entries(), Block(), Files())
BY_AGENT = pytest.mark.parametrize("agent", AGENTS, ids=[agent.name for agent in AGENTS])


class Cave:
    """An agent's folder and the home of the stores."""

    def __init__(self, agent: Agent, folder: Path, home: Path) -> None:
        self.agent = agent
        self.folder = folder
        self.home = os.fsencode(home)
        self.path = Path(os.fsdecode(steps.settings_path(agent, os.fsencode(folder))))

    def planned(self, scope: str = steps.USER) -> steps.Installation:
        """What an install would write."""
        path = os.fsencode(self.path)
        script = command.script("/py", "/takeback/__main__.py")
        return steps.installation(self.agent, scope, path, home=self.home, script=script)

    def install(self, scope: str = steps.USER) -> steps.Installation:
        """Install without a trial."""
        made = self.planned(scope)
        steps.install(made, self.home)
        return made

    def uninstall(self) -> list[steps.Removal]:
        """Take it out again."""
        made = steps.removals(self.agent, os.fsencode(self.path), self.home)
        steps.uninstall(made, self.home)
        return made

    def write(self, files: dict[str, bytes]) -> None:
        """What the user has there."""
        settings_files.write(self.folder, files)

    def contents(self) -> settings_files.Contents:
        """Mode and content of every file."""
        return settings_files.contents(self.folder)


@pytest.fixture
def cave(agent: Agent, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Cave:
    """One of the agent that the test is about."""
    monkeypatch.setattr(operations, "sync", False)
    return Cave(agent, tmp_path / ".goblin", home)


@BY_AGENT
def test_settings_are_as_they_were(agent: Agent, cave: Cave) -> None:
    """Each varied file gets the hooks once, and everything is the same to the byte without."""
    for files in settings_files.varied_for(agent).values():
        cave.write(files)
        before, was_there = cave.contents(), cave.folder.exists()
        made = cave.install()
        assert list(made.commands) == list(agent.kinds)
        assert all(map(command.is_ours, made.commands.values()))
        assert cave.contents() != before
        assert not cave.planned().changes
        assert all(each.is_exact for each in cave.uninstall())
        assert cave.contents() == before
        assert cave.folder.exists() == was_there
        assert receipts.read(cave.home) == {}
        shutil.rmtree(cave.folder, ignore_errors=True)


@BY_AGENT
def test_a_lost_receipt_costs_nothing_but_blanks(agent: Agent, cave: Cave) -> None:
    """Hooks are known by their command line, a whole file by that or by what it says of itself."""
    for files in itertools.islice(settings_files.varied_for(agent).values(), 0, None, 5):
        cave.write(files)
        before = cave.contents()
        cave.install()
        (Path(os.fsdecode(cave.home)) / "installed").unlink()
        assert any(each.changes for each in cave.uninstall())
        for name, (_, data) in before.items():
            after = (cave.folder / name).read_bytes()
            assert forms.of(agent).ours(after.decode()) == []
            assert agent.form != BLOCK or after.rstrip() == data.rstrip()
        shutil.rmtree(cave.folder)


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
@pytest.mark.parametrize("name", settings_files.REFUSED_TOML)
def test_toml_that_takes_no_hooks_is_refused(agent: Agent, name: str, cave: Cave) -> None:
    """A file that is no TOML, or has something else where hooks belong, is left as it is."""
    cave.write({agent.file: settings_files.REFUSED_TOML[name]})
    before = cave.contents()
    with pytest.raises(RefusedError, match="left as it is") as refused:
        cave.install()
    assert refused.value.hint
    assert cave.contents() == before


@pytest.mark.parametrize("agent", [AGENTS[0]], ids=["entries"])
def test_entries_are_flat_and_have_a_version(agent: Agent, cave: Cave) -> None:
    """An entry has no inner list; the version is added once, and goes with the last hook."""
    cave.install()
    said = json.loads(cave.path.read_text())
    assert said["version"] == 1
    assert list(said["hooks"]) == list(agent.kinds)
    (entry,) = said["hooks"]["grab"]
    assert (entry["matcher"], command.is_ours(entry["bash"])) == ("dig|scratch", True)
    theirs = {"bash": "lint"}
    said["hooks"]["grab"].insert(0, theirs)
    cave.path.write_text(json.dumps(said))
    cave.uninstall()
    assert json.loads(cave.path.read_text()) == {"version": 1, "hooks": {"grab": [theirs]}}


# -- TOML --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
def test_a_block_says_what_was_wanted(agent: Agent, cave: Cave) -> None:
    """Values with quotes and backslashes are read back as they are."""
    cave.write({agent.file: b'[[hooks]]\nevent = "nap"\ncommand = "say"\n'})
    cave.install()
    said = tomllib.loads(cave.path.read_text())["hooks"]
    assert [hook["event"] for hook in said] == ["nap", *agent.kinds]
    assert said[2]["matcher"] == agent.matcher


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
def test_what_stands_in_our_block_stays(agent: Agent, cave: Cave) -> None:
    """A table and a comment that somebody wrote between ours are theirs."""
    cave.write({agent.file: b'model = "x"\n'})
    cave.install()
    text = cave.path.read_text()
    theirs = '# mine\n[[hooks]]\nevent = "nap"\ncommand = "say"\n'
    cave.path.write_text(text.replace(toml_settings.END, f"\n{theirs}{toml_settings.END}"))
    assert not cave.install().changes
    cave.uninstall()
    out = cave.path.read_text()
    assert theirs in out
    assert tomllib.loads(out) == {"model": "x", "hooks": [{"event": "nap", "command": "say"}]}
    assert "Takeback" not in out


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
def test_an_agent_that_drops_comments_loses_no_table(agent: Agent, cave: Cave) -> None:
    """Our tables are known without the comments, in an install and in an uninstall."""
    cave.write({agent.file: b'model = "x"\n'})
    cave.install()
    lines = [line for line in cave.path.read_text().splitlines() if not line.startswith("#")]
    cave.path.write_text("\n".join([*lines, '[last]\na = "[[hooks]]"', ""]))
    assert not cave.install().changes
    cave.uninstall()
    assert tomllib.loads(cave.path.read_text()) == {"model": "x", "last": {"a": "[[hooks]]"}}


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
def test_an_outdated_block_is_replaced_where_it_stands(agent: Agent, cave: Cave) -> None:
    """What stands behind it stays behind it."""
    cave.write({agent.file: b'model = "x"\n'})
    cave.install()
    text = cave.path.read_text()
    changed = text.replace("timeout = 60", "timeout = 5") + "[last]\na = 1\n"
    cave.path.write_text(changed)
    assert cave.install().changes
    assert cave.path.read_text() == text + "[last]\na = 1\n"


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
def test_inline_hooks_of_ours_are_named(agent: Agent, cave: Cave) -> None:
    """Tables that an agent wrote in another way are not half removed."""
    line = json.dumps(steps.command_lines(agent, steps.USER, cave.home)[0])
    cave.write({agent.file: f'hooks = [{{event = "nap", command = {line}}}]\n'.encode()})
    before = cave.contents()
    with pytest.raises(RefusedError, match="remove by hand"):
        cave.uninstall()
    assert cave.contents() == before


# -- whole files -------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [AGENTS[2]], ids=["files"])
def test_programs_can_be_run(agent: Agent, cave: Cave) -> None:
    """The user's own are private, those of a project are for all."""
    made = cave.install()
    assert [edit.file.shown for edit in made.edits] == [
        str(cave.folder / name) for name in agent.file_names()
    ]
    assert stat.S_IMODE(cave.path.stat().st_mode) == 0o700
    cave.uninstall()
    cave.install(steps.PROJECT)
    assert stat.S_IMODE(cave.path.stat().st_mode) == 0o755
    assert "exec takeback hook" in cave.path.read_text()


@pytest.mark.parametrize("agent", [AGENTS[2]], ids=["files"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("said", ["mine\n", "# mine; `takeback install` shall not touch it\n"])
def test_a_file_of_somebody_else_is_refused(
    agent: Agent, number: int, said: str, cave: Cave
) -> None:
    """It has the name of ours and is not from us: nothing is written, none is removed."""
    cave.write({agent.file_names()[number]: said.encode()})
    before = cave.contents()
    with pytest.raises(RefusedError, match="not from Takeback") as refused:
        cave.install()
    assert "move it away" in refused.value.hint
    assert not any(each.changes for each in cave.uninstall())
    assert cave.contents() == before


@pytest.mark.parametrize("agent", [AGENTS[1]], ids=["block"])
def test_a_text_that_holds_our_mark_is_as_it_was(agent: Agent, cave: Cave) -> None:
    """The user's own text may quote the comment: what was not changed since is put back whole."""
    cave.write({agent.file: f'said = """\n[[hooks]]\n{toml_settings.BEGIN}\n"""\n'.encode()})
    before = cave.contents()
    cave.install()
    assert all(each.is_exact for each in cave.uninstall())
    assert cave.contents() == before


@pytest.mark.parametrize("agent", [AGENTS[2]], ids=["files"])
def test_a_file_of_ours_that_was_changed_is_kept(agent: Agent, cave: Cave) -> None:
    """An install and an uninstall both leave a copy of what somebody made of it."""
    cave.install()
    changed = cave.path.read_text() + "echo mine\n"
    cave.path.write_text(changed)
    made = cave.install()
    (kept,) = (edit.kept for edit in made.edits if edit.kept)
    assert Path(os.fsdecode(kept)).read_text() == changed
    assert "echo mine" not in cave.path.read_text()
    cave.path.write_text(changed + "again\n")
    removed = cave.uninstall()[0]
    assert (removed.is_kept, removed.is_exact) == (True, False)
    assert Path(os.fsdecode(removed.backup)).read_text() == changed + "again\n"
    assert not cave.path.exists()
    assert not (cave.folder / agent.file_names()[1]).exists()


def test_every_file_of_ours_is_known_as_ours() -> None:
    """By its command line or by what it says of itself, also if the receipt is lost."""
    for agent in (*installable().values(), AGENTS[2]):
        for name, text in (agent.files(*LINES) if agent.form == FILES else {}).items():
            assert forms.of(agent).ours(text), (agent.name, name)


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


BY_STATE = pytest.mark.parametrize(
    ("agent", "has_file"),
    [(AGENTS[1], True), (AGENTS[2], False)],
    ids=["block, a file", "files, none"],
)


@BY_STATE
def test_an_install_that_fails_changes_nothing(
    agent: Agent, has_file: bool, cave: Cave, stops: Callable[..., None]
) -> None:
    """Whichever step fails, everything is as it was, or the install is done."""
    if has_file:
        cave.write({agent.file: b"a = 1\n"})
    before = cave.contents()

    def fail() -> None:
        raise OSError(28, "No space left on device")

    for number in range(1, 200):
        stops(number, fail)
        try:
            cave.install()
        except TakebackError:
            operations.hook = None
            assert cave.contents() == before
            assert cave.folder.exists() == has_file
        else:
            break
    operations.hook = None
    assert number > 8
    cave.uninstall()
    assert cave.contents() == before


@BY_STATE
def test_a_crash_can_be_cleaned_up(
    agent: Agent, has_file: bool, cave: Cave, stops: Callable[..., None]
) -> None:
    """Whichever step an install or an uninstall dies at, an uninstall leaves what was before."""
    if has_file:
        cave.write({agent.file: b"a = 1\n"})
    before = cave.contents()

    def dies(number: int, act: Callable[[], object]) -> bool:
        child = os.fork()
        if child == 0:
            stops(number, lambda: os._exit(9))
            act()
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

    number = 0
    while dies(number := number + 1, cave.install):
        cave.install()
        assert any(each.changes for each in cave.uninstall())
        assert cave.contents() == before, number
    assert number > 8
    number = 0
    while dies(number := number + 1, cave.uninstall):
        cave.uninstall()
        assert cave.contents() == before, number
        assert cave.folder.exists() == has_file
        cave.install()
    assert number > 4


# -- the trial ---------------------------------------------------------------------------------


@BY_AGENT
def test_the_script_is_tried_whatever_the_form(
    agent: Agent, cave: Cave, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial pipes payloads into the command line of each event."""
    sent: dict[str, str] = {}

    def played(_: Agent, lines: dict[str, str], __: object) -> trial.TrialResult:
        sent.update(lines)
        return trial.TrialResult(4, 1.0)

    monkeypatch.setattr(trial, "try_hooks", played)
    trial.try_install(cave.planned(), {})
    assert list(sent) == list(agent.kinds)
    assert all(map(command.is_ours, sent.values()))
