from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.choices import Choices
from flakestorm.core.conversation import Conversation
from flakestorm.mutations.dialogue import dialogue
from flakestorm.mutations.generate import Recipe, nth, row

TYPES = ("multi_turn_attack", "context_manipulation")
OPERATORS = [operator for name in TYPES for operator in dialogue(name)]
TALKS = st.lists(st.text(min_size=1, max_size=30), min_size=2, max_size=5).map(Conversation)


@given(TALKS, st.sampled_from(OPERATORS), st.integers(0, 99))
def test_golden_turns_stay_in_order_and_the_last_is_the_last(talk: Conversation, operator, seed: int) -> None:
    made = operator.change(talk, Choices(seed).stream("draw"))
    kept = [turn for turn, number in zip(made.turns, made.numbers, strict=True) if number]
    assert kept == list(talk.turns)
    assert made.turns[-1] == talk.turns[-1]
    assert made.turns[0] == talk.turns[0]
    assert len(made.turns) > len(talk.turns)


def test_only_conversations_have_them() -> None:
    recipe = Recipe(TYPES, 6, 1, {}, {})
    names = {operator.name for operator in OPERATORS if operator.name != "contradiction"}
    texts = [next_ for name in TYPES for next_, _ in zip(row(recipe, name, "hello there"), range(40), strict=False)]
    assert not names & {mutation.operator for mutation in texts}


def test_operators_on_texts_change_one_turn_and_rows_are_decided_by_the_seed() -> None:
    recipe, talk = Recipe(("noise",), 6, 1, {}, {}), Conversation(["my name is Bob", "who am I to you?"])
    made = [mutation for mutation, _ in zip(row(recipe, "noise", talk), range(12), strict=False)]
    for mutation in made:
        assert isinstance(mutation.text, Conversation)
        differing = [one for one, other in zip(mutation.text.turns, talk.turns, strict=True) if one != other]
        assert len(differing) == 1
    assert {m.text.turns[0] == talk.turns[0] for m in made if isinstance(m.text, Conversation)} == {True, False}
    assert nth(recipe, "noise", talk, 5) == made[4]
