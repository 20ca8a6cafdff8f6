"""The JSON Schema of `flakestorm.yaml`, for editors and for `flakestorm schema`."""

from __future__ import annotations

from typing import Any

from msgspec.json import schema as json_schema

from flakestorm.config.model import Config

__all__ = ["schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The schema, as plain data.

    It describes files before `${VAR}` is expanded, and what loading accepts beyond the models: a key without a value
    has its default, `context_attacks` may be a mapping keyed by type, and `version: 2.0` needs no quotes.
    """
    written = json_schema(Config)
    made = {**written["$defs"].pop("Config"), "$defs": written["$defs"]}
    for block in (made, *made.get("$defs", {}).values()):
        required = set(block.get("required", ()))
        for name, key in block.get("properties", {}).items():
            if name == "context_attacks":
                _also_by_type(key, made["$defs"]["ContextAttack"])
            if name not in required:
                _or_nothing(key)
    _also_unquoted(made["properties"]["version"])
    made["title"] = "flakestorm.yaml"
    made["description"] = "Configuration of flakestorm, which breaks an AI agent's world on purpose and judges it."
    return {"$schema": DIALECT, **made}


def _also_by_type(key: dict[str, Any], attack: dict[str, Any]) -> None:
    properties = {name: value for name, value in attack["properties"].items() if name != "type"}
    entry = {"type": ["object", "boolean", "null"], "properties": properties, "additionalProperties": False}
    kinds = attack["properties"]["type"]["anyOf"][0]["enum"]
    listed = {"type": key.pop("type"), "items": key.pop("items")}
    key["anyOf"] = [
        listed,
        {"type": "object", "properties": dict.fromkeys(kinds, entry), "additionalProperties": entry},
    ]


def _also_unquoted(key: dict[str, Any]) -> None:
    """Let numbers stand for the words that YAML takes for numbers."""
    words = key["anyOf"][0]["enum"]
    key["anyOf"][0]["enum"] = [*words, *(float(word) for word in words)]


def _or_nothing(key: dict[str, Any]) -> None:
    """Let null stand for the default; what is said about the key stays on the outside."""
    if "anyOf" in key:
        if {"type": "null"} not in key["anyOf"]:
            key["anyOf"] = [*key["anyOf"], {"type": "null"}]
        return
    about: dict[str, Any] = {name: key.pop(name) for name in ("title", "description", "default") if name in key}
    inner = dict(key)
    if not inner:
        key.update(about)
        return
    key.clear()
    key.update({"anyOf": [inner, {"type": "null"}], **about})
