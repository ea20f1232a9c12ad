"""Do the intervals of a trial hold? `python benchmarks/proof.py [--tables FOLDER] [--replays 2000]`, 30 minutes.

Replays of recorded tables (not part of this repository) and of random problems, in which the truth is known: a share of
the tasks is held out, the default decides the rest and learns from all. How often 95 % intervals contain the truth at
one moment, and sequences of them at all moments at once; how wide they are beside those of the naive estimator, the
quotient of ΣR/ΣC of both groups; how far the estimates are off on average. Limits are 95 % less two standard errors.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recorded import TABLES, recorded
from table import Report, command_line
from worthwhile import Environment, random_problem
from worthwhile.live.engines import Engine, engine_of, offer_of
from worthwhile.live.totals import Folded, new_totals, no_features
from worthwhile.policies.registry import make
from worthwhile.proof.confidence import FIRST, Estimate, estimate
from worthwhile.proof.trial import Trial
from worthwhile.simulation.environments.synthetic import synthetic
from worthwhile.state import empty

SHARE = 0.2  # held out, unless told
TASKS = 1000
CROSSED = ("cloud_vm", "bfcl_latency", "evaldevquality_v06", "image_training")
POLICY = "ratio-imed"
FAMILIES = "unit", "train"  # of random problems


class World(NamedTuple):
    """An environment, its mean rewards and costs, and what is on offer to every kind."""

    environment: Environment
    reward: Any
    cost: Any
    offers: list[Any]


class Replay(NamedTuple):
    """One run, task by task."""

    share: float  # held out
    kinds: Any
    own: Any  # what the policy would take
    usual: Any  # the baseline
    held_out: Any
    reward: Any
    cost: Any


class Shown(NamedTuple):
    """What a replay showed in the end, and whether it was true."""

    gain: Estimate
    difference: Estimate
    naive: Estimate
    truth: float
    true_difference: float
    always: bool  # whether the sequence of gains held all the time
    always_difference: bool


def world_of(environment: Environment) -> World:
    problem = environment.problem
    reward, cost = (np.where(problem.offered, means, np.nan) for means in problem.means_per_attempt)
    offers = [offer_of(kind, np.flatnonzero(row).tolist()) for kind, row in enumerate(problem.offered)]
    return World(environment, reward, cost, offers)


def played(world: World, engine: Engine, share: float, tasks: int, rng: np.random.Generator) -> Replay:
    """A run with a baseline for every kind, drawn at random."""
    size = world.reward.shape
    engine.bind(Folded(new_totals(*size), empty(engine.seldom.policy, *size, 0), no_features(*size)))
    engine.seed_key = engine.seldom.seed_key = int(rng.integers(1 << 32))
    baselines = [rng.choice(offer.numbers) for offer in world.offers]
    kinds, latent = world.environment.world.draw(rng, tasks)
    held_out = rng.random(tasks) < share
    own, reward, cost = np.zeros(tasks, int), np.zeros(tasks), np.zeros(tasks)
    for task, kind in enumerate(kinds.tolist()):
        own[task], reward_estimate, cost_estimate = engine.choose(world.offers[kind], {}, task + 1)
        option = int(baselines[kind] if held_out[task] else own[task])
        if option != own[task]:
            _, reward_estimate, cost_estimate = engine.judge(kind, option)
        reward[task], cost[task] = world.environment.world.feedback(kind, option, latent[task])
        engine.learn(kind, option, reward_estimate, cost_estimate, reward[task], cost[task], task + 1)
    return Replay(share, kinds, own, np.array(baselines)[kinds], held_out, reward, cost)


def shown(world: World, run: Replay) -> Shown | None:
    """What the trial shows of a run; None if too few tasks were held out."""
    trial, always, always_difference = Trial(), True, True
    means = [table[run.kinds, side] for side in (run.own, run.usual) for table in (world.reward, world.cost)]
    reward_1, cost_1, reward_0, cost_0 = sums = [np.cumsum(mean) for mean in means]
    with np.errstate(all="ignore"):  # nothing was earned in the first tasks
        quotient, began = reward_1 * cost_0 / (cost_1 * reward_0) - 1.0, 0
    for task in range(len(run.kinds)):
        held = bool(run.held_out[task]) if run.own[task] != run.usual[task] else None
        began = task + 1 if trial.price is None else began
        trial.add(task, int(run.kinds[task]), held, run.share, float(run.reward[task]), float(run.cost[task]), False)
        if held is not None and (gain := trial.gain()) is not None:
            always = always and float(quotient[task]) in gain.always
            difference = trial.difference()
            if difference is not None:
                truth = true_difference(sums, trial.price, began, task)
                always_difference = always_difference and truth in difference.always
    gain, difference = trial.gain(), trial.difference()
    if gain is None or difference is None:
        return None
    truth = true_difference(sums, trial.price, began, task)
    return Shown(gain, difference, naive(run), float(quotient[-1]), truth, always, always_difference)


def true_difference(sums: list[Any], price: float | None, began: int, task: int) -> float:
    """Per task, from where θ₀ was fixed."""
    reward_1, cost_1, reward_0, cost_0 = (float(each[task] - each[began - 1]) for each in sums)
    return (reward_1 - reward_0 - (price or 0.0) * (cost_1 - cost_0)) / (task - began + 1)


def naive(run: Replay) -> Estimate:
    """The quotient of ΣR/ΣC of both groups, each with the error of a ratio of means (delta method)."""
    log, variance = 0.0, 0.0
    for sign, group in ((1.0, ~run.held_out), (-1.0, run.held_out)):
        reward, cost = run.reward[group], run.cost[group]
        ratio = reward.sum() / cost.sum()
        log += sign * math.log(ratio)
        variance += np.var(reward - ratio * cost, ddof=1) / len(cost) / reward.mean() ** 2
    return estimate(log, math.sqrt(variance), run.held_out.sum())


def measure(report: Report, name: str, world: World, given: Namespace, rng: np.random.Generator) -> None:
    """One table."""
    engine, size = engine_of("compiled", make(POLICY), 0), (given.share, given.tasks)
    found = [each for _ in range(given.replays) if (each := shown(world, played(world, engine, *size, rng)))]
    report.note(f"{name}: replays that held out enough to tell", f"{len(found)}")
    limit = 95.0 - 2.0 * math.sqrt(95.0 * 5.0 / len(found))
    for what, holds in coverage(found):
        report.at_least(f"{name}: {what}", 100.0 * np.mean(holds), round(limit, 2), "%")
    naive = [math.log1p(each.truth) in each.naive.now for each in found]
    report.note(f"{name}: interval of the naive quotient", f"{100.0 * np.mean(naive):.3g} %")
    gains, widths = np.array([each.gain.value for each in found]), np.array([each.gain.now.width for each in found])
    wrong = gains - [each.truth for each in found]
    report.at_most(f"{name}: quotient: |bias| / width", abs(wrong.mean()) / widths.mean(), 0.1, "")
    off = np.array([each.difference.value - each.true_difference for each in found])
    report.at_most(
        f"{name}: difference: |bias|, standard errors", abs(off.mean()) / (off.std() / math.sqrt(len(off))), 2.0, ""
    )
    logs = [math.log1p(each.gain.now.high) - math.log1p(each.gain.now.low) for each in found]
    report.note(
        f"{name}: width, naive / ours (median)",
        f"{np.median([each.naive.now.width for each in found] / np.array(logs)):.2f}",
    )
    report.note(
        f"{name}: median width of the gain; of its sequence",
        "; ".join(
            f"{100 * np.median([width(each) for each in found]):.0f} %"
            for width in (lambda e: e.gain.now.width, lambda e: e.gain.always.width)
        ),
    )


def coverage(found: list[Shown]) -> Iterator[tuple[str, list[bool]]]:
    yield "interval of the quotient", [each.truth in each.gain.now for each in found]
    yield "interval of the difference", [each.true_difference in each.difference.now for each in found]
    yield f"sequence of the quotient, at all times from {FIRST}", [each.always for each in found]
    yield f"sequence of the difference, at all times from {FIRST}", [each.always_difference for each in found]


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--tables", type=Path, help="folder of recorded tables")
    parser.add_argument("--only", help="of the tables, this one")
    parser.add_argument("--replays", type=int, default=2000, help="of each (2000)")
    parser.add_argument("--share", type=float, default=SHARE, help=f"held out ({SHARE:g})")
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"of a replay ({TASKS})")
    given = parser.parse_args()
    report, rng = Report(), np.random.default_rng(given.seed)
    for name in CROSSED if given.tables else ():
        if given.only in (None, name):
            measure(report, name, world_of(recorded(given.tables, name, TABLES[name])), given, rng)
    if given.only in (None, "random"):
        for family in FAMILIES:
            problem = random_problem(family, given.seed)
            measure(report, f"random, {family}", world_of(synthetic(problem)), given, rng)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
