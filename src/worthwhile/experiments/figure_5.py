"""Figure 5: the real-world experiment, replayed from a recorded table of real training runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from worthwhile.environments.base import Environment
from worthwhile.environments.replay import read_table, replay
from worthwhile.experiments.base import NOT_RUN, Claim, Outcome, Scale, outperforms, plus_minus, tidy
from worthwhile.experiments.figures import curve, name_lines, panels, reference
from worthwhile.results import Results

TABLE = "image_training"  # .parquet or .csv, in the folder given with --tables
ARRIVAL = {"satellite": 0.1, "weather": 0.4, "rice": 0.2, "scenes": 0.2, "cats_dogs": 0.1}
TASKS, QUICK_TASKS = 10_000, 2_000
RUNS, QUICK_RUNS = 100, 20
FIRST = 100  # the figure begins here
OURS, RIVALS, DEFAULT = "dol-rm-anytime", ("reward-ucb", "reward-ts"), "ratio-imed"
CLAIM = "Real training of five image classifiers: DOL-RM outperforms UCB and TS"


def run(scale: Scale) -> Outcome:
    """Replay the recorded table if there is one, else say what is missing."""
    path = table_in(scale.tables)
    if path is None:
        return Outcome(missing(scale.tables), {}, {}, [Claim(CLAIM, NOT_RUN, f"there is no recorded table {TABLE}")])
    world = recorded(path)
    tasks, runs = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS)
    results = scale.simulate(world, (OURS, *RIVALS, DEFAULT), tasks, runs)
    return Outcome(
        words=words(results, path.name),
        data={"figure-5": tidy(results, ("ratio", "expected_ratio", "loss", "regret"))},
        figures={"figure-5": draw(results)},
        claims=[claim(results)],
    )


def table_in(folder: Path | None) -> Path | None:
    """The recorded table, if it is there."""
    files = [] if folder is None else [folder / f"{TABLE}{ending}" for ending in (".parquet", ".csv")]
    return next((file for file in files if file.is_file()), None)


def missing(folder: Path | None) -> str:
    """Why there is nothing to see."""
    where = "no folder of tables was given" if folder is None else "the folder given with --tables does not have it"
    return (
        "The paper trains image classifiers on a GPU and schedules how many epochs each gets. That needs a recorded "
        f"table of real training runs, {TABLE}.parquet or {TABLE}.csv, and {where}: nothing is shown in its place."
    )


def recorded(path: Path) -> Environment:
    """The table with rewards and costs as shares of their largest, for DOL-RM's widths have no scale of their own."""
    table = read_table(path)
    scaled = table._replace(reward=table.reward / abs(table.reward).max(), cost=table.cost / table.cost.max())
    return replay(scaled, arrival=ARRIVAL if set(ARRIVAL) <= set(table.kinds) else None)


def draw(results: Results) -> object:
    """Realised ratio with its spread, as in the paper."""
    figure, (axes,) = panels(("replay of recorded training",), "tasks", "cumulative reward / cost")
    later = results.marks >= FIRST
    values = results.measure("ratio")[:, :, later]
    mean, spread = values.mean(axis=0), values.std(axis=0)
    for place, policy in enumerate(results.policies):
        band = (mean[place] - spread[place], mean[place] + spread[place])
        curve(axes, results.marks[later], mean[place], policy, band)
    reference(axes, results.marks[later], np.full(int(later.sum()), results.best.ratio), "optimum θ*")
    axes.set_xscale("log")
    name_lines(figure, [axes])
    return figure


def claim(results: Results) -> Claim:
    """DOL-RM against both baselines, by the share of the optimum that each loses."""
    mean, error = results.mean("loss"), results.error("loss")
    lost = {policy: plus_minus(100.0 * mean[policy], 100.0 * error[policy]) for policy in results.policies}
    others = ", ".join(f"{policy} {lost[policy]} %" for policy in (*RIVALS, DEFAULT))
    return Claim(
        f"{CLAIM} (replay, {results.marks[-1]:,} tasks)",
        outperforms(results.measure("loss")[:, :, -1], results.policies, OURS, RIVALS),
        f"loses {lost[OURS]} % of the optimum; {others}",
    )


def words(results: Results, file: str) -> str:
    """What is replayed, and what there is to win."""
    problem, best = results.problem, results.best
    shares = ", ".join(f"{kind} {share:.2g}" for kind, share in zip(problem.kinds, problem.arrival, strict=True))
    headroom = 100.0 * (1.0 - best.greedy_ratio / best.ratio)
    return (
        f"A replay, not live training: every decision is answered from {file}. Kinds arrive with these shares: "
        f"{shares}. Rewards and costs are divided by their largest; the paper's min-max normalisation would make the "
        f"cheapest run free. The optimum is θ* = {best.ratio:.5g}; always taking the best ratio of each kind reaches "
        f"{best.greedy_ratio:.5g}, {headroom:.2g} % less. Bands: ± one standard deviation over runs."
    )
