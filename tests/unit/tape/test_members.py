from __future__ import annotations

from typing import Any

import pytest

from flakestorm.tape.members import listed, number, text_of, whole_of

LINE: dict[str, Any] = {"list": [1], "text": "a", "whole": 3, "true": True, "below": -1, "none": None}


def test_a_member_of_its_type_is_given() -> None:
    assert (listed(LINE, "list"), text_of(LINE, "text"), whole_of(LINE, "whole")) == ([1], "a", 3)
    assert (number(2), number(2.5)) == (2.0, 2.5)


def test_a_missing_one_has_its_usual_value() -> None:
    assert (listed(LINE, "no", []), text_of(LINE, "no", ""), whole_of(LINE, "no", 1)) == ([], "", 1)


@pytest.mark.parametrize(
    ("read", "name"),
    [
        *((listed, "text"), (listed, "no"), (text_of, "list"), (text_of, "none"), (text_of, "no")),
        *((whole_of, "text"), (whole_of, "true"), (whole_of, "below"), (whole_of, "no")),
    ],
)
def test_one_of_another_type_is_named(read: Any, name: str) -> None:
    with pytest.raises(ValueError, match=repr(name)):
        read(LINE, name)


@pytest.mark.parametrize("value", [True, "1", None])
def test_a_time_is_a_number(value: object) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        number(value)
