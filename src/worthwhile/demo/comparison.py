"""What simple rules would have earned on the outcomes of a recorded run, beside what was earned."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.formatting import digits, table
from worthwhile.optimum import ratio_of, solve
from worthwhile.plots import DOTS_PER_INCH, GRID, INK, REFERENCE, SIZE, THICK, THIN, Name, look_of, name_lines
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.environments import replay
from worthwhile.state import Floats
from worthwhile.tables import ratio_so_far, replace_file

EXPLANATION = """\
achieved: with everything that learning cost. The others are told all recorded
outcomes in advance, and earn what those come to on average; a rule can take
only what was recorded at least once."""
FIRST = 10  # task in the figure: before it, the ratio jumps
ACHIEVED, OPTIMUM = "achieved", "optimum θ*"


class Comparison(NamedTuple):
    """The ratio so far after every task, and the ratios of rules that know everything in advance."""

    so_far: Floats
    rules: Mapping[str, float]
    problem: Problem


def compare(path: Path) -> Comparison:
    """Replay the rules on a table that `Scheduler.export` wrote."""
    problem = replay(path).problem
    return Comparison(ratio_so_far(path), rules_of(problem), problem)


def rules_of(problem: Problem) -> dict[str, float]:
    """Mean reward per mean cost of every rule; the options are in the order of their length."""
    offered = problem.offered
    best = solve(problem)
    last = offered.shape[1] - 1
    each = (*problem.means_per_attempt, 1.0 - problem.failures[0])
    reward, cost, done = (np.nanmean(np.where(offered, means, np.nan), axis=1) for means in each)
    return {
        OPTIMUM: best.ratio,
        "greedy per kind": best.greedy_ratio,
        "always shortest": ratio_of(problem, np.argmax(offered, axis=1)),
        "always longest": ratio_of(problem, last - np.argmax(offered[:, ::-1], axis=1)),
        "at random": float(problem.arrival @ (reward / done)) / float(problem.arrival @ (cost / done)),
    }


def comparison_text(comparison: Comparison) -> str:
    """A table of all of them, best first."""
    ratios = {ACHIEVED: float(comparison.so_far[-1]), **comparison.rules}
    rows = [
        [name, digits(ratio), "" if name == ACHIEVED else f"{ratios[ACHIEVED] / ratio:.2f} ×"]
        for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])
    ]
    return table(["rule", "reward / cost", "achieved is"], rows)


def save_comparison(comparison: Comparison, done: str, folder: Path) -> tuple[str, list[str]]:
    """The report and, where there is matplotlib, the figure; the report's text, and the files that are there now."""
    text = f"{done}\n\n{comparison_text(comparison)}\n\n{EXPLANATION}"
    (folder / "report.txt").write_text(text + "\n", encoding="utf-8")
    if find_spec("matplotlib"):
        save_figure(comparison, folder / "figure.png")
    names = ("outcomes.csv", "report.txt", "figure.png")
    return text, [str(folder / name) for name in names if (folder / name).exists()]


def save_figure(comparison: Comparison, path: Path) -> None:
    """The ratio as it grew, and a line for every rule, each with its name beside its end."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE)
    axes = figure.add_axes((0.08, 0.11, 0.64, 0.81))
    tasks, first = len(comparison.so_far), min(FIRST, len(comparison.so_far))
    look, achieved = look_of(DEFAULT), float(comparison.so_far[-1])
    axes.plot(np.arange(first, tasks + 1), comparison.so_far[first - 1 :], color=look.colour, linewidth=THICK)
    axes.set(xlabel="tasks done", ylabel="reward per second so far", xlim=(first, max(tasks, first + 1)))
    axes.set_ylim(0, 1.1 * max(*comparison.rules.values(), *comparison.so_far[first - 1 :].tolist()))
    axes.set_title("How long is worth it? Learned on the way", loc="left", fontweight="bold", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=GRID, linewidth=0.7)
    names = [Name(f"{ACHIEVED}  {achieved:#.3g}", achieved, look)]
    for rule, ratio in comparison.rules.items():
        axes.axhline(ratio, color=INK, linewidth=THIN, linestyle=REFERENCE.dashes, zorder=1.5)
        names.append(Name(f"{rule}  {ratio:#.3g}", ratio, REFERENCE))
    name_lines(axes, names)
    settings: dict[str, Any] = {"format": path.suffix[1:], "dpi": DOTS_PER_INCH, "bbox_inches": "tight"}
    replace_file(path, lambda new: figure.savefig(new, **settings))
