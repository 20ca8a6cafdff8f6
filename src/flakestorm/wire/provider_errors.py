"""The errors of providers whose error does not depend on the protocol: OpenAI, Google, Amazon and Ollama.

One provider answers several protocols (chat, responses, embeddings) with the same errors, so they are spelled here
once, as they were seen in the wild. `failure.message` and `failure.status` take the place of the provider's own.

An error comes as a reply, or, where the stream has begun, as its last frame; what both say is made by one function.
"""

from __future__ import annotations

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Failure
from flakestorm.wire.eventstream import encode
from flakestorm.wire.failures import error_reply, request_token, retry_headers
from flakestorm.wire.kin import is_azure, rate_limited
from flakestorm.wire.shape import Doc, dump

__all__ = [
    "aws_error",
    "aws_error_message",
    "google_error",
    "google_error_object",
    "ollama_error",
    "ollama_error_document",
    "openai_blocked",
    "openai_error",
    "openai_error_object",
]

_OPENAI: dict[str, tuple[int, str, str, str | int | None]] = {
    # kind: status, message, type, code
    "rate_limit": (
        429,
        "Rate limit reached for {model} on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again "
        "in {wait}. Visit https://platform.openai.com/account/rate-limits to learn more.",
        "requests",
        "rate_limit_exceeded",
    ),
    "overloaded": (
        503,
        "Our servers are currently overloaded. Please try again later.",
        "service_unavailable_error",
        "server_is_overloaded",
    ),
    "server_error": (
        500,
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        None,
    ),
    "timeout": (504, "Gateway timeout.", "cf_gateway_timeout", 504),
}

_OPENAI_BLOCKED = (
    "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a "
    "different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting"
)
_AZURE_BLOCKED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify "
    "your prompt and retry. To learn more about our content filtering policies please read our documentation: "
    "https://go.microsoft.com/fwlink/?linkid=2198766"
)

_GOOGLE: dict[str, tuple[int, str, str]] = {
    # kind: status, message, canonical code
    "rate_limit": (
        429,
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.",
        "RESOURCE_EXHAUSTED",
    ),
    "overloaded": (503, "The model is overloaded. Please try again later.", "UNAVAILABLE"),
    "server_error": (
        500,
        "An internal error has occurred. Please retry or report in "
        "https://developers.generativeai.google/guide/troubleshooting",
        "INTERNAL",
    ),
    "timeout": (504, "Deadline expired before operation could complete.", "DEADLINE_EXCEEDED"),
}

_AWS: dict[str, tuple[int, str, str]] = {
    # kind: status, message, exception
    "rate_limit": (429, "Too many requests, please wait before trying again.", "ThrottlingException"),
    "overloaded": (
        503,
        "The service is unable to process your request. Please try again.",
        "ServiceUnavailableException",
    ),
    "server_error": (
        500,
        "The system encountered an unexpected error during processing. Try your request again.",
        "InternalServerException",
    ),
    "timeout": (
        408,
        "Model has timed out in processing the request. Try your request again.",
        "ModelTimeoutException",
    ),
}

_OLLAMA: dict[str, tuple[int, str]] = {
    "rate_limit": (429, "too many requests"),
    "overloaded": (503, "server busy, please try again.  maximum pending requests exceeded"),
    "server_error": (500, "model runner has unexpectedly stopped, this may be due to resource limitations"),
    "timeout": (504, "timed out waiting for llama runner to start"),
}


def openai_error(failure: Failure, *, model: str, call: Call) -> Reply:
    """The error OpenAI answers with, or its kin at this URL. `timeout` is its front end's 504, the others its API's."""
    headers = [("x-request-id", f"req_{request_token(call)}"), *retry_headers(failure.retry_after_ms)]
    wait, own = _go_duration(failure.retry_after_ms or 0), None
    if failure.kind == "rate_limit":
        own = rate_limited(failure, model=model, wait=wait, url=call.url)
        headers += [
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-remaining-tokens", "29000"),
            ("x-ratelimit-reset-requests", wait),
            ("x-ratelimit-reset-tokens", "2s"),
        ]
    document = own or {"error": openai_error_object(failure, model=model)}
    return error_reply(failure.status or _OPENAI[failure.kind][0], document, *headers)


