import copy
import dataclasses
import pickle

import pytest
from msgspec import field

from flakestorm.core.record import Record


class Point(Record, frozen=True):
    """A place."""

    x: int
    y: int = 0
    names: "list[Unknown]" = field(default_factory=list)  # noqa: F821 -- known to the type checker only


class Place(Point, frozen=True):
    """One with a name."""

    called: str = ""


def test_it_is_a_value() -> None:
    assert Point(1) == Point(x=1, y=0)
    assert Point(1) != Place(1)
    assert repr(Point(1)) == "Point(x=1, y=0, names=[])"
    assert Point(1).names is not Point(1).names
    with pytest.raises(AttributeError):
        Point(1).y = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point(z=1)  # type: ignore[call-arg]
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_it_can_be_copied_and_sent() -> None:
    place = Place(1, called="home")
    assert copy.deepcopy(place) == pickle.loads(pickle.dumps(place)) == place


def test_dataclasses_take_it_for_one_of_theirs() -> None:
    place = Place(1, names=["a"], called="home")
    assert dataclasses.is_dataclass(Place)
    assert dataclasses.is_dataclass(place)
    assert [f.name for f in dataclasses.fields(place)] == ["x", "y", "names", "called"]
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "names"]
    assert dataclasses.replace(place, y=7) == Place(1, 7, ["a"], "home")
    assert dataclasses.asdict(place) == {"x": 1, "y": 0, "names": ["a"], "called": "home"}


def test_its_fields_say_what_they_default_to() -> None:
    x, y, names, called = dataclasses.fields(Place)
    assert x.default is x.default_factory is dataclasses.MISSING
    assert (y.default, called.default) == (0, "")
    assert names.default_factory is list
    assert (y.type, names.type) == (int, "list[Unknown]")
