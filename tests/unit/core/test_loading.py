"""Importing from the config's folder, and leaving no trace of it."""

import sys
from pathlib import Path

import pytest

from flakestorm.core.loading import demand_module, importing_from, last_frames, load_object, source_folder
from flakestorm.errors import AgentUnreachable, ConfigError


def write(folder: Path, name: str, code: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    return folder


def load(folder: Path, name: str) -> object:
    return load_object(name, folder=folder, key="agent.endpoint")


def test_the_next_agent_of_that_name_is_another(tmp_path: Path) -> None:
    first = write(tmp_path / "a", "same_name", "from same_helper import x")
    write(first, "same_helper", "x = 'a'")
    second = write(tmp_path / "b", "same_name", "x = 'b'")
    before = (list(sys.path), set(sys.modules))
    with importing_from(first):
        assert load(first, "same_name:x") == "a"
    assert (sys.path, set(sys.modules)) == before
    with importing_from(second):
        assert load(second, "same_name:x") == "b"


def test_two_of_one_name_at_a_time_are_refused_rather_than_mixed_up(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, "same_name", f"x = '{name}'") for name in "ab")
    with importing_from(first), importing_from(second):
        assert load(second, "same_name:x") == "b"
        with pytest.raises(AgentUnreachable, match="already loaded under that name"):
            load(first, "same_name:x")


def test_installed_libraries_stay_loaded(tmp_path: Path) -> None:
    library = tmp_path / ".venv" / "lib" / "site-packages"
    library.mkdir(parents=True)
    write(library, "some_installed_library", "x = 1")
    write(tmp_path, "uses_library", f"import sys\nsys.path.append({str(library)!r})\nimport some_installed_library")
    try:
        with importing_from(tmp_path):
            load(tmp_path, "uses_library:sys")
        assert "uses_library" not in sys.modules
        assert "some_installed_library" in sys.modules
    finally:
        sys.path.remove(str(library))
        sys.modules.pop("some_installed_library", None)


def test_attribute_paths(tmp_path: Path) -> None:
    write(tmp_path / "pack_age", "inner", "class A:\n  b = {'c': 1}")
    write(tmp_path / "pack_age", "__init__", "")
    with importing_from(tmp_path):
        assert load(tmp_path, "pack_age.inner:A.b") == {"c": 1}
        with pytest.raises(ConfigError, match=r"no 'x' in pack_age\.inner\.A"):
            load(tmp_path, "pack_age.inner:A.x")
        with pytest.raises(ConfigError, match=r"'pack_age\.iner' cannot .*; did you mean 'pack_age\.inner'\?"):
            load(tmp_path, "pack_age.iner:A")


def test_a_module_that_is_there_and_fails_is_not_the_configs_fault(tmp_path: Path) -> None:
    write(tmp_path, "fails_itself", "import fails_itself_too")
    with importing_from(tmp_path), pytest.raises(AgentUnreachable, match="No module named 'fails_itself_too'"):
        load(tmp_path, "fails_itself:x")


def test_whether_a_module_is_there_is_told_without_running_it(tmp_path: Path) -> None:
    write(tmp_path, "never_run", "raise SystemExit('was run')")
    with importing_from(tmp_path):
        demand_module("never_run:anything", folder=tmp_path, key="agent.endpoint")
        demand_module("json.tool:main", folder=tmp_path, key="agent.endpoint")
        demand_module("__main__:x", folder=tmp_path, key="agent.endpoint")
        with pytest.raises(ConfigError, match=r"^agent\.endpoint: nevr_run:x: .*did you mean 'never_run'\?"):
            demand_module("nevr_run:x", folder=tmp_path, key="agent.endpoint")


@pytest.mark.parametrize("name", ["agent", "agent:", ":run", "agent:run()", "../agent:run", "a b:c", "agent:run:x"])
def test_other_forms_are_mistakes(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"^agent\.endpoint: .*module:function"):
        load(tmp_path, name)


def test_the_last_frames_are_the_agents_own(tmp_path: Path) -> None:
    write(tmp_path, "deep_agent", "def f(n):\n    return 1 / n if n == 0 else f(n - 1)\n")
    with importing_from(tmp_path):
        function = load(tmp_path, "deep_agent:f")
        assert callable(function)
        with pytest.raises(ZeroDivisionError) as caught:
            function(10)
        said = last_frames(caught.value)
    assert said.startswith("ZeroDivisionError: division by zero\n")
    assert said.count("deep_agent.py:2 in f: return 1 / n") == 3


def test_a_project_in_src_layout_finds_its_own_package_before_an_installed_one(tmp_path: Path) -> None:
    package = tmp_path / "project" / "src"
    package.mkdir(parents=True)
    write(package / "same_name", "__init__", "")
    write(package / "same_name", "tools", "x = 'the project'")
    write(package / "same_name", "agent", "from same_name.tools import x")
    installed = tmp_path / "installed"
    installed.mkdir()
    write(installed / "same_name", "__init__", "")
    sys.path.insert(0, str(installed))
    before = list(sys.path)
    try:
        with importing_from(package.parent), pytest.raises(ConfigError, match=r"same_name\.agent"):
            load(package.parent, "same_name.agent:x")  # without a project file, a folder `src` means nothing
        for name in [name for name in sys.modules if name.startswith("same_name")]:
            del sys.modules[name]
        (package.parent / "pyproject.toml").write_text("")
        with importing_from(package.parent):
            assert load(package.parent, "same_name.agent:x") == "the project"
            with pytest.raises(ConfigError, match=r"or its src .*did you mean 'same_name\.agent'"):
                load(package.parent, "same_name.agnet:x")
        assert sys.path == before
        assert not any(name.startswith("same_name") for name in sys.modules)
    finally:
        sys.path.remove(str(installed))


def test_a_src_that_is_a_package_itself_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    assert source_folder(tmp_path) == ()
    write(tmp_path / "src", "__init__", "")
    assert source_folder(tmp_path) == ()
    (tmp_path / "src" / "__init__.py").unlink()
    assert source_folder(tmp_path) == (str(tmp_path / "src"),)
