"""The generated matrix, on the demo's agent: its planted bug is found without a scenario having been written."""

import yaml

from e2e_support import flakestorm
from flakestorm.demo.run import CONFIG, serve


def test_the_planted_bug_is_found_in_generated_scenarios(tmp_path) -> None:
    config = yaml.safe_load(CONFIG.read_text())
    config["contract"].update(chaos_matrix=[], generate="toolmaze")
    config["golden_prompts"] = config["golden_prompts"][:1]
    (tmp_path / "flakestorm.yaml").write_text(yaml.safe_dump(config))
    with serve(reports=tmp_path / "reports") as env:
        checked = flakestorm(tmp_path, "contract", "validate", env=env)
        done = flakestorm(tmp_path, "contract", "run", env=env, report=True)
    assert "1 run without chaos will show which scenarios toolmaze adds" in checked.out
    assert done.report is not None
    assert done.report["runs"][0]["scenario"] == "no chaos"
    names = {scenario["name"] for scenario in done.report["scenarios"]}
    for tool in ("search_flights", "book_flight"):
        for corner in ("explicit transient", "explicit permanent", "implicit transient", "implicit permanent"):
            assert f"toolmaze: {tool} {corner}" in names
    bug = done.cell("toolmaze: book_flight explicit permanent", "no-false-booking")
    assert (bug["verdict"], bug["also_fails_without_chaos"]) == ("fail", False)
    assert done.cell("toolmaze: search_flights explicit permanent", "no-false-booking")["verdict"] == "pass"
    assert [f["site"] for f in done.run("toolmaze: search_flights explicit transient")["faults"]["fired"]] == [
        "tool/search_flights#1"
    ]
    assert done.code == 1
