import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.conversation import Conversation, prompt_of, turns_of

TURNS = st.lists(st.text(max_size=20), min_size=2, max_size=5)


def test_a_conversation_is_a_text_too() -> None:
    talk = Conversation(["hello", "and then?"])
    assert talk == "[1] hello\n[2] and then?"
    assert type(str(talk)) is str
    assert (talk.turns, talk.numbers) == (("hello", "and then?"), (1, 2))


def test_a_list_of_one_turn_is_a_text() -> None:
    assert type(prompt_of(["hello"])) is str
    assert prompt_of("hello") == "hello"
    assert turns_of("hello") == ("hello",)


@given(TURNS)
def test_turns_survive_copies(turns: list[str]) -> None:
    talk = Conversation(turns).with_turn(1, "between")
    for other in (copy.deepcopy(talk), pickle.loads(pickle.dumps(talk))):
        assert (other, other.turns, other.numbers) == (talk, talk.turns, talk.numbers)
    assert turns_of(prompt_of(turns)) == tuple(turns)


@given(TURNS, st.data())
def test_turns_put_in_between_leave_the_others_their_numbers(turns: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(turns)))
    longer = Conversation(turns).with_turn(at, "one", "two")
    assert [turn for turn, number in zip(longer.turns, longer.numbers, strict=True) if number] == turns
    assert longer.turns[at : at + 2] == ("one", "two")


def test_one_turn_is_changed() -> None:
    talk = Conversation(["hello", "and then?"])
    assert talk.changed(1, str.upper).turns == ("hello", "AND THEN?")
    assert talk.changed(0, str.lower) is talk
