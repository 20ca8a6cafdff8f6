"""The blocks `agent` and `model`."""

from __future__ import annotations

import pytest

from config_support import refused
from flakestorm.config.agents import Agent, Model


def test_defaults() -> None:
    agent = Agent(endpoint="http://x")
    assert (agent.type, agent.method, agent.timeout, agent.parse_structured_input) == ("http", "POST", 30000, True)
    model = Model()
    assert (model.provider, model.name, model.base_url, model.temperature) == ("ollama", "qwen3:8b", None, 0.8)


def test_method_type_and_provider_are_taken_in_any_case() -> None:
    assert Agent.of({"endpoint": "x", "method": "get", "type": " Python "}).type == "python"
    assert Model.of({"provider": "OpenAI"}).provider == "openai"
    assert Agent(endpoint="x", type="MyPlugin").type == "MyPlugin"


@pytest.mark.parametrize("kind", ["http", "python", "langchain", "a_plugin"])
def test_an_endpoint_is_needed(kind: str) -> None:
    assert "needs 'endpoint'" in refused({"type": kind}, Agent)


def test_a_command_needs_start_and_no_endpoint() -> None:
    assert Agent(type="command", start=["cat"]).start == ["cat"]
    assert "needs 'start'" in refused({"type": "command"}, Agent)


@pytest.mark.parametrize("timeout", [999, 300_001])
def test_timeout_has_bounds(timeout: int) -> None:
    assert "timeout" in refused({"endpoint": "x", "timeout": timeout}, Agent)
