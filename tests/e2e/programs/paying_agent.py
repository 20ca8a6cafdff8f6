"""An agent that pays an order, and pays again when it hears nothing: CLIENT says how it calls, KEYED=1 sends a key.

It is run once per input. PAY_URL is hard-coded configuration as far as it knows.
"""

import json
import os
import sys
import uuid

PATIENCE_S = 3.0
ATTEMPTS = 3


def pay_with_httpx(body: dict, headers: dict) -> str:
    import httpx

    reply = httpx.post(os.environ["PAY_URL"], json=body, headers=headers, timeout=PATIENCE_S)
    reply.raise_for_status()
    return reply.text


def pay_with_requests(body: dict, headers: dict) -> str:
    import requests

    reply = requests.post(os.environ["PAY_URL"], json=body, headers=headers, timeout=PATIENCE_S)
    reply.raise_for_status()
    return reply.text


def pay_with_aiohttp(body: dict, headers: dict) -> str:
    import asyncio

    import aiohttp

    async def go() -> str:
        timeout = aiohttp.ClientTimeout(sock_read=PATIENCE_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
            session.post(os.environ["PAY_URL"], json=body, headers=headers) as reply,
        ):
            return await reply.text()

    return asyncio.run(go())


def main() -> None:
    prompt = sys.stdin.read().strip()
    headers = {"Idempotency-Key": str(uuid.uuid5(uuid.NAMESPACE_OID, prompt))} if os.environ.get("KEYED") == "1" else {}
    pay = globals()[f"pay_with_{os.environ.get('CLIENT', 'httpx')}"]
    errors = []
    for _ in range(ATTEMPTS):
        try:
            print(json.dumps({"paid": json.loads(pay({"order_id": prompt, "amount": 120}, headers)), "after": errors}))
            return
        except Exception as error:
            errors.append(type(error).__name__)
    print(json.dumps({"paid": None, "after": errors}))


main()
