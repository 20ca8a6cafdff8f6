"""A wrong fallback order: when the search fails, the agent pays before it has asked the backup. Its twin asks first."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def _try(name: str) -> dict[str, object] | None:
    try:
        return tool(name, order_id="A-17")
    except TOOL_FAILURES:
        return None


def _run(*, pay_first: bool) -> str:
    found = _try("search")
    if found is not None:
        paid = _try("pay")
        return UNAVAILABLE if paid is None else "Booked."
    paid = _try("pay") if pay_first else None
    if _try("backup") is None:
        return UNAVAILABLE
    if not pay_first:
        paid = _try("pay")
    return UNAVAILABLE if paid is None else "Booked with the backup."


def bug(prompt: str) -> str:
    return _run(pay_first=True)


def twin(prompt: str) -> str:
    return _run(pay_first=False)
