from __future__ import annotations

import pytest

from config_support import config
from flakestorm.api.redaction import redaction_of
from flakestorm.config.load import loads

AGENT = """agent:
  endpoint: http://127.0.0.1:1/
  env: {DB_PASSWORD: "of-the-agent"}
  headers: {Authorization: "Bearer of-the-header"}
golden_prompts: [hello]
boundary: {redact: ["CUST-[0-9]+"]}
"""


def test_what_the_config_and_the_environment_hold_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "of-the-caller")
    redactor = redaction_of(loads(AGENT, file="f.yaml", variables={}))()
    for secret in ("of-the-agent", "of-the-header", "of-the-caller", "CUST-17"):
        assert secret not in redactor.text(f"it said {secret}.")


def test_runs_of_a_seed_share_a_key() -> None:
    make, other = redaction_of(config(), 7), redaction_of(config(), 8)
    assert make().key == make().key == redaction_of(config(), 7)().key != other().key
    assert make() is not make()
