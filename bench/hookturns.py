"""Turns of the real clients with and without Takeback; run offline by `bench/hooks.py`.

The model answers at once: each answer is one call of the shell that writes one file. What is timed
is the time between the first answer and the last, so that the start of the client does not count.
Prints one JSON object for each client and number of files.
"""

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests/support")]

import trees  # noqa: E402
from yardstick import Yardstick  # noqa: E402

from clients.model import Model  # noqa: E402
from clients.place import Place  # noqa: E402
from clients.real import ClaudeCode, Client, Codex  # noqa: E402

WITHOUT, ALONE, HELPED = "without Takeback", "with Takeback, no helper", "with Takeback and helper"
NOTHING = "with hooks that do nothing"
"""The same hooks, whose command is `true`: what the client itself takes to call them."""
WAYS = (WITHOUT, NOTHING, ALONE, HELPED)
EVENTS = {"claude-code": 3, "codex": 2}
"""Hooks for each call of a tool: before, after, and at the end of a batch where there is one."""
_OFTEN = 4
"""How often an empty interpreter and the scan are measured between two turns."""


def main(sizes: list[int], rounds: int, calls: int) -> None:
    """Measure all of it, in turns."""
    for files in sizes:
        with tempfile.TemporaryDirectory(prefix="takeback-bench-") as folder:
            work = Path(folder)
            tree = trees.make(work / "tree", files).path
            for kind in (ClaudeCode, Codex):
                yardstick = Yardstick(tree, work / f"{kind.NAME}-yardstick")
                took = measure(work / kind.NAME, tree, kind, rounds, calls, yardstick)
                yardstick.close()
                said = {"client": kind.NAME, "files": files, "calls": calls, "took": took}
                said |= {"start": yardstick.starts.median, "scan": yardstick.scans.median}
                print(json.dumps(said), flush=True)


def measure(
    work: Path, tree: Path, kind: type[Client], rounds: int, calls: int, yardstick: Yardstick
) -> dict[str, list[float]]:
    """Seconds between the first answer and the last, by what is installed."""
    model = Model()
    clients = {}
    for number, name in enumerate(WAYS):
        scratch = work / str(number)
        scratch.mkdir(parents=True)
        place = Place(scratch, tree, model)
        place.environment["TAKEBACK_HELPER"] = "1" if name == HELPED else "0"
        clients[name] = kind(place)
        if name != WITHOUT:
            told = clients[name].install()
            if name == NOTHING:
                do_nothing(Path(told["file"]))
    took: dict[str, list[float]] = {name: [] for name in clients}
    names = list(clients)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            seconds = turn(model, clients[name], f"{name}, round {number}", calls)
            if number:  # the first one warms up
                took[name].append(seconds)
                yardstick.measure(_OFTEN)
    for client in clients.values():
        client.place.close()
    model.close()
    return took


def do_nothing(settings: Path) -> None:
    """Let the hooks of a settings file do nothing."""
    said = json.loads(settings.read_text())
    for groups in said["hooks"].values():
        for group in groups:
            for hook in group["hooks"]:
                hook["command"] = "true"
    settings.write_text(json.dumps(said))


def turn(model: Model, client: Client, prompt: str, calls: int) -> float:
    """One prompt in a new conversation."""
    steps = [client.shell(f"echo {number} {prompt} > bench.txt") for number in range(calls)]
    model.plays(prompt, *steps)
    client.session = ""
    client.prompt(prompt)
    return model.wait_for(prompt, calls).at - model.wait_for(prompt, 0).at


if __name__ == "__main__":
    main([int(size) for size in sys.argv[3:]], int(sys.argv[1]), int(sys.argv[2]))
