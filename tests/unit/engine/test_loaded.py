from dataclasses import asdict

import msgspec

from flakestorm.engine.loaded import LatencyAt, LevelResult, Loaded, PromiseAt

LEVEL = LevelResult(
    "10 users", 10, 40, 38, 1, 1000.0, 38.0, 7.5, 30.0,
    (LatencyAt(50, 120.5, 100.0, None, 39),), (PromiseAt("completes", 38, 39, 1, 0.87, 0.99, True, True),), True,
)  # fmt: skip


def test_it_is_read_back_as_it_was_written() -> None:
    found = Loaded((LEVEL,), 10, "the knee is at 10 users")
    assert msgspec.json.decode(msgspec.json.encode(asdict(found)), type=Loaded) == found
