"""The commands that need no store: solve, simulate, replay, reproduce, policies."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from worthwhile import plots
from worthwhile.cli import goal_text, text, work
from worthwhile.cli.arguments import (
    INTERRUPTED,
    TABLE_FORMATS,
    add_goal,
    add_map,
    change,
    check_target,
    delay,
    goal_from,
    import_from_here,
    problem_from,
    table_from,
    whole,
)
from worthwhile.cli.help import add_parser
from worthwhile.cli.output import say, show
from worthwhile.compiling import ENGINES
from worthwhile.errors import BadParameter, MissingExtra
from worthwhile.execution.clusters import executor_on
from worthwhile.optimum import solve
from worthwhile.plots.frontier import plot_frontier
from worthwhile.policies.registry import DEFAULT, LIST
from worthwhile.problem import Problem
from worthwhile.simulation.environments import Drift, Environment, replay, synthetic
from worthwhile.simulation.results import Results
from worthwhile.simulation.simulator import simulate

USUAL = (DEFAULT, "dol-rm-anytime", "reward-ucb", "ratio-ts", "omega-ucb", "kind-greedy", "oracle")
TASKS = 10_000
BAR = "show a progress bar (yes, in a terminal)"
SEED = "same seed, same numbers (0)"
SOLVE = """\
Best is the largest ratio of total reward to total cost, unless you say otherwise:

  --floor Q                the least cost at which the mean reward per task is at least Q
  --floor "KIND=Q"         the same for one kind; repeat it for others, kinds without a floor take what is cheapest
  --budget B               the most reward at a mean cost per task of at most B, --added-cost included
  --goal ratio --floor Q   the best ratio of those that keep the floor; --budget and KIND=Q work alike
  --goal cost|reward       which of the two, where there is a floor and a budget

Where a limit lies between two options, the answer is a mix: so many per cent of the tasks take the one, the others the
other. A limit that cannot be kept is said under Advice, with the best that can be reached; the exit code is still 0.

PROBLEM is a TOML file, a recorded table (.csv, .parquet), or a name: seven-kinds, two-kinds-P (P: share of the first
kind), random:FAMILY:SEED (families: unit, train, big, dollars). A TOML file looks like this; it may also have a goal,
above its first kind, as in floor = 0.75, which holds unless the command line names another:

  units = { reward = "AUC", cost = "s" }
  noise.reward.sd = 0.1
  noise.cost = { family = "lognormal", cv = 0.2 }
  [[kind]]
  name = "photos"
  arrival = 0.7
  options.short = { reward = 0.8, cost = 10.0 }
  options.long = { reward = 0.9, cost = 40.0 }
  [[kind]]
  name = "texts"
  arrival = 0.3
  options.short = { reward = 0.6, cost = 5.0 }

examples:
  worthwhile solve two-kinds-0.8
  worthwhile solve problem.toml --tasks 1e6 --json
  worthwhile solve problem.toml --added-cost 2     what if every task cost 2 more, whatever its option?
  worthwhile solve problem.toml --floor 0.75       as good as that, as cheaply as possible
  worthwhile solve problem.toml --floor photos=0.85 --floor texts=0.6
  worthwhile solve problem.toml --budget 20        as good as possible, for that on average
"""
SIMULATE = """\
examples:
  worthwhile simulate seven-kinds --tasks 1e5 --runs 40 --plot curves.png
  worthwhile simulate problem.toml --policy ratio-imed --policy dol-rm,noise=0.5 --out runs.parquet
  worthwhile simulate problem.toml --policy mymodule:MyPolicy,alpha=2           your own policy, in this folder
  worthwhile simulate random:train:3 --policy all --delay 0-100                 late feedback, out of order
  worthwhile simulate two-kinds-0.8 --then two-kinds-0.2@5000                   other arrivals from task 5000 on

After Ctrl-C the finished runs are shown and saved as usual; the exit code is 130.
"""
REPLAY = """\
TABLE has the columns task_type, item_id, option, reward, cost: one row for each time an item was done with an option.
Where a column `outcome` says failed or lost, the row needs no reward: that time, the option failed at this cost.

examples:
  worthwhile replay measurements.parquet
  worthwhile replay measurements.csv --added-cost 0.5 --cost-unit s --policy all --tasks 1e5
  worthwhile replay log.csv --map kind=task,option=model,reward=score,cost=usd
  worthwhile replay measurements.csv --features items.csv --one-pass       policies that look at features see them
