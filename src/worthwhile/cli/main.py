"""The `worthwhile` command: reads its arguments, calls the library, prints what it found."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from worthwhile import __version__, plots
from worthwhile.cli import live, serve, text, work
from worthwhile.cli.arguments import TABLE_FORMATS, Parser, change, check_target, delay, problem_from, whole
from worthwhile.compiling import ENGINES
from worthwhile.errors import BadParameter, Error, MissingExtra
from worthwhile.execution.clusters import executor_on
from worthwhile.policies.registry import DEFAULT, LIST
from worthwhile.problem import Problem
from worthwhile.simulation.environments import Drift, Environment, replay, synthetic
from worthwhile.simulation.results import Results
from worthwhile.simulation.simulator import simulate

USUAL = (DEFAULT, "dol-rm-anytime", "reward-ucb", "ratio-ts", "omega-ucb", "kind-greedy", "oracle")
INTERRUPTED = 130  # as shells count: 128 + SIGINT
NOBODY_READS = 141  # 128 + SIGPIPE
BAR = "a bar on standard error (where a person watches)"

OVERVIEW = """\
Tasks of several kinds arrive; each is done by one of its options, which brings a reward and has a cost. Worthwhile
learns which options earn the most total reward per total cost.

examples:
  worthwhile solve seven-kinds                 the best possible, when everything is known
  worthwhile simulate seven-kinds              how close policies get that know nothing
  worthwhile replay measurements.parquet       the same on a table of recorded rewards and costs
  worthwhile policies                          what there is to choose from
  worthwhile reproduce --quick                 every result of the paper, in a report

for real tasks, one at a time:
  worthwhile decide tasks.db weather 1 5 10    an option for a task of the kind weather, and the task's id
  worthwhile report tasks.db 1 --reward 0.9 --cost 3.2
  worthwhile status tasks.db                   what it has learned
  worthwhile serve --store tasks.db            the same over HTTP, with a dashboard
  worthwhile work jobs:train --store x.db      run them, measure them, report them
  worthwhile train                             trainings of real networks, on data that scikit-learn brings along
"""
SOLVE = """\
PROBLEM is a TOML file, a recorded table (.csv, .parquet), or a name: seven-kinds, two-kinds-P (P: share of the first
kind), random:FAMILY:SEED (families: unit, train, big, dollars). A TOML file looks like this:

  units = { reward = "AUC", cost = "s" }
  noise = { reward = { sd = 0.1 }, cost = { family = "lognormal", cv = 0.2 } }
  [[kind]]
  name = "photos"
  arrival = 0.7
  options = { short = { reward = 0.8, cost = 10.0 }, long = { reward = 0.9, cost = 40.0 } }
  [[kind]]
  name = "texts"
  arrival = 0.3
  options = { short = { reward = 0.6, cost = 5.0 } }

examples:
  worthwhile solve two-kinds-0.8
  worthwhile solve problem.toml --tasks 1e6 --json
  worthwhile solve problem.toml --added-cost 2     what if every task cost 2 more, whatever option it takes?
"""
SIMULATE = """\
examples:
  worthwhile simulate seven-kinds --tasks 1e5 --runs 40 --plot curves.png
  worthwhile simulate problem.toml --policy ratio-imed --policy dol-rm,noise=0.5 --out runs.parquet
  worthwhile simulate problem.toml --policy mymodule:MyPolicy,alpha=2     your own, from this folder
  worthwhile simulate random:train:3 --policy all --delay 0-100                 feedback late and out of order
  worthwhile simulate two-kinds-0.8 --then two-kinds-0.2@5000                   arrivals that change on the way

Ctrl-C keeps the runs that are finished: they are shown and saved as usual, and the exit code is 130.
"""
REPLAY = """\
TABLE has the columns task_type, item_id, option, reward, cost: one row for every time that an option did an item.

examples:
  worthwhile replay measurements.parquet
  worthwhile replay measurements.csv --added-cost 0.5 --cost-unit s --policy all --tasks 1e5
"""
REPRODUCE = """\
Runs the paper's experiments and our own, each into a folder of its own below --out: data as CSV, figures as PNG and
SVG, words and verdicts in outcome.json. report.html shows all that are there. Same seed, same bytes in every CSV.

examples:
  worthwhile reproduce --list                      what there is
  worthwhile reproduce --quick                     everything, in about a minute
  worthwhile reproduce figure-4a theorem           two of them, in full
  worthwhile reproduce --tables recorded --seed 1  with a folder of recorded tables, and other random numbers

