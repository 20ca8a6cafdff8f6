"""`flakestorm doctor` as a stranger runs it: real programs, a real world that is asked once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, PROGRAMS, Done, clean_env, flakestorm, sdk_agent, wait_until, world, write_config
from upstream import Upstream, anthropic_stream, openai_chat

PROGRAM = str(PROGRAMS / "drawing_agent.py")


def doctor(folder: Path, up: Upstream, *words: str) -> Done:
    return flakestorm(
        folder, "doctor", "--format", "json", "--", sys.executable, PROGRAM, *words, env={"TOOL_URL": f"{up.url}/tool"}
    )


def test_a_program_is_deterministic_once_its_draws_are(tmp_path: Path, up: Upstream) -> None:
    done = doctor(tmp_path, up)
    assert done.code == 0, done.out
    found = json.loads(done.out)
    assert (found["deterministic"], found["replays"], found["calls"]) == (True, 5, 3)
    assert up.count() == 3  # the world was asked by the recording alone


@pytest.mark.skipif(not Path("/proc/uptime").exists(), reason="its uuids and times come from /proc")
def test_each_source_is_named_at_its_site(tmp_path: Path, up: Upstream) -> None:
    words = ["pid", "set", "temp", "uuid", "clock", "port", "race"]
    done = doctor(tmp_path, up, *words)
    assert done.code == 1, done.err
    found = {each["site"]: each["source"] for each in json.loads(done.out)["divergences"]}
    sources = ["pid", "hash seed", "temp path", "uuid", "clock", "port"]
    assert [found.get(f"http/127.0.0.1#{n}") for n in range(4, 10)] == sources
    rest = {source for site, source in found.items() if int(site.partition("#")[2]) >= 10}
    assert rest == {"concurrency"}
    assert not {f"http/127.0.0.1#{n}" for n in (1, 2, 3)} & found.keys()


def test_a_launched_http_agent_is_started_again_for_each_run(tmp_path: Path) -> None:
    with world() as up:
        write_config(tmp_path, agent=sdk_agent(up))
        done = flakestorm(tmp_path, "doctor", "--trials", "2")
    assert done.code == 0, done.out + done.err
    assert "were the same in 2 of 2 replays" in done.out


AGENT = """
import asyncio, datetime, os, random, time, uuid
from time import time as now
import pydantic
from anthropic import Anthropic
from openai import AsyncOpenAI


class Note(pydantic.BaseModel):
    at: datetime.datetime = pydantic.Field(default_factory=datetime.datetime.now)
    id: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4)


async def answer(text):
    client = AsyncOpenAI(api_key="k", base_url=os.environ["MODEL_URL"] + "/v1")

    async def ask(n):
        said = f"{n}: it is {datetime.datetime.now()}, {now()}, {uuid.uuid4()}, {Note().model_dump_json()}"
        reply = await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": said}])
        return reply.choices[0].message.content

    def stream():
        other = Anthropic(api_key="k", base_url=os.environ["MODEL_URL"])
        said = [{"role": "user", "content": f"{random.random()} at {time.time()}"}]
        with other.messages.stream(model="claude-sonnet-4", max_tokens=9, messages=said) as events:
            return events.get_final_text()

    first = await ask(0)
    rest = await asyncio.gather(*(ask(n) for n in range(1, 5)))
    return f"{first} {rest} {await asyncio.to_thread(stream)} {time.time()}"
"""


def test_sdk_clients_in_this_process_work_under_a_clock_that_stands_still(tmp_path: Path) -> None:
    (tmp_path / "doctor_sdks.py").write_text(AGENT)
    with Upstream() as up:
        up.reply("/v1/chat/completions", lambda _: openai_chat("hello"))
        up.reply("/v1/messages", lambda _: anthropic_stream("how are you"))
        write_config(tmp_path, agent={"type": "python", "endpoint": "doctor_sdks:answer", "env": {"MODEL_URL": up.url}})
        done = flakestorm(tmp_path, "doctor")
        assert done.code == 0, done.out + done.err
        assert "6 calls and the output were the same in 5 of 5 replays" in done.out
        assert up.count() == 6


def test_ctrl_c_ends_it_and_what_it_started(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text("import pathlib, threading\npathlib.Path('up').touch()\nthreading.Event().wait()\n")
    words = [str(FLAKESTORM), "doctor", "--", sys.executable, str(program)]
    with subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stderr=subprocess.PIPE, text=True) as running:
        wait_until((tmp_path / "up").exists)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted" in said
