"""The travel agent's tools as a web service: a flight search and a booking desk that count what really happened."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from flakestorm.demo.server import Answer, Ask

__all__ = ["FLIGHTS", "Services"]

FLIGHTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "Oslo": (
        {"flight": "NW-204", "departs": "07:10", "price_eur": 184},
        {"flight": "NW-118", "departs": "13:45", "price_eur": 129},
    ),
    "Lisbon": (
        {"flight": "SR-340", "departs": "09:30", "price_eur": 212},
        {"flight": "SR-342", "departs": "18:05", "price_eur": 175},
    ),
    "Vienna": ({"flight": "AL-77", "departs": "11:20", "price_eur": 98},),
}
"""City -> flights, the same every day."""


class Services:
    """The service's state: bookings made, and how often each operation was carried out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.bookings: list[dict[str, Any]] = []

    def __call__(self, ask: Ask) -> Answer:
        """`GET /flights?to=CITY&date=DAY`, `POST /bookings {"flight", "date", "passenger"}`, `GET /counts`."""
        match ask.method, ask.path:
            case "GET", "/flights":
                return self._search(ask.query)
            case "POST", "/bookings":
                return self._book(ask.body)
            case "GET", "/counts":
                with self._lock:
                    return Answer(body={**self.counts, "bookings": len(self.bookings)})
        return Answer(404, {"error": f"no such operation: {ask.method} {ask.path}"})

    def _search(self, query: Mapping[str, str]) -> Answer:
        with self._lock:
            self.counts["search"] += 1
        city, date = query.get("to", ""), query.get("date", "")
        return Answer(body={"to": city, "date": date, "flights": [dict(flight) for flight in FLIGHTS.get(city, ())]})

    def _book(self, order: Any) -> Answer:
        known = {flight["flight"] for flights in FLIGHTS.values() for flight in flights}
        if not isinstance(order, dict) or order.get("flight") not in known or not order.get("passenger"):
            return Answer(422, {"error": "a booking needs a known 'flight' and a 'passenger'"})
        told = "/".join(str(order.get(key)) for key in ("flight", "date", "passenger"))
        reference = f"FS{sha256(told.encode()).hexdigest()[:6].upper()}"  # the same for the same order, in any run
        with self._lock:
            self.counts["book"] += 1
            self.bookings.append({**order, "reference": reference})
        return Answer(201, {"status": "confirmed", "reference": reference, "flight": order["flight"]})
