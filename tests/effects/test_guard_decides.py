"""Modes of the guard: who may make them lighter, what is allowed again, and what Python hears."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from agents import Agent
from program import run
from takeback.agents import registry
from takeback.cli import app
from takeback.disk import machine, operations
from takeback.disk.machine import Ancestor
from takeback.effects import modes
from takeback.effects.modes import Terminal, agent_above
from takeback.effects.verdict import ALLOW, ASK, DENY, MODES, verdict
from takeback.errors import DecisionNeededError, UnknownReferenceError
from takeback.model.beyond import effects
from takeback.upkeep.settings import Settings

PUSH = "git push --force origin main"
TERMINAL = Terminal(is_there=True)


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def _no_agent_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests may be run by an agent."""
    monkeypatch.setattr(machine, "ancestors", lambda _pid: ())


def process(*words: bytes, pid: int = 7, variables: tuple[bytes, ...] = ()) -> Ancestor:
    return Ancestor(pid, f"here {pid} 1", words, frozenset(variables))


# -- the table -------------------------------------------------------------------------------


def test_a_stricter_mode_never_allows_more() -> None:
    """And a graver class is never treated more lightly, whether somebody can be asked or not."""
    strict = {ALLOW: 0, ASK: 1, DENY: 2}
    for can_ask in (False, True):
        for effect in effects.CLASSES:
            row = [verdict(effect, mode, can_ask=can_ask) for mode in (*MODES[:2], "ask")]
            answers = [strict[each.without_rescue if each.needs_rescue else each.answer]
                       for each in row]  # fmt: skip
            assert answers == sorted(answers), effect
        for mode in MODES:
            column = [verdict(effect, mode, can_ask=can_ask).answer for effect in effects.CLASSES]
            assert [strict[each] for each in column] == sorted(strict[each] for each in column)


def test_autopilot_refuses_what_nothing_takes_back_and_only_that() -> None:
    """Work goes on: reads, files, builds and what was saved before run."""
    said = {effect: verdict(effect, "autopilot") for effect in effects.CLASSES}
    refused = {effect for effect, each in said.items() if each.answer == DENY}
    assert refused == {effects.OPAQUE, effects.IRREVERSIBLE}
    assert said[effects.DESTRUCTIVE].needs_rescue
    assert said[effects.DESTRUCTIVE].without_rescue == DENY
    assert said[effects.PROGRAM].captures
    assert verdict("no-such-class", "autopilot").answer == DENY


def test_an_agent_that_cannot_be_refused_is_recorded() -> None:
    """Nothing is said that it would not heed."""
    assert verdict(effects.IRREVERSIBLE, "autopilot", can_deny=False).answer == ALLOW


# -- whose terminal it is --------------------------------------------------------------------


@pytest.mark.parametrize(
    "above",
    [
        process(b"/usr/bin/claude", b"-p"),
        process(b"node", b"/usr/lib/node_modules/@openai/codex/bin/codex.js"),
        process(b"bash", variables=(b"CLAUDECODE", b"PATH")),
        process(b"bash", variables=(b"QWEN_CODE",)),
        process(b"bash", variables=(b"AI_AGENT",)),
        process(b"python", b"harness.py", pid=4711),
    ],
    ids=["program", "script", "variable", "of-another", "of-any", "session"],
)
def test_an_agent_above_is_found(above: Ancestor) -> None:
    """By its name, by its script, by a variable that it sets, by the process that reported."""
    lineage = [process(b"takeback"), process(b"bash"), above, process(b"systemd")]
    assert agent_above(lineage, registry.signs(), {"here 4711 1"})


def test_an_editor_is_no_agent() -> None:
    """Its terminal is the user's, though its program is called like its agent."""
    lineage = [process(b"takeback"), process(b"zsh", variables=(b"PATH",)), process(b"cursor")]
    assert agent_above(lineage, registry.signs(), set()) == ""


