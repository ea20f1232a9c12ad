"""What every policy offers, and what a policy may be told about a problem before it starts."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices

if TYPE_CHECKING:
    from worthwhile.optimum import Optimum
    from worthwhile.problem import Problem

FAILED_REWARD = 0.0  # of a failure, to policies that do not tell failures apart


class Policy(Protocol):
    """A NamedTuple of parameters with these methods, in plain scalar Python; see docs/extend.md.

    The state is a NamedTuple of arrays shaped (1,), (kinds,), (options,) or (kinds, options); see state.py for those of
    a policy that looks at features. `choose`, `choose_by_features` and `judge` never write.
    """

    def init(self, kinds: int, options: int) -> Any:
        """The state before the first task, with room for so many kinds and options."""

    def choose(self, state: Any, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        """The option to take; pending[option] counts this kind's tasks that are running right now."""

    def judge(self, state: Any, kind: int, option: int) -> Decision:
        """The estimates this policy has for one given option."""

    def learn(self, state: Any, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        """A task has reported."""

    def observe(self, state: Any, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        """A side observation: means move; task count, arrivals and the price's step do not."""

    # A policy that looks at features has two more methods, choose_by_features and learn_features, and a state that also
    # has room for so many features: init(kinds, options, features=0), whose tables are empty without any. See the
    # functions of these names below. For people it may have three more, which answer with the types at the end of
    # features.py: `by_features`, like choose_by_features with the option that was taken before `rng`;
    # `beyond_usual(state, kind, features)`, what is expected of every option beyond the usual one; and
    # `features_so_far(state)`.

    # A policy with a goal, like a floor or a budget, has three more: aim, choose_at and book. The price of a decision
    # then depends on what all tasks have brought, and on those that are running; see the functions below.

    # A policy that draws an option at random may say how likely one is, which the log keeps:
    # `probability(state, kind, options, option)`. Of others it keeps how likely it was given their draws, which is 1.

    # A policy that tells failures apart has four more methods: fail, observe_failure, take_back and forgive. Without
    # them a failure is a reward of 0, for good; see the functions of these names below. If it leaves options out for
    # their failures, `benched` and `next_try` tell the pages which, and until when.


class Running(NamedTuple):
    """So many tasks, and what is expected of them, or has come of them."""

    tasks: float
    reward: float
    cost: float


NOTHING_RUNS = Running(0.0, 0.0, 0.0)


class Known(NamedTuple):
    """The truth about a problem. Policies that must be told some of it have fields of these names."""

    horizon: int
    reward_min: float
    reward_max: float
    cost_min: float
    cost_max: float
    price_min: float
    price_max: float
    best_ratio: float
    mean_reward: Floats
    mean_cost: Floats
    options: tuple[str, ...]


def known(problem: Problem, horizon: int, best: Optimum | None = None) -> Known:
    """Exact bounds, means and optimum of a problem; `best` if that is already solved."""
    from worthwhile.optimum import bounds_of, solve  # what decides for real tasks needs neither

    bounds, best_ratio = bounds_of(problem), (best or solve(problem)).best_ratio
    reward, cost = np.where(problem.offered, problem.reward, 0.0), np.where(problem.offered, problem.cost, 0.0)
    if problem.can_fail:  # what always fails is worth less than anything
        reward = np.where(problem.offered & ~problem.completing, -np.inf, reward)
        cost = np.where(problem.completing, problem.cost_per_completion, cost)
    return Known(horizon, *bounds, best_ratio, reward, cost, problem.options)


def checked(policy: Any) -> Any:
    """The policy itself, unless its parameters are such that it cannot work: numbers are finite, the rest it checks."""
    for field, value in zip(policy._fields, policy, strict=True):
        if isinstance(value, int | float) and not math.isfinite(value):
            raise bad(policy, field, "it must be a finite number")
    if hasattr(policy, "check"):
        policy.check()
    return policy


def positive(policy: Any, *fields: str) -> None:
    """Refuse fields that are 0 or less."""
    for field in fields:
        if getattr(policy, field) <= 0:
            raise bad(policy, field, "it must be above 0")


def not_negative(policy: Any, field: str) -> None:
    """Refuse a field below 0."""
    if getattr(policy, field) < 0:
        raise bad(policy, field, "it must be 0 or more")


def ordered(policy: Any, low: str, high: str) -> None:
    """Refuse an interval that is upside down."""
    if getattr(policy, low) > getattr(policy, high):
        raise bad(policy, low, f"it must not be above {high} = {getattr(policy, high)}")


def bad(policy: Any, field: str, rule: str) -> BadParameter:
    """The message: whose field has which value, and what it must be."""
    return BadParameter(f"{type(policy).__name__}: {field} = {getattr(policy, field)}; {rule}")


def choose(policy: Policy, state: Any, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
    """Call the policy's method; so do all that follow. A compiled caller has `methods_of` the policy in their place."""
    return policy.choose(state, kind, options, pending, rng)


def judge(policy: Policy, state: Any, kind: int, option: int) -> Decision:
    return policy.judge(state, kind, option)


def learn(policy: Policy, state: Any, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
    policy.learn(state, kind, made, reward, cost, rng)


def observe(policy: Policy, state: Any, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
    policy.observe(state, kind, option, reward, cost, rng)


def fail(policy: Any, state: Any, kind: int, made: Decision, cost: float, rng: Rng) -> None:
    """A task has failed, at this cost; it counts as an arrival."""
    getattr(policy, "fail", partial(fail_as_report, policy))(state, kind, made, cost, rng)


def observe_failure(policy: Any, state: Any, kind: int, option: int, cost: float, rng: Rng) -> None:
    """A further attempt at a task has failed: no other arrival."""
    getattr(policy, "observe_failure", partial(fail_as_observation, policy))(state, kind, option, cost, rng)


def take_back(policy: Any, state: Any, kind: int, option: int, cost: float, rng: Rng) -> None:
    """What counted as a failure of this cost was none: the task has reported after all."""
    getattr(policy, "take_back", partial(keep_failure, policy))(state, kind, option, cost, rng)


def forgive(policy: Any, state: Any, kind: int, option: int) -> None:
    """Somebody has restored the option: how often it has failed in a row is forgotten."""
    getattr(policy, "forgive", partial(forgive_nothing, policy))(state, kind, option)


def looks_at_features(policy: Any) -> bool:
    """Whether it knows what to do with features of a task."""
    return hasattr(policy, "choose_by_features")


def choose_by_features(
    policy: Any, state: Any, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
) -> Decision:
    """The option to take for a task with features, as many as the state has room for."""
    method = getattr(policy, "choose_by_features", partial(choose_without_features, policy))
    made: Decision = method(state, kind, features, options, pending, rng)
    return made


def learn_features(
    policy: Any, state: Any, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
) -> None:
    """What came of a task with features, its reward NaN if it has failed.

    Said just before `learn`, `observe`, `fail` or `observe_failure`, whichever is due.
    """
    method = getattr(policy, "learn_features", partial(learn_no_features, policy))
    method(state, kind, features, option, reward, cost, rng)


def has_goal(policy: Any) -> bool:
    """Whether it has a floor or a budget to keep, and so must know what all tasks have brought."""
    return hasattr(policy, "aim")


def aim(policy: Any, state: Any, kind: int, of_all: Running, of_kind: Running) -> float:
    """The price for the next task, given what is running of all kinds and of this one; of a policy with a goal."""
    price: float = policy.aim(state, kind, of_all, of_kind)
    return price


def choose_at(
    policy: Any,
    state: Any,
    price: float,
    kind: int,
    features: Floats,
    options: Indices,
    pending: Indices,
    rng: Rng,
) -> Decision:
    """The option to take at this price, of a policy with a goal; `features` is empty for a task without any."""
    made: Decision = policy.choose_at(state, price, kind, features, options, pending, rng)
    return made


def book(policy: Any, state: Any, kind: int, came: Running, expected: Running) -> None:
    """What came of a task that a policy with a goal has decided, or of one more attempt at it, and what it expected."""
    policy.book(state, kind, came, expected)


def aim_at_nothing(policy: Any, state: Any, kind: int, of_all: Running, of_kind: Running) -> float:
    return 0.0


def choose_at_any_price(
    policy: Any,
    state: Any,
    price: float,
    kind: int,
    features: Floats,
    options: Indices,
    pending: Indices,
    rng: Rng,
) -> Decision:
    return choose(policy, state, kind, options, pending, rng)


def book_nothing(policy: Any, state: Any, kind: int, came: Running, expected: Running) -> None:
    pass


def choose_without_features(
    policy: Policy, state: Any, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
) -> Decision:
    return choose(policy, state, kind, options, pending, rng)


def learn_no_features(
    policy: Policy, state: Any, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
) -> None:
    pass


def fail_as_report(policy: Policy, state: Any, kind: int, made: Decision, cost: float, rng: Rng) -> None:
    learn(policy, state, kind, made, FAILED_REWARD, cost, rng)


def fail_as_observation(policy: Policy, state: Any, kind: int, option: int, cost: float, rng: Rng) -> None:
    observe(policy, state, kind, option, FAILED_REWARD, cost, rng)


def keep_failure(policy: Policy, state: Any, kind: int, option: int, cost: float, rng: Rng) -> None:
    pass


def forgive_nothing(policy: Policy, state: Any, kind: int, option: int) -> None:
    pass


INSTEAD = {  # of what a policy may lack
    "fail": fail_as_report,
    "observe_failure": fail_as_observation,
    "take_back": keep_failure,
    "forgive": forgive_nothing,
    "choose_by_features": choose_without_features,
    "learn_features": learn_no_features,
    "aim": aim_at_nothing,
    "choose_at": choose_at_any_price,
    "book": book_nothing,
}


def methods_of(policy: Policy) -> dict[str, Any]:
    """What stands for the functions above in machine code: numba knows no methods of a NamedTuple."""
    own = {name: getattr(type(policy), name, None) for name in ("choose", "judge", "learn", "observe", *INSTEAD)}
    return INSTEAD | {name: method for name, method in own.items() if method is not None}  # simulations need few
