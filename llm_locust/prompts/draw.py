"""Random numbers that belong to a place (seed, use, index): every worker draws the same ones there.

They are bytes of SHAKE-128 (FIPS 202) over the place's name. A generator of numpy gives them quicker by the thousand,
but to make one takes 10 µs, and each draw 4 µs more: a prompt of some words needs neither.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import shake_128
from struct import unpack

from numpy.random import PCG64, Generator


class Use(StrEnum):
    """What is drawn; two uses never share numbers."""

    INPUT_TOKENS = "input"
    OUTPUT_TOKENS = "output"
    GROUP = "group"
    TEXT = "text"
    SHARED_TEXT = "shared text"
    PHRASES = "phrases"
    TRACE_TEXT = "trace text"
    IDS = "ids"
    SHARED_IDS = "shared ids"


def octets(seed: int, use: Use, index: int, count: int) -> bytes:
    """Return `count` random bytes: those of a smaller count are their beginning."""
    return shake_128(f"{seed}/{use}/{index}".encode()).digest(count)


def fraction(seed: int, use: Use, index: int) -> float:
    """Return a number between 0 and 1, neither of them: the middle of one of 2⁵² equal parts."""
    return ((int.from_bytes(octets(seed, use, index, 8), "little") >> 12) + 0.5) / (1 << 52)


def whole(seed: int, use: Use, index: int, below: int) -> int:
    """Return a whole number from 0 on."""
    return int(fraction(seed, use, index) * below)


def generator(seed: int, use: Use, index: int) -> Generator:
    """Return a generator for thousands of numbers."""
    return Generator(PCG64(int.from_bytes(octets(seed, use, index, 16), "little")))


def wholes(octets: bytes, below: int) -> list[int]:
    """Make whole numbers from 0 on, one of each four bytes; none is favoured by more than `below` in 2³²."""
    return [number % below for number in unpack(f"<{len(octets) // 4}I", octets)]
