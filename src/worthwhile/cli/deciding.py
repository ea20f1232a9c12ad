"""The commands that a shell script calls for every task: decide and report. They start fast: nothing else is imported.

They ask the scheduler's transactor themselves, as the service does.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any, cast

from worthwhile.cli.arguments import add_scheduler, feature, features_from
from worthwhile.cli.help import add_parser
from worthwhile.cli.opening import asked, is_service, opened
from worthwhile.cli.output import show
from worthwhile.errors import BadParameter
from worthwhile.formatting import shown
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import LEASE, Decider, Deciding, Reporting, cancelling, failing
from worthwhile.live.transactor import Transactor
from worthwhile.live.validation import as_option, task_number

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


def add_commands(commands: Any) -> None:
    """decide and report."""
    parser = add_scheduler(add_parser(commands, "decide", DECIDE), run_decide)
    parser.add_argument("kind", metavar="KIND")
    parser.add_argument("options", nargs="+", metavar="OPTION")
    parser.add_argument("--key", help="the same key gives the same task: safe to repeat")
    lasts = f"counts as running for so long ({LEASE:g})"
    parser.add_argument("--lease", type=float, default=LEASE, metavar="SECONDS", help=lasts)
    parser.add_argument("--usual", metavar="OPTION", help="what it would take without a scheduler")
    meant = "something known of the task; repeatable"
    parser.add_argument("--feature", type=feature, action="append", default=[], metavar="NAME=VALUE", help=meant)
    parser = add_scheduler(add_parser(commands, "report", REPORT), run_report)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--reward", type=float, metavar="R")
    parser.add_argument("--cost", type=float, metavar="C")
    parser.add_argument("--failed", action="store_true", help="it has failed")
    parser.add_argument("--reason", metavar="TEXT", help="why it has failed")
    parser.add_argument("--cancel", action="store_true", help="it will not report")


def run_decide(arguments: argparse.Namespace) -> int:
    """worthwhile decide"""
    options, features = [as_option(text) for text in arguments.options], features_from(arguments.feature)
    usual = None if arguments.usual is None else as_option(arguments.usual)
    about = arguments.kind, options, arguments.key, arguments.lease, features, usual
    if is_service(arguments.store):
        with opened(arguments) as scheduler:
            kind, options, key, lease, features, usual = about
            task = scheduler.decide(kind, options, key=key, lease=lease, features=features, usual=usual)
    else:
        nobody = cast(Decider, None)  # reports through this task
        with asked(arguments, create=True) as transactor:
            task = transactor.ask(Deciding(nobody, *about))
    text = f"{task.id}\t{shown(task.option)}"
    show({"task": task.id, "kind": task.kind, "option": task.option}, text, arguments.json)
    return 0


def run_report(arguments: argparse.Namespace) -> int:
    """worthwhile report"""
    check_report(arguments)
    if is_service(arguments.store):
        facts, text = report_to_service(arguments)
    else:
        request = reported(arguments)
        with asked(arguments) as transactor:
            transactor.ask(request)
            facts, text = what_came(transactor, arguments.id, arguments.json)
    show(facts, text, arguments.json)
    return 0


def check_report(arguments: argparse.Namespace) -> None:
    """Refuse what contradicts itself."""
    if arguments.cancel and (arguments.failed or not arguments.reward is arguments.cost is None):
        raise BadParameter("--cancel says that the task will not report; leave --reward, --cost and --failed out")
    if arguments.failed and arguments.reward is not None:
        raise BadParameter("--failed: what has failed has no reward; leave --reward out")
    if arguments.reason is not None and not arguments.failed:
        raise BadParameter("--reason says why a task has failed; add --failed")


def reported(arguments: argparse.Namespace) -> Request:
    """What is asked of the scheduler."""
    if arguments.cancel:
        return cancelling(arguments.id, None)
    if arguments.failed:
        return failing(arguments.id, arguments.cost, arguments.reason or "")
    return Reporting(arguments.id, arguments.reward, arguments.cost)


def report_to_service(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The same through a service."""
    with opened(arguments) as scheduler:
        if arguments.cancel:
            scheduler.cancel(arguments.id)
        elif arguments.failed:
            scheduler.fail(arguments.id, arguments.cost, arguments.reason or "")
        else:
            scheduler.report(arguments.id, arguments.reward, arguments.cost)
        [line] = scheduler.tasks([arguments.id])
    return asdict(line), f"task {line.task}: {line.state}"


def what_came(scheduler: Transactor, id: str, in_full: bool) -> tuple[dict[str, Any], str]:
    """The task as it is now: its state, or everything that is known of it."""
    number = task_number(id)
    if not in_full:
        state = scheduler.do(lambda batch: batch.task(number).state(batch.header.now), number)
        return {}, f"task {number}: {state}"
    from worthwhile.live.explain import tasks  # slow

    [line] = scheduler.do(lambda batch: tasks(batch, [number]))
    return asdict(line), ""