"""
REPRODUCE = """\
Runs the paper's experiments and our own. Each writes a folder below --out: data as CSV, figures as PNG and SVG, words
and verdicts in outcome.json; report.html shows them all. The same seed writes the same bytes in every CSV.

examples:
  worthwhile reproduce --list                      the names of all experiments
  worthwhile reproduce --quick                     everything, in about a minute
  worthwhile reproduce figure-4a theorem           two of them, at full length
  worthwhile reproduce --tables recorded --seed 1   with your recorded tables, and other random numbers

After Ctrl-C the finished experiments are kept; the exit code is 130.
"""


def add_commands(commands: Any) -> None:
    """The commands on a problem, a recorded table or the paper's experiments."""
    command = add_parser(commands, "solve", SOLVE)
    command.add_argument("problem", metavar="PROBLEM")
    command.add_argument("--tasks", type=whole, default=100_000, metavar="T", help="for the theorem's bound (100000)")
    add_cost(command)
    add_goal(command)
    figure = "save a figure of what the goal means, reward against cost: .png, .svg"
    command.add_argument("--plot", type=Path, metavar="FILE", help=figure)
    command.set_defaults(run=run_solve)

    command = add_parser(commands, "simulate", SIMULATE)
    command.add_argument("problem", metavar="PROBLEM", help="a name or a file; `worthwhile solve --help` lists them")
    then = "switch to another problem at this task; repeatable"
    command.add_argument("--then", type=change, action="append", default=[], metavar="PROBLEM@TASK", help=then)
    add_simulation_options(command)
    command.set_defaults(run=run_simulate)

    command = add_parser(commands, "replay", REPLAY)
    command.add_argument("table", metavar="TABLE", help=".parquet, .csv or .jsonl")
    add_map(command)
    add_cost(command)
    known = "what is known of every item: a column item_id, and one for each feature; .parquet, .csv or .jsonl"
    command.add_argument("--features", type=Path, metavar="FILE", help=known)
    once = f"every item once, in random order; --tasks is then all of them unless given (with replacement, {TASKS})"
    command.add_argument("--one-pass", action="store_true", help=once)
    command.add_argument("--reward-unit", default="", metavar="UNIT", help="shown in tables and figures")
    command.add_argument("--cost-unit", default="", metavar="UNIT", help="shown in tables and figures")
    add_simulation_options(command)
    command.set_defaults(run=run_replay, tasks=None)

    add_reproduce(commands)
    command = add_parser(commands, "policies")
    command.set_defaults(run=run_policies)


def add_cost(command: argparse.ArgumentParser) -> None:
    command.add_argument("--added-cost", type=float, default=0.0, metavar="X", help="added to every task's cost (0)")


def add_reproduce(commands: Any) -> None:
    """The paper's experiments."""
    command = add_parser(commands, "reproduce", REPRODUCE)
    add, out = command.add_argument, Path("results/reproduce")
    add("names", nargs="*", metavar="NAME", help="experiments to run (all)")
    add("--list", action="store_true", help="list the experiments and run nothing")
    add("--quick", action="store_true", help="fewer tasks and runs: about a minute")
    add("--out", type=Path, default=out, metavar="FOLDER", help=f"where the results go ({out})")
    add("--seed", type=whole, default=0, metavar="S", help=SEED)
    add("--tables", type=Path, metavar="FOLDER", help="recorded tables to replay: .parquet, .csv")
    add("--progress", action=argparse.BooleanOptionalAction, help=BAR)
    command.set_defaults(run=run_reproduce)


def add_simulation_options(command: argparse.ArgumentParser) -> None:
    """What `simulate` and `replay` share."""
    add = command.add_argument
    policy = "a policy to try; repeatable; NAME,parameter=value sets a parameter; all: every one"
    add("--policy", action="append", metavar="NAME", help=f"{policy} ({', '.join(USUAL)})")
    add("--tasks", type=whole, default=TASKS, metavar="T", help=f"tasks per run ({TASKS})")
    add("--runs", type=whole, default=20, metavar="N", help="runs, each with random numbers of its own (20)")
    add("--seed", type=whole, default=0, metavar="S", help=SEED)
    add("--delay", type=delay, default=0, metavar="D|A-B", help="feedback comes D tasks late, or A to B at random (0)")
    add("--threads", type=whole, metavar="N", help="threads to run on (one per core)")
    add("--engine", choices=ENGINES, help="how policies are run (compiled, if numba is installed)")
    add("--out", type=Path, metavar="FILE", help="save the curves of all runs: .parquet, .csv")
    add("--plot", type=Path, metavar="FILE", help="save a figure: .png, .svg")
    add("--measure", choices=tuple(plots.MEASURES), default="loss", help="what the figure shows (loss)")
    add("--progress", action=argparse.BooleanOptionalAction, help=BAR)
    work.add_executor(command, None)
    add_goal(command)


