"""Spans of a trace, whoever wrote them, as the exchanges of a run.

A span is a model call, a tool call or neither, and instrumentations say so in different words: OpenTelemetry's GenAI
conventions of several years, OpenInference, OpenLLMetry, the AI SDK, Langfuse and LangSmith. A model call becomes a
chat completion with what the span says and no more: on the tape is the conversation, not the bytes that crossed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from flakestorm.core.call import Call, Reply
from flakestorm.errors import CallFailed
from flakestorm.importers.messages import Doc, as_text, conversation, counted, declared, parsed, tool_said, unflattened
from flakestorm.importers.span_events import asked_in, said_in, tool_in
from flakestorm.wire import gen_ai
from flakestorm.wire.shape import dump

__all__ = ["Span", "Traced", "traced"]

Crossing = tuple[Call, Reply | CallFailed]

_JSON = (("content-type", "application/json"),)
_NO_REPLY = "the trace holds no reply to this call"
_LLM_OPERATIONS = {"chat", "completion", "generate_content", "text_completion", "generate"}
_KINDS = ("openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind", "mlflow.spanType")
_TOOL_NAME = (gen_ai.TOOL, "tool.name", "tool_name", "ai.toolCall.name", "mcp.tool.name", "traceloop.entity.name")
_TOOL_INPUT = (
    gen_ai.ARGUMENTS, "tool_arguments", "ai.toolCall.args", "tool.parameters", "traceloop.entity.input",
    "gcp.vertex.agent.tool_call_args", "mlflow.spanInputs", "input.value", "input",
)  # fmt: skip
_TOOL_OUTPUT = (
    gen_ai.RESULT, "tool_response", "ai.toolCall.result", "gen_ai.tool.output", "traceloop.entity.output",
    "gcp.vertex.agent.tool_response", "mlflow.spanOutputs", "output.value", "output",
)  # fmt: skip
_MODEL = (
    gen_ai.MODEL, "llm.request.model", "llm.model_name", "ai.model.id", "model", "ls_model_name",
    "gen_ai.response.model",
)  # fmt: skip
_ASKED = (
    gen_ai.INPUT, "gen_ai.prompt", "gen_ai.prompt_json", "ai.prompt.messages", "ai.prompt", "llm.prompts",
    "traceloop.entity.input", "gcp.vertex.agent.llm_request", "mlflow.spanInputs", "input.value",
)  # fmt: skip
_SAID = (
    gen_ai.OUTPUT, "gen_ai.completion", "gen_ai.completion_json", "ai.response.text", "ai.result.text",
    "traceloop.entity.output", "gcp.vertex.agent.llm_response", "mlflow.spanOutputs", "output.value",
)  # fmt: skip
_USED_IN = (gen_ai.TOKENS_IN, "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens",
            "llm.token_count.prompt", "ai.usage.promptTokens", "ai.usage.inputTokens")  # fmt: skip
_USED_OUT = (gen_ai.TOKENS_OUT, "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens",
             "llm.token_count.completion", "ai.usage.completionTokens", "ai.usage.outputTokens")  # fmt: skip
_SCHEMA = ("parameters", "parameters_json_schema", "input_schema", "inputSchema")
_PREFIX = re.compile(r"^(?:execute_tool |running tool: |ai\.toolCall |tools/call |tool[.: ])|\.tool$")
_STEP = re.compile(r"\.(?:start|success|finish|error|partial_update|update|new_token)(?:-\d+)?$")


@dataclass(slots=True)
class Span:
    """One step of a trace.

    Args:
        id, parent, name: as the trace has them; `parent` is empty for a root.
        start: sortable.
        attributes: by their dotted names.
        kind: what the tracing tool itself says it is; empty where it does not.
        input, output: where the tool keeps them apart from attributes; None where there are none.
        usage: tokens in and out, where kept apart.
        error: what went wrong; empty where nothing did.
        events: names and attributes.
    """

    id: str
    parent: str
    name: str
    start: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["", "llm", "tool", "other"] = ""
    input: Any = None
    output: Any = None
    usage: tuple[Any, Any] = (None, None)
    error: str = ""
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def first(self, names: Iterable[str]) -> Any:
        """The first of these attributes that says anything."""
        return next((self.attributes[n] for n in names if self.attributes.get(n) not in (None, "", [], {})), None)


@dataclass(frozen=True, slots=True)
class Traced:
    """One run, as a trace tells of it.

    Args:
        id: the trace's.
        input: what the agent was asked, None where that cannot be told.
        output: what it answered.
        error: why it did not.
        crossings: its calls, in order.
    """

    id: str
    input: str | None
    output: str
    error: str | None
    crossings: list[Crossing]


def traced(id: str, spans: Sequence[Span], *, input: Any = None, output: Any = None) -> Traced:  # noqa: A002
    """The run that these spans tell of.

    Args:
        id: the trace's.
        spans: its spans.
        input, output: of the whole, where the trace says so itself.

    Raises:
        ValueError: no span is a model's or tool's call, or none says what was asked or answered.
    """
    ordered = sorted(spans, key=lambda span: str(span.start))
    kinds = {span.id: _kind(span) for span in ordered}
    calls = _merged([span for span in ordered if kinds[span.id] and not _told_by_parent(span, ordered, kinds)], kinds)
    if not calls:
        raise ValueError(_nothing(ordered))
    told = {span.id: (_asked(span), _said(span)) for span in calls if kinds[span.id] == "llm"}
    crossings = [_llm(span, *told[span.id]) if span.id in told else _tool(span) for span in calls]
    if told and not any(asked or said for asked, said in told.values()):
        raise ValueError(
            f"span {calls[0].name!r} holds no messages: it was recorded without content; record it with the content of "
            "messages captured (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)"
        )
    root = next((span for span in ordered if not span.parent), ordered[0])
    first = next((asked for asked, _ in told.values() if asked), [])
    last = next((said for _, said in reversed(told.values()) if said), [])
    if root.attributes.get(gen_ai.OPERATION) == gen_ai.INVOKE_AGENT:  # it says what the agent was asked, and answered
        first, last = _asked(root) or first, _said(root) or last
    answer = _plain(output) or _plain(root.output) or "".join(str(m.get("content") or "") for m in last[:1])
    return Traced(id, _question(input, root, first), answer, root.error or None, crossings)


def _nothing(spans: Sequence[Span]) -> str:
    names = ", ".join(repr(span.name) for span in spans[:5])
    return (
        f"no span in it is a model's or a tool's call: none has {gen_ai.OPERATION}, openinference.span.kind, "
        f"{gen_ai.TOOL} or a type that says so; spans: {names or 'none'}"
    )


def _kind(span: Span) -> Literal["", "llm", "tool"]:
    if span.kind:
        return "" if span.kind == "other" else span.kind
    of = span.attributes
    operation = str(of.get(gen_ai.OPERATION) or "").lower()
    said = str(parsed(span.first(_KINDS)) or "").lower()
    if operation == gen_ai.EXECUTE_TOOL or said == "tool" or of.get("ai.operationId") == "ai.toolCall":
        return "tool"
    if operation:
        return "llm" if operation in _LLM_OPERATIONS else ""
    if said:
        return "llm" if said in ("llm", "chat_model") else ""
    if of.get("llm.request.type") in ("chat", "completion") or ".do" in str(of.get("ai.operationId") or ""):
        return "llm"
    if (gen_ai.TOOL in of and gen_ai.MODEL not in of) or _answers_a_call(span):
        return "tool"
    return "llm" if gen_ai.MODEL in of and (_asked(span) or _said(span)) else ""


def _answers_a_call(span: Span) -> bool:
    """Whether what came of it is LangChain's message of the tool that it is named after."""
    said = parsed(span.output)
    return isinstance(said, dict) and bool(said.get("tool_call_id")) and said.get("name") == span.name != ""


