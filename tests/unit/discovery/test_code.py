"""Python files are read, and never imported."""

from pathlib import Path

import pytest

from flakestorm.discovery.code import App, Code, read


def code(folder: Path, **files: str) -> Code:
    for name, text in files.items():
        (folder / f"{name}.py").write_text("raise SystemExit('nobody imports me')\n" + text)
    return read(folder)


def test_a_web_app_with_its_route_and_the_key_of_its_input(tmp_path) -> None:
    text = (
        "class Ask(BaseModel):\n    session: str\n    question: str\n"
        "app = FastAPI()\n@app.post('/admin')\ndef admin(): ...\n"
        "@app.post('/v1/chat')\nasync def chat(ask: Ask): ...\n"
    )
    assert code(tmp_path, server=text).apps == [App("server", "app", "fastapi", "/v1/chat", "question")]


def test_flask(tmp_path) -> None:
    text = "web = Flask(__name__)\n@web.route('/ask', methods=['POST'])\ndef f():\n    return request.json['message']\n"
    assert code(tmp_path, main=text).apps == [App("main", "web", "flask", "/ask", "message")]


def test_runnables_and_functions(tmp_path) -> None:
    text = "import re\nword = re.compile('a')\ngraph = builder.compile()\nhelper = create_react_agent(model, tools)\n"
    found = code(tmp_path, graphs=text, agent="def answer(text: str) -> str: ...\ndef run(a, b): ...\n")
    assert found.runnables == ["graphs:graph", "graphs:helper"]
    assert found.functions == ["agent:answer"]


@pytest.mark.parametrize("signature", ["()", "(a, b)", "(n: int)", "(a, *, b)"])
def test_what_cannot_be_called_with_one_text_is_no_agent(tmp_path, signature) -> None:
    assert code(tmp_path, agent=f"def answer{signature}: ...\n").functions == []


def test_tools_and_urls(tmp_path) -> None:
    text = (
        "@tool\ndef book(): ...\n@function_tool(strict=True)\ndef cancel(): ...\n"
        "httpx.get(f'{BASE}/search?to=x')\nrequests.post('https://api.example.com/v1/bookings')\n"
        "httpx.post('https://api.openai.com/v1/chat/completions')\nd.get('/not')\n"
    )
    found = code(tmp_path, tools=text)
    assert found.tools == ["book", "cancel"]
    assert found.urls == {"search": "*/search*", "bookings": "*/v1/bookings*"}


def test_what_cannot_be_read_says_nothing(tmp_path) -> None:
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "zeros.py").write_bytes(b"\0\xff")
    (tmp_path / "deep.py").write_text("(" * 5000 + ")" * 5000)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "x.py").write_text("def answer(text): ...\n")
    (tmp_path / "prog.py").write_text("parser.add_argument('--port')\n")
    assert read(tmp_path) == Code(programs=["prog.py"])


def test_modules_of_a_project_in_src_layout_are_named_as_they_import_each_other(tmp_path) -> None:
    (tmp_path / "src" / "bot").mkdir(parents=True)
    (tmp_path / "src" / "bot" / "agent.py").write_text("def answer(text): ...\n")
    assert read(tmp_path).functions == ["src.bot.agent:answer"]
    (tmp_path / "pyproject.toml").write_text("")
    assert read(tmp_path).functions == ["bot.agent:answer"]
