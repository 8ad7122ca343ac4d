"""Ids: letters k to z, so that none is ever mistaken for a git hash.

Names: what people call a checkpoint, on one line.

The name of our folder in a work tree while a restore runs. Scans pass it over.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

ALPHABET = "zyxwvutsrqponmlk"
LENGTH = 12

_TO_LETTERS = str.maketrans("0123456789abcdef", ALPHABET)


def from_entropy(entropy: bytes) -> str:
    """The id that `entropy` (at least 6 bytes) spells."""
    return entropy.hex()[:LENGTH].translate(_TO_LETTERS)


def is_prefix(text: str) -> bool:
    """Whether `text` could be an id or the beginning of one."""
    return 0 < len(text) <= LENGTH and all(letter in ALPHABET for letter in text)


class ShortId(str):
    """The beginning of an id as it is shown, and how many letters of it tell it from all others."""

    __slots__ = ("needed",)

    needed: int

    def __new__(cls, text: str, needed: int) -> "Self":
        made = super().__new__(cls, text)
        made.needed = needed
        return made


LONGEST_NAME = 200


def as_name(label: str) -> str:
    """The name that a label is: one line of text that can be stored, shown and typed again."""
    text = " ".join(label.split())[:LONGEST_NAME]
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


PREFIX = b".takeback-stage-"


def name_of(id: str) -> bytes:
    """The name of the folder of one restore."""
    return PREFIX + id.encode()


def is_stage(name: bytes) -> bool:
    """Whether a name in the root is that of a folder of ours."""
    id = name[len(PREFIX) :].decode("ascii", "replace")
    return name.startswith(PREFIX) and len(id) == LENGTH and is_prefix(id)


AREA = b".takeback-rescue-"
"""How the name of a folder begins that holds rescued files beside a project."""


def is_area(name: bytes) -> bool:
    """Whether a name is that of a folder with rescued files; the project's id follows."""
    return name.startswith(AREA) and is_prefix(name[len(AREA) :].decode("ascii", "replace"))
