"""An agent that asks a model as SDKs do, searches, and can be told by variables to do something else than before."""

import contextlib
import datetime
import json
import os
import sys
import urllib.error
import urllib.request
import uuid

MODEL_URL = f"{os.environ['OPENAI_BASE_URL']}/{os.environ.get('PATH_OF', 'chat/completions')}"


def post(url, body, **headers):
    sent = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {os.environ.get('KEY', 'sk-first')}",
        **headers,
    }
    asked = urllib.request.Request(url, json.dumps(body).encode(), sent)
    with urllib.request.urlopen(asked) as reply:
        return json.loads(reply.read())


def say(turns):
    body = {
        "model": os.environ.get("MODEL", "gpt-4o"),
        "messages": turns,
        "temperature": float(os.environ.get("T", "0")),
    }
    extra = {"openai-beta": os.environ["BETA"]} if "BETA" in os.environ else {}
    return post(MODEL_URL, body, **{"X-Request-Id": str(uuid.uuid4())}, **extra)["choices"][0]["message"]["content"]


def main():
    """One question, two searches."""
    question = os.environ.get("QUESTION") or sys.stdin.read() or "Oslo"
    now = datetime.datetime.now(datetime.UTC).isoformat()
    turns = [{"role": "user", "content": f"{question} (run {uuid.uuid4()}, now {now})"}]
    swallow = "SWALLOW" in os.environ
    order = ["bergen", "oslo"] if "SWAPPED" in os.environ else ["oslo", "bergen"]
    try:
        first = say(turns)
    except urllib.error.HTTPError:
        if not swallow:
            sys.exit("the model refused")
        first = "Hello from upstream."
    for city in order[: int(os.environ.get("SEARCHES", "2"))]:
        turns.append({"role": "user", "content": json.dumps(post(os.environ["SEARCH_URL"], {"to": city}))})
    if "EXTRA" in os.environ:
        with contextlib.suppress(urllib.error.HTTPError):
            say(turns)
    print(os.environ.get("PREFIX", ""), first)


main()
