"""What `pip install flakestorm` brings: the built wheel, installed away from this tree, does what the tree does.

The wheel goes into a virtual environment of its own. Its dependencies are looked up where the tests' own are, so that
nothing is downloaded but the build back end.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from e2e_support import clean_env
from examples_support import copied
from importers_support import cassette, write_yaml
from plugin_support import project, run_tests

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


def call(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in clean_env().items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, cwd=folder)
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("the build back end, hatchling, cannot be fetched here")
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, symlinks=os.name != "nt")
    place = {"base": str(folder), "platbase": str(folder)}
    commands, packages = (Path(sysconfig.get_path(name, "venv", place)) for name in ("scripts", "purelib"))
    pip = (sys.executable, "-m", "pip", "--python", commands / "python")
    done = call(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    # The folder is searched; the .pth files in it, by which an editable install is found, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return commands


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        about = [name.partition(".dist-info/")[2] for name in archive.namelist() if ".dist-info/" in name]
        about_text = "".join(archive.read(n).decode() for n in archive.namelist() if n.endswith((".txt", "METADATA")))
    here = [p for p in (SOURCE / "flakestorm").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert sorted(names) == sorted(path.relative_to(SOURCE).as_posix() for path in here)
    assert not [name for name in names if name.startswith(("tests", "bench", "scripts"))]
    assert {"flakestorm/py.typed", "flakestorm/boundary/shim/sitecustomize.py"} <= set(names)
    assert "licenses/LICENSE" in about
    assert "flakestorm = flakestorm.cli.main:main" in about_text
    assert "Provides-Extra: demo" in about_text


def test_the_installed_package_is_the_wheel(scripts: Path, tmp_path: Path) -> None:
    done = call(scripts / "python", "-c", "import flakestorm; print(flakestorm.__file__)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(scripts.parent)


def test_help_profiles_and_a_starter_config(scripts: Path, tmp_path: Path) -> None:
    for words, expected in (("--help", "demo"), ("profiles", "api_outage"), ("init", "flakestorm.yaml")):
        done = call(scripts / "flakestorm", words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout + done.stderr
    assert (tmp_path / "flakestorm.yaml").is_file()


def test_a_cassette_is_imported(scripts: Path, tmp_path: Path) -> None:
    write_yaml(tmp_path / "booking.yaml", cassette())
    done = call(scripts / "flakestorm", "tapes", "import", "booking.yaml", "-o", "tapes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{Path('tapes/booking.tape')}: 1 exchange (1 llm)\n"), done.stderr
    shown = call(scripts / "flakestorm", "tapes", "show", "tapes/booking.tape", "--format", "json", cwd=tmp_path)
    assert json.loads(shown.stdout)["exchanges"][0]["reply"]["text"] == "Høyt ☃"


def test_the_demo_runs_and_writes_its_report(scripts: Path, tmp_path: Path) -> None:
    done = call(scripts / "flakestorm", "demo", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "reports").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["verdict"] == "fail"
    assert {cell["verdict"] for cell in report["cells"]} == {"pass", "fail", "inconclusive"}
    assert "<!doctype html>" in (folder / "report.html").read_text().lower()
    listed = call(scripts / "flakestorm", "tapes", "--format", "json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert len(json.loads(listed.stdout)["tapes"]) == len(report["runs"])


def test_pytest_finds_the_plug_in(scripts: Path, tmp_path: Path) -> None:
    test = """
import pytest
@pytest.mark.flakestorm(faults=["tool/search=error:503"], trials=2)
def test_it(agent_run):
    run = agent_run("a flight")
    assert "unavailable" in run.output
    assert len(run.tape.calls(tool="search")) == 1
"""
    project(tmp_path, test)
    env = {"SEARCH_URL": "http://127.0.0.1:9/search"}
    done = run_tests(tmp_path, env={**env, "PYTHONPATH": ""}, python=(scripts / "python", "-m", "pytest"))
    assert (done.code, done.counts) == (0, {"passed": 1}), done.out


def test_the_example_project_is_tested_with_the_plug_in(scripts: Path, tmp_path: Path) -> None:
    """What its README shows: tapes are played and faults hit them, an agent that got worse fails, tapes are made."""
    root = copied(tmp_path)
    folder = root / "examples" / "pytest"
    readme = (folder / "README.md").read_text()
    run, patch, again, change, record = re.findall(r"^\$ (.*?)(?: +#.*)?$", readme, re.MULTILINE)
    assert (run, again, change) == ("pytest examples/pytest", run, "cd examples/pytest")
    env = {"PYTHONPATH": "", "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    tests = (scripts / "python", "-m", *run.split())

    done = run_tests(root, "-W", "ignore", env=env, python=tests)
    assert (done.code, done.counts) == (0, {"passed": 4}), done.out

    subprocess.run(patch.split(), cwd=root, check=True)
    done = run_tests(root, "-W", "ignore", env=env, python=tests)
    assert (done.code, done.counts) == (1, {"failed": 2, "passed": 2}), done.out
    told = re.findall(r"^(?:fired|again) .*", readme, re.MULTILINE)
    assert len(told) == 2
    assert [line for line in told if line not in done.out] == []

    subprocess.run([*patch.split(), "-R"], cwd=root, check=True)
    kept = {tape.name for tape in (folder / "tapes" / "test_agent").iterdir()}
    shutil.rmtree(folder / "tapes")
    done = run_tests(folder, "-W", "ignore", env=env, python=(scripts / "python", *record.split()[1:]))
    assert (done.code, done.counts) == (0, {"passed": 4}), done.out
    assert {tape.name for tape in (folder / "tapes" / "test_agent").iterdir()} == kept
