"""The pytest plug-in, used as a stranger does: a project with an agent, its tests, and pytest itself."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from e2e_support import clean_env, flakestorm, sdk_agent, wait_until, world, write_config
from plugin_support import BY_HAND, project, ran_at, run_tests

COUNTING = """
import pytest
def count():
    with open("count", "a") as file:
        file.write("run\\n")
"""
OUTAGE = (
    COUNTING
    + """
@pytest.mark.flakestorm(profile="api_outage", trials=5)
def test_admits_outage(agent_run):
    count()
    run = agent_run("Book a flight to Oslo")
    assert "unavailable" in run.output
    assert len(run.tape.calls(tool="search")) == 1
    assert not run.tape.calls(tool="charge_card")
"""
)


@pytest.fixture
def env(up):
    return {"SEARCH_URL": f"{up.url}/search"}


def test_each_trial_runs_the_test_once_and_no_request_gets_past_the_fault(tmp_path, up, env) -> None:
    done = run_tests(project(tmp_path, OUTAGE), env=env)
    assert (done.code, done.counts) == (0, {"passed": 1}), done.out
    assert ran_at(tmp_path) == 5
    assert up.count("/search") == 0


def test_a_launched_agent_is_asked_through_the_gateway(tmp_path) -> None:
    test = """
import pytest
@pytest.mark.flakestorm(scenario="search-down")
def test_it(agent_run):
    run = agent_run("a flight to Oslo")
    assert "unavailable" in run.output
    assert [call.site for call in run.tape.calls(tool="search")] == ["tool/search#1"]

def test_calm(agent_run):
    assert agent_run("a flight to Oslo").output
"""
    with world() as upstream:
        scenario = {"name": "search-down", "tool_faults": [{"tool": "search", "mode": "error"}]}
        write_config(tmp_path, agent=sdk_agent(upstream), boundary={"tools": {"search": "*/search*"}},
                     chaos_matrix=[scenario])  # fmt: skip
        (tmp_path / "test_it.py").write_text(test)
        done = run_tests(tmp_path)
        assert (done.code, done.counts) == (0, {"passed": 2}), done.out
        assert upstream.count("/search") == 1


def test_no_fault_fired_is_inconclusive_whatever_the_test_asserts(tmp_path, env) -> None:
    tests = """
import pytest
pytestmark = pytest.mark.flakestorm(faults=["tool/other=error:503"], trials=2)
def test_content(agent_run):
    assert agent_run("x").output
def test_asserting(agent_run):
    assert "unavailable" in agent_run("x").output
def test_silent(agent_run):
    pass
"""
    done = run_tests(project(tmp_path, tests), "--junitxml=report.xml", env=env)
    assert (done.code, done.counts) == (1, {"failed": 3}), done.out
    messages = [found.get("message", "") for found in ElementTree.parse(tmp_path / "report.xml").iter("failure")]
    assert all(message.startswith("inconclusive: no planned fault fired") for message in messages), messages
    assert "tools seen: search" in messages[0]
    assert "without a fault, the test fails: " in messages[1]
    assert "FAILED test_travel.py::test_content - inconclusive: " in done.out


def test_an_agent_that_cannot_be_reached_is_inconclusive(tmp_path) -> None:
    write_config(tmp_path, agent={"endpoint": "http://127.0.0.1:9/invoke"})
    (tmp_path / "test_it.py").write_text("def test_it(agent_run):\n    agent_run('x')\n")
    done = run_tests(tmp_path)
    assert done.code == 1
    assert "FAILED test_it.py::test_it - inconclusive: the agent could not be asked: " in done.out


def test_a_failure_shows_sites_timeline_and_a_line_that_does_it_again(tmp_path, env) -> None:
    tests = """
import pytest
@pytest.mark.flakestorm(tool_faults=[{"tool": "search", "mode": "error", "error_code": 502}])
def test_it(agent_run):
    assert "found" in agent_run("a flight to Oslo").output
