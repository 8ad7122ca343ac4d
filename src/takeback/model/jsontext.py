"""Write JSON without the `json` module, whose import takes as long as a whole checkpoint.

The output is canonical: keys in the order given, ASCII only, no blanks. Reading is rare and
uses `json`.
"""

from _json import encode_basestring_ascii as _quoted  # the C function behind json.dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def dumps(value: "Json") -> str:
    """`value` as one line of JSON."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return str(_quoted(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if hasattr(value, "items"):
        return "{" + ",".join(f"{_quoted(k)}:{dumps(v)}" for k, v in value.items()) + "}"
    return "[" + ",".join(dumps(item) for item in value) + "]"


def path_fields(path: bytes) -> "dict[str, Json]":
    """A path for JSON: readable, and exact where it is not UTF-8."""
    try:
        return {"path": path.decode()}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        exact = b2a_base64(path, newline=False).decode()
        return {"path": path.decode("utf-8", "replace"), "path_b64": exact}
