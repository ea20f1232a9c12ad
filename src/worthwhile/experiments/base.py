"""What an experiment is: a `run` that turns constants into data, figures, words and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from worthwhile.policies.base import Policy
from worthwhile.problem import Problem
from worthwhile.simulation.environments.base import Drift, Environment
from worthwhile.simulation.results import Results
from worthwhile.simulation.simulator import simulate
from worthwhile.state import Floats

T = TypeVar("T")
Columns = Mapping[str, Sequence[Any]]

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
DEPENDS = "depends on what the paper leaves open"
OURS = "beyond the paper"
AHEAD = {REPRODUCED: "ahead of all", DEPENDS: "ahead of some", NOT_REPRODUCED: "ahead of none"}  # of several rivals
CLEAR = 2.0  # standard errors of a difference that make it one


class Scale(NamedTuple):
    """How much work an experiment may take, and what its random numbers start from."""

    quick: bool = False
    seed: int = 0
    tables: Path | None = None  # a folder of recorded tables
    progress: bool | None = None

    def pick(self, quick: T, full: T) -> T:
        """One of two constants."""
        return quick if self.quick else full

    def simulate(
        self,
        world: Environment | Drift | Problem,
        policies: Sequence[str] | Mapping[str, str | Policy],
        tasks: int,
        runs: int,
        **settings: Any,
    ) -> Results:
        """`worthwhile.simulate` with this seed; Ctrl-C stops the experiment, not only the simulation."""
        given = {"seed": self.seed, "progress": self.progress, **settings}
        results = simulate(world, policies, tasks=tasks, runs=runs, **given)
        if results.interrupted:
            raise KeyboardInterrupt
        return results


class Claim(NamedTuple):
    """A claim of the paper's or ours, the verdict of this run, and the numbers behind it."""

    claim: str
    verdict: str
    evidence: str


class Outcome(NamedTuple):
    """What an experiment found."""

    words: str  # a short paragraph; every number in it comes from this run
    data: Mapping[str, Columns]  # by the name of the CSV file, without its ending
    figures: Mapping[str, Any]  # matplotlib figures, by the name of their files
    claims: Sequence[Claim] = ()


class Experiment(NamedTuple):
    """One figure or table: its name on the command line, its title in the report, and how to make it."""

    name: str
    title: str
    run: Callable[[Scale], Outcome]


def tidy(results: Results, measures: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Mean and standard error over runs of some measures: one row per policy and mark."""
    runs, policies, marks = results.curves.shape[:3]
    table: dict[str, Sequence[Any]] = {
        "policy": [policy for policy in results.policies for _ in range(marks)],
        "tasks": np.tile(results.marks, policies).tolist(),
        "runs": [runs] * (policies * marks),
    }
    for name in measures:
        values = results.measure(name)
        error = values.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else np.zeros(values.shape[1:])
        table[name] = values.mean(axis=0).ravel().tolist()
        table[f"{name}_error"] = error.ravel().tolist()
    return table


def tidy_each(label: str, simulations: Mapping[str, Results], measures: Sequence[str]) -> Columns:
    """`tidy` of several simulations, one below the other; the first column has their names."""
    tables = {name: tidy(results, measures) for name, results in simulations.items()}
    names = [name for name, table in tables.items() for _ in table["policy"]]
    columns = next(iter(tables.values()))
    return {label: names, **{name: [value for table in tables.values() for value in table[name]] for name in columns}}


def verdict(holds: bool) -> str:
    """Of a claim that this run can decide."""
    return REPRODUCED if holds else NOT_REPRODUCED


def by_column(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Columns:
    """A table that was made row by row."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def plus_minus(mean: float, error: float, digits: int = 3) -> str:
    """A number with its standard error, for words and evidence."""
    return f"{float(f'{mean:.{digits}g}'):,g} ± {float(f'{error:.2g}'):,g}"


def lost(mean: float, error: float) -> str:
    """A loss in per cent of the optimum; beyond all of it, a number means nothing."""
    return "more than all there is" if mean > 100.0 else f"{plus_minus(mean, error)} %"


def outperforms(values: Floats, policies: Sequence[str], policy: str, rivals: Sequence[str]) -> str:
    """The verdict on "it outperforms its rivals": (runs, policies), more is better, compared run by run.

    A tie is no win; a win over some rivals only depends on which of them the paper means.
    """
    by_policy = dict(zip(policies, values.T, strict=True))
    ahead = [by_policy[policy] - by_policy[rival] for rival in rivals]
    wins = [float(gap.mean()) > CLEAR * float(gap.std(ddof=1)) / np.sqrt(len(gap)) for gap in ahead]
    return REPRODUCED if all(wins) else DEPENDS if any(wins) else NOT_REPRODUCED


def together(verdicts: Iterable[str]) -> str:
    """One verdict on a claim that was judged in several readings of it: theirs if they agree."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else DEPENDS