"""
    done = run_tests(project(tmp_path, tests), env=env)
    assert done.counts == {"failed": 1}
    assert "fired  tool/search#1 error: 502 Bad Gateway" in done.out
    assert "world  not asked" in done.out
    assert "assert 'found' in" in done.out
    again = next(line for line in done.out.splitlines() if line.startswith("again  flakestorm run"))
    again = again.removeprefix("again  flakestorm ").replace("'", "")
    words = again.split(" --inject ")
    repeated = flakestorm(tmp_path, *words[0].split(), "--inject", words[1], env=env, report=True)
    assert repeated.report is not None, repeated.err
    [run] = repeated.report["runs"]
    assert run["output"] == "the search is unavailable, sorry"
    assert [fired["site"] for fired in run["faults"]["fired"]] == ["tool/search#1"]


def test_a_rate_of_trials_may_fail_and_chance_spoils_nothing(tmp_path, env) -> None:
    tests = (
        COUNTING
        + """
trial = iter(range(100))
@pytest.mark.flakestorm(scenario="search-down", trials=4, min_pass_rate=0.75)
def test_enough(agent_run):
    agent_run("x")
    assert next(trial) != 2

other = iter(range(100))
@pytest.mark.flakestorm(scenario="search-down", trials=4, min_pass_rate=0.8)
def test_too_few(agent_run):
    agent_run("x")
    assert next(other) != 2

@pytest.mark.flakestorm(faults=["tool/search=error:503,probability=0.5"], trials=8, seed=3)
def test_chance(agent_run):
    run = agent_run("x")
    if run.fired:
        count()
        assert "unavailable" in run.output

@pytest.mark.flakestorm(faults=["tool/search=error:503,probability=0"], trials=2)
def test_never(agent_run):
    agent_run("x")
"""
    )
    done = run_tests(project(tmp_path, tests), "--junitxml=report.xml", env=env)
    assert done.counts == {"failed": 2, "passed": 2}, done.out
    assert 0 < ran_at(tmp_path) < 8
    assert "3 of 4 trials passed (75%, 95% interval 30% to 95%); min_pass_rate is 0.8" in done.out
    assert "test_never - inconclusive: no planned fault fired" in done.out
    cases = {case.get("name"): case for case in ElementTree.parse(tmp_path / "report.xml").iter("testcase")}
    found = {p.get("name"): p.get("value") for p in cases["test_chance"].iter("property")}
    assert found["flakestorm.passed"] == str(ran_at(tmp_path))
    assert found["flakestorm.inconclusive"] == str(8 - ran_at(tmp_path))
    assert (found["flakestorm.fired"], found["flakestorm.seed"]) == ("tool/search#1=error", "3")


def test_fixtures_are_set_up_for_each_trial_and_wider_ones_once(tmp_path, env) -> None:
    tests = (
        COUNTING
        + """
seen = []
@pytest.fixture(scope="module")
def wide():
    seen.append("module")
    yield
    seen.append("end")
@pytest.fixture
def narrow():
    seen.append("function")
@pytest.mark.flakestorm(scenario="search-down", trials=3)
def test_it(agent_run, wide, narrow, tmp_path):
    assert not list(tmp_path.iterdir())
    (tmp_path / "left").touch()
    agent_run("x")
def test_after():
    assert seen == ["module", "function", "function", "function"]
@pytest.mark.skip
@pytest.mark.flakestorm(scenario="search-down", trials=3)
def test_skipped(agent_run): pass
@pytest.fixture
def broken(): raise ValueError("broken")
@pytest.mark.flakestorm(scenario="search-down", trials=3)
def test_broken(broken): pass
"""
    )
    done = run_tests(project(tmp_path, tests), env=env)
    assert done.counts == {"passed": 2, "skipped": 1, "error": 1}, done.out


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_side_by_side_it_is_the_same(tmp_path, env, words) -> None:
    tests = (
        OUTAGE
        + """
