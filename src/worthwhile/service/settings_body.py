"""A scheduler's settings as a client sends them; refused before that where it can be told that the service would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worthwhile.goals.goal import Floor, Goal
from worthwhile.live.labels import units_change
from worthwhile.live.settings import policy_text, policy_words
from worthwhile.live.trials import trial_change
from worthwhile.live.validation import Option, goal_said, yes_or_no
from worthwhile.policies.base import Policy
from worthwhile.service.calls import plain


def settings_body(
    policy: str | Policy | None,
    overhead: float | None,
    failed_reward: float | str | None,
    store_reasons: bool | None,
    goal: str | Goal | None,
    floor: Floor | None,
    budget: float | None,
    baseline: Option | Mapping[str, Option],
    holdout: float | None,
    explore: float | None,
    guard: float | str | None,
    guard_error: float | None,
    reward_unit: str | None,
    cost_unit: str | None,
) -> dict[str, Any]:
    """What was not said is None."""
    trial_change(baseline, holdout, explore, guard, guard_error)  # refuses a share beyond 1
    units = units_change(reward_unit, cost_unit)
    return {
        "policy": policy_name(policy), "overhead": overhead, "failed_reward": failed_reward,
        "store_reasons": yes_or_no("store_reasons", store_reasons), **goal_fields(goal_said(goal, floor, budget)),
        "baseline": plain_baseline(baseline), "holdout": holdout, "explore": explore, "guard": guard,
        "guard_error": guard_error, "reward_unit": units.reward, "cost_unit": units.cost,
    }  # fmt: skip


def goal_fields(goal: Goal | None) -> dict[str, Any]:
    return {"goal": None, "floor": None, "budget": None} if goal is None else goal.to_json()


def plain_baseline(baseline: Option | Mapping[str, Option]) -> Any:
    """One option, or one for each kind."""
    if isinstance(baseline, Mapping):
        return {kind: plain(option) for kind, option in baseline.items()}
    return plain(baseline)


def policy_name(policy: str | Policy | None) -> str | None:
    """A policy as its name and parameters."""
    return policy if policy is None or isinstance(policy, str) else policy_words(policy_text(policy))
