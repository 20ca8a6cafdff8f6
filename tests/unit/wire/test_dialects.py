import pytest

from flakestorm.wire.dialects import dialect_of


@pytest.mark.parametrize(
    ("wire", "message", "role"),
    [
        ("openai_chat", {"role": "user", "content": "x"}, "user"),
        ("openai_chat", {"role": "developer", "content": "x"}, "system"),
        ("openai_chat", {"role": "tool", "tool_call_id": "c", "content": "x"}, "tool"),
        ("openai_chat", {"role": "function", "name": "f", "content": "x"}, "tool"),
        ("openai_chat", {"role": "assistant", "content": "x"}, ""),
        ("openai_responses", {"role": "user", "content": "x"}, "user"),
        ("openai_responses", {"type": "message", "role": "system", "content": "x"}, "system"),
        ("openai_responses", {"type": "function_call_output", "call_id": "c", "output": "x"}, "tool"),
        ("openai_responses", {"type": "function_call", "name": "f"}, ""),
        ("openai_responses", {"type": "reasoning", "summary": []}, ""),
        ("openai_responses", {"type": "message", "role": "assistant", "content": []}, ""),
        ("anthropic", {"role": "user", "content": "x"}, "user"),
        ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}, "tool"),
        ("anthropic", {"role": "assistant", "content": "x"}, ""),
        ("gemini", {"parts": [{"text": "x"}]}, "user"),
        ("gemini", {"role": "user", "parts": [{"functionResponse": {"name": "f"}}]}, "tool"),
        ("gemini", {"role": "function", "parts": [{"function_response": {"name": "f"}}]}, "tool"),
        ("gemini", {"role": "model", "parts": [{"text": "x"}]}, ""),
        ("ollama", {"role": "tool", "content": "x"}, "tool"),
        ("ollama", {"role": "system", "content": "x"}, "system"),
    ],
)
def test_who_speaks_in_a_message(wire: str, message: dict, role: str) -> None:
    dialect = dialect_of(wire, {"messages": []})
    assert dialect is not None
    assert dialect.role(message) == role


def test_cohere_s_chat_and_legacy_completions_are_told_apart() -> None:
    chat, legacy = dialect_of("completions", {"messages": []}), dialect_of("completions", {"prompt": "x"})
    assert chat is not None
    assert legacy is not None
    assert (chat.messages, chat.role({"role": "tool", "content": "x"}), legacy.messages) == (
        "messages",
        "tool",
        "prompt",
    )
    assert chat.is_text({"type": "text", "text": "x"})
    assert dialect_of("completions", {"message": "of the first version", "chat_history": []}) is None


@pytest.mark.parametrize("wire", ["", "mcp", "bedrock", "bedrock_invoke", "embeddings", "interactions"])
def test_what_cannot_be_added_to_has_no_dialect(wire: str) -> None:
    assert dialect_of(wire, {"messages": []}) is None


def test_two_forms_are_told_by_the_body() -> None:
    generation, snake = dialect_of("ollama", {"prompt": "x"}), dialect_of("gemini", {"system_instruction": {}})
    assert generation is not None
    assert generation.messages == "prompt"
    assert snake is not None
    assert snake.system == "system_instruction"


@pytest.mark.parametrize(
    ("wire", "part", "is_text"),
    [
        ("openai_chat", {"type": "text", "text": "x"}, True),
        ("openai_chat", {"type": "image_url", "image_url": {}}, False),
        ("openai_responses", {"type": "input_text", "text": "x"}, True),
        ("gemini", {"text": "x"}, True),
        ("gemini", {"inlineData": {}}, False),
        ("anthropic", "x", False),
    ],
)
def test_which_parts_are_text(wire: str, part: object, is_text: bool) -> None:
    dialect = dialect_of(wire, {"messages": []})
    assert dialect is not None
    assert dialect.is_text(part) is is_text
