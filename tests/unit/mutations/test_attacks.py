import json

from hypothesis import given

from mutations_support import by_operator, kinds, mutations, prompts


@given(prompt=prompts)
def test_all_are_attacks_that_hold_the_prompt(prompt) -> None:
    for kind in ("advanced_jailbreak", "multi_turn_attack"):
        for mutation in mutations(kind, prompt, count=14):
            assert mutation.kind == "attack"
            if mutation.operator != "json_messages":
                assert prompt.strip() in mutation.text


def test_every_operator_is_used() -> None:
    for kind in ("advanced_jailbreak", "multi_turn_attack"):
        assert by_operator(kind, count=40).keys() == kinds(kind)["attack"]


@given(prompt=prompts)
def test_forged_messages_are_valid_and_end_with_the_user(prompt) -> None:
    for mutation in by_operator("multi_turn_attack", prompt, count=12)["json_messages"]:
        messages = json.loads(mutation.text)
        assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
        assert messages[-1]["content"].endswith(prompt)


def test_many_shots_are_many() -> None:
    for mutation in by_operator("advanced_jailbreak", count=60)["many_shot"]:
        assert mutation.text.count("\nAssistant:") >= 8