Ctrl-C keeps the experiments that are finished; the exit code is then 130.
"""

HELP: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}


def parser() -> Parser:
    """All commands and their options."""
    top = Parser("worthwhile", description="Learn to earn the most reward per cost.", epilog=OVERVIEW, **HELP)
    top.add_argument("--version", action="version", version=f"worthwhile {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    one = commands.add_parser("solve", help="the best possible ratio, when everything is known", epilog=SOLVE, **HELP)
    one.add_argument("problem", metavar="PROBLEM")
    one.add_argument("--tasks", type=whole, default=100_000, metavar="T", help="for the theorem's bound (100000)")
    one.add_argument("--added-cost", type=float, default=0.0, metavar="X", help="let every task cost so much more")
    one.set_defaults(run=run_solve)

    one = commands.add_parser("simulate", help="try policies on a problem", epilog=SIMULATE, **HELP)
    one.add_argument("problem", metavar="PROBLEM", help="as for `worthwhile solve`")
    one.add_argument(
        "--then", type=change, action="append", default=[], metavar="PROBLEM@TASK", help="drift: another from then on"
    )
    add_simulation_options(one)
    one.set_defaults(run=run_simulate)

    one = commands.add_parser("replay", help="try policies on a recorded table", epilog=REPLAY, **HELP)
    one.add_argument("table", metavar="TABLE", help=".parquet or .csv")
    one.add_argument("--added-cost", type=float, default=0.0, metavar="X", help="let every task cost so much more")
    one.add_argument("--reward-unit", default="", metavar="UNIT", help="shown in tables and figures")
    one.add_argument("--cost-unit", default="", metavar="UNIT")
    add_simulation_options(one)
    one.set_defaults(run=run_replay)

    one = commands.add_parser("reproduce", help="every figure and table of the paper", epilog=REPRODUCE, **HELP)
    one.add_argument("names", nargs="*", metavar="NAME", help="experiments (all of them)")
    one.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    one.add_argument("--quick", action="store_true", help="fewer tasks and runs: about a minute")
    one.add_argument(
        "--out", type=Path, default=Path("results/reproduce"), metavar="FOLDER", help="(results/reproduce)"
    )
    one.add_argument("--seed", type=whole, default=0, metavar="S", help="same seed, same numbers (0)")
    one.add_argument("--tables", type=Path, metavar="FOLDER", help="recorded tables to replay: .parquet, .csv")
    one.add_argument("--progress", action=argparse.BooleanOptionalAction, help=BAR)
    one.set_defaults(run=run_reproduce)

    one = commands.add_parser("policies", help="list the policies and their parameters", **HELP)
    one.set_defaults(run=run_policies)
    live.add_commands(commands, HELP, show)
    serve.add_commands(commands, HELP, show)
    work.add_commands(commands, HELP, show)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    return top


def add_simulation_options(command: argparse.ArgumentParser) -> None:
    """What `simulate` and `replay` share."""
    add, usual = command.add_argument, ", ".join(USUAL)
    add("--policy", action="append", metavar="NAME", help=f"repeatable; also NAME,parameter=value, or all ({usual})")
    add("--tasks", type=whole, default=10_000, metavar="T", help="per run (10000)")
    add("--runs", type=whole, default=20, metavar="N", help="with different random numbers (20)")
    add("--seed", type=whole, default=0, metavar="S", help="same seed, same numbers (0)")
    add("--delay", type=delay, default=0, metavar="D|A-B", help="feedback comes so many tasks late")
    add("--threads", type=whole, metavar="N", help="one per core unless told")
    add("--engine", choices=ENGINES, help="compiled where numba is installed")
    add("--out", type=Path, metavar="FILE", help="save the curves of all runs: .parquet, .csv")
    add("--plot", type=Path, metavar="FILE", help="save a figure: .png, .svg")
    add("--measure", choices=tuple(plots.MEASURES), default="loss", help="what the figure shows (loss)")
    add("--progress", action=argparse.BooleanOptionalAction, help=BAR)
    work.add_place(command, None)


def run_solve(arguments: argparse.Namespace) -> int:
    """worthwhile solve"""
    problem = problem_from(arguments.problem).with_added_cost(arguments.added_cost)
    facts = text.problem_facts(problem, arguments.tasks)
    show(facts, text.problem_text(facts), arguments.json)
    return 0


def run_simulate(arguments: argparse.Namespace) -> int:
    """worthwhile simulate"""
    stages = [(0, problem_from(arguments.problem)), *arguments.then]
    if stages[-1][0] >= max(1, arguments.tasks):
        raise BadParameter(f"--then …@{stages[-1][0]}: there are only {arguments.tasks} tasks; raise --tasks")
    name = " then ".join(f"{problem.name}@{start}" if start else problem.name for start, problem in stages)
    drift = Drift([(start, synthetic(problem)) for start, problem in stages])
    return try_policies(drift, replace(stages[-1][1], name=name), arguments)


def run_replay(arguments: argparse.Namespace) -> int:
    """worthwhile replay"""
    environment = replay(
        arguments.table, arguments.added_cost, reward_unit=arguments.reward_unit, cost_unit=arguments.cost_unit
    )
    return try_policies(environment, environment.problem, arguments)


def run_policies(arguments: argparse.Namespace) -> int:
    """worthwhile policies"""
    facts = text.policies_facts()
    show(facts, text.policies_text(facts), arguments.json)
    return 0


def run_reproduce(arguments: argparse.Namespace) -> int:
    """worthwhile reproduce"""
    from worthwhile.experiments import Scale
    from worthwhile.experiments import reproduce as experiments  # many files, which the other commands do not need

    wanted = experiments.chosen(arguments.names)
    if arguments.list:
        listed: text.Facts = {"experiments": [{"name": one.name, "title": one.title} for one in wanted]}
        show(listed, experiments.listing(wanted), arguments.json)
        return 0
    check_target(arguments.out / "report.html", (".html",), "matplotlib", "plot")
    check_progress(arguments.progress)
    find_own_policies()
    scale = Scale(arguments.quick, arguments.seed, arguments.tables, arguments.progress)
    tell = say if arguments.json else partial(print, flush=True)
    found = experiments.reproduce(wanted, scale, arguments.out, tell)
    show(experiments.facts(found), experiments.summary(found), arguments.json)
    if found.interrupted:
        say(f"interrupted: {len(found.records)} of {len(wanted)} experiments are finished and kept in {arguments.out}")
    return INTERRUPTED if found.interrupted else 1 if found.failed else 0


def check_progress(wanted: bool | None) -> None:
    """Refuse to promise a bar that could not be shown."""
    if wanted and find_spec("tqdm") is None:
        raise MissingExtra("a progress bar", "progress")


def find_own_policies() -> None:
    """Let policies be imported from the current folder; it comes last, so that no installed module is hidden."""
    sys.path.append(os.getcwd())


def try_policies(environment: Environment | Drift, problem: Problem, arguments: argparse.Namespace) -> int:
    """Simulate, save, print: also what is finished when Ctrl-C comes. The problem is what the optimum is named for."""
    check_target(arguments.out, TABLE_FORMATS, "pyarrow", "tables")
    check_target(arguments.plot, plots.FORMATS, "matplotlib", "plot")
    check_progress(arguments.progress)
    find_own_policies()
    with (
        nullcontext()
        if arguments.on is None
        else executor_on(arguments.on, arguments.address, arguments.slots) as where
    ):
        results = simulate(
            environment,
            policies_from(arguments.policy),
            tasks=arguments.tasks,
            runs=arguments.runs,
            seed=arguments.seed,
            delay=arguments.delay,
            threads=arguments.threads,
            engine=arguments.engine,
            progress=arguments.progress,
            executor=where,
        )
    if len(results.runs):
        report(replace(results, problem=problem), arguments)
    if results.interrupted:
        say(f"interrupted: {len(results.runs)} of {arguments.runs} runs are finished and kept")
    return INTERRUPTED if results.interrupted else 0


def policies_from(names: list[str] | None) -> list[str]:
    """The policies asked for; `all` stands for the whole list."""
    asked = names or list(USUAL)
    return [name for one in asked for name in (LIST if one == "all" else [one])]


def report(results: Results, arguments: argparse.Namespace) -> None:
    """Files first, so that they are there even if nobody reads the tables."""
    saved = [*(results.save(arguments.out) if arguments.out else ())]
    saved += [plots.plot(results, arguments.plot, arguments.measure)] if arguments.plot else []
    facts = text.results_facts(results)
    show(facts, text.results_text(facts), arguments.json)
    if saved:
        say(f"saved {', '.join(map(str, saved))}")


def show(facts: text.Facts, words: str, as_json: bool) -> None:
    """The answer, for a machine or a person."""
    print(json.dumps(text.for_json(facts), indent=2, allow_nan=False) if as_json else words)


def say(message: str) -> None:
    """One line beside the answer."""
    print(f"worthwhile: {' '.join(message.split())}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without θ still gets its table
    try:
        arguments = parser().parse_args(argv)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except Error as reason:
        say(str(reason))
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
        return NOBODY_READS
    except OSError as reason:
        if reason.filename is not None:
            say(f"{reason.filename}: {reason.strerror}")
            return 2
        say(f"cannot write the answer: {reason}")  # a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
