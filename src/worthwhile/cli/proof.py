"""The commands that prove the gain: what is held out, what another rule would have earned, and the next step."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from worthwhile.cli.arguments import add_scheduler, import_from_here, number_or_none
from worthwhile.cli.help import add_parser
from worthwhile.cli.opening import opened
from worthwhile.cli.output import show
from worthwhile.live.evaluate import RULES
from worthwhile.live.validation import as_option

PROMOTE = """\
A scheduler with holdout=1 is a shadow: tasks take the baseline, and it learns. Each step lets it decide more of them,
and says what that is expected to bring. Without --share, it only says what the next step should be.

examples:
  worthwhile promote tasks.db
  worthwhile promote tasks.db --share 0.05                      then 0.5, then 0.95
"""
EVALUATE = """\
Always with a range, and with what it rests on: what the log shows; what it shows by chance, weighted, where tasks are
held out or explored; or the options' means, which nobody checked. Where these are of too few reports, it cannot be
told.

examples:
  worthwhile evaluate tasks.db --rule always:5
  worthwhile evaluate tasks.db --rule greedy                    for each kind, its best reward per cost
  worthwhile evaluate tasks.db --policy kind-greedy
"""


def add_commands(commands: Any) -> None:
    """evaluate and promote."""
    parser = add_scheduler(add_parser(commands, "evaluate", EVALUATE), run_evaluate)
    parser.add_argument("--rule", metavar="RULE", help=RULES)
    parser.add_argument("--policy", metavar="NAME", help="as for `worthwhile simulate`, instead of a rule")
    parser = add_scheduler(add_parser(commands, "promote", PROMOTE), run_promote)
    parser.add_argument("--share", type=float, metavar="SHARE", help="of the tasks that it decides from now on")


def add_trial(parser: argparse.ArgumentParser) -> None:
    """What is held out to prove the gain."""
    parser.add_argument("--baseline", type=as_option, metavar="OPTION", help="what tasks took without a scheduler")
    meant = "the same for one kind; repeatable, all kinds at once"
    parser.add_argument("--baseline-of", type=kind_and_option, action="append", metavar="KIND=OPTION", help=meant)
    parser.add_argument("--holdout", type=float, metavar="SHARE", help="of the tasks takes the baseline")
    parser.add_argument("--explore", type=float, metavar="SHARE", help="of the others takes any option")
    meant = "how far all may be below the baseline, as a share; none: no limit"
    parser.add_argument("--guard", type=number_or_none, metavar="SHARE", help=meant)
    parser.add_argument("--guard-error", type=float, metavar="P", help="with what probability it may be further (0.05)")


def kind_and_option(text: str) -> tuple[str, Any]:
    """KIND=OPTION; the option begins after the last =."""
    kind, equals, option = text.rpartition("=")
    if not equals or not kind:
        raise argparse.ArgumentTypeError(f"{text!r}: write KIND=OPTION, for instance weather=5")
    return kind, as_option(option)


def run_evaluate(arguments: argparse.Namespace) -> int:
    """worthwhile evaluate"""
    import_from_here()  # a policy of the user's own
    with opened(arguments) as scheduler:
        evaluation = scheduler.evaluate(arguments.rule, policy=arguments.policy)
    show(asdict(evaluation), str(evaluation), arguments.json)
    return 0


def run_promote(arguments: argparse.Namespace) -> int:
    """worthwhile promote"""
    with opened(arguments) as scheduler:
        standing = scheduler.promote(arguments.share)
    show(asdict(standing), str(standing), arguments.json)
    return 0
