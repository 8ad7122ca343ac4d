"""`Value`: what every frozen value can rely on."""

import copy
import pickle

import pytest

from takeback.model.value import Value


class Point(Value):
    """A value with a default."""

    x: int
    y: int = 0


class Named(Point):
    """One with the fields of its base, and its own."""

    name: str = ""


def test_fields_come_by_position_and_by_name() -> None:
    """Defaults fill what is not given; a subclass adds its own fields behind."""
    assert (Point(1).x, Point(1).y, Point(1, y=2).y) == (1, 0, 2)
    assert Named(1, 2, "a") == Named(x=1, y=2, name="a")


def test_values_are_equal_by_their_fields_and_kind() -> None:
    """Also as keys, and when a field has its default; another class is another value."""
    assert Point(1) == Point(1, 0)
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    assert Point(1) != Named(1)


def test_a_value_cannot_change() -> None:
    """Neither a field nor anything else can be set or deleted; `replace` makes another."""
    point = Point(1)
    with pytest.raises(AttributeError, match="frozen"):
        setattr(point, "x", 2)  # noqa: B010
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert point.replace(x=3) == Point(3)
    assert point == Point(1)


@pytest.mark.parametrize(
    ("given", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2})]
)
def test_wrong_fields_are_refused(given: tuple[int, ...], named: dict[str, int]) -> None:
    """Missing, too many, twice or unknown: as with any function."""
    with pytest.raises(TypeError, match="Point"):
        Point(*given, **named)


def test_a_value_can_be_copied_and_sent() -> None:
    """To another process, too."""
    assert copy.copy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)


def test_a_value_shows_its_fields() -> None:
    """In a message or a debugger."""
    assert repr(Named(1, name="a")) == "Named(x=1, name='a')"
