"""The guard at a hook: what runs, what is refused, what is asked, and what the ledger keeps."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import Agent, heard
from program import run
from recorded import PAYLOADS
from takeback.disk import operations
from takeback.ledger.log import events
from takeback.upkeep.settings import Settings

PUSH = "git push --force origin main"
POST = "curl -X POST https://api.example.com/users -d name=x"


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def claude(tree: Path, home: Path) -> Agent:
    """An agent in the middle of a turn that wrote a file."""
    del home
    agent = Agent(tree)
    agent.prompt("publish it")
    agent.edit("one.txt", "one\n")
    return agent


def guarded(home: Path, mode: str) -> None:
    Settings(os.fsencode(home)).set("guard.mode", mode, user=True)


def bash(agent: Agent, command: str, **more: Any) -> Any:  # noqa: ANN401 -- a tool
    return agent.begin("Bash", {"command": command}, **more)


def decision(call: Any) -> str:  # noqa: ANN401 -- a tool
    """What Claude Code is told about the call."""
    own = call.answer.get("hookSpecificOutput", {})
    return str(own.get("permissionDecision", ""))


def effects(tree: Path, *words: str) -> list[dict[str, Any]]:
    said = json.loads(run(["effects", "--json", *words], tree, os.environ).stdout)
    found: list[dict[str, Any]] = said["effects"]
    return found


def printed(tree: Path, *words: str) -> str:
    """What a command prints, to both streams."""
    done = run([*words], tree, os.environ)
    return (done.stdout + done.stderr).decode()


def refusals(tree: Path) -> list[dict[str, Any]]:
    with takeback.open(tree) as project:
        found = project.workspace.ledger.events_of(events.CALL_REFUSED)
        return [dict(event.payload or {}) for event in found]


def test_watch_lets_everything_run_and_keeps_it(claude: Agent, tree: Path) -> None:
    """A push is recorded when it is tried, and how it ended when it is over."""
    call = bash(claude, PUSH)
    assert call.refused == ""
    assert [each["status"] for each in effects(tree)] == ["running"]
    call.over()
    claude.stop()
    (push,) = effects(tree)
    assert (push["class"], push["status"]) == ("irreversible", "done")
    assert "force-pushed main to origin" in push["text"]
    assert push["turn"]
    assert push["step"]


def test_a_failed_command_is_kept_as_failed(claude: Agent, tree: Path) -> None:
    """What failed may have done part of it."""
    bash(claude, POST).failed()
    claude.stop()
    (post,) = effects(tree)
    assert post["status"] == "failed"
    assert "may have done part of it" in printed(tree, "effects")


def test_what_stays_is_said_before_an_undo_and_after_it(claude: Agent, tree: Path) -> None:
    """In words and as JSON: in the preview, in the report, and of the turn."""
    bash(claude, PUSH).over()
    claude.stop()
    assert "stays: force-pushed main to origin" in printed(tree, "undo", "--dry-run")
    plan = json.loads(run(["undo", "--dry-run", "--json"], tree, os.environ).stdout)
    assert [each["kind"] for each in plan["effects"]] == ["push"]
    turn = json.loads(run(["log", "--json"], tree, os.environ).stdout)["turns"][0]
    assert [each["text"] for each in turn["effects"]] == [plan["effects"][0]["text"]]
    assert "force-pushed main to origin" in printed(tree, "show", turn["id"])
    done = printed(tree, "undo", "--yes")
    assert "1 effect outside stays" in done
    assert "stays: force-pushed main to origin" in done
    assert not (tree / "one.txt").exists()


def test_a_turn_that_only_pushed_is_not_forgotten(claude: Agent, tree: Path) -> None:
    """Undo takes back the turn before it, and says what of the newer one stays."""
    claude.stop()
    claude.prompt("push it")
    bash(claude, PUSH).over()
    claude.stop()
    done = printed(tree, "undo", "--yes")
    assert "stays: force-pushed main to origin" in done
    assert "changed nothing" not in done


def test_autopilot_refuses_what_nothing_takes_back(claude: Agent, tree: Path, home: Path) -> None:
    """The agent reads why and what to do; the call is no step, and undo does not stumble."""
    guarded(home, "autopilot")
    call = bash(claude, PUSH)
    assert decision(call) == "deny"
    assert "was not run" in call.refused
    assert "takeback guard allow " in call.refused
    assert "takeback guard allow " in call.answer["systemMessage"]
    (said,) = refusals(tree)
    assert (said["why"], said["class"]) == ("guard", "irreversible")
    claude.stop()
    with takeback.open(tree) as project:
        (turn,) = project.log().turns
        assert [step.tool for step in project.turn(turn.id).steps] == ["Write"]
        project.undo(yes=True)
    assert effects(tree) == []
    assert [each["status"] for each in effects(tree, "--all")] == ["refused"]


def test_the_same_call_is_refused_again_and_counts_once(
    claude: Agent, tree: Path, home: Path
) -> None:
    """A second delivery of it is answered alike."""
    guarded(home, "autopilot")
    call = bash(claude, PUSH)
    assert call.tell("PreToolUse") == call.answer
    assert len(refusals(tree)) == 1


def test_ask_asks_where_there_is_a_dialog(claude: Agent, tree: Path, home: Path) -> None:
    """And refuses where there is none; what the user said no to never ran."""
    guarded(home, "ask")
    call = bash(claude, PUSH)
    assert decision(call) == "ask"
    assert call.tell("PreToolUse") == call.answer
    assert decision(bash(claude, PUSH, permission_mode="bypassPermissions")) == "deny"
    claude.prompt("no, do not")
    assert {each["status"] for each in effects(tree, "--all")} == {"refused"}
    assert decision(bash(claude, "ls -la")) == ""


def test_what_the_user_allows_in_a_dialog_runs(claude: Agent, tree: Path, home: Path) -> None:
    """Then it is an effect as any other."""
    guarded(home, "ask")
    bash(claude, PUSH).over()
    claude.stop()
    assert [each["status"] for each in effects(tree)] == ["done"]


def test_off_judges_nothing(claude: Agent, tree: Path, home: Path) -> None:
    """And keeps nothing."""
    guarded(home, "off")
    bash(claude, PUSH).over()
    assert effects(tree, "--all") == []


def test_secrets_are_masked(claude: Agent, tree: Path) -> None:
    """As everything that is recorded of a step."""
    bash(claude, POST + " -H 'Authorization: Bearer sk-ant-REDACTED'")
    assert "sk-ant-api03" not in json.dumps(effects(tree, "--show-secrets"))


@pytest.mark.parametrize(
    "command",
    ["takeback guard off", "takeback -C . config guard.mode off", "tb uninstall claude-code",
     "takeback config guard.mode off", 'tak""eback \'guard\' \\\n off',
     "uv tool uninstall takeback",
     "takeback off", "sed -i d ~/.claude/settings.json", "rm -rf {store}"],
)  # fmt: skip
def test_no_agent_changes_the_guard(claude: Agent, tree: Path, home: Path, command: str) -> None:
    """Nor hooks, nor settings that hold them, nor the store; while watching it is recorded."""
    command = command.format(store=home)
    bash(claude, command).over()
    assert [each["kind"] for each in effects(tree, "--all")] == ["tamper"]
    guarded(home, "ask")
    assert decision(bash(claude, command)) == "deny"


def test_an_edit_of_the_agents_settings_is_refused(claude: Agent, tree: Path, home: Path) -> None:
    """In the user's home and in the project."""
    guarded(home, "autopilot")
    for path in (Path.home() / ".claude/settings.json", tree / ".claude/settings.local.json"):
        call = claude.begin("Write", {"file_path": str(path), "content": "{}"})
        assert decision(call) == "deny", path
    assert decision(claude.begin("Write", {"file_path": str(tree / "b"), "content": ""})) == ""