def _told_by_parent(span: Span, spans: Sequence[Span], kinds: Mapping[str, str]) -> bool:
    """Whether this is a model call inside a model call: the same one, as a second instrumentation saw it."""
    by_id = {each.id: each for each in spans}
    parent = by_id.get(span.parent)
    for _ in range(len(spans)):
        if kinds[span.id] != "llm" or parent is None:
            return False
        if kinds[parent.id] == "llm":
            return bool(_said(parent))
        parent = by_id.get(parent.parent)
    return False


def _merged(spans: list[Span], kinds: Mapping[str, str]) -> list[Span]:
    """Steps of one call that were written as spans of their own (`x.start`, `x.success`, `x.finish`) as one span."""
    found: list[Span] = []
    open_steps: dict[str, Span] = {}
    for span in spans:
        step = _STEP.search(span.name)
        if step is None:
            found.append(span)
            continue
        base = span.name[: step.start()]
        begun = open_steps.get(base)
        if step[0].startswith(".start") or begun is None:
            if kinds[span.id] == "tool" and not step[0].startswith((".start", ".success", ".error")):
                continue
            open_steps[base] = span
            span.name = base
            found.append(span)
            continue
        begun.attributes = {**begun.attributes, **span.attributes, **_kept(begun)}
        begun.input = span.input if begun.input is None else begun.input
        begun.output = span.output if begun.output is None else begun.output
        begun.usage = begun.usage if any(begun.usage) else span.usage
        begun.error = begun.error or span.error
    return found


