"""Packs under each other's names: found, and nothing wrong is read."""

from pathlib import Path

import oracle
import takeback
from history import command
from spoken import spoken


def _swap(one: Path, other: Path) -> None:
    for suffix in (".pack", ".idx"):
        between = one.with_suffix(".between")
        one.with_suffix(suffix).rename(between)
        other.with_suffix(suffix).rename(one.with_suffix(suffix))
        between.rename(other.with_suffix(suffix))


def test_packs_that_changed_names_are_found(tree: Path, home: Path, tmp_path: Path) -> None:
    """Two packs under each other's names: verify and doctor say so, and what is read is right."""
    states = {}
    with takeback.open(tree, home=home) as project:
        for number in range(2):
            (tree / "file").write_bytes(bytes([number]) * 100)
            states[project.checkpoint().id] = oracle.picture(tree)
    packs = sorted((home / "projects" / project.id).glob("git/objects/pack/*.pack"))
    assert len(packs) == 2
    _swap(*packs)
    said = command(tree, "doctor")
    assert said.code == 4
    assert packs[0].stem in said.out
    with takeback.open(tree, home=home) as project:
        assert any(packs[0].stem in what for what in spoken(project.verify().problems))
        for id, picture in states.items():
            project.extract(id, tmp_path / id)
            assert oracle.differences(picture, oracle.picture(tmp_path / id)) == []
        _swap(*packs)
        assert project.verify().ok
