from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.tape.lines import START, Lines, Read, open_seal, seal
from flakestorm.tape.model import Exchange, Recorded

text = st.text(st.characters(exclude_categories=["Cs"]))
times = st.floats(0, 1e9)
headers = st.lists(st.tuples(text, text), max_size=3).map(tuple)
replies = st.builds(
    Recorded,
    status=st.integers(0, 599),
    headers=headers,
    reason=text,
    chunks=st.lists(st.binary() | text.map(str.encode), max_size=4),
    at_ms=st.lists(times, max_size=4),
    stream=st.booleans(),
    end=st.sampled_from(["eof", "client left", "broken"]),
    error=st.none() | text,
)
sites = st.builds(Site, st.sampled_from(["llm", "tool", "mcp", "http"]), st.text(min_size=1), st.integers(1, 99))


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    site = draw(sites)
    said = text, st.sampled_from(["tool", "llm"]), text, st.integers(0, 9)
    here = st.builds(Firing, st.just(site), *said)
    by_way = st.builds(Firing, sites.filter(lambda other: other != site), *said, via=st.just(site))
    return draw(
        st.builds(
            Exchange,
            st.just(site),
            lane=text,
            wire=text,
            method=text,
            url=text,
            headers=headers,
            body=st.binary() | text.map(str.encode),
            reply=replies,
            world=st.none() | replies,
            world_body=st.none() | st.binary(),
            sent=st.integers(0, 3),
            faults=st.lists(here | by_way, max_size=2).map(tuple),
            t_ms=times,
            duration_ms=times,
            n=st.integers(0, 999),
            note=text,
        )
    )


def to_line(exchange: Exchange) -> dict[str, Any]:
    return Lines().line(exchange)[0]


def from_line(line: dict[str, Any]) -> Exchange:
    return Read().exchange(line)


@given(st.lists(exchanges(), max_size=5))
def test_lines_that_refer_to_earlier_ones_read_back_byte_for_byte(run: list[Exchange]) -> None:
    lines, read = Lines(), Read()
    again = run + [replace(exchange, n=exchange.n + 1) for exchange in run]
    for exchange in again:
        line, _, _ = lines.line(exchange)
        assert read.exchange(open_seal(seal(line, START)[0], START)[0]) == exchange


@given(exchanges())
def test_an_exchange_reads_back_byte_for_byte(exchange: Exchange) -> None:
    line, _ = seal(to_line(exchange), START)
    content, _ = open_seal(line, START)
    assert from_line(content) == exchange


def test_a_line_is_json_for_anyone() -> None:
    line, chain = seal({"text": "é\n", "n": 1}, START)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"text": "é\n", "n": 1, "chain": chain.decode()}


def test_a_chat_of_a_thousand_turns_takes_a_kilobyte_per_exchange() -> None:
    lines, read, total, chain, so_far = Lines(), Read(), 0, START, ""
    for turn in range(1000):
        asked, said = (sha256(f"{who} {turn}".encode()).hexdigest() * 2 for who in ("user", "model"))
        so_far += ("," if turn else "") + f'{{"role":"user","content":"{asked[:118]}"}}'
        body = f'{{"model":"gpt-4o","messages":[{so_far}]}}'.encode()
        so_far += f',{{"role":"assistant","content":"{said[:118]}"}}'
        message = {"role": "assistant", "content": said[:118], "refusal": None, "annotations": []}
        usage = {"prompt_tokens": 50 * turn, "completion_tokens": 25, "total_tokens": 50 * turn + 25}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        reply = {"id": f"chatcmpl-{asked[:29]}", "object": "chat.completion", "created": 1760000000 + turn}
        reply |= {"model": "gpt-4o-2024-08-06", "choices": [choice], "usage": usage, "service_tier": "default"}
        answer = json.dumps(reply, indent=2).encode()
        reset = f"Sun, 22 Nov 2026 10:{turn // 60:02}:{turn % 60:02} GMT"
        heard = (("date", reset), ("content-type", "application/json"), ("x-ratelimit-remaining-tokens", str(turn)))
        heard += (("x-request-id", f"req_{said[:32]}"), ("content-length", str(len(answer))))
        exchange = Exchange(
            Site("llm", "gpt-4o", turn + 1),
            lane="1",
            wire="openai_chat",
            url="https://api.openai.com/v1/chat/completions",
            headers=(("content-type", "application/json"), ("content-length", str(len(body)))),
            body=body,
            reply=Recorded(200, heard, "OK", [answer], [turn * 1234.567]),
            sent=1,
            t_ms=turn * 1234.5,
            duration_ms=0.067,
            n=turn,
        )
        line, chain = seal(lines.line(exchange)[0], chain)
        total += len(line)
        if turn % 100 == 99 or turn < 9:
            assert (again := read.exchange(json.loads(line))) == exchange
            assert again.body == body
        else:
            read.exchange(json.loads(line))
    assert total / 1000 <= 1024


def test_where_no_file_is_written_hash_and_memory_are_the_same() -> None:
    lines, kept = Lines(), Lines()
    for n in range(1, 40):
        exchange = asked(n, body=b"[" + b"x" * 1000 + b",1" * n + b"]", reply=b"y" * 1000)
        line, text, said = lines.line(exchange)
        other, again = kept.kept(exchange)
        assert (said, again) == (sha256(exchange.body).digest(),) * 2
        assert (text is None) == (other is None)
        assert text is None or other is None or text.data() == other.data() == exchange.body
        assert line["site"] == str(exchange.site)


