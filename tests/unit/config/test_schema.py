"""The JSON Schema says what loading accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from config_legacy import LEGACY
from flakestorm.config.load import loads
from flakestorm.config.schema import schema
from flakestorm.config.starter import starter
from flakestorm.config.vocabulary import INVARIANT_TYPES, LLM_MODES, TOOL_MODES
from flakestorm.errors import ConfigError

BASE: dict[str, Any] = {"agent": {"endpoint": "x"}, "golden_prompts": ["a"]}


def valid(document: Any) -> bool:
    return jsonschema.Draft202012Validator(schema()).is_valid(document)


def test_it_is_a_schema_with_a_title() -> None:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["title"] == "flakestorm.yaml"


@pytest.mark.parametrize("text", [*LEGACY.values(), starter()], ids=[*LEGACY, "starter"])
def test_files_that_load_are_valid(text: str) -> None:
    document = yaml.safe_load(text)
    if isinstance(document.get("agent", {}).get("method"), str):
        document["agent"]["method"] = document["agent"]["method"].upper()  # an enum has no case
    if document.get("model"):
        document["model"]["provider"] = document["model"]["provider"].strip().lower()
    jsonschema.Draft202012Validator(schema()).validate(document)


@pytest.mark.parametrize(
    "extra",
    [
        {"tool_fault": []},
        {"chaos": {"tool_faults": [{"mode": "error", "delay": 1}]}},
        {"advanced": {"concurrency": 0}},
        {"output": {"format": "pdf"}},
        {"model": {"api_key": "sk-123"}},
        {"chaos": {"context_attacks": {"overflow": {"tokens": 1}}}},
        {"replays": {"sources": [{"type": "langsmith"}]}},
    ],
)
def test_what_loading_refuses_by_shape_is_not_valid(extra: dict[str, Any]) -> None:
    assert valid(BASE)
    assert not valid(BASE | extra)


def test_editors_are_offered_words_and_plugins_are_let_through() -> None:
    blocks = schema()["$defs"]
    for block, key, words in (
        ("ToolFault", "mode", TOOL_MODES),
        ("LlmFault", "mode", LLM_MODES),
        ("Invariant", "type", INVARIANT_TYPES),
    ):
        assert set(blocks[block]["properties"][key]["anyOf"][0]["enum"]) == words.words
    assert valid(BASE | {"invariants": [{"type": "a_plugins_own"}]})


def _keys(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, block in {"Config": made, **made["$defs"]}.items():
        for key, value in block.get("properties", {}).items():
            yield name, key, value


def test_every_key_says_what_it_is() -> None:
    silent = [f"{block}.{key}" for block, key, value in _keys(schema()) if not value.get("description")]
    assert [place for place in silent if not place.endswith(".type")] == []


@pytest.mark.parametrize("written", ["1.0", "1", "2.0", "2", "2.00", '"1.0"', '"2.0"', "null"])
def test_a_version_needs_no_quotes(written: str) -> None:
    text = yaml.safe_dump(BASE) + f"version: {written}\n"
    assert loads(text).version in ("1.0", "2.0")
    assert valid(yaml.safe_load(text))


@pytest.mark.parametrize("written", ["3.0", "true", '"1"', "1.5", "yes", ".inf", ".nan", "[2.0]"])
def test_other_versions_are_neither_loaded_nor_valid(written: str) -> None:
    text = yaml.safe_dump(BASE) + f"version: {written}\n"
    with pytest.raises(ConfigError, match="version"):
        loads(text)
    assert not valid(yaml.safe_load(text))
