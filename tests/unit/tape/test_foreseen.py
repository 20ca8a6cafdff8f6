"""A request that is known by its bytes is answered, refused and told of exactly as one that is read."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.api.replaying import load_tape
from flakestorm.core.call import Call, Headers, Reply
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain, drive
from flakestorm.core.site import Sites
from flakestorm.core.stream import read
from flakestorm.tape.fingerprint import Requests
from flakestorm.tape.foreseen import Entry, Foreseen
from flakestorm.tape.player import Player
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

URL = "https://api.anthropic.com/v1/messages"
ID, OTHER = "toolu_01AbCdEfGhIjKlMnOpQr", "toolu_99ZzCdEfGhIjKlMnOpZz"
SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwx"
TURNS = 7


def fields(length: int, **changes: str) -> Headers:
    kept = {
        "content-type": "application/json",
        "x-api-key": "sk-ant-none",
        "anthropic-version": "2023-06-01",
        "x-request-id": "0",
        "content-length": str(length),
    }
    return tuple((kept | {name.replace("_", "-"): value for name, value in changes.items()}).items())


def bodies(turns: int = TURNS, *, indent: int | None = None) -> list[bytes]:
    """A chat that grows, of long requests; ids that replies brought, quotes, other scripts and two equal requests."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"begin é \U0001f600 {'long ' * 900}"}]
    found: list[bytes] = []
    for turn in range(turns):
        document = {"model": "claude", "max_tokens": 9, "messages": messages, "stream": False}
        found.append(json.dumps(document, indent=indent, ensure_ascii=False).encode())
        if turn == 3:
            found.append(found[-1])
        messages += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"{ID}{turn}", "name": "f", "input": {}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"{ID}{turn}", "content": f'"{turn}"'}],
            },
        ]
    return [body.replace("é".encode(), b"\\u00e9") for body in found]


def reply(turn: int) -> bytes:
    return json.dumps({"id": f"msg_01AbCdEf{turn}", "content": [{"type": "tool_use", "id": f"{ID}{turn}"}]}).encode()


def record(path: Path, asked: Sequence[bytes]) -> None:
    ticks = itertools.count()
    recorder = Recorder(path, clock=lambda: next(ticks) / 1000, ledger=Ledger(), header={"run": "r"})
    stage = chain(classify(tools=(), sites=Sites()), recorder.outer, recorder.inner)
    for turn, body in enumerate(asked):
        call = Call("POST", URL, fields(len(body)), body, lane="1")
        said = reply(turn)
        assert read(drive(stage(call), lambda _, said=said: Reply(200, (), said), lambda _: None)) == said  # type: ignore[misc]
    recorder.close(output="done")


Outcome = tuple[list[str], list[tuple[int, bytes]], list[str], list[str], int]


def play(path: Path, calls: Iterable[Call], *, foresee: bool, mode: Any = "renamed", live: bool = False) -> Outcome:
    """What became of each call, what was answered, what was wrong, and how many requests had to be read."""
    loaded = load_tape(path, mode=mode, known=())
    matcher = loaded.matcher
    if not foresee:
        matcher.seen = lambda *_: None  # type: ignore[method-assign]
        matcher._names._plain = False
    reads, whole = 0, Requests.read

    def counted(self: Requests, request: Any) -> Any:
        nonlocal reads
        reads += 1
        return whole(self, request)

    player = Player(matcher, telling=loaded.telling, allow_live=live)
    stage = chain(classify(tools=(), sites=Sites()), player.stage)
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Requests, "read", counted)
        for call in calls:
            got = drive(stage(call), lambda _: Reply(299, (), b"live"), lambda _: None)
            answers.append((got.status, read(got)))
    return [str(each) for each in player.played], answers, player.problems, player.missing(), reads


def calls_of(asked: Iterable[bytes], **changes: str) -> Iterator[Call]:
    return (Call("POST", URL, fields(len(body), **changes), body, lane="1") for body in asked)


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tapes") / "chat.tape"
    record(path, bodies())
    return path


def alike(path: Path, calls: Callable[[], Iterable[Call]], **more: Any) -> Outcome:
    """The outcome, which is the same whether or not anything is foreseen."""
    quick, slow = (play(path, calls(), foresee=foresee, **more) for foresee in (True, False))
    assert quick[:4] == slow[:4]
    return quick


def test_what_is_asked_to_the_letter_is_hardly_read(taped: Path) -> None:
    told, answers, problems, missing, reads = alike(taped, lambda: calls_of(bodies()))
    assert [each.rpartition(" ")[2] for each in told] == ["exact"] * (TURNS + 1)
    assert [said for _, said in answers] == [reply(turn) for turn in range(TURNS + 1)]
    assert (problems, missing) == ([], [])
    assert reads <= 2  # the first ones, which nothing was known of
    *_, reads = play(taped, calls_of(bodies()), foresee=False)
    assert reads == TURNS + 1


