from typing import Any

from flakestorm.agents.history import History, with_history


def knowing(prompt: str, history: Any = None) -> Any:
    return history


def needing(prompt: str, history: Any) -> Any:
    return history


def plain(prompt: str) -> str:
    return prompt


def test_a_function_that_asks_for_the_history_gets_it() -> None:
    history = History()
    assert with_history(knowing, history)("hi") == []
    history.add("hi", "hello")
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert with_history(knowing, history)("and?") == messages
    assert with_history(plain, history) is plain
    assert with_history(print, history) is print


def test_outside_a_conversation_there_is_none_unless_it_is_needed() -> None:
    assert with_history(knowing, None)("hi") is None
    assert with_history(needing, None)("hi") == []


def test_what_an_agent_does_to_it_stays_with_the_agent() -> None:
    history = History()
    history.add("hi", "hello")
    with_history(knowing, history)("and?").clear()
    assert len(history) == 2
    assert with_history(knowing, history)("and?").thread == history.thread
    assert History().thread != History().thread