def openai_error_object(failure: Failure, *, model: str) -> Doc:
    """What stands under `error`, in a document and in the event of a stream."""
    _, usual_message, kind, code = _OPENAI[failure.kind]
    wait = _go_duration(failure.retry_after_ms or 0)
    message = failure.message or usual_message.format(model=model, wait=wait)
    return {"message": message, "type": kind, "param": None, "code": code}


def openai_blocked(call: Call, message: str) -> Reply:
    """The 400 for a prompt that a filter stops: of Azure where the URL is Azure's, else of OpenAI."""
    headers = ("x-request-id", f"req_{request_token(call)}")
    if not is_azure(call.url):
        error: Doc = {"message": message or _OPENAI_BLOCKED, "type": "invalid_request_error", "param": None}
        return error_reply(400, {"error": {**error, "code": "invalid_prompt"}}, headers)
    safe = {"filtered": False, "severity": "safe"}
    result = {
        "hate": safe,
        "jailbreak": {"filtered": True, "detected": True},
        "self_harm": safe,
        "sexual": safe,
        "violence": safe,
    }
    error = {"message": message or _AZURE_BLOCKED, "type": None, "param": "prompt", "code": "content_filter"}
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": result}
    return error_reply(400, {"error": {**error, "status": 400, "innererror": inner}}, headers)


def google_error(failure: Failure, *, model: str, call: Call, listed: bool = False) -> Reply:
    """The error Google answers with: a `google.rpc.Status`, with what was exhausted and how long to wait.

    Args:
        listed: the answer would have been a JSON array, so the error is the one element of such an array.
    """
    error = google_error_object(failure, model=model)
    document: Doc = {"error": error}
    return error_reply(error["code"], [document] if listed else document, ("server", "scaffolding on HTTPServer2"))


def google_error_object(failure: Failure, *, model: str) -> Doc:
    """What stands under `error`, in a document and in the event of a stream."""
    usual_status, usual_message, code = _GOOGLE[failure.kind]
    error: Doc = {
        "code": failure.status or usual_status,
        "message": failure.message or usual_message,
        "status": code,
    }
    details: list[Doc] = []
    if failure.kind == "rate_limit":
        violation = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
            "quotaDimensions": {"location": "global", "model": model},
            "quotaValue": "10",
        }
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
    if failure.retry_after_ms is not None:
        wait = f"{failure.retry_after_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": wait})
    if details:
        error["details"] = details
    return error


def aws_error(failure: Failure, *, call: Call) -> Reply:
    """The error Amazon answers with: the exception is named in a header, its message is the body."""
    usual_status, usual_message, exception = _AWS[failure.kind]
    token = request_token(call)
    request_id = "-".join((token[:8], token[8:12], token[12:16], token[16:20], token[20:]))
    headers = (
        ("x-amzn-requestid", request_id),
        ("x-amzn-errortype", f"{exception}:http://internal.amazon.com/coral/com.amazon.bedrock/"),
        *retry_headers(failure.retry_after_ms),
    )
    return error_reply(failure.status or usual_status, {"message": failure.message or usual_message}, *headers)


def aws_error_message(failure: Failure) -> bytes:
    """The same as a message of an event stream, in which exceptions begin with a small letter."""
    _, usual_message, exception = _AWS[failure.kind]
    headers = {
        ":exception-type": exception[0].lower() + exception[1:],
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode(dump({"message": failure.message or usual_message}), headers)


def ollama_error(failure: Failure) -> Reply:
    """The error Ollama answers with: one line of text in a document."""
    headers = retry_headers(failure.retry_after_ms)
    return error_reply(failure.status or _OLLAMA[failure.kind][0], ollama_error_document(failure), *headers)


def ollama_error_document(failure: Failure) -> Doc:
    """The same as a document, which in a stream is a line."""
    return {"error": failure.message or _OLLAMA[failure.kind][1]}


def _go_duration(duration_ms: int) -> str:
    """Milliseconds as OpenAI writes durations: `50ms`, `1.5s`, `6m0s`."""
    if duration_ms < 1000:
        return f"{duration_ms}ms"
    minutes, rest_ms = divmod(duration_ms, 60_000)
    seconds = f"{rest_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{minutes}m{seconds}" if minutes else seconds
