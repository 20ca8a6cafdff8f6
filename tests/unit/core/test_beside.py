import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import flakestorm
from flakestorm.core.beside import beside

HOUSE = Path(flakestorm.__file__).parent
READING = """
import flakestorm
assert ".zip" in flakestorm.__file__, flakestorm.__file__
from flakestorm.faults.profiles import names, profile
from flakestorm.patterns.engine import rows_of
from flakestorm.reports.pages import source
from flakestorm.wire.prices import prices
print(*names())
assert [profile(name).name for name in names()] == list(names())
assert rows_of("pii.yaml") and source("report.css") and prices()
"""


def test_a_file_lies_beside_its_room() -> None:
    assert beside("wire", "prices.yaml").read_bytes() == (HOUSE / "wire" / "prices.yaml").read_bytes()
    folder = beside("faults", "profiles")
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        p.name for p in (HOUSE / "faults/profiles").iterdir()
    )


def test_reading_them_imports_nothing() -> None:
    code = "import sys\nfrom flakestorm.core.beside import beside\nbeside('wire', 'prices.yaml')\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"importlib.resources", "zipfile"} & set(done.stdout.split())


def test_the_package_may_be_imported_out_of_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "flakestorm.zip"
    with ZipFile(archive, "w") as packed:
        for file in HOUSE.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, file.relative_to(HOUSE.parent))
    done = subprocess.run(
        [sys.executable, "-c", READING],
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(p.stem for p in (HOUSE / "faults/profiles").glob("*.yaml"))