EDITS: dict[str, Callable[[bytes, int, int], bytes]] = {
    "another byte": lambda body, at, byte: body[:at] + bytes([byte]) + body[at + 1 :],
    "a byte more": lambda body, at, byte: body[:at] + bytes([byte]) + body[at:],
    "a byte less": lambda body, at, _: body[:at] + body[at + 1 :],
    "a blank more": lambda body, at, _: body[:at] + b" " + body[at:],
    "cut short": lambda body, at, _: body[:at],
    "an escape": lambda body, at, _: body[:at] + body[at:].replace(b"e", b"\\u0065", 1),
    "a key twice": lambda body, _, byte: body[:-1] + b', "model": "claude%d"}' % (byte % 2),
    "a list twice": lambda body, _, byte: body[:-1] + b', "messages": [%d]}' % byte,
    "an escaped key twice": lambda body, _, byte: body[:-1] + b', "mess\\u0061ges": [%d]}' % byte,
    "a secret": lambda body, at, _: body[:at] + SECRET.encode() + body[at:],
    "a placeholder": lambda body, at, _: body[:at] + b"[secret:0a1b2c3d]" + body[at:],
    "another id": lambda body, *_: body.replace(ID.encode(), OTHER.encode()),
    "another script": lambda body, at, _: body[:at] + "ü".encode() + body[at:],
    "half a character": lambda body, at, _: body[:at] + b"\xc3" + body[at:],
    "nothing": lambda *_: b"",
}
edits = st.tuples(
    st.sampled_from(sorted(EDITS)), st.floats(0, 1), st.integers(0, 255), st.integers(0, TURNS), st.booleans()
)


def edited(asked: list[bytes], todo: Iterable[tuple[str, float, int, int, bool]]) -> list[bytes]:
    """Each edit is made in one request, or in that one and all that go on from it."""
    asked = list(asked)
    for kind, share, byte, turn, stays in todo:
        at = int(share * len(asked[turn]))
        for later in range(turn, len(asked) if stays else turn + 1):
            asked[later] = EDITS[kind](asked[later], min(at, len(asked[later])), byte)
    return asked


@settings(max_examples=100, deadline=None)
@given(todo=st.lists(edits, min_size=1, max_size=3), mode=st.sampled_from(["renamed", "strict"]))
def test_an_edit_at_any_byte_is_told_alike(taped: Path, todo: list[Any], mode: str) -> None:
    asked = edited(bodies(), todo)
    alike(taped, lambda: calls_of(asked), mode=mode)


@settings(max_examples=5, deadline=None)
@given(todo=st.lists(edits, min_size=1, max_size=2))
def test_an_edit_is_scored_alike(taped: Path, todo: list[Any]) -> None:
    asked = edited(bodies(), todo)
    alike(taped, lambda: calls_of(asked), mode="scored")


@settings(max_examples=60, deadline=None)
@given(
    order=st.lists(st.integers(0, TURNS), min_size=1, max_size=12),
    lanes=st.lists(st.sampled_from("123"), min_size=12, max_size=12),
)
def test_any_order_on_any_lanes_is_told_alike(taped: Path, order: list[int], lanes: list[str]) -> None:
    asked = bodies()
    alike(
        taped,
        lambda: (
            Call("POST", URL, fields(len(asked[n])), asked[n], lane=lane) for n, lane in zip(order, lanes, strict=False)
        ),
        live=True,
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "x_request_id": st.sampled_from(["1", "2", SECRET, "2026-11-22T10:00:00Z"]),
                "x_api_key": st.sampled_from(["sk-ant-none", "sk-ant-other", "claude-claude"]),
                "anthropic_version": st.sampled_from(["2023-06-01", "2024-01-01"]),
                "content_length": st.sampled_from(["1", SECRET]),
                "cookie": st.just("a=bcdefghi"),
            },
        ),
        min_size=TURNS + 1,
        max_size=TURNS + 1,
    )
)
def test_other_heads_are_told_alike(taped: Path, changes: list[dict[str, str]]) -> None:
    asked = bodies()
    alike(
        taped,
        lambda: (
            Call("POST", URL, fields(len(body), **each), body, lane="1")
            for body, each in zip(asked, changes, strict=True)
        ),
    )


