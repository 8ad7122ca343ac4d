"""Which scenarios are played without syncs, too: one of each rig, which finds as much as all.

The product always syncs, and a fault strikes at the same steps with syncs and without.
"""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def with_syncs(names: Iterable[str], one: str) -> list[ParameterSet]:
    """Each scenario with syncs, and one without."""
    chosen = [(name, sync) for name in names for sync in (True, False) if sync or name == one]
    return [
        pytest.param(name, sync, id=f"{name}-{'sync' if sync else 'nosync'}")
        for name, sync in chosen
    ]
