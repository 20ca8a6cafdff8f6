from flakestorm.wire.base import Edit, Said, Wire
from flakestorm.wire.protocols import wires


def test_an_edit_asks_for_nothing_unless_told() -> None:
    edit = Edit()
    assert (edit.max_tokens, edit.text, edit.drop_tool_calls, edit.finish) == (None, None, False, None)
    assert edit.on_change() is None


def test_a_reply_that_says_nothing_is_not_an_error() -> None:
    assert Said() == Said(text="", tool_calls=(), finish=None, usage=None, model="", error=None, complete=True)


def test_every_wire_keeps_the_protocol() -> None:
    members = [name for name in vars(Wire) if not name.startswith("_")]
    for wire in wires():
        assert wire.name
        assert [name for name in members if not hasattr(wire, name)] == []
