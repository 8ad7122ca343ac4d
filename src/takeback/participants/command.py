"""Any other state by commands of the user: `capture` prints a token, `restore TOKEN` restores it.

The commands are argument lists with whole paths, started without a shell, in `/`, with a time
limit. They run at the ends of turns only. Nobody can prepare them, so a restore runs them after
its decision; one that fails is repeated by command.
"""

import os

from takeback.disk import programs
from takeback.errors import ParticipantError, UsageError
from takeback.model.beyond.participants import KINDS, LONGEST_TOKEN, OTHER, Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from takeback.ports import Shelf

SECONDS = 30.0
"""How long a command may take, unless the settings say otherwise."""
_KNOWN = frozenset(("type", "kind", "capture", "restore", "describe", "seconds"))
_LONGEST_SAID = 300
_MOST_LINES = 100


class CommandParticipant:
    """State that two commands capture and restore; a third may describe what would change."""

    can_prepare = False
    each_step = False

    def __init__(
        self,
        name: str,
        capture: "list[str]",
        restore: "list[str]",
        describe: "list[str] | None" = None,
        *,
        kind: str = OTHER,
        seconds: float = SECONDS,
    ) -> None:
        self.name = name
        self.kind = kind
        self._capture = capture
        self._restore = restore
        self._describe = describe
        self._seconds = seconds
        self._due: dict[str, str] = {}

    def attach(self, shelf: "Shelf", /) -> None:
        self._shelf = shelf

    def capture(self) -> str:
        token = self._run("capture", self._capture).strip()
        if not token or len(token.encode()) > LONGEST_TOKEN or not token.isprintable():
            raise ParticipantError(
                f"`capture` printed no token of one line, at most {LONGEST_TOKEN:,} bytes"
            )
        return token

    def describe(self, token: str, /) -> "tuple[Difference, ...]":
        if self._describe is None:
            return () if self._shelf.last == token else (Difference(self.name),)
        lines = self._run("describe", [*self._describe, token]).splitlines()
        return tuple(Difference(line.strip()) for line in lines[:_MOST_LINES] if line.strip())

    def prepare(self, restore: str, token: str, /) -> None:
        self._due[restore] = token

    def commit(self, restore: str, /) -> None:
        token = self._due.pop(restore, None)
        if token is not None:
            self._run("restore", [*self._restore, token])

    def abort(self, restore: str, /) -> None:
        self._due.pop(restore, None)

    def _run(self, what: str, words: "list[str]") -> str:
        try:
            ended = programs.run_limited(words, b"", cwd="/", seconds=self._seconds, capture=True)
        except TimeoutError:
            raise ParticipantError(
                f"`{what}` took longer than {self._seconds:g} s and was stopped",
                hint=f"set `seconds` of `participants.{self.name}`",
            ) from None
        except OSError as problem:
            said = f"`{words[0]}` cannot be started: {problem.strerror}"
            raise ParticipantError(said) from None
        output = ended.output.decode("utf-8", "replace")
        if ended.code:
            said = " ".join(ended.errors.decode("utf-8", "replace").split())[:_LONGEST_SAID]
            how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
            raise ParticipantError(f"`{what}` failed with {how}{f': {said}' if said else ''}")
        return output


def configured(name: str, options: "Mapping[str, object]") -> CommandParticipant:
    """What the settings name by `capture` and `restore`: lists of words."""
    unknown = sorted(options.keys() - _KNOWN)
    if unknown:
        raise UsageError(f"`participants.{name}` has the unknown setting `{unknown[0]}`")
    kind, seconds = options.get("kind", OTHER), options.get("seconds", SECONDS)
    if kind not in KINDS:
        raise UsageError(f"`participants.{name}`: `kind` is one of {', '.join(KINDS)}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise UsageError(f"`participants.{name}`: `seconds` is a number")
    capture, restore = (_words(name, key, options.get(key)) for key in ("capture", "restore"))
    describe = _words(name, "describe", options["describe"]) if "describe" in options else None
    return CommandParticipant(
        name, capture, restore, describe, kind=str(kind), seconds=float(seconds)
    )


def _words(name: str, key: str, value: "Any") -> "list[str]":  # noqa: ANN401 - as a file says it
    is_list = isinstance(value, list) and bool(value)
    if not is_list or not all(isinstance(word, str) and "\0" not in word for word in value):
        raise UsageError(
            f"`participants.{name}` needs `{key}`, a list of words",
            hint=f'such as {key} = ["/usr/bin/env", "{key}-it"]',
        )
    if not os.path.isabs(value[0]):
        raise UsageError(
            f"`participants.{name}`: `{value[0]}` is not a whole path",
            hint="name the program from `/` on: what is looked up could be an agent's",
        )
    return [str(word) for word in value]
