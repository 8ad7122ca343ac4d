"""What only the real Copilot CLI does: two settings, sub-agents, dialogs, `/rewind`."""

import json
import shlex
import threading
import time
from typing import Any

import oracle
from clients.model import Say, Until, Use
from clients.place import Place, wait_until
from clients.real import Copilot
from clients.screen import ENTER, Screen
from takeback.agents.agent import DENY, Answer
from takeback.agents.dialects.copilot import AGENT

BY_HAND = "by hand\n"


def changes(place: Place, number: int = -1) -> dict[str, str]:
    """What a turn changed, and how that is known."""
    return {change["path"]: change["how"] for change in place.turns()[number]["changes"]}


def are_over(place: Place, *statuses: str) -> None:
    """Wait until there are turns that ended like this."""
    wait_until(str(statuses), lambda: [turn["status"] for turn in place.turns()] == list(statuses))


def stops(client: Copilot) -> int:
    """How often the hook of its stop has ended, by its own record."""
    ended = ('"hook.end"', '"agentStop"')
    return sum(
        all(word in line for word in ended) for line in client.transcript().read_text().splitlines()
    )


def job(prompt: str, **more: str) -> Use:
    """A call of its tool for sub-agents."""
    kind = {"agent_type": "general-purpose", "name": "job", "description": "a job"}
    return Use("task", {**kind, "prompt": prompt, **more})


def test_an_event_of_two_settings_counts_once(place: Place) -> None:
    """With Claude's settings of a trusted project each event comes twice, in two spellings."""
    client, tree = Copilot(place), place.tree
    client.install()
    place.takeback("install", "claude-code", "--project")
    calls = [client.create(tree / "new.txt", "new\n"), client.shell("rm b.txt"), job("the job")]
    place.model.plays("the job", client.create(tree / "sub.txt", "sub\n"))
    client.prompt(place.model.plays("do it", *calls))
    (turn,) = place.turns()
    assert (turn["agent"], turn["status"], turn["label"]) == ("copilot", "done", "do it")
    steps = place.told("show", turn["id"])["turn"]["steps"]
    assert sorted(step["tool"] for step in steps) == ["bash", "create", "create", "task"]
    assert {step["status"] for step in steps} == {"done"}
    assert len(place.told("sessions")["sessions"]) == 1


def test_claudes_settings_alone_record_it_too(place: Place) -> None:
    """It loads those of a trusted project, and is recorded under its own name."""
    client = Copilot(place)
    place.takeback("install", "claude-code", "--project")
    client.prompt(place.model.plays("do it", client.shell("rm b.txt")))
    (turn,) = place.turns()
    assert (turn["agent"], turn["label"]) == ("copilot", "do it")
    assert changes(place) == {"b.txt": "shell"}


def test_hooks_of_a_project(place: Place) -> None:
    """`install --project` writes `.github/hooks`, which it reads in a trusted folder."""
    client = Copilot(place)
    place.put_on_path(client.environment)
    place.takeback("install", client.NAME, "--project")
    assert (place.tree / ".github/hooks/takeback.json").exists()
    client.prompt(place.model.plays("do it", client.shell("rm b.txt")))
    assert changes(place) == {"b.txt": "shell"}


def test_what_subagents_do_is_the_turns(place: Place) -> None:
    """One that is waited for, and one that goes on behind the stop and a seeming end."""
    client, tree = Copilot(place), place.tree
    client.install()
    before = oracle.picture(tree)
    gate = threading.Event()
    place.model.plays("the first job", client.create(tree / "one.txt", "one\n"))
    place.model.plays(
        "the second job",
        [Until(gate), client.create(tree / "two.txt", "two\n")],
        client.shell("rm b.txt"),
    )
    place.model.plays(
        "send two", job("the first job"), job("the second job", mode="background"), Say("On it.")
    )
    running = client.start("send two")
    place.model.wait_for("send two", 2)
    wait_until("the turn is over", lambda: [t["status"] for t in place.turns()] == ["done"])
    gate.set()
    running.over()
    assert [turn["label"] for turn in place.turns()] == ["send two"]
    assert changes(place) == {"one.txt": "named", "two.txt": "named", "b.txt": "shell"}
    place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []


def test_a_command_in_the_background_is_the_turns(place: Place) -> None:
    """It writes after the stop; the notice of its end is no prompt."""
    client, tree = Copilot(place), place.tree
    client.install()
    before = oracle.picture(tree)
    late = f"until [ -e {place.scratch}/go ]; do sleep 0.05; done; echo late > late.txt"
    given = {"command": late, "description": "late", "mode": "async"}
    running = client.start(place.model.plays("later", Use("bash", given), Say("It runs.")))
    are_over(place, "done")
    (place.scratch / "go").touch()
    running.over()
    assert [turn["label"] for turn in place.turns()] == ["later"]
    assert set(changes(place)) == {"late.txt"}
    place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []


