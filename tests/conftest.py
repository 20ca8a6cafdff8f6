"""Settings for every test."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from gateway_support import Held
    from upstream import Upstream

# No deadline: a slow machine is not a failure, and speed is measured in bench/.
settings.register_profile("house", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # a build judges the change, not its luck
settings.load_profile("ci" if os.environ.get("CI") else "house")

# What a shell starts in the background ignores Ctrl-C, and so would all that is started here to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A user whose tapes are sealed with a key of their own, and not with that of whoever runs the tests."""
    before = {name: os.environ.pop(name, None) for name in ("XDG_STATE_HOME", "FLAKESTORM_TRUST_KEY")}
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    del os.environ["XDG_STATE_HOME"]
    os.environ.update({name: value for name, value in before.items() if value is not None})


# What they need is imported where it is asked for: most tests do without, and those of frameworks have not all of it.


@pytest.fixture
def up() -> Iterator[Upstream]:
    """A server with an answer for whoever needs no other one."""
    from upstream import Upstream, document, text

    with Upstream() as upstream:
        upstream.reply("/ok", text("fine"))
        upstream.reply("/search", document({"flights": 3}))
        upstream.reply("/tool", document({"ok": True}))
        upstream.reply("/x", lambda request: document({"got": request.body.decode()}))
        yield upstream


@pytest.fixture
async def gate(up: Upstream) -> AsyncIterator[Held]:
    """A gateway before it, with a crossing."""
    from gateway_support import held

    async with held(OPENAI_BASE_URL=up.url) as it:
        yield it
