import json

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Call
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.redact import Redactor
from flakestorm.tape.telling import Telling
from replay_support import URL, exchange, matcher, reply

KEY = "f" * 32
SECRET = "planted-secret-1"


def telling(*known: str) -> Telling:
    return Telling(Redactor(KEY, known=known))


def stands(secret: str) -> str:
    return Redactor(KEY, known=()).placeholder(secret.encode()).decode()


def call(body: object, **headers: str) -> Call:
    return Call("POST", URL, tuple(headers.items()), json.dumps(body).encode())


def test_a_call_is_told_as_the_tape_tells_it_whatever_process_tells_it() -> None:
    told = telling(SECRET).told(call({"q": f"use {SECRET}"}, authorization="Bearer another-key-2"))
    assert told.headers == (("authorization", f"Bearer {stands('another-key-2')}"),)
    assert json.loads(told.body) == {"q": f"use {stands(SECRET)}"}
    assert telling().told(call({"q": "another-key-2"}, authorization="Bearer another-key-2")).body == (
        json.dumps({"q": stands("another-key-2")}).encode()
    )


def test_what_the_agent_got_from_the_tape_is_told_as_it_is() -> None:
    body = {"password": stands("nobody-knows-it"), "q": stands("nobody-knows-it")}
    told = telling().told(call(body, authorization=f"Bearer {stands('nobody-knows-it')}"))
    assert json.loads(told.body) == body
    assert told.headers == (("authorization", f"Bearer {stands('nobody-knows-it')}"),)


def test_a_reply_has_the_secrets_again_that_are_known_here() -> None:
    chunks = [f"use {stands(SECRET)} ".encode(), f"not {stands('nobody-knows-it')}".encode()]
    recorded = Recorded(200, (("Content-Length", str(sum(map(len, chunks)))),), "OK", chunks, [1, 2], True)
    heard = telling(SECRET).heard(recorded)
    assert heard.chunks == [f"use {SECRET} ".encode(), f"not {stands('nobody-knows-it')}".encode()]
    assert heard.headers == (("Content-Length", str(sum(map(len, heard.chunks)))),)
    assert telling().heard(recorded) is recorded
    assert telling(SECRET).heard(plain := reply("plain")) is plain


def test_a_secret_that_json_spells_otherwise_stays_out_of_replies() -> None:
    recorded = reply(json.dumps({"a": stands('quoted "secret"')}))
    assert telling('quoted "secret"').heard(recorded) is recorded


@given(st.text('xyzXYZ0189-+/"\\é', min_size=8, max_size=20), st.text(" abc.,", max_size=20))
def test_a_secret_that_was_learned_late_is_recognised_by_what_stands_in_its_place(secret: str, around: str) -> None:
    taped = exchange(0, {"q": f"{around}{stands(secret)}{around}"}, headers=())
    live, other = call({"q": f"{around}{secret}{around}"}), call({"q": f"{around}{secret}x{around}"})
    tell, match = telling(), matcher(taped)
    assert not tell.recognised(match.hidden(match.entries[0], tell.told(other)))
    assert tell.recognised(match.hidden(match.entries[0], tell.told(live)))
    assert tell.told(live).body == taped.body


def test_a_late_secret_is_recognised() -> None:
    late = stands('quoted "late"')
    taped = exchange(0, {"q": f"use {stands(SECRET)} and {late}!"}, headers=())
    tell, match = telling(), matcher(taped)
    live = call({"q": f'use {SECRET} and quoted "late"!'})
    assert not tell.recognised(match.hidden(match.entries[0], tell.told(call({"q": "use x and y!"}))))
    assert tell.recognised(match.hidden(match.entries[0], tell.told(live)))
    assert tell.told(live).body == taped.body


def test_what_only_this_process_knows_is_taken_out_of_the_tape_too() -> None:
    taped = exchange(0, {"q": "customer-support"})
    assert b"customer" not in telling("customer-support").taped(taped).body
    assert telling().taped(taped) is taped


def test_a_tape_without_a_key_is_compared_without_secrets() -> None:
    tell = Telling()
    told = tell.told(Call("GET", "https://u:p@x.test/?api_key=0123456789", (("x-api-key", SECRET),), b"0123456789"))
    assert (told.url, told.headers) == (
        "https://[redacted]@x.test/?api_key=[redacted]",
        (("x-api-key", "[redacted]"),),
    )
    assert told.body == b"0123456789"
    assert tell.taped(taped := Exchange(exchange(0, {}).site)) is taped
    assert (tell.text(SECRET), tell.real(stands(SECRET)), tell.recognised([(b"x", b"y")])) == (
        SECRET,
        stands(SECRET),
        False,
    )


def test_texts_both_ways() -> None:
    tell = telling(SECRET)
    assert tell.text(f"it is {SECRET}") == f"it is {stands(SECRET)}"
    assert tell.real(f"it is {stands(SECRET)}") == f"it is {SECRET}"
    split = 'data: {"text": "planted-"}\n\ndata: {"text": "secret-1"}\n\n'
    assert tell.text(split) == f'data: {{"text": "{stands(SECRET)}"}}\n\ndata: {{"text": ""}}\n\n'
