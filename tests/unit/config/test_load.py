"""Reading whole files: what loads, what it means, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from config_legacy import LEGACY
from config_support import BASE, config
from flakestorm.config.load import load, loads, placing, read, reads, text_of
from flakestorm.config.marked import MAX_BYTES
from flakestorm.config.model import Config, Scenario
from flakestorm.errors import ConfigError

LEGACY_ENVIRONMENT = {"LEGACY_TOKEN": "t0", "LEGACY_KEY": "k0"}


@pytest.mark.parametrize("name", LEGACY)
def test_configs_of_earlier_versions_load_unchanged(name: str) -> None:
    loaded = loads(LEGACY[name], variables=LEGACY_ENVIRONMENT)
    assert loaded.agent.endpoint
    assert all(rule.id for rule in loaded.invariants)


def test_what_a_v1_config_says_is_kept() -> None:
    loaded = loads(LEGACY["v1, every key"], variables=LEGACY_ENVIRONMENT)
    assert loaded.agent.method == "POST"
    assert loaded.agent.parse_structured_input is False
    assert loaded.agent.headers == {"Authorization": "Bearer t0", "X-Plain": "t0"}
    assert (loaded.model.provider, loaded.model.api_key, loaded.model.base_url) == ("openai", "k0", None)
    assert len(loaded.mutations.types) == 24
    assert loaded.mutations.weights == {"paraphrase": 1.0, "prompt_injection": 2.5}
    first = loaded.invariants[0]
    assert (first.id, first.severity, first.when) == ("contains", "medium", "always")
    assert loaded.invariants[-1].negate is True
    assert loaded.advanced.seed is None


def test_what_a_v2_config_says_is_kept() -> None:
    loaded = loads(LEGACY["v2, every block"])
    assert loaded.chaos is not None
    assert loaded.contract is not None
    assert [len(loaded.chaos.tool_faults), len(loaded.chaos.llm_faults), len(loaded.chaos.context_attacks)] == [5, 6, 5]
    assert [scenario.chaos for scenario in loaded.contract.chaos_matrix] == [False, True]
    assert loaded.chaos_matrix == []
    session = loaded.replays.sessions[0]
    assert (session.context, session.tool_responses[1].response) == ([], {"rows": [1, 2]})
    assert loaded.scoring.chaos == 0.25


def test_the_mapping_form_of_context_attacks() -> None:
    loaded = loads(LEGACY["v2, root matrix and mapping form"])
    assert loaded.chaos is not None
    attacks = loaded.chaos.context_attacks
    assert [(a.type, a.enabled) for a in attacks] == [("indirect_injection", True), ("memory_poisoning", False)]
    assert loaded.contract is None
    assert loaded.replays.sessions == []


def test_a_bare_number_or_yes_where_text_is_wanted_is_the_text_as_written() -> None:
    loaded = loads(
        "version: 2.0\n"
        "agent: {endpoint: x, env: {PORT: 8000, DEBUG: yes, RELEASE: 1.10, AT: 12:30}, ready: 8000, start: [a, 1]}\n"
        "golden_prompts: [42, no]\n"
        "invariants: [{type: contains, value: 007, id: 1}]\n"
    )
    assert loaded.version == "2.0"
    assert loaded.agent.env == {"PORT": "8000", "DEBUG": "yes", "RELEASE": "1.10", "AT": "12:30"}
    assert (loaded.agent.ready, loaded.agent.start) == (8000, ["a", "1"])
    assert loaded.golden_prompts == ["42", "no"]
    assert (loaded.invariants[0].value, loaded.invariants[0].id) == ("007", "1")


def test_a_key_without_a_value_has_its_default() -> None:
    loaded = config("chaos:\n  tool_faults:\n  # - mode: error\nadvanced:\noutput: {format: }\nmutations: {types: }\n")
    assert loaded.chaos is not None
    assert (loaded.chaos.tool_faults, loaded.advanced.concurrency, loaded.output.format) == ([], 10, "html")
    assert len(loaded.mutations.types) == 7


def test_expanded_numbers_are_numbers() -> None:
    assert config("advanced: {concurrency: '${N}'}", variables={"N": "7"}).advanced.concurrency == 7


def test_mutation_count_has_a_limit_in_version_1_only() -> None:
    assert config("version: '2.0'\nmutations: {count: 500}").mutations.count == 500
    with pytest.raises(ConfigError, match="between 1 and 50"):
        config("version: '1.0'\nmutations: {count: 51}")
    with pytest.raises(ConfigError, match="between 1 and 50"):
        config("mutations: {count: 51}")


def test_the_folder_is_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "flakestorm.yaml"
    file.write_text("\ufeff" + BASE, encoding="utf-8")
    assert load(file).folder == str(tmp_path.resolve())
    assert loads(BASE, folder=tmp_path).folder == str(tmp_path.resolve())


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "3\n"])
def test_a_file_must_be_a_mapping(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f.yaml:1: the file must be a mapping"):
        loads(text, file="f.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file; 'flakestorm init' writes a starter"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ConfigError, match=r"latin.yaml:2: is not UTF-8 text"):
        load(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 4 MB"):
        text_of(tmp_path / "large.yaml")


def test_other_shapes_are_read_as_strictly(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("name: down\ntool_faults: [{mode: error}]\n", encoding="utf-8")
    assert read(file, Scenario).chaos
    with pytest.raises(ConfigError, match=r"x.yaml:1: nam: unknown key 'nam'; did you mean 'name'\?"):
        reads("nam: down", Scenario, file="x.yaml")


def test_the_result_is_frozen() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        config().version = "2.0"
    assert isinstance(config(), Config)


PLACED = """version: "2.0"
agent:
  endpoint: "http://127.0.0.1:9"
  headers:
    X.Y: "1"
golden_prompts:
  - a
  - b
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("agent.endpoint", 3),
        ("agent.headers.X.Y", 4),  # a name with a dot leads as far as it can be followed
        ("golden_prompts[1]", 8),
        ("golden_prompts[7]", 6),
        ("agent.session", 2),
        ("contract.chaos_matrix", 1),
        ("model", 1),
    ],
)
def test_a_complaint_about_a_key_gets_the_line_of_what_there_is_of_it(tmp_path: Path, key: str, line: int) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(PLACED)
    with pytest.raises(ConfigError) as caught, placing(file):
        raise ConfigError("no", key=key)
    assert (caught.value.line, caught.value.key, caught.value.message) == (line, key, "no")
    assert str(caught.value) == f"{file}:{line}: {key}: no"


def test_a_complaint_about_another_file_gets_the_line_there(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("id: a\ncontract: b\n")
    with pytest.raises(ConfigError, match=r"s\.yaml:2: contract: no$"), placing(tmp_path / "f.yaml"):
        raise ConfigError("no", file=tmp_path / "s.yaml", key="contract")


@pytest.mark.parametrize("text", [None, "[", "\0"])
def test_where_nothing_can_be_looked_up_the_complaint_stays(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "f.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"^model: no$"), placing(file):
        raise ConfigError("no", key="model")
