from pathlib import Path

import pytest

from config_support import BASE, complaints
from flakestorm.config.load import load, loads
from flakestorm.config.origins import mark, read_schemas
from flakestorm.errors import ConfigError

RULES = BASE + "invariants:\n  - type: completes\n  - {type: json_schema, schema: answer.json}\n"


def test_an_invariant_knows_where_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(BASE + "contract:\n  name: c\n  invariants:\n    - id: a\n      type: completes\n")
    config = load(tmp_path / "f.yaml")
    assert config.contract is not None
    origin = config.contract.invariants[0].origin
    assert (origin.folder, origin.file, origin.line) == (str(tmp_path), str(tmp_path / "f.yaml"), 7)
    assert config.contract.invariants[0].probing([]).origin.line == 7


def test_the_same_rule_in_two_places_is_the_same_rule() -> None:
    config = loads(
        BASE + "invariants: [{type: completes}]\ncontract: {name: c, invariants: [{type: completes}]}\n", file="f.yaml"
    )
    assert config.contract is not None
    assert config.invariants == config.contract.invariants


def test_a_schema_may_be_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"type": "object",\n "required": ["price"]}')
    rule = loads(RULES, folder=tmp_path).invariants[1]
    assert rule.schema_ == {"type": "object", "required": ["price"]}
    (tmp_path / "answer.json").write_text("type: object")  # YAML is as good
    assert loads(RULES, folder=tmp_path).invariants[1].schema_ == {"type": "object"}


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "No such file"), ("[1]", "a JSON Schema is an object"), ("{", "answer.json:"), ("x" * 5_000_000, "4 MB")],
)
def test_a_schema_file_that_cannot_be_read_is_named_by_line(tmp_path: Path, text: str | None, why: str) -> None:
    if text is not None:
        (tmp_path / "answer.json").write_text(text)
    with pytest.raises(ConfigError) as caught:
        loads(RULES, file="f.yaml", folder=tmp_path)
    assert "f.yaml:5: " in str(caught.value)
    assert "the schema file 'answer.json' cannot be read" in str(caught.value)
    assert why in str(caught.value)


def test_a_schema_file_whose_name_no_file_has(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the schema file .* cannot be read"):
        loads(BASE + 'invariants: [{type: json_schema, schema: "a\\0"}]\n', folder=tmp_path)


def test_every_problem_is_still_told_at_once() -> None:
    told = complaints("invariants:\n  - {type: json_schema, schema: nowhere.json}\n  - {type: nonsense}\n")
    assert len(told) >= 2


def test_other_shapes_are_left_alone() -> None:
    from flakestorm.config.marked import parse

    root = parse("invariants: {a: 1}\ncontract: [1]\n")
    assert list(read_schemas(root, ".")) == []
    mark(root, object(), file=None, folder=".")
