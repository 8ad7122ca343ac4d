"""Recorded payloads, sent from a project as if the client were there."""

import json
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import heard
from takeback.model.history import RecordedTurn

PAYLOADS = Path(__file__).parent / "payloads"


class Played:
    """A project, and recorded payloads that were sent from it."""

    def __init__(self, project: takeback.Project, tree: Path, client: str) -> None:
        self.project = project
        self.tree = tree
        self._client = client
        self._count = 0

    def tell(self, name: str, **more: object) -> dict[str, Any]:
        """One recorded event, some time after the one before."""
        text = (PAYLOADS / self._client / f"{name}.json").read_text()
        payload = json.loads(text.replace("/project", str(self.tree)))
        self._count += 1
        if isinstance(payload.get("timestamp"), int):
            payload["timestamp"] += self._count
        elif "timestamp" in payload:
            payload["timestamp"] = f"2026-11-16T18:37:{self._count:02}.000Z"
        return heard({**payload, **more})

    def again(self) -> None:
        """The next event happens when the last one did."""
        self._count -= 1

    def turns(self) -> list[RecordedTurn]:
        """The turns in the log, the oldest first."""
        log = self.project.log().turns
        return [self.project.turn(turn.id) for turn in reversed(log)]


def client(name: str) -> pytest.MarkDecorator:
    """The test is played by one client."""
    return pytest.mark.parametrize("played", [name], indirect=True, ids=[name])
