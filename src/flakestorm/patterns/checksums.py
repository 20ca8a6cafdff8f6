"""What the checks of matched texts share: the register of them, and the checksums that many numbers have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["VALIDATORS", "digits_of", "keccak_256", "luhn", "sponge", "validator", "weighted", "whole"]

VALIDATORS: dict[str, Callable[[str], int]] = {}
"""Each takes the matched text and returns how many of its characters are the real thing: all, fewer, or none."""


def validator(check: Callable[[str], int]) -> Callable[[str], int]:
    """Register a check by its name."""
    VALIDATORS[check.__name__] = check
    return check


def digits_of(text: str) -> list[int]:
    """The digits in a text."""
    return [int(c) for c in text if c in "0123456789"]


def whole(text: str, valid: bool) -> int:
    """All of the text if it is valid, else nothing."""
    return len(text) if valid else 0


def luhn(digits: list[int]) -> bool:
    """ISO/IEC 7812-1 annex B: every second digit from the right doubled, its digits summed, total a multiple of 10."""
    doubled = [d * 2 - 9 * (d > 4) for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    """The sum of digits, each times its weight."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


_LANES = 25  # of 64 bits
_RATE = 136  # bytes taken in between two permutations, for 256 bits
_FULL = (1 << 64) - 1


def keccak_256(data: bytes) -> bytes:
    """Keccak-256 as submitted to NIST's competition, with its own padding: not SHA3-256, which `hashlib` has.

    Args:
        data: any bytes.

    Returns:
        32 bytes. Source: Keccak reference 3.0, with the padding `10*1`.
    """
    return sponge(data, 0x01)


def sponge(data: bytes, mark: int) -> bytes:
    """Keccak[512] of 256 bits.

    Args:
        data: any bytes.
        mark: the byte behind them: 1 for Keccak as it was submitted, 6 for SHA3-256.
    """
    padded = bytearray(data) + bytearray(_RATE - len(data) % _RATE)
    padded[len(data)] |= mark
    padded[-1] |= 0x80
    state = [0] * _LANES
    for block in range(0, len(padded), _RATE):
        for lane in range(_RATE // 8):
            state[lane] ^= int.from_bytes(padded[block + 8 * lane : block + 8 * lane + 8], "little")
        state = _permuted(state)
    return b"".join(lane.to_bytes(8, "little") for lane in state[:4])


def _permuted(state: list[int]) -> list[int]:
    """Keccak-f[1600]: 24 rounds of theta, rho, pi, chi and iota."""
    feedback = 1
    for _ in range(24):
        columns = [state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20] for x in range(5)]
        state = [lane ^ columns[(i + 4) % 5] ^ _turned(columns[(i + 1) % 5], 1) for i, lane in enumerate(state)]
        x, y, lane = 1, 0, state[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            lane, state[x + 5 * y] = state[x + 5 * y], _turned(lane, (step + 1) * (step + 2) // 2 % 64)
        for row in range(0, _LANES, 5):
            one = state[row : row + 5]
            state[row : row + 5] = [one[x] ^ (~one[(x + 1) % 5] & _FULL & one[(x + 2) % 5]) for x in range(5)]
        for bit in range(7):
            state[0] ^= (feedback & 1) << (1 << bit) - 1
            feedback = feedback << 1 ^ (feedback >> 7) * 0x171
    return state


def _turned(lane: int, bits: int) -> int:
    return (lane << bits | lane >> 64 - bits) & _FULL
