"""Recorded tables: what there is to win in each table of a folder, and how fast policies learn it in replay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from worthwhile.experiments.base import OURS, Claim, Columns, Outcome, Scale, by_column, tidy_each
from worthwhile.experiments.comparison import Setting, default_claim, draw_learning, last_losses, settings_table
from worthwhile.optimum import Optimum, solve
from worthwhile.policies.registry import DEFAULT
from worthwhile.simulation.environments.base import Environment
from worthwhile.simulation.environments.replay import replay
from worthwhile.simulation.results import Results
from worthwhile.tables import COLUMNS, Table, read_table

TASKS, QUICK_TASKS = 100_000, 10_000
RUNS, QUICK_RUNS = 16, 4
WORK, QUICK_WORK = 60_000_000, 1_000_000  # runs × tasks × options of a kind; larger tables get fewer tasks
ENDINGS = (".csv", ".parquet")
POLICIES = ("kind-greedy", "omega-ucb", "dol-rm-anytime", DEFAULT)
FIRST = 100  # the curves begin here


def run(scale: Scale) -> Outcome:
    """Every table of the folder, by name."""
    folder = scale.tables
    paths = [] if folder is None else sorted(path for path in folder.iterdir() if path.suffix in ENDINGS)
    if not paths:
        return Outcome(missing(folder), {}, {}, ())
    tables = {path.stem: read_table(path) for path in paths}
    worlds = {name: replay(table) for name, table in tables.items()}
    best = {name: solve(world.problem) for name, world in worlds.items()}
    learned = {name: learn(scale, world) for name, world in worlds.items()}
    settings = [Setting({"table": name}, POLICIES, last_losses([results])) for name, results in learned.items()]
    learning = {name: [results] for name, results in learned.items()}
    return Outcome(
        words=words(learned, best),
        data={
            "headroom": headroom_table(tables, worlds, best),
            "recorded-tables": settings_table(settings),
            "recorded-tables-curves": tidy_each("table", learned, ("loss",)),
        },
        figures={"recorded-tables": draw_learning(learning, FIRST, min(2, len(learned)))},
        claims=[
            *(headroom(name, optimum) for name, optimum in best.items()),
            default_claim(settings, "Recorded tables"),
        ],
    )


def missing(folder: Path | None) -> str:
    """How to give tables."""
    why = "No folder of recorded tables was given" if folder is None else "The folder of recorded tables has none"
    return (
        f"{why}, so there is nothing to replay. Put tables (.parquet or .csv, with the columns {', '.join(COLUMNS)}; "
        "docs/problems.md describes them) into a folder and name it: "
        "worthwhile reproduce recorded-tables --tables FOLDER"
    )


def learn(scale: Scale, world: Environment) -> Results:
    """Policies in replay, with fewer tasks where kinds have many options."""
    runs, work = scale.pick(QUICK_RUNS, RUNS), scale.pick(QUICK_WORK, WORK)
    affordable = work // (runs * int(world.problem.offered.sum(axis=1).max()))
    return scale.simulate(world, POLICIES, max(FIRST, min(scale.pick(QUICK_TASKS, TASKS), affordable)), runs)


def headroom_table(
    tables: Mapping[str, Table], worlds: Mapping[str, Environment], best: Mapping[str, Optimum]
) -> Columns:
    """θ* of every table beside what simpler rules reach with everything known."""
    rows = [
        {
            "table": name,
            "rows": len(tables[name].kind),
            "kinds": len(tables[name].kinds),
            "most_options": int(worlds[name].problem.offered.sum(axis=1).max()),
            "crossed": tables[name].crossed,
            "best_ratio": optimum.ratio,
            "greedy_ratio": optimum.greedy_ratio,
            "single_ratio": optimum.single_ratio,
            "cheapest_ratio": optimum.cheapest_ratio,
            "degenerate": optimum.degenerate,
        }
        for name, optimum in best.items()
    ]
    return by_column(rows[0], (row.values() for row in rows))


def headroom(name: str, best: Optimum) -> Claim:
    """What simpler rules reach when everything is known, in % of the optimum."""
    others = {"best ratio of each kind": best.greedy_ratio, "best single option": best.single_ratio}
    others["cheapest option of each kind"] = best.cheapest_ratio
    shares = [
        f"{rule} {100.0 * ratio / best.ratio:.4g} %"
        for rule, ratio in others.items()
        if ratio is not None and best.ratio > 0.0
    ]
    degenerate = ["degenerate: a cost that every task has seems to be missing"] if best.degenerate else []
    return Claim(f"{name}: what there is to win", OURS, "; ".join([f"θ* = {best.ratio:,.5g}", *shares, *degenerate]))


def words(learned: Mapping[str, Results], best: Mapping[str, Optimum]) -> str:
    """What is replayed, and which tables mean little."""
    fewest, most = (int(pick(results.marks[-1] for results in learned.values())) for pick in (min, max))
    tasks = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    degenerate = [name for name, optimum in best.items() if optimum.degenerate]
    note = f" Degenerate, the cheapest option being best for every kind: {', '.join(degenerate)}." if degenerate else ""
    return (
        f"{len(learned)} recorded tables in replay, {tasks} tasks, {len(next(iter(learned.values())).runs)} runs: "
        "every decision is answered from the table. kind-greedy learns the best ratio of each kind, the rule that a "
        f"wrong objective suggests; DOL-RM and ω-UCB are told the exact bounds of the means, the default nothing.{note}"
    )
