"""What an environment is: the truth about it, and a world that turns decisions into rewards and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from worthwhile.errors import BadParameter
from worthwhile.problem import Problem
from worthwhile.state import Floats, Indices


class World(Protocol):
    """A NamedTuple of arrays and numbers with these methods; `feedback` in plain scalar Python, like a policy's.

    All randomness comes from `draw`, before anything is decided, so that all policies meet the same world. A world
    whose `feedback` writes to its arrays has a method `fresh`, which gives every policy of every run its own copy.
    A world whose tasks have features has a method `features(kind, latent)`: a row of one of its arrays, always of the
    same length, with numbers as `policies/features.py` makes them, NaN where one is missing.
    """

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        """The kinds of the next tasks (count,) and their latent draws (count, any)."""

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        """Reward and cost of one task whose latent draws are given; a reward of NaN means that it has failed."""


def fresh(world: World) -> World:
    """The world as it is before the first task: itself, unless it remembers what was done in it."""
    return world.fresh() if hasattr(world, "fresh") else world


def features_in(world: Any) -> int:
    """How many features its tasks have."""
    if not callable(getattr(world, "features", None)):
        return 0
    kinds, latent = world.draw(np.random.default_rng(0), 1)
    return len(world.features(kinds[0], latent[0]))


@dataclass(frozen=True)
class Environment:
    """A world, and its means: what regret is measured against."""

    problem: Problem
    world: World
    most_tasks: int | None = None  # of a world that ends: a run draws all of its tasks at once

    @property
    def name(self) -> str:
        return self.problem.name

    def stages(self) -> Iterator[tuple[int, Environment]]:
        """(first task, environment) of every stage; one that does not drift has one."""
        yield 0, self


@dataclass(frozen=True)
class Drift:
    """An environment that changes: each stage holds from its first task to the next stage's."""

    changes: Sequence[tuple[int, Environment]]

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.changes]
        if not starts or starts[0] != 0 or any(a >= b for a, b in pairwise(starts)):
            raise BadParameter(f"stages start at {starts}; the first must start at 0, each later than the one before")
        first = self.changes[0][1].problem
        for _, stage in self.changes:
            if stage.problem.kinds != first.kinds or stage.problem.options != first.options:
                raise BadParameter(f"stage {stage.name!r} has other kinds or options than {first.name!r}; use the same")

    @property
    def name(self) -> str:
        return self.changes[0][1].name

    @property
    def problem(self) -> Problem:
        """The problem of the first stage."""
        return self.changes[0][1].problem

    def stages(self) -> Iterator[tuple[int, Environment]]:
        yield from self.changes


def draw_kinds(shares: Floats, generator: np.random.Generator, count: int) -> Indices:
    """Kinds of the next tasks; shares are cumulative and end at 1."""
    return np.searchsorted(shares, generator.random(count), side="right").astype(np.uint32)


def cumulative(arrival: Floats) -> Floats:
    """Cumulative shares, exactly 1 from the last kind that arrives on."""
    shares = np.cumsum(arrival)
    shares[np.flatnonzero(arrival)[-1] :] = 1.0
    return shares
