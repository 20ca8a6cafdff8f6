"""The agent of a folder, as `init` writes it down."""

import json

import pytest

from flakestorm.config.load import loads
from flakestorm.config.starter import Found, starter
from flakestorm.discovery import process, running
from flakestorm.discovery.process import Started
from flakestorm.discovery.project import find
from flakestorm.discovery.running import Running

APP = "app = FastAPI()\n@app.post('/ask')\ndef ask(body: dict):\n    return body['message']\n"


def at(folder, **files: str) -> Found:
    for name, text in files.items():
        (folder / name.replace("_json", ".json").replace("_py", ".py")).write_text(text)
    found = find(folder, ports=())
    loads(starter(found))
    return found


def test_nothing(tmp_path) -> None:
    assert at(tmp_path) == Found()


def test_an_app_is_started(tmp_path) -> None:
    found = at(tmp_path, server_py=APP)
    assert found.start == "python -m uvicorn server:app --port {port}"
    assert (found.endpoint, found.request_template) == ("http://127.0.0.1:{port}/ask", '{"message": "{prompt}"}')


@pytest.mark.parametrize("place", ["./src/agent.py:graph", {"path": "./src/agent.py:graph"}])
def test_a_langgraph_project(tmp_path, place) -> None:
    found = at(tmp_path, langgraph_json=json.dumps({"graphs": {"main": place}}), server_py=APP)
    assert (found.type, found.endpoint) == ("langchain", "src.agent:graph")


@pytest.mark.parametrize(
    ("made", "start"),
    [
        ("FastAPI()", "python -m uvicorn bot.web:app --app-dir src --port {port}"),
        ("Flask(__name__)", "python -m flask --app src/bot/web:app run --port {port}"),
        ("Quart(__name__)", "python -m quart --app src/bot/web:app run --port {port}"),
    ],
)
def test_a_project_in_src_layout(tmp_path, made, start) -> None:
    package = tmp_path / "src" / "bot"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    (package / "agent.py").write_text("def answer(text): ...\n")
    assert at(tmp_path).endpoint == "bot.agent:answer"
    (package / "web.py").write_text(APP.replace("FastAPI()", made))
    assert at(tmp_path).start == start
    graphs = json.dumps({"graphs": {"main": "./src/bot/agent.py:graph"}})
    assert at(tmp_path, langgraph_json=graphs).endpoint == "bot.agent:graph"


def test_functions_programs_and_node(tmp_path) -> None:
    assert at(tmp_path, package_json='{"scripts": {"start": "node ."}}').env == {"PORT": "{port}"}
    assert at(tmp_path, prog_py="p.add_argument('--port')\n").start == "python prog.py --port {port}"
    found = at(tmp_path, agent_py="def answer(text): ...\n@tool\ndef search(): ...\n")
    assert (found.type, found.endpoint, found.functions) == ("python", "agent:answer", ("search",))


def test_broken_and_hostile_files(tmp_path) -> None:
    graphs = {"a": "x:${HOME}", "b": "../../x.py:y z"}
    assert at(tmp_path, langgraph_json=json.dumps({"graphs": graphs}), package_json="[" * 5000) == Found()
    (tmp_path / "p.py").write_text("httpx.get('http://x/${HOME}')\nhttpx.get('http://x/\"a')\n")
    find(tmp_path, ports=())
    loads(starter(find(tmp_path, ports=())))


@pytest.mark.parametrize(
    ("argv", "missing", "start"),
    [
        (("python", "a b.py", "--port=8000"), (), "python 'a b.py' '--port={port}'"),
        (("python", "a.py"), (), ""),
        (("python", "a.py", "8000"), ("MODEL_URL",), ""),
        (("python", "a.py", "--port", "8000", "--api-key", "x"), (), ""),
    ],
)
def test_a_running_one_is_started_again_where_that_is_known_to_work(
    tmp_path, monkeypatch, argv, missing, start
) -> None:
    live = Running(8000, "/invoke", '{"input": "{prompt}"}', "", "its word", "/health")
    monkeypatch.setattr(running, "find", lambda *_, **__: live)
    monkeypatch.setattr(process, "started", lambda *_: Started(argv, tmp_path, missing))
    found = at(tmp_path)
    assert found.start == start
    assert found.endpoint == f"http://127.0.0.1:{'{port}' if start else 8000}/invoke"
    assert not missing or "MODEL_URL" in found.notes[1]