@pytest.mark.parametrize(
    "command", ["git reset --hard", "rm -rf .", "git clean -fdx", "rm -rf src"]
)
def test_what_an_undo_brings_back_is_no_tampering(
    claude: Agent, tree: Path, home: Path, command: str
) -> None:
    """The project may hold an agent's settings, too."""
    (tree / ".claude").mkdir()
    (tree / ".claude/settings.local.json").write_text("{}")
    guarded(home, "autopilot")
    call = bash(claude, command)
    assert "settings" not in call.refused
    assert decision(call) == ""


def test_an_error_of_the_guard_counts_as_opaque(
    claude: Agent, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In autopilot it is refused."""
    from takeback.guard import judge

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(judge, "judge", fails)
    assert bash(claude, "ls").refused == ""
    guarded(home, "autopilot")
    assert "could not judge" in bash(claude, "ls").refused


def test_a_call_without_an_id_is_asked_about_again(tree: Path, home: Path) -> None:
    """Copilot names no call: a second hook that hears of the same one answers alike."""
    guarded(home, "ask")
    path = PAYLOADS / "copilot-1.0.102-camel" / "preToolUse.bash.json"
    payload = json.loads(path.read_text().replace("/project", str(tree)))
    payload["toolArgs"]["command"] = PUSH
    answers = [heard(payload) for _ in range(2)]
    assert answers[0]["permissionDecision"] == "ask"
    assert answers[0] == answers[1]
    with takeback.open(tree) as project:
        assert len(list(project.workspace.ledger.events_of(events.GUARD_ASKED))) == 1


def test_an_edit_outside_is_saved_once(claude: Agent, tree: Path, tmp_path: Path) -> None:
    """The step of an edit tool keeps the file that it names, so no rescue does."""
    path = tmp_path / "dotfile"
    path.write_text("mine\n")
    claude.begin("Write", {"file_path": str(path), "content": "its\n"})
    with takeback.open(tree) as project:
        assert not project.workspace.ledger.rescues.has_any()
