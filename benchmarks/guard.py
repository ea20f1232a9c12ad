"""Does the guard hold, and what does it cost? `python benchmarks/guard.py [--tables FOLDER] [--runs 1000]`, 2 hours.

Runs on recorded tables (not part of this repository) and a random problem, with the worst, the middle and the best
option of every kind as the baseline: how often everything together ever fell more than 5 % below the baseline's ratio,
in expectation, from the 30th task on; and what is lost against the optimum, with and without the guard.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from proof import CROSSED, POLICY, World, world_of
from recorded import TABLES, recorded
from table import Report, command_line
from worthwhile import random_problem, solve
from worthwhile.live.engines import Engine, engine_of
from worthwhile.live.guard import Guard
from worthwhile.live.stores.base import AGREED, CHOSEN, GUARDED
from worthwhile.live.totals import Folded, new_totals, no_features
from worthwhile.policies.registry import make
from worthwhile.proof.confidence import FIRST
from worthwhile.simulation.environments.synthetic import synthetic
from worthwhile.state import empty

GUARD, ERROR = 0.05, 0.05
BASELINES = {"worst": 0.0, "middle": 0.5, "best": 1.0}  # of the options of a kind, by reward per cost


def baselines_of(world: World, rank: float) -> list[int]:
    """An option for every kind."""
    return [
        sorted(offer.numbers, key=lambda option, kind=kind: world.reward[kind, option] / world.cost[kind, option])[
            round(rank * (len(offer.numbers) - 1))
        ]
        for kind, offer in enumerate(world.offers)
    ]


def played(
    world: World, engine: Engine, baselines: list[int], guarded: bool, tasks: int, seed: int
) -> tuple[Any, Any, float]:
    """Kinds and options of a run, and how often the guard took the baseline."""
    rng, size = np.random.default_rng(seed), world.reward.shape
    engine.bind(Folded(new_totals(*size), empty(engine.seldom.policy, *size, 0), no_features(*size)))
    engine.seed_key = engine.seldom.seed_key = seed
    kinds, latent = world.environment.world.draw(rng, tasks)
    guard, taken, times = Guard(1), np.zeros(tasks, int), 0
    for task, kind in enumerate(kinds.tolist()):
        option, reward_estimate, cost_estimate = engine.choose(world.offers[kind], {}, task + 1)
        mode = AGREED if option == baselines[kind] else CHOSEN
        if guarded and mode == CHOSEN and not guard.allows(kind, GUARD, ERROR, {}):
            option, mode, times = baselines[kind], GUARDED, times + 1
            _, reward_estimate, cost_estimate = engine.judge(kind, option)
        reward, cost = world.environment.world.feedback(kind, int(option), latent[task])
        reward = 0.0 if math.isnan(reward) else reward
        engine.learn(kind, int(option), reward_estimate, cost_estimate, float(reward), float(cost), task + 1)
        guard.add(kind, mode, float(reward), float(cost))
        taken[task] = option
    return kinds, taken, times / tasks


def below(world: World, kinds: Any, taken: Any, baselines: list[int]) -> float:
    """How far everything together was below the baseline's ratio at most, from the first tasks on."""
    usual = np.array(baselines)[kinds]
    ours = np.cumsum(world.reward[kinds, taken]) / np.cumsum(world.cost[kinds, taken])
    theirs = np.cumsum(world.reward[kinds, usual]) / np.cumsum(world.cost[kinds, usual])
    earns = theirs[FIRST:] > 0.0  # nobody is below what earns nothing
    return float(np.max(1.0 - ours[FIRST:][earns] / theirs[FIRST:][earns], initial=0.0))


def loss(world: World, kinds: Any, taken: Any, best: float) -> float:
    """1 − ratio/θ*."""
    return 1.0 - world.reward[kinds, taken].sum() / world.cost[kinds, taken].sum() / best


def measure(report: Report, name: str, world: World, runs: int, tasks: int, seed: int) -> None:
    engine, best = engine_of("compiled", make(POLICY), 0), solve(world.environment.problem).ratio
    for rank, share in BASELINES.items():
        baselines = baselines_of(world, share)
        losses, violations, times = {True: [], False: []}, {True: 0, False: 0}, 0.0
        for run in range(runs):
            for guarded in (True, False):
                kinds, taken, often = played(world, engine, baselines, guarded, tasks, seed + run)
                violations[guarded] += below(world, kinds, taken, baselines) > GUARD
                losses[guarded].append(loss(world, kinds, taken, best))
                times += often / runs
        limit = ERROR + 2.0 * math.sqrt(ERROR * (1.0 - ERROR) / runs)
        what = f"{name}, {rank} as baseline: ever {GUARD:.0%} below"
        report.at_most(what, 100.0 * violations[True] / runs, round(100.0 * limit, 2), "%")
        report.note(f"{what}, without the guard", f"{100.0 * violations[False] / runs:.3g} %")
        means = [f"{100.0 * np.mean(losses[guarded]):.3g} %" for guarded in (True, False)]
        report.note(
            f"{name}, {rank}: loss with the guard, without; guarded tasks", f"{means[0]}, {means[1]}; {times:.0%}"
        )


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--tables", type=Path, help="folder of recorded tables")
    parser.add_argument("--only", help="of the tables, this one")
    parser.add_argument("--runs", type=int, default=1000, help="of each (1000)")
    parser.add_argument("--tasks", type=int, default=1000, help="of a run (1000)")
    given = parser.parse_args()
    report = Report()
    for name in CROSSED if given.tables else ():
        if given.only in (None, name):
            world = world_of(recorded(given.tables, name, TABLES[name]))
            measure(report, name, world, given.runs, given.tasks, given.seed)
    if given.only in (None, "random"):
        measure(report, "random", world_of(synthetic(random_problem("unit", 0))), given.runs, given.tasks, given.seed)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
