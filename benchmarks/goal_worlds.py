"""Goals to pursue: floors and budgets on recorded tables and on made problems, each with the best that can be done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recorded import TABLES, recorded
from suites import failing
from worthwhile import Environment, Problem, replay, solve
from worthwhile.goals.goal import Goal, goal_of
from worthwhile.optimum import Optimum
from worthwhile.policies.goal_imed import GoalImed, towards
from worthwhile.policies.imed import RatioImed
from worthwhile.problem import Noise
from worthwhile.simulation.environments.synthetic import synthetic
from worthwhile.state import Floats
from worthwhile.tables import read_table

RECORDED = ("routerbench_0shot_1pct", "bfcl_latency", "evaldevquality_v06")
SHARES = (0.2, 0.5, 0.8)  # of the way from the cheapest options to the best
LATE = 50  # tasks
SLACK, UNREACHABLE = 0.8, 1.2  # × what the cheapest options bring, and the best
PLAIN, DELAYED, RATIO = "", f", reports {LATE} tasks late", ", best ratio"
BY_KIND = f"a floor for every kind, at {100 * SHARES[1]:g} %"
NOISY, FAILING = "rewards of 0 or 1, by 0.3", "options that fail"


class Case(NamedTuple):
    """A goal in a world."""

    world: str
    environment: Environment
    name: str
    goal: Goal
    best: Optimum
    delay: int = 0

    @property
    def is_floor(self) -> bool:
        return self.goal.floor is not None

    @property
    def wanted(self) -> float:
        """The mean reward that all tasks are to bring, or the mean cost that they may have."""
        problem, floors = self.environment.problem, self.goal.floors
        if floors:
            return float(problem.arrival @ [floors[kind] for kind in problem.kinds])
        limit = self.goal.total_floor if self.is_floor else self.goal.budget
        assert limit is not None
        return limit

    @property
    def policy(self) -> GoalImed:
        """The default on its way to this goal."""
        kinds = {kind: number for number, kind in enumerate(self.environment.problem.kinds)}
        made: GoalImed = towards(RatioImed(), self.goal, kinds)
        return made


class Reach(NamedTuple):
    """What the cheapest option of every kind brings and costs, and what the best does; (kinds, 2) each."""

    cheapest: Floats
    best: Floats

    def floors(self, share: float) -> Floats:
        """(kinds,): mean rewards so far on the way from the cheapest to the best."""
        return self.cheapest[:, 0] + share * (self.best[:, 0] - self.cheapest[:, 0])


def reach_of(problem: Problem) -> Reach:
    """How far the options of every kind go."""
    means, kinds = solve(problem).means, np.arange(len(problem.kinds))
    cheapest, best = np.nanargmin(means.cost, axis=1), np.nanargmax(means.reward, axis=1)
    both = (np.stack([means.reward[kinds, choice], means.cost[kinds, choice]], axis=1) for choice in (cheapest, best))
    return Reach(*both)


def case_of(world: str, environment: Environment, name: str, delay: int = 0, **goal: Any) -> Case:
    """A goal, with its optimum."""
    best = solve(environment.problem, **goal)
    return Case(world, environment, name, goal_of(**goal), best, delay)


def at_shares(world: str, environment: Environment, shares: tuple[float, ...] = SHARES, delay: int = 0) -> list[Case]:
    """Floors and budgets part of the way from the cheapest options to the best."""
    problem = environment.problem
    cheapest, best = (problem.arrival @ each for each in reach_of(problem))
    words, found = DELAYED if delay else PLAIN, list[Case]()
    for place, name in enumerate(("floor", "budget")):
        for share in shares:
            limit = float(cheapest[place] + share * (best[place] - cheapest[place]))
            found.append(case_of(world, environment, f"{name} at {100 * share:g} %{words}", delay, **{name: limit}))
    return found


def tables(folder: Path, all_options: bool) -> Iterator[tuple[str, Environment]]:
    """The recorded tables, with ten options for every kind or with all."""
    for name in RECORDED:
        if all_options:
            yield name, replay(read_table(folder / f"{name}.parquet"), added_cost=TABLES[name])
        else:
            yield name, recorded(folder, name, TABLES[name])


def beside(world: str, environment: Environment) -> list[Case]:
    """What else is asked of a table: the best ratio above a floor, and floors that are slack or out of reach."""
    problem = environment.problem
    cheapest, best = (float(problem.arrival @ each[:, 0]) for each in reach_of(problem))
    middle = cheapest + SHARES[1] * (best - cheapest)
    return [
        case_of(world, environment, f"floor at {100 * SHARES[1]:g} %{RATIO}", goal="ratio", floor=middle),
        case_of(world, environment, "floor that is slack", floor=SLACK * cheapest),
        case_of(world, environment, "floor out of reach", floor=UNREACHABLE * best),
    ]


def by_kind(world: str, environment: Environment) -> Case:
    """A floor for every kind, half of the way from its cheapest option to its best."""
    problem = environment.problem
    floors = reach_of(problem).floors(SHARES[1]).tolist()
    return case_of(world, environment, BY_KIND, floor=dict(zip(problem.kinds, floors, strict=True)))


def noisy() -> Environment:
    """Two kinds with rewards of 0 or 1, on average 0.2 to 0.4."""
    kinds = {
        "common": (0.7, {"small": (0.2, 0.1), "medium": (0.3, 0.3), "large": (0.35, 1.0)}),
        "rare": (0.3, {"small": (0.2, 0.2), "medium": (0.3, 0.5), "large": (0.4, 0.8)}),
    }
    problem = Problem.of(kinds, name="noisy", reward_noise=Noise("bernoulli"), cost_noise=Noise("lognormal", cv=0.5))
    return synthetic(problem)


def made(seed: int) -> list[list[Case]]:
    """Problems with more noise than the tables have, and with failures."""
    worlds = {NOISY: noisy(), FAILING: synthetic(failing(seed, 0.0, 0.5))}
    return [at_shares(world, environment, SHARES[1:2]) for world, environment in worlds.items()]
