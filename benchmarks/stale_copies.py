"""What it costs to decide from copies of what is known that are some seconds old, against deciding in one place.

Every client has a copy, replaced after so many seconds, each at a moment of its own; meanwhile it counts what it has
decided itself as running. All reports go to one log at once. Tasks come to the clients in turn.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

import numpy as np

from table import Report, command_line
from worthwhile import random_problem, seven_kinds, solve, synthetic
from worthwhile import state as states
from worthwhile.live.engines import offer_of
from worthwhile.live.fold import Fold
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.problem import Problem

PER_SECOND, SECONDS = 64, 600  # tasks of all clients together
CLIENTS, AGES = (1, 8, 64), (1, 10, 60)
ENOUGH = 8  # moments at which copies are replaced: clients share them
MOST_MORE = {1: 0.5, 10: 3.0, 60: 12.0}  # %: loss beyond that of deciding in one place


class Loss(NamedTuple):
    """In %, of all tasks and of the second half."""

    whole: float
    late: float


class Copy:
    """What a client knows: a copy, and its own decisions since."""

    def __init__(self, central: Fold, seed: int) -> None:
        self.fold = Fold(central.policy, 1, seed, "compiled")
        self.replace(central)

    def replace(self, central: Fold) -> None:
        self.fold.size = central.size
        self.fold.put(states.grow(central, central.state, *central.size))
        self.running: Counter[tuple[int, int]] = Counter()


def play(problem: Problem, clients: int, age: int, seed: int) -> Loss:
    """One run; without clients, every decision knows of every report."""
    central = Fold(make(DEFAULT), 1, seed, "compiled")
    central.fit(len(problem.kinds), len(problem.options))
    tasks, world = PER_SECOND * SECONDS, synthetic(problem).world
    kinds, latent = world.draw(np.random.default_rng(seed), tasks)
    offers = [offer_of(kind, np.flatnonzero(offered).tolist()) for kind, offered in enumerate(problem.offered)]
    copies = [Copy(central, seed) for _ in range(min(clients, ENOUGH))]
    running = [Counter[tuple[int, int]]() for _ in range(clients)]
    taken = np.zeros(tasks, np.int64)
    for task, kind in enumerate(kinds.tolist()):
        offer, client = offers[kind], task % clients if clients else 0
        if clients:
            phase = client % len(copies)
            if (task + phase * age * PER_SECOND // len(copies)) % (age * PER_SECOND) < clients:
                if client < len(copies):
                    copies[phase].replace(central)
                running[client].clear()
            mine = {option: running[client][kind, option] for option in offer.numbers}
            option, reward_estimate, cost_estimate = copies[phase].fold.engine.choose(offer, mine, task + 1)
            running[client][kind, option] += 1
        else:
            option, reward_estimate, cost_estimate = central.engine.choose(offer, {}, task + 1)
        reward, cost = world.feedback(kind, option, latent[task])
        central.engine.learn(kind, option, reward_estimate, cost_estimate, reward, cost, task + 1)
        taken[task] = option
    rewards, costs = problem.reward[kinds, taken], problem.cost[kinds, taken]
    best, half = solve(problem).ratio, tasks // 2
    return Loss(
        *(100 * (1 - rewards[part].sum() / costs[part].sum() / best) for part in (slice(None), slice(half, None)))
    )


def mean_loss(problems: list[Problem], clients: int, age: int) -> Loss:
    losses = [play(problem, clients, age, seed) for seed, problem in enumerate(problems)]
    return Loss(*map(float, np.mean(losses, axis=0)))


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="in each of two worlds (3)")
    options, report = parser.parse_args(), Report()
    worlds = {
        "seven kinds": [seven_kinds()] * options.runs,
        "random problems": [random_problem("unit", options.seed + number) for number in range(options.runs)],
    }
    for name, problems in worlds.items():
        central = mean_loss(problems, 0, 0)
        report.note(f"{name}: loss, decided in one place (second half)", f"{central.whole:.2f} ({central.late:.2f}) %")
        for age in AGES:
            for clients in CLIENTS:
                found = mean_loss(problems, clients, age)
                late = f"second half {found.late - central.late:.2f}"
                what = f"{name}: more with {clients} clients, {age} s ({late})"
                report.at_most(what, found.whole - central.whole, MOST_MORE[age], "%")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
