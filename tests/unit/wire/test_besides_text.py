import json
from typing import Any

import pytest

from flakestorm.wire.besides_text import fetched, remembered, shown


def body(**members: Any) -> bytes:
    return json.dumps({"model": "m", **members}).encode()


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (body(messages=[user({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}})]), "image_url"),
        (body(messages=[user({"type": "image", "source": {"type": "base64", "data": "AA"}})]), "image"),
        (body(messages=[user({"type": "tool_result", "content": [{"type": "document", "source": {}}]})]), "document"),
        (body(input=[user({"type": "input_file", "file_id": "f-1"})]), "input_file"),
        (body(contents=[{"role": "user", "parts": [{"inlineData": {"data": "AA"}}]}]), "inlineData"),
        (body(messages=[user({"document": {"format": "pdf", "source": {"bytes": "AA"}}})]), "document"),
        (body(messages=[{"role": "user", "content": "what is this?", "images": ["AA"]}]), "images"),
        (body(messages=[user({"type": "text", "text": 'an image, a "document"'})]), ""),
        (body(messages=[{"role": "user", "content": "hi", "images": []}]), ""),
        (body(messages=[], tools=[{"input_schema": {"properties": {"image": {"type": "string"}}}}]), ""),
        (body(messages=[user({"type": "tool_use", "input": {"image": {"type": "image"}}})]), ""),  # its own words
        (body(contents=[{"parts": [{"functionCall": {"args": {"image": {"id": 1}}}}]}]), ""),
        (body(messages=[user({"toolUse": {"input": {"image": {"id": 1}}}})]), ""),
        (b"[]", ""),
        (b"\xff", ""),
    ],
)
def test_what_is_shown_besides_text(asked: bytes, word: str) -> None:
    assert shown(asked) == word


def test_a_bottomless_request_is_read_no_deeper_than_anybody_writes() -> None:
    deep = b'{"messages": ' + b"[" * 500 + b"]" * 500 + b"}"
    assert shown(deep) == ""


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (b'{"content": [{"type": "server_tool_use", "name": "web_search"}]}', "server_tool_use"),
        (b'data: {"content_block":{"type":"web_search_tool_result","content":[]}}\n\n', "web_search_tool_result"),
        (b'{"output": [{"type":"code_interpreter_call","code":"1+1"}]}', "code_interpreter_call"),
        (b'{"candidates": [{"groundingMetadata": {}}]}', "groundingMetadata"),
        (b'{"messages": [], "web_search_options": {}}', "web_search_options"),
        (b'{"content": "it uses \\"server_tool_use\\", as they say"}', ""),
        (b'{"type": "tool_use"}', ""),
        (b"", ""),
    ],
)
def test_what_the_provider_fetched(said: bytes, word: str) -> None:
    assert fetched(said) == word


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (body(previous_response_id="resp_1"), "resp_1"),
        (body(conversation="conv_1"), "conv_1"),
        (body(conversation={"id": "conv_1"}), "conv_1"),
        (body(cachedContent="cachedContents/7"), "cachedContents/7"),
        (body(previous_response_id=None), ""),
        (b"no json", ""),
    ],
)
def test_what_the_provider_remembers(asked: bytes, kept: str) -> None:
    assert remembered(asked) == kept
