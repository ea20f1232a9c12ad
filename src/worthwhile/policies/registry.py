"""The policies: one small file each, found by name or, for your own, by import path."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, get_type_hints

from worthwhile.errors import BadParameter, NotAllowed, UnknownPolicy, did_you_mean
from worthwhile.policies.base import Known, Policy, checked

DEFAULT = "ratio-imed"
IMPORTABLE: frozenset[str] | None = None  # import paths of own policies that may be followed; None: all of them
METHODS = ("init", "choose", "judge", "learn", "observe")


class Listed(NamedTuple):
    """A policy on the list: its class, and the parameters that its name stands for."""

    home: Any  # the class or, so that it is imported when it is needed, module:Class of this package
    preset: Mapping[str, Any] = {}
    words: str = ""

    @property
    def type(self) -> Any:
        if not isinstance(self.home, str):
            return self.home
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"{__package__}.{module}"), name)

    def is_of(self, policy: Any) -> bool:
        """Whether that is its class, without importing any."""
        return self.home in (policy, f"{policy.__module__.removeprefix(f'{__package__}.')}:{policy.__qualname__}")

    @property
    def summary(self) -> str:
        """One line on what it does."""
        return self.words or (inspect.getdoc(self.type) or "").splitlines()[0]


LIST: dict[str, Listed] = {
    "ratio-imed": Listed("imed:RatioImed"),
    "goal-imed": Listed("goal_imed:GoalImed"),
    "dol-rm": Listed("dol_rm:DolRm"),
    "dol-rm-anytime": Listed(
        "dol_rm:DolRm", {"anytime": True}, "DOL-RM with the step of the paper's figures, 1/(c_min (t+1))."
    ),
    "sample-rm": Listed("sample_rm:SampleRm"),
    "running-ratio-dol": Listed("running_ratio:RunningRatio"),
    "plug-in-dol": Listed("plug_in_dol:PlugInDol"),
    "solved-dol": Listed("solved_dol:SolvedDol"),
    "reward-ucb": Listed("ucb:RewardUcb"),
    "ratio-ucb": Listed("ucb:RatioUcb"),
    "gap-ucb": Listed("gap_ucb:GapUcb"),
    "reward-ts": Listed("thompson:RewardThompson"),
    "ratio-ts": Listed("thompson:RatioThompson"),
    "plug-ts": Listed("plug_ts:PlugTs"),
    "linear-greedy": Listed("linear:LinearGreedy"),
    "linear-ts": Listed("linear:LinearTs"),
    "omega-ucb": Listed("omega_ucb:OmegaUcb"),
    "omega-star-ucb": Listed(
        "omega_ucb:OmegaUcb", {"adaptive": True}, "ω-UCB that narrows its bounds by the sample variance."
    ),
    "m-ucb": Listed("m_ucb:MUcb"),
    "b-greedy": Listed("greedy:BGreedy"),
    "bts": Listed("bts:Bts"),
    "kind-greedy": Listed("greedy:KindGreedy"),
    "fixed-option": Listed("fixed:FixedOption"),
    "random-option": Listed("fixed:RandomOption"),
    "oracle": Listed("oracle:Oracle"),
    "optimum": Listed("oracle:Optimum"),
}


def make(text: str, told: Known | None = None, options: Sequence[str] = ()) -> Policy:
    """A policy from `name` or `package.module:Class`, with `,parameter=value` after it.

    Simulations tell it the truth; live, nothing is known but the options, so what it must be told has to stand there.

    >>> from worthwhile.policies.base import known
    >>> from worthwhile.problem import two_kinds
    >>> make("dol-rm,noise=2", known(two_kinds(), 1000)).noise, make("reward-ucb,horizon=1000").horizon
    (2.0, 1000)
    """
    name, *settings = text.split(",")
    listed, truth = find(name), {} if told is None else told._asdict()
    required = [field for field in listed.type._fields if field not in listed.type._field_defaults]
    given = {field: truth[field] for field in required if field in truth} | dict(listed.preset)
    for setting in settings:
        parameter, equals, value = setting.partition("=")
        if not equals:
            raise BadParameter(f"policy {text!r}: {setting!r} is not parameter=value")
        given[parameter] = convert(name, listed.type, parameter, value, truth.get("options", options))
    for field in required:
        if field not in given:
            hint = f"write {name},{field}=value" + (f", or use {DEFAULT}" if told is None else "")
            raise BadParameter(f"policy {text!r} must be told {field}; {hint}")
    policy: Policy = checked(listed.type(**given))
    return policy


def find(name: str) -> Listed:
    """The policy of a name on the list, or the class at an import path."""
    if ":" not in name:
        if name not in LIST:
            hint = did_you_mean(name, LIST)
            raise UnknownPolicy(f"no policy {name!r}; {hint} (your own: package.module:Class)")
        return LIST[name]
    if IMPORTABLE is not None:
        check_importable(name, IMPORTABLE)
    module, _, attribute = name.partition(":")
    try:
        imported = import_module(module)
    except Exception as error:  # whatever a module of the user's own may raise
        raise UnknownPolicy(f"policy {name!r}: cannot import {module!r} ({type(error).__name__}: {error})") from error
    if not hasattr(imported, attribute):
        raise UnknownPolicy(f"policy {name!r}: {module!r} has no {attribute!r}")
    policy = getattr(imported, attribute)
    if not (isinstance(policy, type) and hasattr(policy, "_fields")):
        raise UnknownPolicy(f"policy {name!r} is not a policy: it must be a NamedTuple class with {', '.join(METHODS)}")
    for method in METHODS:
        if not callable(getattr(policy, method, None)):
            raise UnknownPolicy(f"policy {name!r} is not a policy: it has no method {method}")
    return Listed(policy)


def check_importable(path: str, allowed: Collection[str]) -> None:
    """Importing is running: a service runs only what its operator has named."""
    if path not in allowed:
        raise NotAllowed(
            f"policy {path!r}: this service imports only what it was started with: "
            f"worthwhile serve --allow-policy {path}"
        )


def convert(name: str, policy: Any, parameter: str, text: str, options: Sequence[str]) -> Any:
    """A parameter's value from text, by the type of the policy's field."""
    if parameter not in policy._fields:
        hint = did_you_mean(parameter, policy._fields) if policy._fields else "it has none"
        raise BadParameter(f"policy {name!r} has no parameter {parameter!r}; {hint}")
    if parameter == "option":
        if text not in options:
            raise BadParameter(f"policy {name!r}: no option {text!r} here; {did_you_mean(text, options)}")
        return options.index(text)
    field_type = get_type_hints(policy)[parameter]
    try:
        return {"true": True, "false": False}[text.lower()] if field_type is bool else field_type(text)
    except (KeyError, TypeError, ValueError):
        wanted = {bool: "true or false", int: "a whole number"}.get(field_type, "a number")
        raise BadParameter(f"policy {name!r}: {parameter} = {text!r}; it must be {wanted}") from None
