from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from flakestorm.boundary.providers import PROVIDERS, variables
from flakestorm.errors import Misuse

PLACE = "http://127.0.0.1:9/r/T/p"


def test_the_public_upstreams_are_the_default() -> None:
    given, upstreams = variables({}, {}, PLACE)
    assert given["OPENAI_BASE_URL"] == given["OPENAI_API_BASE"] == f"{PLACE}/openai/v1"
    assert given["ANTHROPIC_BASE_URL"] == f"{PLACE}/anthropic"
    assert upstreams["openai"] == "https://api.openai.com"
    assert upstreams["ollama"] == "http://127.0.0.1:11434"
    assert "AZURE_OPENAI_ENDPOINT" not in given


def test_the_agents_own_environment_wins_over_the_callers() -> None:
    env = {"OPENAI_BASE_URL": "http://agent:1/v1"}
    caller = {"OPENAI_BASE_URL": "http://caller:2/v1", "ANTHROPIC_BASE_URL": "https://caller.example/a/"}
    given, upstreams = variables(env, caller, PLACE)
    assert upstreams["openai"] == "http://agent:1"
    assert (given["ANTHROPIC_BASE_URL"], upstreams["anthropic"]) == (f"{PLACE}/anthropic/a/", "https://caller.example")


def test_a_variable_taken_back_by_the_agents_environment_means_the_public_upstream() -> None:
    _, upstreams = variables({"OPENAI_BASE_URL": ""}, {"OPENAI_BASE_URL": "http://caller:2/v1"}, PLACE)
    assert upstreams["openai"] == "https://api.openai.com"


def test_the_path_query_and_user_of_a_base_url_are_kept() -> None:
    given, upstreams = variables({"OPENAI_BASE_URL": "HTTPS://u:p@h:8443/proxy/v1/?api=2"}, {}, PLACE)
    assert given["OPENAI_BASE_URL"] == "http://u:p@127.0.0.1:9/r/T/p/openai/proxy/v1/?api=2"
    assert upstreams["openai"] == "https://h:8443"


def test_variables_that_only_some_set_are_led_through_when_set() -> None:
    given, upstreams = variables({"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/"}, {}, PLACE)
    assert given["AZURE_OPENAI_ENDPOINT"] == f"{PLACE}/azure/"
    assert upstreams["azure"] == "https://x.openai.azure.com"


def test_two_variables_of_one_provider_may_name_two_upstreams() -> None:
    given, upstreams = variables({"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_BASE": "http://b/v2"}, {}, PLACE)
    for name, origin, path in (("OPENAI_BASE_URL", "http://a", "/v1"), ("OPENAI_API_BASE", "http://b", "/v2")):
        provider, _, rest = given[name].removeprefix(f"{PLACE}/").partition("/")
        assert (upstreams[provider], f"/{rest}") == (origin, path)


@pytest.mark.parametrize(
    ("host", "origin", "path"),
    [
        ("myhost", "http://myhost:11434", ""),
        (":8000", "http://127.0.0.1:8000", ""),
        ("0.0.0.0", "http://127.0.0.1:11434", ""),
        ("0.0.0.0:7", "http://127.0.0.1:7", ""),
        ("[::1]", "http://[::1]:11434", ""),
        ("http://h/ollama", "http://h", "/ollama"),
        ("https://h:1", "https://h:1", ""),
    ],
)
def test_ollama_hosts(host: str, origin: str, path: str) -> None:
    given, upstreams = variables({"OLLAMA_HOST": host}, {}, PLACE)
    assert upstreams["ollama"] == origin
    assert given["OLLAMA_HOST"] == f"{PLACE}/ollama{path}"


@pytest.mark.parametrize("text", ["api.openai.com/v1", "ftp://h", "http://", "http://h:99999999", "http://[::1"])
def test_an_unusable_url_is_named(text: str) -> None:
    with pytest.raises(Misuse) as caught:
        variables({"OPENAI_BASE_URL": text}, {}, PLACE)
    assert "OPENAI_BASE_URL" in str(caught.value)
    assert text in str(caught.value)


def test_the_table_is_consistent() -> None:
    names = [name for provider in PROVIDERS for name in provider.variables]
    assert len(names) == len(set(names))
    assert len({provider.name for provider in PROVIDERS}) == len(PROVIDERS)
    for provider in PROVIDERS:
        assert urlsplit(provider.public).scheme == ("https" if provider.name != "ollama" else "http") or (
            not provider.always and not provider.public
        )
