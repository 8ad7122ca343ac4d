"""`Value`: the base of frozen values, made from the annotations of their class.

Dataclasses take longer to import than a checkpoint takes; this does the little that values need.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Tell type checkers what `Value` does; at run time there is nothing to tell."""
        return lambda kind: kind


def path_text(path: bytes) -> str:
    """A path as `os.fsdecode` gives it: names that are no UTF-8 have surrogate escapes."""
    return path.decode("utf-8", "surrogateescape")


def path_bytes(text: str) -> bytes:
    """A path as `os.fsencode` gives it: the inverse of `path_text`."""
    return text.encode("utf-8", "surrogateescape")


@dataclass_transform(frozen_default=True)
class Value:
    """Fields are what a class annotates; a value of the class body is the field's default."""

    _fields: "ClassVar[tuple[str, ...]]" = ()
    _names: "ClassVar[frozenset[str]]" = frozenset()
    _required: "ClassVar[frozenset[str]]" = frozenset()

    def __init_subclass__(cls) -> None:
        own = [name for name in cls.__annotations__ if name not in cls._fields]
        cls._fields += tuple(own)
        cls._names = frozenset(cls._fields)
        cls._required = frozenset(name for name in cls._fields if not hasattr(cls, name))

    def __init__(self, *values: object, **named: object) -> None:
        fields = self.__dict__
        fields.update(zip(self._fields, values, strict=False))
        if not named and len(values) == len(self._fields):
            return
        if named:
            if not named.keys() <= self._names - fields.keys():
                raise TypeError(f"{type(self).__name__}: {sorted(named.keys() - self._names)}")
            fields.update(named)
        if len(values) > len(self._fields) or not self._required <= fields.keys():
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._fields)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; `replace` makes another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def replace(self, **changes: object) -> "Self":
        return type(self)(**{**self.__dict__, **changes})

    def _parts(self) -> "tuple[object, ...]":
        return tuple([getattr(self, name) for name in self._fields])

    def __eq__(self, other: object) -> bool:
        return NotImplemented if type(other) is not type(self) else self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        """What it holds; what has its default is left out, and paths are text."""
        names = [
            name.removeprefix("raw_")
            for name in self._fields
            if name in self._required or getattr(self, name) != getattr(type(self), name)
        ]
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({shown})"
