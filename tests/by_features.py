"""A small policy that looks at features, for tests of whoever calls it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from worthwhile.decision import Decision
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices


class Signs(NamedTuple):
    """Per option, apart for both signs of feature 0; and per feature, how often it was there and what it was."""

    count: Floats  # by option
    reward: Floats
    with_minus: Floats  # how many of each option, where feature 0 is below 0
    minus: Floats  # their rewards
    with_plus: Floats
    plus: Floats
    features: Floats  # by feature: known, sum, with a reward, failed


class BySign(NamedTuple):
    """Takes the option with the best mean reward for the sign of feature 0, options never tried first."""

    scale: float = 1.0

    def init(self, kinds: int, options: int, features: int = 0) -> Signs:
        return Signs(
            np.zeros(options),
            np.zeros(options),
            np.zeros(options),
            np.zeros(options),
            np.zeros(options),
            np.zeros(options),
            np.zeros((features, 4)),
        )

    def choose(self, state: Signs, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        best, best_mean = options[0], -math.inf
        for option in options:
            count = state.count[option]
            mean = state.reward[option] / count if count > 0.0 else math.inf
            if mean > best_mean:
                best, best_mean = option, mean
        return estimate(state, best, self.scale)

    def choose_by_features(
        self, state: Signs, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        counts = state.with_minus if features[0] < 0.0 else state.with_plus
        rewards = state.minus if features[0] < 0.0 else state.plus
        best, best_mean = options[0], -math.inf
        for option in options:
            mean = rewards[option] / counts[option] if counts[option] > 0.0 else math.inf
            if mean > best_mean:
                best, best_mean = option, mean
        return estimate(state, best, self.scale)

    def judge(self, state: Signs, kind: int, option: int) -> Decision:
        return estimate(state, option, self.scale)

    def learn(self, state: Signs, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.count[made.option] += 1.0
        state.reward[made.option] += reward

    def observe(self, state: Signs, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        state.count[option] += 1.0
        state.reward[option] += reward

    def learn_features(
        self, state: Signs, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        worth = 0.0 if math.isnan(reward) else reward
        if features[0] < 0.0:
            state.with_minus[option] += 1.0
            state.minus[option] += worth
        else:
            state.with_plus[option] += 1.0
            state.plus[option] += worth
        for feature in range(len(features)):
            if not math.isnan(features[feature]):
                state.features[feature, 0] += 1.0
                state.features[feature, 1] += features[feature]
                state.features[feature, 3 if math.isnan(reward) else 2] += 1.0


def estimate(state: Signs, option: int, cost: float) -> Decision:
    count = state.count[option]
    return Decision(option, state.reward[option] / count if count > 0.0 else 0.0, cost)


class InBulk(BySign):
    """The same, written for arrays as a whole: neither a memoryview nor numba will do."""

    def learn_features(
        self, state: Any, kind: int, features: Any, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        super().learn_features(state, kind, features, option, reward, cost, rng)
        state.features[:, 0] += np.zeros(len(features), dtype=object).astype(float)
