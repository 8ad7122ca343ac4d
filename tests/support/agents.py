"""An agent that tells what it does through hooks, as the real ones do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import takeback
from takeback import environment, testing

MAIN = Path(takeback.__file__).with_name("__main__.py")


class Agent:
    """One conversation of an agent in a folder; events are heard in this process."""

    def __init__(self, tree: Path, session: str = "S1") -> None:
        self.tree = tree
        self.session = session
        self.started_in = ""
        self._prompts = 0
        self._calls = 0

    # -- what every agent does -------------------------------------------------------------

    def tell(self, event: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- as JSON has it
        """One event; what is answered."""
        return heard({**self.common(), "hook_event_name": event, **more}, self.started_in)

    def common(self) -> dict[str, Any]:
        """What is in every event."""
        return {"session_id": self.session, "cwd": str(self.tree), "prompt_id": self.prompt_id}

    @property
    def prompt_id(self) -> str:
        """What the agent calls the prompt it works on."""
        return f"{self.session}-P{self._prompts}"

    def prompt(self, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """A human asks for something."""
        self._prompts += 1
        return self.tell("UserPromptSubmit", prompt=text, **more)

    def begin(self, tool: str, given: dict[str, Any], **more: Any) -> "Tool":  # noqa: ANN401
        """A tool is about to be called."""
        self._calls += 1
        call = Tool(self, tool, given, f"{self.session}-T{self._calls}", more)
        call.answer = call.tell("PreToolUse")
        return call

    def shell(self, **files: str) -> None:
        """A shell command that writes files."""
        call = self.begin("Bash", {"command": "…"})
        for name, content in files.items():
            (self.tree / name).write_text(content)
        call.over()

    def edit(self, name: str, content: str) -> None:
        """An edit tool that writes one file."""
        call = self.begin("Write", {"file_path": str(self.tree / name), "content": content})
        (self.tree / name).write_text(content)
        call.over()

    def stop(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """The agent stops."""
        return self.tell("Stop", **more)


class Tool:
    """A tool call that runs."""

    def __init__(
        self, agent: Agent, tool: str, given: dict[str, Any], id: str, more: dict[str, Any]
    ) -> None:
        self._agent = agent
        self.id = id
        self.answer: dict[str, Any] = {}
        """What was answered before it began."""
        self._said = {"tool_name": tool, "tool_input": given, "tool_use_id": id, **more}

    def tell(self, event: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """An event of this call."""
        return self._agent.tell(event, **self._said, **more)

    @property
    def refused(self) -> str:
        """Why it was refused; empty if it was not."""
        own = self.answer.get("hookSpecificOutput", {})
        is_denied = own.get("permissionDecision") == "deny"
        return str(own["permissionDecisionReason"]) if is_denied else ""

    def over(self, response: Any = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """It returned."""
        return self.tell("PostToolUse", tool_response=response, **more)

    def failed(self) -> dict[str, Any]:
        """It failed."""
        return self.tell("PostToolUseFailure", error="exit code 1")


class Codex(Agent):
    """Codex instead of Claude Code."""

    def common(self) -> dict[str, Any]:
        """Its own names for ids."""
        said = super().common()
        turn = said.pop("prompt_id")
        return {**said, "turn_id": turn, "model": "m"}


def heard(payload: object, folder: str = "") -> dict[str, Any]:
    """What is answered to a payload, in this process."""
    home, user_home = environment.default_home(), environment.user_home()
    return testing.answer(payload, home=home, user_home=user_home, folder=os.fsencode(folder))


def surroundings(folder: str = "") -> tuple[bytes, ...]:
    """Where a hook is called in a test, for a new event."""
    home, user_home = environment.default_home(), environment.user_home()
    event = os.urandom(16).hex().encode()
    return home, user_home, os.fsencode(folder), os.getcwdb(), event


def hook(data: bytes, **more: str) -> "subprocess.CompletedProcess[bytes]":
    """The real command, as an agent calls it."""
    command = [sys.executable, "-I", "-S", str(MAIN), "hook"]
    env = {**os.environ, "TAKEBACK_HELPER": "0", **more}
    return subprocess.run(command, input=data, capture_output=True, check=False, env=env)
