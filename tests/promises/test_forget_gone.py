"""Forget means gone: a marker in all places, searched for by code that is not the product's.

`FAULTS=full` (scripts/faults) kills the process before every single step, and lets the disk be full
from each step on; `./check` tries a share of these.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import takeback
from faults import folders
from faults.children import in_child
from faults.injection import Strike
from marked import MARK, STAGE, plant, search
from spoken import spoken
from takeback.disk import operations
from takeback.effects.saved import care
from takeback.ledger.ledger import Ledger
from takeback.upkeep import forget
from takeback.upkeep import search as proof

FULL = os.environ.get("FAULTS") == "full"
SHARE = 4
pytestmark = pytest.mark.timeout(3600 if FULL else 120)


class Ground:
    """A planted history that can be had again as often as one likes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.tree = folder / "home", folder / "tree"
        self.home.mkdir(mode=0o700)
        self.tree.mkdir()
        self.ids = plant(self.tree, self.home)
        for name in ("home", "tree"):
            shutil.copytree(folder / name, folder / f"{name}-copy", symlinks=True)

    def again(self) -> None:
        """Everything as it was planted."""
        for name in ("home", "tree"):
            folders.put_back(self.folder / name, self.folder / f"{name}-copy")
        (self.home).chmod(0o700)

    def open(self) -> takeback.Project:
        """The project."""
        return takeback.open(self.tree, home=self.home)

    def found(self) -> list[str]:
        """Where the marker still is."""
        return search(self.home, self.tree, self.folder)

    def require_the_rest(self, project: takeback.Project) -> None:
        """What was not forgotten can be read, and the store is whole."""
        verified = project.verify()
        assert [damage.what for damage in verified.damage] == []
        for ref, text in (("start", "one\n"), ("end", "two\n"), ("last", "three\n")):
            assert b"".join(project.read(self.ids[ref], b"plain")).decode() == text
            assert b"".join(project.read(self.ids[ref], b"folder/rest")) == b"stays\n"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The planted history; nothing waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "sync", False)
        yield Ground(tmp_path_factory.mktemp("marked"))


PLACES = {
    "an event": "a deflated event",
    "free pages, deflated": "deflated in ledger.db",
    "a prompt": "table turns",
    "a step": "table steps",
    "a title": "table sessions",
    "a reason": "table restores",
    "a lesson": "table lessons",
    "a relapse": "table relapses",
    "a label": "table checkpoints",
    "a path": "table paths",
    "a file outside": "table outside",
    "a pin": "table kept",
    "free pages": "ledger.db: plain",
    "an object": "objects: plain",
    "a stream of a pack": ".pack at ",
    "a half-written pack": "tmp-1-1",
    "a half-written cache": "index.1.tmp",
    "the stat cache": "index: plain",
    "refs": "packed-refs",
    "a folder of a restore": "left in the tree",
    "a rescued file": "rescue/",
    "a rescued name": ".list",
    "a rescue": "table rescues",
    "the hash of a content": "sha256 of",
    "the id of a content": "blob of",
}


def test_the_search_finds_the_marker_in_all_places(ground: Ground) -> None:
    """What is searched for is really there, and the search sees it in each place."""
    ground.again()
    found = ground.found()
    missing = [name for name, where in PLACES.items() if not any(where in told for told in found)]
    assert missing == []
    assert (ground.tree / STAGE / "n0").exists()


def test_a_marker_in_all_places_is_found_by_no_scan(ground: Ground) -> None:
    """After `forget` it is in no byte of the store, and everything else is as it was."""
    ground.again()
    with ground.open() as project:
        done = project.forget(text=MARK)
        assert done.scanned > 0
        assert ground.found() == []
        ground.require_the_rest(project)
        assert project.turn(ground.ids["turn"]).label == "prompt with (forgotten) in it"
        said = json.dumps([event.payload for event in project.workspace.ledger.events()])
        # A pack is called after what was in it, also one that was merged long ago.
        assert [name for name in ground.ids["packs"].split() if name in said] == []
    assert ground.found() == []
    assert (ground.tree / "loose").read_text() == f"content {MARK}\n"


