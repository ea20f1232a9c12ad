"""The report of `worthwhile train --data FOLDER`: tables and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from worthwhile.experiments.figure_5_worlds import SETUP, rules
from worthwhile.experiments.figures import add_legend, curve, panels, reference
from worthwhile.experiments.records import save_figure
from worthwhile.formatting import digits, table
from worthwhile.problem import Problem
from worthwhile.state import Floats
from worthwhile.tables import provenance, ratio_so_far, read_columns

CHOICES = """\
Our choices, where the paper says nothing: batches of 32 (rice 40, scenes 20), Adam with rate 0.001, ReLU, dropout 0.5,
macro one-vs-rest AUC, a Flatten in the scenes network, the number of tasks and runs, and DOL-RM's bounds, which come
from the pilot, as do those of the normalisation: no scheduler could know them in advance. The time to judge a network
is not counted; reading, building and compiling are set-up."""


def run_path(folder: Path, policy: str, run: int) -> Path:
    """The outcomes of one policy in one run."""
    name = "".join(letter if letter.isalnum() or letter in "-.=" else "_" for letter in policy)
    return folder / f"{name}.{run + 1}.csv"


def real_runs(plan: Any) -> dict[str, Floats]:
    """(runs, tasks): the ratio so far of every policy, of all runs that are complete."""
    ratios: dict[str, list[Floats]] = {}
    for policy in plan.policies:
        for run in range(plan.runs):
            path = run_path(plan.real, policy, run)
            so_far = ratio_so_far(path) if path.is_file() else np.zeros(0)
            if plan.length and len(so_far) == plan.length:
                ratios.setdefault(policy, []).append(so_far)
    return {policy: np.stack(of_runs) for policy, of_runs in ratios.items()}


def facts(plan: Any, problem: Problem, pilot: Path, replayed: Any) -> dict[str, Any]:
    """Everything, as plain values; the figure of the real runs is drawn on the way."""
    runs = real_runs(plan)
    if runs:
        save_figure(draw(runs, problem), plan.out, "figure-5", {"Title": "Figure 5", "Description": about(plan)})
    last = {policy: so_far[:, -1] for policy, so_far in runs.items()}
    return {
        "pilot": pilot_rows(pilot),
        "replayed": {name: list(values) for name, values in replayed.data["figure-5-costs"].items()},
        "costs": "seconds with set-up" if plan.floor is None else f"f = {plan.floor:g}",
        "tasks": plan.length,
        "real": {
            policy: {"runs": len(ratio), "ratio": float(ratio.mean()), "spread": float(ratio.std())}
            for policy, ratio in last.items()
        },
        "rules": rules(problem),
    }


def about(plan: Any) -> str:
    return str(provenance({"seed": plan.seed, "tasks": plan.length, "runs": plan.runs, "floor": plan.floor}))


def pilot_rows(path: Path) -> list[dict[str, Any]]:
    """Means of every task and number of epochs."""
    columns, _ = read_columns(path)
    cells: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    values = zip(*(map(float, columns[name]) for name in ("reward", "cost", SETUP)), strict=True)
    for kind, option, row in zip(columns["task_type"], columns["option"], values, strict=True):
        cells.setdefault((kind, int(option)), []).append(row)
    return [
        {
            "task": kind, "epochs": epochs, "trainings": len(rows),
            **dict(zip(("auc", "seconds", SETUP), np.mean(rows, axis=0).tolist(), strict=True)),
        }
        for (kind, epochs), rows in cells.items()
    ]  # fmt: skip


def draw(runs: Mapping[str, Floats], problem: Problem) -> Any:
    """Mean and spread over runs, as the paper's Figure 5."""
    figure, [panel] = panels(("really trained",), "tasks", "cumulative reward / cost")
    for policy, so_far in runs.items():
        tasks, mean, spread = np.arange(1, so_far.shape[1] + 1), so_far.mean(axis=0), so_far.std(axis=0)
        curve(panel, tasks, mean, policy, (mean - spread, mean + spread))
    reference(panel, tasks, np.full(len(tasks), rules(problem)["θ*"]), "optimum θ* of the pilot")
    add_legend(figure)
    return figure


def text(facts: Mapping[str, Any]) -> str:
    """The report."""
    parts = ["The pilot: means of really trained networks.", pilot_table(facts["pilot"])]
    parts += ["The pilot replayed: reward / cost at the end, and of rules that know all means.",
              replayed_table(facts["replayed"])]  # fmt: skip
    if facts["real"]:
        parts += [f"Really trained: {facts['tasks']} tasks per run, costs: {facts['costs']}.", real_table(facts)]
    return "\n\n".join([*parts, CHOICES])


def pilot_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        [row["task"], str(row["epochs"]), str(row["trainings"]), f"{row['auc']:.3f}", digits(row["seconds"]),
         digits(row[SETUP])]
        for row in rows
    ]  # fmt: skip
    return table(["task", "epochs", "trainings", "test AUC", "seconds", "set-up, s"], lines)


def replayed_table(columns: Mapping[str, list[Any]]) -> str:
    """A row for every rule and policy, a column for every way to count costs."""
    rows = [
        [name, *(value if isinstance(value, str) else digits(value) for value in values)]
        for name, values in columns.items()
        if name != "costs"
    ]
    return table(["", *columns["costs"]], rows)


def real_table(facts: Mapping[str, Any]) -> str:
    rows = [
        [policy, str(ends["runs"]), digits(ends["ratio"]), digits(ends["spread"])]
        for policy, ends in facts["real"].items()
    ]
    rows += [[f"{rule} (pilot)", "", digits(ratio), ""] for rule, ratio in facts["rules"].items()]
    return table(["policy", "runs", "reward / cost", "spread"], rows)
