"""Everything the demo's config refers to, brought up for as long as it is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from flakestorm.demo.model import ScriptedModel
from flakestorm.demo.server import serving
from flakestorm.demo.services import Services
from flakestorm.errors import MissingExtra

__all__ = ["AGENT", "CONFIG", "FIXED", "INCIDENT", "serve"]

CONFIG = Path(__file__).with_name("flakestorm.yaml")
"""The demo's configuration file."""

INCIDENT = Path(__file__).with_name("incident.yaml")
"""The incident that the demo's agent has not got over."""

AGENT, FIXED = "flakestorm.demo.agent", "flakestorm.demo.fixed"
"""The agent, and the same with its bug fixed."""


@contextmanager
def serve(*, reports: Path | str | None = None, agent: str = AGENT) -> Iterator[dict[str, str]]:
    """Start the scripted model and the tool service on the loopback; yields the variables the config expands.

    Args:
        reports: the folder reports go to; `reports` in the current directory by default.
        agent: the module that is run as the agent.

    Raises:
        MissingExtra: OpenAI's SDK, with which the agent is written, is not installed.
    """
    if find_spec("openai") is None:
        raise MissingExtra("the demo", "demo")
    with serving(ScriptedModel()) as model, serving(Services()) as tools:
        yield {
            "FLAKESTORM_DEMO_MODEL_URL": f"{model}/v1",
            "FLAKESTORM_DEMO_TOOLS_URL": tools,
            "FLAKESTORM_DEMO_API_KEY": "none-needed",
            "FLAKESTORM_DEMO_AGENT": agent,
            "FLAKESTORM_DEMO_PYTHON": sys.executable,
            "FLAKESTORM_DEMO_REPORTS": str(Path("reports" if reports is None else reports).absolute()),
        }
