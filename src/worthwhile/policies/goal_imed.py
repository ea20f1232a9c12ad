"""Goal-IMED: the default policy with a floor or a budget to keep; the same index, judged at another price.

| goal | the price |
|---|---|
| least cost, mean reward at least the floor | at which the choices' mean reward is the floor |
| most reward, mean cost at most the budget | at which their mean cost is the budget |
| best ratio, with either | the ratio of these very choices, but not above the floor's price, nor below the budget's |

docs/goals.md explains it, docs/policies.md derives it. Rewards and costs count by the task: one that fails brings
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from worthwhile.decision import Decision, arrive, settle
from worthwhile.errors import BadParameter
from worthwhile.goals.goal import Goal, goal_of
from worthwhile.policies.base import NOTHING_RUNS, Running, bad, positive
from worthwhile.policies.failures import count_report, forgive_failures, take_failure_back
from worthwhile.policies.features import ByFeatures, FeaturesSoFar
from worthwhile.policies.forest import TREES
from worthwhile.policies.forest_words import beyond_usual, so_far, what_mattered
from worthwhile.policies.imed import (
    RatioImed,
    State,
    Terms,
    best_tried,
    choose_overall,
    expected,
    fade,
    note_failure,
    record_result,
    refresh,
    with_failures,
)
from worthwhile.policies.near import choose_near, learn_near
from worthwhile.policies.pursuit import (
    BUDGET,
    FLOOR,
    PRICELESS,
    Pursuit,
    enter,
    higher,
    lower,
    move,
    new_pursuit,
    side,
    wanted_now,
)
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices

GOALS = "ratio", "cost", "reward"
RATIO, COST, REWARD = range(len(GOALS))
GOAL_FIELDS = "goal", "floor", "budget", "floor_kinds", "kind_floors"  # of the policy, that say its goal
NO_FLOOR, NO_BUDGET = -1e300, 1e300
LOOKED_AT, MOVES = 8, 4  # kinds per report, and steps of a price


class Sweep(NamedTuple):
    """What the choices of all kinds bring at a price, added up a few kinds at a time."""

    position: Floats  # (1,) of the next kind
    total: Floats  # (1,)
    arrivals: Floats  # (1,)


class GoalState(NamedTuple):
    """The default's state, and the prices that keep the constraints."""

    price: Floats  # (1,): at which the kind that has reported last is judged, on average
    known: State
    floor: Floats  # (kinds,): the mean reward that a kind must have, or the first for all
    for_floor: Pursuit  # (kinds,): likewise
    for_budget: Pursuit  # (1,)
    floor_sweep: Sweep
    budget_sweep: Sweep


def is_per_kind(policy: GoalImed) -> bool:
    """Whether floors are of kinds, not of all tasks together."""
    return len(policy.floor_kinds) > 0


def has_floor(policy: GoalImed) -> bool:
    return policy.floor > NO_FLOOR or is_per_kind(policy)


def has_budget(policy: GoalImed) -> bool:
    return policy.budget < NO_BUDGET


def new_sweep() -> Sweep:
    return Sweep(*np.zeros((3, 1)))


def price_of(policy: GoalImed, state: GoalState, kind: int, floor_price: float, budget_price: float) -> float:
    """The price at which a kind's options are judged, given those that keep the constraints."""
    price = state.known.plug_in.price[0]
    if policy.goal == COST:
        price = PRICELESS * unit_of(state)  # without a floor, the cheapest will do
    elif policy.goal == REWARD:
        price = budget_price
    elif has_budget(policy):
        price = max(price, budget_price)
    if state.floor[kind if is_per_kind(policy) else 0] > NO_FLOOR:
        price = min(price, floor_price)
    return price  # type: ignore[no-any-return]


def unit_of(state: GoalState) -> float:
    """What is usual for a price, whatever rewards and costs are counted in."""
    price: float = abs(state.known.plug_in.price[0])
    return price if price > 0.0 else 1.0


def is_priceless(state: GoalState, price: float) -> bool:
    """Whether a price is so high that the cheapest option is taken, whatever it brings."""
    return price >= 0.5 * PRICELESS * unit_of(state)


def usual_price(policy: GoalImed, state: GoalState, kind: int) -> float:
    """The same as things stand on average, on neither side of a kink."""
    at = kind if is_per_kind(policy) else 0
    return price_of(policy, state, kind, state.for_floor.price[at], state.for_budget.price[0])


def price_for(policy: GoalImed, state: GoalState, kind: int, of_all: Running, of_kind: Running) -> float:
    """The price for the next task: on which side of a kink depends on the balance, counting on what is running."""
    at, running = (kind, of_kind) if is_per_kind(policy) else (0, of_all)
    floor_price = budget_price = 0.0
    if state.floor[at] > NO_FLOOR:
        floor_price = side(state.for_floor, at, FLOOR, state.floor[at], running.tasks, running.reward)
    if has_budget(policy):
        budget_price = side(state.for_budget, 0, BUDGET, policy.budget, of_all.tasks, of_all.cost)
    return price_of(policy, state, kind, floor_price, budget_price)


def terms_at(policy: GoalImed, price: float) -> Terms:
    return Terms(price, True, policy.goal == COST, -1)


def terms_beside_kink(policy: GoalImed, state: GoalState, price: float, kind: int, options: Indices) -> Terms:
    """The terms on one side of a kink: the option of the other side is left out, for it gets its turn there.

    They tie, so little speaks against either: the default would try whichever was taken less often.
    """
    at, floor, budget = kind if is_per_kind(policy) else 0, state.for_floor, state.for_budget
    low = price_of(policy, state, kind, lower(floor, at), lower(budget, 0))
    high = price_of(policy, state, kind, higher(floor, at), higher(budget, 0))
    leader = leader_at(state.known, price, kind, options)
    partner = leader_at(state.known, low if price >= high else high, kind, options)
    return Terms(price, True, policy.goal == COST, partner if partner != leader else -1)


def leader_at(state: State, price: float, kind: int, options: Indices) -> int:
    """The best tried option at a price, −1 if there is none."""
    arms, failures, weight, terms = state.arms, state.failures, state.weight[0], Terms(price, True, False, -1)
    best, best_score = -1, -math.inf
    for option in options:
        arm = kind, option
        if arms.pulls[arm] > 0.0 and failures.next_try[arm] == 0.0:
            reward, cost, pulls = arms.mean_reward[arm], arms.mean_cost[arm], arms.pulls[arm]
            reward, cost = with_failures(failures, terms, arm, reward, cost, pulls, weight)
            if reward - price * cost > best_score:
                best, best_score = int(option), reward - price * cost
    return best


def value_at(state: State, price: float, kind: int, of_cost: bool) -> float:
    """What the best option of a kind at this price brings, or costs."""
    every, terms = range(state.arms.pulls.shape[1]), Terms(price, True, False, -1)
    _, reward, cost, _ = best_tried(state.arms, state.failures, terms, state.weight[0], kind, every)
    return cost if of_cost else reward


def sweep_on(pursuit: Pursuit, sweep: Sweep, state: State, sign: float, wanted: float, unit: float) -> None:
    """Look at the next few kinds; when all have been looked at, move the price."""
    plug_in, moves = state.plug_in, 0
    for _ in range(LOOKED_AT):
        if moves < MOVES:
            kind = plug_in.known[int(sweep.position[0])]
            arrivals = plug_in.arrivals[kind]
            sweep.total[0] += arrivals * value_at(state, pursuit.price[0], kind, sign == BUDGET)
            sweep.arrivals[0] += arrivals
            sweep.position[0] += 1.0
            if sweep.position[0] >= plug_in.known_kinds[0]:
                move(pursuit, 0, sweep.total[0] > wanted_now(pursuit, 0, sign, wanted) * sweep.arrivals[0], unit)
                sweep.position[0] = sweep.total[0] = sweep.arrivals[0] = 0.0
                moves += 1


def find_prices(policy: GoalImed, state: GoalState, kind: int) -> None:
    """Bring the prices that keep the constraints a little nearer to where they belong."""
    unit = unit_of(state)
    if is_per_kind(policy) and state.floor[kind] > NO_FLOOR:
        pursuit = state.for_floor
        for _ in range(MOVES):
            brings = value_at(state.known, pursuit.price[kind], kind, False)
            move(pursuit, kind, brings > wanted_now(pursuit, kind, FLOOR, state.floor[kind]), unit)
    elif policy.floor > NO_FLOOR:
        sweep_on(state.for_floor, state.floor_sweep, state.known, FLOOR, state.floor[0], unit)
    if has_budget(policy):
        sweep_on(state.for_budget, state.budget_sweep, state.known, BUDGET, policy.budget, unit)
    state.price[0] = usual_price(policy, state, kind)


def choose_towards(
    policy: GoalImed, state: GoalState, price: float, kind: int, features: Floats, options: Indices,
    pending: Indices, rng: Rng,
) -> Decision:  # fmt: skip
    """As the default chooses, at this price."""
    known = state.known
    terms = terms_beside_kink(policy, state, price, kind, options)
    made = choose_overall(policy, known, terms, kind, options, pending, rng)
    if len(features) > 0 and len(options) > 1 and known.forest.making.made[0] >= TREES:
        arms, failures, forest, weight = known.arms, known.failures, known.forest, known.weight[0]
        made = choose_near(arms, failures, forest, price, weight, kind, features, options, pending, made, rng)
    return per_task(known, kind, made)


