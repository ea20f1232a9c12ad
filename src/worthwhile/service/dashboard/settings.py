"""The page on which an admin changes settings, and sees who changed what."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from worthwhile.service.changes import audited
from worthwhile.service.dashboard.overview import common, settings_of
from worthwhile.service.dashboard.rendering import render
from worthwhile.service.dashboard.sessions import guarded
from worthwhile.service.endpoint import Call, Reply
from worthwhile.service.schemas import SchedulerFacts

CHANGES = 20  # that are listed


class Field(NamedTuple):
    """A setting in the form: how its value is written there, and what is sent when the field is emptied."""

    name: str
    title: str
    value: Any
    type: str  # text, number, or option: JSON, or text as it is
    empty: Any = None
    choices: tuple[str, ...] = ()
    help: str = ""


HELP = {
    "policy": "how it chooses; ratio-imed,half_life=500 lets old evidence fade",
    "overhead": "what every task costs on top of what is reported",
    "goal": "the best ratio, the least cost with a floor, or the most reward with a budget",
    "floor": 'the mean reward per task not to fall below, of all tasks or by kind: {"easy": 0.9}',
    "budget": "the mean cost per task not to exceed, overhead included",
    "baseline": 'what tasks would take without a scheduler: an option, or one by kind: {"easy": 5}',
    "holdout": "the share of the tasks that take the baseline, to measure the gain: 0.05 is 5 %",
    "explore": "the share of the other tasks that take any option",
    "guard": "how far the ratio may fall below the baseline's: 0.05 is 5 %; empty for no guard",
    "failed_reward": "makes failures results worth so much; empty if they are failures",
    "store_reasons": "why tasks failed, which may be personal",
}


def fields(known: SchedulerFacts) -> list[Field]:
    """Every setting that can be changed."""
    everywhere = set(known.baseline) == {""}
    listed = [
        Field("policy", "Policy", known.policy, "text"),
        Field("overhead", "Overhead", known.overhead, "number", 0),
        Field("goal", "Goal", known.goal, "text", choices=("ratio", "cost", "reward")),
        Field("floor", "Floor", known.floor, "option"),
        Field("budget", "Budget", known.budget, "number"),
        Field("baseline", "Baseline", known.baseline[""] if everywhere else known.baseline or None, "option", {}),
        Field("holdout", "Held out", known.holdout, "number", 0),
        Field("explore", "Explored", known.explore, "number", 0),
        Field("guard", "Guard", known.guard, "number", "none"),
        Field("failed_reward", "Reward of a failure", known.failed_reward, "number", "none"),
        Field("store_reasons", "Reasons are kept", known.store_reasons, "option", choices=("true", "false")),
    ]
    return [field._replace(help=HELP[field.name]) for field in listed]


@guarded
async def settings(call: Call) -> Reply:
    """A form for an admin; for others, what is set."""
    dispatcher, name = await call.dispatcher(), call.path["scheduler"]
    known, trial = await call.read(dispatcher.scheduler._transactor.do, partial(settings_of, name))
    changes = await audited(call, CHANGES, frozenset([name])) if call.caller.admin else []
    return render(
        "settings.html", scheduler=name, tab="settings", settings=known, trial=trial, fields=fields(known),
        changes=changes, **common(call),
    )  # fmt: skip
