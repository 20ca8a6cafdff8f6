"""Replacing an attribute and putting back exactly what was there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flakestorm.boundary.seams.patches import Counted, Patch


class Owner:
    def greet(self) -> str:
        return "hello"


class Heir(Owner):
    pass


def loud(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: original(self).upper()


def test_apply_and_revert() -> None:
    before = vars(Owner)["greet"]
    patch = Patch(Owner, "greet", loud)
    patch.apply()
    assert (Owner().greet(), Heir().greet()) == ("HELLO", "HELLO")
    patch.revert()
    assert vars(Owner)["greet"] is before
    patch.revert()
    assert vars(Owner)["greet"] is before


def test_an_attribute_the_class_does_not_define_itself_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"Heir has no greet"):
        Patch(Heir, "greet", loud).apply()
    assert "greet" not in vars(Heir)


def test_a_wrapper_put_on_top_of_ours_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Owner, "greet", Owner.greet)  # whatever happens below is undone
    patch = Patch(Owner, "greet", loud)
    patch.apply()
    ours = Owner.greet
    theirs: Any = lambda self: f"<{ours(self)}>"  # noqa: E731 -- it must be a plain function on the class
    Owner.greet = theirs  # type: ignore[method-assign]
    patch.revert()
    assert Owner().greet() == "<HELLO>"


def test_a_patch_names_what_it_replaces() -> None:
    assert repr(Patch(Owner, "greet", loud)).endswith("Owner.greet>")


def test_the_first_puts_in_and_the_last_takes_out() -> None:
    told: list[str] = []
    counted = Counted(lambda: told.append("in"), lambda: told.append("out"), lambda: told.append("then"))
    with counted.held(), counted.held():
        assert told == ["in", "then", "then"]
    counted.uninstall()
    assert (told[3:], counted.wanted) == (["out"], 0)


def test_what_fails_afterwards_is_taken_out_again() -> None:
    told: list[str] = []

    def fail() -> None:
        raise ValueError("too old")

    counted = Counted(lambda: told.append("in"), lambda: told.append("out"), fail)
    with pytest.raises(ValueError, match="too old"):
        counted.install()
    assert (told, counted.wanted) == (["in", "out"], 0)
