import os
import shlex
import subprocess
from pathlib import Path

import pytest

from flakestorm.agents.mcp import handed, servers
from flakestorm.config.model import Agent
from flakestorm.errors import ConfigError


def agent(**mcp: str | list[str]) -> Agent:
    return Agent(endpoint="m:f", type="python", mcp={name.replace("__", "-"): value for name, value in mcp.items()})


def test_every_server_is_a_variable() -> None:
    block = agent(git__hub="npx server", web=["python", "a b.py"], far="https://mcp.test/mcp")
    assert servers(block) == {
        "FLAKESTORM_MCP_GIT_HUB": "npx server",
        "FLAKESTORM_MCP_WEB": "python 'a b.py'",
        "FLAKESTORM_MCP_FAR": "https://mcp.test/mcp",
    }
    assert servers(agent()) == {}


def test_a_command_line_can_be_told_where_to_run(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    block = agent(w=["printf", "%s\n", "a b"], p="pwd", far="http://mcp.test")
    given = servers(block, folder=folder)
    assert given["FLAKESTORM_MCP_FAR"] == "http://mcp.test"

    def output(name: str) -> str:
        return subprocess.run(shlex.split(given[name]), check=True, capture_output=True, text=True).stdout

    assert output("FLAKESTORM_MCP_W") == "a b\n"
    assert output("FLAKESTORM_MCP_P").strip() == str(folder)


@pytest.mark.parametrize(
    ("mcp", "message"), [({"a": ""}, "agent.mcp.a"), ({"a__b": "x", "a_b": "y"}, "FLAKESTORM_MCP_A_B")]
)
def test_what_cannot_be_handed_on_is_refused(mcp: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        servers(agent(**mcp))


def test_this_process_has_them_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAKESTORM_MCP_OLD", "before")
    monkeypatch.delenv("FLAKESTORM_MCP_NEW", raising=False)
    with handed(agent(old="during", new="server"), Path.cwd()):
        assert (os.environ["FLAKESTORM_MCP_OLD"], os.environ["FLAKESTORM_MCP_NEW"]) == ("during", "server")
    assert os.environ["FLAKESTORM_MCP_OLD"] == "before"
    assert "FLAKESTORM_MCP_NEW" not in os.environ
