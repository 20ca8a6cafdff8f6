"""The blocks `agent` and `model`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from flakestorm.config.base import Strict, words
from flakestorm.config.vocabulary import AGENT_TYPES

__all__ = ["Agent", "Model", "Session"]


class Session(Strict, frozen=True, kw_only=True):
    """What tells the conversations of an agent apart: an id, in one place of every request."""

    cookie: Annotated[str | None, Meta(description="name of the cookie that holds the id")] = None
    header: Annotated[str | None, Meta(description="name of the HTTP header that holds the id")] = None
    body: Annotated[
        str | None, Meta(description="key of the JSON request (and reply) that holds the id; may be a dotted path")
    ] = None
    made_by: Annotated[
        Literal["agent", "flakestorm"] | None,
        Meta(
            description="who makes the id: agent (the first request has none, its reply brings one) or flakestorm; "
            "default: agent for a cookie, flakestorm for a header or key"
        ),
    ] = None

    def __post_init__(self) -> None:
        if sum(bool(place) for place in (self.cookie, self.header, self.body)) != 1:
            raise ValueError("a session needs one of 'cookie', 'header' and 'body': where the id is")

    @property
    def begins(self) -> bool:
        """Whether the first request of a conversation has an id already."""
        return self.made_by == "flakestorm" or (self.made_by is None and self.cookie is None)


class Agent(Strict, frozen=True, kw_only=True):
    """How the agent is run and how its answer is read."""

    endpoint: Annotated[
        str,
        Meta(
            description="where the agent is: a URL for type http, `module:callable` for python, `module:runnable` for "
            "langchain; may hold {port}. Not used by type command."
        ),
    ] = ""
    type: Annotated[
        str,
        Meta(
            description="how the agent is run: http, python, langchain, command, or the name of a plug-in",
            extra_json_schema=words(AGENT_TYPES),
        ),
    ] = "http"
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE"], Meta(description="HTTP method of the request")
    ] = "POST"
    request_template: Annotated[
        str | None,
        Meta(
            description='the request body, e.g. {"message": "{prompt}"}; {prompt} is inserted JSON-escaped. Without it '
            "the body is JSON with the prompt under the usual key. For type langchain: the runnable's input."
        ),
    ] = None
    response_path: Annotated[
        str | None,
        Meta(
            description="where the answer is in the JSON reply: a dotted path with list indexes, e.g. "
            "choices.0.message.content. Without it the usual keys are tried: output, result, response, answer, text, "
            "content, message."
        ),
    ] = None
    query_params: Annotated[dict[str, str], Meta(description="query parameters sent with every request")] = {}
    parse_structured_input: Annotated[
        bool, Meta(description="a prompt of `Key: value` lines also fills {key} placeholders of request_template")
    ] = True
    timeout: Annotated[
        Annotated[int, Meta(ge=1000, le=300000)], Meta(description="how long to wait for one answer, in milliseconds")
    ] = 30000
    headers: Annotated[dict[str, str], Meta(description="HTTP headers sent with every request")] = {}
    reset_endpoint: Annotated[
        str | None, Meta(description="URL that is POSTed to before each cell, so that no run sees another's state")
    ] = None
    reset_function: Annotated[
        str | None,
        Meta(
            description="`module:function`, sync or async, called before each cell, so that no run sees another's state"
        ),
    ] = None
    snapshot: Annotated[
        str | None,
        Meta(
            description="saves the state around the agent before each call that `record` records: a command, given "
            "FLAKESTORM_SITE and FLAKESTORM_TAPE, or `module:function`, called with both"
        ),
    ] = None
    restore: Annotated[
        str | None,
        Meta(
            description="puts back what `snapshot` saved at the site where `fork` leaves a tape: a command or "
            "`module:function`, as `snapshot`"
        ),
    ] = None
    session: Annotated[
        Session | None,
        Meta(description="for type http: where requests hold the id of the conversation that they belong to"),
    ] = None
    start: Annotated[
        str | list[str] | None,
        Meta(
            description="command that starts the agent: launched once for type http, run once per input for type "
            "command; may hold {port}, and {prompt} for type command"
        ),
    ] = None
    cwd: Annotated[str | None, Meta(description="folder in which `start` runs; default: the folder of this file")] = (
        None
    )
    env: Annotated[dict[str, str], Meta(description="environment variables given to the started agent")] = {}
    ready: Annotated[
        str | int | None,
        Meta(description="URL or port that answers when the started agent is ready; waited for up to 30 s"),
    ] = None
    tools: Annotated[
        str | None,
        Meta(
            description="`module:registry`: a dict name -> tool or a list of tools (functions, or tool objects of a "
            "framework), held in process; for types python and langchain"
        ),
    ] = None
    mcp: Annotated[
        dict[str, str | list[str]],
        Meta(
            description="MCP servers of the agent, name -> command line or URL; wrapped and handed to the agent as "
            "FLAKESTORM_MCP_<NAME>"
        ),
    ] = {}

    @classmethod
    def _spelled(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        method, kind = data.get("method"), data.get("type")
        right: dict[str, str] = {}
        if isinstance(method, str):
            right["method"] = method.upper()
        if isinstance(kind, str) and kind.strip().lower() in AGENT_TYPES.words:
            right["type"] = kind.strip().lower()
        return {**data, **right}

    def __post_init__(self) -> None:
        if self.type == "command":
            if not self.start:
                raise ValueError("an agent of type 'command' needs 'start': the command to run for each input")
        elif not self.endpoint:
            raise ValueError(f"an agent of type {self.type!r} needs 'endpoint'")


class Model(Strict, frozen=True, kw_only=True):
    """The model that writes mutations and judges; not the agent's own."""

    DEFAULT_OLLAMA: ClassVar[str] = "http://localhost:11434"

    provider: Annotated[
        Literal["ollama", "openai", "anthropic", "google", "none"],
        Meta(description="who serves the model; none: do without one"),
    ] = "ollama"
    name: Annotated[str, Meta(description="the model's name at its provider, e.g. gpt-4o-mini")] = "qwen3:8b"
    base_url: Annotated[
        str | None,
        Meta(description="base URL of the provider; default: the provider's own (ollama: http://localhost:11434)"),
    ] = None
    api_key: Annotated[
        str | None,
        Meta(
            description="an environment variable as ${VAR}; literal keys are refused",
            extra_json_schema={"pattern": "^\\s*(\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}\\s*)?$"},
        ),
    ] = None
    temperature: Annotated[Annotated[float, Meta(ge=0.0, le=2.0)], Meta(description="sampling temperature")] = 0.8

    @classmethod
    def _spelled(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        provider = data.get("provider")
        return {**data, "provider": provider.strip().lower()} if isinstance(provider, str) else data
