"""The agents under test: how each kind is started, asked, reset and stopped. They fulfil `engine.ports.Agent`."""

from flakestorm.agents.registry import agents, make

__all__ = ["agents", "make"]
