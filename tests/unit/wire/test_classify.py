import threading

import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import chain, drive
from flakestorm.core.site import Site, Sites
from flakestorm.wire.classify import UNNAMED, classify, host_name, url_matches

CHAT = b'{"model":"gpt-4o","messages":[]}'
OPENAI = "https://api.openai.com/v1/chat/completions"


def crossing(call: Call, *tools: tuple[str, str], sites: Sites | None = None) -> Call:
    """The call as the stages further in see it."""
    seen: list[Call] = []

    def send(inner: Call) -> Reply:
        seen.append(inner)
        return Reply(204)

    stage = chain(classify(tools=tools, sites=sites or Sites()))
    assert drive(stage(call), send, lambda _: None).status == 204
    return seen[0]


def identity(call: Call) -> tuple[str, str, str]:
    assert call.site is not None
    assert (call.site.kind, call.site.name) == (call.kind, call.name)
    return call.kind, call.name, call.wire


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        (OPENAI, CHAT, ("llm", "gpt-4o", "openai_chat")),
        ("https://api.anthropic.com/v1/messages", b'{"model":"c","messages":[]}', ("llm", "c", "anthropic")),
        ("http://127.0.0.1:1/v1/chat/completions", b'{"messages":[]}', ("llm", UNNAMED, "openai_chat")),
        ("https://api.openai.com/v1/responses", b'{"model":"o","input":"hi"}', ("llm", "o", "openai_responses")),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse&key=k",
            b'{"contents":[]}',
            ("llm", "gemini-2.5-flash", "gemini"),
        ),
        ("http://127.0.0.1:11434/api/chat", b'{"model":"qwen3:8b","messages":[]}', ("llm", "qwen3:8b", "ollama")),
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.amazon.nova-lite-v1%3A0/converse-stream",
            b'{"messages":[]}',
            ("llm", "us.amazon.nova-lite-v1:0", "bedrock"),
        ),
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.titan-embed/invoke",
            b'{"inputText":"x"}',
            ("llm", "amazon.titan-embed", "bedrock_invoke"),
        ),
        ("https://api.openai.com/v1/embeddings", b'{"model":"e3","input":"x"}', ("llm", "e3", "embeddings")),
        ("https://api.openai.com/v1/completions", b'{"model":"i","prompt":"x"}', ("llm", "i", "completions")),
        ("https://api.cohere.com/v2/chat", b'{"model":"r","messages":[1]}', ("llm", "r", "completions")),
        ("https://my.test/api/chat", b'{"messages":[]}', ("http", "my.test", "")),
        ("https://my.test/survey/responses", b'{"answers":[1]}', ("http", "my.test", "")),
        ("https://my.test/model/7/invoke", b"{}", ("http", "my.test", "")),
        ("https://api.openai.com/v1/models", b"", ("http", "api.openai.com", "")),
        ("https://api.test/search?q=1", b"", ("http", "api.test", "")),
        ("https://api.test:8443/search", b"", ("http", "api.test:8443", "")),
    ],
)
def test_a_call_is_what_it_speaks_else_where_it_goes(url: str, body: bytes, expected: tuple[str, str, str]) -> None:
    assert identity(crossing(Call("POST", url, body=body))) == expected


def test_the_first_glob_that_matches_names_the_tool() -> None:
    tools = (("search", "*/search"), ("other", "https://api.test/*"))
    assert identity(crossing(Call("GET", "https://api.test/search?q=/x"), *tools)) == ("tool", "search", "")
    assert identity(crossing(Call("GET", "https://api.test/else"), *tools)) == ("tool", "other", "")


def test_a_model_call_is_not_taken_for_a_tool() -> None:
    assert identity(crossing(Call("POST", OPENAI, body=CHAT), ("all", "*")))[0] == "llm"


@pytest.mark.parametrize("kind", ["tool", "mcp", "draw", "agent"])
def test_what_already_has_a_kind_keeps_it(kind: str) -> None:
    call = Call("CALL", OPENAI, body=CHAT, kind=kind, name="mine")
    assert identity(crossing(call, ("all", "*"))) == (kind, "mine", "")


def test_sites_count_in_order_of_arrival() -> None:
    sites = Sites()
    seen = [crossing(Call("GET", "https://a.test/"), sites=sites).site for _ in range(2)]
    assert seen == [Site("http", "a.test", 1), Site("http", "a.test", 2)]


