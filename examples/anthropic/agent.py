"""A shop's policy desk: Anthropic's SDK, a streamed tool loop, one tool that is a plain function.

$ python agent.py "Can I return opened headphones?"       needs ANTHROPIC_API_KEY
"""

import sys

import anthropic

client = anthropic.Anthropic()

POLICIES = {
    "returns": "Headphones can be returned within 30 days, unless the seal of the box is broken.",
    "delivery": "Delivery takes two working days, except to islands, where it takes five.",
}


def read_policy(topic: str) -> str:
    """Read what the shop's handbook says on a topic: returns or delivery."""
    return POLICIES[topic]


TOOLS = {"read_policy": read_policy}
SPECS = [
    {
        "name": "read_policy",
        "description": read_policy.__doc__,
        "input_schema": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
    }
]
SYSTEM = "You answer customers' questions. Read the policy first, and say exactly what it says."


def use(call) -> dict:
    try:
        return {"type": "tool_result", "tool_use_id": call.id, "content": TOOLS[call.name](**call.input)}
    except Exception as error:
        return {"type": "tool_result", "tool_use_id": call.id, "content": f"Error: {error}", "is_error": True}


def ask(messages: list):
    request = {"model": "claude-sonnet-4-5", "max_tokens": 500, "system": SYSTEM, "tools": SPECS}
    with client.messages.stream(messages=messages, **request) as stream:
        return stream.get_final_message()


def answer(text: str) -> str:
    messages = [{"role": "user", "content": text}]
    while True:
        reply = ask(messages)
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "assistant", "content": reply.content})
        messages.append({"role": "user", "content": [use(call) for call in calls]})


if __name__ == "__main__":
    print(answer(sys.argv[1]))
