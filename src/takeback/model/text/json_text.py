"""Write and read JSON without the `json` module, whose import takes as long as a checkpoint.

The output is canonical: keys in the order given, ASCII only, no blanks. What is read is what was
written here, so nothing stands before or after the value.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def _as_plain(value: "Mapping[str, Json] | Sequence[Json]") -> "dict[str, Json] | list[Json]":
    """What the encoder knows instead of a mapping or a sequence of another class."""
    return dict(value.items()) if hasattr(value, "items") else list(value)


class _AsUsual:
    """What `json.loads` reads things as."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


_encode: "Callable[[Json, Any], Iterable[str]]"
try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner  # what `json` calls
except ImportError:
    from json import JSONDecoder, JSONEncoder

    _scan = JSONDecoder().scan_once  # type: ignore[attr-defined]
    _encode = JSONEncoder(check_circular=False, separators=(",", ":"), default=_as_plain).iterencode
else:
    _scan = make_scanner(_AsUsual)  # type: ignore[arg-type]  # anything with these names will do
    _encode = make_encoder(
        None, _as_plain, encode_basestring_ascii, None, ":", ",", False, False, True
    )


def dumps(value: "Json") -> str:
    return "".join(_encode(value, 0))


def loads(text: str) -> "Any":  # noqa: ANN401 - as `json.loads`
    """What a line that `dumps` wrote says; ValueError or TypeError for anything else."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("this is no JSON") from None
    if end != len(text):
        raise ValueError("something stands behind the JSON")
    return value


def path_fields(path: bytes) -> "dict[str, Json]":
    """A path for JSON: readable, exact where it is not UTF-8, and `.` for the root."""
    path = path or b"."
    try:
        return {"path": path.decode()}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        exact = b2a_base64(path, newline=False).decode()
        return {"path": path.decode("utf-8", "replace"), "path_b64": exact}


def mapped(value: "Any", change: "Callable[[str], str]") -> "Any":  # noqa: ANN401 - as JSON is
    """The same with each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [mapped(each, change) for each in value]
    if isinstance(value, dict):
        return {change(key): mapped(each, change) for key, each in value.items()}
    return value
