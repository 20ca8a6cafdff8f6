"""An office assistant with two MCP servers: one books rooms, one sends mail. OpenAI's SDK, the official MCP client.

Needs OPENAI_API_KEY, and each server's command line in FLAKESTORM_MCP_ROOMS and FLAKESTORM_MCP_MAIL.
"""

import json
import os
import shlex
from contextlib import AsyncExitStack

from mcp import Client, StdioServerParameters
from openai import AsyncOpenAI

model = AsyncOpenAI()


def server(name: str) -> Client:
    program, *arguments = shlex.split(os.environ[f"FLAKESTORM_MCP_{name}"])
    return Client(StdioServerParameters(command=program, args=arguments))


async def use(client: Client, tool: str, arguments: str) -> str:
    result = await client.call_tool(tool, json.loads(arguments))
    return result.content[0].text


async def answer(text: str) -> str:
    messages = [{"role": "system", "content": "You organise meetings."}, {"role": "user", "content": text}]
    functions, clients = [], {}
    async with AsyncExitStack() as stack:
        for name in ("ROOMS", "MAIL"):
            client = await stack.enter_async_context(server(name))
            for tool in (await client.list_tools()).tools:
                clients[tool.name] = client
                about = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
                functions.append({"type": "function", "function": about})
        while True:
            reply = await model.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=functions)
            message = reply.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                said = await use(clients[call.function.name], call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
