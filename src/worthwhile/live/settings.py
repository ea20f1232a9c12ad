"""What a scheduler is told: its policy, a cost per task, and which options are retired; as text in its store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadParameter
from worthwhile.policies.base import Policy, check_parameters
from worthwhile.policies.registry import LIST, find
from worthwhile.policies.registry import convert as converted


class Settings(NamedTuple):
    """The settings that all processes of a scheduler share."""

    policy: int  # its number among the scheduler's names
    overhead: float = 0.0  # cost of every task on top of what is reported
    retired: tuple[tuple[str | None, str], ...] = ()  # (kind, or None for all; option)

    def text(self) -> str:
        return json.dumps(self._asdict(), ensure_ascii=False)


def settings_from(text: str) -> Settings:
    """The settings that `Settings.text` wrote."""
    content = json.loads(text)
    retired = tuple((kind, option) for kind, option in content["retired"])
    return Settings(content["policy"], content["overhead"], retired)


def policy_by_name(text: str, options: Sequence[str]) -> Policy:
    """A policy from `name,parameter=value`; nothing is known about the tasks, so what it must be told has to be there.

    >>> policy_by_name("reward-ucb,horizon=1000", ()).horizon
    1000
    """
    name, *pairs = text.split(",")
    listed = find(name)
    given = dict(listed.preset)
    for pair in pairs:
        parameter, found, value = pair.partition("=")
        if not found:
            raise BadParameter(f"policy {text!r}: {pair!r} is not parameter=value")
        given[parameter] = converted(name, listed.type, parameter, value, tuple(options))
    for field in listed.type._fields:
        if field not in given and field not in listed.type._field_defaults:
            raise BadParameter(f"policy {text!r} must be told {field}; write {name},{field}=value, or use ratio-imed")
    policy: Policy = listed.type(**given)
    check_parameters(policy)
    return policy


def policy_text(policy: Any) -> str:
    """A policy with all its parameters as JSON."""
    kind = type(policy)
    names = [name for name, listed in LIST.items() if listed.type is kind]
    plain = {field: value.tolist() if hasattr(value, "tolist") else value for field, value in policy._asdict().items()}
    return json.dumps({"policy": names[0] if names else f"{kind.__module__}:{kind.__qualname__}", "parameters": plain})


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
    """The same for people: name,parameter=value, without what a policy of that name has anyway."""
    content = json.loads(text)
    usual = find(content["policy"]).type._field_defaults
    told = [f"{name}={value}" for name, value in content["parameters"].items() if usual.get(name) != value]
    return ",".join([content["policy"], *told])
