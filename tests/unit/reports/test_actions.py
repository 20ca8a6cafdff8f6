from dataclasses import replace

import pytest

from flakestorm.reports.actions import next_step
from flakestorm.reports.grid import grid_of
from report_samples import HOSTILE, sample


def case(scenario: str, invariant: str, prompt: int = 0, **changes: object):
    report = sample()
    square = next(s for s in grid_of(report).squares if (s.scenario.name, s.invariant.id) == (scenario, invariant))
    cell = next(cell for cell in square.cells if cell.prompt == prompt)
    run = next(run for run in report.runs if run.id == cell.run)
    return square, cell, replace(run, **changes)  # type: ignore[arg-type]


def test_after_a_fault_it_names_the_call_and_quotes_the_answer() -> None:
    assert next_step(*case("booking-times-out", "no-false-booking")) == (
        "Look at what the agent does after tool/book_flight#1 timeout:300 (no reply): "
        "it answered “Your flight NW-118 to Oslo is booked.”"
    )
    said = next_step(*case("booking-times-out", "no-false-booking", error="crash: KeyError 'id'"))
    assert said.endswith("it gave no answer but “crash: KeyError 'id'”.")


def test_what_fails_without_chaos_is_mended_there() -> None:
    assert next_step(*case("booking-times-out", "fast")).startswith("Mend it without chaos first: prompt 0")
    assert next_step(*case("no-chaos", "fast", 1)).startswith("No fault was needed: on prompt 1 it answered")


def test_a_fault_that_did_not_fire_is_told_with_what_was_called() -> None:
    said = next_step(*case("model-cut-short", "fast"))
    assert "Nothing fired of llm/*=truncated_response:6" in said
    assert "the agent called search_flights, book_flight" in said
    fired = case("booking-times-out", "fast")[2].fired
    assert "found nothing to change" in next_step(*case("model-cut-short", "fast", idle=fired))
    assert "by another fault" in next_step(*case("model-cut-short", "fast", masked=fired))


def test_without_evidence_it_says_nothing() -> None:
    square, cell, _ = case("model-cut-short", "fast")
    assert next_step(square, cell, None) == ""
    assert next_step(*case("booking-times-out", "always-answers", 1)) == ""


@pytest.mark.parametrize("scenario", ["booking-times-out", "model-cut-short"])
def test_hostile_evidence_is_quoted_visibly(scenario) -> None:
    said = next_step(*case(scenario, "fast", output=HOSTILE, seen=(HOSTILE,)))
    assert not {"\x1b", "\u202e", "\n"} & set(said)
