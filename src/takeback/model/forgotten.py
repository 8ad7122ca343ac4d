"""What somebody wants to be forgotten, what that would touch, and what came of it; as values."""

import re

from takeback.model.text import json_text
from takeback.model.tree import KIND, NO_HASH, NO_OBJECT, Entry
from takeback.model.value import Value
from takeback.model.words import FORGOTTEN, GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from takeback.model.text.json_text import Json

PATH, CONTENT, TEXT, TURN = "path", "content", "text", "turn"
"""What can be forgotten."""
SHORTEST_TEXT = 4
"""A shorter text is found in half of everything."""
LONGEST_TEXT = 4096
"""What is longer is no text that somebody would say in a prompt."""

OUT_OF_REACH = (
    "out of reach: backups, copies made with `extract`, snapshots of the file system, git remotes "
    "that were pushed to, and what the disk itself still holds of removed files"
)

OURS = frozenset(
    """
    after anew asker authors before changes checkpoint checkpoints deltas detail dropped entry
    events files holder inside kept kind left lesson lessons line looked losses marked objects
    outside owners packs parent partly paths plan process rescued restore root running saves secrets
    session source state status step target took tree turn turns verb view when
    """.split()
)
"""What of an event is made of ids, hashes and words of our own, or is seen to one by one."""


class ForgottenTurn(Value):
    """A turn whose words shall go: its id, its steps, and what it was called."""

    id: str
    label: str
    steps: "frozenset[str]"


class ForgetRequest(Value):
    """What shall be forgotten.

    `paths` are counted from the root, `outside` are whole ones; each with all that is below.
    With `names` their names go, too. `contents` are SHA-256, `objects` what git calls them;
    `texts` are what must stand nowhere, and with `in_files` files that hold one of them are
    forgotten whole.
    """

    kind: str
    id: str
    paths: "tuple[bytes, ...]" = ()
    outside: "tuple[bytes, ...]" = ()
    names: bool = False
    contents: "frozenset[bytes]" = frozenset()
    objects: "frozenset[bytes]" = frozenset()
    texts: "tuple[bytes, ...]" = ()
    in_files: bool = False
    turn: str = ""

    def facts(self) -> "dict[str, Json]":
        return {
            "kind": self.kind,
            "id": self.id,
            "paths": [_text(path) for path in self.paths],
            "outside": [_text(path) for path in self.outside],
            "names": self.names,
            "contents": [strong.hex() for strong in sorted(self.contents)],
            "objects": [oid.hex() for oid in sorted(self.objects)],
            "texts": [_text(text) for text in self.texts],
            "in_files": self.in_files,
            "turn": self.turn,
        }

    @property
    def hashes(self) -> "frozenset[bytes]":
        """What tells of the contents: SHA-256, and the ids that git gives them."""
        return self.contents | self.objects

    # -- what it is about --------------------------------------------------------------------

    def covers(self, path: bytes) -> bool:
        """Whether a path in the project is forgotten, itself or with a folder above it."""
        return _is_at_or_below(path, self.paths)

    def covers_outside(self, path: bytes) -> bool:
        return _is_at_or_below(path, self.outside)

    def leads_to(self, path: bytes) -> bool:
        """Whether something below a folder may be forgotten because of its path."""
        if self.in_files and any(b"/" in text for text in self.texts):
            return True
        if not path:
            return bool(self.paths)
        return any(wanted.startswith(path + b"/") for wanted in self.paths)

    def hides(self, path: bytes) -> bool:
        """Whether the name itself must not be seen any more."""
        if self.names and (self.covers(path) or self.covers_outside(path)):
            return True
        return self.in_files and any(text in path for text in self.texts)

    def patterns(self) -> "list[re.Pattern[str]]":
        """What must not stand in words: the texts, and paths whose names go."""
        found = [re.compile(re.escape(_text(text))) for text in self.texts]
        if self.names:
            # A path is found as a word of its own, or every `a` would go with a file `a`.
            found += [
                re.compile(rf"(?<![\w.\-]){re.escape(_text(path))}(?![\w\-]|\.\w)")
                for path in (*self.paths, *self.outside)
            ]
        return found


