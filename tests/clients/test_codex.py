"""What only Codex does: sub-agents that it never waits for by itself, in two ways."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import oracle
from clients.model import Action, Request, Say, Then, Until, Use
from clients.place import Place, wait_until
from clients.real import Codex

WAYS = pytest.mark.parametrize("newer", [False, True], ids=["multi_agent", "multi_agent_v2"])


class Team:
    """Codex with one of its ways to have sub-agents."""

    def __init__(self, place: Place, *, newer: bool) -> None:
        self.client = Codex(place)
        self.newer = newer
        self._space = "collaboration" if newer else "multi_agent_v1"
        if newer:
            self.client.more += ["-c", "features.multi_agent_v2=true"]
        self.client.install()

    def send(self, job: str) -> Action:
        """Begin a sub-agent."""
        name = {"task_name": "helper"} if self.newer else {}
        return Use(f"{self._space}__spawn_agent", {"message": job, **name})

    def send_again(self, job: str) -> Action:
        """Give it another job, when it is done with its own."""
        if self.newer:
            return Use("collaboration__followup_task", {"target": "helper", "message": job})

        def make(request: Request) -> Use:
            given = {"target": spawned(request), "message": job}
            return Use("multi_agent_v1__send_input", given)

        return Then(make)

    def stop(self, tree: Path) -> Action:
        """Stop it, once its command has removed `b.txt`."""

        def make(request: Request) -> Use:
            wait_until("it works", lambda: not (tree / "b.txt").exists())
            if self.newer:
                return Use("collaboration__interrupt_agent", {"target": "helper"})
            return Use("multi_agent_v1__close_agent", {"target": spawned(request)})

        return Then(make)

    def wait(self) -> Action:
        """Wait for the one that was begun last."""

        def make(request: Request) -> Use:
            given = {} if self.newer else {"targets": [spawned(request)]}
            return Use(f"{self._space}__wait_agent", given)

        return Then(make)

    def rollouts(self) -> str:
        """All that it wrote down."""
        files = (self.client.folder / "sessions").glob("*/*/*/rollout-*.jsonl")
        return "".join(path.read_text() for path in files)


def spawned(request: Request) -> str:
    """The id of the sub-agent, as the call that began it said it; empty when titles are made."""
    answers = [item["output"] for item in request.body["input"] if "output" in item]
    ids = [json.loads(answer)["agent_id"] for answer in answers if '"agent_id"' in answer]
    return ids[0] if ids else ""


def changes(turn: dict[str, Any]) -> dict[str, str]:
    """What a turn changed, and how that is known."""
    return {change["path"]: change["how"] for change in turn["changes"]}


def over(place: Place) -> list[str]:
    """How the turns ended, or that they run."""
    return [turn["status"] for turn in place.turns()]


@WAYS
def test_what_a_subagent_does_is_in_the_turn(newer: bool, place: Place) -> None:
    """Its edits and commands are of the turn that waits for it; what the user does is not."""
    team, tree, model = Team(place, newer=newer), place.tree, place.model
    gate = threading.Event()
    edits = team.client.edits([(tree / "a.txt", "one", "ONE")])
    model.plays("the job", *edits, [Until(gate), team.client.shell("rm b.txt; echo new > new.txt")])
    model.plays("send somebody", team.send("the job"), team.wait(), Say("It is done."))
    before = oracle.picture(tree)
    running = team.client.start("send somebody")
    model.wait_for("the job", 1)
    model.wait_for("send somebody", 1)
    wait_until("it waits", lambda: '"name":"wait_agent"' in team.rollouts())
    time.sleep(1)  # hooks of it are through
    (tree / "sub/folder/x").write_text("by hand\n")
    gate.set()
    running.over()
    (turn,) = place.turns()
    assert (turn["label"], turn["status"]) == ("send somebody", "done")
    assert changes(turn) == {"a.txt": "named", "b.txt": "shell", "new.txt": "shell"}
    place.takeback("undo")
    assert oracle.differences(before, oracle.picture(tree), [b"sub/folder/x"]) == []
    assert (tree / "sub/folder/x").read_text() == "by hand\n"


@WAYS
def test_it_goes_on_behind_the_stop(newer: bool, place: Place) -> None:
    """What it does after the stop, and after the next prompt, is of the turn that sent it."""
    team, tree, model = Team(place, newer=newer), place.tree, place.model
    gate, go = threading.Event(), place.scratch / "go"
    slow = f"rm b.txt; until [ -e {go} ]; do sleep 0.05; done; echo late > late.txt"
    edits = team.client.edits([(tree / "a.txt", "one", "ONE")])
    model.plays("the job", [Until(gate), *edits[0]], *edits[1:], team.client.shell(slow))
    model.plays("send somebody", team.send("the job"), Say("Somebody is on it."))
    model.plays("and this", team.client.create(tree / "mine.txt", "mine\n"))
    before = oracle.picture(tree)
    screen = team.client.sit_down("send somebody")
    try:
        model.wait_for("the job")
        wait_until("the turn is over", lambda: over(place) == ["done"])
        gate.set()
        wait_until("it works", lambda: not (tree / "b.txt").exists())
        screen.type("and this")
        wait_until("it is made", (tree / "mine.txt").exists)
        wait_until("the turn is over", lambda: over(place) == ["done"] * 2)
        go.touch()
        wait_until("it wrote", (tree / "late.txt").exists)
        model.wait_for("the job", len(edits) + 1)
    finally:
        screen.close()
    first, second = place.turns()
    assert [first["label"], second["label"]] == ["send somebody", "and this"]
    assert changes(second) == {"mine.txt": "named"}
    assert changes(first) == {"a.txt": "named", "b.txt": "shell", "late.txt": "shell"}
    place.takeback("undo")
    assert (tree / "late.txt").exists()
    # The user may have written it as well, for all that anybody knows.
    place.takeback("undo", code=3)
    place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []


@WAYS
@pytest.mark.parametrize("stopped", [False, True], ids=["yields", "stopped"])
def test_its_command_reports_no_end(newer: bool, stopped: bool, place: Place) -> None:
    """What it does until the next prompt is of the turn, and then the user's is the user's."""
    team, tree, model = Team(place, newer=newer), place.tree, place.model
    slow = f"rm b.txt; until [ -e {place.scratch}/go ]; do sleep 0.05; done; echo late > late.txt"
    given = {"cmd": slow} if stopped else {"cmd": slow, "yield_time_ms": 250}
    model.plays("the job", Use("exec_command", given))
    wait = team.stop(tree) if stopped else team.wait()
    model.plays("send somebody", team.send("the job"), wait, Say("It is done."))
    model.plays("and this", team.client.create(tree / "mine.txt", "mine\n"))
    before = oracle.picture(tree)
    screen = team.client.sit_down("send somebody")
    try:
        wait_until("the turn is over", lambda: over(place) == ["done"])
        (place.scratch / "go").touch()
        if not stopped:
            wait_until("it wrote", (tree / "late.txt").exists)
        screen.type("and this")
        wait_until("the turn is over", lambda: over(place) == ["done"] * 2)
        (tree / "sub/folder/x").write_text("by hand\n")
    finally:
        screen.close()
    first, second = place.turns()
    late = {} if stopped else {"late.txt": "shell"}
    assert changes(first) == {"b.txt": "shell", **late}
    assert changes(second) == {"mine.txt": "named"}
    place.takeback("undo")
    place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree), [b"sub/folder/x"]) == []
    assert (tree / "sub/folder/x").read_text() == "by hand\n"


@WAYS
def test_it_is_given_another_job(newer: bool, place: Place) -> None:
    """What a sub-agent does when it is called again is of the prompt that called it."""
    team, tree, model = Team(place, newer=newer), place.tree, place.model
    model.plays("the job", team.client.shell("rm b.txt"))
    model.plays("send somebody", team.send("the job"), team.wait(), Say("It is done."))
    edits = team.client.edits([(tree / "a.txt", "one", "ONE")])
    model.plays("the next job", *edits, team.client.shell("echo new > new.txt"))
    model.plays("send it again", team.send_again("the next job"), team.wait(), Say("It is done."))
    screen = team.client.sit_down("send somebody")
    try:
        wait_until("the turn is over", lambda: over(place) == ["done"])
        between = oracle.picture(tree)
        screen.type("send it again")
        wait_until("the turn is over", lambda: over(place) == ["done"] * 2)
    finally:
        screen.close()
    first, second = place.turns()
    assert [first["label"], second["label"]] == ["send somebody", "send it again"]
    assert changes(first) == {"b.txt": "shell"}
    assert changes(second) == {"a.txt": "named", "new.txt": "shell"}
    place.takeback("undo")
    assert oracle.differences(between, oracle.picture(tree)) == []


@WAYS
def test_a_subagent_cannot_type(newer: bool, place: Place) -> None:
    """A sub-agent is asked for `tb undo` by the model: that is a prompt like any other."""
    team, tree, model = Team(place, newer=newer), place.tree, place.model
    model.plays("tb undo", Say("No."))
    rm = team.client.shell("rm b.txt")
    team.client.prompt(
        model.plays("change it", rm, team.send("tb undo"), team.wait(), Say("It is done."))
    )
    assert not (tree / "b.txt").exists()
    assert [turn["label"] for turn in place.turns()] == ["change it"]
    assert "tb undo" in [each.prompt for each in model.requests]
