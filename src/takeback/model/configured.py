"""A setting as it is now, and what in a settings file does not fit."""

DEFAULT, USER, PROJECT, ENVIRONMENT = "default", "user", "project", "environment"
"""Where a value comes from."""


class Configured:
    """One setting: its value, and where that comes from."""

    __slots__ = ("default", "name", "origin", "text", "value")

    def __init__(self, name: str, value: object, origin: str, default: object, text: str) -> None:
        self.name = name
        self.value = value
        self.origin = origin
        self.default = default
        self.text = text


class Misfit:
    """Something in a settings file that does not fit: `name` is empty if it is the whole file.

    One that `is_refused` stops whoever needs that setting; any other does nothing.
    """

    __slots__ = ("hint", "is_refused", "name", "origin", "path", "problem")

    def __init__(
        self,
        origin: str,
        path: bytes,
        name: str,
        problem: str,
        hint: str,
        *,
        is_refused: bool = True,
    ) -> None:
        self.origin = origin
        self.path = path
        self.name = name
        self.problem = problem
        self.hint = hint
        self.is_refused = is_refused
