"""Ratio-IMED, the default: needs no bounds, no horizon, no noise scale.

Indexed minimum empirical divergence (Honda and Takemura, 2015) on the paper's reward − θ·cost, with θ solved from the
means and arrivals seen so far. docs/policies.md derives it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, contribute, new_plug_in, scale_plug_in, settle
from worthwhile.learning import Moments, forget, new_moments, record_moments, scale_moments
from worthwhile.policies.base import bad, positive
from worthwhile.policies.evidence import evidence, pool
from worthwhile.policies.failures import (
    Failures,
    count_report,
    failure_variance,
    forgive_failures,
    new_failures,
    record_anywhere,
    record_failure,
    record_success,
    scale_failures,
    success_share,
    take_failure_back,
)
from worthwhile.policies.features import ByFeatures, FeaturesSoFar
from worthwhile.policies.first_tries import best_forecast, least_busy, next_forced
from worthwhile.policies.forest import RECENT, TREES, Forest, new_forest, scale_forest
from worthwhile.policies.forest_words import beyond_usual, so_far, what_mattered
from worthwhile.policies.near import choose_near, learn_near
from worthwhile.policies.sharing import (
    SETTLED,
    Sharing,
    evidence_of_others,
    forecast,
    is_shared,
    new_sharing,
    take_in_cell,
    trust,
)
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices

SECOND_LOOK = 7.0  # one pull alone never counts for more evidence than this: e⁷ ≈ 1 100
FIRST_IMPRESSION = 4.6  # n ≤ 2 pulls, and what a try costs, count for at most √n times this: e⁴·⁶ ≈ 100,
IMPRESSION_RIVALS = 4.0  # … with (A − 1) to this power
NOTHING_YET = 1.9  # n rewards of 0 count for at most this · ln(n + 1), rivals counted twice
ONE_OFF_RATIO, ONE_OFF_ERRORS = 3.0, 6.0  # a first cost is so many times the next; above it by so many deviations
LOG_2 = 0.6931471805599453
LEAST_WORTH = 0.125  # of what a task brings: where cost is to be saved, and has next to no price, a try is no ruin
LOG_HALF = -LOG_2  # an option that was never tried counts as half a pull
HEAVIEST = 2.0**400  # weights are scaled down when one gets here
LIGHTEST = 2.0**-400  # what has been seen once never weighs nothing, or it would count as new


class State(NamedTuple):
    """Means and second moments of every (kind, option), what has failed, the plug-in price, and what kinds share.

    A pull is a completed task: its cost includes that of the failures before it.

    Where evidence fades, each report weighs more than the one before, and a pull counts for weight/(weight now).
    """

    arms: Moments
    failures: Failures
    one_offs: Floats  # (kinds,): how many first costs have turned out to say nothing
    plug_in: PlugIn
    least_cost: Floats  # (1,)
    weight: Floats  # (1,) of a report now; always 1 if nothing fades
    sharing: Sharing
    forest: Forest


class Terms(NamedTuple):
    """The terms on which options are judged; for the best ratio, the price is that ratio, and completed tasks count."""

    price: float
    per_task: bool  # a failure counts as a task that brings nothing
    least_cost: bool  # what is lost is counted in cost, not in reward
    left_out: int  # an option that is not to be taken now, −1 if there is none


def ratio_terms(state: State) -> Terms:
    """The price as it is; a failure only makes the task dearer that it leads to."""
    return Terms(state.plug_in.price[0], False, False, -1)


def with_failures(
    failures: Failures, terms: Terms, arm: tuple[int, int], reward: float, cost: float, pulls: float, weight: float
) -> tuple[float, float]:
    """What an option brings and costs on these terms, with the failures that no success has paid for yet."""
    cost += failures.unpaid[arm] / pulls
    share = success_share(failures, arm, pulls, weight) if terms.per_task else 1.0
    return share * reward, share * cost


def best_tried(
    arms: Moments, failures: Failures, terms: Terms, weight: float, kind: int, options: Iterable[int]
) -> tuple[int, float, float, float]:
    """How many of the options have reported and are not benched; R̄, C̄ and z* = R̄ − θC̄ of the best of them."""
    price = terms.price
    pulls, mean_reward, mean_cost, _, _, _ = arms
    failing = failures.reports[kind] > 0.0
    tried, best_reward, best_cost, best_score = 0, 0.0, 0.0, -math.inf
    for option in options:
        arm = kind, option
        if pulls[arm] > 0.0 and not (failing and failures.next_try[arm] > 0.0):
            tried += 1
            reward, cost = mean_reward[arm], mean_cost[arm]
            if failing:
                reward, cost = with_failures(failures, terms, arm, reward, cost, pulls[arm], weight)
            score = reward - price * cost
            if score > best_score:
                best_reward, best_cost, best_score = reward, cost, score
    return tried, best_reward, best_cost, best_score


def refresh(state: State, terms: Terms, kind: int) -> None:
    """Let the kind contribute its best tried option on these terms.

    Where options are chosen by features, each looks better than it is elsewhere: what was really earned says more.
    """
    every = range(state.arms.pulls.shape[1])
    _, reward, cost, _ = best_tried(state.arms, state.failures, terms, state.weight[0], kind, every)
    gates = state.forest.gates
    if len(gates.recent) > 0 and gates.recent[kind] == RECENT:
        reward, cost = gates.recent_reward[kind], gates.recent_cost[kind]
    contribute(state.plug_in, kind, reward, cost)


def record_result(state: State, kind: int, option: int, reward: float, cost: float) -> None:
    """One more completed task, which pays for the failures before it."""
    arms, failures, least_cost, weight = state.arms, state.failures, state.least_cost[0], state.weight[0]
    ahead_reward, ahead_cost = state.forest.ahead_reward, state.forest.ahead_cost
    reward, cost = reward - ahead_reward[0], cost / ahead_cost[0]
    ahead_reward[0], ahead_cost[0] = 0.0, 1.0
    is_new = arms.pulls[kind, option] == 0.0
    if failures.reports[kind] > 0.0:
        cost += record_success(failures, kind, option, weight, is_new)
    first = arms.pulls[kind, option] <= 2.0 * weight and failures.paid[kind, option] == 0.0
    if first and least_cost > 0.0 and was_one_off(arms, weight, kind, option, cost):
        forget(arms, kind, option)
        state.one_offs[kind] += 1.0
    record_moments(arms, kind, option, reward, cost, weight)
    if arms.pulls[kind, option] <= SETTLED * weight:
        take_in_cell(state.sharing, arms, kind, option, is_new)
    state.least_cost[0] = cost if cost < least_cost else least_cost


def was_one_off(arms: Moments, weight: float, kind: int, option: int, cost: float) -> bool:
    """Whether an option's first cost says nothing of it, now that the next is known: an import, a cold cache.

    It is far above the next one, given the noise of the other options, and above what any of them costs.
    """
    pulls, _, mean_cost, _, cost_squares, _ = arms
    first, squares, freedom, dearest = mean_cost[kind, option], 0.0, 0.0, cost
    if cost <= 0.0 or first <= ONE_OFF_RATIO * cost:  # also if there is no first cost
        return False
    for other in range(pulls.shape[1]):
        more, mean = pulls[kind, other] - weight, mean_cost[kind, other]
        if more > 0.0 and mean > 0.0 and other != option:
            freedom += more
            squares += cost_squares[kind, other] / (mean * mean)
            dearest = max(dearest, mean)
    over = (first / cost - 1.0) / ONE_OFF_ERRORS
    known = freedom > 0.0 and first > ONE_OFF_RATIO * dearest
    return known and bool(over * over * freedom > 2.0 * squares)  # twice: of a difference


def record_arrival(state: State, kind: int, half_life: float) -> None:
    """One more task of the kind; the price follows, and all that is known fades."""
    other, terms = arrive(state.plug_in, kind, state.weight[0]), ratio_terms(state)
    refresh(state, terms, kind)
    if other != kind:
        refresh(state, terms, other)
    settle(state.plug_in)
    if half_life > 0.0:
        fade(state, half_life)


def note_failure(state: State, kind: int, option: int, cost: float) -> None:
    """One more failure, among as many tasks as its kind has had."""
    weight = state.weight[0]
    tasks = state.plug_in.arrivals[kind] / weight
    if state.sharing.cells[0] > 0.0:  # something works, somewhere
        record_anywhere(state.failures, state.arms, kind, option, state.sharing.option_cells[option] == 0.0)
    record_failure(state.failures, state.arms, kind, option, cost, weight, tasks)


def fade(state: State, half_life: float) -> None:
    """The next report weighs 2^(1/half-life) times as much as this one, by an approximation without powers."""
    step = 0.5 * LOG_2 / half_life
    state.weight[0] *= (1.0 + step) / (1.0 - step)
    if state.weight[0] > HEAVIEST:
        scale = 1.0 / state.weight[0]
        scale_moments(state.arms, scale, LIGHTEST)
        scale_plug_in(state.plug_in, scale, LIGHTEST)
        scale_failures(state.failures, scale)
        scale_forest(state.forest, scale)
        state.weight[0] = 1.0


def first_index(index: float, against: float, reported: float, pulls: float, log_rivals: float) -> float:
    """The index of an option that has reported once or twice, which is easily misleading."""
    limit = math.log(pulls) + FIRST_IMPRESSION * math.sqrt(reported) + IMPRESSION_RIVALS * log_rivals
    return min(index + (min(against, SECOND_LOOK) if reported <= 1.0 else against), limit)


def price_of_a_try(behind: float, worth: float, log_rivals: float) -> float:
    """ln(A − 1) + ½ ln(1 + (d/w)²): rivals, and what a try costs in tasks of the leader."""
    setback = behind / worth if worth > 0.0 else 0.0  # d/w
    return log_rivals + 0.5 * math.log(1.0 + setback * setback)


def first_try(
    state: State, price: float, tried: int, kind: int, options: Indices, pending: Indices, enough: float, rng: Rng
) -> int:
    """The position of the option that must be tried before any is judged; −1 if there is none."""
    failures, sharing, shared = state.failures, state.sharing, is_shared(state.sharing, kind)
    forced = next_forced(failures, state.arms, sharing, shared, kind, options, pending, enough)
    if forced < 0 and tried == 0 and shared:
        forced = best_forecast(failures, sharing, price, kind, options, pending)
    if forced < 0 and tried == 0:
        forced = least_busy(failures, kind, options, pending, rng)
    return forced


def could_be_new(state: State, kind: int, option: int, pending: Indices) -> bool:
    """Whether other kinds know an option that has never been tried in this one."""
    untried = state.arms.pulls[kind, option] == 0.0 and state.failures.next_try[kind, option] == 0.0
    return bool(untried and pending[option] == 0 and state.sharing.option_cells[option] > 0.0)


def index_of_new(
    state: State, kind: int, option: int, price: float, top: float, worth: float, log_rivals: float, trusted: float
) -> float:
    """The index of an option that only other kinds know: it is as likely to fail as there, and as far behind."""
    foreseen, works = forecast(state.sharing, kind, option), state.sharing.option_cells[option] + 1.0
    behind = top - (foreseen.reward - price * foreseen.cost)
    index = (1.0 - trusted) * LOG_HALF + math.log(1.0 + state.failures.anywhere.kinds[option] / works)
    if behind > 0.0:
        index += trusted * (price_of_a_try(behind, worth, log_rivals) + evidence_of_others(foreseen, behind, price))
    return index


def expected(state: State, kind: int, option: int) -> Decision:
    """The option with what is expected of it: its means, or what other kinds foretell."""
    arms = state.arms
    if arms.pulls[kind, option] == 0.0 and is_shared(state.sharing, kind):
        foreseen = forecast(state.sharing, kind, option)
        return Decision(option, foreseen.reward, foreseen.cost)
    return Decision(option, arms.mean_reward[kind, option], arms.mean_cost[kind, option])


def worth_of(terms: Terms, reward: float, cost: float) -> float:
    """w: what a task of the leader brings or, where cost is to be saved, what its cost is worth."""
    return max(terms.price * cost, LEAST_WORTH * abs(reward)) if terms.least_cost else abs(reward)


def choose_overall(
    policy: Any, state: State, terms: Terms, kind: int, options: Indices, pending: Indices, rng: Rng
) -> Decision:
    """The option with the least evidence against it on these terms, whatever the features of the task."""
    arms, failures, weight = state.arms, state.failures, state.weight[0]
    price, left_out = terms.price, terms.left_out
    all_pulls, mean_reward, mean_cost, reward_squares, _, _ = arms
    if len(options) == 1:
        return expected(state, kind, options[0])
    tried, leader_reward, leader_cost, top = best_tried(arms, failures, terms, weight, kind, options)  # top is z*
    suspicious = state.one_offs[kind] > 0.0  # where one first report said nothing, others may not, either
    if tried < len(options) or suspicious:
        forced = first_try(state, price, tried, kind, options, pending, weight if suspicious else 0.0, rng)
        if forced >= 0:
            return expected(state, kind, options[forced])
    pooled = pool(arms, kind, options, price, weight, state.least_cost[0] > 0.0)
    failing = failures.reports[kind] > 0.0
    worth, log_rivals = worth_of(terms, leader_reward, leader_cost), math.log(len(options) - 1.0)  # w, ln(A − 1)
    judged = tried < len(options) and policy.half_life == 0.0  # pulls that fade never outweigh a forecast that does not
    trusted = trust(state.sharing, price * leader_cost) if judged else 0.0
    best, best_index = options[0], math.inf
    for option in options:
        arm, index = (kind, option), math.inf
        pulls = all_pulls[arm]
        if pulls > 0.0 and option != left_out and not (failing and failures.next_try[arm] > 0.0):
            reported, reward, cost, varies = pulls / weight, mean_reward[arm], mean_cost[arm], 0.0
            if failing:
                reward, cost = with_failures(failures, terms, arm, reward, cost, pulls, weight)
                varies = failure_variance(failures, arms, arm, weight)
            pulls = reported + pending[option]  # m
            index, behind = math.log(pulls), top - (reward - price * cost)  # ln m, d
            if behind > 0.0:
                index += price_of_a_try(behind, worth, log_rivals)
                if index < best_index:  # evidence can only raise it
                    against = evidence(arms, arm, behind, pooled, varies) * (pulls / policy.caution)  # m·K
                    if reward == 0.0 and reward_squares[arm] == 0.0:
                        against = min(against, NOTHING_YET * math.log(pulls + 1.0) + log_rivals)
                    first = reported <= 2.0
                    index = first_index(index, against, reported, pulls, log_rivals) if first else index + against
        elif could_be_new(state, kind, option, pending):
            index = index_of_new(state, kind, option, price, top, worth, log_rivals, trusted)
        if index < best_index:
            best, best_index = option, index
    if best_index == math.inf:
        return NOTHING
    return expected(state, kind, best)


class RatioImed(NamedTuple):
    """The default: takes the option with the least evidence against its being the best; needs no bounds, no tuning.

    What a try would cost counts as well, and so do failures. It must be told nothing, and loses least on most problems
    measured. Rivals that are told the range or the noise exactly are better on some: ω-UCB where rewards are all or
    nothing, DOL-RM in the first few hundred tasks. Where things change, set a half-life.
    """

    half_life: float = 0.0  # tasks after which evidence counts half, where things change; 0: it never fades
    caution: float = 1.0  # evidence it takes to leave an option alone; less is quicker, and fails more often

    def check(self) -> None:
        positive(self, "caution")
        if self.half_life != 0 and self.half_life < 1:
            raise bad(self, "half_life", "give a number of tasks, at least 1, or 0 for no fading")

    def init(self, kinds: int, options: int, features: int = 0) -> State:
        arms, failures, sharing = new_moments(kinds, options), new_failures(kinds, options), new_sharing(kinds, options)
        forest = new_forest(kinds, options, features)
        return State(
            arms, failures, np.zeros(kinds), new_plug_in(kinds), np.full(1, math.inf), np.ones(1), sharing, forest
        )

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return choose_overall(self, state, ratio_terms(state), kind, options, pending, rng)

    def choose_by_features(
        self, state: State, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        made = choose_overall(self, state, ratio_terms(state), kind, options, pending, rng)
        if len(options) == 1 or state.forest.making.made[0] < TREES:
            return made
        price, weight = state.plug_in.price[0], state.weight[0]
        return choose_near(
            state.arms, state.failures, state.forest, price, weight, kind, features, options, pending, made, rng
        )

    def learn_features(
        self, state: State, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        price, weight = state.plug_in.price[0], state.weight[0]
        learn_near(state.arms, state.failures, state.forest, price, weight, kind, features, option, reward, cost, rng)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return expected(state, kind, option)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        count_report(state.failures, kind)
        record_result(state, kind, made.option, reward, cost)
        record_arrival(state, kind, self.half_life)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_result(state, kind, option, reward, cost)

    def fail(self, state: State, kind: int, made: Decision, cost: float, rng: Rng) -> None:
        count_report(state.failures, kind)
        note_failure(state, kind, made.option, cost)
        record_arrival(state, kind, self.half_life)

    def observe_failure(self, state: State, kind: int, option: int, cost: float, rng: Rng) -> None:
        note_failure(state, kind, option, cost)

    def take_back(self, state: State, kind: int, option: int, cost: float, rng: Rng) -> None:
        take_failure_back(state.failures, state.arms, kind, option, cost, state.weight[0])

    def forgive(self, state: State, kind: int, option: int) -> None:
        forgive_failures(state.failures, kind, option)

    def benched(self, state: State, kind: int, option: int) -> bool:
        """Whether it is left out of this kind, and only tried now and then, because it keeps failing."""
        return bool(state.failures.next_try[kind, option] > 0.0)

    def next_try(self, state: State, kind: int, option: int) -> int:
        """After how many more reports of the kind a benched option is tried again."""
        return int(max(0.0, math.ceil(state.failures.next_try[kind, option] - state.failures.reports[kind])))

    def by_features(
        self, state: State, kind: int, features: Floats, options: Indices, pending: Indices, taken: int, rng: Rng
    ) -> ByFeatures:
        """What of a task led to the option that was taken."""
        made = choose_overall(self, state, ratio_terms(state), kind, options, pending, rng)
        price, weight = state.plug_in.price[0], state.weight[0]
        return what_mattered(
            state.arms, state.failures, state.forest, price, weight, kind, features, options, made.option, taken, rng
        )

    def beyond_usual(self, state: State, kind: int, features: Floats) -> list[float]:
        """R − θC that is expected of every option for a task, beyond the one that is best overall."""
        return beyond_usual(
            state.arms, state.failures, state.forest, state.plug_in.price[0], state.weight[0], kind, features
        )

    def features_so_far(self, state: State) -> FeaturesSoFar:
        """Which features matter, and how far forecasts are believed."""
        return so_far(state.forest, float(state.weight[0]))
