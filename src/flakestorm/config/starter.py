"""The configuration that `flakestorm init` writes: commented, short, and valid as it stands."""

from __future__ import annotations

__all__ = ["starter"]


def starter(*, port: int | None = None) -> str:
    """A commented starter for an agent that listens on this port of this machine.

    Args:
        port: where the agent was found; default: 8000, a guess that the comments ask to correct.
    """
    return _TEMPLATE.replace("<PORT>", str(port or 8000))


_TEMPLATE = """\
# flakestorm breaks this agent's world on purpose and says, with evidence, whether it still keeps its promises.
# `flakestorm verify` checks that everything is reachable; `flakestorm contract run` runs the contract below.
# Editors that know JSON Schema help with this file: `flakestorm schema > flakestorm.schema.json`.
version: "2.0"

agent:
  type: http                       # http, python (endpoint: module:callable), command
  endpoint: http://127.0.0.1:<PORT>/invoke         # where your agent takes its input
  # request_template: '{"message": "{prompt}"}'   # the request body; {prompt} is inserted JSON-escaped
  # response_path: choices.0.message.content      # where the answer is; without it the usual keys are tried
  # timeout: 30000                                # milliseconds for one answer
  # headers: {Authorization: "Bearer ${AGENT_TOKEN}"}
  # Faults reach agents that flakestorm starts, or runs in process (type python). Let it start this one:
  # start: python agent.py --port {port}
  # ready: http://127.0.0.1:{port}/health
  # reset_endpoint: http://127.0.0.1:{port}/reset # POSTed to before each cell

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
        - tool: "*"                # a name or a glob, e.g. search*
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
