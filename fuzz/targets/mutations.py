"""Templates and operators: an input stays one input, a JSON template gives JSON, headers stay headers."""

from __future__ import annotations

import json

from flakestorm.agents.request import RequestTemplate, parse_structured_input
from flakestorm.config.model import Agent
from flakestorm.errors import ConfigError, Misuse
from flakestorm.mutations.generate import Recipe, row
from fuzz.material import Bytes

__all__ = ["check"]

_TYPES = (
    "noise", "tone_shift", "prompt_injection", "encoding_attacks", "context_manipulation", "length_extremes",
    "paraphrase", "multi_turn_attack", "advanced_jailbreak", "semantic_similarity_attack", "format_poisoning",
    "language_mixing", "token_manipulation", "temporal_attack", "custom",
)  # fmt: skip
_TEMPLATES = (
    None, '{"q": "{prompt}"}', '{"q": {prompt}, "n": {count}}', '[{"text": "say {prompt} and {name}"}]', "{prompt}",
    "plain {prompt} {{7*7}} {prompt.__class__}", '{"{prompt}": 1, "a": [{prompt}, null]}', "q={prompt}",
)  # fmt: skip


def check(data: bytes) -> None:
    source = Bytes(data)
    way, name, seed = source.below(4), _TYPES[source.below(len(_TYPES))], source.byte()
    template, method = _TEMPLATES[source.below(len(_TEMPLATES))], ("POST", "GET", "DELETE")[source.below(3)]
    form = source.below(4) == 0
    prompt = source.rest().decode("utf-8", "replace")
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
    if way == 0:
        _operators(name, seed, prompt[:400])
        return
    if way == 1 and len(prompt) > 3:
        template, prompt = prompt[: len(prompt) // 2], prompt[len(prompt) // 2 :]
    try:
        agent = Agent(endpoint="http://127.0.0.1:1/", request_template=template, method=method, headers=headers)
        request = RequestTemplate(agent).render(prompt)
    except ConfigError:
        return
    parse_structured_input(prompt)
    assert all("\r" not in text and "\n" not in text for field in request.headers for text in field)
    if way != 1 and template in _TEMPLATES[:2] and method == "POST":
        said = json.loads(request.body)
        assert said == ({"input": prompt} if template is None else {"q": prompt})
    if way != 1 and template == _TEMPLATES[2] and method == "POST":
        assert json.loads(request.body)["q"] == prompt


def _operators(name: str, seed: int, prompt: str) -> None:
    templates = {"mine": "say {prompt} {{config}} %s {prompt.x}"}
    if name == "custom":
        templates["theirs"] = f"{prompt}{{prompt}}"
    found = []
    try:
        for mutation in row(Recipe([name], 4, seed, {}, templates), name, prompt):
            found.append(mutation)
            if len(found) == 4:
                break
    except Misuse as error:
        assert isinstance(error, ConfigError), error  # an operator that failed is a defect
    assert len({mutation.text for mutation in found}) == len(found)
    assert all(mutation.text != prompt for mutation in found)