def test_what_is_typed_while_it_works_is_in_a_turn(place: Place) -> None:
    """A prompt that waits or steers: its work comes back with the turns, exactly."""
    client, tree = Copilot(place), place.tree
    client.install()
    before = oracle.picture(tree)
    gate = threading.Event()
    place.model.plays(
        "the first job", client.shell("echo one > one.txt"), [Until(gate), client.shell("rm b.txt")]
    )
    two = client.shell("echo two > two.txt")
    # Twice, as Copilot may add an answer of its own behind what was typed: it moves the command
    # that runs to the background, and reads what became of it.
    place.model.plays("the second job", two, two)
    screen = client.sit_down("the first job")
    try:
        place.model.wait_for("the first job", 1)
        screen.type("the second job")
        time.sleep(1)
        gate.set()
        place.model.wait_for("the second job", 2)
        wait_until("the file", (tree / "two.txt").exists)
        wait_until("the end", lambda: {turn["status"] for turn in place.turns()} == {"done"})
    finally:
        screen.close()
    changed = {path for number in range(len(place.turns())) for path in changes(place, number)}
    assert changed == {"one.txt", "b.txt", "two.txt"}
    for _ in place.turns():
        place.takeback("undo", "--yes")
    assert oracle.differences(before, oracle.picture(tree)) == []


# -- dialogs -------------------------------------------------------------------------------


def ask(place: Place, command: str) -> tuple[Copilot, Screen]:
    """A dialog waits while a file is saved by hand."""
    client = Copilot(place)
    client.asks = True
    client.install()
    place.model.plays("do the job", client.shell(command))
    screen = client.sit_down("do the job")
    screen.shows("Do you want to run this command?")
    (place.tree / "a.txt").write_text(BY_HAND)
    time.sleep(0.5)
    return client, screen


def test_after_a_yes_undo_has_no_doubt(place: Place) -> None:
    """Its conversation says when the dialog was answered."""
    before = (place.tree / "b.txt").read_text()
    _, screen = ask(place, "echo done > b.txt")
    try:
        screen.press(ENTER)
        are_over(place, "done")
    finally:
        screen.close()
    assert set(changes(place)) == {"b.txt"}
    place.takeback("undo")
    assert (place.tree / "a.txt").read_text() == BY_HAND
    assert (place.tree / "b.txt").read_text() == before


def test_after_a_no_there_is_nothing(place: Place) -> None:
    """Esc in the dialog: nothing ran, and what was saved stays."""
    client, screen = ask(place, "echo done > b.txt")
    try:
        client.interrupt(screen)
        place.takeback("undo", code=1)
    finally:
        screen.close()
    assert (place.tree / "a.txt").read_text() == BY_HAND
    assert [turn["status"] for turn in place.turns()] == ["interrupted"]


# -- going back ----------------------------------------------------------------------------


def test_rewind_is_noticed_and_told(place: Place) -> None:
    """The conversation only: the agent is asked to tell how the files come back, exactly."""
    client, tree = Copilot(place), place.tree
    client.install()
    for name in ("first", "second"):
        made = client.create(tree / f"{name}.txt", f"{name}\n")
        place.model.plays(f"make the {name}", made, client.shell(f"echo {name} >> a.txt"))
    place.model.plays("another one", client.shell("echo third >> a.txt"))
    screen = client.sit_down("make the first")
    try:
        are_over(place, "done")
        after_first = oracle.picture(tree)
        screen.type("make the second")
        are_over(place, "done", "done")
        wait_until("it waits", lambda: stops(client) == 2)
        screen.type("/rewind")
        screen.shows("Rewind to a previous point")
        screen.play((ENTER, "Conversation only"), (ENTER, "Rewound the conversation"))
        screen.press(b"\x15")  # the prompt that one went back to stands there
        screen.type("another one")
        are_over(place, "done", "done", "done")
    finally:
        screen.close()
    _, second, third = place.turns()
    assert place.told("show", third["id"])["turn"]["went_back"] == second["id"]
    heard = place.model.wait_for("another one").text
    assert f"takeback rollback {second['id'][:8]}" in heard
    place.takeback("rollback", second["id"] + "-", "--yes")
    assert oracle.differences(after_first, oracle.picture(tree)) == []


# -- verdicts ------------------------------------------------------------------------------


def hook(client: Copilot, event: str, output: dict[str, Any]) -> None:
    """Let a hook of our own say something at each event of a kind."""
    line = f"echo {shlex.quote(json.dumps(output))}"
    hooks = {"version": 1, "hooks": {event: [{"type": "command", "bash": line}]}}
    (client.folder / "hooks").mkdir(exist_ok=True)
    (client.folder / "hooks/zz.json").write_text(json.dumps(hooks))


def test_a_denial_reaches_the_model(place: Place) -> None:
    """As our answer spells it; the command does not run, and its window closes."""
    client = Copilot(place)
    client.install()
    event = AGENT.read({"sessionId": "s", "timestamp": 1, "toolName": "bash", "toolArgs": {}})
    hook(client, "preToolUse", AGENT.answer(event, Answer(verdict=DENY, to_agent="NOT NOW")))
    client.prompt(place.model.plays("do it", client.shell("rm b.txt"), Say("I could not.")))
    assert (place.tree / "b.txt").exists()
    assert "NOT NOW" in place.model.wait_for("do it", 1).text
    assert [turn["status"] for turn in place.turns()] == ["done"]


def test_a_prompt_is_blocked_before_the_model_hears_it(place: Place) -> None:
    """No request is made, and nothing runs; it prints the reason as an error."""
    client = Copilot(place)
    client.install()
    event = AGENT.read({"sessionId": "s", "timestamp": 1, "prompt": "do it"})
    hook(
        client, "userPromptSubmitted", AGENT.answer(event, Answer(verdict=DENY, to_user="HANDLED"))
    )
    client.prompt(place.model.plays("do it", client.shell("rm b.txt")), code=1)
    assert (place.tree / "b.txt").exists()
    assert place.model.requests == []
