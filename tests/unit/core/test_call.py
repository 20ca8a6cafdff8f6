import pickle
from dataclasses import replace

from flakestorm.core.call import PULL, Call, Reply, header, track, with_header, without_headers

HEADERS = (("Content-Type", "text/event-stream; charset=utf-8"), ("X-Id", "1"), ("x-id", "2"))


def test_headers_compare_without_case_and_keep_their_order() -> None:
    assert header(HEADERS, "x-ID") == "1"
    assert header(HEADERS, "missing") is None
    assert without_headers(HEADERS, "X-ID") == (HEADERS[0],)
    assert with_header(HEADERS, "X-Id", "3") == (HEADERS[0], ("X-Id", "3"))


def test_streamed_is_judged_by_content_type() -> None:
    assert Reply(headers=HEADERS).streamed
    assert not Reply(headers=(("content-type", "application/json"),)).streamed
    assert not Reply().streamed


def test_pipe_adds_outside() -> None:
    def first():
        yield PULL

    def second():
        yield PULL

    assert Reply().pipe(first).pipe(second).through == (first, second)


def test_calls_and_replies_are_values() -> None:
    call = Call("POST", "http://x.test/", upload=object(), lane="1")
    assert call == replace(call, upload=None) == Call("POST", "http://x.test/", lane="1")
    assert hash(call) == hash(replace(call)) != hash(replace(call, lane="2"))
    assert "upload" not in repr(call)
    for value in (replace(call, upload=None), Reply(404, HEADERS, b"x", (), "gone")):
        assert pickle.loads(pickle.dumps(value)) == value


def test_lanes_named_by_who_started_them_share_a_track() -> None:
    assert [track(lane) for lane in ("", "1", "12", "1.job2", "3.job1.task2")] == ["", "1", "12", ".", "."]
