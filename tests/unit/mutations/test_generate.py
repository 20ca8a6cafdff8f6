from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.errors import Misuse
from flakestorm.mutations.base import REQUEST_TYPES, TEXT_LIMIT, Operator
from flakestorm.mutations.generate import Recipe, made, nth, row
from mutations_support import PROMPTS, kinds, lost, mutations, prompts, recipe

BENIGN = ["language_mixing", "noise", "paraphrase", "semantic_similarity_attack", "tone_shift"]
TYPES = [name for name in MUTATION_WEIGHTS if name != "custom"]


@given(prompt=prompts, seed=st.integers(), kind=st.sampled_from(TYPES))
def test_the_same_seed_gives_the_same_mutations(prompt, seed, kind) -> None:
    def texts() -> list[tuple[str, str]]:
        return [(m.operator, m.text) for m in islice(row(recipe(kind, seed=seed), kind, prompt), 6)]

    assert texts() == texts()


@given(prompt=prompts)
def test_no_two_are_alike_and_what_is_missing_is_said(prompt) -> None:
    wanted = recipe(*TYPES, count=4)
    found, notes = made(wanted, prompt)
    written = [m.text for m in found if m.change is None]
    assert len({*written, prompt}) == len(written) + 1
    assert all(len(text) <= TEXT_LIMIT for text in written)
    for kind in TYPES:
        short = sum(m.type == kind for m in found) < 4
        assert short == any(note.startswith(f"{kind}: ") for note in notes)


def test_a_type_does_not_depend_on_the_others() -> None:
    alone, _ = made(recipe("noise"), "Book a flight")
    among, _ = made(recipe("paraphrase", "noise"), "Book a flight")
    assert [m.text for m in among if m.type == "noise"] == [m.text for m in alone]


def test_a_number_names_a_mutation() -> None:
    for kind in ("noise", *REQUEST_TYPES):
        found, _ = made(recipe(kind, count=5), "Book a flight")
        for mutation in found:
            again = nth(recipe(kind), kind, "Book a flight", mutation.number)
            assert (again.operator, again.text) == (mutation.operator, mutation.text)
    with pytest.raises(Misuse, match=r"no mutation noise#0"):
        nth(recipe("noise"), "noise", "x", 0)


def test_weights_are_the_default_or_what_was_given() -> None:
    found, _ = made(Recipe(["noise", "tone_shift"], 1, 1, {"noise": 3.0}, {}), "hello")
    assert [m.weight for m in found] == [3.0, MUTATION_WEIGHTS["tone_shift"]]


def test_a_plug_in_adds_a_type(monkeypatch) -> None:
    from flakestorm.mutations.base import types

    plugged = {"pirate": lambda: (Operator("arr", "benign", lambda prompt, _: f"Arr! {prompt}"),)}
    monkeypatch.setattr(types, "get", plugged.__getitem__)
    found, notes = made(recipe("pirate", count=2), "hello")
    assert [m.text for m in found] == ["Arr! hello"]
    assert notes


@pytest.mark.parametrize("make", [lambda: ("nonsense",), lambda: 1 / 0, lambda: 5])
def test_a_plug_in_that_gives_something_else_is_refused(monkeypatch, make) -> None:
    from flakestorm.mutations.base import types

    monkeypatch.setattr(types, "get", lambda _: make)
    with pytest.raises(Misuse, match="mutation type 'pirate'"):
        made(recipe("pirate"), "hello")


def test_a_plug_in_that_fails_on_a_prompt_is_named(monkeypatch) -> None:
    from flakestorm.mutations.base import types

    monkeypatch.setattr(types, "get", lambda _: lambda: (Operator("bad", "benign", lambda *_: 1 / 0),))
    with pytest.raises(Misuse, match="pirate/bad failed on 'hello'"):
        made(recipe("pirate"), "hello")


@pytest.mark.parametrize("kind", ["encoding_attacks", "token_manipulation", "format_poisoning"])
def test_a_small_count_reaches_every_operator_over_the_prompts(kind) -> None:
    from flakestorm.mutations.generate import operators_of

    used = {m.operator for n in range(40) for m in made(recipe(kind, count=8), f"Book a flight to Oslo, {n}")[0]}
    assert used == {operator.name for operator in operators_of(kind, {})}


@pytest.mark.parametrize("kind", BENIGN)
@given(prompt=prompts)
@example(prompt="HI")
@example(prompt="IT IS")
@example(prompt="A0")
@example(prompt="Write@example.com is whom to ask")
def test_facts_survive(kind, prompt) -> None:
    for mutation in mutations(kind, prompt, count=20):
        assert mutation.kind == "benign"
        assert lost(prompt, mutation.text) == []
        assert mutation.text != prompt


@pytest.mark.parametrize("kind", BENIGN)
def test_every_operator_has_something_to_say(kind) -> None:
    found = {m.operator for prompt in PROMPTS for m in mutations(kind, f"do not know their flight. {prompt}", count=40)}
    assert found == kinds(kind)["benign"]
    assert not kinds(kind)["attack"]
