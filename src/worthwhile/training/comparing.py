"""What simple rules would have earned on the outcomes of a recorded run, beside what was earned."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.environments import replay
from worthwhile.optimum import ratio_of, solve
from worthwhile.problem import Problem
from worthwhile.reports import digits, table
from worthwhile.results import replace_file
from worthwhile.state import Floats

RULES_ARE_TOLD = """\
achieved: with everything that learning cost. The others are told all recorded
outcomes in advance, and earn what those come to on average; a rule can take
only what was recorded at least once."""
ACHIEVED, OPTIMUM = "achieved", "optimum θ*"


class Comparison(NamedTuple):
    """The ratio so far after every task, and the ratios of the rules, told everything in advance."""

    so_far: Floats
    rules: Mapping[str, float]
    problem: Problem


def compare(path: Path) -> Comparison:
    """Replay the rules on a table that `Scheduler.export` wrote."""
    problem = replay(path).problem
    with open(path, newline="", encoding="utf-8") as file:
        own = [row for row in csv.DictReader(file) if row["observed"] == "False"]
    reward, cost = (np.cumsum([float(row[name]) for row in own]) for name in ("reward", "cost"))
    return Comparison(reward / cost, rules_of(problem), problem)


def rules_of(problem: Problem) -> dict[str, float]:
    """Mean reward per mean cost of every rule; the options are in the order of their length."""
    offered = problem.offered
    best = solve(problem)
    last = offered.shape[1] - 1
    random = (np.nanmean(np.where(offered, means, np.nan), axis=1) for means in (problem.reward, problem.cost))
    reward, cost = (float(problem.arrival @ mean) for mean in random)
    return {
        OPTIMUM: best.ratio,
        "greedy per kind": best.greedy_ratio,
        "always shortest": ratio_of(problem, np.argmax(offered, axis=1)),
        "always longest": ratio_of(problem, last - np.argmax(offered[:, ::-1], axis=1)),
        "at random": reward / cost,
    }


def comparison_text(found: Comparison) -> str:
    """A table of all of them, best first."""
    ratios = {ACHIEVED: float(found.so_far[-1]), **found.rules}
    rows = [
        [name, digits(ratio), "" if name == ACHIEVED else f"{ratios[ACHIEVED] / ratio:.2f} ×"]
        for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])
    ]
    return table(["rule", "reward / cost", "achieved is"], rows)


def save_comparison(found: Comparison, done: str, folder: Path) -> tuple[str, list[str]]:
    """The report and, where there is matplotlib, the figure; the report's text, and the files that are there now."""
    text = f"{done}\n\n{comparison_text(found)}\n\n{RULES_ARE_TOLD}"
    (folder / "report.txt").write_text(text + "\n", encoding="utf-8")
    if find_spec("matplotlib"):
        save_figure(found, folder / "figure.png")
    names = ("outcomes.csv", "report.txt", "figure.png")
    return text, [str(folder / name) for name in names if (folder / name).exists()]


def save_figure(found: Comparison, path: Path) -> None:
    """The ratio as it grew, and a line for every rule."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(np.arange(1, len(found.so_far) + 1), found.so_far, linewidth=2, label=f"{ACHIEVED}, learning on the way")
    for number, (name, ratio) in enumerate(found.rules.items(), 1):
        axes.axhline(ratio, color=f"C{number}", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel="tasks done", ylabel="reward per second so far", title="Trained for how long? Learned on the way")
    axes.set_ylim(0, 1.2 * max(found.rules.values()))
    axes.legend(loc="lower right", frameon=False)
    settings: dict[str, Any] = {"format": path.suffix[1:], "dpi": 150}
    replace_file(path, lambda new: figure.savefig(new, **settings))
