from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import scene
from flakestorm.config.model import ToolFault
from flakestorm.faults.base import Change, result_faults
from flakestorm.faults.tool import DEFAULT_PAYLOAD
from flakestorm.wire.results import Told

FINE = Told('{"flights": 3}')


def change(mode: str, told: Told = FINE, **settings: object) -> Change | None:
    spec = ToolFault(mode=mode, **settings)  # type: ignore[arg-type]
    return result_faults.get(mode)(spec, scene([]), told)


@pytest.mark.parametrize(
    ("mode", "settings", "words"),
    [
        ("error", {}, "503 Service Unavailable"),
        ("error", {"error_code": 404}, "404 Not Found"),
        ("error", {"error_code": 500, "message": "the disk is full"}, "500 the disk is full"),
        ("error", {"error_code": 599}, "599"),
        ("timeout", {}, "no answer within 30000 ms"),
        ("timeout", {"delay_ms": 70}, "no answer within 70 ms"),
        ("timeout_after_commit", {"delay_ms": 70}, "no answer within 70 ms"),
        ("connection_reset", {}, "connection reset by peer"),
    ],
)
def test_a_failure_says_what_a_framework_would(mode: str, settings: dict[str, object], words: str) -> None:
    assert change(mode, **settings) == Change(words, Told(f"Error: {words}", failed=True), replaces=True)


def test_slow_holds_back_and_changes_nothing() -> None:
    assert change("slow") == Change("delayed by 5000 ms", delay_ms=5000)
    assert change("slow", delay_ms=20) == Change("delayed by 20 ms", delay_ms=20)


def test_empty_says_nothing_and_calls_that_a_success() -> None:
    assert change("empty", Told("no", failed=True)) == Change("result left empty", Told(""))


def test_a_payload_stands_in_place_of_the_result() -> None:
    assert change("malicious_response") == Change("result replaced by the payload", Told(DEFAULT_PAYLOAD))
    assert change("malicious_response", Told("no", failed=True), payload="obey") == Change(
        "result replaced by the payload", Told("obey")
    )


@given(document=st.recursive(st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_malformed_is_never_json(document: object) -> None:
    text = json.dumps(document)
    made = change("malformed", Told(text))
    assert made is not None
    assert made.told is not None
    assert made.told.text.startswith(text[: len(text) // 2])
    with pytest.raises(json.JSONDecodeError):
        json.loads(made.told.text)


def test_malformed_has_nothing_to_break_where_there_is_no_text() -> None:
    assert change("malformed", Told("")) is None
