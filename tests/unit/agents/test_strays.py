"""Processes that left their agent's group and session: found by the token they carry, and nobody else."""

import asyncio
import os
import secrets
import sys

import pytest

from agents_support import HOLD, lifelines
from flakestorm.agents.strays import end_strays, token_of


@pytest.mark.parametrize(
    ("env", "token"),
    [
        ({}, ""),
        ({"FLAKESTORM_RUN": "short"}, ""),
        ({"FLAKESTORM_RUN": "not a token of ours"}, ""),
        ({"FLAKESTORM_RUN": "a-token_of_sixteen-characters"}, "a-token_of_sixteen-characters"),
    ],
)
def test_what_counts_as_a_token(env: dict[str, str], token: str) -> None:
    assert token_of(env) == token


def test_a_token_that_this_process_was_given_is_not_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    token = secrets.token_urlsafe()
    monkeypatch.setenv("FLAKESTORM_RUN", token)
    assert token_of(dict(os.environ)) == ""


async def test_who_carries_the_token_is_ended_and_nobody_else() -> None:
    token, other = secrets.token_urlsafe(), secrets.token_urlsafe()
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        carriers = (token, token, other, f"{token}x", "")
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", hold, env={**os.environ, "FLAKESTORM_RUN": carried}, start_new_session=True
            )
            for carried in carriers
        ]
        for _ in programs:
            await lines.next()
        assert end_strays("") == 0
        assert end_strays(token) == 2
        assert [await program.wait() for program in programs[:2]] == [-9, -9]
        assert [program.returncode for program in programs[2:]] == [None, None, None]
        for program in programs[2:]:
            program.kill()
            await program.wait()