def test_a_reader_that_will_not_go_is_named(ground: Ground) -> None:
    """While somebody reads the ledger its log cannot be emptied: that is an error, no success."""
    ground.again()
    with ground.open() as project:
        (ledger,) = ground.home.glob("projects/*/ledger.db")
        reader = sqlite3.connect(ledger, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        project.workspace.ledger._db.execute("PRAGMA busy_timeout = 50")
        with pytest.raises(takeback.TakebackError, match="reads the ledger"):
            project.forget(text=MARK)
        assert [d.what for d in project.verify().damage if d.what.code == "forgetting-open"]
        reader.close()
        assert project.continue_forgetting()
        assert ground.found() == []
        ground.require_the_rest(project)


# -- a step left out ---------------------------------------------------------------------------


def _nothing(*_args: object, **_options: object) -> None:
    return None


LEFT_OUT: dict[str, tuple[object, str, object]] = {
    "old packs and caches stay": (forget.Forgetting, "_clean", lambda each, _: each.publish()),
    "rescued files stay": (care, "forget", lambda *_, **__: 0),
    "the ledger is not written anew": (Ledger, "shrink", lambda _ledger: ""),
    "the note stays": (forget.Forgetting, "_end", _nothing),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_step_left_out_is_found(
    ground: Ground, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of its steps the marker is still there, and the search says so."""
    ground.again()
    target, attribute, instead = LEFT_OUT[name]
    monkeypatch.setattr(target, attribute, instead)
    with ground.open() as project:
        monkeypatch.setattr(proof, "prove", lambda *_: 1)
        would = forget.Forgetting._would
        monkeypatch.setattr(forget.Forgetting, "_require_nothing_left", would)
        project.forget(text=MARK)
        assert ground.found() != []


@pytest.mark.parametrize("name", [name for name in LEFT_OUT if name != "the note stays"])
def test_it_notices_itself(ground: Ground, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command never says that it is done when it is not."""
    ground.again()
    target, attribute, instead = LEFT_OUT[name]
    with monkeypatch.context() as patch, ground.open() as project:
        patch.setattr(target, attribute, instead)
        with pytest.raises(takeback.TakebackError, match="not everything was forgotten"):
            project.forget(text=MARK)
    with ground.open() as project:
        assert any("it is finished now" in told for told in spoken(project.recovered))
    assert ground.found() == []


# -- killed, and on a full disk ------------------------------------------------------------------


def _play(ground: Ground, kind: str, at: int) -> Callable[[Callable[..., None]], None]:
    def play(tell: Callable[..., None]) -> None:
        with ground.open() as project:
            strike = Strike(kind, at, tell, lambda _step: None)
            operations.hook = strike
            try:
                project.forget(text=MARK)
                tell({"done": True})
            except (takeback.TakebackError, KeyboardInterrupt) as problem:
                tell({"failed": repr(problem)})
            finally:
                operations.hook = None
                tell({"steps": strike.steps})

    return play


def _steps(ground: Ground) -> int:
    ground.again()
    ended = in_child(_play(ground, "kill", 0))
    assert ended.last("done"), ended
    return int(str(ended.last("steps")))


def _chosen(steps: int, share: int) -> range:
    return range(1, steps + 1) if FULL else range(3, steps + 1, max(1, steps // share))


@pytest.mark.parametrize("kind", ["kill", "full", "torn", "ENOSPC", "EIO", "interrupt"])
def test_it_is_forgotten_whatever_happens_at_any_step(ground: Ground, kind: str) -> None:
    """Killed at a step, with a full disk from it on, and so on: in the end nothing is found."""
    share = SHARE if kind in ("kill", "full") else 1
    for at in _chosen(_steps(ground), share):
        ground.again()
        ended = in_child(_play(ground, kind, at))
        assert not ended.last("crashed"), (at, ended)
        with ground.open() as project:
            if not any("it is finished now" in told for told in spoken(project.recovered)):
                # It had not begun when it was struck down, or was done but for the last word.
                with suppress(takeback.UnknownReferenceError):
                    project.forget(text=MARK)
            assert ground.found() == [], (at, ended.said)
            ground.require_the_rest(project)


def test_killed_and_killed_again(ground: Ground) -> None:
    """Whoever goes on with it may die as well, at any step, and the next one goes on."""
    steps = _steps(ground)
    for first in range(steps // 8, steps, steps // 4)[:: 1 if FULL else 2]:
        for second in _chosen(steps, 1)[:: 5 if FULL else 1]:
            ground.again()
            in_child(_play(ground, "kill", first))
            ended = in_child(_open_again(ground, second))
            with ground.open() as project:
                with suppress(takeback.UnknownReferenceError):
                    project.forget(text=MARK)
                assert ground.found() == [], (first, second, ended.said)
                ground.require_the_rest(project)


def _open_again(ground: Ground, at: int) -> Callable[[Callable[..., None]], None]:
    def play(tell: Callable[..., None]) -> None:
        operations.hook = Strike("kill", at, tell, lambda _step: None)
        with ground.open() as project:
            tell({"recovered": list(spoken(project.recovered))})

    return play
