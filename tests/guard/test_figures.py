"""The guard against labelled commands, and against commands that hide what they do."""

import json
from pathlib import Path

import pytest

from guarding import class_of
from takeback.model.beyond.effects import (
    DESTRUCTIVE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    OPAQUE,
    PROGRAM,
    READ,
)

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


@pytest.mark.parametrize("name", ["own", "seen", "blind"])
def test_grave_commands_are_found_and_others_run(name: str) -> None:
    """Nearly all that is irreversible or destructive is found; nearly nothing else is refused."""
    labelled = rows(f"commands_{name}.jsonl")
    found = [(row["command"], row["class"], class_of(row["command"])) for row in labelled]
    for effect in (IRREVERSIBLE, DESTRUCTIVE):
        missed = [each for each in found if each[1] == effect and each[2] != effect]
        of_class = [each for each in found if each[1] == effect]
        assert len(missed) <= 0.02 * len(of_class), missed
    harmless = [each for each in found if each[1] in {READ, INSIDE, LOCAL, PROGRAM}]
    refused = [each for each in harmless if each[2] in {OPAQUE, IRREVERSIBLE}]
    assert len(refused) <= 0.01 * len(harmless), refused


@pytest.mark.parametrize("name", ["own", "seen", "blind"])
def test_what_hides_is_never_harmless(name: str) -> None:
    """Quoting, encodings, variables, aliases and nested shells make no command lighter."""
    hiding = [row["command"] for row in rows(f"evasions_{name}.jsonl")]
    light = [each for each in hiding if class_of(each) in {READ, INSIDE, LOCAL}]
    # What is known to slip through is in the blind set, which nobody looked at while building.
    assert len(light) <= (0.02 * len(hiding) if name == "blind" else 0), light