@pytest.mark.parametrize("n", range(4))
@pytest.mark.flakestorm(scenario="search-down", trials=2)
def test_more(agent_run, n):
    count()
    assert "found" in agent_run("x").output
"""
    )
    done = run_tests(project(tmp_path, tests), *words, env=env)
    assert (done.code, done.counts) == (1, {"failed": 4, "passed": 1}), done.out
    assert ran_at(tmp_path) == 5 + 4 * 2
    assert done.out.count("fired  tool/search#1 error: 503 Service Unavailable") == 4


def test_async_tests_await_it(tmp_path, env) -> None:
    tests = """
import asyncio, pytest
@pytest.mark.flakestorm(scenario="search-down", trials=2)
async def test_it(agent_run):
    one, two = await asyncio.gather(agent_run("a"), agent_run("b"))
    assert (one.input, two.input, one.output) == ("a", "b", "unavailable")
async def test_forgot(agent_run):
    with pytest.raises(AttributeError, match="await"):
        agent_run("a").output
def test_trio(agent_run):
    import trio
    async def two():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "a")
            nursery.start_soon(one, "b")
    async def one(text):
        assert (await agent_run(text)).input == text
    trio.run(two)
@pytest.mark.flakestorm(scenario="search-down")
async def test_never_awaited(agent_run):
    agent_run("a")
"""
    done = run_tests(project(tmp_path, tests, agent="agent:later"), env=env)
    assert (done.code, done.counts) == (1, {"passed": 3, "failed": 1}), done.out
    assert (
        "test_never_awaited - inconclusive: no planned fault fired, for the test got no answer of the agent" in done.out
    )


def test_record_once_replay_after_without_a_network(tmp_path, up, env) -> None:
    tests = """
import os, httpx, pytest
URL = os.environ["SEARCH_URL"]
def test_own_calls(tape):
    assert httpx.get(URL + "?to=" + os.environ.get("TO", "Oslo")).json() == {"flights": 3}
    assert len(tape.calls("search")) == 1
async def test_async(tape):
    async with httpx.AsyncClient() as client:
        assert (await client.get(URL)).status_code == 200
@pytest.mark.flakestorm(faults=["tool/search=error:503,probability=0.5"], trials=6)
def test_faults_over_a_tape(agent_run, tape):
    run = agent_run("a")
    assert ("unavailable" in run.output) == bool(run.fired)
"""
    project(tmp_path, tests)
    done = run_tests(tmp_path, env=env)
    assert done.counts == {"failed": 3}, done.out
    assert "record it: pytest --flakestorm-record 'test_travel.py::test_own_calls'" in done.out
    assert up.count("/search") == 0

    done = run_tests(tmp_path, "--flakestorm-record", "--flakestorm-seed", "1", env=env)
    assert done.counts == {"passed": 3}, done.out
    recorded = up.count("/search")
    assert 2 < recorded < 8
    for words in ((), ("-n", "2")):
        done = run_tests(tmp_path, *words, env=env)
        assert done.counts == {"passed": 3}, done.out
    assert up.count("/search") == recorded

    done = run_tests(tmp_path, "-k", "own", env={**env, "TO": "Rome"})
    assert done.counts == {"failed": 1}, done.out
    assert "the test did otherwise than its tape" in done.out
    assert "tool/search#1 diverged from the tape" in done.out
    tape = tmp_path / "tapes" / "test_travel" / "test_own_calls.tape"
    tape.write_bytes(tape.read_bytes()[:-40])
    done = run_tests(tmp_path, "-k", "own", env=env)
    assert "record it again" in done.out
    assert up.count("/search") == recorded


def test_what_a_class_breaks_is_not_lost_where_a_test_says_more(tmp_path, env) -> None:
    tests = """
