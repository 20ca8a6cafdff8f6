import json

from flakestorm.mutations.outgoing import Outgoing
from mutations_support import mutations

BEFORE = Outgoing("POST", "http://agent/ask", headers=(("Content-Type", "application/json"),), body=b'{"input": "hi"}')


def changed(kind: str, count: int = 6) -> list[tuple[str, Outgoing]]:
    return [(m.operator, m.change(BEFORE)) for m in mutations(kind, "hi", count=count) if m.change]


def depth(value: object) -> int:
    found = 0
    while isinstance(value, (dict, list)) and value:
        value, found = (next(iter(value.values())) if isinstance(value, dict) else value[0]), found + 1
    return found


def test_sizes_nesting_and_keys_go_far_and_the_input_stays() -> None:
    assert max(len(one.body) for _, one in changed("payload_size_attack")) >= 100_000
    bodies = {name: json.loads(one.body) for name, one in changed("resource_exhaustion", 12) if name != "long_number"}
    assert all(body["input"] == "hi" for body in bodies.values())
    assert depth(bodies["nested_objects"]["nested"]) >= 50
    assert len(bodies["many_keys"]) >= 1_000


def test_copies_are_several_and_pauses_are_long() -> None:
    assert all(one.delivery.copies >= 2 for _, one in changed("concurrent_request_pattern"))
    assert all(
        one.delivery.pieces >= 2 and one.delivery.pause_s >= 0.2 for _, one in changed("timeout_manipulation", 12)
    )


def test_blank_space_is_the_same_document() -> None:
    for name, one in changed("payload_size_attack", 20):
        if name == "blank_space":
            assert json.loads(one.body) == json.loads(BEFORE.body)
