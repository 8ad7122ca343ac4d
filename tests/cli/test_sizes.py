"""A size with a unit means the same number of bytes wherever it is given."""

import json
import random
from pathlib import Path

import pytest

import takeback
from history import command


@pytest.mark.parametrize("unit", ["KiB", "ki"])
def test_a_kibibyte_has_1024_bytes_in_every_place(tree: Path, home: Path, unit: str) -> None:
    """`config` and `config.toml` take KiB for 1024 bytes; kB stays 1000."""
    (tree / "a.bin").write_bytes(random.Random(1).randbytes(300_000))
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
    size = json.loads(command(tree, "gc", "--json").out)["bytes_after"]
    fits = -(-size // 1024)
    assert fits * 1000 < size
    for text, is_too_small in ((f"{fits} {unit}", False), (f"{fits} kB", True)):
        (home / "config.toml").write_text(f'[retention]\nsize_cap = "{text}"\n')
        written = json.loads(command(tree, "gc", "--dry-run", "--json").out)
        (home / "config.toml").unlink()
        assert command(tree, "config", "--user", "retention.size_cap", text).code == 0
        typed = json.loads(command(tree, "gc", "--dry-run", "--json").out)
        assert [bool(each["warnings"]) for each in (written, typed)] == [is_too_small] * 2
        (home / "config.toml").unlink()


def test_an_age_that_gc_refuses_cannot_be_set(tree: Path, home: Path) -> None:
    """One parser reads ages, too: what `config` takes, `gc` understands."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
    for text in ("0d", "-3", "5 parsecs"):
        assert command(tree, "config", "--user", "retention.days", text).code == 2
    assert command(tree, "gc").code == 0