@pytest.mark.parametrize(
    ("method", "url", "upload"),
    [("PUT", URL, None), ("POST", f"{URL}?beta=1", None), ("POST", f"{URL}#x", None), ("POST", URL, object())],
)
def test_another_address_or_method_or_a_streamed_body_is_told_alike(
    taped: Path, method: str, url: str, upload: object
) -> None:
    asked = bodies()
    *first, last = asked[:5]

    def calls() -> Iterator[Call]:
        yield from calls_of(first)
        yield Call(method, url, fields(len(last)), last, upload, lane="1")
        yield from calls_of(asked[5:])

    alike(taped, calls)


@settings(max_examples=25, deadline=None)
@given(first=st.integers(0, TURNS), todo=st.lists(edits, max_size=2), indent=st.sampled_from([None, 1]))
def test_other_tapes_are_told_alike(first: int, todo: list[Any], indent: int | None) -> None:
    """What was recorded may be anything: not JSON, with secrets, in another spelling."""
    recorded = edited(bodies(indent=indent), todo)[first:]
    with tempfile.TemporaryDirectory() as folder:
        record(path := Path(folder, "other.tape"), recorded)
        *_, problems, missing, _ = alike(path, lambda: calls_of(recorded))
        assert (problems, missing) == ([], [])
        alike(path, lambda: calls_of(bodies()[first:]))


def test_an_id_that_is_another_one_from_some_turn_on_is_renamed_and_what_was_heard_before_counts(taped: Path) -> None:
    """The recorded reply brought an id, which stood for itself until then; so no other may stand for it now."""
    asked = bodies()
    late = [*asked[:5], *(body.replace(f"{ID}2".encode(), f"{OTHER}2".encode()) for body in asked[5:])]
    told, *_ = alike(taped, lambda: calls_of(late))
    assert [each.split(" ")[1].rstrip(":") for each in told[:5]] == ["exact"] * 5
    assert "diverged" in told[5]


def test_secrets_in_a_body_are_compared_as_the_tape_tells_them(tmp_path: Path) -> None:
    asked = [body.replace(b"begin", f"use {SECRET}".encode()) for body in bodies()]
    record(path := tmp_path / "secret.tape", asked)
    assert SECRET.encode() not in path.read_bytes()
    _, _, problems, missing, _ = alike(path, lambda: calls_of(asked))
    assert (problems, missing) == ([], [])
    other = [body.replace(SECRET.encode(), SECRET[::-1].encode()) for body in asked]
    assert alike(path, lambda: calls_of(other))[2]


def test_a_secret_learned_on_the_way_makes_it_read_again(taped: Path) -> None:
    asked = bodies()

    def calls() -> Iterator[Call]:
        yield from calls_of(asked[:3])
        yield Call("GET", "https://a.test/", (("authorization", "Bearer begin \\u00e9 long long"),), lane="1")
        yield from calls_of(asked[3:5])
        yield Call("GET", "https://a.test/", (("authorization", f"Bearer {ID}1"),), lane="2")
        yield from calls_of(asked[5:])

    alike(taped, calls, live=True)


def test_what_else_a_lane_asks_in_between_is_no_hindrance(tmp_path: Path) -> None:
    asked, tool = bodies(), b'{"q": 1}'

    def calls() -> Iterator[Call]:
        for turn, body in enumerate(asked):
            yield from calls_of([body])
            yield Call("POST", "https://tool.test/find", (), b'{"q": %d}' % turn, lane="1")
            yield Call("GET", "https://tool.test/find", (), lane="1")

    ticks = itertools.count()
    recorder = Recorder(path := tmp_path / "t.tape", clock=lambda: next(ticks), ledger=Ledger(), header={"run": "r"})
    stage = chain(classify(tools=(), sites=Sites()), recorder.outer, recorder.inner)
    for call in calls():
        read(drive(stage(call), lambda _: Reply(200, (), tool), lambda _: None))
    recorder.close()
    *_, problems, missing, reads = alike(path, calls)
    assert (problems, missing) == ([], [])
    assert reads <= 2 * 3


def test_places_are_not_kept_for_ever(taped: Path) -> None:
    foreseen, body = Foreseen([]), bodies(1)[0]
    entry = load_tape(taped, known=()).matcher.entries[0]
    for lane in range(200):
        foreseen.was(Call("POST", URL, (), body, lane=str(lane)), entry, 0)
    assert len(foreseen._last) <= 64


def test_an_entry_keeps_what_is_new_in_its_body(taped: Path) -> None:
    entries = load_tape(taped, known=()).matcher.entries
    assert all(entry.rest is not None and entry.text is not None for entry in entries)
    assert [len(entry.rest or b"") < 400 for entry in entries[1:]] == [True] * TURNS
    assert [entry.then for entry in entries] == [*entries[1:], None]
    assert isinstance(entries[0], Entry)
