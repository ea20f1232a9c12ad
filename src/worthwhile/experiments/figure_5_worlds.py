"""The table of Figure 5 as worlds to replay: every way to count its rewards and costs, its options in any order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from worthwhile.experiments.normalisation import normalised
from worthwhile.goals.frontier import Choice
from worthwhile.optimum import ratio_of, solve
from worthwhile.problem import Problem
from worthwhile.simulation.environments.base import Environment
from worthwhile.simulation.environments.replay import replay
from worthwhile.tables import Table, as_table, numbers, read_columns

TABLE = "image_training"  # .parquet or .csv, in the folder given with --tables
OWN = Path(__file__).with_name(f"{TABLE}.csv")  # what we have recorded: docs/training.md
ARRIVAL = {"satellite": 0.1, "weather": 0.4, "rice": 0.2, "scenes": 0.2, "cats_dogs": 0.1}
FLOORS = (0.01, 0.05, 0.1)
SETUP = "setup"  # the column with the seconds before the training itself


class Counting(NamedTuple):
    """How rewards and costs are counted: normalised with a floor, per kind or over all kinds together, or as they are.

    The paper says "min-max normalization", and no more.
    """

    floor: float | None = None  # None: the AUC as it is, and seconds
    together: bool = False

    @property
    def label(self) -> str:
        """In words, but for the seconds, which need the table."""
        return f"{'all kinds together' if self.together else 'per kind'}, f = {self.floor:g}"


COUNTINGS = tuple(Counting(floor, together) for floor in FLOORS for together in (False, True))
SECONDS = Counting()


def table_in(folder: Path | None) -> Path | None:
    """The recorded table, if it is there."""
    files = [] if folder is None else [folder / f"{TABLE}{ending}" for ending in (".parquet", ".csv")]
    return next((file for file in files if file.is_file()), None)


def countings(path: Path) -> dict[str, Counting]:
    """All of them, by name."""
    seconds = "seconds with set-up" if SETUP in read_columns(path)[0] else "seconds"
    return {counting.label: counting for counting in COUNTINGS} | {seconds: SECONDS}


def worlds(path: Path) -> dict[str, Environment]:
    """The table, counted in every way."""
    return {name: world(path, counting) for name, counting in countings(path).items()}


def world(path: Path, counting: Counting) -> Environment:
    """The table counted in one way, as a world."""
    return replayed_as(counted(path, counting))


def counted(path: Path, counting: Counting) -> Table:
    """The table with normalised rewards and costs, or with seconds and the set-up where it was recorded."""
    columns, first_row = read_columns(path)
    table = as_table(path.stem, columns, str(path), first_row)
    if counting.floor is not None:
        return normalised(table, counting.floor, counting.together)
    setup = numbers(columns[SETUP], f"{path}, column {SETUP}", first_row) if SETUP in columns else 0.0
    return table._replace(cost=table.cost + setup)


def replayed_as(table: Table) -> Environment:
    """The paper's arrivals, or, where there are other kinds, their shares of the items."""
    return replay(table, arrival=arrivals(table.kinds) if set(table.kinds) <= set(ARRIVAL) else None)


def shuffled(table: Table, generator: np.random.Generator) -> Table:
    """The same options in another order, for policies that take the first of equals."""
    order = generator.permutation(len(table.options))
    place = np.argsort(order)
    return table._replace(options=tuple(table.options[old] for old in order), option=place[table.option])


def arrivals(kinds: Sequence[str]) -> dict[str, float]:
    """The paper's arrival probabilities, shared out among the kinds that there are."""
    total = math.fsum(ARRIVAL[kind] for kind in kinds)
    return {kind: ARRIVAL[kind] / total for kind in kinds}


def rules(problem: Problem) -> dict[str, float]:
    """What simple rules earn that are told all means."""
    best = solve(problem)
    return {
        "θ*": best.ratio,
        "greedy per kind": best.greedy_ratio,
        "always shortest": ratio_of(problem, shortest(problem)),
    }


def shortest(problem: Problem) -> Choice:
    """The option of the least mean cost of every kind."""
    cheapest: Choice = np.nanargmin(problem.cost, axis=1)
    return cheapest


def nothing_to_schedule(problem: Problem) -> bool:
    """Whether always the shortest training is the optimum."""
    earned = rules(problem)
    return earned["always shortest"] >= earned["θ*"] * (1.0 - 1e-9)
