"""An agent that puts what it draws into its requests, and one thing more for each word in its arguments.

With `steady` in place of words it is deterministic once its draws are.
"""

import asyncio
import datetime
import json
import os
import random
import secrets
import socket
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

URL = os.environ["TOOL_URL"]


def ask(**fields: object) -> str:
    request = urllib.request.Request(URL, json.dumps(fields).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return reply.read().decode()


def draws() -> dict[str, object]:
    return {
        "time": time.time(),
        "now": datetime.datetime.now().isoformat(),
        "utc": datetime.datetime.now(datetime.UTC).isoformat(),
        "today": str(datetime.date.today()),
        "spelled": time.strftime("%Y-%m-%d %H:%M:%S"),
        "uuid4": str(uuid.uuid4()),
        "uuid1": str(uuid.uuid1()),
        "random": random.random(),
        "own": random.Random().randint(0, 10**9),
        "secret": secrets.token_hex(8),
        "bytes": os.urandom(8).hex(),
    }


async def apart(n: int) -> str:
    await asyncio.sleep(0.001 * (os.getpid() * n % 7))
    return f"{n} {uuid.uuid4()} {random.random()}"


def within(n: int) -> str:
    threading.Event().wait(0.001 * (os.getpid() * n % 7))
    return f"{n} {uuid.uuid4()} {random.random()}"


async def together() -> list[str]:
    return list(await asyncio.gather(*(apart(n) for n in range(5))))


def main() -> None:
    ask(**draws())
    ask(**draws(), after="a reply")
    with ThreadPoolExecutor(3) as pool:
        ask(tasks=asyncio.run(together()), jobs=list(pool.map(within, range(5))))
    for word in sys.argv[1:]:
        if word == "pid":
            ask(pid=os.getpid())
        elif word == "set":
            ask(order=list({f"word {n}" for n in range(20)}))
        elif word == "temp":
            ask(file=tempfile.mktemp())
        elif word == "uuid":
            ask(id=Path("/proc/sys/kernel/random/uuid").read_text().strip())
        elif word == "clock":
            ask(at=1700000000 + float(Path("/proc/uptime").read_text().split()[0]))
        elif word == "port":
            with socket.create_server(("127.0.0.1", 0)) as server:
                ask(callback=f"http://127.0.0.1:{server.getsockname()[1]}/done")
        elif word == "race":
            order = sorted(range(4), key=lambda n: os.getpid() * (n + 3) % 101)
            for n in order:
                ask(step=n)
    print(uuid.uuid4(), int(time.time()))


main()
