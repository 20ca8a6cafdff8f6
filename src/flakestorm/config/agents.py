"""The blocks `agent` and `model`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from flakestorm.config.base import Strict, words
from flakestorm.config.vocabulary import AGENT_TYPES

__all__ = ["Agent", "Model"]


class Agent(Strict):
    """How the agent is run and how its answer is read."""

    endpoint: str = Field(
        "",
        description="where the agent is: a URL for type http, `module:callable` for python, `module:runnable` for "
        "langchain; may hold {port}. Not used by type command.",
    )
    type: str = Field(
        "http",
        description="how the agent is run: http, python, langchain, command, or the name of a plug-in",
        json_schema_extra=words(AGENT_TYPES),
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field("POST", description="HTTP method of the request")
    request_template: str | None = Field(
        None,
        description='the request body, e.g. {"message": "{prompt}"}; {prompt} is inserted JSON-escaped. Without it '
        "the body is JSON with the prompt under the usual key. For type langchain: the runnable's input.",
    )
    response_path: str | None = Field(
        None,
        description="where the answer is in the JSON reply: a dotted path with list indexes, e.g. "
        "choices.0.message.content. Without it the usual keys are tried: output, result, response, answer, text, "
        "content, message.",
    )
    query_params: dict[str, str] = Field(default_factory=dict, description="query parameters sent with every request")
    parse_structured_input: bool = Field(
        True, description="a prompt of `Key: value` lines also fills {key} placeholders of request_template"
    )
    timeout: int = Field(30000, ge=1000, le=300000, description="how long to wait for one answer, in milliseconds")
    headers: dict[str, str] = Field(default_factory=dict, description="HTTP headers sent with every request")
    reset_endpoint: str | None = Field(
        None, description="URL that is POSTed to before each cell, so that no run sees another's state"
    )
    reset_function: str | None = Field(
        None,
        description="`module:function`, sync or async, called before each cell, so that no run sees another's state",
    )
    start: str | list[str] | None = Field(
        None,
        description="command that starts the agent: launched once for type http, run once per input for type "
        "command; may hold {port}, and {prompt} for type command",
    )
    cwd: str | None = Field(None, description="folder in which `start` runs; default: the folder of this file")
    env: dict[str, str] = Field(default_factory=dict, description="environment variables given to the started agent")
    ready: str | int | None = Field(
        None, description="URL or port that answers when the started agent is ready; waited for up to 30 s"
    )
    tools: str | None = Field(
        None,
        description="`module:registry`: a dict name -> tool or a list of tools (functions, or tool objects of a "
        "framework), held in process; for types python and langchain",
    )
    mcp: dict[str, str | list[str]] = Field(
        default_factory=dict,
        description="MCP servers of the agent, name -> command line or URL; wrapped and handed to the agent as "
        "FLAKESTORM_MCP_<NAME>",
    )

    @field_validator("method", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("type", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        known = isinstance(value, str) and value.strip().lower() in AGENT_TYPES.words
        return value.strip().lower() if known else value

    @model_validator(mode="after")
    def _complete(self) -> Agent:
        if self.type == "command":
            if not self.start:
                raise ValueError("an agent of type 'command' needs 'start': the command to run for each input")
        elif not self.endpoint:
            raise ValueError(f"an agent of type {self.type!r} needs 'endpoint'")
        return self


class Model(Strict):
    """The model that writes mutations and judges; not the agent's own."""

    DEFAULT_OLLAMA: ClassVar[str] = "http://localhost:11434"

    provider: Literal["ollama", "openai", "anthropic", "google", "none"] = Field(
        "ollama", description="who serves the model; none: do without one"
    )
    name: str = Field("qwen3:8b", description="the model's name at its provider, e.g. gpt-4o-mini")
    base_url: str | None = Field(
        None, description="base URL of the provider; default: the provider's own (ollama: http://localhost:11434)"
    )
    api_key: str | None = Field(
        None,
        description="an environment variable as ${VAR}; literal keys are refused",
        json_schema_extra={"pattern": r"^\s*(\$\{[A-Za-z_][A-Za-z0-9_]*\}\s*)?$"},
    )
    temperature: float = Field(0.8, ge=0.0, le=2.0, description="sampling temperature")

    @field_validator("provider", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value
