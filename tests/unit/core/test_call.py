from flakestorm.core.call import PULL, Reply, header, with_header, without_headers

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
