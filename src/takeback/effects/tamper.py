"""Whether a call would change the guard, the hooks, an agent's settings or the store.

It looks at words, so it is easily misled by somebody who wants to. It stops mistakes.
"""

import os
import re

from takeback.model import words
from takeback.model.beyond import effects
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.beyond.effects import Judgement

GUARD, HOOKS, RECORDING, STORE, SETTINGS = "guard", "hooks", "recording", "store", "settings"
"""What would be changed."""

_OURS = re.compile(
    r"(?:^|[\s;&|(`'\"/=])(?:takeback|tb|takeback/__main__\.py)(?:\.exe)?['\"]?\s+"
    r"(?:-[-\w]+(?:[= ][^-\s]\S*)?\s+)*"
    r"(?P<verb>guard|config|off|uninstall|forget|projects|gc|verify)\b(?P<rest>[^;&|\n]*)"
)
_REMOVES_US = re.compile(
    r"\b(?:pip[\d.]*|pipx|uv(?: tool| pip)?) (?:uninstall|remove)\b[^;&|\n]*\btakeback\b"
)
_QUOTES = str.maketrans("", "", "'\"\\")
_LIGHTER = re.compile(r"^\s*(?:off|watch|ask|autopilot|allow)\b")
_CONFIG = re.compile(r"\b(?:guard|recording|hooks|retention)\.\w+\s+\S|--unset")
_REMOVES = re.compile(r"--remove\b")


class Protected(Value):
    """Folders and files that no call may change: the store, and each agent's settings.

    Those `in_tree` come back with an undo, so only a call that names one of them counts.
    """

    store: bytes
    home: bytes
    settings: "tuple[bytes, ...]" = ()
    in_tree: "tuple[bytes, ...]" = ()


def found(
    kind: str,
    command: str,
    paths: "Iterable[bytes]",
    judgement: "Judgement",
    protected: Protected,
) -> str:
    """What a call would change that it must not; empty if nothing."""
    if kind == words.READ:
        return ""
    of_paths = _of_paths(paths, protected) or _of_paths(
        (each.path for each in judgement.targets if each.is_known), protected, above=True
    )
    if of_paths or kind != words.SHELL:
        return of_paths
    return _of_words(command) or _of_mention(command, judgement.effect, protected)


def _of_paths(paths: "Iterable[bytes]", protected: Protected, *, above: bool = False) -> str:
    for path in paths:
        if _is_in(path, protected.store) or (above and _is_in(protected.store, path)):
            return STORE
        if path in protected.in_tree or path in protected.settings:
            return SETTINGS
        if above and any(_is_in(each, path) for each in protected.settings):
            return SETTINGS
    return ""


def _is_in(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def _of_words(command: str) -> str:
    """What Takeback's own commands in a command line would change."""
    plain = command.replace("\\\n", " ").translate(_QUOTES)
    for each in _OURS.finditer(plain):
        verb, rest = each["verb"], each["rest"]
        if verb == "guard" and _LIGHTER.search(rest):
            return GUARD
        if verb == "config" and _CONFIG.search(rest):
            return GUARD
        if verb == "uninstall":
            return HOOKS
        if verb == "off":
            return RECORDING
        if verb == "projects" and _REMOVES.search(rest):
            return STORE
    return HOOKS if _REMOVES_US.search(plain) else ""


def _of_mention(command: str, effect: str, protected: Protected) -> str:
    """A protected path in a command that does more than read."""
    if effect == effects.READ:
        return ""
    text = os.fsencode(command).replace(b"${HOME}", b"~").replace(b"$HOME", b"~")
    for path, what in (
        (protected.store, STORE),
        *((each, SETTINGS) for each in (*protected.settings, *protected.in_tree)),
    ):
        shorter = path.replace(protected.home.rstrip(b"/") + b"/", b"~/", 1)
        if path in text or shorter in text:
            return what
    return ""
