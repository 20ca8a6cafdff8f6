"""An agent in process that calls two tools several times, in an order that depends on its input."""

import httpx


async def agent(prompt: str) -> str:
    url, number = prompt.split()[0], int(prompt.split()[-1])
    got = []
    async with httpx.AsyncClient() as client:
        for step in range(4):
            name = "ab"[(number + step) % 2]
            reply = await client.get(f"{url}/{name}")
            got.append(f"{name}{reply.status_code}")
    return " ".join(got)
