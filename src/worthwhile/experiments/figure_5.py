"""Figure 5: the real-world experiment, replayed from a table of real trainings; every way to count them is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from worthwhile.experiments.base import (
    AHEAD,
    DEPENDS,
    OURS,
    REPRODUCED,
    Claim,
    Columns,
    Outcome,
    Scale,
    by_column,
    outperforms,
    plus_minus,
    tidy_each,
    together,
)
from worthwhile.experiments.comparison import mean_and_error, simulate_each
from worthwhile.experiments.figure_5_worlds import (
    OWN,
    Counting,
    counted,
    countings,
    nothing_to_schedule,
    replayed_as,
    rules,
    shuffled,
    table_in,
    world,
)
from worthwhile.experiments.figures import add_legend, panels, ratio_curves
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.results import Results
from worthwhile.simulation.simulator import marks_of
from worthwhile.state import Floats

TASKS, QUICK_TASKS = 10_000, 2_000
RUNS, QUICK_RUNS = 100, 20
FIRST = 10  # the figure begins here
EARLY = 100  # tasks, where the order of options still matters
PAPER = "dol-rm-anytime"
RIVALS = ("reward-ucb", "reward-ts", "ratio-ucb", "ratio-ts")  # both readings of the paper's UCB and TS
REAL = (PAPER, "ratio-ucb", "reward-ts", DEFAULT)  # what `worthwhile train` really trains unless told
POLICIES = (PAPER, *RIVALS, DEFAULT)
BANDED = (PAPER, "reward-ts", DEFAULT)  # more bands would hide each other
UNTOLD = "untold dol-rm"  # it is told no more than what follows from the normalisation
ORDER = Counting(0.05)  # how costs are counted where the order of options is looked at


class Replay(NamedTuple):
    """One way to count the table, and what the policies made of it."""

    counting: Counting
    results: Results


def run(scale: Scale) -> Outcome:
    """Replay the table in the folder of tables, or else the one that we have recorded."""
    return replayed(table_in(scale.tables) or OWN, scale)


def replayed(path: Path, scale: Scale) -> Outcome:
    """All policies with every way to count, and once more with the options shuffled."""
    tasks, runs = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS)
    marks = [*marks_of(None, tasks).tolist(), EARLY, tasks // 2]
    replays = {
        name: Replay(counting, scale.simulate(world(path, counting), asked(counting), tasks, runs, marks=marks))
        for name, counting in countings(path).items()
    }
    by_costs = {name: replay.results for name, replay in replays.items()}
    curves = tidy_each("costs", by_costs, ("ratio", "expected_ratio", "loss", "regret"))
    in_any_order = without_order(path, scale, tasks, runs)
    return Outcome(
        words=words(next(iter(by_costs.values())).problem, path),
        data={"figure-5": curves, "figure-5-costs": costs_table(by_costs)},
        figures={"figure-5": draw(by_costs)},
        claims=[
            *(outperformed(name, replay.results) for name, replay in replays.items()),
            without_prior_information(replays),
            order_of_options(replays[ORDER.label].results, in_any_order),
        ],
    )


def asked(counting: Counting) -> dict[str, str]:
    """The policies; DOL-RM also with what anybody knows of normalised numbers: rewards to 1, costs from f to 1."""
    known = {policy: policy for policy in POLICIES}
    if counting.floor is None:
        return known
    floor = counting.floor
    bounds = f"reward_max=1,cost_min={floor:g},price_min=0,price_max={1.0 / floor:g}"
    return known | {UNTOLD: f"{PAPER},{bounds}"}


def without_order(path: Path, scale: Scale, tasks: int, runs: int) -> Sequence[Results]:
    """One run on each of so many tables whose options come in an order of their own."""
    generator, table = np.random.default_rng(scale.seed), counted(path, ORDER)
    tables = [replayed_as(shuffled(table, generator)) for _ in range(runs)]
    return simulate_each(scale, tables, POLICIES, tasks, marks=[EARLY])


def costs_table(by_costs: Mapping[str, Results]) -> Columns:
    """One row per way to count costs: the rules, the policies at the end, and the best option of every kind."""
    rows = []
    for costs, results in by_costs.items():
        problem, best = results.problem, results.best.best.tolist()
        options = {f"best {kind}": problem.options[option] for kind, option in zip(problem.kinds, best, strict=True)}
        ends = {policy: results.mean("ratio")[policy] for policy in POLICIES}
        errors = {f"{policy} error": results.error("ratio")[policy] for policy in POLICIES}
        rows.append({"costs": costs, **rules(problem), **ends, **errors, **options})
    return by_column(rows[0], (row.values() for row in rows))


def draw(by_costs: Mapping[str, Results]) -> object:
    """Realised ratio with its spread, as in the paper; a panel for every way to count costs."""
    figure, axes = panels(list(by_costs), "tasks", "cumulative reward / cost", columns=2)
    for panel, results in zip(axes, by_costs.values(), strict=True):
        ratio_curves(panel, results, FIRST, BANDED, hidden=(UNTOLD,))
    add_legend(figure)
    return figure


def outperformed(costs: str, results: Results) -> Claim:
    """DOL-RM against both readings of both baselines by ΣR/ΣC; not where the shortest training is always best."""
    word, second = judged(results, "ratio"), judged(results, "regret")
    empty = nothing_to_schedule(results.problem)
    mean, error = results.mean("ratio"), results.error("ratio")
    ends = {policy: f"{policy} {plus_minus(mean[policy], error[policy], 4)}" for policy in POLICIES}
    best = max(RIVALS, key=mean.__getitem__)
    others = ", ".join(ends[policy] for policy in POLICIES if policy not in (PAPER, best))
    simple = ", ".join(f"{rule} {ratio:.4g}" for rule, ratio in rules(results.problem).items())
    reason = "; but always the shortest training is the optimum, so nothing was left to schedule" if empty else ""
    return Claim(
        f"Real training of five image classifiers: DOL-RM outperforms UCB and TS (replay, {costs})",
        DEPENDS if empty and word == REPRODUCED else word,
        f"{AHEAD[word]}: ΣR/ΣC {ends[PAPER]}, {ends[best]}{reason}; {others}; {simple}; T = {results.marks[-1]:,}, "
        f"{len(results.runs)} runs; by pseudo-regret {AHEAD[second]}",
    )


def judged(results: Results, measure: str, policy: str = PAPER) -> str:
    """Against all rivals at the last task, by the ratio, or by pseudo-regret, of which less is better."""
    sign = -1.0 if measure == "regret" else 1.0
    return outperforms(sign * results.measure(measure)[:, :, -1], results.policies, policy, RIVALS)


def second_half(results: Results) -> Floats:
    """(runs, policies): ΣR/ΣC of the second half of the tasks, by when a policy has settled."""
    half = int(np.searchsorted(results.marks, results.marks[-1] // 2))
    reward, cost = (results.measure(sums)[:, :, -1] - results.measure(sums)[:, :, half] for sums in ("reward", "cost"))
    ratio: Floats = reward / cost
    return ratio


def without_prior_information(replays: Mapping[str, Replay]) -> Claim:
    """Told only what normalisation implies, DOL-RM's later decisions against those of its rivals."""
    verdicts, parts = [], []
    for name, (counting, results) in replays.items():
        if counting.floor is not None:
            later = second_half(results)
            verdicts.append(outperforms(later, results.policies, UNTOLD, RIVALS))
            ends = {policy: mean_and_error(column) for policy, column in zip(results.policies, later.T, strict=True)}
            best = max(RIVALS, key=lambda rival: ends[rival][0])
            shown = ", ".join(f"{policy} {plus_minus(*ends[policy], 4)}" for policy in (UNTOLD, best, DEFAULT))
            parts.append(f"{name}: {AHEAD[verdicts[-1]]}, {shown}, θ* {results.best.ratio:.4g}")
    tasks, runs = results.marks[-1], len(results.runs)
    return Claim(
        "Even without any prior information, DOL-RM converges to a better policy",
        together(verdicts),
        "DOL-RM cannot run without T, r_max, c_min and bounds of θ; here it is told those of any normalised table (1, "
        f"f, 0 and 1/f), and the default nothing. ΣR/ΣC of the second half of {tasks:,} tasks, {runs} runs, beside the "
        f"best of UCB and TS: {'; '.join(parts)}",
    )


