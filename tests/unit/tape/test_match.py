import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.match import Matcher
from replay_support import RECORDED_S, REPLAYED_S, SPANS, against, chat, exchange, matcher, reply, request

A, B, C = (f"{n}b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c" for n in range(3))


def test_the_same_request_is_exact() -> None:
    assert against(exchange(0, chat("hi")), request(chat("hi"))).outcome == "exact"


def test_a_volatile_token_is_renamed_and_told() -> None:
    match = against(exchange(0, chat(f"hi {A}")), request(chat(f"hi {B}")))
    assert (match.outcome, match.details) == ("renamed", (f"{A} -> {B}",))
    assert against(exchange(0, chat(f"hi {A}")), request(chat(f"hi {B}")), "strict").outcome == "diverged"


def test_one_token_stands_for_one_all_through_the_run() -> None:
    tape = matcher(exchange(0, chat(f"a {A}")), exchange(1, chat(f"b {A}")))
    assert tape.match(request(chat(f"a {B}")), "1").outcome == "renamed"
    assert tape.match(request(chat(f"b {C}")), "1").outcome == "diverged"
    assert tape.match(request(chat(f"b {B}")), "1").outcome == "renamed"
    two = matcher(exchange(0, chat(f"a {A}")), exchange(1, chat(f"b {B}")))
    assert two.match(request(chat(f"a {C}")), "1").outcome == "renamed"
    assert two.match(request(chat(f"b {C}")), "1").outcome == "diverged"


def test_what_a_reply_brought_stands_for_itself() -> None:
    tape = matcher(exchange(0, chat("hi"), reply(f"your order is {A}")), exchange(1, chat(f"cancel {A}")))
    first = tape.match(request(chat("hi")), "1")
    assert first.entry is not None
    assert tape.heard(first.entry.reply.body.decode()) == []
    assert tape.match(request(chat(f"cancel {B}")), "1").outcome == "diverged"
    assert tape.match(request(chat(f"cancel {A}")), "1").outcome == "exact"


def test_a_reply_that_repeats_a_renamed_token_is_renamed() -> None:
    tape = matcher(exchange(0, chat(f"hi {A}"), reply(f"hello {A}")))
    tape.match(request(chat(f"hi {B}")), "1")
    assert tape.heard(f"hello {A}") == [(6, 42, B)]


def test_two_looks_at_the_clock_may_fall_into_one_second() -> None:
    old = [exchange(n, chat(f"{word} at {int(RECORDED_S)}")) for n, word in enumerate(("a", "b"))]
    tape = matcher(*old)
    assert tape.match(request(chat(f"a at {int(REPLAYED_S)}")), "1").outcome == "renamed"
    assert tape.match(request(chat(f"b at {int(REPLAYED_S) + 1}")), "1").outcome == "renamed"


def test_identical_requests_are_answered_in_order_of_arrival() -> None:
    tape = matcher(*(exchange(n, chat("hi")) for n in range(3)))
    assert [tape.match(request(chat("hi")), "1").entry.n for _ in range(3)] == [0, 1, 2]  # type: ignore[union-attr]
    extra = tape.match(request(chat("hi")), "1")
    assert (extra.outcome, "3 times" in extra.details[0]) == ("extra", True)