def _kept(span: Span) -> dict[str, Any]:
    return {name: span.attributes[name] for name in ("input.value",) if name in span.attributes}


def _asked(span: Span) -> list[Doc]:
    """What the model was told, in order."""
    of = span.attributes
    told = parsed(of.get("gen_ai.system_instructions"))
    system = conversation({"role": "system", "parts": told}) if told else []
    flat = unflattened(of, "gen_ai.prompt") or unflattened(of, "llm.input_messages")
    for value in (of.get(gen_ai.INPUT), flat, asked_in(span.events, of), span.input, span.first(_ASKED)):
        if found := conversation(value):
            return [*system, *found]
    return system


def _said(span: Span) -> list[Doc]:
    """What the model answered: one message, and what else it said as choices is left out."""
    of = span.attributes
    flat = unflattened(of, "gen_ai.completion") or unflattened(of, "llm.output_messages")
    pieces = conversation(flat, role="assistant")
    whole = of.get(gen_ai.OUTPUT)
    asked = parsed(of.get("ai.response.toolCalls"))
    calls = conversation({"role": "assistant", "tool_calls": asked}) if asked else []
    for value in (whole, said_in(span.events, of), span.output):
        if found := conversation(value, role="assistant"):
            return _one(found, joined=False)
    if pieces and not _headless(span):
        return _one(pieces, joined=True)
    return _one([*conversation(span.first(_SAID), role="assistant"), *calls], joined=True)


def _headless(span: Span) -> bool:
    """Whether only the end of a reply is left: exporters keep so many attributes of a span and no more."""
    heads = [n for n in span.attributes if n.startswith(("llm.output_messages.", "gen_ai.completion."))]
    return bool(heads) and not any(name.split(".")[2] == "0" for name in heads)


def _one(messages: list[Doc], *, joined: bool) -> list[Doc]:
    """One answer of several messages: all tool calls, and the texts of all where they are pieces of one."""
    mine = [message for message in messages if message["role"] == "assistant"]
    if not mine:
        return []
    calls = [call for message in mine for call in message.get("tool_calls") or ()]
    texts = [str(message.get("content") or "") for message in mine]
    finish = next((message["finish_reason"] for message in mine if message.get("finish_reason")), None)
    text = "".join(texts) if joined else next(filter(None, texts), "")
    found: Doc = {"role": "assistant", "content": text or None, "finish_reason": finish}
    if calls:
        found["tool_calls"] = calls
    return [found] if text or calls else []


def _llm(span: Span, asked: list[Doc], said: list[Doc]) -> Crossing:
    model = str(span.first(_MODEL) or _stated(span.first(_ASKED), "model") or "unknown")
    messages = [{k: v for k, v in message.items() if k != "finish_reason"} for message in asked]
    body: Doc = {"model": model, "messages": messages or [{"role": "user", "content": ""}]}
    if tools := _tools(span):
        body["tools"] = tools
    provider = str(span.first((gen_ai.PROVIDER, "gen_ai.system", "llm.provider", "llm.system")) or "model")
    host = str(span.attributes.get(gen_ai.SERVER) or f"{re.sub('[^a-z0-9-]', '-', provider.lower())}.invalid")
    call = Call("POST", f"https://{host}/v1/chat/completions", _JSON, dump(body))
    if not said:
        return call, CallFailed("reset", span.error or _NO_REPLY)
    message = {k: v for k, v in said[0].items() if k != "finish_reason"}
    reasons = parsed(span.first((gen_ai.FINISH, "llm.response.finish_reason", "ai.response.finishReason")))
    finish = said[0].get("finish_reason") or (reasons[0] if isinstance(reasons, list) and reasons else reasons)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    reply: Doc = {
        "id": str(span.attributes.get("gen_ai.response.id") or f"chatcmpl-{span.id}"),
        "object": "chat.completion",
        "created": 0,
        "model": str(span.attributes.get("gen_ai.response.model") or _stated(span.first(_SAID), "model") or model),
        "choices": [choice],
    }
    if (usage := _usage(span)) is not None:
        reply["usage"] = usage
    return call, Reply(200, _JSON, dump(reply))


