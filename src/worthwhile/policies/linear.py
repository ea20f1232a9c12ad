"""Linear models of reward and cost in a task's features, one for every option: ε-greedy, and Thompson sampling.

Recursive ridge regression, with reward − θ·cost as in plug_ts.py; after Li et al. (2010) and Agrawal and Goyal (2013).
docs/policies.md has the formulas.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, new_plug_in, settle
from worthwhile.learning import Arms, Moments, new_arms, new_moments, record, record_moments
from worthwhile.policies.base import not_negative, positive
from worthwhile.policies.features import CATEGORY
from worthwhile.policies.plug_ts import PRIOR_PULLS, pooled_variance, refresh, squares
from worthwhile.rng import Rng, normals, uniform
from worthwhile.state import Floats, Indices

COLUMNS = 64  # of a model: feature f has column f modulo 64, so features that are 64 apart share one
CATEGORIES = 32  # columns, the last ones, over which categories are spread by a hash
FARTHEST = 5.0  # deviations from its mean that a feature counts for, at most
LARGEST, SMALLEST = 1e100, 1e-200  # of a feature; of its Σ(x − x̄)²: what varies less does not vary
MASK, SPREAD, APART = 0xFFFFFFFF, 0x9E3779B1, 40503  # of the hash: 32 bits, Knuth's multiplier, between two features


class Standard(NamedTuple):
    """Running mean and deviation of every feature, where it is a number."""

    seen: Floats  # (features,): how often
    mean: Floats
    squares: Floats  # Σ(x − x̄)²
    scale: Floats  # one over the deviation; 0 if it does not vary


class Models(NamedTuple):
    """Ridge regressions of what is beyond an option's means, of reward and of cost, on the same tasks."""

    inverse: Floats  # (options, COLUMNS, COLUMNS): P = (λI + Σ ω x x′)⁻¹
    reward: Floats  # (options, COLUMNS): weights
    cost: Floats
    row: Floats  # (COLUMNS,): x of the task that is learned from
    gain: Floats  # (COLUMNS,): P x


class State(NamedTuple):
    """Means of every (kind, option), what is left of its results beyond the regression, the price, and the models."""

    arms: Arms
    rest: Moments
    tasks: Floats  # (1,)
    plug_in: PlugIn
    standard: Standard
    models: Models
    ahead_reward: Floats  # (1,): what the regression foretold of the task that is learned from next
    ahead_cost: Floats


def new_state(kinds: int, options: int, features: int, ridge: float) -> State:
    """No report yet; without features, models take no room."""
    modelled, columns = (options, COLUMNS) if features else (0, 0)
    inverse = np.zeros((modelled, columns, columns))
    inverse[:, range(columns), range(columns)] = 1.0 / ridge
    reward, cost = np.zeros((2, modelled, columns))
    models = Models(inverse, reward, cost, *np.zeros((2, columns)))
    standard, (tasks, *ahead) = Standard(*np.zeros((4, features))), np.zeros((3, 1))
    arms, rest = new_arms(kinds, options), new_moments(kinds, options)
    return State(arms, rest, tasks, new_plug_in(kinds), standard, models, *ahead)


def column_of(feature: int, number: float) -> int:
    """The column of a model that a feature counts in."""
    if number >= CATEGORY:
        text = int((number / CATEGORY - 1.0) * 4294967296.0)  # the hash that stands for it, see feature_number
        return COLUMNS - CATEGORIES + ((((text + APART * feature) * SPREAD) & MASK) >> 16) % CATEGORIES
    return feature % COLUMNS


def value_of(standard: Standard, feature: int, number: float) -> float:
    """What it adds to that column: deviations from its mean, 1 for a category, 0 if it is missing."""
    if math.isnan(number):
        return 0.0
    if number >= CATEGORY:
        return 1.0
    beyond = max(-LARGEST, min(LARGEST, number)) - standard.mean[feature]
    return max(-FARTHEST, min(FARTHEST, float(beyond * standard.scale[feature])))


def take_in_features(standard: Standard, features: Floats) -> None:
    """One more task with features."""
    for feature in range(len(features)):
        number = features[feature]
        if number < CATEGORY:  # not so if it is missing, either
            number = max(-LARGEST, min(LARGEST, number))
            standard.seen[feature] += 1.0
            before = number - standard.mean[feature]
            standard.mean[feature] += before / standard.seen[feature]
            standard.squares[feature] += before * (number - standard.mean[feature])
            total = standard.squares[feature]
            standard.scale[feature] = math.sqrt(standard.seen[feature] / total) if total > SMALLEST else 0.0


