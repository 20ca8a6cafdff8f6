"""What the recording of a finished run tells its result. What reads recordings is imported where there is one."""

from __future__ import annotations

from flakestorm.core.site import Site, Sites
from flakestorm.tape.writer import Recorder

__all__ = ["bill", "seen", "sites_in", "unseen"]


def seen(sites: Sites, recorder: Recorder) -> tuple[str, ...]:
    """The tools and unnamed hosts that were called, then those the models spoke of."""
    from flakestorm.tape.tools import tools_named
    from flakestorm.wire.mcp.protocol import housekeeping

    called = [name for name in sites.seen("tool", "mcp", "http") if not housekeeping(name)]
    return tuple(dict.fromkeys((*called, *tools_named(recorder.exchanges))))


def sites_in(recorder: Recorder) -> tuple[Site, ...]:
    """Where faults could have acted, in order of arrival."""
    from flakestorm.tape.tools import sites_of

    return sites_of(recorder.exchanges)


def unseen(recorder: Recorder) -> tuple[str, ...]:
    """What the recording could not see, each in a sentence for the reader of the report."""
    from flakestorm.tape.unseen import unseen

    return unseen(recorder.exchanges)


def bill(recorder: Recorder) -> tuple[int | None, float | None]:
    """Tokens and US dollars of the run's model calls; unknown where nothing crossed the boundary."""
    if not recorder.exchanges:
        return None, None
    if not any(exchange.kind == "llm" and exchange.sent for exchange in recorder.exchanges):
        return 0, 0.0
    from flakestorm.tape.billing import bill  # and with it all that reads usage

    found = bill(recorder.exchanges)
    return found.tokens, found.cost
