"""Tasks to try a policy with, one at a time: every rule about a single call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from worthwhile import state as states
from worthwhile.decision import Decision
from worthwhile.policies.base import looks_at_features
from worthwhile.policies.features import CATEGORY, MISSING, feature_number
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices, Size
from worthwhile.testing import rules
from worthwhile.testing.rules import KEY, TASKS, WITH_FEATURES, attempt, broken

UNMOVED = ("tasks", "price", "arrivals", "plug_in")
HARD = ((0.0, 1e-6), (-1e6, 1.0), (1e6, 1e6), (-1e-6, 1e6), (0.0, 1.0))  # rewards and costs
EXTREME = (-1e100, 0.0, 1e-100, 1e100, CATEGORY)  # features
ROOM = 8  # for features; tasks have fewer
BARE = 7  # one in so many tasks has none


class Case(NamedTuple):
    """A task: what is asked, and the feedback that it gets."""

    kind: int
    options: Indices
    pending: Indices
    rng: Rng
    reward: float
    cost: float
    features: Floats | None = None


def cases(size: Size, seed: int, room: int = 0) -> list[Case]:
    """Tasks with any options in any order; the last kind never reports, some feedback is hard to swallow."""
    generator, luck = np.random.default_rng(seed), np.random.default_rng(seed)
    tasks = []
    for task in range(1, (WITH_FEATURES if room else TASKS) + 1):
        count = int(generator.integers(1, size.options, endpoint=True))
        options = generator.permutation(size.options)[:count].astype(np.uint32)
        pending = generator.integers(0, 3, size.options).astype(np.uint32)
        kind = int(generator.integers(max(1, size.kinds - 1)))
        reward, cost = generator.normal(0.5, 0.3), generator.gamma(4.0, 0.25)
        reward, cost = HARD[task // 20 % len(HARD)] if task % 20 == 0 else (float(reward), float(cost))
        features = some_features(luck, task, room) if room and task % BARE else None
        tasks.append(Case(kind, options, pending, Rng(KEY, task), reward, cost, features))
    return tasks


def some_features(luck: np.random.Generator, task: int, room: int) -> Floats:
    """A number, a category, a truth, what is mostly missing, what is hard to swallow; beyond these there are none."""
    number, seldom = luck.normal(), luck.random()
    known = (
        number, feature_number("abc"[task % 3]), float(number > 0.5), seldom if seldom < 0.2 else MISSING,
        EXTREME[task % len(EXTREME)],
    )  # fmt: skip
    features = np.full(room, MISSING)
    features[: len(known)] = known
    features.flags.writeable = False
    return features


def try_tasks(policy: Any, state: Any, size: Size, tasks: Sequence[Case]) -> None:
    """Every rule about a single call, task after task, with plain and with NumPy inputs."""
    for case in tasks:
        decide(policy, state, case._replace(kind=size.kinds - 1))
        made = decide(policy, state, case)
        again, typed = copy_of(state), copy_of(state)
        take_in(policy, state, case, case.kind, made, int(case.options[-1]))
        take_in(policy, again, case, case.kind, made, int(case.options[-1]))
        if not states.same(state, again):
            raise broken(policy, rules.SAME_DECISION, f"it learned differently, twice from {case}")
        option = case.options[case.options == made.option][0]
        take_in(policy, typed, case, np.uint32(case.kind), Decision(option, *made[1:]), case.options[-1])
        if not states.same(state, typed):
            raise broken(policy, rules.PLAIN_NUMBERS, f"they leave different states after {case}")


def take_in(policy: Any, state: Any, case: Case, kind: Any, made: Decision, side: Any) -> None:
    """Learn from a task and observe another option, checked."""
    tell_features(policy, state, case, kind, made.option, case.reward)
    change(policy, policy.learn, state, kind, made, case.reward, case.cost, case.rng)
    tell_features(policy, state, case, kind, side, case.cost)
    before = copy_of(state)
    change(policy, policy.observe, state, kind, side, case.cost, case.cost, case.rng)
    check_unmoved(policy, rules.SIDE, before, state, UNMOVED, case)
    if hasattr(policy, "fail"):
        fail(policy, state, case, kind, made, side)


def tell_features(policy: Any, state: Any, case: Case, kind: Any, option: Any, reward: float) -> None:
    """What comes before `learn` and its like, if the task has features."""
    if case.features is not None:
        told = kind, case.features, option, reward, case.cost, case.rng
        change(policy, policy.learn_features, state, *told)


def fail(policy: Any, state: Any, case: Case, kind: Any, made: Decision, side: Any) -> None:
    """The task fails as well, and another option after it, which was a mistake, checked."""
    tell_features(policy, state, case, kind, made.option, math.nan)
    change(policy, policy.fail, state, kind, made, case.cost, case.rng)
    tell_features(policy, state, case, kind, side, math.nan)
    before = copy_of(state)
    for method, *told in (
        ("observe_failure", kind, side, case.cost, case.rng),
        ("take_back", kind, side, case.cost, case.rng),
        ("forgive", kind, side),
    ):
        if hasattr(policy, method):
            change(policy, getattr(policy, method), state, *told)
    check_unmoved(policy, rules.FURTHER, before, state, ("tasks", "arrivals"), case)


def check_unmoved(policy: Any, rule: str, before: Any, after: Any, names: Sequence[str], case: Case) -> None:
    """What has one of these names is what it was."""
    for (name, old), (_, new) in zip(states.arrays(before), states.arrays(after), strict=True):
        if set(name.split(".")) & set(names) and old.tobytes() != new.tobytes():
            raise broken(policy, rule, f"{name} went from {old} to {new} in {case}")


def decide(policy: Any, state: Any, case: Case) -> Decision:
    """The decision on a task, checked."""
    frozen = states.freeze(copy_of(state))
    for array in (case.options, case.pending):
        array.flags.writeable = False
    choose, options, features = policy.choose, case.options.tolist(), case.features
    seen: tuple[Any, ...] = ()
    listed: tuple[Any, ...] = ()
    if features is not None:
        choose, seen, listed = policy.choose_by_features, (features,), (features.tolist(),)
    arrays = (np.uint32(case.kind), *seen, case.options, case.pending, case.rng)
    plain = (case.kind, *listed, options, case.pending.tolist(), case.rng)
    made, again, other = (
        decision(policy, attempt(policy, rules.ANY_TASK, choose, frozen, *task), options, case)
        for task in (arrays, arrays, plain)
    )
    if made != other and all(choose(frozen, *arrays) == made for _ in range(20)):
        raise broken(policy, rules.PLAIN_NUMBERS, f"{made} from NumPy's, {other} from plain ones, for {case}")
    if not made == again == other:
        raise broken(policy, rules.SAME_DECISION, f"{made}, {again} and {other} for {case}")
    judged, again = (
        decision(
            policy, attempt(policy, rules.ANY_TASK, policy.judge, frozen, case.kind, made.option), [made.option], case
        )
        for _ in range(2)
    )
    if judged != again:
        raise broken(policy, rules.SAME_DECISION, f"judge says {judged} and {again} for {case}")
    return made


def decision(policy: Any, made: Any, options: list[int], case: Case) -> Decision:
    """A decision in plain numbers, if it is one."""
    if not isinstance(made, Decision) or made.option not in options:
        raise broken(policy, rules.DECISION, f"{made!r} where options {options} are on offer, for {case}")
    plain = plain_decision(made)
    if not np.isfinite(plain[1:]).all():
        raise broken(policy, rules.FINITE, f"{made} for {case}")
    return plain


def plain_decision(made: Decision) -> Decision:
    return Decision(int(made.option), float(made.reward_estimate), float(made.cost_estimate))


def change(policy: Any, method: Callable[..., Any], state: Any, *task: Any) -> None:
    """Learn or observe, checked."""
    arrays, missing = list(states.arrays(state)), looks_at_features(policy)
    before = [(name, array.shape, array.dtype) for name, array in arrays]
    old = [array.copy() for _, array in arrays] if missing else []
    returned = attempt(policy, rules.ANY_TASK, method, state, *task)
    after = [(name, array.shape, array.dtype) for name, array in arrays]
    if returned is not None or before != after:
        shown = f"returned {returned!r}" if returned is not None else f"made {before} into {after}"
        raise broken(policy, rules.IN_PLACE, f"{method.__name__} {shown}")
    told = method.__name__ == "learn_features"
    for place, (name, array) in enumerate(arrays):
        if not np.isfinite(array).all() and not (missing and only_missing(array, old[place], told)):
            raise broken(policy, rules.FINITE, f"{name} is {array} after {method.__name__} with {task}")


def only_missing(array: Any, was: Any, told: bool) -> bool:
    """Whether what is not finite stands for missing features: NaN, which only who is told features writes."""
    return not (np.isinf(array) & (array != was) if told else ~np.isfinite(array) & ~np.isnan(was)).any()


def follow(policy: Any, state: Any, tasks: Sequence[Case]) -> list[Decision]:
    """What a policy decides as it learns."""
    decisions = []
    for case in tasks:
        kind, side, features, rng = case.kind, int(case.options[-1]), case.features, case.rng
        if features is None:
            made = policy.choose(state, kind, case.options, case.pending, rng)
        else:
            made = policy.choose_by_features(state, kind, features, case.options, case.pending, rng)
            policy.learn_features(state, kind, features, made.option, case.reward, case.cost, rng)
        policy.learn(state, kind, made, case.reward, case.cost, rng)
        if features is not None:
            policy.learn_features(state, kind, features, side, case.cost, case.cost, rng)
        policy.observe(state, kind, side, case.cost, case.cost, rng)
        if hasattr(policy, "fail") and rng.task % 3 == 0:
            if features is not None:
                policy.learn_features(state, kind, features, made.option, math.nan, case.cost, rng)
            policy.fail(state, kind, made, case.cost, rng)
        decisions.append(plain_decision(made))
    return decisions


def copy_of(state: Any) -> Any:
    """A state of its own, arrays and all."""
    return type(state)(*(copy_of(value) if isinstance(value, tuple) else value.copy() for value in state))
