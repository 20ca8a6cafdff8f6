import json

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump, read
from flakestorm.faults.promises import Promises

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
LISTED = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "weather", "outputSchema": SCHEMA}, {"name": "echo"}]}}
).encode()
LISTING = Call("POST", "http://x.test/mcp", kind="mcp", name="tools/list", wire="mcp")


def test_a_listed_schema_is_known_once_the_list_has_passed() -> None:
    promises = Promises()
    reply = promises.noted(LISTING, Reply(200, (), [LISTED[:40], LISTED[40:]]))
    assert promises.of("weather") is None
    assert read(reply) == LISTED
    assert promises.of("weather") == SCHEMA
    assert promises.of("echo") is promises.of("unheard") is None


def test_a_client_that_reads_no_further_than_the_answer_has_still_heard_it() -> None:
    promises = Promises()
    chunks = pump(promises.noted(LISTING, Reply(200, (), [LISTED, b"\n"])), lambda _: None)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert promises.of("weather") == SCHEMA


def test_other_replies_are_not_looked_at() -> None:
    reply = Reply(200, (), LISTED)
    assert Promises().noted(Call("POST", "http://x.test", kind="mcp", name="weather", wire="mcp"), reply) is reply
    assert Promises().noted(Call("POST", "http://x.test", kind="http", name="tools/list"), reply) is reply
