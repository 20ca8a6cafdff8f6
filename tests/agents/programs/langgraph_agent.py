"""LangGraph's ReAct agent over langchain-openai."""

import os

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import ToolNode, create_react_agent
from tools import search, seats

model = ChatOpenAI(model="gpt-4o", base_url=f"{os.environ['UPSTREAM_URL']}/v1", api_key="test")
graph = create_react_agent(model, ToolNode([search, seats], handle_tool_errors=True))


async def stream(text):
    async for chunk, _ in graph.astream({"messages": [("user", text)]}, stream_mode="messages"):
        if chunk.type == "AIMessageChunk" and chunk.content:
            yield chunk.content
