"""The adapters fulfil the ports; mypy proves the signatures, this proves that nothing is missing at run time."""

import inspect

import pytest

from flakestorm.agents.command import CommandAgent
from flakestorm.agents.http import HttpAgent
from flakestorm.agents.python import PythonAgent
from flakestorm.boundary.hub import Hub
from flakestorm.engine import ports
from flakestorm.executors.local import LocalExecutor


@pytest.mark.parametrize(
    ("adapter", "port"),
    [
        (HttpAgent, ports.Agent),
        (PythonAgent, ports.Agent),
        (CommandAgent, ports.Agent),
        (Hub, ports.Boundary),
        (LocalExecutor, ports.Executor),
    ],
)
def test_adapters_have_what_their_port_asks_for(adapter, port) -> None:
    for name, method in vars(port).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            assert inspect.iscoroutinefunction(getattr(adapter, name)) == inspect.iscoroutinefunction(method), name
