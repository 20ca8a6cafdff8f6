"""A smolagents tool-calling agent."""

import os

import tools
from smolagents import OpenAIModel, ToolCallingAgent, tool
from smolagents.monitoring import LogLevel

search, seats = tool(tools.search), tool(tools.seats)
TOOLS = [search]


def answer(text):
    model = OpenAIModel("gpt-4o", api_base=f"{os.environ['UPSTREAM_URL']}/v1", api_key="test")
    agent = ToolCallingAgent([search, seats], model, max_steps=5, verbosity_level=LogLevel.OFF, max_tool_threads=1)
    return agent.run(text)
