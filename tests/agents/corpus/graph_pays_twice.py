"""LangGraph: one node pays and sends the receipt, and is retried as a whole, so a receipt that cannot be sent means a
second payment. Its twin has a node for each, and a retry for the one that may be repeated."""

from typing import TypedDict

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

AGAIN = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)


class State(TypedDict, total=False):
    question: str
    answer: str


def _pay(_: State) -> State:
    return {"answer": f"Paid: {tool('pay', order_id='A-17')['receipt']}."}


def _notify(_: State) -> State:
    tool("notify", order_id="A-17")
    return {}


def _pay_and_notify(state: State) -> State:
    return {**_pay(state), **_notify(state)}


def _graph(*nodes):
    graph = StateGraph(State)
    for before, (name, node, retry) in zip([START, *(name for name, *_ in nodes)], nodes, strict=False):
        graph.add_node(name, node, retry_policy=retry)
        graph.add_edge(before, name)
    graph.add_edge(nodes[-1][0], END)
    return graph.compile()


async def _answer(graph, prompt: str) -> str:
    try:
        return (await graph.ainvoke({"question": prompt}))["answer"]
    except TOOL_FAILURES:
        return UNAVAILABLE


async def bug(prompt: str) -> str:
    return await _answer(_graph(("order", _pay_and_notify, AGAIN)), prompt)


async def twin(prompt: str) -> str:
    return await _answer(_graph(("pay", _pay, None), ("notify", _notify, AGAIN)), prompt)