def test_a_length_that_is_the_bodys_is_not_written() -> None:
    lines, read = Lines(), Read()
    bodies = [b"one", b"three", b"seven", b"seven"]
    lengths = ["3", "5", "77", "5"]  # the third one lies
    run = [
        Exchange(Site("http", "x", n), headers=(("Content-Length", length), ("a", "b")), body=body, n=n)
        for n, (body, length) in enumerate(zip(bodies, lengths, strict=True), 1)
    ]
    said = [lines.line(exchange)[0] for exchange in run]
    assert [json.loads(json.dumps(line["headers"])) for line in said] == [
        [["Content-Length", None], ["a", "b"]],
        {"as": 0},
        {"as": 0, "but": {"0": "77"}},
        {"as": 0},
    ]
    assert [read.exchange(json.loads(json.dumps(line))) for line in said] == run


def test_bytes_that_are_no_text_are_base64() -> None:
    exchange = Exchange(Site("http", "x", 1), body=b"\xff\xfe")
    assert to_line(exchange)["body"] == {"base64": "//4="}


def test_half_a_surrogate_pair_is_a_question_mark() -> None:
    line, _ = seal({"url": "a\ud800b", "list": [("x", "\udfff")]}, START)
    assert open_seal(line, START)[0] == {"url": "a?b", "list": [["x", "?"]]}


@given(position=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_changed_byte_breaks_the_seal(position: int, byte: int) -> None:
    line, _ = seal(to_line(Exchange(Site("tool", "search", 1), body=b'{"q": "oslo"}')), b"0" * 64)
    position %= len(line) - 1
    changed = line[:position] + bytes([byte]) + line[position + 1 :]
    if changed == line:
        return
    with pytest.raises(ValueError):
        open_seal(changed, b"0" * 64)


def test_a_line_in_another_place_breaks_the_seal() -> None:
    first, chain = seal({"n": 1}, START)
    second, _ = seal({"n": 2}, chain)
    assert open_seal(second, open_seal(first, START)[1])[0] == {"n": 2}
    with pytest.raises(ValueError, match="does not follow from the line before"):
        open_seal(second, START)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b'{"n": 1}', b'{"chain": 3}', b"\xff", b"[" * 5000])
def test_what_is_no_line_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        open_seal(line, START)


GOOD = to_line(Exchange(Site("tool", "search", 1), faults=(Firing(Site("tool", "search", 1), "error", "tool"),)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"site": "search"}, "is not a site"),
        ({"site": 3}, "'site' must be a string"),
        ({"url": None}, "'url' must be a string"),
        ({"headers": [["a"]]}, "'headers' must be pairs"),
        ({"headers": "a"}, "'headers' must be a list"),
        ({"like": 3}, "address 3, which is not there"),
        ({"headers": {"as": 7}}, "block 7, which is not there"),
        ({"body": {"of": 7, "parts": []}}, "refers to text 7, which is not there"),
        ({"reply": {**GOOD["reply"], "sizes": [1]}}, "'sizes' add up to 1 bytes, and the body has 0"),
        ({"reply": {**GOOD["reply"], "sizes": [-1]}}, "'sizes' must hold whole numbers"),
        ({"headers": ["ab"]}, "'headers' must be pairs"),
        ({"headers": [[None, "a"]]}, "'headers' must be pairs"),
        ({"body": 7}, "a body must be"),
        ({"body": {"base64": "?"}}, "base64|padding"),
        ({"reply": None}, "'reply' and 'world' must be objects"),
        ({"world": []}, "'reply' and 'world' must be objects"),
        ({"reply": {**GOOD["reply"], "end": "exploded"}}, "'end' and 'error'"),
        ({"reply": {**GOOD["reply"], "status": "200"}}, "'status' must be a whole number"),
        ({"reply": {**GOOD["reply"], "at_ms": ["1"]}}, "a time must be a number"),
        ({"sent": True}, "'sent' must be a whole number"),
        ({"sent": -1}, "'sent' must be a whole number"),
        ({"faults": ["error"]}, "'faults' must hold objects"),
        ({"faults": [{**GOOD["faults"][0], "family": "magic"}]}, "'family'"),
    ],
)
def test_a_sealed_line_of_another_shape_is_refused(change: dict[str, object], message: str) -> None:
    assert from_line(json.loads(json.dumps(GOOD)))
    with pytest.raises(ValueError, match=message):
        from_line(json.loads(json.dumps({**GOOD, **change})))


def asked(n: int, lane: str = "", body: bytes = b"q", reply: bytes = b"a", t_ms: float = 0.0) -> Exchange:
    site = Site("tool", "search", n + 1)
    return Exchange(
        site, lane=lane, url="https://x.test/", body=body, reply=Recorded(200, chunks=[reply]), n=n, t_ms=t_ms
    )


def test_a_line_of_an_earlier_version_has_no_world_body() -> None:
    line = json.loads(json.dumps(to_line(Exchange(Site("llm", "gpt-4o", 1)))))
    assert "world_body" not in line
    assert from_line(line).world_body is None


@pytest.mark.parametrize("wrong", [3, {"base64": 3}])
def test_a_world_body_must_be_a_body(wrong: object) -> None:
    line = json.loads(json.dumps(to_line(Exchange(Site("llm", "gpt-4o", 1)))))
    with pytest.raises(ValueError, match="a body must be"):
        from_line({**line, "world_body": wrong})
