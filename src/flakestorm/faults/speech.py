"""Faults of what a model says: cut off, silent, babbling, refusing, or filtered.

They change a model's answer and never the protocol around it, so every SDK reads it as a normal reply. Where the answer
has nothing to change they do not fire. The answers of Bedrock's `invoke` where they are not Anthropic's, of legacy
completions, Cohere's chat and Google's Interactions cannot be changed, and embeddings say nothing: there none of them
fires.
"""

from __future__ import annotations

import string

from flakestorm.config.model import LlmFault
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.faults.base import Scene, inward, llm_faults
from flakestorm.faults.replies import UNKNOWN, editing
from flakestorm.wire.base import Edit, Finish
from flakestorm.wire.kin import has_refusals, is_azure
from flakestorm.wire.protocols import wire_of

__all__ = ["content_filter", "empty", "garbage", "refusal", "truncated_response"]

_MAX_TOKENS = 20
_REFUSAL = "I'm sorry, but I can't assist with that request."


@llm_faults.add("truncated_response")
def truncated_response(spec: LlmFault, scene: Scene) -> Interceptor:
    """The answer ends after `max_tokens` (20), and its finish reason says so. Shorter answers are left alone."""
    max_tokens = _MAX_TOKENS if spec.max_tokens is None else spec.max_tokens
    cut = Edit(max_tokens=max_tokens, finish="length", on_change=lambda: scene.fired(f"cut after {max_tokens} tokens"))
    return editing(cut, scene, otherwise=f"the answer was no longer than {max_tokens} tokens")


@llm_faults.add("empty")
def empty(_spec: LlmFault, scene: Scene) -> Interceptor:
    """The model says nothing and asks for no tool, and calls that a normal end."""
    silence = Edit(
        text=lambda _: "", drop_tool_calls=True, finish="stop", on_change=lambda: scene.fired("answer left empty")
    )
    return editing(silence, scene, otherwise="the answer was empty already")


@llm_faults.add("garbage")
def garbage(_spec: LlmFault, scene: Scene) -> Interceptor:
    """The words of the answer are noise of the same length; tool calls and the protocol around them stay valid."""
    noise = Edit(text=lambda text: _noise(text, scene.choices), on_change=lambda: scene.fired("text replaced by noise"))
    return editing(noise, scene, otherwise="the answer had no words")


@llm_faults.add("refusal")
def refusal(spec: LlmFault, scene: Scene) -> Interceptor:
    """The model refuses, in the words of `message`, and asks for no tool.

    OpenAI has a place for refusals, beside the content, and there it stands; with Anthropic the stop reason is
    `refusal`. With the others a refusal is text like any other, and the answer ends normally; so it is with those who
    speak OpenAI's protocol and have no such place (Mistral, Groq, DeepSeek ...).
    """
    words, otherwise = spec.message or _REFUSAL, "the model refused in these words itself"

    def refusing(finish: Finish) -> Interceptor:
        told = Edit(
            text=lambda _: words,
            drop_tool_calls=True,
            finish=finish,
            on_change=lambda: scene.fired("the model refuses"),
        )
        return editing(told, scene, otherwise=otherwise)

    in_its_place, as_text = refusing("refusal"), refusing("stop")
    return lambda call: in_its_place(call) if call.wire != "openai_chat" or has_refusals(call.url) else as_text(call)


@llm_faults.add("content_filter")
def content_filter(spec: LlmFault, scene: Scene) -> Interceptor:
    """The provider's content filter steps in. Ollama has none, so it never fires there.

    With `form: answer` it stops the answer after `max_tokens` (0), and the finish reason is `content_filter` (OpenAI; a
    response is `incomplete`), `refusal` (Anthropic), `SAFETY` (Gemini) or `content_filtered` (Converse). With
    `form: prompt` it stops the prompt, and the model is not asked: the 400 of OpenAI, Azure and Anthropic, with
    `message`; Gemini's blocked `promptFeedback`. Bedrock says what its guardrails do in the answer, so this form does
    not fire there.

    The form is `prompt` by default where the URL is Azure's, whose filter reads prompts first, and `answer` elsewhere.
    """
    max_tokens = spec.max_tokens or 0
    stopped = Edit(
        max_tokens=max_tokens,
        finish="content_filter",
        on_change=lambda: scene.fired(f"answer filtered after {max_tokens} tokens"),
    )
    filtering = editing(stopped, scene, otherwise=f"the answer was no longer than {max_tokens} tokens")

    def stage(call: Call) -> Flow:
        form = spec.form or ("prompt" if is_azure(call.url) else "answer")
        if form == "answer":
            return (yield from filtering(call))
        wire = wire_of(call.wire)
        reply = None if wire is None else wire.blocked(call, spec.message or "")
        if reply is None:
            scene.idle(UNKNOWN if wire is None else f"a stopped prompt has no answer of its own there ({call.wire})")
            return (yield from inward(call))
        scene.fired("prompt stopped by the content filter")
        return reply

    return stage


def _noise(text: str, choices: Choices) -> str:
    """Other characters in place of all but white space, so the layout survives and no sense does."""
    signs = string.ascii_letters + string.digits + string.punctuation
    noise = choices.stream("noise").choices(signs, k=len(text))
    return "".join(sign if sign.isspace() else other for sign, other in zip(text, noise, strict=True))
