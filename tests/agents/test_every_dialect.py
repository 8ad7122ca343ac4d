"""A restore under a turn, and `tb undo` as a prompt, in the payloads and answers of each agent."""

import json
from pathlib import Path
from typing import Any

import pytest

import answers
import takeback
from agents import heard
from recorded import PAYLOADS
from takeback.agents import refusals
from takeback.agents.agent import HookEvent
from takeback.agents.registry import agent_of
from takeback.ledger.log import events

OF_CLAUDE = ("UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop")
PLAYED = {
    "claude-code-2.1.325": OF_CLAUDE,
    "cline-3.0.65": ("", "PreToolUse.run_commands", "PostToolUse.run_commands", "TaskComplete"),
    "codex-0.166.0": OF_CLAUDE,
    "copilot-1.0.102-camel": (
        "userPromptSubmitted", "preToolUse.bash", "postToolUse.bash", "agentStop",
    ),
    "copilot-1.0.102-pascal": OF_CLAUDE,
    "droid-0.225.2": ("", "PreToolUse.Execute", "PostToolUse.Execute", "Stop"),
    "gemini-cli-0.61.0": (
        "BeforeAgent", "BeforeTool.run_shell_command", "AfterTool.run_shell_command", "AfterAgent",
    ),
    "goose-1.34.0": ("UserPromptSubmit", "PreToolUse.shell", "PostToolUse.shell", "SessionEnd"),
    "kimi-code-2.1.0": OF_CLAUDE,
    "mistral-vibe-3.0.2": (
        "", "pre_tool.file_system.bash", "post_tool.file_system.bash", "post_agent",
    ),
    "qwen-code-0.24.4": (
        "UserPromptSubmit", "PreToolUse.run_shell_command", "PostToolUse.run_shell_command", "Stop",
    ),
}  # fmt: skip
"""What a client reports of a turn: its prompt, a command before and after it ran, its end."""
TYPING = [name for name, (prompt, *_) in PLAYED.items() if prompt and "goose" not in name]
_SESSION, _PROMPT = ("session_id", "sessionId", "taskId"), ("prompt_id", "turn_id")


class Client:
    """One conversation, by recorded payloads; each is sent once, as if it had just happened."""

    def __init__(self, folder: str, tree: Path) -> None:
        self._folder = PAYLOADS / folder
        self._tree = tree
        self._count = 0
        self.prompt, self.before, self.after, self.stop = PLAYED[folder]
        self.name = ""

    def tell(self, name: str, call: str = "", **more: object) -> dict[str, Any]:
        """One event; the answer, which the agent accepts."""
        text = (self._folder / f"{name}.json").read_text().replace("/project", str(self._tree))
        own = self._read(text).call
        said = json.loads(text.replace(own, call) if own and call else text)
        self._count += 1
        said |= {key: "S1" for key in _SESSION if key in said}
        said |= {key: "P1" for key in _PROMPT if key in said} | more
        if isinstance(said.get("timestamp"), int):
            said["timestamp"] += self._count
        elif "timestamp" in said:
            said["timestamp"] = f"2026-11-16T18:37:{self._count:02}.000Z"
        answer = heard(said)
        event = self._read(json.dumps(said))
        self.name = event.agent.name
        assert answers.refused(event, answer) == ""
        return answer

    def works(self) -> None:
        """The first half of a turn: a prompt, and a command that wrote a file."""
        if self.prompt:
            self.tell(self.prompt)
        self.tell(self.before, "c1")
        (self._tree / "made.txt").write_text("made\n")
        self.tell(self.after, "c1")

    def types(self, text: str) -> dict[str, Any]:
        """The user types the next prompt."""
        known = json.loads((self._folder / f"{self.prompt}.json").read_text())
        own: dict[str, object] = {key: "P2" for key in _PROMPT if key in known}
        words = [{"type": "text", "text": text}] if isinstance(known["prompt"], list) else text
        return self.tell(self.prompt, "", **own, prompt=words)

    @staticmethod
    def _read(text: str) -> HookEvent:
        payload = json.loads(text)
        return agent_of(payload).read(payload)


@pytest.fixture
def client(folder: str, tree: Path, home: Path) -> Client:
    """One that is in the middle of a turn."""
    assert home.is_dir()
    made = Client(folder, tree)
    made.works()
    return made


@pytest.mark.parametrize("folder", PLAYED)
def test_a_restore_under_a_turn(folder: str, client: Client, tree: Path) -> None:
    """The next call is refused once with the reason, or it is told, or not; as the preview says."""
    with takeback.open(tree) as project:
        plan = project.plan_undo()
        assert [each.agent for each in plan.running] == [client.name], folder
        project.apply(plan, because="a wrong turning", yes=True)
    said = [client.tell(client.before, "c2"), client.tell(client.before, "c3")]
    is_told = ["a wrong turning" in json.dumps(each) for each in said]
    how = refusals.told(client.name)
    assert is_told == [how != refusals.NEVER, False]
    assert ("This call was not run" in json.dumps(said[0])) == (how == refusals.REFUSED)
    with takeback.open(tree) as project:
        refused = list(project.workspace.ledger.events_of(events.CALL_REFUSED))
    assert len(refused) == (how == refusals.REFUSED)


@pytest.mark.parametrize("folder", TYPING)
def test_undo_is_typed(folder: str, client: Client, tree: Path) -> None:
    """The file is back, the prompt is dropped, and there is no turn of it."""
    client.tell(client.stop)
    assert "Took back" in json.dumps(client.types("tb undo")), folder
    assert not (tree / "made.txt").exists()
    with takeback.open(tree) as project:
        assert len(project.log(all=True).turns) == 1


@pytest.mark.parametrize("folder", ["copilot-1.0.102-camel", "copilot-1.0.102-pascal"])
def test_a_subagent_cannot_type(folder: str, client: Client, tree: Path) -> None:
    """Its prompt has the id of its parent, and goes to the model as it is."""
    assert folder.startswith(client.name)
    client.tell(client.stop)
    assert client.tell(f"{client.prompt}.in-subagent", prompt="tb undo") == {}
    assert (tree / "made.txt").exists()
    with takeback.open(tree) as project:
        assert len(project.log(all=True).turns) == 1
