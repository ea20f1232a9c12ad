"""A policy's methods on its state: interpreted, which needs nothing, or as machine code; the same bits either way.

What is reported is also counted in the totals.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from worthwhile.compiling import engine_named, first_cause, machine_code
from worthwhile.decision import Decision
from worthwhile.errors import CannotCompile
from worthwhile.live.totals import (
    Folded,
    count_failure,
    count_observation,
    count_report,
    discount_report,
    new_totals,
    no_features,
)
from worthwhile.policies import base
from worthwhile.policies.base import (
    NOTHING_RUNS,
    Policy,
    Running,
    aim,
    book,
    choose,
    choose_at,
    choose_by_features,
    has_goal,
    judge,
    learn,
    learn_features,
    looks_at_features,
    methods_of,
    observe,
)
from worthwhile.policies.features import LEAST_ROOM, ByFeatures
from worthwhile.rng import Rng, bits
from worthwhile.state import Floats, Indices, empty

log = logging.getLogger(__name__)

NO_FEATURES = np.zeros(0)
Judged = tuple[int, float, float]  # a Decision, or the same without the names


@dataclass(slots=True)
class Offer:
    """Options on offer to one kind, as numbers; in every form that someone needs often."""

    kind: int
    numbers: list[int]
    array: Indices
    text: str
    idle: str  # 0,0,…: nothing of this kind is running


class Engine(Protocol):
    """What the fold needs of a policy; `bind` is called whenever the state has new arrays.

    `choose` is told how many tasks of this kind are running with each option, the features of a task that has some if
    the policy looks at them, and of a policy with a goal the price that it has aimed at.
    """

    def bind(self, state: Folded) -> None: ...
    def choose(
        self, offer: Offer, running: Mapping[int, int], task: int,
        features: Floats | None = None, price: float | None = None,
    ) -> Judged: ...  # fmt: skip
    def judge(self, kind: int, option: int) -> Judged: ...
    def learn(
        self, kind: int, option: int, reward_estimate: float, cost_estimate: float,
        reward: float, cost: float, task: int,
    ) -> None: ...  # fmt: skip
    def observe(self, kind: int, option: int, reward: float, cost: float, task: int) -> None: ...
    def learn_features(
        self, kind: int, option: int, features: Floats, reward: float, cost: float, task: int
    ) -> None: ...
    @property
    def seldom(self) -> Interpreted: ...  # for what happens so seldom that no machine code is made of it


def engine_of(name: str, policy: Policy, seed_key: int) -> Engine:
    """The engine of that name."""
    return Compiled(policy, seed_key) if engine_named(name) == "compiled" else Interpreted(policy, seed_key)


def views(state: Any) -> Any:
    """The same state through memoryviews: an element is a plain Python number, at half the cost."""
    return type(state)(*(views(part) if isinstance(part, tuple) else memoryview(part) for part in state))


def offer_of(kind: int, numbers: list[int]) -> Offer:
    """An offer from its numbers."""
    return Offer(kind, numbers, np.array(numbers, np.uint32), ",".join(map(str, numbers)), ",".join("0" * len(numbers)))


class Interpreted:
    """The methods as they are. A policy that does more with an array than index it gets the arrays themselves."""

    def __init__(self, policy: Policy, seed_key: int) -> None:
        self.policy, self.seed_key, self.plain = policy, seed_key, False
        try:
            self.bind(blank(policy))
            try_all(self)
            if looks_at_features(policy):
                try_features(self)
        except Exception:
            self.plain = True

    def bind(self, state: Folded) -> None:
        self.totals, self.idle = views(state.totals), array("I", [0] * state.totals.pulls.shape[1])
        self.state = state.learned if self.plain else views(state.learned)

    def choose(
        self, offer: Offer, running: Mapping[int, int], task: int,
        features: Floats | None = None, price: float | None = None,
    ) -> Judged:  # fmt: skip
        options, pending = self.offered(offer, running)
        if price is not None:
            seen, rng = self.seen(NO_FEATURES if features is None else features), Rng(self.seed_key, task)
            return choose_at(self.policy, self.state, price, offer.kind, seen, options, pending, rng)
        if features is None:
            return self.policy.choose(self.state, offer.kind, options, pending, Rng(self.seed_key, task))
        seen, rng = self.seen(features), Rng(self.seed_key, task)
        return choose_by_features(self.policy, self.state, offer.kind, seen, options, pending, rng)

    def aim(self, kind: int, of_all: Running, of_kind: Running) -> float:
        """The price for the next task of a kind, given what is running; of a policy with a goal."""
        return aim(self.policy, self.state, kind, of_all, of_kind)

    def book(self, kind: int, came: Running, expected: Running) -> None:
        """What came of tasks, for a policy with a goal, and what it had expected."""
        book(self.policy, self.state, kind, came, expected)

    def offered(self, offer: Offer, running: Mapping[int, int]) -> tuple[Any, Any]:
        """Options, and how many tasks of each are running, as the policy is given arrays."""
        pending: Any = self.idle
        if running:
            pending = self.idle[:]
            for option, count in running.items():
                pending[option] = count
        return (offer.array, np.asarray(pending)) if self.plain else (offer.numbers, pending)

    def by_features(
        self, offer: Offer, running: Mapping[int, int], task: int, features: Floats, taken: int
    ) -> ByFeatures | None:
        """What of a task led to the option that was taken; None if the policy does not say."""
        by_features = getattr(self.policy, "by_features", None)
        if by_features is None:
            return None
        (options, pending), rng = self.offered(offer, running), Rng(self.seed_key, task)
        told: ByFeatures = by_features(self.state, offer.kind, self.seen(features), options, pending, taken, rng)
        return told

    def seen(self, features: Floats) -> Any:
        """Features as the policy is given arrays."""
        return features if self.plain else features.data

    def judge(self, kind: int, option: int) -> Judged:
        return self.policy.judge(self.state, kind, option)

    def learn(
        self, kind: int, option: int, reward_estimate: float, cost_estimate: float,
        reward: float, cost: float, task: int,
    ) -> None:  # fmt: skip
        made = Decision(option, reward_estimate, cost_estimate)
        self.policy.learn(self.state, kind, made, reward, cost, Rng(self.seed_key, task))
        count_report(self.totals, kind, option, reward, cost)

    def observe(self, kind: int, option: int, reward: float, cost: float, task: int) -> None:
        self.policy.observe(self.state, kind, option, reward, cost, Rng(self.seed_key, task))
        count_observation(self.totals, kind, option)

    def learn_features(self, kind: int, option: int, features: Floats, reward: float, cost: float, task: int) -> None:
        rng = Rng(self.seed_key, task)
        learn_features(self.policy, self.state, kind, self.seen(features), option, reward, cost, rng)

    @property
    def seldom(self) -> Interpreted:
        return self

    def for_attempt(self, attempt: int) -> Interpreted:
        """The same with random draws of its own for a further attempt at a task; no task has the number 0."""
        twin = copy(self)
        twin.seed_key = bits(Rng(self.seed_key, 0), attempt)[0]
        return twin

    def try_again(self, kind: int, option: int, reward: float, cost: float, task: int) -> None:
        """A further attempt at a task, or one that was taken for lost, has a result: no other arrival."""
        self.policy.observe(self.state, kind, option, reward, cost, Rng(self.seed_key, task))
        count_report(self.totals, kind, option, reward, cost)

    def fail(
        self, kind: int, option: int, reward_estimate: float, cost_estimate: float, cost: float, task: int
    ) -> None:
        made = Decision(option, reward_estimate, cost_estimate)
        base.fail(self.policy, self.state, kind, made, cost, Rng(self.seed_key, task))
        count_failure(self.totals, kind, option, cost)

    def fail_again(self, kind: int, option: int, cost: float, task: int) -> None:
        """A further attempt at a task has failed."""
        base.observe_failure(self.policy, self.state, kind, option, cost, Rng(self.seed_key, task))
        count_failure(self.totals, kind, option, cost)

    def take_back_loss(self, kind: int, option: int, cost: float, task: int) -> None:
        base.take_back(self.policy, self.state, kind, option, cost, Rng(self.seed_key, task))
        count_failure(self.totals, kind, option, cost, -1.0)

    def discount_result(self, kind: int, option: int, reward: float, cost: float) -> None:
        """A loss that was learned from as a result: policies cannot forget one, the totals can."""
        discount_report(self.totals, kind, option, reward, cost)

    def forgive(self, kind: int, option: int) -> None:
        base.forgive(self.policy, self.state, kind, option)


class Compiled:
    """The methods as machine code, called past numba's check of the arguments' types: they are always the same."""

    def __init__(self, policy: Policy, seed_key: int) -> None:
        self.policy, self.seed_key = policy, seed_key
        self.seldom = Interpreted(policy, seed_key)  # to compile for failures would take longer than most ever save
        self.holder: Any = None
        methods, number, value, numbers = methods_of(policy), 0, 0.0, np.zeros(1, np.uint32)
        calls = (
            (machine_code(choose_one, methods), (number, numbers, numbers, number, number)),
            (machine_code(judge_one, methods), (number, number)),
            (machine_code(learn_one, methods), (number, number, value, value, value, value, number, number)),
            (machine_code(observe_one, methods), (number, number, value, value, number, number)),
        )
        try:
            self.bind(blank(policy))
            entries = [entry_point(function, (self.holder, *arguments)) for function, arguments in calls]
            self.choosing, self.judging, self.learning, self.observing = entries
            try_all(self)
        except Exception as error:
            name, cause = type(policy).__name__, first_cause(str(error))
            raise CannotCompile(f"numba cannot compile {name}: {cause}; use engine='python'") from error

    def bind(self, state: Folded) -> None:
        from worthwhile.live.compiled_state import Holder

        holder = Holder(self.policy, state.learned, state.totals)
        if self.holder is not None and types_of(holder) != types_of(self.holder):
            raise CannotCompile(f"{type(self.policy).__name__} has states of several types; use engine='python'")
        self.holder, self.idle = holder, np.zeros(state.totals.pulls.shape[1], np.uint32)
        self.seldom.bind(state)

    def choose(
        self, offer: Offer, running: Mapping[int, int], task: int,
        features: Floats | None = None, price: float | None = None,
    ) -> Judged:  # fmt: skip
        if price is not None:
            return self.choose_at(price, offer, running, task, NO_FEATURES if features is None else features)
        if features is not None:
            return self.choose_by_features(offer, running, task, features)
        pending = self.idle
        if running:
            pending = pending.copy()
            for option, count in running.items():
                pending[option] = count
        made: Judged = self.choosing(self.holder, offer.kind, offer.array, pending, self.seed_key, task)
        return made

    def judge(self, kind: int, option: int) -> Judged:
        made: Judged = self.judging(self.holder, kind, option)
        return made

    def learn(
        self, kind: int, option: int, reward_estimate: float, cost_estimate: float,
        reward: float, cost: float, task: int,
    ) -> None:  # fmt: skip
        self.learning(self.holder, kind, option, reward_estimate, cost_estimate, reward, cost, self.seed_key, task)

    def observe(self, kind: int, option: int, reward: float, cost: float, task: int) -> None:
        self.observing(self.holder, kind, option, reward, cost, self.seed_key, task)

    def choose_at(self, price: float, offer: Offer, running: Mapping[int, int], task: int, features: Floats) -> Judged:
        pending = self.idle.copy()
        for option, count in running.items():
            pending[option] = count
        made: Judged = self.choosing_at(
            self.holder, price, offer.kind, features, offer.array, pending, self.seed_key, task
        )
        return made

    @cached_property
    def choosing_at(self) -> Any:
        """Machine code for a policy with a goal."""
        number, value, numbers, values = 0, 0.0, np.zeros(1, np.uint32), np.zeros(1)
        arguments = value, number, values, numbers, numbers, number, number
        return entry_point(machine_code(choose_one_at, methods_of(self.policy)), (self.holder, *arguments))

    def choose_by_features(self, offer: Offer, running: Mapping[int, int], task: int, features: Floats) -> Judged:
        if self.with_features is None:
            return self.seldom.choose(offer, running, task, features)
        pending = self.idle.copy()
        for option, count in running.items():
            pending[option] = count
        made: Judged = self.with_features[0](
            self.holder, offer.kind, features, offer.array, pending, self.seed_key, task
        )
        return made

    def learn_features(self, kind: int, option: int, features: Floats, reward: float, cost: float, task: int) -> None:
        if self.with_features is None:
            self.seldom.learn_features(kind, option, features, reward, cost, task)
        else:
            self.with_features[1](self.holder, kind, features, option, reward, cost, self.seed_key, task)

    @cached_property  # with the first task that has features: for the many without, it would be seconds for nothing
    def with_features(self) -> tuple[Any, Any] | None:
        """Machine code for tasks with features; None if numba cannot make it, by now too late for another engine."""
        methods, number, value = methods_of(self.policy), 0, 0.0
        numbers, values = np.zeros(1, np.uint32), np.zeros(1)
        choosing = number, values, numbers, numbers, number, number
        learning = number, values, number, value, value, number, number
        try:
            return (
                entry_point(machine_code(choose_one_by_features, methods), (self.holder, *choosing)),
                entry_point(machine_code(learn_features_of_one, methods), (self.holder, *learning)),
            )
        except Exception as error:
            name, cause = type(self.policy).__name__, first_cause(str(error))
            log.warning("numba cannot compile what %s does with features, which is slower now: %s", name, cause)
            return None


def entry_point(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The machine code for arguments of these types."""
    return function.compile(types_of(*arguments))


