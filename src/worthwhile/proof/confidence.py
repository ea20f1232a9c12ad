"""How sure an estimate is: an interval for one moment, and a sequence of intervals that holds at all moments at once.

The sequence is the Gaussian mixture of Robbins (1970) with an estimated variance, an *asymptotic confidence sequence*
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
sequences", Annals of Statistics 52, 2024). docs/proof.md derives what is used here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

ERROR = 0.05  # intervals and sequences hold with probability 1 − ERROR
FIRST = 30  # observations before which nothing is said
HANDFUL = 5  # of an option with a kind: fewer tell nothing
TIGHTEST = 300  # observations at which the sequence is narrowest beside the interval


class Interval(NamedTuple):
    """From … to …"""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float) and self.low <= value <= self.high

    @property
    def width(self) -> float:
        return self.high - self.low


class Estimate(NamedTuple):
    """A value, the interval that holds at this moment, and the one that holds whenever somebody looks."""

    value: float
    now: Interval
    always: Interval


def estimate(value: float, standard_error: float, count: float) -> Estimate:
    """An estimate that rests on so many observations."""
    now, always = student(count - 1.0) * standard_error, sequence(count) * standard_error
    return Estimate(value, around(value, now), around(value, always))


def around(value: float, half: float) -> Interval:
    return Interval(value - half, value + half)


def student(freedom: float, error: float = ERROR) -> float:
    """Student's t that is exceeded, up or down, with probability `error`.

    From the normal one by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5): four digits, from four
    degrees of freedom on.
    """
    from statistics import NormalDist  # slow, and rarely needed

    z = NormalDist().inv_cdf(1.0 - error / 2.0)
    if freedom < 1.0:
        return math.inf
    square = z * z
    terms = (
        (square + 1.0) / 4.0,
        ((5.0 * square + 16.0) * square + 3.0) / 96.0,
        (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0,
        ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0) / 92160.0,
    )
    return z + sum(z * term / freedom**power for power, term in enumerate(terms, 1))


def sequence(count: float, error: float = ERROR, tightest: float = TIGHTEST) -> float:
    """Standard errors of a mean of so many observations that it stays within, at all counts from FIRST on.

    √(2 (nρ² + 1)/(nρ²) · ln(√(nρ² + 1)/error)), where ρ makes it the narrowest at `tightest`. The standard error is not
    the true one, so that it is widened as Student's t is beside the normal distribution.
    """
    if count < 2.0:
        return math.inf
    spread = count * mixture(error) / tightest  # nρ²
    normal = math.sqrt(2.0 * (spread + 1.0) / spread * math.log(math.sqrt(spread + 1.0) / error))
    return normal * student(count - 1.0, error) / student(math.inf, error)


def mixture(error: float) -> float:
    """ρ² times the count at which the sequence is narrowest, nearly the best there is."""
    surprise = -2.0 * math.log(error)
    return surprise + math.log(surprise + 1.0)
