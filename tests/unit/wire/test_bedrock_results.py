from __future__ import annotations

from flakestorm.wire.bedrock_results import find, holds
from flakestorm.wire.results import Told


def test_results_are_found_and_named_by_their_calls() -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "search", "input": {}}}
    said = {"toolResult": {"toolUseId": "t1", "content": [{"text": "3 hits: "}, {"json": {"a": 1}}, {"image": {}}]}}
    failed = {"toolResult": {"toolUseId": "t2", "content": [{"text": "no"}], "status": "error"}}
    messages = [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [said, failed]},
    ]
    first, second = find({"messages": messages})
    assert (first.call_id, first.name, first.told) == ("t1", "search", Told('3 hits: {"a":1}'))
    assert first.path == ("messages", 2, "content", 0, "toolResult")
    assert (second.call_id, second.name, second.told) == ("t2", "", Told("no", failed=True))
    assert holds(b'{"toolResult":{}}')
    assert not holds(b'{"text":"x"}')


def test_what_does_not_fit_is_passed_over() -> None:
    assert list(find({"messages": ["x", {"content": "x"}, {"content": [1, {"toolResult": 3}]}]})) == []
