"""The official Python SDKs, each asked one question: `python sdks.py NAME`, the prompt on stdin, or NAME(prompt)."""

import sys


def openai(prompt: str) -> str:
    from openai import OpenAI

    with OpenAI() as client:
        asked = [{"role": "user", "content": prompt}]
        return client.chat.completions.create(model="gpt-4o", messages=asked).choices[0].message.content


def responses(prompt: str) -> str:
    from openai import OpenAI

    with OpenAI() as client, client.responses.stream(model="gpt-4o", input=prompt) as stream:
        return stream.get_final_response().output_text


def anthropic(prompt: str) -> str:
    from anthropic import Anthropic

    asked = [{"role": "user", "content": prompt}]
    request = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": asked}
    with Anthropic() as client, client.messages.stream(**request) as stream:
        return stream.get_final_text()


def gemini(prompt: str) -> str:
    from google import genai

    client = genai.Client(http_options={"api_version": "v1beta"})  # the one that aimock knows
    return client.models.generate_content(model="gemini-2.5-flash", contents=prompt).text


def ollama(prompt: str) -> str:
    from ollama import Client

    parts = Client().chat(model="qwen3:8b", messages=[{"role": "user", "content": prompt}], stream=True)
    return "".join(part.message.content for part in parts)


if __name__ == "__main__":
    print(globals()[sys.argv[1]](sys.stdin.read()))
