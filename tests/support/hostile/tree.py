"""What a hostile tree is: how to build it, how to change it, and what may be missing from it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from hostile.ground import Ground

ANYONE = "anyone"
PLAIN = "plain user"
ROOT = "root"

Deed = Callable[[Ground], None]


def add_a_file(ground: Ground) -> None:
    """Change a tree a little: the edit between its two checkpoints unless it has its own."""
    ground.file(b"zz edited", b"between the checkpoints\n")


class Tree(NamedTuple):
    """A tree that stands still while it is looked at.

    `left_out` maps each path that must be listed instead of captured to the word for the
    reason. `who` says with whose rights it is captured: root makes devices and mounts, and only
    somebody who is not root is ever refused a file. `prepare` is done with full rights before,
    and `left_out_after` replaces `left_out` where the edit changes it.
    """

    name: str
    build: Deed
    left_out: Mapping[bytes, str] = {}
    who: str = ANYONE
    slow: bool = False
    edit: Deed = add_a_file
    prepare: Deed | None = None
    left_out_after: Mapping[bytes, str] | None = None

    @property
    def needs_root(self) -> bool:
        """Whether only root can build it."""
        return self.who == ROOT or self.prepare is not None

    @property
    def left_out_after_edit(self) -> Mapping[bytes, str]:
        """What must be listed instead of captured once the tree was edited."""
        return self.left_out if self.left_out_after is None else self.left_out_after


def nothing(_ground: Ground) -> None:
    """Do nothing, for trees in which nothing can be changed."""