def from_facts(facts: "dict[str, Any]") -> ForgetRequest:
    return ForgetRequest(
        str(facts["kind"]),
        str(facts["id"]),
        paths=tuple(map(_bytes, facts["paths"])),
        outside=tuple(map(_bytes, facts["outside"])),
        names=bool(facts["names"]),
        contents=frozenset(map(bytes.fromhex, facts["contents"])),
        objects=frozenset(map(bytes.fromhex, facts["objects"])),
        texts=tuple(map(_bytes, facts["texts"])),
        in_files=bool(facts["in_files"]),
        turn=str(facts["turn"]),
    )


def as_texts(text: bytes) -> "dict[bytes, str]":
    """All the ways in which a text may stand in a file of ours, and what each is called."""
    from base64 import b64encode

    decoded = _text(text)
    found = {text: "as it is"}
    found.setdefault(json_text.dumps(decoded)[1:-1].encode(), "as JSON")
    for way in (text.hex(), text.hex().upper()):
        found.setdefault(way.encode(), "in hex")
    for shift in range(3):
        # Whatever stands before it decides where in a group of three bytes it begins.
        whole = b64encode(bytes(shift) + text)
        certain = whole[(0, 2, 3)[shift] : (shift + len(text)) // 3 * 4]
        if len(certain) >= SHORTEST_TEXT * 2:
            found.setdefault(certain, "in base64")
    return found


class Touched:
    """What forgetting touches; of a preview it would."""

    versions = 0
    """How many different contents go."""
    bytes = 0
    checkpoints = 0
    gone = 0
    """How many checkpoints go as a whole."""
    turns = 0
    events = 0

    def __init__(self) -> None:
        self.paths: list[bytes] = []
        """Where something was, of each path once."""
        self.elsewhere: list[tuple[bytes, bytes]] = []
        """(forgotten path, other path) of contents that stay, because they have another name."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing of it is known here."""
        return not (self.paths or self.versions or self.checkpoints or self.events or self.gone)


class Forgotten:
    """What was forgotten."""

    __slots__ = ("at", "id", "kind", "scanned", "touched")

    def __init__(
        self, wish: ForgetRequest, at: float, touched: "Touched | None", scanned: int
    ) -> None:
        self.id = wish.id
        self.kind = wish.kind
        self.at = at
        self.touched = touched
        """None if it was begun by a process that died, which alone knew."""
        self.scanned = scanned
        """How many bytes were looked through in the end, unpacked."""


def purged(entry: Entry, name: bytes) -> Entry:
    """What stays of an entry: that there was something of this kind."""
    return Entry(name, entry.mode & KIND, FORGOTTEN, 0, NO_HASH, 0, NO_OBJECT)


def _is_at_or_below(path: bytes, wanted: "tuple[bytes, ...]") -> bool:
    return any(path == each or path.startswith(each + b"/") for each in wanted)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: object) -> bytes:
    return str(text).encode("utf-8", "surrogateescape")


_SHORTEST_LINE = 8
"""Characters: a shorter line stands in other texts by chance."""
_AROUND = " \t\r\"',\\"
_ENDS = re.compile(r"(\r?\n|(?:\\r)?\\n)")
"""The end of a line, also in JSON."""
_BEFORE = re.compile(r"[:\t|→]")
"""What stands between a line and the name or number that `grep` and others print before it."""
_MOST_BEFORE = 4
_CUT = "bytes not recorded"


class ForgottenLines:
    """The lines of contents that are forgotten, wherever tools printed them."""

    def __init__(self, contents: "Iterable[bytes]") -> None:
        self.lines: set[str] = set()
        for content in contents:
            lines = (line.strip(_AROUND) for line in content.decode("utf-8", "replace").split("\n"))
            self.lines.update(line for line in lines if len(line) >= _SHORTEST_LINE)

    def cut_from(self, text: str) -> str:
        """A text without these lines."""
        parts = _ENDS.split(text)
        shown = [GONE if self._is_among(part) else part for part in parts]
        if shown == parts:
            return text
        # At the place where it was cut is half a line, perhaps.
        return GONE if _CUT in text else "".join(shown)

    def _is_among(self, part: str) -> bool:
        for _ in range(_MOST_BEFORE):
            if part.strip(_AROUND) in self.lines:
                return True
            found = _BEFORE.search(part)
            if found is None:
                return False
            part = part[found.end() :]
        return False
