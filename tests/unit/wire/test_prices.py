import pytest

from flakestorm.wire.base import Usage
from flakestorm.wire.prices import Price, cost, price_of, prices


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("GPT-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-4.1-nano", "gpt-4.1-nano"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gpt-4-0613", "gpt-4"),
    ],
)
def test_versions_and_places_do_not_change_the_price(model: str, known: str) -> None:
    assert price_of(model) == prices()[known]


@pytest.mark.parametrize("model", ["", "qwen3:8b", "gpt-4o-audio", "gpt-9", "my/gpt-4o-tuned", "claude"])
def test_another_model_is_not_taken_for_one_that_is_known(model: str) -> None:
    assert price_of(model) is None


def test_own_prices_go_before_the_table() -> None:
    own = {"gpt-4o": Price(1, 2), "Qwen3:8b": Price(0, 0)}
    assert price_of("gpt-4o-2024-08-06", own) == Price(1, 2)
    assert price_of("qwen3:8b", own) == Price(0, 0)
    assert price_of("gpt-4o-mini", own) == prices()["gpt-4o-mini"]


def test_cost_is_per_million() -> None:
    assert cost(Usage(1_000_000, 500_000), Price(2, 8)) == 6
    assert cost(Usage(None, 3), Price(2, 1_000_000)) == 3


def test_the_table_is_sound() -> None:
    assert len(prices()) >= 30
    assert all(0 <= price.output <= 100 and 0 < price.input <= 100 for price in prices().values())