def test_a_lane_goes_on_with_its_own() -> None:
    rounds = [exchange(n, chat("round", str(n // 2)), lane=str(n % 2), duration_ms=1000.0) for n in range(6)]
    tape = matcher(*rounds)
    order = [(n // 2, "x" if n % 2 else "y") for n in range(6)]
    found = [tape.match(request(chat("round", str(n))), lane) for n, lane in order]
    assert [match.entry.lane for match in found if match.entry] == ["0", "1"] * 3
    assert {match.outcome for match in found} == {"exact"}


def test_a_broken_order_is_told() -> None:
    tape = matcher(exchange(0, chat("a")), exchange(1, chat("b")))
    assert tape.match(request(chat("b")), "1").outcome == "exact"
    assert tape.match(request(chat("a")), "1").outcome == "reordered"


def test_what_was_not_asked_for_is_missing() -> None:
    tape = matcher(exchange(0, chat("a")), exchange(1, chat("b")), exchange(2, chat("c")))
    tape.match(request(chat("b")), "1")
    assert [str(entry.site) for entry in tape.missing()] == ["llm/gpt-4o#1", "llm/gpt-4o#3"]
    near = tape.match(request(chat("d")), "1")
    assert near.entry is tape.entries[0]
    assert [entry.n for entry in tape.missing()] == [2]


def test_a_divergence_names_the_nearest_and_the_difference() -> None:
    tape = matcher(exchange(0, chat("a", "b", "c")), exchange(1, chat("a 5")), exchange(2, {"model": "x"}))
    match = tape.match(request(chat("a", "b", "d")), "1")
    assert match.entry is tape.entries[0]
    assert (match.outcome, match.details) == ("diverged", ('messages[2].content: "c" -> "d"',))
    other = tape.match(request(chat("a 5"), headers=()), "1")
    assert "the credential is another one" in other.details


def test_numbers_of_json_rpc_messages_mean_nothing_elsewhere() -> None:
    def rpc(n: int, token: int):
        params = {"name": "f", "arguments": {"x": 1}, "_meta": {"progressToken": token}}
        return {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}

    tape = matcher(exchange(0, rpc(1, 1)), exchange(1, rpc(2, 2)))
    first, second = tape.match(request(rpc(7, 7)), "1"), tape.match(request(rpc(7, 7)), "1")
    assert (first.outcome, first.rpc, second.rpc) == ("renamed", {"1": "7"}, {"2": "7"})


def test_outputs_are_compared_as_requests_are() -> None:
    tape = matcher(exchange(0, chat(f"hi {A}")))
    tape.match(request(chat(f"hi {B}")), "1")
    assert tape.same(f"done {A}", f"done {B}")
    assert not tape.same(f"done {A}", f"done {C}")
    assert not tape.same("done", "done.")


@given(st.permutations(range(8)))
def test_eight_lanes_that_ask_alike_each_get_one(order: list[int]) -> None:
    rounds = [exchange(n, chat("hi"), lane=str(n), duration_ms=500.0) for n in range(8)]
    then = [exchange(8 + n, chat("then"), lane=str(n), duration_ms=500.0) for n in range(8)]
    tape = matcher(*rounds, *then)
    first = {lane: tape.match(request(chat("hi")), f"l{lane}").entry for lane in order}
    second = {lane: tape.match(request(chat("then")), f"l{lane}") for lane in reversed(order)}
    assert sorted(entry.n for entry in first.values() if entry) == list(range(8))
    for lane, match in second.items():
        entry = first[lane]
        assert entry is not None
        assert match.entry is not None
        assert (match.entry.lane, match.outcome) == (entry.lane, "exact")


def test_lookup_does_not_grow_with_the_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = matcher(*(exchange(n, chat("hi"), lane=str(n % 8), duration_ms=900.0) for n in range(4000)))
    tried = 0
    fit = type(tape._names).fit

    def counted(*args):
        nonlocal tried
        tried += 1
        return fit(*args)

    monkeypatch.setattr(type(tape._names), "fit", counted)
    for n in range(4000):
        assert tape.match(request(chat("hi")), f"l{n % 8}").outcome == "exact"
    assert tried == 4000


def test_a_growing_chat_is_kept_once() -> None:
    turns = [f"turn {n}" for n in range(200)]
    tape = Matcher((exchange(n, chat(*turns[: n + 1])) for n in range(200)), spans=SPANS)
    assert len(tape._requests._parts) == 201  # the turns and the model
    assert {tape.match(request(chat(*turns[: n + 1])), "1").outcome for n in range(200)} == {"exact"}


@pytest.mark.parametrize("order", [["1", "1.job1", "1.job2"], ["1.job2", "1.job1", "1"], ["1.job2", "1", "1.job1"]])
def test_jobs_that_ask_alike_get_their_own_whoever_comes_first(order: list[str]) -> None:
    lanes = ["1.job2", "1", "1.job1"]  # as they came when it was recorded
    tape = matcher(*(exchange(n, chat("hi"), lane=lane, duration_ms=500.0) for n, lane in enumerate(lanes)))
    found = {lane: tape.match(request(chat("hi")), lane).entry for lane in order}
    assert {lane: entry.lane for lane, entry in found.items() if entry} == {lane: lane for lane in lanes}


def test_a_job_that_is_not_on_the_tape_gets_what_is_left() -> None:
    tape = matcher(exchange(0, chat("hi"), lane="1"), exchange(1, chat("hi"), lane="2"))
    found = [tape.match(request(chat("hi")), lane).entry for lane in ("1.job1", "1")]
    assert [entry.lane for entry in found if entry] == ["1", "2"]
