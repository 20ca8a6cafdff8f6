"""The command line, called in process."""

import pytest

from flakestorm.cli.main import main


def run(*args: str) -> int:
    """The exit code of `flakestorm ARGS`."""
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    code = stop.value.code
    assert isinstance(code, int)
    return code
