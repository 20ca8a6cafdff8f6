from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.boundary.route import Lost, Route, locate, within

OWN = frozenset({"127.0.0.1:9", "localhost:9"})


def basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"x:{token}".encode()).decode()


@pytest.mark.parametrize(
    ("target", "route"),
    [
        ("/r/T/p/openai/v1/chat", Route("T", "base", "/v1/chat", "openai")),
        ("/r/T/p/openai", Route("T", "base", "", "openai")),
        ("/r/T/p/openai/", Route("T", "base", "/", "openai")),
        ("/r/T/p/openai?key=a/b", Route("T", "base", "?key=a/b", "openai")),
        ("/r/T/p/openai//v1%2Fx/?", Route("T", "base", "//v1%2Fx/?", "openai")),
        ("/r/T/u/https/api.x.com/v1?a=1&b=%2F", Route("T", "shim", "https://api.x.com/v1?a=1&b=%2F")),
        ("/r/T/u/http/127.0.0.1:80", Route("T", "shim", "http://127.0.0.1:80/")),
        ("/r/T/u/http/%5B::1%5D:8080/a", Route("T", "shim", "http://[::1]:8080/a")),
        ("/r/T/u/http/h//a/b", Route("T", "shim", "http://h//a/b")),
    ],
)
def test_paths(target: str, route: Route) -> None:
    assert locate("GET", target, None, OWN) == route


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("http://Host.example/a?b", "http://Host.example/a?b"),
        ("HTTP://h", "http://h/"),
        ("http://u:p@h/a", "http://h/a"),
        ("http://h?q=1", "http://h/?q=1"),
    ],
)
def test_a_proxied_request_names_its_url(target: str, url: str) -> None:
    assert locate("GET", target, basic("T"), OWN) == Route("T", "proxy", url)


def test_a_proxied_request_for_the_gateway_itself_is_a_direct_one() -> None:
    assert locate("GET", "http://LOCALHOST:9/r/T/p/x/y", None, OWN) == Route("T", "base", "/y", "x")


def test_connect() -> None:
    assert locate("CONNECT", "h:443", basic("T"), OWN) == Route("T", "tunnel", "https://h:443")
    assert locate("CONNECT", "[::1]:443", basic("T"), OWN) == Route("T", "tunnel", "https://[::1]:443")
    assert locate("CONNECT", "127.0.0.1:9", None, OWN).own


@pytest.mark.parametrize(
    ("method", "target", "authorization", "status"),
    [
        ("GET", "/", None, 404),
        ("GET", "/r/T", None, 404),
        ("GET", "/r/T/p", None, 404),
        ("GET", "/r/T/x/y", None, 404),
        ("GET", "*", None, 404),
        ("GET", "/r/T/u/ftp/h/a", None, 400),
        ("GET", "/r/T/u/http/a%20b/c", None, 400),
        ("GET", "/r/T/u/http/user@h/c", None, 400),
        ("GET", "/r/T/u/http/127.0.0.1:9/r/T/p/x", None, 508),
        ("GET", "http://h/", None, 407),
        ("GET", "http://h/", "Bearer T", 407),
        ("GET", "http://h/", "Basic !!", 407),
        ("CONNECT", "h", basic("T"), 400),
        ("CONNECT", "h:443", None, 407),
        ("CONNECT", "h/x:443", basic("T"), 400),
    ],
)
def test_what_leads_nowhere_says_so(method: str, target: str, authorization: str | None, status: int) -> None:
    with pytest.raises(Lost) as lost:
        locate(method, target, authorization, OWN)
    assert lost.value.status == status
    assert lost.value.message


rests = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#"), max_size=40)


@given(rest=rests.map(lambda text: "/" + text), token=st.from_regex(r"[A-Za-z0-9_-]{1,22}", fullmatch=True))
def test_paths_and_queries_are_kept_byte_for_byte(rest: str, token: str) -> None:
    assert locate("GET", f"/r/{token}/p/openai{rest}", None, OWN) == Route(token, "base", rest, "openai")
    assert locate("GET", f"/r/{token}/u/https/h{rest}", None, OWN) == Route(token, "shim", f"https://h{rest}")
    assert locate("GET", f"http://h{rest}", basic(token), OWN) == Route(token, "proxy", f"http://h{rest}")


@given(method=st.sampled_from(["GET", "CONNECT"]), target=st.text(max_size=60), authorization=st.none() | st.text())
def test_hostile_request_lines_only_ever_get_lost(method: str, target: str, authorization: str | None) -> None:
    with suppress(Lost):
        route = locate(method, target, authorization, OWN)
        assert route.token or route.own or target.startswith(("/r/", "http://127.0.0.1:9", "http://localhost:9"))


@pytest.mark.parametrize(
    ("method", "target", "host", "url"),
    [
        ("GET", "http://::1:8080/a", "[::1]:8080", "http://[::1]:8080/a"),
        ("GET", "http://fe80::1/a", "[fe80::1]", "http://[fe80::1]/a"),
        ("CONNECT", "::1:443", "", "https://[::1]:443"),
    ],
)
def test_an_ipv6_address_without_its_brackets(method: str, target: str, host: str, url: str) -> None:
    assert locate(method, target, basic("T"), OWN, host).url == url


def test_the_host_header_does_not_lead_anywhere_else() -> None:
    assert locate("GET", "http://a/x", basic("T"), OWN, "[::1]:80").url == "http://a/x"
    with pytest.raises(Lost):
        locate("GET", "http://::1:8080/a", basic("T"), OWN, "[::1]:9090")


def test_the_door_of_wrapped_mcp_servers() -> None:
    assert locate("GET", "/r/T/m/my%20server", None, OWN) == Route("T", "mcp", "my server")
    for target in ("/r/T/m/", "/r/T/m", "/r/T/m/a/b"):
        with pytest.raises(Lost):
            locate("GET", target, None, OWN)


@pytest.mark.parametrize(
    ("scheme", "host", "url"),
    [
        ("https", "api.test:443", "https://api.test/v1?x=%2F"),
        ("http", "api.test:80", "http://api.test/v1?x=%2F"),
        ("https", "api.test:8443", "https://api.test:8443/v1?x=%2F"),
        ("https", "[::1]:443", "https://[::1]/v1?x=%2F"),
    ],
)
def test_inside_a_tunnel_the_path_is_on_its_host(scheme: str, host: str, url: str) -> None:
    assert within("T", scheme, host, "GET", "/v1?x=%2F") == Route("T", "proxy", url)


@pytest.mark.parametrize(("method", "target"), [("CONNECT", "x:1"), ("GET", "http://x/"), ("OPTIONS", "*")])
def test_inside_a_tunnel_nothing_else_is_asked_for(method: str, target: str) -> None:
    with pytest.raises(Lost) as lost:
        within("T", "https", "api.test:443", method, target)
    assert lost.value.status == 400
