"""The figures of the proof's terms: errors over T, the drift of θ and its convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from worthwhile.experiments.base import Columns
from worthwhile.experiments.figures import curve, name_lines, panels, reference
from worthwhile.experiments.proof_measures import ORDERS, Term, mean_and_spread, ratios, times
from worthwhile.simulation.results import Results

POWERS = {-0.5: "$T^{-1/2}$", -0.25: "$T^{-1/4}$", 0.5: "$T^{1/2}$", 0.75: "$T^{3/4}$"}
PARTS = {"epsilon": "dol-rm: ε(T), of rewards", "kappa": "dol-rm: κ(T), of costs"}


def draw_errors(rows: Sequence[Term]) -> Any:
    """Learning error with its two parts, Robbins–Monro gap."""
    titles = ("double-optimistic learning error", "Robbins–Monro gap")
    figure, axes = panels(titles, "T, tasks", "error of the ratio")
    for one, quantity in zip(axes, ("learning_error", "robbins_monro_gap"), strict=True):
        draw_quantity(one, rows, quantity)
    for quantity, name in PARTS.items():
        tasks, value, _, _ = columns_of(rows, "dol-rm", quantity)
        curve(axes[0], tasks, value, f"its part {quantity}", label=name)
    name_lines(figure, axes)
    return figure


def draw_drift(rows: Sequence[Term], drift: Columns) -> Any:
    """The sum of distances over T, V over the tasks of the longest runs."""
    last = int(drift["tasks"][-1])
    figure, axes = panels(("Σ √E(θ − θ*)²", f"V = ½ E(θ − θ*)² over {last:,} tasks"), "T, tasks", "sum over tasks")
    draw_quantity(axes[0], rows, "distance_sum")
    after = slice(1, None)  # a logarithmic axis has no 0
    curve(axes[1], drift["tasks"][after], drift["lyapunov"][after], "dol-rm")
    reference(axes[1], drift["tasks"][after], drift["lyapunov_bound"][after], "bound for dol-rm")
    axes[1].set(xscale="log", yscale="log", xlabel="tasks", ylabel="V")
    name_lines(figure, axes)
    return figure


def draw_price(longest: Mapping[str, Results]) -> Any:
    """Mean and spread of θ over runs."""
    figure, axes = panels(list(longest), "tasks", "ratio θ")
    for one, results in zip(axes, longest.values(), strict=True):
        at = times(results)[1:]
        for policy in results.policies:
            mean, spread = mean_and_spread(ratios(results, policy)[:, 1:])
            curve(one, at, mean, policy, (mean - spread, mean + spread))
        reference(one, at, np.full(len(at), results.best.ratio), "optimum θ*")
        one.set_xscale("log")
    name_lines(figure, axes)
    return figure


def draw_quantity(axes: Any, rows: Sequence[Term], quantity: str) -> None:
    """Both steps' measurements, the explicit bound, and a line of the paper's order above the measurements."""
    for policy in ("dol-rm", "dol-rm-anytime"):
        tasks, value, error, bound = columns_of(rows, policy, quantity)
        curve(axes, tasks, value, policy, (np.maximum(value - 2.0 * error, 0.01 * value), value + 2.0 * error))
        if policy == "dol-rm":
            order, name = ORDERS[quantity], POWERS[ORDERS[quantity]]
            reference(axes, tasks, bound, "bound for dol-rm")
            guide = 2.0 * value[0] * (tasks / tasks[0]) ** order
            reference(axes, tasks, guide, "_order")
            axes.annotate(f" {name}", (tasks[-1], guide[-1]), fontsize=9, va="center", annotation_clip=False)
    axes.set(xscale="log", yscale="log")


def columns_of(rows: Sequence[Term], policy: str, quantity: str) -> list[Any]:
    """Tasks, values, errors and bounds of one quantity."""
    chosen = [row for row in rows if (row.policy, row.quantity) == (policy, quantity)]
    return [np.array([getattr(row, name) for row in chosen], float) for name in ("tasks", "value", "error", "bound")]