def run_solve(arguments: argparse.Namespace) -> int:
    """worthwhile solve"""
    check_target(arguments.plot, plots.FORMATS, "matplotlib", "plot")
    problem = problem_from(arguments.problem).with_added_cost(arguments.added_cost)
    best = solve(problem, goal_from(arguments))
    facts = text.problem_facts(problem, best, arguments.tasks)
    if best.goal.constrained:
        facts = goal_text.goal_facts(facts, best)
    saved = plot_frontier(problem, best, arguments.plot) if arguments.plot else None
    show(facts, (goal_text.goal_text if best.goal.constrained else text.problem_text)(facts), arguments.json)
    if saved:
        say(f"saved {saved}")
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
    table, units = table_from(arguments.table, arguments.map), (arguments.reward_unit, arguments.cost_unit)
    environment = replay(
        table, arguments.added_cost, None, *units, features=arguments.features, one_pass=arguments.one_pass
    )
    if arguments.tasks is None:
        arguments.tasks = environment.most_tasks or TASKS
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
        facts = [{"name": experiment.name, "title": experiment.title} for experiment in wanted]
        show({"experiments": facts}, experiments.listing(wanted), arguments.json)
        return 0
    check_target(arguments.out / "report.html", (".html",), "matplotlib", "plot")
    check_progress(arguments.progress)
    import_from_here()
    scale = Scale(arguments.quick, arguments.seed, arguments.tables, arguments.progress)
    tell = say if arguments.json else partial(print, flush=True)
    done = experiments.reproduce(wanted, scale, arguments.out, tell)
    show(experiments.facts(done), experiments.summary(done), arguments.json)
    if done.interrupted:
        say(f"interrupted: {len(done.records)} of {len(wanted)} experiments are finished and kept in {arguments.out}")
    return INTERRUPTED if done.interrupted else 1 if done.failed else 0


def check_progress(wanted: bool | None) -> None:
    """Refuse to promise a bar that could not be shown."""
    if wanted and find_spec("tqdm") is None:
        raise MissingExtra("a progress bar", "progress")


def try_policies(environment: Environment | Drift, problem: Problem, arguments: argparse.Namespace) -> int:
    """Simulate, save, print: also what is finished when Ctrl-C comes. The problem is what the optimum is named for."""
    check_target(arguments.out, TABLE_FORMATS, "pyarrow", "tables")
    check_target(arguments.plot, plots.FORMATS, "matplotlib", "plot")
    check_progress(arguments.progress)
    import_from_here()
    on, address, slots = arguments.on, arguments.address, arguments.slots
    with nullcontext() if on is None else executor_on(on, address, slots) as executor:
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
            executor=executor,
            goal=goal_from(arguments),
        )
    if len(results.runs):
        report(replace(results, problem=problem), arguments)
    if results.interrupted:
        say(f"interrupted: {len(results.runs)} of {arguments.runs} runs are finished and kept")
    return INTERRUPTED if results.interrupted else 0


def policies_from(names: list[str] | None) -> list[str]:
    """The policies asked for; `all` stands for the whole list."""
    return [policy for name in names or USUAL for policy in (LIST if name == "all" else [name])]


def report(results: Results, arguments: argparse.Namespace) -> None:
    """Files first, so that they are there even if nobody reads the tables."""
    saved = [*(results.save(arguments.out) if arguments.out else ())]
    saved += [plots.plot(results, arguments.plot, arguments.measure)] if arguments.plot else []
    facts = text.results_facts(results)
    if results.goal is not None:
        facts = goal_text.results_facts(facts, results, results.goal)
    show(facts, (text.results_text if results.goal is None else goal_text.results_text)(facts), arguments.json)
    if saved:
        say(f"saved {', '.join(map(str, saved))}")
