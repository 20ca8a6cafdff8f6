"""The starter that `flakestorm init` writes loads as it stands, and with its comments taken away."""

from __future__ import annotations

import re

from flakestorm.config.access import contract_of, require_invariants, scenarios_of
from flakestorm.config.load import loads
from flakestorm.config.starter import starter


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


def test_the_port_that_was_found_is_used() -> None:
    assert loads(starter(port=5001)).agent.endpoint == "http://127.0.0.1:5001/invoke"


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
