"""The tools of these agents: one that is only a function, and one that asks a service."""

import os

import httpx


def search(to: str) -> dict:
    """Search flights.

    Args:
        to: The city to fly to.
    """
    return {"to": to, "flights": 3}


def seats(flight: str) -> str:
    """Ask for the free seats of a flight.

    Args:
        flight: The number of the flight.
    """
    reply = httpx.get(f"{os.environ['UPSTREAM_URL']}/seats", params={"flight": flight}, timeout=20)
    reply.raise_for_status()
    return reply.text


TOOLS = [search]
