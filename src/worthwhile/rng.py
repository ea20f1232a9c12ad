"""Random draws of policies: each is a function of (seed key, task, number of the draw), nothing is stored.

Any process can therefore repeat any decision. The generator is Philox2x32-10 (Salmon et al., 2011) in masked 32-bit
arithmetic: plain Python integers and wrapping 64-bit machine words give the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

MASK = 0xFFFFFFFF
MULTIPLIER = 0xD256D193
WEYL = 0x9E3779B9
DRAWS_PER_TASK = 1 << 16
LEARNING_DRAW = DRAWS_PER_TASK - 1  # `choose` counts up from 0, `learn` and `observe` down from here
DRAWS_PER_GAMMA = 16  # room for eight trials; one fails with chance below 5 %
UNIT_32 = 2.0**-32
UNIT_53 = 2.0**-53


class Rng(NamedTuple):
    """Whose draws: the run's or scheduler's seed key (32 bits) and the task's number (48 bits)."""

    seed_key: int
    task: int


def bits(rng: Rng, draw: int) -> tuple[int, int]:
    """Two random 32-bit words."""
    task = int(rng.task)  # NumPy's integers would overflow in the product
    left = task & MASK
    right = ((task >> 32) * DRAWS_PER_TASK + int(draw)) & MASK
    key = int(rng.seed_key) & MASK
    for _ in range(10):
        product = MULTIPLIER * left
        left, right = ((product >> 32) & MASK) ^ key ^ right, product & MASK
        key = (key + WEYL) & MASK
    return left, right


def uniform(rng: Rng, draw: int) -> float:
    """A number in [0, 1) with 53 random bits."""
    high, low = bits(rng, draw)
    return ((high >> 5) * 67108864.0 + (low >> 6)) * UNIT_53


def normals(rng: Rng, draw: int) -> tuple[float, float]:
    """Two independent standard normal numbers (Box and Muller)."""
    first, second = bits(rng, draw)
    radius = math.sqrt(-2.0 * math.log((first + 0.5) * UNIT_32))
    angle = 2.0 * math.pi * (second + 0.5) * UNIT_32
    return radius * math.cos(angle), radius * math.sin(angle)


def gamma(rng: Rng, draw: int, shape: float) -> float:
    """A Gamma(shape ≥ 1) number (Marsaglia and Tsang, 2000)."""
    third = shape - 1.0 / 3.0
    scale = 1.0 / math.sqrt(9.0 * third)
    for trial in range(DRAWS_PER_GAMMA // 2):
        normal, _ = normals(rng, draw + 2 * trial)
        root = 1.0 + scale * normal
        if root > 0.0:
            cube, square = root * root * root, normal * normal
            level = 1.0 - uniform(rng, draw + 2 * trial + 1)
            if level < 1.0 - 0.0331 * square * square:  # their squeeze: spares most of the logarithms
                return third * cube
            if math.log(level) < 0.5 * square + third * (1.0 - cube + math.log(cube)):
                return third * cube
    return shape


def beta(rng: Rng, draw: int, ones: float, zeros: float) -> float:
    """A Beta(ones, zeros) number, both at least 1."""
    for_ones = gamma(rng, draw, ones)
    for_zeros = gamma(rng, draw + DRAWS_PER_GAMMA, zeros)
    return for_ones / (for_ones + for_zeros)
