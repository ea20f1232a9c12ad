"""What a scheduler is told: policy, cost per task, what failures are worth, retired options …; as text in its store."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

from worthwhile.goals.goal import Goal
from worthwhile.live.labels import ANYTHING, Declared, Units, UnitsChange, declared_from, units_change, units_from
from worthwhile.live.trials import NO_TRIAL, TrialChange, TrialSettings, trial_change, trial_from
from worthwhile.live.validation import NONE, failed_reward_of, goal_said, not_negative, yes_or_no
from worthwhile.policies.base import Policy
from worthwhile.policies.goal_imed import GOAL_FIELDS, GoalImed
from worthwhile.policies.registry import LIST, find


class Settings(NamedTuple):
    """The settings that all processes of a scheduler share."""

    policy: int  # its number among the scheduler's names
    overhead: float = 0.0  # cost of every task on top of what is reported
    retired: tuple[tuple[str | None, str], ...] = ()  # (kind, or None for all; option)
    failed_reward: float | None = None  # what a failure is worth, if it is to be a result like others
    store_reasons: bool = True  # of failures
    trial: TrialSettings = NO_TRIAL  # what is held out to prove the gain
    forgotten: int = 0  # how often something was taken out of the log, so that all must learn again from what is left
    units: Units = Units()
    declared: Declared = ANYTHING  # the kinds and options there are; empty if there may be others

    def text(self) -> str:
        """As JSON, without what is younger than some stores and was never set."""
        content = self._asdict() | {"trial": self.trial._asdict()}
        for name, usual in (("trial", NO_TRIAL), ("units", Units()), ("declared", ANYTHING)):
            if getattr(self, name) == usual:
                del content[name]
        return json.dumps(content, ensure_ascii=False)


class SettingsChange(NamedTuple):
    """Settings to begin or to go on with; None leaves one as it is."""

    policy: str | Policy | None = None
    overhead: float | None = None
    failed_reward: float | str | None = None  # NONE takes it away
    store_reasons: bool | None = None
    goal: Goal | None = None
    trial: TrialChange = TrialChange()
    units: UnitsChange = UnitsChange()

    def applied(self, settings: Settings, tasks: int) -> Settings:
        """The settings with it, after so many tasks; but for the policy and its goal, which need their names."""
        given = {
            name: value
            for name in ("overhead", "failed_reward", "store_reasons")
            if (value := getattr(self, name)) is not None
        }
        if self.failed_reward == NONE:
            given["failed_reward"] = None
        trial, units = self.trial.applied(settings.trial, tasks), self.units.applied(settings.units)
        return settings._replace(**given, trial=trial, units=units)


def settings_change(
    policy: str | Policy | None = None,
    overhead: Any = None,
    failed_reward: Any = None,
    store_reasons: Any = None,
    goal: Any = None,
    floor: Any = None,
    budget: Any = None,
    baseline: Any = None,
    holdout: Any = None,
    explore: Any = None,
    guard: Any = None,
    guard_error: Any = None,
    reward_unit: Any = None,
    cost_unit: Any = None,
) -> SettingsChange:
    """Settings from outside, checked; but for the policy."""
    return SettingsChange(
        policy,
        None if overhead is None else not_negative("overhead", overhead),
        failed_reward_of(failed_reward),
        yes_or_no("store_reasons", store_reasons),
        goal_said(goal, floor, budget),
        trial_change(baseline, holdout, explore, guard, guard_error),
        units_change(reward_unit, cost_unit),
    )


def settings_from(text: str) -> Settings:
    """The settings that `Settings.text` wrote; `ValueError` if it was not that."""
    try:
        content = json.loads(text)
        retired, failed_reward = tuple(map(tuple, content["retired"])), content.get("failed_reward")
        later = content.get("store_reasons", True), content.get("forgotten", 0)  # than schema version 4
        trial = trial_from(content.get("trial"))
        labels = units_from(content.get("units", Units())), declared_from(content.get("declared", {}))
        told = content["policy"], content["overhead"], retired, failed_reward
        settings = Settings(*told, later[0], trial, later[1], *labels)
        right = (
            type(settings.policy) is int and type(settings.overhead) is float and 0.0 <= settings.overhead < math.inf
        )
        right = right and (failed_reward is None or (type(failed_reward) is float and math.isfinite(failed_reward)))
        right = (
            right
            and type(settings.store_reasons) is bool
            and type(settings.forgotten) is int
            and settings.forgotten >= 0
        )
        right = right and all(
            len(pair) == 2 and type(pair[0]) in (str, type(None)) and type(pair[1]) is str for pair in settings.retired
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"settings = {text[:200]!r}: {type(error).__name__} {error}") from None
    if not right:
        raise ValueError(f"settings = {text[:200]!r}: a value that settings cannot have")
    return settings


def policy_text(policy: Any) -> str:
    """A policy with all its parameters as JSON."""
    own = type(policy)
    names = [name for name, listed in LIST.items() if listed.is_of(own)]
    values = {field: plain(value) for field, value in policy._asdict().items()}
    return json.dumps({"policy": names[0] if names else f"{own.__module__}:{own.__qualname__}", "parameters": values})


def plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else value


def policy_from(text: str) -> Policy:
    """The policy that `policy_text` described."""
    content = json.loads(text)
    given = {
        name: np.array(value, float) if isinstance(value, list) else value
        for name, value in content["parameters"].items()
    }
    policy: Policy = find(content["policy"]).type(**given)
    return policy


def policy_words(text: str) -> str:
    """The same for people: name,parameter=value, without its goal and what a policy of that name has anyway."""
    content = json.loads(text)
    policy = find(content["policy"]).type
    left_out = GOAL_FIELDS if policy is GoalImed else ()
    unusual = [
        f"{name}={value}"
        for name, value in content["parameters"].items()
        if name not in left_out and plain(policy._field_defaults.get(name)) != value
    ]
    return ",".join([content["policy"], *unusual])
