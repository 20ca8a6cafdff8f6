"""A railway assistant: a LangGraph graph with a model node and LangGraph's own ToolNode; its tools ask a web service.

Needs OPENAI_API_KEY and TIMETABLE_URL.
"""

import os

import httpx
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

TIMETABLE_URL = os.environ["TIMETABLE_URL"]


def ask(path: str, **query: str) -> dict:
    reply = httpx.get(f"{TIMETABLE_URL}/{path}", params=query, timeout=5)
    reply.raise_for_status()
    return reply.json()


@tool
def departures(to: str) -> dict:
    """The next trains to a station."""
    return ask("departures", to=to)


@tool
def platform(train: str) -> dict:
    """The platform that a train leaves from."""
    return ask("platforms", train=train)


TOOLS = [departures, platform]
model = ChatOpenAI(model="gpt-4o-mini").bind_tools(TOOLS)


def think(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("think", think)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge(START, "think")
builder.add_conditional_edges("think", tools_condition)
builder.add_edge("tools", "think")
graph = builder.compile()
