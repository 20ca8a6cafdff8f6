"""LangSmith runs: trees as its API gives them, and the batches that its SDKs send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from flakestorm.importers.messages import conversation, tool_said
from flakestorm.importers.spans import Span, Traced, traced
from flakestorm.wire import gen_ai

__all__ = ["recognises", "traces"]

_KINDS: Mapping[str, Literal["llm", "tool", "other"]] = {"llm": "llm", "tool": "tool"}
_BATCH = ("post", "patch")


def recognises(document: Any) -> bool:
    """Whether a document is runs of LangSmith."""
    if isinstance(document, list):
        return bool(document) and recognises(document[0])
    if not isinstance(document, dict):
        return False
    runs = document.get("runs")
    batch = any(isinstance(document.get(name), list) for name in _BATCH)
    return "run_type" in document or batch or (isinstance(runs, list) and (not runs or recognises(runs[0])))


def traces(document: Any) -> list[Traced]:
    """The runs, one per trace.

    Raises:
        ValueError: the schema is not what it was expected to be, or a trace holds nothing to import; the message says
            where.
    """
    merged: dict[str, dict[str, Any]] = {}
    for where, run in _runs(document, ""):
        key = run.get("id")
        if not isinstance(key, str) or not key:
            raise ValueError(f"{where}.id: the id of the run was expected")
        told = {name: value for name, value in run.items() if value not in (None, {}, [])}
        merged[key] = {**merged.get(key, {}), **told, "where": where}
    if not merged:
        raise ValueError("it holds no runs: a run with 'run_type', 'inputs' and 'outputs' was expected")
    groups: dict[str, list[dict[str, Any]]] = {}
    for run in merged.values():
        groups.setdefault(_root(run, merged), []).append(run)
    return [_trace(key, runs) for key, runs in groups.items()]


def _root(run: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> str:
    if run.get("trace_id"):
        return str(run["trace_id"])
    for _ in range(len(runs)):
        parent = runs.get(str(run.get("parent_run_id")))
        if parent is None:
            break
        run = parent
    return str(run["id"])


def _runs(document: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from _runs(item, f"{where}[{index}]")
        return
    if not isinstance(document, dict):
        raise ValueError(f"{where or 'it'} is no LangSmith run: an object was expected")
    if "run_type" in document or "parent_run_id" in document or "trace_id" in document:
        yield where or "the run", document
        children = document.get("child_runs")
        for index, child in enumerate(children if isinstance(children, list) else ()):
            for at, run in _runs(child, f"{where}.child_runs[{index}]".lstrip(".")):
                yield at, {"parent_run_id": document.get("id"), **run}
        return
    for name in (*_BATCH, "runs"):
        if isinstance(document.get(name), list):
            yield from _runs(document[name], name)


def _trace(key: str, runs: list[dict[str, Any]]) -> Traced:
    ids = {run["id"] for run in runs}
    root = next((run for run in runs if str(run.get("parent_run_id")) not in ids), runs[0])
    whole = str(root.get("run_type")) not in _KINDS  # what a lone model call was told is no input of an agent's
    try:
        return traced(
            key,
            [_span(run) for run in runs],
            input=_bare(root.get("inputs")) if whole else None,
            output=_bare(root.get("outputs")) if whole else None,
        )
    except ValueError as error:
        raise ValueError(f"run {key}: {error}") from None


def _span(run: Mapping[str, Any]) -> Span:
    where, kind = run["where"], run.get("run_type")
    if not isinstance(kind, str):
        raise ValueError(f"{where}.run_type: llm, tool, chain or the like was expected")
    inputs, outputs = run.get("inputs"), run.get("outputs")
    if not isinstance(inputs, (dict, type(None))) or not isinstance(outputs, (dict, type(None))):
        raise ValueError(f"{where}.inputs and .outputs must be objects")
    return Span(
        id=str(run["id"]),
        parent=str(run.get("parent_run_id") or ""),
        name=str(run.get("name") or ""),
        start=str(run.get("dotted_order") or run.get("start_time") or ""),
        attributes={**_metadata(run), "tool.name": run.get("name") if kind == "tool" else None},
        kind=_KINDS.get(kind, "other"),
        input=_tool_input(inputs) if kind == "tool" else inputs,
        output=_tool_output(outputs) if kind == "tool" else outputs,
        usage=_usage(run),
        error=str(run["error"]).splitlines()[0] if run.get("error") else "",
    )


def _metadata(run: Mapping[str, Any]) -> dict[str, Any]:
    extra = run.get("extra") if isinstance(run.get("extra"), dict) else {}
    metadata, params = ((extra or {}).get(name) for name in ("metadata", "invocation_params"))
    found = dict(metadata) if isinstance(metadata, dict) else {}
    asked = run.get("inputs") if isinstance(run.get("inputs"), dict) else {}
    params = params if isinstance(params, dict) else {}
    found["model"] = (asked or {}).get("model") or params.get("model") or params.get("model_name")
    found[gen_ai.PROVIDER] = found.get("ls_provider")
    found[gen_ai.TOOLS] = (asked or {}).get("tools") or params.get("tools")
    return found


def _usage(run: Mapping[str, Any]) -> tuple[Any, Any]:
    outputs = run.get("outputs") if isinstance(run.get("outputs"), dict) else {}
    for said in ((outputs or {}).get("usage"), (outputs or {}).get("usage_metadata")):
        if isinstance(said, dict):
            return (
                said.get("prompt_tokens", said.get("input_tokens")),
                said.get("completion_tokens", said.get("output_tokens")),
            )
    return run.get("prompt_tokens") or None, run.get("completion_tokens") or None


def _tool_input(inputs: dict[str, Any] | None) -> Any:
    return inputs["input"] if inputs is not None and set(inputs) == {"input"} else inputs


def _tool_output(outputs: dict[str, Any] | None) -> Any:
    """What the tool said: the one output there is, a message's content where it is one."""
    if not outputs:
        return None
    return tool_said(outputs["output"] if set(outputs) == {"output"} else outputs)


def _bare(value: Any) -> Any:
    """The one thing that inputs or outputs hold; their last message's text where they are messages."""
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list):
        said = [m for m in conversation(value) if m["role"] in ("user", "assistant") and m.get("content")]
        return said[-1]["content"] if said else None
    return value