def order_of_options(listed: Results, in_any_order: Sequence[Results]) -> Claim:
    """How much of DOL-RM's early lead comes from ties that go to the first option, which is the shortest."""
    early = int(np.searchsorted(listed.marks, EARLY))
    shuffled_early = np.concatenate([results.measure("ratio")[:, :, 0] for results in in_any_order])
    parts = []
    for policy in (PAPER, "ratio-ucb", DEFAULT):
        first = mean_and_error(listed.measure("ratio")[:, listed.policies.index(policy), early])
        later = mean_and_error(shuffled_early[:, POLICIES.index(policy)])
        parts.append(f"{policy} {plus_minus(*first)} with the shortest first, {plus_minus(*later)} shuffled")
    return Claim(
        "Does the order in which options are listed matter? DOL-RM gives ties to the first, here the shortest training",
        OURS,
        f"ΣR/ΣC after {EARLY} tasks, {ORDER.label}, {len(shuffled_early)} runs: {'; '.join(parts)}",
    )


def words(problem: Problem, path: Path) -> str:
    """What is replayed."""
    shares = ", ".join(f"{kind} {share:.2g}" for kind, share in zip(problem.kinds, problem.arrival, strict=True))
    return (
        f"A replay, not live training: every decision is answered from {path.name}{origin(path)}. Kinds arrive with "
        f"these shares: {shares}. Rewards and costs are min-max normalised, with bounds from the same table, which no "
        "scheduler could know in advance: per kind, or over all kinds together, because the paper does not say which. "
        "A cost of 0 would make the ratio infinite, so the cost is f + (1 − f)·scaled; f decides the answer, hence "
        "three of them, and plain seconds. DOL-RM is told the bounds of the means. Bands: ± one standard deviation "
        "over runs."
    )


def origin(path: Path) -> str:
    """How the table came to be, if the file beside it says so."""
    beside = path.with_name(f"{path.name}.about.json")
    if not beside.is_file():
        return ""
    about = json.loads(beside.read_text(encoding="utf-8"))
    return f" ({about['words']})" if "words" in about else ""
