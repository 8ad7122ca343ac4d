"""A restore that somebody disturbs at a step of it, or does without the rights of root."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cases import Work
from faults.report import stage
from hostile.ground import PLAIN_USER
from hostile.stage import in_child as in_own_world
from takeback.disk import operations


@contextmanager
def hooked(hook: Callable[[str, tuple[object, ...]], None]) -> Iterator[None]:
    """Let somebody act before each step."""
    before, operations.hook = operations.hook, hook
    try:
        yield
    finally:
        operations.hook = before


def as_plain_user(play: Callable[[Work], None], prepare: Callable[[Path], None]) -> None:
    """Let an ordinary user work in a tree of his that somebody with all rights prepared."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files of somebody else's")
    with stage() as folder:
        folder.chmod(0o755)
        for name in ("tree", "home"):
            (folder / name).mkdir(mode=0o700)
            os.chown(folder / name, PLAIN_USER, PLAIN_USER)
        prepare(folder / "tree")

        def played() -> None:
            work = Work(folder / "tree", folder / "home")
            play(work)
            work.close()

        in_own_world(played, plain=True)
