from __future__ import annotations

import base64

import pytest

from flakestorm.boundary.outward import Outward, Proxies, Proxy, outward_of


@pytest.mark.parametrize(
    ("env", "caller", "http", "https"),
    [
        ({}, {}, "", ""),
        ({"HTTP_PROXY": "http://a:1"}, {"HTTPS_PROXY": "http://b:2"}, "http://a:1", "http://b:2"),
        ({"https_proxy": "b:2"}, {"HTTPS_PROXY": "http://c"}, "", "http://b:2"),
        ({"HTTPS_PROXY": ""}, {"HTTPS_PROXY": "http://c"}, "", ""),
        ({"ALL_PROXY": "http://all", "HTTP_PROXY": "http://a"}, {}, "http://a", "http://all"),
    ],
)
def test_what_the_variables_said(env: dict[str, str], caller: dict[str, str], http: str, https: str) -> None:
    proxies = outward_of(env, caller).proxies
    assert (proxies.http, proxies.https) == (http, https)


@pytest.mark.parametrize(
    ("host", "port", "proxied"),
    [
        ("api.test", None, True),
        ("127.0.0.1", 8000, False),
        ("localhost", None, False),
        ("::1", None, False),
        ("corp.test", None, False),
        ("in.corp.test", 8443, False),
        ("notcorp.test", None, True),
        ("exact.test", 8443, False),
        ("exact.test", 9443, True),
    ],
)
def test_who_is_reached_through_it(host: str, port: int | None, proxied: bool) -> None:
    proxies = outward_of({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": ".corp.test, exact.test:8443"}, {}).proxies
    assert (proxies.to("https", host, port) is not None) == proxied
    assert proxies.to("http", host, port) is None


def test_an_exemption_of_all_is_one_of_all() -> None:
    assert Proxies("http://p", "http://p", "*").to("https", "api.test") is None


def test_credentials_are_taken_off_the_url() -> None:
    proxy = Proxies(https="http://me%40corp:p%3Aw@p.test:3128").to("https", "api.test")
    assert proxy == Proxy("http://p.test:3128", f"Basic {base64.b64encode(b'me@corp:p:w').decode()}")


@pytest.mark.parametrize("url", ["socks5://u:secret@p.test:1080", "http://"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="only http:// and https:// proxies") as failed:
        Proxies(https=url).to("https", "api.test")
    assert "secret" not in str(failed.value)


def test_agents_with_the_same_ways_share_them() -> None:
    env = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x"}
    assert len({outward_of(env, {}), outward_of({}, env), Outward()}) == 2
