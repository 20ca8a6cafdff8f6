from flakestorm.importers.spans import Span, traced
from flakestorm.reports.genai import meaning
from flakestorm.wire import gen_ai
from flakestorm.wire.protocols import PROTOCOLS


def test_what_is_written_by_these_names_is_read_by_them() -> None:
    said = {
        "text": "hello", "status": 200, "tool_calls": [], "finish": "stop", "usage": {"input": 3, "output": 5},
    }  # fmt: skip
    request = {"method": "POST", "url": "http://h/x", "body": {"q": 1}}
    exchanges = [
        {"kind": kind, "wire": wire, "name": f"a-{kind}", "request": request, "reply": said}
        for kind, wire in (("llm", PROTOCOLS[0].name), ("tool", ""))
    ]
    written = [meaning(exchange, lambda _: [{"role": "user", "content": "hi"}]) for exchange in exchanges]
    assert {gen_ai.OPERATION, gen_ai.MODEL, gen_ai.PROVIDER, gen_ai.FINISH} <= written[0][1].keys()
    run = traced("t", [Span(str(n), "", name, n, of) for n, (name, of) in enumerate(written)])
    (asked, answered), (called, told) = run.crossings
    assert (run.input, run.output) == ("hi", "hello")
    assert b'"a-llm"' in asked.body
    assert b'"prompt_tokens":3,"completion_tokens":5' in answered.body  # type: ignore[union-attr]
    assert b'"finish_reason":"stop"' in answered.body  # type: ignore[union-attr]
    assert (called.name, called.body, told.body) == ("a-tool", b'{"q":1}', b"hello")  # type: ignore[union-attr]
