"""Hostile trees: folders made to break whatever looks at them, as data.

`STILL` trees stand still while they are captured; `MOVING` ones are changed by an adversary at
exactly chosen moments of the scan; `OURS` attack Takeback's own files. Each has a name, and the
groups are those of the fault plan: names, links, kinds, permissions, git shapes, sizes, moving
targets, ours.
"""

from hostile.git_shapes import GIT_SHAPES
from hostile.kinds import KINDS
from hostile.links import LINKS
from hostile.moving import MOVING
from hostile.names import NAMES
from hostile.ours import OURS
from hostile.permissions import PERMISSIONS
from hostile.sizes import SIZES
from hostile.tree import Tree

STILL: tuple[Tree, ...] = (*NAMES, *LINKS, *KINDS, *PERMISSIONS, *GIT_SHAPES, *SIZES)

__all__ = [
    "GIT_SHAPES",
    "KINDS",
    "LINKS",
    "MOVING",
    "NAMES",
    "OURS",
    "PERMISSIONS",
    "SIZES",
    "STILL",
    "Tree",
]
