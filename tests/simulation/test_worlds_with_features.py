"""Tasks with features: who looks at them sees them, when deciding and when learning, however late feedback comes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.optimum import solve
from worthwhile.problem import Problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments import Drift, Environment
from worthwhile.simulation.environments.base import features_in
from worthwhile.simulation.loop import TOTALS, Block, engine_for, new_flight, truth_of
from worthwhile.simulation.runs import Delay, Player, stages_of
from worthwhile.simulation.simulator import simulate
from worthwhile.state import Floats, Indices

ENGINES = ["python", pytest.param("compiled", marks=pytest.mark.slow)]


class Cells(NamedTuple):
    """What came of an option where the first feature is negative, and where it is not."""

    reward: Floats  # (options, 2)
    cost: Floats
    price: Floats
    seen: Floats  # (features,): the sum of all that were learned from
    failures: Floats


class Splitter(NamedTuple):
    """Takes the option of the best ratio on its side of 0, after a try of each; looks at the first feature only."""

    untried: float = 1e9

    def init(self, kinds: int, options: int, features: int = 0) -> Cells:
        return Cells(np.zeros((options, 2)), np.zeros((options, 2)), np.zeros(1), np.zeros(features), np.zeros(1))

    def choose(self, state: Cells, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return Decision(options[0], 0.0, 1.0)

    def choose_by_features(
        self, state: Cells, kind: int, features: Floats, options: Indices, pending: Indices, rng: Rng
    ) -> Decision:
        side = 1 if features[0] > 0.0 else 0
        best, most = options[0], -1e300
        for option in options:
            cost = state.cost[option, side]
            ratio = state.reward[option, side] / cost if cost > 0.0 else self.untried - pending[option]
            if ratio > most:
                best, most = option, ratio
        return Decision(best, most, 1.0)

    def judge(self, state: Cells, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 1.0)

    def learn_features(
        self, state: Cells, kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng
    ) -> None:
        side = 1 if features[0] > 0.0 else 0
        if not math.isnan(reward):
            state.reward[option, side] += reward
        else:
            state.failures[0] += 1.0
        state.cost[option, side] += cost
        for number in range(len(features)):
            if not math.isnan(features[number]):
                state.seen[number] += features[number]

    def learn(self, state: Cells, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.price[0] += reward

    def observe(self, state: Cells, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


class Halves(NamedTuple):
    """One option is good where the first feature is negative, the other where it is not; the second means nothing."""

    items: Floats  # (items, 2)
    swapped: int
    failing: float  # share of the tasks that fail

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return np.zeros(count, np.uint32), generator.random((count, 2))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        if latent[1] < self.failing:
            return float("nan"), 0.5
        item = self.items[int(latent[0] * len(self.items))]
        good = (option == 1) == (item[0] > 0.0)
        return 1.0 if good != (self.swapped == 1) else 0.5, 1.0

    def features(self, kind: int, latent: Floats) -> Floats:
        return self.items[int(latent[0] * len(self.items))]


def halves(swapped: int = 0, failing: float = 0.0, width: int = 2) -> Environment:
    items = np.random.default_rng(0).normal(size=(50, width))
    items[0] = np.nan
    left = (items[:, 0] > 0.0).mean()
    good = np.array([[1.0 - left, left]]) if not swapped else np.array([[left, 1.0 - left]])
    rates = (np.full((1, 2), failing), np.full((1, 2), 0.5)) if failing else (None, None)
    problem = Problem(
        "halves",
        ("k",),
        ("a", "b"),
        np.ones(1),
        0.5 + 0.5 * good,
        np.ones((1, 2)),
        failure_rate=rates[0],
        failure_cost=rates[1],
    )
    return Environment(problem, Halves(items, swapped, failing))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_policy_that_looks_at_features_beats_every_fixed_option(engine: str) -> None:
    policies = {"looks": Splitter(), "does not": "oracle"}
    results = simulate(halves(), policies, 1000, 2, engine=engine)
    assert results.mean("ratio")["looks"] > 0.97
    assert results.mean("ratio")["does not"] < 0.85


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("delay", [0, 3, (0, 40)])
def test_features_wait_with_their_task(engine: str, delay: int | tuple[int, int]) -> None:
    """What was learned from is what was drawn, less the tasks still under way."""
    results = simulate(halves(), {"looks": Splitter()}, 2000, 1, delay=delay, engine=engine)
    assert results.mean("ratio")["looks"] > 0.94


def played(engine: str, delay: Delay, environment: Environment) -> tuple[Any, Floats, Floats]:
    """The state and the totals after 500 tasks, and the sum of the features of all tasks."""
    world, problem, generator = environment.world, environment.problem, np.random.default_rng(5)
    player = Player(Splitter(), 1, 2, delay.most, features_in(world))
    block = Block(*world.draw(generator, 500), delay.draw(generator, 500))
    run = engine_for(player.policy, world, engine, late=delay.most > 0, fails=problem.can_fail)
    truth = truth_of(problem, solve(problem))
    run(player.policy, player.state, world, truth, player.flight, player.totals, block, 0, 500, 7, 0)
    rows = np.array([world.features(0, latent) for latent in block.latent])  # type: ignore[attr-defined]
    return player.state, player.totals, np.nansum(rows, axis=0)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_feature_is_learned_once_and_the_room_beyond_them_is_missing(engine: str) -> None:
    state, _, drawn = played(engine, Delay(0, 0), halves())
    assert len(state.seen) == 8
    assert state.seen[:2] == pytest.approx(drawn)
    assert not state.seen[2:].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_what_fails_has_features_too(engine: str) -> None:
    state, totals, drawn = played(engine, Delay(0, 0), halves(failing=0.2))
    assert state.failures[0] == pytest.approx(100, abs=40)
    assert state.seen[:2] == pytest.approx(drawn)
    assert state.price[0] == pytest.approx(totals[TOTALS.index("reward")])


@pytest.mark.slow
@pytest.mark.parametrize("delay", [Delay(0, 0), Delay(2, 9)])
@pytest.mark.parametrize("failing", [0.0, 0.2])
def test_interpreted_and_compiled_agree_to_the_bit(delay: Delay, failing: float) -> None:
    one, other = (played(engine, delay, halves(failing=failing, width=11)) for engine in ("python", "compiled"))
    assert one[1].tobytes() == other[1].tobytes()
    for array, twin in zip(one[0], other[0], strict=True):
        assert array.tobytes() == twin.tobytes()


@pytest.mark.slow
def test_machine_code_for_features_counts_no_references() -> None:
    from worthwhile.compiling import machine_code
    from worthwhile.policies.base import methods_of
    from worthwhile.simulation import loop

    played("compiled", Delay(0, 0), halves())
    parts = methods_of(Splitter()) | {"feedback": Halves.feedback}
    parts |= {"CAN_BE_LATE": False, "CAN_FAIL": False, "HAS_GOAL": False}
    code = machine_code(loop.play, parts | {"features": Halves.features}, views=["features"])
    assert code.code is code.uncounted
    assert code.code.signatures


@pytest.mark.parametrize("engine", ENGINES)
def test_a_policy_that_does_not_look_meets_the_same_world(engine: str) -> None:
    """The same numbers as in a world without features."""

    class Bare(NamedTuple):
        items: Floats
        swapped: int
        failing: float
        draw = Halves.draw
        feedback = Halves.feedback

    environment = halves()
    without = Environment(environment.problem, Bare(*environment.world))  # type: ignore[misc]
    one, other = (simulate(each, ["plug-ts"], 300, 2, engine=engine) for each in (environment, without))
    assert np.array_equal(one.curves, other.curves)
    assert features_in(without.world) == 0


def test_only_who_looks_has_room() -> None:
    looks, does_not = Player(Splitter(), 1, 2, 4, 9), Player(Splitter(), 1, 2, 4)
    assert looks.flight.features.shape == (5, 16)
    assert len(looks.state.seen) == 16
    assert does_not.flight.features.shape == (5, 0)
    assert new_flight(1, 2, 0).features.size == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_features_go_on_through_a_drift(engine: str) -> None:
    drift = Drift([(0, halves()), (500, halves(swapped=1))])
    results = simulate(drift, {"looks": Splitter()}, 1000, 1, marks=[500], engine=engine)
    first, second = results.measure("ratio")[0, 0]
    assert first > 0.97
    assert second < 0.9
    with pytest.raises(BadParameter, match=r"the stages' tasks have \[2, 3\] features"):
        stages_of(Drift([(0, halves()), (500, halves(width=3))]), 1000)
