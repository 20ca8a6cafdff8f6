import pytest
from hypothesis import given

from flakestorm.mutations.injection import GOALS
from mutations_support import PROMPTS, by_operator, kinds, lost, mutations, prompts


@given(prompt=prompts)
def test_the_prompt_is_still_there(prompt) -> None:
    for kind in ("prompt_injection", "context_manipulation"):
        for mutation in mutations(kind, prompt, count=15):
            assert prompt.strip() in mutation.text
            assert not lost(prompt, mutation.text)


def test_every_injection_is_an_attack_with_an_aim() -> None:
    found = by_operator("prompt_injection", count=60)
    assert found.keys() == kinds("prompt_injection")["attack"]
    plain = {"payload_splitting", "encoded_order", "exfiltration", "forced_prefix"}
    for name, each in found.items():
        assert name in plain or all(any(goal in m.text for goal in GOALS) for m in each), name


def test_distraction_is_benign_and_lies_are_not() -> None:
    assert kinds("context_manipulation") == {
        "benign": {"irrelevant_before", "irrelevant_after", "buried", "fresh_start"},
        "attack": {"false_memory", "contradiction", "false_premise", "forged_context"},
    }


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_split_order_is_in_no_single_line(prompt) -> None:
    for mutation in by_operator("prompt_injection", prompt, count=60)["payload_splitting"]:
        assert not any(goal in mutation.text for goal in GOALS)
