"""Which protocols there are, and that each is imported only for those who need it."""

import subprocess
import sys

import pytest

from flakestorm.core.call import Call
from flakestorm.wire.protocols import PROTOCOLS, candidates, wire_of, wires

URLS = {
    "https://api.openai.com/v1/chat/completions": ["openai_chat", "completions"],
    "https://x.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=1": ["openai_chat", "completions"],
    "https://api.openai.com/v1/responses/": ["openai_responses"],
    "https://api.anthropic.com/v1/messages": ["anthropic"],
    "https://g.test/v1beta/models/gemini-2:generateContent": ["gemini"],
    "https://g.test/v1beta/models/gemini-2:streamGenerateContent?alt=sse": ["gemini"],
    "https://g.test/v1beta/interactions": ["interactions"],
    "http://127.0.0.1:11434/api/chat": ["ollama"],
    "http://127.0.0.1:11434/api/generate": ["ollama"],
    "https://bedrock-runtime.test/model/m/converse-stream": ["bedrock"],
    "https://bedrock-runtime.test/model/m/invoke-with-response-stream": ["bedrock_invoke"],
    "https://api.openai.com/v1/embeddings": ["embeddings"],
    "https://g.test/v1beta/models/e:batchEmbedContents": ["embeddings"],
    "http://127.0.0.1:11434/api/embed": ["embeddings"],
    "https://vertex.test/v1/models/text-embedding:predict": ["embeddings"],
    "https://g.test/v1/projects/p/publishers/anthropic/models/claude:streamRawPredict": ["anthropic"],
    "https://api.openai.com/v1/completions": ["completions"],
    "https://api.cohere.com/v2/chat": ["completions"],
    "https://api.test/search": [],
}


@pytest.mark.parametrize("url", URLS)
def test_a_url_says_which_protocols_are_asked(url: str) -> None:
    assert [wire.name for wire in candidates(Call("POST", url))] == URLS[url]
    assert list(candidates(Call("GET", url))) == []


def test_wires_are_found_by_name() -> None:
    names = (
        "openai_chat",
        "openai_responses",
        "anthropic",
        "gemini",
        "interactions",
        "ollama",
        "bedrock",
        "bedrock_invoke",
        "embeddings",
        "completions",
    )
    assert {wire.name: wire for wire in wires()} == {name: wire_of(name) for name in names}
    assert wire_of("") is None
    assert wire_of("morse") is None


def test_every_protocol_is_where_it_is_said_to_be() -> None:
    assert [wire.name for wire in wires()] == [protocol.name for protocol in PROTOCOLS]
    assert all(wire_of(protocol.name) is wire for protocol, wire in zip(PROTOCOLS, wires(), strict=True))


def test_only_what_is_spoken_is_imported() -> None:
    code = (
        "import sys\n"
        "from flakestorm.core.call import Call\n"
        "from flakestorm.wire.protocols import candidates\n"
        "before = set(sys.modules)\n"
        "list(candidates(Call('POST', 'http://127.0.0.1/invented')))\n"
        "assert set(sys.modules) == before\n"
        "list(candidates(Call('POST', 'http://127.0.0.1/v1/messages')))\n"
        "others = {f'flakestorm.wire.{name}' for name in ('openai_chat', 'gemini', 'ollama', 'bedrock')}\n"
        "assert not others & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
