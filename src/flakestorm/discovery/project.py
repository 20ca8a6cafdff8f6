"""Putting together what is found: the agent that `flakestorm init` writes down."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from flakestorm.config.starter import Found
from flakestorm.core.loading import source_folder
from flakestorm.discovery import code, process, running
from flakestorm.tape.redact import is_secret_name

__all__ = ["find"]


def find(folder: Path, *, ports: tuple[int, ...] = running.PORTS, greet: bool = True) -> Found:
    """The agent of a folder: one that runs already, else what the files there describe.

    Args:
        folder: where the config will lie.
        ports: where a running agent is looked for.
        greet: whether services that do not describe themselves are asked.
    """
    said = code.read(folder)
    tools = {"functions": tuple(said.tools[:20]), "urls": dict(list(said.urls.items())[:20])}
    live = running.find(ports, greet=greet)
    if live is not None:
        return _safe(_running(live, folder), tools)
    for part in (_langgraph(folder), _app(said), _in_process(said), _program(said), _node(folder)):
        if part:
            return _safe(part, tools)
    return _safe({}, tools)


def _safe(agent: dict[str, Any], tools: dict[str, Any]) -> Found:
    """Nothing that the config would expand: `${...}` in what was found is left out."""
    kept = {key: value for key, value in agent.items() if "${" not in str(value)}
    return Found(**kept, **{key: value for key, value in tools.items() if "${" not in str(value)})


def _running(live: running.Running, folder: Path) -> dict[str, Any]:
    agent: dict[str, Any] = {
        "endpoint": f"http://127.0.0.1:{live.port}{live.path}",
        "request_template": live.template,
        "response_path": live.answer,
        "notes": [f"an agent on port {live.port}, by {live.how}"],
    }
    begun = process.started(live.port)
    if begun is None or str(live.port) not in " ".join(begun.argv) or any(map(_tells_a_secret, begun.argv)):
        return agent
    words = [word.replace(str(live.port), "{port}") for word in begun.argv]
    start = {
        "start": shlex.join(words).replace("'{port}'", "{port}"),
        "cwd": "" if begun.cwd == folder.resolve() else str(begun.cwd),
        "ready": f"http://127.0.0.1:{{port}}{live.health}" if live.health else "",
    }
    if begun.missing:
        names = ", ".join(begun.missing[:8]) + (" and more" if len(begun.missing) > 8 else "")
        agent["notes"].append(
            f"it was started with variables that are not set here ({names}); "
            f"set them, then let flakestorm start it: {start['start']}"
        )
        return agent
    return {**agent, **start, "endpoint": f"http://127.0.0.1:{{port}}{live.path}"}


def _tells_a_secret(word: str) -> bool:
    """Whether a word of a command line names a secret: what comes after it is nothing for a file."""
    return is_secret_name(word.lstrip("-").partition("=")[0]) or bool(re.match(r"(sk|pk|ghp|xox.)[-_]", word))


def _langgraph(folder: Path) -> dict[str, Any]:
    graphs = _json(folder / "langgraph.json").get("graphs")
    for name, place in graphs.items() if isinstance(graphs, dict) else ():
        place = place.get("path") if isinstance(place, dict) else place
        file, colon, attribute = str(place).rpartition(":")
        file = file.removeprefix("./")
        file = file.removeprefix("src/") if source_folder(folder) else file
        module = file.removesuffix(".py").replace("/", ".")
        if colon and all(part.isidentifier() for part in (*module.split("."), attribute)):
            return {
                "type": "langchain",
                "endpoint": f"{module}:{attribute}",
                "notes": [f"the graph {name!r} of langgraph.json"],
            }
    return {}


def _app(said: code.Code) -> dict[str, Any]:
    if not said.apps:
        return {}
    app = said.apps[0]
    name = f"{app.module}:{app.name}"
    placed = f"{app.root}/{app.module.replace('.', '/')}:{app.name}" if app.root else name
    start = {
        "fastapi": f"python -m uvicorn {name}{f' --app-dir {app.root}' if app.root else ''} --port {{port}}",
        "flask": f"python -m flask --app {placed} run --port {{port}}",
        "quart": f"python -m quart --app {placed} run --port {{port}}",
    }[app.framework]
    return {
        "endpoint": f"http://127.0.0.1:{{port}}{app.path}",
        "start": start,
        "request_template": json.dumps({app.key: "{prompt}"}) if app.key else "",
        "notes": [f"the {app.framework} app {name}"],
    }


def _in_process(said: code.Code) -> dict[str, Any]:
    if said.runnables:
        return {"type": "langchain", "endpoint": said.runnables[0], "notes": ["a LangChain or LangGraph object"]}
    if said.functions:
        return {"type": "python", "endpoint": said.functions[0], "notes": ["a function that takes one text"]}
    return {}


def _program(said: code.Code) -> dict[str, Any]:
    if not said.programs:
        return {}
    return {
        "endpoint": "http://127.0.0.1:{port}/invoke",
        "start": f"python {shlex.quote(said.programs[0])} --port {{port}}",
        "notes": [f"{said.programs[0]} takes --port; correct the path of the endpoint"],
    }


def _node(folder: Path) -> dict[str, Any]:
    scripts = _json(folder / "package.json").get("scripts")
    if not isinstance(scripts, dict) or not isinstance(scripts.get("start"), str):
        return {}
    return {
        "endpoint": "http://127.0.0.1:{port}/invoke",
        "start": "npm start",
        "env": {"PORT": "{port}"},
        "notes": ["package.json has a start script; correct the path of the endpoint"],
    }


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes()[:1_000_000])
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
