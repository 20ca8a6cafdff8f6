"""Settings for every test."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

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