def _stated(value: Any, name: str) -> Any:
    """What a document states under a name."""
    document = parsed(value)
    return document.get(name) if isinstance(document, dict) else None


def _usage(span: Span) -> Doc | None:
    apart = span.usage if any(span.usage) else counted(span.output or span.first(_SAID))
    given, made = (
        _count(span.first(names)) if span.first(names) is not None else _count(other)
        for names, other in zip((_USED_IN, _USED_OUT), apart, strict=True)
    )
    if given is None and made is None:
        return None
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": (given or 0) + (made or 0)}


def _count(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _tools(span: Span) -> list[Doc]:
    of = span.attributes
    listed = [each.get("tool") for each in unflattened(of, "llm.tools") if isinstance(each, dict)]
    nested = [tool.get("json_schema") for tool in listed if isinstance(tool, dict)]
    nested = nested or unflattened(of, "llm.request.functions")
    told = span.input or span.first(_ASKED)
    asked = parsed(of.get("model_request_parameters"))  # pydantic-ai's
    own = asked.get("function_tools") if isinstance(asked, dict) else None
    given = parsed(of.get(gen_ai.TOOLS)) or nested or parsed(of.get("ai.prompt.tools")) or own or declared(told)
    found = []
    for tool in map(parsed, given if isinstance(given, list) else ()):
        function = tool.get("function") if isinstance(tool, dict) and isinstance(tool.get("function"), dict) else tool
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            schema: Any = next((function[key] for key in _SCHEMA if function.get(key)), {})
            schema = parsed(schema)
            found.append({"type": "function", "function": {"name": function["name"], "parameters": schema}})
    return found


def _tool(span: Span) -> Crossing:
    name = str(span.first(_TOOL_NAME) or _PREFIX.sub("", span.name) or "unknown")
    asked, told = tool_in(span.events)
    given = parsed(next((v for v in (span.input, span.first(_TOOL_INPUT), asked) if v is not None), None))
    body = dump(given if isinstance(given, dict) else {"input": given})
    call = Call("CALL", f"python://{quote(name, safe='')}", _JSON, body, kind="tool", name=name)
    said = next((v for v in (span.output, span.first(_TOOL_OUTPUT), told) if v is not None), None)
    if span.error and said is None:
        return call, Reply(500, _JSON, dump({"error": span.error}))
    if said is None:
        return call, CallFailed("reset", _NO_REPLY)
    value = tool_said(parsed(said))
    if isinstance(value, str):
        return call, Reply(200, (("content-type", "text/plain; charset=utf-8"),), value.encode("utf-8", "replace"))
    return call, Reply(200, _JSON, dump(value))


def _question(given: Any, root: Span, first: list[Doc]) -> str | None:
    """What the agent was asked: what the trace says, else what its first model call's user said last."""
    for value in (parsed(given), parsed(root.input)):
        if text := _plain(value):
            return text
    users = [str(message["content"]) for message in first if message["role"] == "user" and message.get("content")]
    return users[-1] if users else None


def _plain(value: Any) -> str:
    """The text that a value plainly is; empty where it would have to be guessed."""
    value = parsed(value)
    if isinstance(value, str):
        return "" if value in ("None", "null") else value
    if isinstance(value, dict):
        for key in ("input", "output", "query", "question", "prompt", "text", "answer", "response", "result"):
            if isinstance(value.get(key), str) and value[key]:
                return str(value[key])
        args = value.get("args")
        if isinstance(args, list) and len(args) == 1 and isinstance(args[0], str):
            return args[0]
    return as_text(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
