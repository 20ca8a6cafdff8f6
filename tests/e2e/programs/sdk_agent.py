"""A small agent as people write them: a real SDK, one HTTP tool, and its own error handling.

    python sdk_agent.py --port 8000     POST /invoke {"input": "..."} -> {"output": "..."}

Which SDK and which HTTP client it uses is told by SDK (openai, anthropic) and CLIENT (httpx, httpx2, requests,
aiohttp, or function: no client at all, the tool is a plain function); STREAM=1 streams the model's reply. SEARCH_URL is
hard-coded configuration as far as the agent knows.
"""

import argparse
import asyncio
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SEARCH = os.environ["SEARCH_URL"]
STREAM = os.environ.get("STREAM") == "1"


def search_with_httpx() -> tuple[int, str]:
    import httpx

    reply = httpx.get(SEARCH, params={"to": "Oslo"}, timeout=2)
    return reply.status_code, reply.text


def search_with_httpx2() -> tuple[int, str]:
    import httpx2

    reply = httpx2.get(SEARCH, params={"to": "Oslo"}, timeout=2)
    return reply.status_code, reply.text


def search_with_requests() -> tuple[int, str]:
    import requests

    reply = requests.get(SEARCH, params={"to": "Oslo"}, timeout=2)
    return reply.status_code, reply.text


def search_with_aiohttp() -> tuple[int, str]:
    import aiohttp

    async def go() -> tuple[int, str]:
        timeout = aiohttp.ClientTimeout(sock_read=2)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(SEARCH, params={"to": "Oslo"}) as r:
            return r.status, await r.text()

    return asyncio.run(go())


def search_with_function() -> tuple[int, str]:
    return 200, '{"flights": 3}'


def search() -> str:
    status, text = globals()[f"search_with_{os.environ.get('CLIENT', 'httpx')}"]()
    if status >= 400:
        raise RuntimeError(f"search answered {status}")
    return text


def with_openai(question: str) -> str:
    from openai import LengthFinishReasonError, OpenAI, RateLimitError

    client = OpenAI(max_retries=2)
    messages = [{"role": "user", "content": question}]
    tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}]
    for _ in range(3):
        try:
            if STREAM:
                with client.chat.completions.stream(model="gpt-4o", messages=messages, tools=tools) as stream:
                    choice = stream.get_final_completion().choices[0]
            else:
                choice = client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools).choices[0]
        except RateLimitError:
            return "the model is busy"
        except LengthFinishReasonError as error:  # what the stream helper makes of finish_reason "length"
            choice = error.completion.choices[0]
        if choice.finish_reason == "length":
            return f"CUT[{choice.finish_reason}]: {choice.message.content}"
        if not choice.message.tool_calls:
            return choice.message.content or ""
        messages.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in choice.message.tool_calls:
            try:
                result = search()
            except Exception as error:
                return f"search is unavailable: {type(error).__name__}: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return "gave up"


def with_anthropic(question: str) -> str:
    from anthropic import Anthropic, RateLimitError

    client = Anthropic(max_retries=2)
    messages = [{"role": "user", "content": question}]
    tools = [{"name": "search", "input_schema": {"type": "object", "properties": {}}}]
    for _ in range(3):
        try:
            request = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": messages, "tools": tools}
            if STREAM:
                with client.messages.stream(**request) as stream:
                    reply = stream.get_final_message()
            else:
                reply = client.messages.create(**request)
        except RateLimitError:
            return "the model is busy"
        text = "".join(block.text for block in reply.content if block.type == "text")
        if reply.stop_reason == "max_tokens":
            return f"CUT[{reply.stop_reason}]: {text}"
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return text
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in reply.content]})
        try:
            results = [{"type": "tool_result", "tool_use_id": c.id, "content": search()} for c in calls]
        except Exception as error:
            return f"search is unavailable: {type(error).__name__}: {error}"
        messages.append({"role": "user", "content": results})
    return "gave up"


def answer(question: str) -> str:
    return with_anthropic(question) if os.environ.get("SDK") == "anthropic" else with_openai(question)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.reply({"ok": True})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "{}")
        self.reply({"output": answer(body["input"]) if self.path == "/invoke" else "reset"})

    def reply(self, document: dict) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler).serve_forever()