def foretold(state: State, features: Floats, option: int) -> tuple[float, float]:
    """x′w: reward and cost beyond the means, by the option's regression."""
    reward, cost = 0.0, 0.0
    for feature in range(len(features)):
        value = value_of(state.standard, feature, features[feature])
        if value != 0.0:
            column = column_of(feature, features[feature])
            reward += value * state.models.reward[option, column]
            cost += value * state.models.cost[option, column]
    return reward, cost


def doubt(state: State, features: Floats, option: int) -> float:
    """x′Px, the variance of what is foretold in units of a result's; pair by pair, as x has no place to be kept in."""
    standard, inverse, total = state.standard, state.models.inverse, 0.0
    for feature in range(len(features)):
        value = value_of(standard, feature, features[feature])
        if value != 0.0:
            column = column_of(feature, features[feature])
            part = 0.5 * value * inverse[option, column, column]
            for other in range(feature):
                number = features[other]
                part += value_of(standard, other, number) * inverse[option, column, column_of(other, number)]
            total += 2.0 * value * part
    return max(0.0, total)


def learn_linear(state: State, kind: int, features: Floats, option: int, reward: float, cost: float) -> None:
    """What came of a task with features: a step of both regressions (Sherman and Morrison), 0 of a failure's reward.

    The n-th report of a kind and option counts for ω = 1 − 1/n: the mean it is held against is as uncertain as that.
    """
    models, arm = state.models, (kind, option)
    take_in_features(state.standard, features)
    spread_out(state, features)
    unsure = multiply(models, option)  # x′Px
    ahead_reward, ahead_cost = foretold(state, features, option)
    weight = state.rest.pulls[arm] / (state.rest.pulls[arm] + 1.0)  # ω
    step = weight / (1.0 + weight * unsure)
    reward = 0.0 if math.isnan(reward) else reward
    reward_step = step * (reward - state.rest.mean_reward[arm] - ahead_reward)
    cost_step = step * (cost - state.rest.mean_cost[arm] - ahead_cost)
    for column in range(COLUMNS):
        gain = models.gain[column]
        if gain != 0.0:
            models.reward[option, column] += reward_step * gain
            models.cost[option, column] += cost_step * gain
            for other in range(COLUMNS):
                models.inverse[option, column, other] -= step * (gain * models.gain[other])
    state.ahead_reward[0], state.ahead_cost[0] = ahead_reward, ahead_cost


def spread_out(state: State, features: Floats) -> None:
    """Put x where it can be looked up."""
    row = state.models.row
    for column in range(COLUMNS):
        row[column] = 0.0
    for feature in range(len(features)):
        number = features[feature]
        if not math.isnan(number):
            row[column_of(feature, number)] += value_of(state.standard, feature, number)


def multiply(models: Models, option: int) -> float:
    """Put P x beside x; returns x′Px."""
    total = 0.0
    for column in range(COLUMNS):
        gain = 0.0
        for other in range(COLUMNS):
            if models.row[other] != 0.0:
                gain += models.inverse[option, column, other] * models.row[other]
        models.gain[column] = gain
        total += models.row[column] * gain
    return max(0.0, total)


def record_result(state: State, kind: int, option: int, reward: float, cost: float) -> None:
    """One more result: as it is, and without what the regression foretold of it."""
    record(state.arms, kind, option, reward, cost)
    record_moments(state.rest, kind, option, reward - state.ahead_reward[0], cost - state.ahead_cost[0])
    state.ahead_reward[0] = state.ahead_cost[0] = 0.0


def record_task(state: State, kind: int, option: int, reward: float, cost: float) -> None:
    """A task has reported: its result, its arrival and the price."""
    record_result(state, kind, option, reward, cost)
    state.tasks[0] += 1.0
    other = arrive(state.plug_in, kind)
    refresh(state.arms, state.plug_in, kind)
    refresh(state.arms, state.plug_in, other)
    settle(state.plug_in)


def next_try(arms: Arms, kind: int, options: Indices, pending: Indices, tries: float) -> int:
    """The position of an option with fewer tries than it must have, or of any while none has reported; else −1.

    It is the one with the fewest, those under way counted.
    """
    least, fewest, reported = -1, math.inf, False
    for position, option in enumerate(options):
        reported = reported or arms.pulls[kind, option] > 0.0
        count = arms.pulls[kind, option] + pending[option]
        if count < fewest:
            least, fewest = position, count
    return least if fewest < tries or not reported else -1


