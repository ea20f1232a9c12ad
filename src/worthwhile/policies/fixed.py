"""Policies that learn nothing: the same option always, and any option at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision
from worthwhile.rng import Rng, uniform
from worthwhile.state import Floats, Indices


class State(NamedTuple):
    """The number of tasks."""

    tasks: Floats


class FixedOption(NamedTuple):
    """The given option wherever it is on offer, else the first on offer.

    It learns nothing: your present practice, perhaps, to compare with.
    """

    option: int = 0

    def init(self, kinds: int, options: int) -> State:
        return State(np.zeros(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        chosen = options[0]
        for option in options:
            if option == self.option:
                chosen = option
        return Decision(chosen, 0.0, 0.0)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 0.0)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


class RandomOption(NamedTuple):
    """Any option on offer, all equally likely.

    It learns nothing: a floor that every other policy should be above.
    """

    def init(self, kinds: int, options: int) -> State:
        return State(np.zeros(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return Decision(options[int(uniform(rng, 0) * len(options))], 0.0, 0.0)

    def probability(self, state: State, kind: int, options: Indices, option: int) -> float:
        return 1.0 / len(options)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 0.0)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass
