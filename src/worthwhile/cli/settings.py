"""The commands that make schedulers and change their settings."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from worthwhile.cli.arguments import STORE, add_goal, add_scheduler, goal_from, import_from_here, number_or_none, whole
from worthwhile.cli.help import add_parser
from worthwhile.cli.opening import DEFAULT_NAME, is_there, made, names_in, opened
from worthwhile.cli.output import show
from worthwhile.cli.proof import add_trial
from worthwhile.errors import BadParameter
from worthwhile.formatting import number, printable, shown, table
from worthwhile.goals.goal import Goal
from worthwhile.live.gain import signed
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.summary import Summary
from worthwhile.live.summary_text import with_unit
from worthwhile.live.validation import as_option

CREATE = """\
What is left out is as usual: the policy that needs no tuning, no overhead, the best ratio, nothing held out. With a
scheduler that exists, the settings have to agree with it. --declare refuses every other kind and option from then on;
it may also name a problem file, as `worthwhile solve` reads it, whose kinds and options are declared.

examples:
  worthwhile create tasks.db
  worthwhile create tasks.db --name training --reward-unit AUC --cost-unit s
  worthwhile create tasks.db --floor 0.8 --declare chat=small,large --declare code=large
  worthwhile create tasks.db --baseline 5 --holdout 0.05 --guard 0.02
"""
SCHEDULERS = """\
examples:
  worthwhile schedulers tasks.db
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
  worthwhile change tasks.db --cost-unit s                      what is counted, for people
  worthwhile change tasks.db --declare weather=1,5,10           other kinds and options are refused from now on
  worthwhile change tasks.db --declare none                     everything is allowed again
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
SETTINGS = (
    "policy", "overhead", "failed_reward", "store_reasons", "baseline", "holdout", "explore", "guard", "guard_error",
    "reward_unit", "cost_unit",
)  # fmt: skip
NO_NAMES = "none"  # in place of a declaration


def add_commands(commands: Any) -> None:
    """create, schedulers, change, retire and restore."""
    parser = add_scheduler(add_parser(commands, "create", CREATE), run_create)
    add_settings(parser, "makes failures results worth so much (they are none)", float)
    parser.add_argument("--seed", type=whole, metavar="S", help="of its random numbers (drawn)")
    parser = add_parser(commands, "schedulers", SCHEDULERS)
    parser.add_argument("store", metavar="STORE", help=STORE)
    parser.set_defaults(run=run_schedulers)
    worth = "makes failures results worth so much; none: they are failures again"
    add_settings(add_scheduler(add_parser(commands, "change", CHANGE), run_change), worth, number_or_none)
    for name, epilog in (("retire", RETIRE), ("restore", RESTORE)):
        parser = add_scheduler(add_parser(commands, name, epilog), run_retire)
        parser.add_argument("option", metavar="OPTION", help="as in `worthwhile decide`")
        parser.add_argument("--kind", metavar="KIND", help="for this kind only (all)")


def add_settings(parser: argparse.ArgumentParser, worth: str, worth_of: Any) -> None:
    """The settings that can be given when a scheduler is made, and changed later."""
    add = parser.add_argument
    add("--policy", metavar="NAME", help="as for `worthwhile simulate`; it learns from the log first")
    add("--overhead", type=float, metavar="C", help="cost of every task on top of what is reported")
    add("--failed-reward", type=worth_of, metavar="R", help=worth)
    keep = "keep why tasks failed, which may be personal; without it, only that they did"
    add("--store-reasons", action=argparse.BooleanOptionalAction, help=keep)
    add_goal(parser)
    add_trial(parser)
    add("--reward-unit", metavar="UNIT", help="what rewards are counted in, for people")
    add("--cost-unit", metavar="UNIT", help="the same for costs")
    meant = "a kind with all its options, repeatable; or a problem file; other names are refused"
    add("--declare", action="append", metavar="KIND=OPTION,…", help=meant)


def given_settings(arguments: argparse.Namespace) -> tuple[dict[str, Any], Goal | None]:
    """The settings that were given, and the goal."""
    if arguments.baseline_of:
        if arguments.baseline is not None:
            raise BadParameter("--baseline is for all kinds, --baseline-of for some; give one of them")
        arguments.baseline = dict(arguments.baseline_of)
    given = {name: value for name in SETTINGS if (value := getattr(arguments, name)) is not None}
    return given, goal_from(arguments)


def declared(words: list[str]) -> dict[str, list[Any]]:
    """Kinds with their options, from KIND=OPTION,OPTION or a problem file."""
    if words == [NO_NAMES]:
        return {}
    kinds: dict[str, list[Any]] = {}
    for word in words:
        new = declared_kind(word) if "=" in word else declared_in(word)
        for kind in new.keys() & kinds.keys():
            raise BadParameter(f"--declare {printable(kind)} is there twice; name all its options at once")
        kinds |= new
    return kinds


def declared_kind(word: str) -> dict[str, list[Any]]:
    kind, _, options = word.partition("=")
    return {kind: [as_option(option.strip()) for option in options.split(",")]}


