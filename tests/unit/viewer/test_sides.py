from dataclasses import replace
from pathlib import Path

from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.viewer.recording import Line, Recording
from flakestorm.viewer.sides import Pair, pairs, words
from viewer_support import recorded


class Held(Recording):
    """A recording in memory."""

    def __init__(self, *exchanges: Exchange) -> None:
        super().__init__(Path("x"), [Line(each, str(each.site), {}) for each in exchanges])
        self.held = exchanges

    def exchanges(self, begin=0, end=None):
        return iter(self.held[begin:end])


def one(name: str, n: int = 1, body: bytes = b"{}", said: bytes = b"{}", url: str = "http://t.test/x") -> Exchange:
    return Exchange(Site("tool", name, n), url=url, body=body, reply=Recorded(200, chunks=[said]))


def test_exchanges_are_paired_by_site_and_the_rest_stands_where_it_belongs() -> None:
    left = Held(one("a"), one("b"), one("c"))
    right = Held(one("z"), one("a"), one("n"), one("c", said=b"[]"))
    assert pairs(left, right) == [
        Pair(None, 0),
        Pair(0, 1, asked=True, said=True),
        Pair(None, 2),
        Pair(1, None),
        Pair(2, 3, asked=True, said=False),
    ]


def test_one_side_may_be_empty() -> None:
    assert pairs(Held(), Held(one("a"))) == [Pair(None, 0)]
    assert pairs(Held(one("a")), Held()) == [Pair(0, None)]


def test_the_order_of_keys_and_a_local_port_make_no_difference() -> None:
    left = one("a", body=b'{"x": 1, "y": 2}', url="http://127.0.0.1:40001/f?q=1")
    right = one("a", body=b'{"y": 2, "x": 1}', url="http://127.0.0.1:50001/f?q=1")
    assert pairs(Held(left), Held(right))[0].same
    assert not pairs(Held(left), Held(replace(right, url="http://127.0.0.1:50001/f?q=2")))[0].asked


def test_what_a_model_said_is_compared_by_its_meaning(tmp_path: Path) -> None:
    left, right = (Recording.read(recorded(tmp_path / f"{n}.tape", text=f"Oslo {n}.")) for n in (1, 2))
    again = Recording.read(recorded(tmp_path / "again.tape", text="Oslo 1."))
    assert all(pair.same for pair in pairs(left, again))
    assert [pair.same for pair in pairs(left, right)] == [False, True, False]
    said = words(left.exchange(0), right.exchange(0))
    assert said["asked"] == ['messages[1].text: "Oslo 1." -> "Oslo 2."']
    assert said["said"] == ['text: "Oslo 1." -> "Oslo 2."']
