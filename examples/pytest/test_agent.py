import pytest

QUESTION = "Where is parcel P-301?"


def test_says_where_the_parcel_is(agent_run, tape):
    run = agent_run(QUESTION)
    assert "Bergen" in run.output
    assert len(run.tape.calls(tool="track")) == 1


@pytest.mark.flakestorm(scenario="carrier-down")
def test_admits_that_the_carrier_is_down(agent_run, tape):
    run = agent_run(QUESTION)
    assert "unavailable" in run.output
    assert "Bergen" not in run.output
    assert len(run.tape.calls(tool="track")) == 1  # it is not asked again and again


@pytest.mark.flakestorm(faults=["tool/track=timeout_after_commit,times=1"])
def test_gives_up_on_a_silent_carrier(agent_run, tape):
    run = agent_run(QUESTION)
    assert run.error is None
    assert run.latency_ms < 10_000


@pytest.mark.flakestorm(faults=["llm/*=rate_limit,times=1"])
def test_a_busy_model_is_asked_again(agent_run, tape):
    assert "Bergen" in agent_run(QUESTION).output
