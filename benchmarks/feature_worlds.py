"""Worlds whose tasks have features: made ones, and solver portfolios from tables that are not in this repository."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worlds import SILENT
from worthwhile import Environment, Problem, replay, solve
from worthwhile.policies.features import MISSING
from worthwhile.simulation.environments.base import Drift
from worthwhile.simulation.environments.item_features import MOST_FEATURES
from worthwhile.simulation.environments.replay import ReplayWorld
from worthwhile.state import Floats, Indices

ITEMS, FEATURES = 20_000, 10  # of a made world
COST_SPREAD = 0.3  # of the logarithm
SPREAD = 0.3  # of real-valued rewards
NOISE = 50  # features that say nothing
RARE = 0.05  # share of the tasks
MERGED = ("ASP-POTASSCO", "CPMP-2015", "MAXSAT12-PMS")  # scenarios that earn about the same per cost


class CellWorld(NamedTuple):
    """Items that lie in cells of the space of features; in each cell every option has another mean."""

    known: Floats  # (items, features)
    cell: npt.NDArray[np.int64]  # (items,)
    reward: Floats  # (cells, options): means
    cost: Floats
    real_valued: bool  # rewards have Gaussian noise; else they are 0 or 1

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        luck = generator.random((count, 2)), generator.standard_normal((count, 2))
        return np.zeros(count, np.uint32), np.concatenate(luck, axis=1)

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        cell = self.cell[int(latent[0] * len(self.cell))]
        mean, cost = self.reward[cell, option], self.cost[cell, option]
        reward = mean + SPREAD * latent[2] if self.real_valued else (1.0 if latent[1] < mean else 0.0)
        return reward, cost * math.exp(COST_SPREAD * (latent[3] - 0.5 * COST_SPREAD))

    def features(self, kind: int, latent: Floats) -> Floats:
        return self.known[int(latent[0] * len(self.cell))]


class Made(NamedTuple):
    """A made environment, and how much better than the best fixed option one can be who knows the cells."""

    environment: Environment | Drift
    possible: float


Cells = Callable[[Floats], npt.NDArray[np.bool_]]  # of (items, features), uniform from 0 to 1


def made(name: str, cells: Cells, reward: Sequence[Sequence[float]], real_valued: bool = False) -> Made:
    """A world of two cells, with a row of mean rewards for each; every option costs 1."""
    known = np.random.default_rng(0).random((ITEMS, FEATURES))
    cell, means = cells(known).astype(np.int64), np.array(reward)
    share = np.bincount(cell, minlength=len(means)) / len(cell)
    cost, options = np.ones_like(means), tuple("abcdefgh"[: means.shape[1]])
    one_kind = Problem(name, ("task",), options, np.ones(1), share[None] @ means, share[None] @ cost, SILENT, SILENT)
    names = tuple(map(str, range(len(means))))
    a_kind_each = Problem(name, names, options, share, means, cost, SILENT, SILENT)
    world = CellWorld(known, cell, means, cost, real_valued)
    return Made(Environment(one_kind, world), solve(a_kind_each).ratio / solve(one_kind).ratio)


APART = ((0.75, 0.45, 0.5, 0.3), (0.45, 0.75, 0.5, 0.3))  # the first two options are each best in one cell


def one_split(real_valued: bool = False) -> Made:
    return made("one split", lambda known: known[:, 0] > 0.5, APART, real_valued)


def exclusive_or() -> Made:
    """Neither of the two features says anything by itself."""
    return made("exclusive or", lambda known: (known[:, 0] > 0.5) != (known[:, 1] > 0.5), APART)


def rare_cell() -> Made:
    means = (0.6, 0.3, 0.5, 0.3), (0.1, 0.95, 0.1, 0.3)
    return made("rare cell", lambda known: known[:, 0] > 1.0 - RARE, means)


def useless() -> Made:
    return made("useless features", lambda known: known[:, 0] > 0.5, (APART[0], APART[0]))


def swapped(tasks: int) -> Made:
    """One split, in which the first two options take each other's place half-way."""
    begin = one_split()
    end = made("one split, swapped", lambda known: known[:, 0] > 0.5, APART[::-1])
    assert isinstance(begin.environment, Environment)
    assert isinstance(end.environment, Environment)
    return Made(Drift([(0, begin.environment), (tasks // 2, end.environment)]), begin.possible)


def scenarios(folder: Path) -> list[str]:
    """The tables of a folder that have a file of features."""
    return sorted(path.name.removesuffix(".features.parquet") for path in folder.glob("*.features.parquet"))


def scenario(folder: Path, name: str, one_pass: bool = False) -> Environment:
    """A solver portfolio: solved within the time limit or not, and what it took."""
    table, features = folder / f"{name}.parquet", folder / f"{name}.features.parquet"
    return replay(table, features=features, one_pass=one_pass)


def replayed(environment: Environment) -> ReplayWorld:
    assert isinstance(environment.world, ReplayWorld)
    return environment.world


def with_features(environment: Environment, known: Floats) -> Environment:
    """The same tables with other features."""
    return replace(environment, world=replayed(environment)._replace(known=np.ascontiguousarray(known)))


def without_features(environment: Environment | Drift) -> Environment | Drift:
    """The same world, whose tasks have none."""
    if isinstance(environment, Drift):
        stages = ((first, without_features(stage)) for first, stage in environment.changes)
        return Drift([(first, stage) for first, stage in stages if isinstance(stage, Environment)])
    world = environment.world
    assert isinstance(world, ReplayWorld | CellWorld)
    return replace(environment, world=world._replace(known=np.zeros((len(world.known), 0))))


def with_noise(environment: Environment, seed: int) -> Environment:
    """Some more features, which say nothing; as many as there may be."""
    known = replayed(environment).known
    more = min(NOISE, MOST_FEATURES - known.shape[1])
    return with_features(environment, np.hstack([known, np.random.default_rng(seed).normal(size=(len(known), more))]))


def with_another_tasks(environment: Environment, seed: int) -> Environment:
    """Every task with the features of another."""
    known = replayed(environment).known
    return with_features(environment, known[np.random.default_rng(seed).permutation(len(known))])


def with_real_rewards(environment: Environment, seed: int) -> Environment:
    """Rewards that are worth more or less, row by row."""
    world = replayed(environment)
    luck = np.random.default_rng(seed).normal(size=len(world.reward))
    reward = world.reward * np.exp(SPREAD * (luck - 0.5 * SPREAD))
    means = np.array([[reward[f : f + n].mean() for f, n in zip(*row, strict=True)] for row in cells_of(world)])
    return Environment(
        replace(environment.problem, reward=means), world._replace(reward=reward), environment.most_tasks
    )


def cells_of(world: ReplayWorld) -> list[tuple[list[int], list[int]]]:
    """The first row and the number of rows of every option, kind by kind."""
    return [(first.tolist(), rows.tolist()) for first, rows in zip(world.first, world.rows, strict=True)]


def merged(environments: Sequence[Environment]) -> Environment:
    """Scenarios of one kind each as so many kinds, with options and features of their own; each arrives as often."""
    worlds, problems = [replayed(each) for each in environments], [each.problem for each in environments]
    names = [problem.name for problem in problems]
    options = [f"{problem.name} {option}" for problem in problems for option in problem.options]
    reward, cost = (aside([getattr(problem, each)[0] for problem in problems]) for each in ("reward", "cost"))
    share = np.full(len(names), 1.0 / len(names))
    problem = Problem(" + ".join(names), tuple(names), tuple(options), share, reward, cost, SILENT, SILENT)
    starts = np.cumsum([0, *(len(world.reward) for world in worlds[:-1])])
    first = aside([world.first[0] + start for world, start in zip(worlds, starts, strict=True)], 0).astype(np.int64)
    rows = aside([world.rows[0] for world in worlds], 0).astype(np.int64)
    values = (np.concatenate([getattr(world, each) for world in worlds]) for each in ("reward", "cost"))
    items, shares = np.concatenate([world.items for world in worlds]), np.append(np.cumsum(share)[:-1], 1.0)
    known = np.vstack(blocks([world.known for world in worlds]))
    return Environment(
        problem, ReplayWorld(shares, first, rows, *values, items, known, np.cumsum(items) - items, False)
    )


def aside(rows: Sequence[Floats], elsewhere: float = MISSING) -> Floats:
    """A row for each, with its values in columns of its own."""
    return np.vstack(blocks([row[None] for row in rows], elsewhere))


def blocks(tables: Sequence[Floats], elsewhere: float = MISSING) -> list[Floats]:
    """The tables, each with its columns beside those of the others."""
    width, begin, wide = sum(table.shape[1] for table in tables), 0, []
    for table in tables:
        wide.append(np.full((len(table), width), elsewhere))
        wide[-1][:, begin : begin + table.shape[1]] = table
        begin += table.shape[1]
    return wide


def per_item(environment: Environment) -> float:
    """The best ratio of who knows what every item brings and costs with every option."""
    world = replayed(environment)
    options = [np.flatnonzero(row) for row in environment.problem.offered]
    kinds, ratio = range(len(options)), 0.0
    tables = [[values_of(world, kind, options[kind], each) for kind in kinds] for each in (world.reward, world.cost)]
    while True:
        picks = [np.argmax(reward - ratio * cost, axis=0) for reward, cost in zip(*tables, strict=True)]
        reward, cost = (
            sum(share * np.take_along_axis(table, pick[None], 0).mean() for share, table, pick in
                zip(environment.problem.arrival, each, picks, strict=True))
            for each in tables
        )  # fmt: skip
        if reward / cost <= ratio:
            return ratio
        ratio = float(reward / cost)


def values_of(world: ReplayWorld, kind: int, options: npt.NDArray[np.int64], values: Floats) -> Floats:
    """(options, items) of a kind."""
    rows = world.first[kind, options][:, None] + np.arange(world.items[kind])
    return values[rows]
