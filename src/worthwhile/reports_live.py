"""What the commands on a store say, for people."""

from __future__ import annotations

import json
import time

from worthwhile.live.explain import Explanation, Judgement, Summary, TaskLine
from worthwhile.reports import MOST_KINDS, digits, percent, printable, table


def number(value: float | None) -> str:
    return "–" if value is None else digits(value)


def shown(option: object) -> str:
    """An option as JSON writes it, text without its quotes."""
    return printable(option) if isinstance(option, str) else json.dumps(option)


def status_text(found: Summary) -> str:
    """The answer to `worthwhile status`."""
    head = [
        f"{found.scheduler}: {found.policy}" + (f", overhead {found.overhead:g}" if found.overhead else ""),
        f"{found.tasks:,} tasks, {found.reports:,} reported, {found.running:,} running",
        f"reward / cost = {number(found.ratio)}  (Σ {digits(found.reward)} / {digits(found.cost)})"
        f"   θ = {number(found.theta)}",
    ]
    rows = [
        [kind.kind if place == 0 else "", shown(one.option) + " (retired)" * one.retired, str(one.pulls),
         percent(one.share), number(one.mean_reward), number(one.mean_cost), str(one.running), str(one.observed)]
        for kind in found.kinds[:MOST_KINDS]
        for place, one in enumerate(kind.options)
    ]  # fmt: skip
    columns = ["kind", "option", "reports", "share", "mean reward", "mean cost", "running", "observed"]
    parts = ["\n".join(head)] + ([table(columns, rows, left=(0, 1))] if rows else [])
    if len(found.kinds) > MOST_KINDS:
        parts.append(f"… and {len(found.kinds) - MOST_KINDS} more kinds; --json has them all")
    if found.bad_entries:
        named = [f"  entry {one.number}: {one.why}" for one in found.set_aside[:10]]
        parts.append("\n".join([f"{found.bad_entries} bad entries of the log are set aside:", *named]))
    return "\n\n".join(parts)


def tasks_text(lines: list[TaskLine]) -> str:
    """The answer to `worthwhile tasks`."""
    rows = [
        [line.task, line.kind, shown(line.option), line.state, number(line.reward), number(line.cost),
         time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(line.decided)), line.key or ""]
        for line in lines
    ]  # fmt: skip
    columns = ["task", "kind", "option", "state", "reward", "cost", "decided (UTC)", "key"]
    return table(columns, rows, left=(1, 2, 3, 6, 7)) if rows else "no tasks yet"


def explain_text(found: Explanation) -> str:
    """The answer to `worthwhile explain`."""
    feedback = f", reward {number(found.reward)}, cost {number(found.cost)}" if found.state == "reported" else ""
    head = [
        f"task {found.task} of kind {found.kind!r} got option {shown(found.option)}: {found.why}",
        f"policy {found.policy}, θ = {number(found.theta)}, after {found.seen:,} reports; now {found.state}{feedback}",
    ]
    rows = [
        ["→" if one.chosen else "", shown(one.option), str(one.pulls), str(one.running), *estimates(one)]
        for one in found.options
    ]
    columns = ["", "option", "reports", "running", "reward estimate", "cost estimate", "reward − θ·cost"]
    parts = ["\n".join(head)] + ([table(columns, rows, left=(0, 1))] if rows else [])
    if found.repeated is False:
        parts.append("the policy does not decide the same again: was its code changed?")
    return "\n\n".join(parts)


def estimates(one: Judgement) -> list[str]:
    """Reward, cost and score; nothing where a policy has no estimate, which is a cost of 0."""
    if one.cost_estimate == 0.0:
        return [number(None)] * 3
    return [number(one.reward_estimate), number(one.cost_estimate), number(one.score)]
