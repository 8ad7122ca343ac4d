"""The guard against labelled commands, and against commands that hide what they do."""

import json
from pathlib import Path

import pytest

from guarding import class_of
from takeback.model.effects import DESTRUCTIVE, INSIDE, IRREVERSIBLE, LOCAL, OPAQUE, PROGRAM, READ

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


@pytest.mark.parametrize("name", ["commands_own.jsonl", "commands_seen.jsonl"])
def test_grave_commands_are_found_and_others_run(name: str) -> None:
    """Nearly all that is irreversible or destructive is found; nearly nothing else is refused."""
    found = [(row["command"], row["class"], class_of(row["command"])) for row in rows(name)]
    for effect in (IRREVERSIBLE, DESTRUCTIVE):
        missed = [each for each in found if each[1] == effect and each[2] != effect]
        of_class = [each for each in found if each[1] == effect]
        assert len(missed) <= 0.02 * len(of_class), missed
    harmless = [each for each in found if each[1] in {READ, INSIDE, LOCAL, PROGRAM}]
    refused = [each for each in harmless if each[2] in {OPAQUE, IRREVERSIBLE}]
    assert len(refused) <= 0.01 * len(harmless), refused


@pytest.mark.parametrize("name", ["evasions_own.jsonl", "evasions_seen.jsonl"])
def test_what_hides_is_never_harmless(name: str) -> None:
    """Quoting, encodings, variables, aliases and nested shells make no command lighter."""
    light = [
        row["command"] for row in rows(name) if class_of(row["command"]) in {READ, INSIDE, LOCAL}
    ]
    assert light == []
