"""The travel agent with its bug fixed: what `flakestorm demo --replay --fixed` runs."""

from __future__ import annotations

import json
from typing import Any

from flakestorm.demo.agent import TOOL_FAILURES, TravelAgent, main

__all__ = ["FixedAgent"]


class FixedAgent(TravelAgent):
    """Passes a failed booking on as what it is."""

    def book_flight(self, flight: str, date: str, passenger: str) -> Any:
        order = {"flight": flight, "date": date, "passenger": passenger}
        try:
            return self._fetch("/bookings", json.dumps(order).encode())
        except TOOL_FAILURES as error:
            return {"error": f"the booking failed: {error}"}


if __name__ == "__main__":
    main(make=FixedAgent)
