from __future__ import annotations

from typing import Any

import pytest

from flakestorm.demo.server import Ask
from flakestorm.demo.services import FLIGHTS, Services

ORDER = {"flight": "NW-118", "date": "12 May", "passenger": "Ada Lovelace"}


def counts(services: Services) -> Any:
    return services(Ask("GET", "/counts")).body


def test_a_search_lists_the_citys_flights() -> None:
    services = Services()
    answer = services(Ask("GET", "/flights", {"to": "Oslo", "date": "12 May"}))
    assert answer.status == 200
    assert [f["flight"] for f in answer.body["flights"]] == [f["flight"] for f in FLIGHTS["Oslo"]]
    assert services(Ask("GET", "/flights", {"to": "Atlantis"})).body["flights"] == []
    assert counts(services) == {"search": 2, "bookings": 0}


def test_a_booking_is_confirmed_kept_and_counted() -> None:
    services = Services()
    first, again = (services(Ask("POST", "/bookings", body=ORDER)) for _ in range(2))
    assert first.status == 201
    assert first.body["status"] == "confirmed"
    assert first.body == again.body  # the same order has the same reference, in any run
    assert counts(services) == {"book": 2, "bookings": 2}
    assert services.bookings[0]["passenger"] == "Ada Lovelace"


@pytest.mark.parametrize("order", [None, [], {}, {"flight": "NW-118"}, {**ORDER, "flight": "XX-1"}])
def test_what_cannot_be_booked_is_refused_and_not_counted(order: Any) -> None:
    services = Services()
    assert services(Ask("POST", "/bookings", body=order)).status == 422
    assert counts(services) == {"bookings": 0}


def test_other_operations_do_not_exist() -> None:
    assert Services()(Ask("DELETE", "/bookings")).status == 404
