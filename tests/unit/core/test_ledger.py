from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.site import Site


def test_the_ledger_answers_by_site_and_by_family() -> None:
    search, model = Site("tool", "search", 1), Site("llm", "gpt-4o", 1)
    ledger = Ledger(planned=2)
    ledger.fired.append(Firing(search, "error", "tool", "503"))
    assert [f.mode for f in ledger.at(search)] == ["error"]
    assert ledger.at(model) == ()
    assert ledger.fired_in("tool", "mcp")
    assert not ledger.fired_in("llm")


def test_what_took_effect_by_way_of_a_call_is_found_at_both() -> None:
    result, model = Site("tool", "search", 1), Site("llm", "gpt-4o", 2)
    ledger = Ledger(fired=[Firing(result, "error", "tool", "503", via=model)])
    assert ledger.at(result) == ledger.at(model) == tuple(ledger.fired)
    assert ledger.at(None) == ledger.at(Site("llm", "gpt-4o", 1)) == ()
