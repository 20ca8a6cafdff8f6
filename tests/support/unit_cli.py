"""The command line, called in process."""

import pytest

from flakestorm.cli.main import main

ECHO = """
version: "2.0"
agent: {type: python, endpoint: "echo_agent:answer"}
golden_prompts: [hello, bye]
contract:
  name: echo
  invariants: [{id: echoes, type: contains, value: "you said"}]
  chaos_matrix: [{name: calm}]
"""
NOBODY = (
    'version: "2.0"\nagent: {endpoint: "http://127.0.0.1:9"}\ngolden_prompts: [hi]\ninvariants: [{type: completes}]\n'
)


def run(*args: str) -> int:
    """The exit code of `flakestorm ARGS`."""
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    code = stop.value.code
    assert isinstance(code, int)
    return code
