"""Figure 5: the real-world experiment, replayed from a table of real trainings with four ways to count their cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from worthwhile.experiments.base import Claim, Columns, Outcome, Scale, by_column, outperforms, plus_minus, tidy_each
from worthwhile.experiments.figures import add_legend, panels, ratio_curves
from worthwhile.experiments.normalisation import normalised
from worthwhile.optimum import ratio_of, solve
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.environments.base import Environment
from worthwhile.simulation.environments.replay import replay
from worthwhile.simulation.results import Results
from worthwhile.tables import Table, as_table, numbers, read_columns

TABLE = "image_training"  # .parquet or .csv, in the folder given with --tables
OWN = Path(__file__).with_name(f"{TABLE}.csv")  # what we have recorded: docs/training.md
ARRIVAL = {"satellite": 0.1, "weather": 0.4, "rice": 0.2, "scenes": 0.2, "cats_dogs": 0.1}
FLOORS = (0.01, 0.05, 0.1)
SETUP = "setup"  # the column with the seconds before the training itself
TASKS, QUICK_TASKS = 10_000, 2_000
RUNS, QUICK_RUNS = 100, 20
FIRST = 10  # the figure begins here
PAPER = "dol-rm-anytime"
RIVALS = ("reward-ucb", "reward-ts", "ratio-ucb", "ratio-ts")  # both readings of the paper's UCB and TS
REAL = (PAPER, "reward-ucb", "reward-ts", DEFAULT)  # what `worthwhile train` really trains unless told
CLAIM = "Real training of five image classifiers: DOL-RM outperforms UCB and TS"


def run(scale: Scale) -> Outcome:
    """Replay the table in the folder of tables, or else the one that we have recorded."""
    return replayed(table_in(scale.tables) or OWN, scale)


def table_in(folder: Path | None) -> Path | None:
    """The recorded table, if it is there."""
    files = [] if folder is None else [folder / f"{TABLE}{ending}" for ending in (".parquet", ".csv")]
    return next((file for file in files if file.is_file()), None)


def replayed(path: Path, scale: Scale) -> Outcome:
    """All policies with every way to count costs."""
    tasks, runs, policies = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS), (PAPER, *RIVALS, DEFAULT)
    by_costs = {costs: scale.simulate(world, policies, tasks, runs) for costs, world in worlds(path).items()}
    curves = tidy_each("costs", by_costs, ("ratio", "expected_ratio", "loss", "regret"))
    return Outcome(
        words=words(next(iter(by_costs.values())).problem, path),
        data={"figure-5": curves, "figure-5-costs": costs_table(by_costs)},
        figures={"figure-5": draw(by_costs)},
        claims=[claim(costs, results) for costs, results in by_costs.items()],
    )


def worlds(path: Path) -> dict[str, Environment]:
    """The table with normalised costs for every floor f, and with seconds."""
    floors = {f"f = {floor:g}": world(path, floor) for floor in FLOORS}
    return {**floors, "seconds with set-up" if SETUP in read_columns(path)[0] else "seconds": world(path, None)}


def world(path: Path, floor: float | None) -> Environment:
    """The table with normalised costs, or, without a floor, with seconds and the set-up where it was recorded."""
    columns, first_row = read_columns(path)
    table = as_table(path.stem, columns, str(path), first_row)
    if floor is not None:
        return replayed_as(normalised(table, floor))
    setup = numbers(columns[SETUP], f"{path}, column {SETUP}", first_row) if SETUP in columns else 0.0
    return replayed_as(table._replace(cost=table.cost + setup))


def replayed_as(table: Table) -> Environment:
    """The paper's arrivals, or, where there are other kinds, their shares of the items."""
    return replay(table, arrival=arrivals(table.kinds) if set(table.kinds) <= set(ARRIVAL) else None)


def arrivals(kinds: Sequence[str]) -> dict[str, float]:
    """The paper's arrival probabilities, shared out among the kinds that there are."""
    total = math.fsum(ARRIVAL[kind] for kind in kinds)
    return {kind: ARRIVAL[kind] / total for kind in kinds}


def rules(problem: Problem) -> dict[str, float]:
    """What simple rules earn that are told all means."""
    best, shortest = solve(problem), ratio_of(problem, np.argmax(problem.offered, axis=1))
    return {"θ*": best.ratio, "greedy per kind": best.greedy_ratio, "always shortest": shortest}


def costs_table(by_costs: Mapping[str, Results]) -> Columns:
    """One row per way to count costs: the rules, the policies at the end, and the best option of every kind."""
    rows = []
    for costs, results in by_costs.items():
        problem, best = results.problem, results.best.best.tolist()
        options = {f"best {kind}": problem.options[option] for kind, option in zip(problem.kinds, best, strict=True)}
        rows.append({"costs": costs, **rules(problem), **results.mean("ratio"), **options})
    return by_column(rows[0], (row.values() for row in rows))


def draw(by_costs: Mapping[str, Results]) -> object:
    """Realised ratio with its spread, as in the paper; a panel for every way to count costs."""
    figure, axes = panels(list(by_costs), "tasks", "cumulative reward / cost", columns=2)
    for panel, results in zip(axes, by_costs.values(), strict=True):
        ratio_curves(panel, results, "ratio", FIRST, results.policies)
    add_legend(figure)
    return figure


def claim(costs: str, results: Results) -> Claim:
    """DOL-RM against both baselines, by the share of the optimum that each loses."""
    mean, error = results.mean("loss"), results.error("loss")
    lost = {policy: plus_minus(100.0 * mean[policy], 100.0 * error[policy]) for policy in results.policies}
    others = ", ".join(f"{policy} {lost[policy]} %" for policy in (*RIVALS, DEFAULT))
    simple = ", ".join(f"{rule} {ratio:.4g}" for rule, ratio in rules(results.problem).items())
    return Claim(
        f"{CLAIM} (replay, {costs}, {results.marks[-1]:,} tasks)",
        outperforms(results.measure("loss")[:, :, -1], results.policies, PAPER, RIVALS),
        f"loses {lost[PAPER]} % of the optimum; {others}; {simple}",
    )


def words(problem: Problem, path: Path) -> str:
    """What is replayed."""
    shares = ", ".join(f"{kind} {share:.2g}" for kind, share in zip(problem.kinds, problem.arrival, strict=True))
    return (
        f"A replay, not live training: every decision is answered from {path.name}{origin(path)}. Kinds arrive with "
        f"these shares: {shares}. Rewards and costs are min-max normalised per kind, as in the paper, with bounds from "
        "the same table, which no scheduler could know in advance. A cost of 0 would make the ratio infinite, so the "
        "cost is f + (1 − f)·scaled; f decides the answer, hence three of them, and plain seconds. DOL-RM is told the "
        "bounds of the means. Bands: ± one standard deviation over runs."
    )


def origin(path: Path) -> str:
    """How the table came to be, if the file beside it says so."""
    beside = path.with_name(f"{path.name}.about.json")
    if not beside.is_file():
        return ""
    about = json.loads(beside.read_text(encoding="utf-8"))
    return f" ({about['words']})" if "words" in about else ""
