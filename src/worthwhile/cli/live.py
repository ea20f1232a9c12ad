"""The commands on a store: decide and report from a shell, and look at what a live scheduler does."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from worthwhile.cli.arguments import (
    add_goal,
    add_map,
    check_target,
    feature,
    features_from,
    goal_from,
    import_from_here,
    number_or_none,
    positive,
)
from worthwhile.cli.opening import opened
from worthwhile.cli.output import show
from worthwhile.cli.proof import add_proof_commands, add_trial
from worthwhile.cli.text import explain_text, tasks_text
from worthwhile.errors import BadParameter
from worthwhile.formatting import shown
from worthwhile.live.checking import find_damage
from worthwhile.live.history import FORMATS
from worthwhile.live.recorded import as_option
from worthwhile.live.summary import counted

STORE = "a SQLite file (tasks.db, sqlite:///tasks.db) or postgresql://user@host/database"
OR_SERVICE = f"{STORE}, or http://host:8080 of a service (its token in WORTHWHILE_TOKEN)"
DECIDE = """\
Prints the task's id and the option, with a tab in between. An option that reads as JSON (5, true, null) is a number or
that word, everything else is text. --feature says what is known of the task beside its kind, with values that are
read in the same way; null is one that is missing, and quotes make a text of anything.

examples:
  worthwhile decide tasks.db weather 1 5 10
  worthwhile decide tasks.db weather 1 5 10 --key job-17        the same key gives the same task
  worthwhile decide tasks.db sat kissat minisat --feature clauses=12000 --feature family=crypto --feature gpu=true
  worthwhile decide tasks.db sat kissat minisat --feature 'release="12"'     the text 12, not the number
  read id epochs < <(worthwhile decide tasks.db weather 1 5 10)
"""
REPORT = """\
examples:
  worthwhile report tasks.db 812 --reward 0.91 --cost 3.2
  worthwhile report tasks.db 812 --reward 0.91                  and the cost later
  worthwhile report tasks.db 812 --failed --reason "no memory"   at what such tasks cost on average, or --cost C
  worthwhile report tasks.db 812 --cancel                       it will not report
"""
FORGET = """\
Takes what may be personal out of the store, for good: the features of tasks, and the reasons why they failed. Their
kind, option, key, reward and cost stay. Every process then learns again, from what is left of the log: name many at
once.

examples:
  worthwhile forget tasks.db 812
  worthwhile forget tasks.db 812 813 817
"""
CHANGE = """\
What is left out stays as it is. Every process notices before its next decision.

examples:
  worthwhile change tasks.db --no-store-reasons                 keep no reasons of failures from now on
  worthwhile change tasks.db --policy ratio-imed,half_life=5000
  worthwhile change tasks.db --overhead 0.5 --failed-reward 0
  worthwhile change tasks.db --floor 0.8                        as cheaply as possible, mean reward at least 0.8
  worthwhile change tasks.db --floor "legal review=0.9"         the same for one kind
  worthwhile change tasks.db --budget 0.05                      the most reward, mean cost per task at most 0.05
  worthwhile change tasks.db --goal ratio                       neither: the best reward per cost again
  worthwhile change tasks.db --baseline 5 --holdout 0.05        one task in twenty takes 5: is the scheduler better?
"""
RETIRE = """\
Tasks that have the option already go on. `worthwhile restore` undoes it.

examples:
  worthwhile retire tasks.db 20                                 never choose 20 again
  worthwhile retire tasks.db 20 --kind weather                  for this kind only
"""
RESTORE = """\
Undoes `worthwhile retire`, with the same OPTION and KIND. An option that is benched because it kept failing, and was
not retired, is forgiven: say so when you have repaired it.

examples:
  worthwhile restore tasks.db 20
  worthwhile restore tasks.db 20 --kind weather
"""
STATUS = """\
examples:
  worthwhile status tasks.db
  worthwhile status tasks.db --name training --json
"""
TASKS = """\
examples:
  worthwhile tasks tasks.db --count 50
"""
EXPLAIN = """\
Shows what was known when the task was decided: the estimates and the score of every option, and the price θ.

examples:
  worthwhile explain tasks.db 812
"""
EXPORT = """\
One row per report or side observation, in the order in which they were learned, with the columns that
`worthwhile replay` reads: task_type, item_id, option, reward, cost.

examples:
  worthwhile export tasks.db history.parquet
  worthwhile replay history.parquet --policy all
"""
IMPORT = """\
TABLE has the columns task_type, option, reward, cost, and item_id if rows have a key of their own; --map says what the
file calls them. The policy learns from it as if it had been there. A column `failed` (true, false) or `outcome`
(result, failed, lost) says what failed, which needs no reward. A row counts once: the same file can be imported again
after more was added to it. A row that says something else than before is refused, and so is the whole file.

examples:
  worthwhile import tasks.db recorded.csv
  worthwhile import tasks.db old.parquet --map kind=task,option=model,reward=score,cost=usd
"""
REBUILD = """\
Replays the whole log through the policy, and compares the result with what the scheduler starts from, bit by bit. The
exit code is 1 if they differ.

