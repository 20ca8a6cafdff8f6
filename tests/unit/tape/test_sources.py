from __future__ import annotations

import json
from typing import Any

import pytest

from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange
from flakestorm.tape.sources import compare, source_of


def asked(n: int, body: Any, *, name: str = "search", **more: Any) -> Exchange:
    return Exchange(Site("tool", name, n), url="https://tools.test/search", body=json.dumps(body).encode(), n=n, **more)


@pytest.mark.parametrize(
    ("one", "two", "where", "source"),
    [
        ("id 8addec8a-1f4c-444e-b004-8118798fe995", "id 25381931-2922-4ac9-8c06-2382fb990518", "", "uuid"),
        ("25381931292240c98c062382fb990518", "8addec8a1f4c444eb0048118798fe995", "id", "uuid"),
        ("now: 2026-11-22T12:43:41.052", "now: 2026-11-22T12:43:44.847", "", "clock"),
        ("It is Mon, 22 Nov 2026 12:43:41", "It is Mon, 22 Nov 2026 12:43:59", "", "clock"),
        ("1795351421.052", "1795351424.8", "at", "clock"),
        ("1795351421052", "1795351424800", "at", "clock"),
        ("/tmp/tmpab12/x.csv", "/tmp/tmpzz98/x.csv", "file", "temp path"),
        ("read /var/folders/ab/c1/T/x", "read /var/folders/ab/c2/T/x", "", "temp path"),
        ("http://127.0.0.1:45351/done", "http://127.0.0.1:37243/done", "callback", "port"),
        ("45351", "37243", "port", "port"),
        ("4711", "4812", "pid", "pid"),
        ("worker of process 4711 is up", "worker of process 4812 is up", "", "pid"),
        ("0.4838118798995", "0.9383128899212", "temperature", "random"),
        ("key 9f86d081884c7d65", "key 2c26b46b68ffc68f", "", "random"),
        ("<Tool object at 0x7f31d2a0>", "<Tool object at 0x7f99b1c0>", "", "random"),
        ('["a", "b", "c"]', '["c", "a", "b"]', "tags", "hash seed"),
        ("pay 3", "pay 4", "amount", "unknown"),
        ("the red one", "the green one", "", "unknown"),
        ("x 2026-01-01 y 8addec8a-1f4c-444e-b004-8118798fe995",
         "x 2026-01-02 y 25381931-2922-4ac9-8c06-2382fb990518", "", "unknown"),
    ],
)  # fmt: skip
def test_the_look_of_a_difference_names_its_source(one: str, two: str, where: str, source: str) -> None:
    assert source_of(one, two, where) == source
    assert source_of(two, one, where) == source


def test_equal_runs_have_no_differences() -> None:
    run = [asked(1, {"a": 1, "b": [1, 2]}), asked(2, {"q": "x"})]
    noise = (("Date", "today"), ("Content-Length", "9"))
    again = [asked(1, {"b": [1, 2], "a": 1}, headers=noise), asked(2, {"q": "x"})]
    assert compare(run, again, ("said", "said")) == []


def test_the_smallest_part_is_named() -> None:
    def saying(text: str) -> Exchange:
        said = {"role": "user", "content": "x" * 500 + text}
        return asked(1, {"messages": [{"role": "user", "content": "pid 1"}, said]})

    (found,) = compare([saying("one")], [saying("two")])
    assert (found.site, found.where) == ("tool/search#1", "messages[1].content")
    assert found.recorded == f"...{'x' * 40}one"


def test_headers_urls_and_methods_count() -> None:
    one = asked(1, {}, headers=(("Anthropic-Version", "1"),))
    two = asked(1, {}, headers=(("anthropic-version", "2"),), method="PUT")
    two.url += "?page=2"
    assert [each.where for each in compare([one], [two])] == ["method", "url", "header anthropic-version"]


def test_calls_that_changed_places_are_concurrency() -> None:
    found = compare([asked(1, {"q": "a"}), asked(2, {"q": "b"})], [asked(1, {"q": "b"}), asked(2, {"q": "a"})])
    assert [(each.site, each.source) for each in found] == [
        ("tool/search#1", "concurrency"), ("tool/search#2", "concurrency"),
    ]  # fmt: skip


def test_an_order_within_a_request_is_the_hash_seed() -> None:
    (found,) = compare([asked(1, {"tags": ["a", "b"]})], [asked(1, {"tags": ["b", "a"]})])
    assert (found.where, found.source) == ("tags", "hash seed")


def test_calls_of_one_run_only_and_outputs() -> None:
    found = compare([asked(1, {}), asked(2, {})], [asked(1, {}), asked(1, {}, name="pay")], ("yes", "no"))
    assert [(each.site, each.where) for each in found] == [
        ("tool/search#2", "missing"), ("tool/pay#1", "extra"), ("output", "body"),
    ]  # fmt: skip


def test_bodies_that_are_no_json_are_compared_as_text() -> None:
    one, two = Exchange(Site("http", "x", 1), body=b"a=1\xff"), Exchange(Site("http", "x", 1), body=b"a=2\xff")
    (found,) = compare([one], [two])
    assert (found.where, found.recorded) == ("body", "a=1�")
