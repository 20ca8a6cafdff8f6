"""The configuration that `flakestorm init` writes: commented, short, and valid as it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Found", "starter"]


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of an agent; an empty text is not known. No text holds `${...}`.

    Args:
        type, endpoint, start, cwd, ready, request_template, response_path, env: as in the config's `agent` block.
        functions: names of the agent's tools that are functions in it.
        urls: names of those that are called over plain HTTP, each with a URL glob.
        notes: how that is known, in words.
    """

    type: str = "http"
    endpoint: str = ""
    start: str = ""
    cwd: str = ""
    ready: str = ""
    request_template: str = ""
    response_path: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    functions: Sequence[str] = ()
    urls: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def starter(found: Found | None = None) -> str:
    """A commented starter for an agent.

    Args:
        found: what is known of it; None for nothing, then the comments ask to correct what is guessed.
    """
    found = found or Found()
    text = _TEMPLATE.replace("<AGENT>", _agent(found)).replace("<BOUNDARY>", _boundary(found))
    return text.replace("<TOOL>", json.dumps(next(iter((*found.urls, *found.functions)), "*")))


def _agent(found: Found) -> str:
    """The lines of the `agent` block; what is not known is a comment that shows how it is written."""
    lines = [f"  # Found: {_one_line(note)}." for note in found.notes]
    lines.append(f"  type: {found.type}".ljust(35) + "# http, python (endpoint: module:callable), langchain, command")
    endpoint = found.endpoint or "http://127.0.0.1:8000/invoke"
    lines.append(
        f"  endpoint: {json.dumps(endpoint)}" + ("" if found.endpoint else "  # where your agent takes its input")
    )
    known = {
        "start": found.start,
        "cwd": found.cwd,
        "ready": found.ready,
        "request_template": found.request_template,
        "response_path": found.response_path,
    }
    lines += [f"  {key}: {_quoted(value)}" for key, value in known.items() if value]
    if found.env:
        lines.append("  env: {" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in found.env.items()) + "}")
    for key, lines_of in _EXAMPLES.items():
        over_http = key in ("start", "ready", "reset_endpoint", "headers", "request_template")
        if not known.get(key) and (found.type == "http" or not over_http):
            lines += [f"  # {line}" for line in lines_of if not (key == "start" and found.start)]
    return "\n".join(lines)


def _boundary(found: Found) -> str:
    if not found.urls:
        return ""
    named = "".join(f"    {json.dumps(name)}: {json.dumps(glob)}\n" for name, glob in found.urls.items())
    return f"\n# Names for the tools it calls over plain HTTP, by URL.\nboundary:\n  tools:\n{named}"


def _quoted(value: str) -> str:
    """A text as YAML, in the quotes that need the fewest marks."""
    return f"'{value}'" if '"' in value and "'" not in value else json.dumps(value)


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


_EXAMPLES = {
    "request_template": [
        'request_template: \'{"message": "{prompt}"}\'   # the request body; {prompt} is inserted JSON-escaped'
    ],
    "response_path": [
        "response_path: choices.0.message.content      # where the answer is; else the usual keys are tried"
    ],
    "timeout": ["timeout: 30000                                # milliseconds for one answer"],
    "headers": ['headers: {Authorization: "Bearer ${AGENT_TOKEN}"}'],
    "start": [
        "Faults reach agents that flakestorm starts, or runs in process (type python). Let it start this one:",
        "start: python agent.py --port {port}           # then write {port} in the endpoint, too",
    ],
    "ready": ["ready: http://127.0.0.1:{port}/health"],
    "reset_endpoint": ["reset_endpoint: http://127.0.0.1:{port}/reset # POSTed to before each cell"],
}


_TEMPLATE = """\
# flakestorm breaks this agent's world on purpose and says, with evidence, whether it still keeps its promises.
# `flakestorm verify` checks that everything is reachable; `flakestorm contract run` runs the contract below.
# Editors help with this file after `flakestorm schema -o flakestorm.schema.json`.
# yaml-language-server: $schema=flakestorm.schema.json
version: "2.0"

agent:
<AGENT>
<BOUNDARY>
# Inputs that should work.
golden_prompts:
  - "Book a flight from Oslo to Berlin for next Monday"

# What `flakestorm run` makes of them. Built in: no model and no key are needed.
# mutations:
#   count: 10                                     # of each type, for each golden prompt
#   types: [paraphrase, noise, tone_shift, prompt_injection, encoding_attacks, context_manipulation, length_extremes]

# Rules for runs outside the contract; `when: input_attack` and `when: input_benign` tell kinds of input apart.
invariants:
  - type: completes
  - type: output_not_empty
  - type: latency
    max_ms: 30000

# The contract: every rule is judged in every scenario.
contract:
  name: survives a bad environment
  invariants:
    - id: always-answers
      type: completes
      severity: critical
    - id: no-personal-data
      type: excludes_pii
      severity: high
    - id: admits-outage
      type: regex
      pattern: "(?i)unavailable|try again|not able|could not|couldn't|sorry"
      when: tool_faults_active     # judged only where a tool fault really fired
  chaos_matrix:
    - name: no chaos               # the control
    - name: tools down
      tool_faults:
        - tool: <TOOL>               # a name or a glob, e.g. search*
          mode: error
          error_code: 503
    - name: model rate limited
      llm_faults:
        - mode: rate_limit
          after_calls: 1           # the first call succeeds

# Faults for `flakestorm chaos` (the same as `flakestorm run --chaos-only`).
chaos:
  tool_faults:
    - tool: "*"
      mode: slow
      delay_ms: 2000
      probability: 0.5

# The model that writes mutations and judges. The built-in mutations need none.
# model:
#   provider: openai
#   name: gpt-4o-mini
#   api_key: "${OPENAI_API_KEY}"   # a variable's name, never the key itself

advanced:
  seed: 42                         # the same seed gives the same faults
  concurrency: 4
"""