import pytest
pytestmark = pytest.mark.flakestorm(seed=5)
@pytest.mark.flakestorm(faults=["tool/search=error:503"], trials=9)
class TestDown:
    @pytest.mark.flakestorm(trials=2)
    def test_more(self, agent_run):
        run = agent_run("a")
        assert ([fired.mode for fired in run.fired], run.seed) == (["error"], 5)
    @pytest.mark.flakestorm(faults=[], trials=1)
    def test_calm(self, agent_run):
        assert not agent_run("a").fired
"""
    done = run_tests(project(tmp_path, tests), "--junitxml=report.xml", env=env)
    assert (done.code, done.counts) == (0, {"passed": 2}), done.out
    assert '"flakestorm.trials" value="2"' in (tmp_path / "report.xml").read_text()


def test_no_two_tests_share_a_tape(tmp_path, up, env) -> None:
    tests = """
import os, httpx, pytest
class TestOne:
    def test_it(self, tape): httpx.get(os.environ["SEARCH_URL"], params={"to": "Oslo"})
class TestTwo:
    def test_it(self, tape): httpx.get(os.environ["SEARCH_URL"], params={"to": "Rome"})
@pytest.mark.parametrize("to", ["a b", "a/b", "a:b"])
def test_each(tape, to): httpx.get(os.environ["SEARCH_URL"], params={"to": to})
"""
    assert run_tests(project(tmp_path, tests), "--flakestorm-record", env=env).counts == {"passed": 5}
    assert up.count("/search") == 5
    played = run_tests(tmp_path, env=env)
    assert played.counts == {"passed": 5}, played.out
    assert up.count("/search") == 5


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("profle='api_outage'", "no setting 'profle'; did you mean 'profile'?"),
        ("profile='api_outag'", "there is no profile 'api_outag'; did you mean 'api_outage'?"),
        ("scenario='x'", "the config has no scenario 'x'; it has: search-down"),
        ("trials=0", "trials=0"),
        ("min_pass_rate=2", "min_pass_rate=2"),
        ("faults='tool/x=error'", "faults in @pytest.mark.flakestorm is a list"),
        ("faults=['tool/x=eror']", "did you mean 'error'"),
        ("tool_faults=[{'mod': 'error'}]", "mod"),
        ("config='other.yaml'", "other.yaml"),
        ("'api_outage'", "by name only"),
        ("faults=3", "faults=3 in @pytest.mark.flakestorm is no list"),
        ("faults=[3]", "3 among faults in @pytest.mark.flakestorm is not a fault in one line of text"),
        ("tool_faults=['search']", "'search' among tool_faults in @pytest.mark.flakestorm is not a mapping"),
        ("profile=3", "profile=3 in @pytest.mark.flakestorm is no name or path"),
        ("config=3", "config=3 in @pytest.mark.flakestorm is no name or path"),
        ("seed='3'", "seed='3' in @pytest.mark.flakestorm is no whole number"),
    ],
)
def test_a_wrong_marker_says_what_is_right(tmp_path, marker, said) -> None:
    tests = f"import pytest\n@pytest.mark.flakestorm({marker})\ndef test_it(agent_run): agent_run('x')\n"
    done = run_tests(project(tmp_path, tests))
    assert done.code == 1
    assert done.counts == {"error": 1}, done.out
    assert said in done.out
    assert "During handling" not in done.out


def test_a_profile_of_ones_own_is_found_from_any_folder(tmp_path, env) -> None:
    tests = """
import pytest
@pytest.mark.flakestorm(profile="bad_day.yaml")
def test_it(agent_run):
    assert agent_run("a").output == "the search is unavailable, sorry"
def test_what_is_no_text(agent_run):
    with pytest.raises(pytest.fail.Exception, match="takes the text that the agent is given, not 3"):
        agent_run(3)
