"""The commands that look at a live scheduler and its log."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from worthwhile.cli.arguments import STORE, add_map, add_scheduler, check_target, positive
from worthwhile.cli.help import add_parser
from worthwhile.cli.opening import opened
from worthwhile.cli.output import show
from worthwhile.cli.text import explain_text, tasks_text
from worthwhile.formatting import counted
from worthwhile.live.checking import find_damage
from worthwhile.live.history import FORMATS

FORGET = """\
Takes what may be personal out of the store, for good: the features of tasks, and the reasons why they failed. Their
kind, option, key, reward and cost stay. Every process then learns again, from what is left of the log: name many at
once.

examples:
  worthwhile forget tasks.db 812
  worthwhile forget tasks.db 812 813 817
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
    """Looking at a scheduler, and its log."""

    def add(name: str, epilog: str, run: Callable[[argparse.Namespace], int]) -> Any:
        return add_scheduler(add_parser(commands, name, epilog), run)

    parser = add("forget", FORGET, run_forget)
    parser.add_argument("ids", nargs="+", metavar="ID")
    add("status", STATUS, run_status)
    parser = add("tasks", TASKS, run_tasks)
    parser.add_argument("--count", type=positive, default=20, metavar="N", help="how many (20)")
    parser = add("explain", EXPLAIN, run_explain)
    parser.add_argument("id", metavar="ID")
    parser = add("export", EXPORT, run_export)
    parser.add_argument("table", type=Path, metavar="FILE", help=", ".join(FORMATS))
    parser = add("import", IMPORT, run_import)
    parser.add_argument("table", type=Path, metavar="TABLE", help=", ".join(FORMATS))
    add_map(parser)
    parser = add("rebuild", REBUILD, run_rebuild)
    parser.add_argument("--check", action="store_true", required=True, help="compare, bit by bit")
    parser = add_parser(commands, "check", CHECK)
    parser.add_argument("store", metavar="STORE", help=STORE)
    parser.set_defaults(run=run_check)


def run_forget(arguments: argparse.Namespace) -> int:
    """worthwhile forget"""
    with opened(arguments) as scheduler:
        scheduler.forget(*arguments.ids)
        ids = [line.task for line in scheduler.tasks(arguments.ids)]
    show({"tasks": ids}, f"forgot the features and reasons of {counted(len(ids), 'task')}", arguments.json)
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