def at_random(state: State, exploration: float, options: Indices, rng: Rng) -> int:
    """The position of any option, with chance ε; else −1."""
    explore = uniform(rng, 0) * math.sqrt(state.tasks[0] + 1.0) < exploration
    return int(uniform(rng, 1) * len(options)) if explore else -1


def forecast_of(state: State, kind: int, features: Floats, option: int) -> Decision:
    """An option with what is foretold of this task."""
    reward, cost = foretold(state, features, option)
    return Decision(option, state.rest.mean_reward[kind, option] + reward, state.rest.mean_cost[kind, option] + cost)


def variance_of(rest: Moments, kind: int, option: int, price: float, pooled: float) -> float:
    """The variance of R − θC beyond the regression, from a few reports at the pooled one on."""
    pulls = float(rest.pulls[kind, option])
    return (squares(rest, kind, option, price) + PRIOR_PULLS * pooled) / (pulls - 1.0 + PRIOR_PULLS)


def choose_greedily(
    state: State, exploration: float, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
) -> Decision:
    """A first try, any option with chance ε, or the largest forecast of R − θC."""
    wanted = next_try(state.arms, kind, options, pending, 1.0)
    wanted = at_random(state, exploration, options, rng) if wanted < 0 else wanted
    best, best_score, price = NOTHING, -math.inf, state.plug_in.price[0]
    for position, option in enumerate(options):
        if position == wanted or (wanted < 0 and state.arms.pulls[kind, option] > 0.0):
            made = forecast_of(state, kind, features, option)
            score = made.reward_estimate - price * made.cost_estimate
            if score > best_score:
                best, best_score = made, score
    return best


def choose_by_draws(
    state: State, exploration: float, first_tries: float,
    kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng,
) -> Decision:  # fmt: skip
    """A first try, or the largest draw of R − θC."""
    wanted = next_try(state.arms, kind, options, pending, first_tries)
    rest, price = state.rest, state.plug_in.price[0]
    pooled = pooled_variance(rest, kind, options, price)
    best, best_score = NOTHING, -math.inf
    for position, option in enumerate(options):
        pulls = rest.pulls[kind, option]
        if position == wanted or (wanted < 0 and pulls > 0.0):
            made = forecast_of(state, kind, features, option)
            score = made.reward_estimate - price * made.cost_estimate
            if wanted < 0:
                unsure = variance_of(rest, kind, option, price, pooled) * (1.0 / pulls + doubt(state, features, option))
                score += exploration * math.sqrt(unsure) * normals(rng, position)[0]
            if score > best_score:
                best, best_score = made, score
    return best


class LinearGreedy(NamedTuple):
    """Any option with chance 1/√tasks, else the largest R − θC by a linear model of the task's features.

    For comparison, where tasks have features; without, it goes by the means of every kind. It must be told nothing.
    """

    exploration: float = 1.0  # multiplies 1/√tasks
    ridge: float = 100.0  # λ: reports that say that features do not matter

    def check(self) -> None:
        not_negative(self, "exploration")
        positive(self, "ridge")

    def init(self, kinds: int, options: int, features: int = 0) -> State:
        return new_state(kinds, options, features, self.ridge)

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return choose_greedily(state, self.exploration, kind, state.tasks[:0], options, pending, rng)

    def choose_by_features(
        self, state: State, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        return choose_greedily(state, self.exploration, kind, features, options, pending, rng)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record_task(state, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_result(state, kind, option, reward, cost)

    def learn_features(
        self, state: State, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        learn_linear(state, kind, features, option, reward, cost)


class LinearTs(NamedTuple):
    """Largest draw of R − θC from the posterior of a linear model of the task's features; told nothing.

    For comparison, where tasks have features; without, it is Thompson sampling by the means of every kind, as plug-ts.
    A decision takes time in proportion to the square of the number of features.
    """

    exploration: float = 1.0  # multiplies the deviation of draws
    ridge: float = 100.0  # λ: reports that say that features do not matter
    first_tries: int = 2  # of every option before draws begin

    def check(self) -> None:
        not_negative(self, "exploration")
        positive(self, "ridge", "first_tries")

    def init(self, kinds: int, options: int, features: int = 0) -> State:
        return new_state(kinds, options, features, self.ridge)

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        none = state.tasks[:0]
        return choose_by_draws(state, self.exploration, self.first_tries, kind, none, options, pending, rng)

    def choose_by_features(
        self, state: State, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        return choose_by_draws(state, self.exploration, self.first_tries, kind, features, options, pending, rng)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record_task(state, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_result(state, kind, option, reward, cost)

    def learn_features(
        self, state: State, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        learn_linear(state, kind, features, option, reward, cost)
