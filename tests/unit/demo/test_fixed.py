"""The agent without its bug."""

from __future__ import annotations

from typing import Any

import pytest

from flakestorm.demo.agent import TravelAgent
from flakestorm.demo.fixed import FixedAgent


class Silent:
    """A client that is not asked."""


@pytest.mark.parametrize(("kind", "word"), [(TravelAgent, "status"), (FixedAgent, "error")])
def test_a_booking_that_failed_is_passed_on_as_what_it_is(kind: Any, word: str) -> None:
    agent = kind("http://127.0.0.1:9", Silent())
    assert word in agent.book_flight("NW-118", "12 May", "Ada Lovelace")
