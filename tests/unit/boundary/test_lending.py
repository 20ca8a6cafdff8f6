from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flakestorm.boundary import lending
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.lending import Lender, borrow
from flakestorm.boundary.passage import Passage
from flakestorm.errors import AgentUnreachable

HERE = "http://127.0.0.1:4711/r/TOKEN"


@pytest.fixture
async def lent() -> AsyncIterator[tuple[Gateway, Passage]]:
    gateway = Gateway()
    await gateway.start()
    passage = gateway.admit()
    passage.upstreams = {"openai": "https://api.test"}
    lender = Lender(gateway, passage, {"OPENAI_BASE_URL": "http://x"})
    lender.start()
    yield gateway, passage
    await lender.close()
    await gateway.close()
    assert not lending._door(passage.token).exists()


async def test_a_loan_is_the_port_the_token_and_the_upstreams(lent: tuple[Gateway, Passage]) -> None:
    gateway, passage = lent
    loan = await asyncio.to_thread(borrow, f"{gateway.url(passage)}/p/openai/v1")
    assert loan is not None
    assert (loan.token, loan.upstreams, loan.variables) == (
        passage.token,
        passage.upstreams,
        {"OPENAI_BASE_URL": "http://x"},
    )
    assert loan.listener.getsockname() == ("127.0.0.1", gateway.port)
    loan.close()


async def test_one_borrower_at_a_time_and_the_next_when_it_has_gone(lent: tuple[Gateway, Passage]) -> None:
    gateway, passage = lent
    first = await asyncio.to_thread(borrow, gateway.url(passage))
    assert first is not None
    with pytest.raises(AgentUnreachable, match=f"127.0.0.1:{gateway.port} is being used by another run"):
        await asyncio.to_thread(borrow, gateway.url(passage))
    first.close()
    while True:  # the lender hears of it when the system tells it
        try:
            second = await asyncio.to_thread(borrow, gateway.url(passage))
        except AgentUnreachable:
            continue
        break
    assert second is not None
    second.close()


async def test_nobody_else_may_knock(lent: tuple[Gateway, Passage]) -> None:
    door = lending._door(lent[1].token)
    assert stat.S_IMODE(door.stat().st_mode) == 0o600
    assert lent[1].token not in str(door)


@pytest.mark.parametrize("url", [HERE, "http://127.0.0.1:1/v1", "https://api.openai.com/v1", ""])
def test_what_is_no_standing_gateway_lends_nothing(url: str) -> None:
    assert borrow(url) is None


async def test_a_gateway_that_was_killed_lends_nothing() -> None:
    gateway = Gateway()
    await gateway.start()
    passage = gateway.admit()
    lender = Lender(gateway, passage, {"OPENAI_BASE_URL": "http://x"})
    lender.start()
    door, kept = lending._door(passage.token), Path(f"{lending._door(passage.token)}.kept")
    os.link(door, kept)
    await lender.close()
    kept.rename(door)  # nobody listens there, as after a kill
    try:
        assert await asyncio.to_thread(borrow, gateway.url(passage)) is None
    finally:
        door.unlink()
        await gateway.close()
