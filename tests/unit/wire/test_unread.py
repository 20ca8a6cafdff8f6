from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Edit, Failure
from flakestorm.wire.unread import Unread


def test_nothing_of_an_answer_is_changed() -> None:
    unread, call, reply = Unread(), Call("POST", "https://api.example/v1/embeddings"), Reply(200, body=b"[1, 2]")
    assert unread.edit(reply, Edit()) is reply
    assert unread.failure_event(Failure("rate_limit"), call, after=1) is None
    assert unread.blocked(call) is None
    assert unread.framing(b"data: x", "text/event-stream") is None
