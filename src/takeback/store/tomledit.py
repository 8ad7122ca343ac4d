"""Changes one value in a TOML file; comments, order and everything else stay as they are.

The file is edited line by line, and what came out is read again: if that is not what was there with
just the one value changed, nothing is written.
"""

from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Table = dict[str, object]


def changed(text: str, table: str, key: str, value: "object | None") -> str:
    """The text with `[table] key` set to a value, or without it for None."""
    before = _read(text)
    lines = text.splitlines(keepends=True)
    found = _find(lines, table, key)
    if found is not None:
        start, end = found
        lines[start:end] = [] if value is None else [_line(key, value, lines[start:end])]
    elif value is not None:
        _insert(lines, table, _line(key, value, []))
    after = "".join(lines)
    if _read(after, own=True) != _expected(before, table, key, value):
        raise UsageError(
            f"`{table}.{key}` is written in a way that cannot be changed from here",
            hint="edit the file by hand",
        )
    return after


def written(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    parts = (escapes.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return f'"{"".join(parts)}"'


def _read(text: str, *, own: bool = False) -> "Table":
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        if own:
            return {}
        raise UsageError(
            f"the settings cannot be read: {problem}", hint="mend them first"
        ) from None


def _expected(before: "Table", table: str, key: str, value: "object | None") -> "Table":
    inner = before.get(table, {})
    rest = dict(inner) if isinstance(inner, dict) else {}
    rest.pop(key, None)
    if value is not None:
        rest[key] = value
    return {**before, table: rest} if table in before or rest else before


def _find(lines: "Sequence[str]", table: str, key: str) -> "tuple[int, int] | None":
    """The lines that set a key of a table: from, and up to."""
    here = ""
    number = 0
    while number < len(lines):
        name = _header(lines[number])
        if name is not None:
            here = name
        end = _end(lines, number)
        if here == table and _key(lines[number]) == key:
            return number, end
        number = end
    return None


def _end(lines: "Sequence[str]", start: int) -> int:
    """Where what begins in a line ends: an array or a text may go on for several."""
    if _key(lines[start]) is None:
        return start + 1
    import tomllib

    for end in range(start + 1, len(lines) + 1):
        try:
            tomllib.loads("".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return start + 1


def _header(line: str) -> "str | None":
    bare = line.strip()
    if not bare.startswith("["):
        return None
    return bare.partition("#")[0].strip().strip("[]").strip().strip("\"'")


def _key(line: str) -> "str | None":
    bare = line.strip()
    if not bare or bare[0] in "#[" or "=" not in bare:
        return None
    return bare.partition("=")[0].strip().strip("\"'")


def _line(key: str, value: object, old: "Sequence[str]") -> str:
    """The new line; what stood behind the old value stays behind the new one."""
    return f"{key} = {written(value)}{_remark(old)}\n"


def _remark(old: "Sequence[str]") -> str:
    if len(old) != 1 or "#" not in old[0]:
        return ""
    import tomllib

    line = old[0].rstrip("\r\n")
    at = line.find("#")
    while at >= 0:
        try:
            tomllib.loads(line[:at])
        except tomllib.TOMLDecodeError:
            at = line.find("#", at + 1)
            continue
        return line[len(line[:at].rstrip()) :]
    return ""


def _insert(lines: "list[str]", table: str, line: str) -> None:
    """Put a line at the end of its table, or at the end of the file in a new one."""
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    starts = [n for n, each in enumerate(lines) if _header(each) == table]
    if not starts:
        lines += [*(["\n"] if lines else []), f"[{table}]\n", line]
        return
    at = starts[0] + 1
    number = at
    while number < len(lines) and _header(lines[number]) is None:
        end = _end(lines, number)
        at = end if _key(lines[number]) is not None else at
        number = end
    lines.insert(at, line)