def per_task(state: State, kind: int, made: Decision) -> Decision:
    """What is expected of a task that may fail, from what is expected of one that does not."""
    arm, failures = (kind, made.option), state.failures
    works = state.arms.pulls[arm]
    if failures.reports[kind] == 0.0 or works == 0.0:
        return made
    reward, cost, terms = made.reward_estimate, made.cost_estimate, Terms(0.0, True, False, -1)
    reward, cost = with_failures(failures, terms, arm, reward, cost, works, state.weight[0])
    return Decision(made.option, reward, cost)


def record_arrival(policy: GoalImed, state: GoalState, kind: int) -> None:
    """One more task of the kind; the prices follow, and all that is known fades."""
    known = state.known
    other = arrive(known.plug_in, kind, known.weight[0])
    refresh(known, terms_at(policy, usual_price(policy, state, kind)), kind)
    if other != kind:
        refresh(known, terms_at(policy, usual_price(policy, state, other)), other)
    settle(known.plug_in)
    find_prices(policy, state, kind)
    if policy.half_life > 0.0:
        fade(known, policy.half_life)


class GoalImed(NamedTuple):
    """The default with a goal: least cost above a floor, most reward within a budget, or best ratio with either.

    Made from the default wherever `floor` or `budget` is said. Told nothing else, it keeps the mean along the way, and
    makes up for what the estimates get wrong. Where reward is dear at the margin, learning shows in the cost.
    """

    goal: int = RATIO
    floor: float = NO_FLOOR  # mean reward of all tasks
    budget: float = NO_BUDGET  # mean cost of all tasks
    half_life: float = 0.0  # as the default's
    caution: float = 1.0
    floor_kinds: Floats = np.zeros(0)  # numbers of kinds that have a floor of their own,
    kind_floors: Floats = np.zeros(0)  # … and these floors

    def init(self, kinds: int, options: int, features: int = 0) -> GoalState:
        known = RatioImed(self.half_life, self.caution).init(kinds, options, features)
        floor = np.full(kinds, self.floor)
        for kind, value in zip(self.floor_kinds, self.kind_floors, strict=True):
            if kind < kinds:
                floor[int(kind)] = value
        return GoalState(np.zeros(1), known, floor, new_pursuit(kinds), new_pursuit(1), new_sweep(), new_sweep())

    def check(self) -> None:
        positive(self, "caution")
        if self.half_life != 0 and self.half_life < 1:
            raise bad(self, "half_life", "give a number of tasks, at least 1, or 0 for no fading")
        if self.goal not in (RATIO, COST, REWARD):
            raise bad(self, "goal", "it is 0 for the best ratio, 1 for the least cost, or 2 for the most reward")
        if len(self.floor_kinds) != len(self.kind_floors):
            raise bad(self, "kind_floors", f"there must be one for each of floor_kinds = {self.floor_kinds}")
        if self.goal == COST and not has_floor(self):
            raise bad(self, "floor", "the least cost needs one, or nothing need be done well")
        if self.goal == REWARD and not has_budget(self):
            raise bad(self, "budget", "the most reward needs one, or cost would not matter")
        if self.budget <= 0.0:
            raise bad(self, "budget", "it must be above 0")

    def aim(self, state: GoalState, kind: int, of_all: Running, of_kind: Running) -> float:
        return price_for(self, state, kind, of_all, of_kind)

    def price_of(self, state: GoalState, kind: int) -> float:
        """The price at which a kind is judged on average, for the pages."""
        return usual_price(self, state, kind)

    def choose_at(
        self, state: GoalState, price: float, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        return choose_towards(self, state, price, kind, features, options, pending, rng)

    def choose(self, state: GoalState, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        price = price_for(self, state, kind, NOTHING_RUNS, NOTHING_RUNS)
        terms = terms_beside_kink(self, state, price, kind, options)
        made = choose_overall(self, state.known, terms, kind, options, pending, rng)
        return per_task(state.known, kind, made)

    def choose_by_features(
        self, state: GoalState, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        price = price_for(self, state, kind, NOTHING_RUNS, NOTHING_RUNS)
        return choose_towards(self, state, price, kind, features, options, pending, rng)

    def book(self, state: GoalState, kind: int, came: Running, expected: Running) -> None:
        plug_in, at = state.known.plug_in, kind if is_per_kind(self) else 0
        floor, usual = state.floor[at], 0.0  # a floor may be 0
        if plug_in.arrivals[kind] > 0.0:
            usual = abs(plug_in.reward[kind]) / plug_in.arrivals[kind]
        if floor > NO_FLOOR:
            scale = max(abs(floor), usual)
            enter(state.for_floor, at, FLOOR, floor, came.tasks, came.reward, expected.reward, scale)
        if has_budget(self):
            enter(state.for_budget, 0, BUDGET, self.budget, came.tasks, came.cost, expected.cost, self.budget)

    def learn_features(
        self, state: GoalState, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        known, price = state.known, usual_price(self, state, kind)
        arms, failures, forest, weight = known.arms, known.failures, known.forest, known.weight[0]
        learn_near(arms, failures, forest, price, weight, kind, features, option, reward, cost, rng)

    def judge(self, state: GoalState, kind: int, option: int) -> Decision:
        return per_task(state.known, kind, expected(state.known, kind, option))

    def learn(self, state: GoalState, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        count_report(state.known.failures, kind)
        record_result(state.known, kind, made.option, reward, cost)
        record_arrival(self, state, kind)

    def observe(self, state: GoalState, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_result(state.known, kind, option, reward, cost)

    def fail(self, state: GoalState, kind: int, made: Decision, cost: float, rng: Rng) -> None:
        count_report(state.known.failures, kind)
        note_failure(state.known, kind, made.option, cost)
        record_arrival(self, state, kind)

    def observe_failure(self, state: GoalState, kind: int, option: int, cost: float, rng: Rng) -> None:
        note_failure(state.known, kind, option, cost)

    def take_back(self, state: GoalState, kind: int, option: int, cost: float, rng: Rng) -> None:
        take_failure_back(state.known.failures, state.known.arms, kind, option, cost, state.known.weight[0])

    def forgive(self, state: GoalState, kind: int, option: int) -> None:
        forgive_failures(state.known.failures, kind, option)

    def benched(self, state: GoalState, kind: int, option: int) -> bool:
        return bool(state.known.failures.next_try[kind, option] > 0.0)

    def next_try(self, state: GoalState, kind: int, option: int) -> int:
        failures = state.known.failures
        return int(max(0.0, math.ceil(failures.next_try[kind, option] - failures.reports[kind])))

    def by_features(
        self, state: GoalState, kind: int, features: Floats, options: Indices, pending: Indices, taken: int, rng: Rng
    ) -> ByFeatures:
        """What of a task led to the option that was taken."""
        known, price = state.known, usual_price(self, state, kind)
        made = choose_overall(self, known, terms_at(self, price), kind, options, pending, rng)
        arms, failures, forest, weight = known.arms, known.failures, known.forest, known.weight[0]
        best = made.option
        return what_mattered(arms, failures, forest, price, weight, kind, features, options, best, taken, rng)

    def beyond_usual(self, state: GoalState, kind: int, features: Floats) -> list[float]:
        """R − θC that is expected of every option for a task, beyond the one that is best overall."""
        known, price = state.known, usual_price(self, state, kind)
        return beyond_usual(known.arms, known.failures, known.forest, price, known.weight[0], kind, features)

    def features_so_far(self, state: GoalState) -> FeaturesSoFar:
        """Which features matter, and how far forecasts are believed."""
        return so_far(state.known.forest, float(state.known.weight[0]))


def towards(policy: Any, goal: Goal, kinds: Mapping[str, int]) -> Any:
    """The default policy with a goal; `kinds` are the numbers of those that have a floor."""
    if not goal.constrained:
        return policy
    if not isinstance(policy, RatioImed):
        says = f"{type(policy).__name__} keeps no floor and no budget, the goal being {goal.words()}"
        raise BadParameter(f"{says}; use the default policy, or drop the goal")
    floors = {kinds[kind]: floor for kind, floor in goal.floors.items()}
    return GoalImed(
        goal=GOALS.index(goal.goal),
        floor=NO_FLOOR if goal.total_floor is None else goal.total_floor,
        budget=NO_BUDGET if goal.budget is None else goal.budget,
        half_life=policy.half_life,
        caution=policy.caution,
        floor_kinds=np.array(list(floors), float),
        kind_floors=np.array(list(floors.values()), float),
    )


def goal_in(policy: Any, kinds: Sequence[str]) -> Goal:
    """The goal that a policy pursues, with the names of kinds."""
    if not isinstance(policy, GoalImed):
        return goal_of()
    floors = {
        kinds[int(kind)]: float(floor) for kind, floor in zip(policy.floor_kinds, policy.kind_floors, strict=True)
    }
    total = float(policy.floor) if policy.floor > NO_FLOOR else None
    return Goal(GOALS[policy.goal], floors or total, float(policy.budget) if has_budget(policy) else None)


def without_goal(policy: Any) -> Any:
    """The default policy that a policy with a goal was made from."""
    return RatioImed(policy.half_life, policy.caution) if isinstance(policy, GoalImed) else policy