def types_of(*values: Any) -> tuple[Any, ...]:
    """What they are to numba."""
    from numba import typeof

    return tuple(map(typeof, values))


def blank(policy: Policy) -> Folded:
    """A state to try things on."""
    return Folded(
        new_totals(2, 2), empty(policy, 2, 2, LEAST_ROOM if looks_at_features(policy) else 0), no_features(2, 2)
    )


def try_all(engine: Engine) -> None:
    """Call everything once, on a state that nobody needs: it compiles, or shows that it cannot."""
    option, reward, cost = engine.choose(offer_of(0, [0]), {0: 1}, 1)
    engine.judge(0, 0)
    engine.learn(0, int(option), float(reward), float(cost), 0.5, 1.0, 1)
    engine.observe(0, 0, 0.5, 1.0, 1)
    seldom = engine.seldom
    seldom.fail(0, int(option), float(reward), float(cost), 1.0, 1)
    seldom.fail_again(0, 0, 1.0, 1)
    seldom.take_back_loss(0, 0, 1.0, 1)
    seldom.forgive(0, 0)
    if has_goal(seldom.policy):
        price = seldom.aim(0, NOTHING_RUNS, NOTHING_RUNS)
        engine.choose(offer_of(0, [0]), {0: 1}, 1, None, price)
        seldom.book(0, Running(1.0, 0.5, 1.0), Running(1.0, 0.5, 1.0))


