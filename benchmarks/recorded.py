"""Recorded tables as environments; the tables are not part of this repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from worthwhile import Environment, Problem, replay
from worthwhile.tables import Table, is_crossed, read_table

TABLES = {  # name: added cost
    "cloud_vm": 0.0,
    "learning_curve_skill": 0.0,
    "inference_cpu": 0.0,
    "crowd_workers": 0.0,
    "image_training": 0.0,
    "bfcl_latency": 0.5,
    "evaldevquality_v06": 0.0,
    "routerbench_0shot_1pct": 0.001,
}
TEN_OPTIONS = ("bfcl_latency", "evaldevquality_v06")  # these have 58 and 67: ten per kind, evenly spaced by name


def recorded(folder: Path, name: str, added: float) -> Environment:
    """A recorded table as an environment."""
    table = read_table(folder / f"{name}.parquet")
    return replay(ten_per_kind(table) if name in TEN_OPTIONS else table, added_cost=added)


def ten_per_kind(table: Table) -> Table:
    """Ten options per kind, evenly spaced by name."""
    names, keep = np.array(table.options), np.zeros(len(table.kind), dtype=bool)
    for kind in range(len(table.kinds)):
        options = np.unique(table.option[table.kind == kind])
        by_name = options[np.argsort(names[options])]
        picked = by_name[np.linspace(0, len(by_name) - 1, 10).astype(int)]
        keep |= (table.kind == kind) & np.isin(table.option, picked)
    kept = {name: getattr(table, name)[keep] for name in ("kind", "option", "item", "reward", "cost")}
    return table._replace(**kept, crossed=is_crossed(kept["kind"], kept["option"], kept["item"]))


def shuffled(problem: Problem, seed: int) -> Problem:
    """The same problem with its options in another order."""
    order = np.random.default_rng(seed).permutation(len(problem.options))
    names = tuple(problem.options[place] for place in order)
    return replace(problem, options=names, reward=problem.reward[:, order], cost=problem.cost[:, order])
