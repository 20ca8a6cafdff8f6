from __future__ import annotations

import json

import pytest

from flakestorm.errors import Misuse
from flakestorm.tape.patterns import Patterns
from flakestorm.tape.redact import Redactor


def test_an_expression_takes_out_what_it_matches_or_its_group() -> None:
    redactor = Redactor("0", known=(), patterns=[r"CUST-[0-9]+", r"pin (\d{4})"])

    def stands(secret: str) -> str:
        return redactor.placeholder(secret.encode()).decode()

    clean = redactor.text("CUST-1 has pin 1234, CUST-2 not; 1234")
    assert clean == f"{stands('CUST-1')} has pin {stands('1234')}, {stands('CUST-2')} not; 1234"
    assert redactor.text(clean) == clean


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("$.user.ssn", {"078-05-1120"}),
        ("$.items[*].code", {"code-one-1", "code-two-2"}),
        ("$.items[1].code", {"code-two-2"}),
        ("$..ssn", {"078-05-1120", "219-09-9999"}),
        ("$['user'].nested", {"219-09-9999"}),
    ],
)
def test_a_json_path_takes_out_what_it_leads_to(path: str, gone: set[str]) -> None:
    document = {
        "user": {"ssn": "078-05-1120", "nested": {"ssn": "219-09-9999"}},
        "items": [{"code": "code-one-1"}, {"code": "code-two-2"}],
    }
    for body in (json.dumps(document), f"data: {json.dumps(document)}\n\ndata: [DONE]\n\n"):
        clean = Redactor("0", known=(), patterns=[path]).body(body.encode()).decode()
        every = {"078-05-1120", "219-09-9999", "code-one-1", "code-two-2"}
        assert {secret for secret in every if secret not in clean} == gone


@pytest.mark.parametrize("entry", ["(", "$.user[", "$user", "$."])
def test_what_is_neither_is_refused(entry: str) -> None:
    with pytest.raises(Misuse, match=r"boundary\.redact\[0\]: "):
        Patterns([entry])


def test_no_entries_are_no_patterns() -> None:
    assert not Patterns()
    assert not Patterns([""])