def try_features(engine: Engine) -> None:
    """The same for a task with features."""
    features = np.full(LEAST_ROOM, 0.5)
    option = int(engine.choose(offer_of(0, [0]), {0: 1}, 1, features)[0])
    engine.learn_features(0, option, features, 0.5, 1.0, 1)


def choose_one_at(
    holder: Any, price: float, kind: int, features: Floats, options: Indices, pending: Indices, seed_key: int, task: int
) -> Judged:
    made = choose_at(holder.policy, holder.state, price, kind, features, options, pending, Rng(seed_key, task))
    return made.option, made.reward_estimate, made.cost_estimate


def choose_one(holder: Any, kind: int, options: Indices, pending: Indices, seed_key: int, task: int) -> Judged:
    made = choose(holder.policy, holder.state, kind, options, pending, Rng(seed_key, task))
    return made.option, made.reward_estimate, made.cost_estimate


def judge_one(holder: Any, kind: int, option: int) -> Judged:
    made = judge(holder.policy, holder.state, kind, option)
    return made.option, made.reward_estimate, made.cost_estimate


def learn_one(
    holder: Any, kind: int, option: int, reward_estimate: float, cost_estimate: float,
    reward: float, cost: float, seed_key: int, task: int,
) -> None:  # fmt: skip
    made = Decision(option, reward_estimate, cost_estimate)
    learn(holder.policy, holder.state, kind, made, reward, cost, Rng(seed_key, task))
    count_report(holder.totals, kind, option, reward, cost)


def observe_one(holder: Any, kind: int, option: int, reward: float, cost: float, seed_key: int, task: int) -> None:
    observe(holder.policy, holder.state, kind, option, reward, cost, Rng(seed_key, task))
    count_observation(holder.totals, kind, option)


def choose_one_by_features(
    holder: Any, kind: int, features: Floats, options: Indices, pending: Indices, seed_key: int, task: int
) -> Judged:
    made = choose_by_features(holder.policy, holder.state, kind, features, options, pending, Rng(seed_key, task))
    return made.option, made.reward_estimate, made.cost_estimate


def learn_features_of_one(
    holder: Any, kind: int, features: Floats, option: int, reward: float, cost: float, seed_key: int, task: int
) -> None:
    learn_features(holder.policy, holder.state, kind, features, option, reward, cost, Rng(seed_key, task))