"""
    project(tmp_path, tests)
    (tmp_path / "bad_day.yaml").write_text("tool_faults: [{tool: search, mode: error}]\n")
    (tmp_path / "elsewhere").mkdir()
    done = run_tests(tmp_path / "elsewhere", "../test_travel.py", env=env)
    assert (done.code, done.counts) == (0, {"passed": 2}), done.out


def test_without_a_config_it_says_where_it_looked(tmp_path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(agent_run): pass\n")
    done = run_tests(tmp_path)
    assert done.counts == {"error": 1}
    assert f"there is no config at {tmp_path / 'flakestorm.yaml'}; `flakestorm init` writes one" in done.out


def test_it_imports_next_to_nothing_until_it_is_used(tmp_path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\ndef test_it():\n"
        "    ours = {n for n in sys.modules if n.startswith('flakestorm')}\n"
        "    assert ours <= {'flakestorm', 'flakestorm.version', 'flakestorm.pytest_plugin', "
        "'flakestorm.pytest_plugin.notes'}, ours\n"
        "    assert not {'msgspec', 'aiohttp', 'orjson', 'yaml', 'click'} & set(sys.modules)\n"
    )
    done = run_tests(tmp_path)
    assert done.counts == {"passed": 1}, done.out


def test_unittest_goes_by_way_of_python(tmp_path, up, env) -> None:
    (tmp_path / "test_travel_case.py").write_text(
        "import unittest, flakestorm\n"
        "class Travel(unittest.TestCase):\n"
        "    def test_outage(self):\n"
        "        report = flakestorm.load('flakestorm.yaml').inject(0, ['tool/search#1=error:503'])\n"
        "        self.assertEqual(report.verdict, 'pass', report.headline)\n"
        "        self.assertIn('unavailable', report.runs[0].output)\n"
    )
    project(tmp_path, "")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "unittest"], cwd=tmp_path, env=clean_env(env), capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert up.count("/search") == 0


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "pytest.md").read_text()


def test_the_page_about_it_is_true(tmp_path, up, env) -> None:
    first, taped, case = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    project(tmp_path, first)
    (tmp_path / "test_taped.py").write_text(taped)
    (tmp_path / "test_case.py").write_text(case)
    done = run_tests(tmp_path, "--flakestorm-record", "--flakestorm-seed", "5", env=env)
    assert (done.code, done.counts) == (0, {"passed": 5}), done.out
    before = up.count("/search")
    done = run_tests(tmp_path, "test_taped.py", env=env)
    assert (done.code, up.count("/search")) == (0, before), done.out
    assert (tmp_path / "tapes" / "test_taped" / "test_finds_flights.tape").is_file()


def test_ctrl_c_leaves_no_agent_behind(tmp_path) -> None:
    script = "import http.server, sys, time\nclass H(http.server.BaseHTTPRequestHandler):\n"
    script += "    def do_GET(self):\n        self.send_response(200)\n        self.end_headers()\n"
    script += "    def do_POST(self):\n        open('asked', 'w').close()\n        time.sleep(60)\n"
    script += "http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n"
    (tmp_path / "hanging.py").write_text(script)
    start = [sys.executable, "hanging.py", "{port}"]
    url = "http://127.0.0.1:{port}/"
    write_config(tmp_path, agent={"endpoint": url, "start": start, "ready": url})
    (tmp_path / "test_it.py").write_text("def test_it(agent_run):\n    agent_run('x')\n")
    pytest_ = subprocess.Popen(
        [sys.executable, "-m", "pytest", *BY_HAND, "-q"], cwd=tmp_path, env=clean_env(), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_until((tmp_path / "asked").exists)
        pytest_.send_signal(signal.SIGINT)
        out, _ = pytest_.communicate(timeout=60)
    finally:
        pytest_.kill()
    assert pytest_.returncode == 2, out
    assert "KeyboardInterrupt" in out
    marks = [entry / "cwd" for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert not [mark for mark in marks if _is(mark, tmp_path)]


def _is(link: Path, folder: Path) -> bool:
    try:
        return link.readlink() == folder
    except OSError:
        return False
