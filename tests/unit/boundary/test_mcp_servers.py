import os
import shlex
import shutil
import sys

import pytest

from flakestorm.boundary import mcp_servers
from flakestorm.boundary.mcp_servers import WRAPPER, wrapped
from flakestorm.errors import Misuse

GATEWAY = "http://127.0.0.1:9/r/TOKEN"


def test_a_command_line_is_wrapped_and_its_words_stay_words() -> None:
    given, origins = wrapped({"FLAKESTORM_MCP_NOTES": "npx -y server '/a b'", "PATH": "/bin"}, GATEWAY)
    words = shlex.split(given["FLAKESTORM_MCP_NOTES"])
    assert words[:2] == [shutil.which("env", path=os.defpath), f"FLAKESTORM_GATEWAY={GATEWAY}"]
    assert words[2:5] == [sys.executable, "-I", str(WRAPPER)]
    assert words[5:] == ["--name", "notes", "--", "npx", "-y", "server", "/a b"]
    assert (list(given), origins) == (["FLAKESTORM_MCP_NOTES"], {})
    assert WRAPPER.is_file()


def test_where_no_program_sets_variables_the_way_stands_in_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_servers, "which", lambda *_, **__: None)
    given, _ = wrapped({"FLAKESTORM_MCP_NOTES": "npx"}, GATEWAY)
    wrapper = [sys.executable, "-I", str(WRAPPER), "--gateway", GATEWAY]
    assert shlex.split(given["FLAKESTORM_MCP_NOTES"]) == [*wrapper, "--name", "notes", "--", "npx"]


@pytest.mark.parametrize(
    ("url", "expected", "origin"),
    [
        ("https://mcp.test/mcp?key=a%2Fb", "http://127.0.0.1:9/r/TOKEN/p/mcp-w/mcp?key=a%2Fb", "https://mcp.test"),
        ("HTTP://mcp.test:81", "http://127.0.0.1:9/r/TOKEN/p/mcp-w", "http://mcp.test:81"),
        ("https://u:p@mcp.test/mcp/", "http://u:p@127.0.0.1:9/r/TOKEN/p/mcp-w/mcp/", "https://mcp.test"),
    ],
)
def test_a_url_keeps_all_but_its_origin(url: str, expected: str, origin: str) -> None:
    assert wrapped({"FLAKESTORM_MCP_W": url}, GATEWAY) == ({"FLAKESTORM_MCP_W": expected}, {"mcp-w": origin})


def test_variables_that_say_nothing_are_left_alone() -> None:
    assert wrapped({"FLAKESTORM_MCP_W": "  ", "XFLAKESTORM_MCP_W": "x", "HOME": "/"}, GATEWAY) == ({}, {})


def test_a_command_line_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(Misuse, match="FLAKESTORM_MCP_W"):
        wrapped({"FLAKESTORM_MCP_W": "npx 'server"}, GATEWAY)
