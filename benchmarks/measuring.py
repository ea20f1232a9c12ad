"""What policies lose in a row of the arena: losses, pseudo-regrets, bad runs and stuck runs."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suites import Row
from worthwhile import Environment, simulate
from worthwhile.simulation.results import Results
from worthwhile.state import Floats

TIE_LOSS, TIE_ERRORS = 0.1, 2.0  # %, standard errors: a smaller difference is a tie
STUCK = 6.0  # a run is stuck if its regret at T is more than so many times that at T/10; logarithmic regret is not
ARRAYS = ("loss", "regret", "worst", "stuck")  # of a measurement, a column for every policy
Entrants = Callable[[Row, Environment], Mapping[str, str]]  # labelled policies for a world


class Measured(NamedTuple):
    """What every policy lost in one row: (samples, policies), a sample being a run or a random problem."""

    row: str
    new: bool  # a row that the reference did not know
    tasks: int
    policies: tuple[str, ...]
    runs: int  # of each policy, over all problems
    loss: Floats  # %
    regret: Floats
    worst: Floats  # (policies,): 99th percentile of the loss over single runs
    stuck: Floats  # (policies,): % of the single runs

    def mean(self, policy: str) -> float:
        return float(self.loss[:, self.policies.index(policy)].mean())

    def stuck_runs(self, policy: str) -> float:
        return float(self.stuck[self.policies.index(policy)])

    def behind(self, policy: str, rival: str) -> tuple[float, float]:
        """How much more than a rival a policy loses, and the standard error of that."""
        more = self.loss[:, self.policies.index(policy)] - self.loss[:, self.policies.index(rival)]
        return float(more.mean()), float(more.std(ddof=1) / math.sqrt(len(more)))

    def best(self, policies: Sequence[str]) -> str:
        return min((name for name in policies if name in self.policies), key=self.mean)

    def join(self, other: Measured) -> Measured:
        """The same row with the policies of another measurement of it as well, those of ours first."""
        more = [place for place, name in enumerate(other.policies) if name not in self.policies]
        pairs = ((getattr(self, name), getattr(other, name)[..., more]) for name in ARRAYS)
        values = (np.concatenate(pair, axis=-1) for pair in pairs)
        names = self.policies + tuple(other.policies[place] for place in more)
        return Measured(self.row, self.new, self.tasks, names, self.runs, *values)

    def only(self, policies: Container[str]) -> Measured:
        """The same row with these of its policies."""
        left = [place for place, name in enumerate(self.policies) if name in policies]
        names = tuple(self.policies[place] for place in left)
        values = (getattr(self, name)[..., left] for name in ARRAYS)
        return Measured(self.row, self.new, self.tasks, names, self.runs, *values)

    def ties(self, policy: str, rival: str) -> bool:
        by, error = self.behind(policy, rival)
        return abs(by) <= max(TIE_LOSS, TIE_ERRORS * error)


def measure(row: Row, entrants: Entrants, tasks: int, runs: int, seed: int) -> Measured:
    """Play a row: one world many times, or each of many worlds a few times."""
    alone, cores = len(row.worlds) == 1, os.cpu_count() or 1
    each = runs if alone else -(-runs // len(row.worlds))
    alike: dict[str, Any] = {"tasks": tasks, "runs": each, "delay": row.delay, "marks": [max(1, tasks // 10)]}

    def play(number: int) -> tuple[Sequence[str], Floats, Floats]:
        world = row.worlds[number]
        threads = cores if alone else 1
        policies = entrants(row, world)
        result = simulate(world, policies, seed=seed + number, threads=threads, progress=False, **alike)
        return result.policies, losses(result, world), result.measure("regret")

    with ThreadPoolExecutor(1 if alone else cores) as pool:
        played = list(pool.map(play, range(len(row.worlds))))
    loss, regret = np.stack([loss for _, loss, _ in played]), np.stack([regret for _, _, regret in played])
    late, early = regret[..., -1], regret[..., 0]  # (worlds, runs, policies)
    samples = (loss[0], late[0]) if alone else (loss.mean(axis=1), late.mean(axis=1))
    worst, stuck = np.percentile(loss, 99, axis=(0, 1)), 100.0 * (late > STUCK * early).mean(axis=(0, 1))
    return Measured(row.name, row.new, tasks, tuple(played[0][0]), each * len(row.worlds), *samples, worst, stuck)


def losses(result: Results, world: Environment) -> Floats:
    """(runs, policies): % of the optimum lost at the end, without the luck of arrivals."""
    first_call = getattr(world.world, "first_call", None)
    if first_call is None:
        with np.errstate(invalid="ignore"):
            return 100.0 * result.measure("loss")[:, :, -1]
    reward, cost = result.optimum[-1]  # there is one kind, and the optimum pays for its own first call
    best = reward / (cost + first_call[result.best.best[0]])
    return 100.0 * (1.0 - result.measure("expected_reward")[:, :, -1] / result.measure("cost")[:, :, -1] / best)


def save(path: Path, found: Sequence[Measured]) -> None:
    """One line per row, T and policy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = ("loss_percent", "loss_error", "loss_99th_percentile", "regret", "regret_error", "stuck_percent")
        writer.writerow(("row", "tasks", "policy", "runs", "samples", *heads))
        for one in found:
            root = math.sqrt(len(one.loss))
            loss, regret = ((v.mean(axis=0), v.std(axis=0, ddof=1) / root) for v in (one.loss, one.regret))
            for place, name in enumerate(one.policies):
                numbers = (loss[0], loss[1], one.worst, regret[0], regret[1], one.stuck)
                cells = [f"{values[place]:.6g}" for values in numbers]
                writer.writerow((one.row, one.tasks, name, one.runs, len(one.loss), *cells))
