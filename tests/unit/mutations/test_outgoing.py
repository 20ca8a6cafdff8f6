from dataclasses import replace

from flakestorm.mutations.outgoing import BODY_LIMIT_BYTES, PAUSES_LIMIT_S, Outgoing

REQUEST = Outgoing("POST", "http://agent/ask", headers=(("A", "1"), ("a", "2"), ("B", "3")), body=b"{}")


def test_a_header_takes_the_place_of_all_of_its_name() -> None:
    assert REQUEST.header("A", "x").headers == (("B", "3"), ("A", "x"))


def test_nothing_leads_elsewhere_or_grows_without_end() -> None:
    wild = replace(REQUEST, url="http://other/", body=b"x" * (BODY_LIMIT_BYTES + 1)).sent(
        pieces=100, pause_s=60.0, copies=10_000
    )
    tame = wild.within_limits(REQUEST)
    assert (tame.url, tame.body) == (REQUEST.url, REQUEST.body)
    assert tame.delivery.paused_s <= PAUSES_LIMIT_S + 0.001
    assert tame.delivery.copies == 50
