"""Takeback of this checkout beside that of another one: `bench/run --against CHECKOUT`.

Both take turns with the same trees, edits and machine, each with its own Python environment and its
own store. Warm times are taken in a process that is there already; cold ones are whole processes,
and so is the hook, which gets a prompt and finds no helper.
"""

import json
import os
import shutil
import subprocess
import time
import uuid
from pathlib import Path

from contenders import ROOT, Takeback
from restorers import ColdUndo, Restorer, WarmUndo
from restores import take_turns as take_back_in_turns
from timing import Series, Times, take_turns
from trees import Tree

NOW, BEFORE = "this checkout", "the other"
PYTHON = "Python with `json` and `sqlite3`"
COUNTS = (1, 10, 1_000)


class Version:
    """One checkout that is set up, and the store that it fills."""

    def __init__(self, name: str, checkout: Path, work: Path) -> None:
        self.name = name
        self.checkout = checkout
        self.work = work / checkout.name
        self.python = str((checkout / ".venv/bin/python").resolve())
        self.environment = {**os.environ, "TAKEBACK_HELPER": "0", "HOME": str(self.work / "user")}

    def worker(self, tree: Path, store: str) -> Takeback:
        """A warm process of this version."""
        worker = Takeback(tree, self.work / store, checkout=self.checkout)
        worker.name = self.name
        return worker

    def command(self, *words: str) -> list[str]:
        """A whole process of this version, started as `./takeback` does."""
        main = self.checkout / "src/takeback/__main__.py"
        return [self.python, "-I", "-S", str(main), *words]

    def time(self, tree: Path, *words: str, payload: str = "") -> float:
        """Run a command with the store of the warm process."""
        environment = {**self.environment, "TAKEBACK_HOME": str(self.work / "store")}
        before = time.perf_counter()
        done = subprocess.run(
            self.command(*words), env=environment, cwd=tree, input=payload.encode(), check=True,
            capture_output=True,
        )  # fmt: skip
        seconds = time.perf_counter() - before
        if payload and done.stderr:
            raise RuntimeError(done.stderr.decode())
        return seconds


def measure(tree: Tree, other: Path, work: Path, rounds: int) -> dict[str, Times]:
    """All cases at the size of the tree: case → version → series."""
    versions = [Version(NOW, ROOT, work), Version(BEFORE, other.resolve(), work)]
    cases: dict[str, Times] = {"first checkpoint": _firsts(tree, versions)}
    workers = [version.worker(tree.path, "store") for version in versions]
    try:
        for worker in workers:
            worker.first()
        _restores(cases, tree, zip(versions, workers, strict=True), rounds)
        cases["checkpoint, nothing changed"] = take_turns(workers, rounds)
        cases["checkpoint, 10 changed"] = take_turns(workers, rounds, lambda: tree.edit(10))
        _processes(cases, tree, versions, rounds)
    finally:
        for worker in workers:
            worker.close()
        shutil.rmtree(work)
    return cases


def _firsts(tree: Tree, versions: list[Version]) -> Times:
    times: Times = {version.name: Series() for version in versions}
    for number in range(4):
        for version in versions if number % 2 else reversed(versions):
            worker = version.worker(tree.path, f"first{number}")
            times[version.name].seconds.append(worker.first())
            worker.close()
            shutil.rmtree(version.work / f"first{number}")
    return times


def _restores(
    cases: dict[str, Times],
    tree: Tree,
    pairs: "zip[tuple[Version, Takeback]]",
    rounds: int,
) -> None:
    warm: list[Restorer] = []
    cold: list[ColdUndo] = []
    for version, worker in pairs:
        warm.append(WarmUndo(worker))
        cold.append(ColdUndo(worker, tree.path, version.work / "store"))
        cold[-1].command = version.command("-C", str(tree.path), "undo")
        warm[-1].name = cold[-1].name = version.name
    for count in COUNTS:
        few = rounds if count < COUNTS[-1] else max(3, rounds // 4)
        cases[f"undo of {count:,}"] = take_back_in_turns(warm, tree, count, few)
    cases["`takeback undo` of 10, cold"] = take_back_in_turns(list(cold), tree, 10, rounds)


def _processes(cases: dict[str, Times], tree: Tree, versions: list[Version], rounds: int) -> None:
    cold: Times = {version.name: Series() for version in versions}
    hook: Times = {**{version.name: Series() for version in versions}, PYTHON: Series()}
    bare = [versions[0].python, "-I", "-S", "-c", "import json, sqlite3"]
    for number in range(rounds):
        tree.edit(10)
        before = time.perf_counter()
        subprocess.run(bare, check=True)
        hook[PYTHON].seconds.append(time.perf_counter() - before)
        for version in versions if number % 2 else reversed(versions):
            seconds = version.time(tree.path, "checkpoint")
            cold[version.name].seconds.append(seconds)
            payload = _prompt(tree.path)
            hook[version.name].seconds.append(version.time(tree.path, "hook", payload=payload))
    cases["`takeback checkpoint`, 10 changed, cold"] = cold
    cases["a prompt, by a hook without helper"] = hook


def _prompt(tree: Path) -> str:
    payload = {
        "session_id": str(uuid.uuid4()),
        "transcript_path": str(tree / "none.jsonl"),
        "cwd": str(tree),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "edit some files",
    }
    return json.dumps(payload)


def render(cases: dict[int, dict[str, Times]]) -> str:
    """One table: medians, and what this checkout costs beside the other."""
    lines = [
        "| files | case | the other | this checkout | ratio |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for files, found in cases.items():
        for case, times in found.items():
            before, now = times[BEFORE].median, times[NOW].median
            case += f" ({PYTHON}: {times[PYTHON].median * 1e3:.1f} ms)" if PYTHON in times else ""
            lines.append(
                f"| {files:,} | {case} | {before * 1e3:.1f} ms | {now * 1e3:.1f} ms |"
                f" {now / before:.2f} |"
            )
    return "\n".join(lines)
