"""Linear models of features: their recursion against ridge regression solved at once, and what they decide."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile.decision import Decision
from worthwhile.optimum import solve
from worthwhile.policies.features import CATEGORY, MISSING, feature_number
from worthwhile.policies.linear import (
    CATEGORIES,
    COLUMNS,
    FARTHEST,
    LinearGreedy,
    LinearTs,
    State,
    column_of,
    doubt,
    foretold,
    take_in_features,
    value_of,
)
from worthwhile.policies.plug_ts import PlugTs, pooled_variance, squares
from worthwhile.problem import Problem
from worthwhile.rng import Rng, normals, uniform
from worthwhile.simulation.environments import Environment
from worthwhile.simulation.loop import TOTALS, Block, engine_for, new_flight, truth_of
from worthwhile.simulation.runs import Delay
from worthwhile.simulation.simulator import simulate
from worthwhile.state import Floats, Indices, arrays, grow, same

KINDS, OPTIONS, RIDGE = 2, 3, 2.0
ALL, NONE_RUNNING = np.arange(OPTIONS, dtype=np.uint32), np.zeros(OPTIONS, np.uint32)
BOTH: list[Any] = [LinearGreedy(ridge=RIDGE), LinearTs(ridge=RIDGE)]


def tasks_with(features: int, count: int, seed: int = 0) -> list[tuple[int, int, Floats, float, float]]:
    """Kinds, options, features (numbers, gaps, categories), rewards and costs that depend on them."""
    luck, made = np.random.default_rng(seed), []
    texts = [feature_number(text) for text in ("red", "green", "blue")]
    for _ in range(count):
        known = luck.normal(3.0, 2.0, features)
        known[luck.random(features) < 0.2] = MISSING
        known[1] = luck.choice(texts)
        kind, option = int(luck.integers(KINDS)), int(luck.integers(OPTIONS))
        slope = float(np.nan_to_num(known[0])) * (option - 1)
        made.append((kind, option, known, kind + slope + luck.normal(), 2.0 + 0.1 * slope + luck.gamma(2.0)))
    return made


def learned(policy: Any, tasks: Any, features: int) -> State:
    state: State = policy.init(KINDS, OPTIONS, features)
    for number, (kind, option, known, reward, cost) in enumerate(tasks, 1):
        policy.learn_features(state, kind, known, option, reward, cost, Rng(1, number))
        policy.learn(state, kind, Decision(option, 0.0, 0.0), 0.0 if math.isnan(reward) else reward, cost, Rng(1, 1))
    return state


class Ridge:
    """The same from sums: all of it is solved anew for every report."""

    def __init__(self) -> None:
        self.seen: list[Floats] = []
        self.gram = np.array([RIDGE * np.eye(COLUMNS) for _ in range(OPTIONS)])
        self.products = np.zeros((OPTIONS, 2, COLUMNS))
        self.rests: dict[tuple[int, int], list[Floats]] = {}

    def columns(self, known: Floats) -> Floats:
        """x of a task, by means and deviations of all seen so far."""
        row, past = np.zeros(COLUMNS), np.array(self.seen)
        for feature, number in enumerate(known):
            if number >= CATEGORY:
                row[column_of(feature, number)] += 1.0
            elif not math.isnan(number):
                numbers = past[:, feature][past[:, feature] < CATEGORY]
                deviation = numbers.std() if len(numbers) > 1 else 0.0
                standard = (number - numbers.mean()) / deviation if deviation > 0.0 else 0.0
                row[feature % COLUMNS] += np.clip(standard, -FARTHEST, FARTHEST)
        return row

    def weights(self, option: int) -> Floats:
        both: Floats = np.linalg.solve(self.gram[option], self.products[option].T).T
        return both

    def learn(self, kind: int, option: int, known: Floats, reward: float, cost: float) -> None:
        self.seen.append(known)
        row, rests, result = self.columns(known), self.rests.setdefault((kind, option), []), np.array([reward, cost])
        foretold, weight = self.weights(option) @ row, 1.0 - 1.0 / (len(rests) + 1)
        if rests:
            beyond = result - np.mean(rests, axis=0)
            self.gram[option] += weight * np.outer(row, row)
            self.products[option] += weight * np.outer(beyond, row)
        rests.append(result - foretold)


@pytest.mark.parametrize("features", [8, 80])  # of 80 features, 16 share their columns with others
def test_the_recursion_is_ridge_regression_on_what_is_beyond_the_means(features: int) -> None:
    tasks, ridge = tasks_with(features, 60), Ridge()
    state = learned(BOTH[0], tasks, features)
    for task in tasks:
        ridge.learn(*task)
    known = tasks_with(features, 1, seed=9)[0][2]
    row = ridge.columns(known)
    for option in range(OPTIONS):
        inverse = np.linalg.inv(ridge.gram[option])
        np.testing.assert_allclose(state.models.inverse[option], inverse, rtol=1e-9, atol=1e-12)
        weights = np.array([state.models.reward[option], state.models.cost[option]])
        np.testing.assert_allclose(weights, ridge.weights(option), rtol=1e-8, atol=1e-11)
        assert foretold(state, known, option) == pytest.approx(tuple(ridge.weights(option) @ row), rel=1e-8)
        assert doubt(state, known, option) == pytest.approx(row @ inverse @ row, rel=1e-8)
    for (kind, option), rests in ridge.rests.items():
        assert state.rest.pulls[kind, option] == state.arms.pulls[kind, option] == len(rests)
        left = state.rest.mean_reward[kind, option], state.rest.mean_cost[kind, option]
        assert left == pytest.approx(tuple(np.mean(rests, axis=0)), rel=1e-8)


def test_without_regression_the_rest_is_the_result() -> None:
    state = BOTH[0].init(KINDS, OPTIONS)
    for kind, option, _, reward, cost in tasks_with(2, 30):
        BOTH[0].observe(state, kind, option, reward, cost, Rng(1, 1))
    np.testing.assert_allclose(state.rest.mean_reward, state.arms.mean_reward)
    np.testing.assert_allclose(state.rest.mean_cost, state.arms.mean_cost)


def test_a_feature_counts_in_deviations_from_its_mean_and_a_missing_one_not_at_all() -> None:
    standard = BOTH[0].init(1, 1, 4).standard
    for number in (1.0, 3.0, 5.0, 7.0):
        take_in_features(standard, np.array([number, 2.5, MISSING, feature_number("a")]))
    assert standard.seen.tolist() == [4.0, 4.0, 0.0, 0.0]
    assert value_of(standard, 0, 6.0) == pytest.approx(2.0 / math.sqrt(5.0))
    assert value_of(standard, 0, 1e9) == FARTHEST
    assert value_of(standard, 0, -math.inf) == -FARTHEST
    assert value_of(standard, 1, 7.0) == 0.0  # has never varied
    assert [value_of(standard, feature, MISSING) for feature in range(4)] == [0.0] * 4
    assert value_of(standard, 3, feature_number("b")) == 1.0


def test_numbers_have_columns_by_their_number_and_categories_by_a_hash() -> None:
    assert [column_of(feature, 1.0) for feature in (0, 63, 64, 130)] == [0, 63, 0, 2]
    columns = [column_of(feature, feature_number(f"text {text}")) for text in range(100) for feature in range(8)]
    assert set(columns) == set(range(COLUMNS - CATEGORIES, COLUMNS))
    assert max(np.bincount(columns)) < 3 * len(columns) / CATEGORIES
    assert column_of(1, feature_number("a")) != column_of(2, feature_number("a"))


def test_features_however_large_small_or_constant_leave_finite_numbers() -> None:
    hard = (0.0, -1e308, 1e300, 1e-170, 3.0, math.nan, 5e-324, -math.inf, feature_number("x"))
    for policy in BOTH:
        state = policy.init(1, 2, 8)
        for task in range(1, 200):
            known = np.array([hard[(task * (place + 1)) % len(hard)] for place in range(8)])
            made = policy.choose_by_features(state, 0, known, ALL[:2], NONE_RUNNING[:2], Rng(3, task))
            assert np.isfinite(made).all()
            reward, cost = ((1.0, 1.0), (1e6, 1e-6), (-1e6, 1e6), (math.nan, 1.0))[task % 4]
            policy.learn_features(state, 0, known, made.option, reward, cost, Rng(3, task))
            policy.learn(state, 0, made, 0.0 if math.isnan(reward) else reward, cost, Rng(3, task))
            for name, array in arrays(state):
                assert np.isfinite(array).all(), name


def test_a_failure_counts_as_a_reward_of_0() -> None:
    tasks = tasks_with(8, 40)
    failed, nothing = ([*tasks, (0, 1, tasks[0][2], reward, 2.0)] for reward in (math.nan, 0.0))
    assert same(learned(BOTH[0], failed, 8), learned(BOTH[0], nothing, 8))


def test_greedy_takes_the_largest_forecast_unless_its_coin_says_any() -> None:
    tasks = tasks_with(8, 200)
    policy, known = LinearGreedy(ridge=RIDGE, exploration=5.0), tasks[7][2]
    state = learned(policy, tasks, 8)
    chance, price, explored = 5.0 / math.sqrt(201.0), state.plug_in.price[0], 0
    forecasts = [
        (state.rest.mean_reward[1, option] + reward, state.rest.mean_cost[1, option] + cost)
        for option, (reward, cost) in enumerate(foretold(state, known, option) for option in range(OPTIONS))
    ]
    best = max(range(OPTIONS), key=lambda option: forecasts[option][0] - price * forecasts[option][1])
    for task in range(1, 60):
        rng = Rng(5, task)
        explores = uniform(rng, 0) < chance
        explored += explores
        option = int(uniform(rng, 1) * OPTIONS) if explores else best
        made = policy.choose_by_features(state, 1, known, ALL, NONE_RUNNING, rng)
        assert made == pytest.approx((option, *forecasts[option]))
    assert 10 < explored < 35
    never = LinearGreedy(exploration=0.0)
    assert {never.choose_by_features(state, 1, known, ALL, NONE_RUNNING, Rng(5, t)).option for t in range(60)} == {best}


def test_thompson_draws_from_what_the_regression_leaves_open() -> None:
    tasks = tasks_with(8, 60)
    policy, known, kind = LinearTs(ridge=RIDGE, exploration=1.5), tasks[7][2], 1
    state, chosen = learned(policy, tasks, 8), set()
    rest, price = state.rest, float(state.plug_in.price[0])
    pooled = pooled_variance(rest, kind, ALL, price)
    for task in range(1, 40):
        rng, draws = Rng(6, task), []
        for option in range(OPTIONS):
            pulls, (reward, cost) = rest.pulls[kind, option], foretold(state, known, option)
            variance = (squares(rest, kind, option, price) + 3.0 * pooled) / (pulls - 1.0 + 3.0)
            worth = rest.mean_reward[kind, option] + reward - price * (rest.mean_cost[kind, option] + cost)
            deviation = math.sqrt(variance * (1.0 / pulls + doubt(state, known, option)))
            draws.append(worth + 1.5 * deviation * normals(rng, option)[0])
        made = policy.choose_by_features(state, kind, known, ALL, NONE_RUNNING, rng)
        assert made.option == np.argmax(draws)
        chosen.add(int(made.option))
    assert len(chosen) > 1


def test_without_features_thompson_decides_as_plug_ts() -> None:
    policy: Any = LinearTs()
    twin: Any = PlugTs()
    state, plain = policy.init(KINDS, OPTIONS), twin.init(KINDS, OPTIONS)
    for kind, option, _, reward, cost in tasks_with(2, 60):
        for one, known in ((policy, state), (twin, plain)):
            one.learn(known, kind, Decision(option, 0.0, 0.0), reward, cost, Rng(1, 1))
    assert state.plug_in.price[0] == pytest.approx(plain.plug_in.price[0], rel=1e-12)
    for task in range(1, 50):
        made = policy.choose(state, 1, ALL, NONE_RUNNING, Rng(2, task))
        assert made == pytest.approx(twin.choose(plain, 1, ALL, NONE_RUNNING, Rng(2, task)), rel=1e-12)
        assert made == pytest.approx(policy.judge(state, 1, int(made.option)), rel=1e-12)


@pytest.mark.parametrize(("policy", "tries"), [(LinearGreedy(), 1), (LinearTs(), 2), (LinearTs(first_tries=3), 3)])
def test_every_option_is_tried_first_the_one_with_the_fewest_tries_before_others(policy: Any, tries: int) -> None:
    state, running = policy.init(1, OPTIONS), NONE_RUNNING.copy()
    for _ in range(OPTIONS * tries + 1):  # nothing has reported: they take turns
        made = policy.choose(state, 0, ALL, running, Rng(1, 1))
        assert running[made.option] == running.min()
        running[made.option] += 1
    for option in (2, 1):
        for _ in range(tries):
            policy.learn(state, 0, Decision(option, 0.0, 0.0), 1.0, 1.0, Rng(1, 1))
    assert policy.choose(state, 0, ALL, NONE_RUNNING, Rng(1, 1)).option == 0
    running = np.array([tries, 0, 0], np.uint32)  # what is running is not waited for
    assert {int(policy.choose(state, 0, ALL, running, Rng(1, t))[0]) for t in range(9)} <= {0, 1, 2}
    assert {int(LinearGreedy(0.0).choose(state, 0, ALL, running, Rng(1, t))[0]) for t in range(9)} <= {1, 2}


@pytest.mark.parametrize("policy", BOTH)
def test_more_room_changes_no_decision(policy: Any) -> None:
    tasks = tasks_with(8, 60)
    state = learned(policy, tasks, 8)
    larger = grow(policy, state, KINDS + 1, OPTIONS + 2, 16)
    for task, (kind, _, known, *_) in enumerate(tasks, 1):
        wide, running = np.append(known, np.full(8, MISSING)), np.zeros(OPTIONS + 2, np.uint32)
        made = policy.choose_by_features(state, kind, known, ALL, NONE_RUNNING, Rng(4, task))
        assert made == policy.choose_by_features(larger, kind, wide, ALL, running, Rng(4, task))


@pytest.mark.parametrize("policy", BOTH)
def test_room_for_features_comes_when_the_first_task_has_some(policy: Any) -> None:
    state = policy.init(KINDS, OPTIONS)
    assert sum(array.size for _, array in arrays(state.models)) == 0
    policy.learn(state, 0, Decision(1, 0.0, 0.0), 1.0, 2.0, Rng(1, 1))
    larger = grow(policy, state, KINDS, OPTIONS, 8)
    assert larger.rest.mean_cost[0, 1] == 2.0
    assert np.array_equal(larger.models.inverse[2], np.eye(COLUMNS) / RIDGE)


class Line(NamedTuple):
    """Options that are best for small, for middling and for large tasks; one in ten fails if it can."""

    known: Floats  # (items, 3)
    fails: bool = False

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return np.zeros(count, np.uint32), generator.random((count, 3))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        size = self.known[int(latent[0] * len(self.known)), 0]
        reward = 1.0 + 0.5 * (1.0 * option - 1.0) * size + 0.2 * (latent[1] - 0.5)
        return (math.nan if self.fails and latent[2] < 0.1 else reward), 1.0 + 0.1 * latent[2]

    def features(self, kind: int, latent: Floats) -> Floats:
        return self.known[int(latent[0] * len(self.known))]  # type: ignore[no-any-return]


def line(features: int = 3, fails: bool = False) -> Environment:
    luck = np.random.default_rng(1)
    known = luck.normal(size=(500, features))
    known[:, 1] = [feature_number(text) for text in luck.choice(["a", "b", "c"], 500)]
    known[::7, 2] = MISSING
    problem = Problem.of({"task": (1.0, dict.fromkeys("abc", (1.0, 1.05)))})
    return Environment(problem, Line(known, fails))


@pytest.mark.parametrize("name", ["linear-greedy,ridge=1", "linear-ts,ridge=1"])
def test_a_world_that_is_linear_is_learned(name: str) -> None:
    results = simulate(line(), [name, "plug-ts"], 600, 2, engine="python")
    looks, blind = results.mean("ratio").values()
    best = (1.0 + 0.5 * math.sqrt(2.0 / math.pi)) / 1.05  # the mean of |size|, sizes normal
    assert looks > blind + 0.8 * (best - blind)


@pytest.mark.slow
@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("delay", [Delay(0, 0), Delay(0, 5)])
def test_machine_code_learns_the_same_bits(policy: Any, delay: Delay) -> None:
    environment, ends = line(70, fails=True), []
    truth, tasks = truth_of(environment.problem, solve(environment.problem)), 300
    for engine in ("python", "compiled"):
        generator = np.random.default_rng(2)
        state, totals = policy.init(1, OPTIONS, 128), np.zeros(len(TOTALS))
        block = Block(*environment.world.draw(generator, tasks), delay.draw(generator, tasks))
        flight = new_flight(1, OPTIONS, delay.most, 128)
        play = engine_for(policy, environment.world, engine)
        play(policy, state, environment.world, truth, flight, totals, block, 0, tasks, 77, 0)
        ends.append((state, totals))
    assert ends[0][1].tobytes() == ends[1][1].tobytes()
    assert same(ends[0][0], ends[1][0])
    assert ends[0][0].models.reward.any()
