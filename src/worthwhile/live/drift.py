"""Has something changed? For every kind and option, the split of its results whose two sides differ most.

Results are kept in blocks, as many as memory should hold, each twice as long when there are too many. For a split into
n₁ and n₂ results with means m₁, m₂ and the variance s² within both sides, (m₁ − m₂)/(s·√(1/n₁ + 1/n₂)) is what a change
is judged by, at the best split of all (Page, 1955; Hinkley, 1970). The limit allows for looking at all of them, for
rewards and for costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_BLOCKS = 64  # of an option with a kind
FEWEST = 8  # results on either side
SURPRISING = 5.0  # standard errors, and what Student's t adds for few results
SHORTEST = 100  # reports: a shorter half-life forgets more than it learns
SAME_TIME = 0.1  # of the log: changes this close are one
NOT_ROUNDING = 1e-9  # of the mean

Arm = tuple[int, int]


@dataclass(slots=True)
class Block:
    """Some results, one after the other."""

    first: int  # reports of the scheduler before it
    results: int
    reward: float
    cost: float
    reward_squares: float
    cost_squares: float

    def take(self, other: Block) -> None:
        """The results that come next, too."""
        self.results += other.results
        self.reward += other.reward
        self.cost += other.cost
        self.reward_squares += other.reward_squares
        self.cost_squares += other.cost_squares


class Change(NamedTuple):
    """What of an option has changed, since about which report, and from what to what."""

    kind: int
    option: int
    what: str  # reward or cost
    since: int
    before: float
    after: float


class Drift:
    """The results of every option, in blocks."""

    def __init__(self) -> None:
        self.blocks: dict[Arm, list[Block]] = {}
        self.sizes: dict[Arm, int] = {}
        self.found: dict[Arm, list[Change]] = {}
        self.unseen: set[Arm] = set()  # that have new results since changes were looked for

    def add(self, arm: Arm, reward: float, cost: float, reports: int) -> None:
        """A result, after so many reports of the scheduler."""
        blocks, new = self.blocks.setdefault(arm, []), Block(reports, 1, reward, cost, reward * reward, cost * cost)
        self.unseen.add(arm)
        if blocks and blocks[-1].results < self.sizes.setdefault(arm, 1):
            blocks[-1].take(new)
        else:
            blocks.append(new)
            if len(blocks) > MOST_BLOCKS:
                self.merge(arm)

    def merge(self, arm: Arm) -> None:
        """Half as many blocks, each twice as long; the last may be shorter."""
        blocks, self.sizes[arm] = self.blocks[arm], 2 * self.sizes.get(arm, 1)
        for first, second in zip(blocks[::2], blocks[1::2], strict=False):
            first.take(second)
        self.blocks[arm] = blocks[::2]

    def changes(self) -> list[Change]:
        """All that have changed, by kind and option."""
        for arm in self.unseen:
            splits = [(what, best_split(self.blocks[arm], what)) for what in ("reward", "cost")]
            self.found[arm] = [Change._make((*arm, what, *split)) for what, split in splits if split is not None]
        self.unseen.clear()
        return [change for arm in sorted(self.found) for change in self.found[arm]]


def best_split(blocks: Sequence[Block], what: str) -> tuple[int, float, float] | None:
    """Since when, before and after, if the two sides differ by more than chance."""
    sums, counts = [getattr(block, what) for block in blocks], [block.results for block in blocks]
    count, total = sum(counts), sum(sums)
    if count < 2 * FEWEST:
        return None
    centre = total / count
    around = sum(getattr(block, f"{what}_squares") for block in blocks) - count * centre * centre
    best, found, earlier, before = 0.0, None, 0, 0.0
    for place in range(len(blocks) - 1):
        earlier, before = earlier + counts[place], before + sums[place]
        later = count - earlier
        if min(earlier, later) >= FEWEST:
            old, new = before / earlier, (total - before) / later
            between = (old - new) ** 2 * earlier * later / count
            within = max(around - between, (NOT_ROUNDING * centre) ** 2 * count)
            score = between / (within / (count - 2)) if within > 0.0 else 0.0
            if score > best:
                best, found = score, (blocks[place + 1].first, old, new)
    return found if best > surprising(count - 2) ** 2 else None


def surprising(freedom: int) -> float:
    """Student's t as unlikely as so many standard errors of a normal one, roughly."""
    return SURPRISING * (1.0 + SURPRISING**2 / (4.0 * freedom)) if freedom > 0 else math.inf


def half_life(changes: Sequence[Change], reports: int) -> int:
    """How many reports things stay as they are, on average: by the log so far, to two digits."""
    times: list[int] = []
    for since in sorted({change.since for change in changes}):
        if not times or since - times[-1] > SAME_TIME * reports:
            times.append(since)
    average = max(reports / (len(times) + 1.0), SHORTEST)
    digits = 10 ** max(int(math.log10(average)) - 1, 0)
    return int(round(average / digits) * digits)
