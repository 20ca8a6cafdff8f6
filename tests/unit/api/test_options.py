from pathlib import Path

from flakestorm.api import Options


def test_defaults_leave_everything_to_the_config() -> None:
    options = Options()
    assert (options.seed, options.trials, options.concurrency, options.min_score, options.resume) == (None,) * 5
    assert options.tapes == Path("reports/tapes")
    assert options.listener(object()) is None  # type: ignore[arg-type, func-returns-value]
