"""What a tool may be given, and what of a call is no such thing: said in one sentence."""

from takeback.errors import UsageError
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from takeback.model.text.json_text import Json

TEXT, TEXTS, WORDS, COUNT, FLAG = "text", "texts", "words", "count", "flag"
"""A text on one line; several; one that may have several lines; a number from 1 on; yes or no."""
_SCHEMAS: "dict[str, dict[str, Json]]" = {
    TEXT: {"type": "string"},
    WORDS: {"type": "string"},
    TEXTS: {"type": "array", "items": {"type": "string"}},
    COUNT: {"type": "integer", "minimum": 1},
    FLAG: {"type": "boolean"},
}
_MOST_TEXTS = 100
_LONGEST_NAME = 60


class Parameter(Value):
    """One thing that a tool takes. `most` is the longest text, or the largest number."""

    name: str
    kind: str
    text: str
    required: bool = False
    most: int = 400

    def schema(self) -> "dict[str, Json]":
        limit: dict[str, Json] = {}
        if self.kind in (TEXT, WORDS):
            limit = {"maxLength": self.most}
        elif self.kind == COUNT:
            limit = {"maximum": self.most}
        return {**_SCHEMAS[self.kind], **limit, "description": self.text}


def schema(parameters: "Sequence[Parameter]") -> "dict[str, Json]":
    """The JSON schema of a tool's input."""
    return {
        "type": "object",
        "properties": {each.name: each.schema() for each in parameters},
        "required": [each.name for each in parameters if each.required],
        "additionalProperties": False,
    }


def checked(
    tool: str, parameters: "Sequence[Parameter]", given: "Mapping[str, object]"
) -> "dict[str, Any]":
    """What was given, if it is what the tool takes; what is missing or null is left out."""
    known = {each.name: each for each in parameters}
    takes = ", ".join(f"`{name}`" for name in known) or "nothing"
    for name in given:
        if name not in known:
            raise UsageError(f"`{tool}` has no argument `{_short(name)}`", hint=f"it takes {takes}")
    found = {
        name: _value(parameter, given[name])
        for name, parameter in known.items()
        if given.get(name) is not None
    }
    for parameter in parameters:
        if parameter.required and not found.get(parameter.name):
            raise UsageError(f"`{tool}` needs `{parameter.name}`", hint=parameter.text)
    return found


def _value(parameter: Parameter, value: object) -> object:
    if parameter.kind == FLAG:
        return _of_type(parameter, value, bool, "true or false")
    if parameter.kind == COUNT:
        number = _of_type(parameter, value, int, f"a whole number from 1 to {parameter.most}")
        if isinstance(number, bool) or not 1 <= number <= parameter.most:
            raise _wrong(parameter, f"a whole number from 1 to {parameter.most}")
        return number
    if parameter.kind == TEXTS:
        texts = _of_type(parameter, value, list, "a list of texts")
        if len(texts) > _MOST_TEXTS:
            raise _wrong(parameter, f"a list of at most {_MOST_TEXTS} texts")
        return [_text(parameter, each) for each in texts]
    return _text(parameter, value)


def _text(parameter: Parameter, value: object) -> str:
    text: str = _of_type(parameter, value, str, "a text")
    if len(text) > parameter.most:
        raise _wrong(parameter, f"at most {parameter.most:,} characters long")
    allowed = "\n\t" if parameter.kind == WORDS else ""
    if any(
        (c < " " and c not in allowed) or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text
    ):
        raise _wrong(parameter, "text without control characters")
    return text


def _of_type(parameter: Parameter, value: object, kind: type, what: str) -> "Any":  # noqa: ANN401
    if not isinstance(value, kind):
        raise _wrong(parameter, what)
    return value


def _wrong(parameter: Parameter, what: str) -> UsageError:
    return UsageError(f"`{parameter.name}` has to be {what}", hint=parameter.text)


def _short(name: object) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(name))
    return text if len(text) <= _LONGEST_NAME else text[:_LONGEST_NAME] + "…"
