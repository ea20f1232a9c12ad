"""The drift lemma and Neely's lemma, task by task: with the squares that were measured instead of their worst case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from worthwhile.experiments.base import CLEAR, Claim, Columns, by_column, verdict
from worthwhile.experiments.proof_measures import prices
from worthwhile.optimum import bounds_of
from worthwhile.simulation.results import Results
from worthwhile.state import Floats
from worthwhile.theory import drift_constant

POLICY = "dol-rm"
WINDOWS_PER_DECADE = 5


class Steps(NamedTuple):
    """(runs, tasks): what the lemmas speak of, at every task."""

    lyapunov: Floats  # V_t
    drift: Floats  # V_{t+1} − V_t
    squares: Floats  # ½(r̂ − θč)²
    optimism: Floats  # w = (r̂ − r) + θ*(c − č)
    neely: Floats  # r̂ − θ*č − (θ − θ*)(č − c*): its mean is at least 0 by Neely's Lemma 3


def steps_of(results: Results) -> Steps:
    """From a simulation with a mark at every task."""
    column, best = results.policies.index(POLICY), results.best
    names = ("estimated_reward", "estimated_cost", "expected_reward", "expected_cost")
    sums = (results.measure(name)[:, column] for name in names)
    reward_estimate, cost_estimate, reward, cost = (np.diff(total, axis=1, prepend=0.0) for total in sums)
    price = prices(results, POLICY)
    distance, before = price - best.ratio, price[:, :-1]
    lyapunov = 0.5 * distance**2
    return Steps(
        lyapunov=lyapunov[:, :-1],
        drift=np.diff(lyapunov, axis=1),
        squares=0.5 * (reward_estimate - before * cost_estimate) ** 2,
        optimism=reward_estimate - reward + best.ratio * (cost - cost_estimate),
        neely=reward_estimate - best.ratio * cost_estimate - distance[:, :-1] * (cost_estimate - best.cost),
    )


def lemma_4_margin(results: Results, steps: Steps) -> Floats:
    """(runs, tasks): right side minus left side of the drift lemma, b being ½(r̂ − θč)² as it was."""
    _, _, c_min, _, low, high = bounds_of(results.problem)
    step = 1.0 / (c_min * math.sqrt(results.marks[-1]))  # η
    pushed = step**2 * steps.squares + (high - low) * step * steps.optimism
    margin: Floats = pushed - 2.0 * c_min * step * steps.lyapunov - steps.drift
    return margin


def windows(tasks: int) -> list[int]:
    """Where windows begin: every task at first, then some per decade."""
    count = int(np.ceil(np.log10(tasks) * WINDOWS_PER_DECADE))
    return np.unique(np.geomspace(1, tasks, count + 1).round().astype(int))[:-1].tolist()  # type: ignore[no-any-return]


def per_window(values: Floats, starts: Sequence[int]) -> tuple[Floats, Floats]:
    """(windows,): mean per task over tasks and runs, and its standard error over runs."""
    lengths = np.diff([*starts, values.shape[1] + 1])
    means = np.add.reduceat(values, np.array(starts) - 1, axis=1) / lengths
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))


def drift_table(measured: Mapping[str, Results]) -> Columns:
    """One row per problem and window of tasks: V, both lemmas' margins with their errors, and b."""
    rows = []
    for problem, results in measured.items():
        steps, starts = steps_of(results), windows(int(results.marks[-1]))
        quantities = (steps.lyapunov, lemma_4_margin(results, steps), steps.neely, steps.squares)
        columns = [part for values in quantities for part in per_window(values, starts)]
        worst = drift_constant(results.problem)
        for first, *row in zip(starts, *(column.tolist() for column in columns), strict=True):
            rows.append((problem, len(results.runs), first, *row, worst))
    names = ("lyapunov", "lemma_4_margin", "neely_margin", "b")
    each = [part for name in names for part in (name, f"{name}_error")]
    return by_column(("problem", "runs", "tasks", *each, "b_at_worst"), rows)


def lemma_4(table: Columns) -> Claim:
    """Whether the right side is ever clearly below the left one."""
    largest = [max(b) / worst for b, worst in by_problem(table, "b", "b_at_worst")]
    return Claim(
        "Lemma 4: the Lyapunov drift is at most −2 c_min η E V + η² b + θ_gap η E[optimism]",
        verdict(not broken(table, "lemma_4_margin")),
        f"with b = ½E(r̂ − θč)² as measured, task by task, {held(table, 'lemma_4_margin')}; its largest value is "
        f"{', '.join(f'{share:.2g}' for share in largest)} of the worst case that the bound takes",
    )


def neely(table: Columns) -> Claim:
    """Lemma 3 of Neely (2021), in the paper's appendix."""
    return Claim(
        "Appendix, Neely's Lemma 3: E[r̂ − θ*č] is at least E[(θ − θ*)(č − c*)]",
        verdict(not broken(table, "neely_margin")),
        held(table, "neely_margin"),
    )


def broken(table: Columns, margin: str) -> list[tuple[str, int]]:
    """Problems and windows in which a margin is below 0 by more than its chance."""
    columns = (table[name] for name in ("problem", "tasks", margin, f"{margin}_error"))
    return [(name, first) for name, first, mean, error in zip(*columns, strict=True) if mean < -CLEAR * error]


def held(table: Columns, margin: str) -> str:
    """How often it held, and where not."""
    failed, problems = broken(table, margin), dict.fromkeys(table["problem"])
    counted = f"it holds in {len(table['tasks']) - len(failed)} of {len(table['tasks'])} windows of tasks"
    where = f" (not on {'; '.join(f'{name} from task {first:,}' for name, first in failed[:3])})" if failed else ""
    runs = ", ".join(dict.fromkeys(f"{count:,}" for count in table["runs"]))
    return f"{counted} on {len(problems)} problems{where}, within two standard errors over {runs} runs"


def by_problem(table: Columns, values: str, constant: str) -> list[tuple[list[float], float]]:
    """The values of each problem, and a number that is the same in all its rows."""
    grouped: dict[str, tuple[list[float], float]] = {}
    for name, value, same in zip(table["problem"], table[values], table[constant], strict=True):
        grouped.setdefault(name, ([], same))[0].append(value)
    return list(grouped.values())


def carried_on(results: Results) -> tuple[Floats, Floats]:
    """E V_t at every task, and the lemma's bound on it: its inequality, started from V_1 and carried on."""
    _, _, c_min, _, low, high = bounds_of(results.problem)
    step, steps = 1.0 / (c_min * math.sqrt(results.marks[-1])), steps_of(results)
    pushed = (step**2 * steps.squares + (high - low) * step * steps.optimism).mean(axis=0)
    lyapunov = steps.lyapunov.mean(axis=0)
    limit = np.empty(len(lyapunov))
    limit[0] = lyapunov[0]
    for task in range(1, len(limit)):
        limit[task] = (1.0 - 2.0 * c_min * step) * limit[task - 1] + pushed[task - 1]
    return lyapunov, limit