def test_a_terminal_that_an_agent_opened_decides_nothing(tree: Path, home: Path) -> None:
    """A real one: a program called `claude` runs `takeback guard off` in a terminal of its own."""
    assert run(["guard", "autopilot"], tree, os.environ).returncode == 0
    inner = [sys.executable, "-I", "-m", "takeback", "-C", str(tree), "guard", "off"]
    code = f"import os, pty; raise SystemExit(os.waitstatus_to_exitcode(pty.spawn({inner!r})))"
    claude = tree.parent / "claude"
    claude.symlink_to(sys.executable)
    environment = {**os.environ, "TAKEBACK_HOME": str(home)}
    done = subprocess.run(
        [claude, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stdout
    assert "an agent (`claude`) runs this terminal" in done.stdout
    assert '"autopilot"' in run(["guard", "--json"], tree, os.environ).stdout.decode()


@pytest.mark.parametrize("words", [["guard", "watch"], ["config", "guard.mode", "off"],
                                   ["config", "guard.mode", "--unset"]])  # fmt: skip
def test_a_lighter_mode_needs_a_terminal(tree: Path, home: Path, words: list[str]) -> None:
    """Whichever command sets it; a stricter one does not."""
    del home
    assert run(["guard", "ask"], tree, os.environ).returncode == 0
    refused = run(words, tree, os.environ)
    assert refused.returncode == 3
    assert b"terminal" in refused.stderr
    assert json.loads(run(["guard", "--json"], tree, os.environ).stdout)["mode"] == "ask"


@pytest.mark.usefixtures("_no_agent_above")
def test_doctor_names_a_guard_that_was_switched_off(tree: Path, home: Path) -> None:
    """And one that was made lighter, with what it was before."""
    with takeback.open(tree) as project:
        settings = Settings(os.fsencode(home), project.id)
        settings.set("guard.mode", "autopilot")
        modes.change(
            project.workspace, "autopilot", "off", TERMINAL,
            lambda: settings.set("guard.mode", "off"),
        )  # fmt: skip
    done = run(["doctor"], tree, os.environ)
    told = done.stdout.decode()
    assert not done.stderr, done.stderr
    assert "the guard is off" in told
    assert "set from autopilot to off by" in told


def test_doctor_names_a_guard_that_cannot_read_commands(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without tree-sitter every command is opaque, and somebody has to say why."""
    takeback.open(tree).close()
    app.main(["doctor", "-C", str(tree)])
    assert "counts as opaque" not in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    app.main(["doctor", "-C", str(tree)])
    assert "every command counts as opaque" in capsys.readouterr().out.replace("\n", " ")


# -- what is allowed again -------------------------------------------------------------------


@pytest.mark.usefixtures("_no_agent_above")
@pytest.mark.parametrize(("scope", "then"), [("once", "deny"), ("session", "")])
def test_the_user_allows_a_call(tree: Path, home: Path, scope: str, then: str) -> None:
    """The same call runs, once or as often as the agent likes; another one does not."""
    Settings(os.fsencode(home)).set("guard.mode", "autopilot", user=True)
    agent = Agent(tree)
    agent.prompt("publish it")
    assert agent.begin("Bash", {"command": PUSH}).refused
    with takeback.open(tree) as project:
        (row,) = modes.refusals(project.workspace)
        assert row.summary == PUSH
        modes.allow(project.workspace, row.id[:8], scope, TERMINAL)
    assert agent.begin("Bash", {"command": "git push --force origin other"}).refused
    call = agent.begin("Bash", {"command": PUSH, "description": "told otherwise"})
    assert not call.refused
    call.over()
    assert bool(agent.begin("Bash", {"command": PUSH}).refused) == bool(then)


@pytest.mark.usefixtures("_no_agent_above")
def test_an_unknown_refusal_is_not_allowed(tree: Path, home: Path) -> None:
    """Nor without an id, nor without a terminal."""
    del home
    with takeback.open(tree) as project:
        for id in ("", "kkkk"):
            with pytest.raises(UnknownReferenceError):
                modes.allow(project.workspace, id, "once", TERMINAL)
        with pytest.raises(DecisionNeededError):
            modes.allow(project.workspace, "kkkk", "once", Terminal(is_there=False))
    assert run(["guard", "allow", "kkkk"], tree, os.environ).returncode == 3
    assert json.loads(run(["guard", "allow", "--json"], tree, os.environ).stdout) == {"refused": []}


# -- Python ----------------------------------------------------------------------------------


def test_python_records_effects(tree: Path, home: Path) -> None:
    """A turn's, and a step's with the class that the harness declares."""
    del home
    with takeback.open(tree) as project, project.session(agent="mine") as session:
        with session.turn("add a user") as turn:
            id = turn.effect("http", "POST /users", reversible=False)
            with turn.step("mailer", {"to": "ana"}, effect="irreversible"):
                pass
            with turn.step("flag", {"name": "x"}, effect="compensable", inverse="flag x off"):
                (tree / "a").write_text("a\n")
        found = project.effects.list()
        assert [(each.effect, each.kind) for each in reversed(found)] == [
            ("irreversible", "http"), ("irreversible", "tool"), ("compensable", "tool"),
        ]  # fmt: skip
        assert found[-1].id == id
        assert found[0].inverse == "flag x off"
        assert {each.status for each in found} == {"done"}
        assert len(project.plan_undo(turn).effects) == 3


def test_python_hears_what_the_guard_refuses(tree: Path, home: Path) -> None:
    """By the mode of the session; nothing begins, and the rest of the turn goes on."""
    del home
    with takeback.open(tree) as project:
        session = project.session(agent="mine", guard="autopilot")
        with session.turn("add a user") as turn:
            with pytest.raises(takeback.GuardRefused) as found:
                turn.effect("http", "POST /users", reversible=False)
            assert found.value.effect == "irreversible"
            with pytest.raises(takeback.GuardRefused, match="git push"):
                turn.step("bash", {"command": PUSH})
            with turn.step("bash", {"command": "ls"}):
                pass
            turn.effect("http", "PUT /flag", inverse="curl -X DELETE https://x.example/flag")
        assert [step.tool for step in project.turn(turn.id).steps] == ["bash"]
        assert [each.status for each in project.effects.list(all=True)] == [
            "done", "refused", "refused",
        ]  # fmt: skip
        assert len(modes.refusals(project.workspace)) == 2
