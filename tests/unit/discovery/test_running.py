"""What an agent that runs says about itself."""

import json

import pytest

from flakestorm.discovery.running import Running, described, find
from upstream import Request, Upstream, document, text


def openapi(properties, required=(), reply=None, path="/v1/chat"):
    body = {"type": "object", "properties": properties, "required": list(required)}
    said = {"type": "object", "properties": reply or {"output": {"type": "string"}}}
    return {
        "paths": {
            "/health": {"get": {}},
            "/admin/{id}": {"post": {}},
            path: {
                "post": {
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
                    "responses": {"200": {"content": {"application/json": {"schema": said}}}},
                }
            },
        },
        "components": {"schemas": {"In": body}},
    }


def test_a_document_gives_path_body_and_answer() -> None:
    properties = {"question": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "n": {"type": "integer"}}
    found = described(8000, openapi(properties, ["n", "question"], {"reply": {"type": "string"}}))
    assert found is not None
    assert (found.path, json.loads(found.template)) == ("/v1/chat", {"question": "{prompt}", "n": 1})
    assert (found.answer, found.health) == ("reply", "/health")


def test_messages() -> None:
    found = described(8000, openapi({"messages": {"type": "array"}}))
    assert found is not None
    assert json.loads(found.template) == {"messages": [{"role": "user", "content": "{prompt}"}]}
    assert found.answer == ""


@pytest.mark.parametrize(
    "document",
    [{}, {"paths": []}, {"paths": {"/x": {"post": {}}}}, {"paths": {"/x": 1}}, openapi({"n": {"type": "integer"}}),
     {"paths": {"/x": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/x"}}}}}}}}],
)  # fmt: skip
def test_a_document_that_describes_no_agent(document) -> None:
    assert described(8000, document) is None


def test_one_that_describes_itself_is_only_read() -> None:
    with Upstream() as up:
        up.reply("/openapi.json", document(openapi({"message": {"type": "string"}})))
        found = find([up.port])
        assert isinstance(found, Running)
        assert (found.path, found.how) == ("/v1/chat", "its /openapi.json")
        assert up.count("/v1/chat") == 0


def test_one_that_does_not_is_greeted() -> None:
    def chat(request: Request):
        asked = request.json()
        return document({"answer": "hi"}) if "message" in asked else text("no message", status=422)

    with Upstream() as up:
        up.reply("/chat", chat)
        found = find([up.port])
        assert found is not None
        assert (found.path, found.template) == ("/chat", '{"message": "{prompt}"}')
        assert find([up.port], greet=False) is None
        up.reply("/chat", document({"unknown": 1}))
        assert find([up.port]) is None


def test_nobody_there() -> None:
    assert find([1]) is None
