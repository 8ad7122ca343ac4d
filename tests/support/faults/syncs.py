"""Which scenarios are played without syncs, too."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from faults.report import FULL


def with_syncs(names: Iterable[str], one: str) -> list[ParameterSet]:
    """Each scenario with syncs and without; in `./check` only one without, which finds as much."""
    pairs = [(name, sync) for name in names for sync in (True, False)]
    chosen = [(name, sync) for name, sync in pairs if FULL or sync or name == one]
    return [
        pytest.param(name, sync, id=f"{name}-{'sync' if sync else 'nosync'}")
        for name, sync in chosen
    ]
