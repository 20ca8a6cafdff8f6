"""docs/reference/environment.md: the variables that flakestorm reads, and those that it gives to agents."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import flakestorm
from flakestorm.boundary.intercept import _ALSO as ALSO
from flakestorm.boundary.providers import PROVIDERS
from flakestorm.boundary.trust import VARIABLES

from .markdown import code, table

__all__ = ["page", "unknown"]

_READ = {
    "`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, `GOOGLE_API_KEY`": "the key of the config's `model`, "
    "where `api_key` says nothing",
    "`FLAKESTORM_SIGNING_KEY`": "the key that signs certificates, or the path of a file that holds it",
    "`FLAKESTORM_TRUST_KEY`": "the key that tapes are sealed with, of 32 or more characters, where several users or "
    "machines share one: [in a build](../how-to/ci.md#tapes-that-somebody-else-recorded)",
    "`XDG_STATE_HOME`": "where the user's own key for that is kept, in `flakestorm/key` (`~/.local/state`)",
    "`FLAKESTORM_REAL_TIME`": "with `1`, delays that faults make take their real time",
    "`FLAKESTORM_STORE`": "the Postgres database that keeps reports and tapes: "
    "[one store for all machines](../how-to/run-on-a-cluster.md#one-store-for-all-machines)",
    "`RAY_ADDRESS`": "the Ray cluster of `--executor ray`: [run on a cluster](../how-to/run-on-a-cluster.md)",
    "`FLAKESTORM_DEBUG`": "if set, an internal error shows where it happened",
    "`NO_COLOR`, `TERM`": "no colour if `NO_COLOR` is set, or `TERM` is `dumb`",
    "`GITHUB_STEP_SUMMARY`": "`ci` appends its Markdown report to the file that it names",
    "`LANGSMITH_API_KEY`, `LANGCHAIN_API_KEY`": "the key with which runs are fetched from LangSmith",
    "`LANGSMITH_ENDPOINT`, `LANGCHAIN_ENDPOINT`": "where LangSmith is, if not at its public address",
    "`OTEL_EXPORTER_OTLP_HEADERS`": "headers for `--otel-endpoint`, `name=value,...`",
    "`OTEL_EXPORTER_OTLP_PROTOCOL`": "`http/json` (default) or `http/protobuf`",
    ", ".join(f"`{name}`" for name in VARIABLES): "certificate "
    "authorities that the agent was told to trust; they stay in force behind the gateway",
    "`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`": "how the gateway itself gets out, as the agent would have",
}
_GIVEN = {
    "`FLAKESTORM_RUN`": "the token of the run",
    "`FLAKESTORM_GATEWAY`": "the gateway's address for that run",
    "`FLAKESTORM_MCP_<NAME>`": "an MCP server of `agent.mcp`, wrapped: a command line or a URL",
    "`HTTP_PROXY`, `HTTPS_PROXY` (in both spellings), `NODE_USE_ENV_PROXY`": "the gateway as a proxy; `ALL_PROXY` only "
    "where it was set",
    "`NO_PROXY`": "empty, because an exemption would hide calls",
    "`PYTHONPATH`": "what it was, with the start-up shim for Python agents in front",
    "`FLAKESTORM_LANES`": "a file by which the shim knows one run from the next, so that each counts its threads, jobs "
    "and tasks anew",
    "`FLAKESTORM_DRAWS`, `PYTHONHASHSEED`": "where runs are compared with a recording: clock and draws that "
    "follow from a seed",
    ", ".join(f"`{name}`" for name in VARIABLES if not name.endswith("_DIR")): "with the extra `mitm`: a file with the "
    "gateway's own certificate authority and all that were trusted before",
    ", ".join(f"`{name}`" for name in ALSO): "the same file, where they were set",
}
_OTHERS = {
    "`FLAKESTORM_SITE`, `FLAKESTORM_TAPE`": "given to the command of `fork --restore`: where the fork is, and its tape",
    "`FLAKESTORM_DEMO_*`": "set by `flakestorm demo` for its own config; `python -m flakestorm.demo` gives agents "
    "`FLAKESTORM_DEMO_TOOLS_URL`",
}
_FILES = {
    "`reports/` (`output.path`), a folder for each command": "the report as page and JSON, and in `tapes/` a tape of "
    "every run; with `-o`, they lie beside that file",
    "`.flakestorm/store.sqlite3`, `.flakestorm/content/`": "what is saved: reports, and their tapes, each content "
    "once; `flakestorm tapes prune` makes room",
    "`.flakestorm/tapes/`": "tapes of `record`, `gateway` and `tapes import` without `-o`, and copies of recordings "
    "that were recorded over",
    "`.flakestorm/mutations/`": "what the config's `model` wrote for `engine: llm`",
    "`.flakestorm/gateway`": "where a standing gateway is, while it stands",
    "`.flakestorm/certificate.key`": "the project's own key for certificates, if no other was given",
    "`.flakestorm/trust/`": "the key that tapes are sealed with, only where the user's home cannot be written to",
    "`~/.local/state/flakestorm/key`": "that key, else",
    "`sessions/`": "sessions of `replay export`, `import` and `--from-langsmith` without `-o`",
    "`tapes/` beside a test": "what pytest's fixture [`tape`](../how-to/pytest.md#record-once-replay-ever-after) "
    "recorded",
}
_FILED = """Reports and tapes hold conversations, without the [secrets](../explanation/redaction.md) that are removed.
`.flakestorm/` lies beside the config (for tapes without a report: in the current folder) and tells git to leave it
alone; whether the rest is committed is up to you and your `.gitignore`."""
_INTRO = """# Environment variables, and files

Any variable can stand in a config as `${VAR}`. Those below mean something by themselves.
"""
_PROVIDERS = "Each is given the gateway's address in place of what it said before, or of the provider's public one."
_NAMES = re.compile(
    r"[\"'](?P<name>(FLAKESTORM|GITHUB|LANGSMITH|LANGCHAIN|OTEL|NODE|SSL)_[A-Z_]+|PYTHON[A-Z]+|NO_COLOR"
    r"|[A-Z_]+_(BASE_URL|API_BASE|CA_BUNDLE|API_KEY|PROXY))[\"']"
)


def page() -> str:
    """The page."""
    rows = [
        (", ".join(map(code, each.variables)), code(each.public), "always" if each.always else "where it was set")
        for each in PROVIDERS
    ]
    parts = [_INTRO, "## Read by flakestorm", table(("variable", "meaning"), _READ.items())]
    parts += ["## Given to launched agents", "Beside the caller's own environment and `agent.env`."]
    parts += [table(("variable", "holds"), _GIVEN.items())]
    parts += ["### Where providers are", _PROVIDERS]
    parts += [table(("variable", "upstream by default", "given"), rows)]
    parts += ["## Others", table(("variable", "meaning"), _OTHERS.items())]
    parts += ["## Files that are written", table(("where", "what"), _FILES.items()), _FILED]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def unknown() -> set[str]:
    """Names in the code that look like such a variable and are not on the page."""
    told = set(re.findall(r"[A-Z][A-Z_]+", page()))
    demo = {name for name in _found() if name.startswith("FLAKESTORM_DEMO_")}
    return {name for name in _found() - demo if name not in told and name.removesuffix("_") not in told}


@cache
def _found() -> frozenset[str]:
    """What stands in quotes in the code and looks like one."""
    files = Path(str(flakestorm.__file__)).parent.rglob("*.py")
    return frozenset(found["name"] for file in files for found in _NAMES.finditer(file.read_text("utf-8")))
