"""An MCP server made with the official package, over any of its transports.

python mcp_server.py                           stdio
python mcp_server.py streamable-http PORT      (or sse); says `ready` on stdout's first line when it listens
"""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("weather", log_level="ERROR")
released = asyncio.Event()
paid: list[str] = []


class Weather(BaseModel):
    city: str
    degrees: int


class Colour(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """A number: no text fits its output schema."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """A text, which the package wraps as structured content."""
    return f"echo: {text}"


@server.tool()
def weather(city: str) -> Weather:
    """Structured content with a free text in it."""
    return Weather(city=city, degrees=21)


@server.tool()
def pay(order: str) -> str:
    """Does something that is not to be done twice."""
    paid.append(order)
    return f"paid {order} ({len(paid)})"


@server.tool()
def payments(order: str) -> int:
    """How often that was done."""
    return paid.count(order)


@server.tool()
def environment(name: str) -> str:
    """A variable of the server's own environment."""
    return os.environ.get(name, "unset")


@server.tool()
async def patient(ctx: Context) -> str:
    """Reports progress, and goes on only when `release` has been called."""
    await ctx.report_progress(1, 2, "half")
    await released.wait()
    return "done"


@server.tool()
async def release() -> str:
    released.set()
    return "released"


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks the user, by elicitation."""
    answer = await ctx.elicit("which colour?", Colour)
    return f"colour: {answer.data.name}" if answer.action == "accept" else answer.action


@server.resource("note://{name}")
def note(name: str) -> str:
    return f"note {name}"


@server.prompt()
def greeting(name: str) -> str:
    return f"Say hello to {name}"


def main() -> None:
    if len(sys.argv) < 3:
        server.run("stdio")
        return
    import uvicorn

    app = server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app(json_response=sys.argv[1] == "json")

    class Announced(uvicorn.Server):
        async def startup(self, *args: object, **kwargs: object) -> None:
            await super().startup(*args, **kwargs)  # type: ignore[arg-type]
            print("ready", flush=True)

    Announced(uvicorn.Config(app, port=int(sys.argv[2]), log_level="error")).run()


if __name__ == "__main__":
    main()
