"""Python files, read and never imported: web apps, runnables, functions that look like agents, tools and URLs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from flakestorm.core.loading import source_folder

__all__ = ["INPUT_KEYS", "App", "Code", "python_files", "read"]

INPUT_KEYS = ("input", "message", "prompt", "query", "question", "text", "content", "user_input", "q")
"""Names under which agents take their input, likeliest first."""

_APPS = {"FastAPI": "fastapi", "Flask": "flask", "Starlette": "fastapi", "Quart": "quart"}
_RUNNABLES = ("create_react_agent", "create_agent", "create_deep_agent", "AgentExecutor")
_AGENTS = ("agent", "answer", "run_agent", "ask", "invoke", "respond", "chat", "run", "handle")
_TOOLS = ("tool", "function_tool", "tool_plain", "beta_tool")
_VERBS = ("get", "post", "put", "patch", "delete", "request", "urlopen")
_SKIPPED = ("node_modules", "site-packages", "venv", "env", "build", "dist", "tests", "test", "__pycache__")
_MOST_FILES, _MOST_BYTES = 300, 512_000
_PROVIDERS = re.compile(r"openai|anthropic|googleapis|mistral|cohere|groq|azure|11434", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class App:
    """A web app: `module:name`, of which framework, its best POST route, the key that takes the input, and its root:
    the folder that the module is imported from, if not the project's own."""

    module: str
    name: str
    framework: str
    path: str
    key: str = ""
    root: str = ""


@dataclass(slots=True)
class Code:
    """What the files say, in order of their names.

    Args:
        apps: web apps with a POST route.
        runnables, functions: `module:name` of LangChain or LangGraph objects, and of functions that look like agents.
        programs: files that take `--port`.
        tools: names of the functions that are tools.
        urls: names for URLs that are called, with a glob each.
    """

    apps: list[App] = field(default_factory=list)
    runnables: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    urls: dict[str, str] = field(default_factory=dict)


def python_files(folder: Path) -> Iterator[Path]:
    """The project's own files, up to three folders deep."""
    found = 0
    for depth in ("*.py", "*/*.py", "*/*/*.py", "*/*/*/*.py"):
        for path in sorted(folder.glob(depth)):
            parts = path.relative_to(folder).parts
            if any(part.startswith(".") or part.removesuffix(".py") in _SKIPPED for part in parts):
                continue
            if parts[-1].startswith(("test_", "conftest")) or not path.is_file():
                continue
            found += 1
            if found > _MOST_FILES:
                return
            yield path


def read(folder: Path) -> Code:
    """What the Python files of a folder say. One that cannot be read says nothing."""
    code = Code()
    packaged = bool(source_folder(folder))
    for path in python_files(folder):
        try:
            if path.stat().st_size > _MOST_BYTES:
                continue
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        root = "src" if packaged and parts[0] == "src" else ""
        if all(part.isidentifier() for part in parts):
            _module(code, tree, ".".join(parts[1:] if root else parts), root)
        if any(_constant(call, 0) == "--port" for call in _calls(tree) if _name(call.func) == "add_argument"):
            code.programs.append(path.relative_to(folder).as_posix())
    code.functions.sort(key=lambda name: _AGENTS.index(name.partition(":")[2]))
    code.tools = list(dict.fromkeys(code.tools))
    return code


def _module(code: Code, tree: ast.Module, module: str, root: str) -> None:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            made = _name(node.value.func)
            if not isinstance(target, ast.Name):
                continue
            if made in _APPS and (routes := _routes(target.id, functions, classes)):
                code.apps.append(App(module, target.id, _APPS[made], *routes[0], root=root))
            elif made in _RUNNABLES or (made == "compile" and not _is_re(node.value)):
                code.runnables.append(f"{module}:{target.id}")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in _AGENTS and _takes_one(node):
            code.functions.append(f"{module}:{node.name}")
    code.tools += [f.name for f in functions if any(_name(_bare(d)) in _TOOLS for d in f.decorator_list)]
    for call in _calls(tree):
        if _name(call.func) in _VERBS and isinstance(call.func, ast.Attribute):
            for path in filter(None, (_path(argument) for argument in call.args[:2])):
                name = re.sub(r"\W+", "_", path.strip("/").rpartition("/")[2]).strip("_")
                if name and not name[0].isdigit():
                    code.urls.setdefault(name, f"*{path}*")


def _routes(app: str, functions: list[ast.FunctionDef | ast.AsyncFunctionDef], classes: dict[str, ast.ClassDef]
) -> list[tuple[str, str]]:  # fmt: skip
    """The paths of the app's POST routes with the key of the input, the likeliest first."""
    found = []
    for function in functions:
        for decorator in function.decorator_list:
            if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute)):
                continue
            posts = decorator.func.attr == "post" or (
                decorator.func.attr == "route" and "POST" in ast.unparse(decorator)
            )
            path = _constant(decorator, 0)
            if posts and path and "{" not in path and "<" not in path and _name(decorator.func.value) == app:
                found.append((path, _key(function, classes)))
    return sorted(found, key=lambda route: (not route[1], len(route[0])))


def _key(function: ast.FunctionDef | ast.AsyncFunctionDef, classes: dict[str, ast.ClassDef]) -> str:
    names: set[str] = set()
    for argument in function.args.args:
        model = classes.get(_name(argument.annotation)) if argument.annotation is not None else None
        if model is not None:
            names |= {
                n.target.id for n in model.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
            }
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return next((key for key in INPUT_KEYS if key in names), "")


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _bare(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _name(node: ast.expr | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_re(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner is None or (isinstance(owner, ast.Name) and owner.id in ("re", "re2", "regex", "jinja2"))


def _constant(call: ast.Call, index: int) -> str:
    argument = call.args[index] if len(call.args) > index else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else ""


def _path(node: ast.expr) -> str:
    """The path of the URL that an argument is, as far as it is written down."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(("http://", "https://"))
    ):
        return "" if _PROVIDERS.search(node.value) else urlsplit(node.value).path.rstrip("/")
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.FormattedValue):
        rest = node.values[1] if len(node.values) > 1 else None
        if isinstance(rest, ast.Constant) and str(rest.value).startswith("/"):
            return str(rest.value).partition("?")[0].rstrip("/")
    return ""


def _takes_one(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function can be called with one text."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    required = len(arguments) - len(node.args.defaults)
    keywords = [d for d in node.args.kw_defaults if d is None]
    if required != 1 or keywords or node.decorator_list:
        return False
    annotation = arguments[0].annotation
    return annotation is None or "str" in ast.unparse(annotation)
