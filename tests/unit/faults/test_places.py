import pytest

from flakestorm.config.model import ContextAttack
from flakestorm.errors import Misuse
from flakestorm.faults.places import Place, place_of


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, Place("conversation")),
        ({"inject_at": "conversation"}, Place("conversation")),
        ({"inject_at": "system"}, Place("system")),
        ({"inject_at": "input"}, Place("input")),
        ({"inject_at": "step_2"}, Place("conversation", 2)),
        ({"site": "agent/input#1"}, Place("input")),
        ({"site": "llm/m#1"}, Place("conversation")),
    ],
)
def test_where_an_attack_goes(settings: dict[str, str], place: Place) -> None:
    assert place_of(ContextAttack(type="memory_poisoning", **settings)) == place


@pytest.mark.parametrize("said", ["", "memory", "step_0", "step_", "Input"])
def test_what_is_no_place_is_refused_with_those_there_are(said: str) -> None:
    if not said:
        assert place_of(ContextAttack(type="overflow", inject_at=said)) == Place("conversation")
        return
    with pytest.raises(Misuse, match="use conversation, system, step_N or input"):
        place_of(ContextAttack(type="memory_poisoning", inject_at=said))


def test_the_input_is_for_memory_poisoning_only() -> None:
    with pytest.raises(Misuse, match="'inject_at: input' is for memory_poisoning"):
        place_of(ContextAttack(type="overflow", inject_at="input"))
