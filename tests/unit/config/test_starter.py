"""The starter that `flakestorm init` writes loads as it stands, and with its comments taken away."""

from __future__ import annotations

import re

from flakestorm.config.access import contract_of, require_invariants, scenarios_of
from flakestorm.config.load import loads
from flakestorm.config.starter import Found, starter


def test_it_loads_and_can_be_run() -> None:
    config = loads(starter())
    require_invariants(config)
    assert [rule.id for rule in contract_of(config).invariants] == [
        "always-answers",
        "no-personal-data",
        "admits-outage",
    ]
    assert [scenario.chaos for scenario in scenarios_of(config)] == [False, True, True]
    assert config.agent.endpoint == "http://127.0.0.1:8000/invoke"


def test_what_was_found_is_used() -> None:
    template = '{"messages": [{"content": "{prompt}"}]}'
    found = Found(
        endpoint="http://127.0.0.1:{port}/chat",
        start="python 'my agent.py' --port {port}",
        request_template=template,
        response_path="reply.text",
        env={"PORT": "{port}"},
        urls={"search": "*/search*"},
        functions=("book",),
        notes=("a program\nof two lines",),
    )
    config = loads(starter(found))
    assert config.agent.endpoint == "http://127.0.0.1:{port}/chat"
    assert config.agent.start == "python 'my agent.py' --port {port}"
    assert (config.agent.request_template, config.agent.response_path) == (template, "reply.text")
    assert (config.agent.env, config.boundary.tools) == ({"PORT": "{port}"}, {"search": "*/search*"})
    assert scenarios_of(config)[1].tool_faults[0].tool == "search"


def test_an_agent_in_process_has_no_settings_of_http() -> None:
    text = starter(Found(type="python", endpoint="agent:answer"))
    assert loads(text).agent.type == "python"
    assert "request_template" not in text
    assert "{port}" not in text


def test_what_is_commented_out_is_valid_too() -> None:
    def open_up(line: str) -> str:
        return re.sub(
            r"^(\s*)# (?=(?:request_template|response_path|timeout|headers|start|ready|reset_endpoint"
            r"|model|  provider|  name|  api_key)\b)",
            r"\1",
            line,
        )

    text = "\n".join(open_up(line) for line in starter().splitlines())
    config = loads(text, variables={"AGENT_TOKEN": "t", "OPENAI_API_KEY": "k"})
    assert config.agent.start == "python agent.py --port {port}"
    assert (config.model.provider, config.model.api_key) == ("openai", "k")
