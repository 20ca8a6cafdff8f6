from hypothesis import given

from mutations_support import by_operator, kinds, lost, mutations, prompts


@given(prompt=prompts)
def test_the_prompt_stays(prompt) -> None:
    for mutation in mutations("temporal_attack", prompt, count=16):
        assert prompt.strip() in mutation.text
        assert not lost(prompt, mutation.text)


def test_every_operator_is_used() -> None:
    found = kinds("temporal_attack")
    assert by_operator("temporal_attack", count=60).keys() == found["attack"] | found["benign"]
    assert found["benign"] == {"beside_the_point"}
