"""What a scripted model does."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

PATIENCE = 240
"""Seconds that a client may take for what must come; machines may be slow."""


class Say(NamedTuple):
    """A text."""

    text: str


class Use(NamedTuple):
    """A call of a tool."""

    tool: str
    given: dict[str, Any]


class Patch(NamedTuple):
    """A call of Codex's `apply_patch`, which takes a text."""

    text: str


class Until(NamedTuple):
    """The answer goes on when somebody lets it."""

    gate: threading.Event


class Fail(NamedTuple):
    """An error instead of an answer, one that clients do not try again."""

    status: int = 400


class Then(NamedTuple):
    """A call of a tool that follows from the request: what the model was told, and its tools."""

    make: Callable[[Any], Use]


Action = Say | Use | Patch | Until | Fail | Then
Answer = list[Action]
