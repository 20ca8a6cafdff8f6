"""What tests of mutations share: prompts of many shapes, and the mutations of a type."""

from itertools import islice

from hypothesis import strategies as st

from flakestorm.mutations.base import Mutation, Operator
from flakestorm.mutations.generate import Recipe, operators_of, row
from flakestorm.mutations.spans import facts

PROMPTS = (
    "Book a flight from Berlin to Oslo on 12 May 2025 for $300",
    "What is the weather in São Paulo tomorrow?",
    "Summarise https://example.org/a?b=1&c=2 and send it to anna.maria@example.com",
    'Please tell "Dr. Who" that order AB-1234 is late, OK?',
    "Écris à Zürich à 14:30",
    "明天东京天气怎么样？",
    "hi",
    "Oslo?",
    "line one\nline two for IBM\n- item 3",
    "  spaces around  ",
)

prompts = st.one_of(
    st.sampled_from(PROMPTS),
    st.text(min_size=1, max_size=120).filter(lambda text: text.strip() and "\0" not in text),
    st.lists(
        st.sampled_from(["book", "a", "flight", "to", "Oslo", "Paris", "the", "weather", "12", "?",
                         "https://a.example/x", "please", "$40", "Anna", "and", "send", "my", "order"]),
        min_size=1, max_size=14,
    ).map(" ".join),
)  # fmt: skip


def recipe(*types: str, count: int = 10, seed: int = 1) -> Recipe:
    return Recipe(types, count, seed, {}, {})


def mutations(kind: str, prompt: str = PROMPTS[0], *, count: int = 40, seed: int = 1) -> list[Mutation]:
    return list(islice(row(recipe(kind, seed=seed), kind, prompt), count))


def by_operator(kind: str, prompt: str = PROMPTS[0], **how: int) -> dict[str, list[Mutation]]:
    found: dict[str, list[Mutation]] = {}
    for mutation in mutations(kind, prompt, **how):
        found.setdefault(mutation.operator, []).append(mutation)
    return found


def kinds(kind: str) -> dict[str, set[str]]:
    """Operators by kind."""
    found: dict[str, set[str]] = {"benign": set(), "attack": set()}
    for operator in operators_of(kind, {}):
        found[operator.kind].add(operator.name)
    return found


def lost(prompt: str, text: str) -> list[str]:
    """The prompt's facts that the text does not have."""
    return [fact for fact in facts(prompt) if fact not in text]


def undone(kind: str, mutation: Mutation) -> str | None:
    """The prompt, as its encoding gives it back."""
    for operator in operators_of(kind, {}):
        if isinstance(operator, Operator) and operator.name == mutation.operator and operator.undo:
            return operator.undo(mutation.text)
    return None