def test_threads_never_share_a_site() -> None:
    stage, found, start = classify(tools=(), sites=Sites()), list[Site | None](), threading.Barrier(8)

    def send(call: Call) -> Reply:
        found.append(call.site)
        return Reply()

    def work() -> None:
        start.wait()
        for _ in range(200):
            drive(chain(stage)(Call("GET", "https://a.test/")), send, lambda _: None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(site.occurrence for site in found if site) == list(range(1, 1601))


@pytest.mark.parametrize(
    ("glob", "url", "expected"),
    [
        ("https://api.test/search", "https://api.test/search", True),
        ("https://api.test/search", "https://api.test/search?q=1", True),
        ("https://api.test/search?q=[12]", "https://api.test/search?q=1", True),
        ("https://api.test/search?q=[12]", "https://api.test/search?q=3", False),
        ("https://api.test/*", "http://api.test/x", False),
        ("https://api.test/*", "https://API.test/x", False),
        ("https://api.test", "https://api.test/x", False),
        ("api.test/*", "https://api.test/x", True),
        ("api.test/*", "https://eu.api.test/x", True),
        ("/search", "http://127.0.0.1:4/v1/search?q=a", True),
        ("/search", "http://127.0.0.1:4/v1/searches", False),
        ("http", "https://a.test/", False),
        ("*", "anything://at/all", True),
        ("/a.c", "https://x.test/abc", False),
        ("/line", "https://x.test/li\nne", False),
        ("http://[::1]:80/a*", "http://[::1]:80/ab", True),
        ("http://[::1]:80/a[12]", "http://[::1]:80/a2", True),
        ("http://[::1]:80/a", "http://::80/a", False),
        ("[2001:db8::*]/a", "https://[2001:db8::7]/a", True),
        ("[ab]/x", "https://b/x", True),
    ],
)
def test_globs(glob: str, url: str, expected: bool) -> None:
    assert url_matches(glob)(url) is expected


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://API.Example.com/x", "api.example.com"),
        ("https://a.test:443/", "a.test"),
        ("http://a.test:80/", "a.test"),
        ("http://a.test:443/", "a.test:443"),
        ("https://user:secret@a.test/", "a.test"),
        ("http://127.0.0.1:4567/", "127.0.0.1"),
        ("http://127.8.9.1:4567/", "127.8.9.1"),
        ("http://localhost:4567/", "localhost"),
        ("http://app.localhost:4567/", "app.localhost"),
        ("http://[::1]:4567/", "::1"),
        ("http://[2001:db8::1]:4567/", "[2001:db8::1]:4567"),
        ("http://10.0.0.1:4567/", "10.0.0.1:4567"),
        ("http://a.test:99999/", UNNAMED),
        ("http://[broken/", UNNAMED),
        ("/relative", UNNAMED),
        ("", UNNAMED),
    ],
)
def test_a_service_is_named_by_its_host(url: str, name: str) -> None:
    assert host_name(url) == name


def test_only_calls_whose_path_matches_are_parsed_and_those_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    loads = orjson.loads
    monkeypatch.setattr(orjson, "loads", lambda data: parsed.append(data) or loads(data))
    crossing(Call("POST", OPENAI, body=CHAT))
    assert parsed == [CHAT]
    crossing(Call("POST", "https://api.test/search", body=CHAT), ("search", "/search"))
    crossing(Call("GET", OPENAI))
    assert parsed == [CHAT]


def test_a_call_to_an_mcp_server_has_the_name_of_its_tool() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}'
    accept = (("Accept", "application/json, text/event-stream"),)
    assert identity(crossing(Call("POST", "https://mcp.test/mcp", accept, body), ("all", "*"))) == (
        "mcp",
        "search",
        "mcp",
    )
    assert identity(crossing(Call("POST", "https://mcp.test/messages?session_id=1", (), body))) == ("mcp", "search", "")


def test_a_long_conversation_is_known_by_what_it_was_known_as_and_a_change_is_seen() -> None:
    seen: list[Call] = []
    stage = classify(tools=(), sites=Sites())

    def ask(model: str, turns: int, url: str = OPENAI, method: str = "POST") -> tuple[str, str, str]:
        messages = [{"role": "user", "content": f"{turn}: {'a flight to Oslo ' * 40}"} for turn in range(turns)]
        call = stage(Call(method, url, body=orjson.dumps({"model": model, "messages": messages})))
        assert isinstance(call, Call)
        seen.append(call)
        return identity(call)

    assert [ask("gpt-4o", turns) for turns in range(8, 14)] == [("llm", "gpt-4o", "openai_chat")] * 6
    assert seen[-1].repeats is not None
    assert ask("gpt-4.1", 14) == ("llm", "gpt-4.1", "openai_chat")
    assert ask("gpt-4o", 15) == ("llm", "gpt-4o", "openai_chat")
    assert ask("gpt-4o", 16, "https://api.anthropic.com/v1/messages") == ("llm", "gpt-4o", "anthropic")
    assert ask("gpt-4o", 17, method="PUT") == ("http", "api.openai.com", "")
    assert [call.site.occurrence for call in seen if call.site and call.name == "gpt-4o"] == list(range(1, 9))


def test_a_long_conversation_that_only_its_signature_tells_is_nothing_without_it() -> None:
    stage, found = classify(tools=(), sites=Sites()), []
    signed = (("Authorization", "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/bedrock/aws4_request, Signature=1"),)
    for turns, headers in ((10, signed), (11, signed), (12, signed), (13, signed), (14, ()), (15, signed)):
        body = orjson.dumps({"messages": [f"{turn}: {'a flight to Oslo ' * 40}" for turn in range(turns)]})
        call = stage(Call("POST", "https://proxy.test/model/amazon.nova/invoke", headers, body))
        assert isinstance(call, Call)
        found.append(call.kind)
    assert found == ["llm", "llm", "llm", "llm", "http", "llm"]