def declared_in(path: str) -> dict[str, list[Any]]:
    """The kinds and options of a problem file."""
    if not Path(path).suffix:
        raise BadParameter(f"--declare {path!r}: write KIND=OPTION,OPTION, name a problem file, or write {NO_NAMES}")
    from worthwhile.problem_files import read_problem

    problem = read_problem(path)
    return {
        kind: [as_option(option) for option, there in zip(problem.options, offered, strict=True) if there]
        for kind, offered in zip(problem.kinds, problem.offered, strict=True)
    }


def run_create(arguments: argparse.Namespace) -> int:
    """worthwhile create"""
    given, goal = given_settings(arguments)
    kinds = None if arguments.declare is None else declared(arguments.declare)
    import_from_here()  # a policy of the user's own
    name = arguments.name or DEFAULT_NAME
    exists = is_there(arguments.store, name)
    with made(arguments.store, name, exists, given | {"seed": arguments.seed, "goal": goal}) as scheduler:
        if kinds is not None:
            scheduler.declare(kinds)
        policy = scheduler.summary().policy
    words = [f"policy = {policy}", *in_words({name: given[name] for name in given if name != "policy"}, goal, kinds)]
    facts = {"scheduler": name, "new": not exists, "policy": policy} | as_facts(given, goal, kinds)
    show(facts, f"{printable(name)}: {'exists, with' if exists else 'made, with'} {', '.join(words)}", arguments.json)
    return 0


def run_change(arguments: argparse.Namespace) -> int:
    """worthwhile change"""
    given, goal = given_settings(arguments)
    if not given and goal is None and arguments.declare is None:
        names = (*SETTINGS, "goal", "floor", "budget", "declare")
        named = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise BadParameter(f"nothing to change; give at least one of {named}")
    kinds = None if arguments.declare is None else declared(arguments.declare)
    import_from_here()  # a policy of the user's own
    with opened(arguments) as scheduler:
        if given or goal is not None:
            scheduler.change(**given, goal=goal)
        if kinds is not None:
            scheduler.declare(kinds)
        name = scheduler.name
    text = ", ".join(in_words(given, goal, kinds))
    show(as_facts(given, goal, kinds), f"{printable(name)}: {text} from now on", arguments.json)
    return 0


def in_words(given: dict[str, Any], goal: Goal | None, kinds: dict[str, list[Any]] | None) -> list[str]:
    """Settings for people."""
    said = [f"{name} = {shown(value)}" for name, value in given.items()]
    if goal is not None:
        said.append(f"goal = {goal.words()}")
    if kinds is not None:
        listed = (f"{printable(kind)} ({', '.join(map(shown, options))})" for kind, options in kinds.items())
        said.append("declared = " + (", ".join(listed) or "anything"))
    return said


def as_facts(given: dict[str, Any], goal: Goal | None, kinds: dict[str, list[Any]] | None) -> dict[str, Any]:
    """The same for a machine."""
    return given | ({} if goal is None else goal.to_json()) | ({} if kinds is None else {"declared": kinds})


def run_retire(arguments: argparse.Namespace) -> int:
    """worthwhile retire, worthwhile restore"""
    option, kind = as_option(arguments.option), arguments.kind
    with opened(arguments) as scheduler:
        (scheduler.retire if arguments.command == "retire" else scheduler.restore)(option, kind)
    where = "all kinds" if kind is None else f"kind {kind!r}"
    facts = {"option": option, "kind": kind, "retired": arguments.command == "retire"}
    show(facts, f"{shown(option)}: {arguments.command}d for {where}", arguments.json)
    return 0


def run_schedulers(arguments: argparse.Namespace) -> int:
    """worthwhile schedulers"""
    summaries = []
    for name in names_in(arguments.store):
        with Scheduler(arguments.store, name, create=False) as scheduler:
            summaries.append(scheduler.summary())
    facts = {"schedulers": [asdict(summary) | {"kinds": len(summary.kinds)} for summary in summaries]}
    show(facts, schedulers_text(summaries), arguments.json)
    return 0


def schedulers_text(summaries: list[Summary]) -> str:
    """A row for every scheduler."""
    if not summaries:
        return "no schedulers yet; `worthwhile create` makes one"
    heads = ["scheduler", "policy", "tasks", "reported", "failed", "reward / cost", "gain", "settled", "warnings"]
    rows = [
        [
            summary.scheduler, summary.policy, f"{summary.tasks:,}", f"{summary.reports:,}",
            f"{summary.failed:,}", with_unit(summary.ratio, summary.ratio_unit), gain_of(summary),
            f"{summary.settled_kinds} of {len(summary.kinds)}", f"{len(summary.warnings)}",
        ]
        for summary in summaries
    ]  # fmt: skip
    return table(heads, rows, left=(0, 1))


def gain_of(summary: Summary) -> str:
    """How much more it earns than its baseline, where that is known."""
    gain = summary.gain and summary.gain.gain
    return signed(gain.value) if gain else number(None)
