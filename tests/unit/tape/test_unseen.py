from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.unseen import unseen


def exchange(method: str, url: str, status: int = 0, error: str | None = None) -> Exchange:
    return Exchange(Site("http", "h", 1), method=method, url=url, reply=Recorded(status, error=error))


def test_a_tape_of_calls_hides_nothing() -> None:
    assert unseen([exchange("POST", "https://a.test/x", 200), exchange("CONNECT", "https://a.test:443", 502)]) == ()


def test_each_host_is_said_once_with_what_to_do() -> None:
    found = unseen(
        [
            exchange("CONNECT", "https://a.test:443", 200),
            exchange("CONNECT", "https://a.test:443", 200),
            exchange("CONNECT", "tcp://db.test:5432", 200),
            exchange("TLS", "https://b.test:443", error="CallFailed: reset: the agent refused it"),
        ]
    )
    assert found == (
        "a.test:443 was called through a TLS tunnel, and looking into it needs the extra 'mitm': "
        "pip install 'flakestorm[mitm]'",
        "db.test:5432 was called through a tunnel, but in neither TLS nor HTTP, so what passed was not seen",
        "the agent refused it",
    )
