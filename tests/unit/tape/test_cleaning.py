from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.site import Site
from flakestorm.tape.cleaning import Cleaner
from flakestorm.tape.delta import common_prefix
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.redact import Redactor

SECRET = "sk-" + "ant-9aF3kLm2Qx7Zt0Vb5Wn8"


def of(body: bytes = b"", reply: Recorded | None = None) -> Exchange:
    return Exchange(Site("llm", "m", 1), url="https://x.test/", body=body, reply=reply or Recorded(200))


def cleaned(exchange: Exchange) -> tuple[Exchange, str]:
    redactor = Redactor("0", known=())
    clean = Cleaner(redactor).exchange(exchange)
    return clean, redactor.placeholder(SECRET.encode()).decode()


def test_an_exchange_without_secrets_is_the_very_same() -> None:
    exchange = of(b'{"max_tokens": 100}', Recorded(200, chunks=[b"hello"]))
    assert cleaned(exchange)[0] is exchange


def test_a_secret_of_the_reply_is_taken_out_of_the_request_too() -> None:
    exchange = of(b"is it qwertyuiop?", Recorded(200, chunks=[b'{"password": "qwertyuiop"}']))
    clean, _ = cleaned(exchange)
    assert b"qwertyuiop" not in clean.body + clean.reply.body
    assert exchange.body == b"is it qwertyuiop?"


def events(*words: str) -> list[bytes]:
    said = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
    return [f"data: {json.dumps(each)}\n\n".encode() for each in said]


@given(st.integers(1, len(SECRET) - 1), st.integers(1, len(SECRET) - 1))
def test_a_secret_in_several_events_is_taken_out(one: int, two: int) -> None:
    one, two = sorted((one, two))
    chunks = events("The key is ", SECRET[:one], SECRET[one:two], SECRET[two:] + " indeed", ".")
    clean, stands = cleaned(of(reply=Recorded(200, chunks=chunks, at_ms=[0.0] * 5, stream=True)))
    said = [json.loads(chunk.removeprefix(b"data: "))["choices"][0]["delta"]["content"] for chunk in clean.reply.chunks]
    assert "".join(said) == f"The key is {stands} indeed."
    assert len(clean.reply.chunks) == 5


@given(st.lists(st.integers(0, 120), max_size=6))
def test_a_secret_in_several_chunks_is_taken_out(cuts: list[int]) -> None:
    body = b"".join(events("The key is ", f"{SECRET} and {SECRET}"))
    chunks = [body[a:b] for a, b in pairwise([0, *sorted(cuts), len(body)])]
    clean, stands = cleaned(of(reply=Recorded(200, chunks=chunks, at_ms=[0.0] * len(chunks), stream=True)))
    assert clean.reply.body == body.replace(SECRET.encode(), stands.encode())
    assert len(clean.reply.chunks) == len(chunks)


def test_a_compressed_reply_is_kept_unpacked_where_it_holds_a_secret() -> None:
    headers = (("content-encoding", "gzip"), ("content-length", "99"))
    reply = Recorded(200, headers, chunks=[gzip.compress(SECRET.encode())], at_ms=[1.0])
    clean, stands = cleaned(of(reply=reply))
    assert clean.reply.chunks == [stands.encode()]
    assert clean.reply.headers == (("content-length", str(len(stands))),)
    harmless = of(reply=replace(reply, chunks=[gzip.compress(b"hello")]))
    assert cleaned(harmless)[0] is harmless


texts = st.lists(
    st.sampled_from(["a flight to Oslo ", "x" * 300, f" {SECRET} ", "qwertyuiop", '{"password": "qwertyuiop"}', "é"]),
    max_size=5,
).map("".join)


@given(st.lists(texts, min_size=1, max_size=8))
def test_what_grows_is_cleaned_as_if_it_had_come_at_once(turns: list[str]) -> None:
    cleaner, messages = Cleaner(Redactor("0", known=())), []
    for turn in ["x" * 600, *turns]:
        messages.append({"role": "user", "content": turn})
        body = json.dumps({"messages": messages, "model": "gpt"}, ensure_ascii=False).encode()
        assert cleaner.exchange(of(body)).body == Redactor("0", known=()).body(body)


@pytest.mark.parametrize("place", ["url", "note", "world_body", "error"])
def test_every_other_place(place: str) -> None:
    exchange = of()
    if place == "error":
        exchange.reply = Recorded(0, error=f"no: {SECRET}")
    else:
        said = f"https://x.test/{SECRET}"
        setattr(exchange, place, said.encode() if place == "world_body" else said)
    clean, stands = cleaned(exchange)
    assert SECRET not in repr(clean)
    assert stands in repr(clean)


@given(st.lists(texts, min_size=1, max_size=8), st.integers(0, 700))
def test_what_is_known_to_be_repeated_hides_no_secret(turns: list[str], less: int) -> None:
    """The bodies are given as the recorder has them, with what `classify` found out about each."""
    redactor = Redactor("0", known=())
    cleaner, messages, before = Cleaner(redactor), [], b""
    for turn in ["x" * 600, *turns]:
        messages.append({"role": "user", "content": turn})
        body = json.dumps({"messages": messages, "model": "gpt"}, ensure_ascii=False).encode()
        same = max(0, common_prefix(before, body) - less)
        clean = cleaner.exchange(of(body), known=redactor.version, repeats=(body, before, same))
        assert clean.body == Redactor("0", known=()).body(body)
        if (ends := cleaner.ends) is not None:
            assert ends.before is before
            assert (body[: ends.prefix], body[len(body) - ends.suffix :]) == (
                before[: ends.prefix],
                before[len(before) - ends.suffix :],
            )
        before = body


def test_what_is_said_of_another_body_is_not_taken_for_this_one() -> None:
    cleaner, head = Cleaner(Redactor("0", known=())), "y" * 600
    first, second = (json.dumps({"messages": [head, said]}).encode() for said in ("a flight", f"use {SECRET}"))
    cleaner.exchange(of(first))
    assert SECRET.encode() not in cleaner.exchange(of(second), repeats=(bytes([*second]), first, len(first))).body
