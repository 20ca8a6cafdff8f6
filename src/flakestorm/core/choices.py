"""Every random choice flakestorm makes, through one door.

A draw is a pure function of the seed and of *what it is for*: `Choices(42).uniform("fault", "tool/search#2")` is the
same number under any concurrency, in any order, on any platform and Python version. That is what makes "the same seed
gives the same faults" true, and it is why nothing else in the code base may import `random`, `uuid` or `secrets`.

The numbers come from BLAKE2b keyed by the seed (a counter-mode construction, as in Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", SC 2011), not from Python's `hash`, which changes with PYTHONHASHSEED.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:  # most commands draw nothing by it
    import random

__all__ = ["Choices", "Draw", "entropy_seed", "entropy_token"]

T = TypeVar("T")

Draw: TypeAlias = "random.Random"
"""What `Choices.stream` gives: an endless row of draws of one's own."""


class Choices:
    """Draws keyed by (seed, purpose).

    Args:
        seed: any integer.
        scope: words that prefix the purpose of every draw, e.g. the scenario, the prompt and the trial.
    """

    __slots__ = ("_key", "scope", "seed")

    def __init__(self, seed: int, *scope: object) -> None:
        self.seed, self.scope = seed, tuple(str(word) for word in scope)
        self._key = hashlib.blake2b(str(seed).encode()).digest()  # a seed of any length makes a key of 64 bytes

    def within(self, *scope: object) -> Choices:
        """The same choices with a longer scope."""
        return Choices(self.seed, *self.scope, *scope)

    def digest(self, *purpose: object) -> bytes:
        """32 bytes that depend on the seed, the scope and the purpose only."""
        state = hashlib.blake2b(digest_size=32, key=self._key)
        for word in (*self.scope, *purpose):
            data = str(word).encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "big") + data)  # length first: ("ab","c") differs from ("a","bc")
        return state.digest()

    def uniform(self, *purpose: object) -> float:
        """A number in [0, 1) with 53 random bits."""
        return (int.from_bytes(self.digest(*purpose)[:7], "big") >> 3) / (1 << 53)

    def below(self, n: int, *purpose: object) -> int:
        """An integer in [0, n); the modulo bias is below n / 2**256.

        Raises:
            ValueError: n is not positive.
        """
        if n <= 0:
            raise ValueError(f"cannot choose below {n}")
        return int.from_bytes(self.digest(*purpose), "big") % n

    def pick(self, options: Sequence[T], *purpose: object) -> T:
        """One of the options.

        Raises:
            ValueError: there are none.
        """
        return options[self.below(len(options), *purpose)]

    def token(self, *purpose: object, length: int = 12) -> str:
        """Lower-case hexadecimal characters (at most 64), e.g. for canaries that a run can be recognised by."""
        return self.digest(*purpose).hex()[:length]

    def stream(self, *purpose: object) -> Draw:
        """A generator of its own for choices that come in unknown number (mutation operators, search)."""
        import random

        return random.Random(int.from_bytes(self.digest(*purpose), "big"))


def entropy_seed() -> int:
    """A fresh seed from the system, for runs that were given none. It is printed, so the run can be repeated."""
    return int.from_bytes(os.urandom(4), "big") >> 1


def entropy_uuid() -> str:
    """A name that nothing else has, in the form of a random UUID."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def entropy_token(length_bytes: int = 16) -> str:
    """An unguessable URL-safe token, for run tokens on the gateway."""
    import secrets

    return secrets.token_urlsafe(length_bytes)
