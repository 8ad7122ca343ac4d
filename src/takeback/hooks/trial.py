"""The command line tried out before it is installed: a prompt, a change, its undo.

A throw-away project with a store of its own hears what an agent would tell, through a shell and the
very command line that goes into the settings.
This module plays the agent, so it starts programs and writes files by itself.
"""

import json
import os
import shutil
import tempfile
import time

from takeback.agents import agent as kinds
from takeback.agents.agent import Trial
from takeback.disk import programs
from takeback.errors import TakebackError
from takeback.hooks import command
from takeback.hooks.hook_recorder import PROMPT_NOT_SEEN
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.agents.agent import Agent
    from takeback.hooks.install import Installation

LONGEST = 60
"""Seconds that one event may take in a project of two files."""
_CANNOT_BE_RUN = 126
"""What a shell ends with if it cannot become a program."""
_PROMPT = "try Takeback out"
_COMMAND = "echo changed > kept.txt; rm lost.txt; echo new > new.txt"
_BEFORE = {"kept.txt": b"one\n", "lost.txt": b"two\n"}


class TrialResult(Value):
    """How many events were handled, and how long each took, in milliseconds."""

    events: int
    milliseconds: float


def try_install(made: "Installation", environment: "Mapping[str, str]") -> TrialResult:
    """Try what an install would write, with a copy of the script where it writes one."""
    if not made.script:
        return try_hooks(made.agent, made.commands, environment)
    place = tempfile.mkdtemp(prefix="takeback-canary-")
    try:
        copy = os.path.join(place, command.SCRIPT)
        with open(copy, "w", encoding="utf-8") as file:
            file.write(made.script)
        line = command.line(copy, started_in=made.agent.started_in)
        return try_hooks(made.agent, dict.fromkeys(made.commands, line), environment)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def try_hooks(
    agent: "Agent", commands: "Mapping[str, str]", environment: "Mapping[str, str]"
) -> TrialResult:
    """Play an agent's events and take back what it did; an error if that fails."""
    place = tempfile.mkdtemp(prefix="takeback-canary-")
    try:
        return _Player(agent, commands, environment, place).play()
    finally:
        shutil.rmtree(place, ignore_errors=True)


class _Player:
    def __init__(
        self,
        agent: "Agent",
        commands: "Mapping[str, str]",
        environment: "Mapping[str, str]",
        place: str,
    ) -> None:
        self._agent = agent
        self._commands = commands
        self._folder = os.path.join(place, "project")
        self._home = os.path.join(place, "store")
        # A helper would outlive the throw-away project.
        own = {"TAKEBACK_HOME": self._home, "TAKEBACK_HELPER": "0"}
        if agent.started_in:
            own[agent.started_in] = self._folder
        self._environment = {**environment, **own}
        self._trial = Trial(self._folder, self._home, _PROMPT, _COMMAND)
        self._took: list[float] = []

    def play(self) -> TrialResult:
        os.mkdir(self._folder)
        for name, data in _BEFORE.items():
            self._write(name, data)
        self._send(kinds.SESSION_STARTS)
        self._send(kinds.PROMPT)
        self._send(kinds.BEFORE_TOOL)
        self._write("kept.txt", b"changed\n")
        os.unlink(os.path.join(self._folder, "lost.txt"))
        self._write("new.txt", b"new\n")
        self._send(kinds.AFTER_TOOL)
        self._send(kinds.STOPS)
        self._take_back()
        self._send(kinds.SESSION_ENDS)
        return TrialResult(len(self._took), 1000 * sorted(self._took)[len(self._took) // 2])

    def _write(self, name: str, data: bytes) -> None:
        with open(os.path.join(self._folder, name), "wb") as file:
            file.write(data)

    def _send(self, kind: str) -> None:
        event = self._agent.event_of(kind)
        payload = self._agent.trial(kind, self._trial) if event else None
        if payload is None:
            return
        began = time.monotonic()
        try:
            done = programs.run_limited(
                ["/bin/sh", "-c", self._commands[event]],  # the line that is about to be installed
                json.dumps(payload).encode(),
                cwd=self._folder,
                environment=self._environment,
                seconds=LONGEST,
                capture=True,
            )
        except TimeoutError:
            raise _failed(f"`{event}` was not answered within {LONGEST} seconds") from None
        except OSError as problem:
            raise _failed(f"no shell could be started: {problem.strerror}") from None
        self._took.append(time.monotonic() - began)
        if done.code == _CANNOT_BE_RUN and command.uses_client(self._commands[event]):
            ask = command.client(command.paths(self._commands[event])[1])
            raise _failed(f"`{ask}` is not for this machine; remove it; hooks work without it")
        if done.code:
            said = done.errors.decode("utf-8", "replace").strip()
            raise _failed(f"`{event}` ended with {done.code}: {said[-500:]}")
        _require_success(event, done.output)

    def _take_back(self) -> None:
        """See the change in the log and take it back."""
        from takeback.project import Project

        home = os.fsencode(self._home)
        found = Project.find(os.fsencode(self._folder), home=home) if os.path.isdir(home) else None
        if found is None:
            raise _failed("nothing was recorded")
        with found as project:
            turns = project.log().turns
            label = PROMPT_NOT_SEEN if self._agent.hides_prompts else _PROMPT
            if [turn.label for turn in turns] != [label]:
                raise _failed("the prompt is not in the log")
            seen = {change.path: change.verb for change in turns[0].changes}
            if seen != {"kept.txt": "write", "lost.txt": "delete", "new.txt": "create"}:
                raise _failed(f"the recorded changes were {seen}")
            project.undo()
        if _contents(self._folder) != _BEFORE:
            raise _failed("the undo did not bring everything back")


def _contents(folder: str) -> "dict[str, bytes]":
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def _require_success(event: str, said: bytes) -> None:
    """What a hook tells the user is that it failed; whatever it says else is JSON."""
    if not said.strip():
        return
    try:
        told = json.loads(said).get("systemMessage", "")
    except (ValueError, AttributeError, RecursionError):
        told = said.decode("utf-8", "replace")[:500]
    if told:
        raise _failed(f"the answer to `{event}` was: {told}")


def _failed(why: str) -> TakebackError:
    return TakebackError(
        f"the hooks failed in a throw-away project: {why}",
        hint="nothing was installed; `takeback doctor` may show details",
    )
