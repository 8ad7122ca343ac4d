"""How settings hold our hooks: one class for each kind of text, chosen by `Agent.form`.

Each puts hooks in, finds them by their command line and takes them out again, as text.
"""

from takeback.agents.agent import BLOCK, FILES
from takeback.errors import RefusedError
from takeback.hooks import command
from takeback.hooks.settings import json_settings
from takeback.hooks.settings.json_settings import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.agents.agent import Agent

_MARKS = ("`takeback install` writes this file", "written by takeback install.")
"""What a file of ours says that has no command line in it. The bare words may be in anybody's."""


def of(agent: "Agent") -> "Form":
    """The form of an agent's settings."""
    kinds = {BLOCK: TomlForm, FILES: FileForm}
    return kinds.get(agent.form, JsonForm)(agent)


class Form:
    """A text with hooks: `wanted` is what it shall hold, by the form's own `wanted_by`."""

    language = ""
    """What the text has to be."""

    def __init__(self, agent: "Agent") -> None:
        self.agent = agent

    def wanted_by(
        self, usual: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, object]":
        """What each file shall hold, by its name in the agent's folder; one without a name."""
        raise NotImplementedError

    def lines(
        self, usual: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """The command line of each event."""
        (wanted,) = self.wanted_by(usual, reporting, events).values()
        return {one.event: one.command for one in self.ours(self.put_in("", wanted))}

    def ours(self, text: str) -> "list[Found]":
        """All hooks of ours; an error for a text that is not understood."""
        raise NotImplementedError

    def put_in(self, text: str, wanted: object) -> str:
        """The text with our hooks, and no other of ours."""
        raise NotImplementedError

    def is_complete(self, text: str, wanted: object) -> bool:
        """Whether there is nothing to do."""
        raise NotImplementedError

    def take_out(self, text: str, before: "str | None") -> str:
        """The text without anything of ours; `before` is what it was, None if unknown."""
        raise NotImplementedError

    def is_empty(self, text: str) -> bool:
        """Whether a text says nothing at all."""
        return not text.strip()


class JsonForm(Form):
    """Groups or entries in an object `hooks`."""

    language = "JSON"

    def wanted_by(
        self, usual: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, object]":
        """The group of each event."""
        return {"": self.agent.groups(usual, reporting, events)}

    def ours(self, text: str) -> "list[Found]":
        """By event."""
        return json_settings.ours(text)

    def put_in(self, text: str, wanted: object) -> str:
        """With what the format needs beside hooks."""
        assert isinstance(wanted, dict)  # by `wanted_by`
        return json_settings.put_in(text, wanted, self.agent.preface)

    def is_complete(self, text: str, wanted: object) -> bool:
        """Group by group."""
        assert isinstance(wanted, dict)  # by `wanted_by`
        return json_settings.is_complete(text, wanted)

    def take_out(self, text: str, before: "str | None") -> str:
        """Without the lists that became empty."""
        return json_settings.take_out(text, before, self.agent.preface)

    def is_empty(self, text: str) -> bool:
        """Nothing, or an object without members."""
        return json_settings.is_empty(text)


class TomlForm(Form):
    """Tables `hooks` in a block at the end."""

    language = "TOML"

    def wanted_by(
        self, usual: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, object]":
        """The text of the block."""
        return {"": self.agent.block(usual, reporting, events)}

    def ours(self, text: str) -> "list[Found]":
        """By table."""
        from takeback.hooks.settings import toml_settings

        return toml_settings.ours(text, self.agent.event_key, self.agent.command_key)

    def put_in(self, text: str, wanted: object) -> str:
        """At the end, or where the block stood."""
        from takeback.hooks.settings import toml_settings

        return toml_settings.put_in(text, str(wanted), self.agent.command_key)

    def is_complete(self, text: str, wanted: object) -> bool:
        """Table by table."""
        from takeback.hooks.settings import toml_settings

        return toml_settings.is_complete(text, str(wanted), self.agent.command_key)

    def take_out(self, text: str, before: "str | None") -> str:
        """Table by table, with the comments around them."""
        from takeback.hooks.settings import toml_settings

        return toml_settings.take_out(text, before, command_key=self.agent.command_key)


class FileForm(Form):
    """Files that are ours as a whole, or not at all."""

    language = "text"

    def wanted_by(
        self, usual: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, object]":
        """The text of each file."""
        return dict(self.agent.files(usual, reporting, events))

    def lines(
        self, usual: str, reporting: str, events: "Iterable[str] | None" = None
    ) -> "dict[str, str]":
        """The same for all events: what is in the files is not read."""
        return self.agent.lines(usual, reporting, events)

    def ours(self, text: str) -> "list[Found]":
        """One that stands for the file."""
        is_own = command.is_ours(text) or any(mark in text for mark in _MARKS)
        return [Found("", None, "")] if is_own else []

    def put_in(self, text: str, wanted: object) -> str:
        """As it shall be, unless somebody else has a file of that name."""
        if text and text != wanted and not self.ours(text):
            raise RefusedError(
                "it is not from Takeback",
                hint="move it away, or give it another name, and try again",
            )
        return str(wanted)

    def is_complete(self, text: str, wanted: object) -> bool:
        """To the byte."""
        return text == wanted

    def take_out(self, text: str, before: "str | None") -> str:
        """All of it, if it is ours."""
        del before
        return "" if self.ours(text) else text