examples:
  worthwhile rebuild tasks.db --check
"""
CHECK = """\
Reads everything in the store, of all its schedulers, and lists what is not as it was written, by table and row. It
changes nothing. The exit code is 1 if anything is damaged.

examples:
  worthwhile check tasks.db
"""


def add_commands(commands: Any) -> None:
    """The commands on a store."""

    def add(name: str, help: str, epilog: str, run: Callable[[argparse.Namespace], int]) -> Any:
        parser = commands.add_parser(name, help=help, epilog=epilog)
        parser.add_argument("store", metavar="STORE", help=OR_SERVICE)
        parser.add_argument("--name", help="of the scheduler (default, or the only one there is)")
        parser.set_defaults(run=run)
        return parser

    parser = add("decide", "choose an option for a task", DECIDE, run_decide)
    parser.add_argument("kind", metavar="KIND")
    parser.add_argument("options", nargs="+", metavar="OPTION")
    parser.add_argument("--key", help="the same key gives the same task: safe to repeat")
    parser.add_argument("--lease", type=float, metavar="SECONDS", help="counts as running for so long (3600)")
    parser.add_argument("--usual", metavar="OPTION", help="what it would take without a scheduler")
    meant = "something known of the task; repeatable"
    parser.add_argument("--feature", type=feature, action="append", default=[], metavar="NAME=VALUE", help=meant)
    parser = add("report", "what came of a task", REPORT, run_report)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--reward", type=float, metavar="R")
    parser.add_argument("--cost", type=float, metavar="C")
    parser.add_argument("--failed", action="store_true", help="it has failed")
    parser.add_argument("--reason", metavar="TEXT", help="why it has failed")
    parser.add_argument("--cancel", action="store_true", help="it will not report")
    for name, help, epilog in (
        ("retire", "never choose an option again", RETIRE),
        ("restore", "undo retire, or forgive an option that failed", RESTORE),
    ):
        parser = add(name, help, epilog, run_retire)
        parser.add_argument("option", metavar="OPTION", help="as in `worthwhile decide`")
        parser.add_argument("--kind", metavar="KIND", help="for this kind only (all)")
    parser = add("forget", "take features and reasons of tasks out of the store", FORGET, run_forget)
    parser.add_argument("ids", nargs="+", metavar="ID")
    add_change(add("change", "change settings of a live scheduler", CHANGE, run_change))
    add("status", "how a live scheduler stands", STATUS, run_status)
    add_proof_commands(add)
    parser = add("tasks", "the latest tasks of a live scheduler", TASKS, run_tasks)
    parser.add_argument("--count", type=positive, default=20, metavar="N", help="how many (20)")
    parser = add("explain", "why a task got its option", EXPLAIN, run_explain)
    parser.add_argument("id", metavar="ID")
    parser = add("export", "the log as a table", EXPORT, run_export)
    parser.add_argument("table", type=Path, metavar="FILE", help=", ".join(FORMATS))
    parser = add("import", "start from recorded history", IMPORT, run_import)
    parser.add_argument("table", type=Path, metavar="TABLE", help=", ".join(FORMATS))
    add_map(parser)
    parser = add("rebuild", "replay the log and compare", REBUILD, run_rebuild)
    parser.add_argument("--check", action="store_true", required=True, help="compare, bit by bit")
    parser = commands.add_parser("check", help="is everything still what was written?", epilog=CHECK)
    parser.add_argument("store", metavar="STORE", help=STORE)
    parser.set_defaults(run=run_check)


def add_change(parser: argparse.ArgumentParser) -> None:
    """The settings that can be changed."""
    parser.add_argument("--policy", metavar="NAME", help="as for `worthwhile simulate`; it learns from the log first")
    parser.add_argument("--overhead", type=float, metavar="C", help="cost of every task on top of what is reported")
    worth = "makes failures results worth so much; none: they are failures again"
    parser.add_argument("--failed-reward", type=number_or_none, metavar="R", help=worth)
    keep = "keep why tasks failed, which may be personal; without it, only that they did"
    parser.add_argument("--store-reasons", action=argparse.BooleanOptionalAction, help=keep)
    add_goal(parser)
    add_trial(parser)


def run_decide(arguments: argparse.Namespace) -> int:
    """worthwhile decide"""
    options, features = [as_option(text) for text in arguments.options], features_from(arguments.feature)
    with opened(arguments, create=True) as scheduler:
        usual = None if arguments.usual is None else as_option(arguments.usual)
        task = scheduler.decide(
            arguments.kind, options, features=features, key=arguments.key, lease=arguments.lease, usual=usual
        )
    text = f"{task.id}\t{shown(task.option)}"
    show({"task": task.id, "kind": task.kind, "option": task.option}, text, arguments.json)
    return 0


def run_report(arguments: argparse.Namespace) -> int:
    """worthwhile report"""
    check_report(arguments)
    with opened(arguments) as scheduler:
        if arguments.cancel:
            scheduler.cancel(arguments.id)
        elif arguments.failed:
            scheduler.fail(arguments.id, arguments.cost, arguments.reason or "")
        else:
            scheduler.report(arguments.id, arguments.reward, arguments.cost)
        [line] = scheduler.tasks([arguments.id])
    show(asdict(line), f"task {line.task}: {line.state}", arguments.json)
    return 0


def check_report(arguments: argparse.Namespace) -> None:
    """Refuse what contradicts itself."""
    if arguments.cancel and (arguments.failed or not arguments.reward is arguments.cost is None):
        raise BadParameter("--cancel says that the task will not report; leave --reward, --cost and --failed out")
    if arguments.failed and arguments.reward is not None:
        raise BadParameter("--failed: what has failed has no reward; leave --reward out")
    if arguments.reason is not None and not arguments.failed:
        raise BadParameter("--reason says why a task has failed; add --failed")


def run_forget(arguments: argparse.Namespace) -> int:
    """worthwhile forget"""
    with opened(arguments) as scheduler:
        scheduler.forget(*arguments.ids)
        ids = [line.task for line in scheduler.tasks(arguments.ids)]
    show({"tasks": ids}, f"forgot the features and reasons of {counted(len(ids), 'task')}", arguments.json)
    return 0


def run_change(arguments: argparse.Namespace) -> int:
    """worthwhile change"""
    settings: tuple[str, ...] = ("policy", "overhead", "failed_reward", "store_reasons")
    settings += ("baseline", "holdout", "explore", "guard", "guard_error")
    if arguments.baseline_of:
        if arguments.baseline is not None:
            raise BadParameter("--baseline is for all kinds, --baseline-of for some; give one of them")
        arguments.baseline = dict(arguments.baseline_of)
    goal = goal_from(arguments)
    new = {name: value for name in settings if (value := getattr(arguments, name)) is not None}
    if not new and goal is None:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in (*settings, "goal", "floor", "budget"))
        raise BadParameter(f"nothing to change; give at least one of {named}")
    import_from_here()  # a policy of the user's own
    with opened(arguments) as scheduler:
        scheduler.change(**new, goal=goal)
        name = scheduler.name
    said = [f"{name} = {shown(value)}" for name, value in new.items()]
    text = ", ".join(said if goal is None else [*said, f"goal = {goal.words()}"])
    show(new if goal is None else new | goal.to_json(), f"{name}: {text} from now on", arguments.json)
    return 0


def run_retire(arguments: argparse.Namespace) -> int:
    """worthwhile retire, worthwhile restore"""
    option, kind = as_option(arguments.option), arguments.kind
    with opened(arguments) as scheduler:
        (scheduler.retire if arguments.command == "retire" else scheduler.restore)(option, kind)
    where = "all kinds" if kind is None else f"kind {kind!r}"
    facts = {"option": option, "kind": kind, "retired": arguments.command == "retire"}
    show(facts, f"{shown(option)}: {arguments.command}d for {where}", arguments.json)
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """worthwhile status"""
    with opened(arguments) as scheduler:
        summary = scheduler.summary()
    show(asdict(summary), str(summary), arguments.json)
    return 0


def run_tasks(arguments: argparse.Namespace) -> int:
    """worthwhile tasks"""
    with opened(arguments) as scheduler:
        lines = scheduler.latest(arguments.count)
    show({"tasks": [asdict(line) for line in lines]}, tasks_text(lines), arguments.json)
    return 0


def run_explain(arguments: argparse.Namespace) -> int:
    """worthwhile explain"""
    with opened(arguments) as scheduler:
        explanation = scheduler.explain(arguments.id)
    show(asdict(explanation), explain_text(explanation), arguments.json)
    return 0


def run_export(arguments: argparse.Namespace) -> int:
    """worthwhile export"""
    check_target(arguments.table, FORMATS, "pyarrow", "tables")
    with opened(arguments) as scheduler:
        rows = scheduler.export(arguments.table)
    show({"rows": rows, "file": str(arguments.table)}, f"{rows:,} rows in {arguments.table}", arguments.json)
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    """worthwhile import"""
    with opened(arguments, create=True) as scheduler:
        rows = scheduler.load(arguments.table, arguments.map)
    show({"new_rows": rows}, f"{counted(rows, 'new row')} from {arguments.table}", arguments.json)
    return 0


def run_rebuild(arguments: argparse.Namespace) -> int:
    """worthwhile rebuild"""
    with opened(arguments) as scheduler:
        same, reports = scheduler.rebuild(), scheduler.summary().reports
    text = f"{reports:,} reports replayed: " + ("the same, to the bit" if same else "NOT what the scheduler knows")
    show({"reports": reports, "same": same}, text, arguments.json)
    return 0 if same else 1


def run_check(arguments: argparse.Namespace) -> int:
    """worthwhile check"""
    inspection = find_damage(arguments.store)
    document = asdict(inspection) | {"damage": [line._asdict() for line in inspection.damage]}
    show(document, str(inspection), arguments.json)
    return 1 if inspection.damage else 0
