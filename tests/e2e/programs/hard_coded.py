"""An agent in Python that the start-up shim never reaches (run it with -I): the same in three clients."""

import json
import os
import sys
import urllib.error
import urllib.request

API = os.environ["API"]
ASKED = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "a flight"}, {"role": "tool", "tool_call_id": "c", "content": "3"}],
}


def with_urllib() -> str:
    urllib.request.urlopen(f"{API}/search?to=Oslo").read()
    body = json.dumps(ASKED).encode()
    request = urllib.request.Request(f"{API}/v1/chat/completions", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]


def with_requests() -> str:
    import requests

    requests.get(f"{API}/search?to=Oslo").raise_for_status()
    return requests.post(f"{API}/v1/chat/completions", json=ASKED).json()["choices"][0]["message"]["content"]


def with_openai() -> str:
    import httpx
    from openai import OpenAI

    httpx.get(f"{API}/search?to=Oslo").raise_for_status()
    stream = OpenAI(base_url=f"{API}/v1", api_key="test-key-of-nobody").chat.completions.create(**ASKED, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


try:
    print({"urllib": with_urllib, "requests": with_requests, "openai": with_openai}[sys.argv[1]]())
except Exception as error:
    print(f"search is unavailable: {error!r}")
