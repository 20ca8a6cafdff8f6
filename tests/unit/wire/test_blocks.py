from flakestorm.wire.base import ToolCall, ToolResult, Turn
from flakestorm.wire.blocks import turns_of
from flakestorm.wire.shape import Doc


def words(content: object) -> str:
    return content if isinstance(content, str) else "".join(b.get("say", "") for b in content or [])  # type: ignore[union-attr]


def calls(blocks: list[Doc]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(b["call"], b["name"], "{}") for b in blocks if "call" in b)


def results(blocks: list[Doc], names: dict[str, str]) -> tuple[ToolResult, ...]:
    return tuple(ToolResult(b["of"], names.get(b["of"], ""), "done") for b in blocks if "of" in b)


def turns(doc: Doc) -> tuple[Turn, ...]:
    return turns_of(doc, text=words, calls=calls, results=results)


def test_a_result_is_named_by_the_call_before_it() -> None:
    doc = {
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"say": "well"}, {"call": "c1", "name": "look"}]},
            {"role": "user", "content": [{"of": "c1"}, {"of": "c2"}]},
        ],
    }
    assert turns(doc) == (
        Turn("system", "be brief"),
        Turn("user", "go"),
        Turn("assistant", "well", (ToolCall("c1", "look", "{}"),)),
        Turn("user", "", (), (ToolResult("c1", "look", "done"), ToolResult("c2", "", "done"))),
    )


def test_what_is_no_conversation_has_no_turns() -> None:
    assert turns({}) == turns({"messages": "hello"}) == turns({"system": "", "messages": [1, None]}) == ()
