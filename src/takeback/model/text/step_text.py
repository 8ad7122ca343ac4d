"""What a tool was given and what it said, as it is recorded: cut to size, without secrets."""

from takeback.model.text import json_text, masking, secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from takeback.model.text.json_text import Json

    Store = Callable[[bytes], str]
    """Takes the content of a file; returns the id of the object that holds it."""

LIMIT = 16 << 10
"""Bytes that are recorded of an input, and of an output."""
_LONGEST_VALUE = LIMIT * 3 // 4
"""Bytes of one text in an input: with what is around it, it mostly stays below the limit."""
_MARGIN = 4 << 10
"""Characters at the edge of a piece that are not recorded: a secret may be cut in two there."""
_LONG_CONTENT = 1 << 10
_DEEPEST = 20
_MARK_IN_PATCH = b"*** "
_CONTENT_KEYS = frozenset(
    """
    content contents filetext newstring oldstring newstr oldstr newsource inserttext
    codeedit newcontent diff patch replacement
    """.split()
)
_MASK = secrets.MASK.decode()
_LONGEST_PAIR = 400


class StepText:
    """Makes the recorded text of steps.

    `values` are those of the project's secret files, `names` what the user calls secret files.
    """

    def __init__(self, values: "Iterable[str]", names: "Iterable[str]" = ()) -> None:
        self._values = sorted(set(values), key=len, reverse=True)
        self._names = tuple(names)

    def output(self, text: str) -> str:
        """What a tool said."""
        return self._shortened(text, LIMIT)

    def masked_input(
        self,
        given: "Mapping[str, object]",
        store: "Store | None",
        paths: "Iterable[bytes]" = (),
    ) -> "dict[str, Json]":
        """What a tool was given; long contents of files as ids of objects, if they are stored.

        `paths` are those it names: what is written to a secret file is masked as that file is.
        """
        path = next((each for each in paths if self.how_secret(each) != secrets.PLAIN), b"")
        return {
            self.masked(str(name)): self._walked(str(name), value, path, store, 1)
            for name, value in given.items()
        }

    def how_secret(self, path: bytes) -> str:
        """How much of a file is secret, also by the names that the user added."""
        how = secrets.how_secret(path)
        return secrets.added(path, self._names) if how == secrets.PLAIN else how

    def _walked(
        self, key: str, value: object, path: bytes, store: "Store | None", depth: int
    ) -> "Json":
        if isinstance(value, str):
            return self._text(key, value, path, store)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth > _DEEPEST:
            return "…"
        if isinstance(value, dict):
            return {
                self.masked(str(name)): self._walked(str(name), each, path, store, depth + 1)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._walked(key, each, path, store, depth + 1) for each in value]
        return self._shortened(str(value), _LONGEST_VALUE)

    def _text(self, key: str, text: str, path: bytes, store: "Store | None") -> "Json":
        plain = key.lower().replace("_", "").replace("-", "")
        is_content = plain in _CONTENT_KEYS
        if (is_content and store is not None) or (path and (is_content or "\n" in text)):
            content = self._content(text, path)
            if is_content and store is not None and len(content) > _LONG_CONTENT:
                return {"object": store(content), "bytes": len(content)}
            text = content.decode("utf-8", "replace")
        if len(key) + len(text) < _LONGEST_PAIR:
            # `{"password": "x"}` is known by its name only.
            pair = self.masked(f"{key}={text}")
            return pair.removeprefix(f"{key}=") if pair.startswith(f"{key}=") else _MASK
        return self._shortened(text, _LONGEST_VALUE)

    def _content(self, text: str, path: bytes) -> bytes:
        """The content of a file without secrets: as the file has it, if there are none."""
        if not path:
            return self.masked(text).encode()
        lines = text.encode("utf-8", "replace").splitlines(keepends=True)
        mask = secrets.Mask(path, lines, self.how_secret(path))
        return b"".join(
            self.masked(line.decode("utf-8", "replace")).encode()
            if line.startswith(_MARK_IN_PATCH)
            else mask.line(number)
            for number, line in enumerate(lines)
        )

    def masked(self, text: str) -> str:
        """A text without known values and without what looks like a secret."""
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        for value in self._values:
            if value in text:
                text = text.replace(value, _MASK)
        return masking.without_secrets(text)

    def _shortened(self, text: str, limit: int) -> str:
        if len(text) <= 2 * LIMIT:
            shown = self.masked(text)
            return shown if _size(shown) <= limit else _ends(shown, shown, _size(shown), limit)
        head, tail = self.masked(text[:LIMIT]), self.masked(text[-LIMIT:])
        return _ends(head[:-_MARGIN], tail[_MARGIN:], _size(text), limit)


def cut_input(masked: "dict[str, Json]") -> "Json":
    """An input as it is recorded: a text, if it is too long for all of it."""
    text = json_text.dumps(masked)
    if len(text) > LIMIT:
        import json

        # As it is read: escaped, a Cyrillic letter takes six bytes and not two.
        text = json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
    return masked if _size(text) <= LIMIT else _ends(text, text, _size(text), LIMIT)


def _ends(head: str, tail: str, size: int, limit: int) -> str:
    """Head and tail, half of the limit each, and between them how much is missing."""
    half = limit // 2 - 40
    first = head.encode("utf-8", "replace")[:half].decode("utf-8", "ignore")
    last = tail.encode("utf-8", "replace")[-half:].decode("utf-8", "ignore")
    return f"{first}\n… {size - _size(first) - _size(last):,} bytes not recorded …\n{last}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
