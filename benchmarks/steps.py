"""What stopping at the right step earns: against the length chosen in advance, and against Optuna's pruners.

    python benchmarks/steps.py [--tables FOLDER] [--runs 600] [--seeds 1] [--slow]

Every world has kinds of runs with recorded curves: reward and cost after every step. Runs come in random order, each
picks a curve of its kind. All figures are ΣR/ΣC as a share of the best length of every kind, known in advance: 1 is
what somebody earns who knows everything but the run itself, `hindsight` who knows that as well. In `shuffled` worlds
the rewards of every step are dealt out anew among the runs: what a run has brought tells nothing of what it will bring.
The limit: nowhere less than 97 % of what choosing in advance earns.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import optuna
import pandas as pd

from worthwhile import Scheduler

LIMIT = 0.97
Curves = tuple[np.ndarray, np.ndarray]  # rewards and costs so far, by run and step
World = Mapping[str, Curves]
Rule = Callable[[World, Iterator[tuple[str, int]], int], float]


def trainings(seed: int, spread: float, noise: float = 0.02, kinds: int = 5, runs: int = 400, steps: int = 20) -> World:
    """Curves that rise to a top, as trainings do; `spread` says how much runs of one kind differ."""
    rng = np.random.default_rng(seed)
    world, after = {}, np.arange(1, steps + 1)
    for kind in range(kinds):
        top = np.clip(rng.uniform(0.6, 0.95) + spread * rng.normal(0.0, 0.1, runs), 0.5, 1.0)
        slow = rng.uniform(1.0, 8.0) * np.exp(spread * rng.normal(0.0, 0.6, runs))
        rewards = 2.0 * (top[:, None] - 0.5) * (1.0 - np.exp(-after / slow[:, None]))
        costs = np.cumsum(rng.uniform(0.02, 0.1) * np.exp(rng.normal(0.0, 0.08, (runs, steps))), axis=1)
        world[f"kind {kind}"] = rewards + rng.normal(0.0, noise, rewards.shape), rng.uniform(0.05, 0.3) + costs
    return world


def recorded(folder: Path) -> Iterator[tuple[str, World]]:
    """Recorded trainings: more data for the same learner, more epochs for the same network."""
    table = pd.read_parquet(folder / "learning_curve_skill.parquet")
    table[["learner", "length"]] = table["option"].str.split("@", expand=True)
    table["length"] = table["length"].astype(int)
    table["kind"] = table["task_type"] + " " + table["learner"]
    yield "learning_curve_skill", curves_of(table)
    table = pd.read_parquet(folder / "image_training.parquet")
    yield "image_training", curves_of(table.rename(columns={"task_type": "kind", "option": "length"}))


def curves_of(table: pd.DataFrame) -> World:
    world = {}
    for kind, rows in table.groupby("kind"):
        rewards, costs = (rows.pivot(index="item_id", columns="length", values=name) for name in ("reward", "cost"))
        whole = rewards.notna().all(axis=1)
        rising = np.maximum.accumulate(costs[whole].to_numpy(), axis=1)
        world[str(kind)] = rewards[whole].to_numpy(), rising + 1e-9 * np.arange(rising.shape[1])
    return {kind: curves for kind, curves in world.items() if len(curves[0]) and curves[0].shape[1] > 1}


def shuffled(world: World) -> World:
    rng = np.random.default_rng(0)
    return {kind: (rng.permuted(rewards, axis=0), costs) for kind, (rewards, costs) in world.items()}


def best(world: World, per_run: bool) -> float:
    """ΣR/ΣC of the best length of every kind, or of every run."""
    price = 0.0
    for _ in range(50):
        reward = cost = 0.0
        for rewards, costs in world.values():
            worth = rewards - price * costs
            places = worth.argmax(axis=1) if per_run else np.full(len(worth), worth.mean(axis=0).argmax())
            runs = np.arange(len(worth))
            reward, cost = reward + rewards[runs, places].mean(), cost + costs[runs, places].mean()
        price = reward / cost
    return price


def arrivals(world: World, count: int, seed: int) -> Iterator[tuple[str, int]]:
    luck = random.Random(seed)
    for _ in range(count):
        kind = luck.choice(list(world))
        yield kind, luck.randrange(len(world[kind][0]))


def in_advance(world: World, runs: Iterator[tuple[str, int]], seed: int) -> float:
    """The scheduler chooses the length; what a run passes is observed."""
    with Scheduler(seed=seed) as scheduler:
        for kind, run in runs:
            rewards, costs = (values[run].tolist() for values in world[kind])
            task = scheduler.decide(kind, list(range(len(rewards))))
            end = int(task.option)
            task.report(rewards[end], costs[end])
            for step in range(end):
                task.observe(step, rewards[step], costs[step])
        return scheduler.summary().ratio or 0.0


def by_steps(world: World, runs: Iterator[tuple[str, int]], seed: int) -> float:
    """The run stops when the next steps are not worth it."""
    with Scheduler(seed=seed) as scheduler:
        for kind, run in runs:
            rewards, costs = (values[run].tolist() for values in world[kind])
            lengths = list(range(len(rewards)))
            with scheduler.task(kind, lengths) as task:
                for step in task.steps(lengths):
                    task.progress(rewards[step], costs[step])
        return scheduler.summary().ratio or 0.0


def pruned(make: Callable[[int], optuna.pruners.BasePruner]) -> Rule:
    """A study for every kind, whose pruner stops what is behind other runs."""

    def earned(world: World, runs: Iterator[tuple[str, int]], seed: int) -> float:
        studies: dict[str, optuna.Study] = {}
        reward = cost = 0.0
        for kind, run in runs:
            rewards, costs = (values[run].tolist() for values in world[kind])
            if kind not in studies:
                studies[kind] = optuna.create_study(direction="maximize", pruner=make(len(rewards)))
            trial, end = studies[kind].ask(), 0
            trial.report(rewards[0], 1)
            while end + 1 < len(rewards) and not trial.should_prune():
                end += 1
                trial.report(rewards[end], end + 1)
            studies[kind].tell(trial, rewards[end])
            reward, cost = reward + rewards[end], cost + costs[end]
        return reward / cost

    return earned


RULES: dict[str, Rule] = {
    "in advance": in_advance,
    "steps": by_steps,
    "median": pruned(lambda steps: optuna.pruners.MedianPruner()),
    "hyperband": pruned(lambda steps: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=steps)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, help="folder of recorded tables")
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--slow", action="store_true", help="the pruners as well, which take minutes")
    known = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    worlds = {"alike": trainings(1, 0.0), "some spread": trainings(3, 0.3), "spread": trainings(7, 1.0, 0.005)}
    worlds |= dict(recorded(known.tables)) if known.tables else {}
    rules = {name: rule for name, rule in RULES.items() if known.slow or name in ("in advance", "steps")}
    print(f"{'world':<32}{'hindsight':>11}" + "".join(f"{name:>11}" for name in rules))
    missed = False
    for name, world in [*worlds.items(), *((f"{name}, shuffled", shuffled(world)) for name, world in worlds.items())]:
        reference = best(world, per_run=False)
        shares = {
            label: np.mean([rule(world, arrivals(world, known.runs, seed), seed) for seed in range(known.seeds)])
            / reference
            for label, rule in rules.items()
        }
        missed |= shares["steps"] < LIMIT * shares["in advance"]
        hindsight = best(world, per_run=True) / reference
        print(f"{name:<32}{hindsight:>11.3f}" + "".join(f"{share:>11.3f}" for share in shares.values()), flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
