"""Synthetic worlds: noise with the moments it promises, drift at its time, feedback as late as told."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.problem import FAMILIES, Noise, Problem, seven_kinds, two_kinds
from worthwhile.problem_files import read_problem
from worthwhile.random_problems import random_problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments import drifting, synthetic
from worthwhile.simulation.simulator import simulate

COUNT = 10_000
MEANS = {"low": (0.15, 0.4), "high": (0.7, 0.8)}


def sample(problem: Problem, option: int) -> np.ndarray:
    """(COUNT, 2) rewards and costs of one option of the first kind."""
    world = synthetic(problem).world
    _, latents = world.draw(np.random.default_rng(1), COUNT)
    return np.array([world.feedback(0, option, latent) for latent in latents])


NOISES = [
    *(Noise(), Noise(sd=0.3), Noise(cv=0.5), Noise(sd=0.0), Noise("bernoulli"), Noise("generalised-bernoulli")),
    *(Noise("beta", sd=0.1), Noise("beta", cv=0.3), Noise("gamma", sd=0.2), Noise("gamma", cv=1.6)),
    *(Noise("lognormal", sd=0.2), Noise("lognormal", cv=0.8)),
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{noise.family} sd={noise.sd} cv={noise.cv}")
def test_noise_has_the_mean_and_the_deviation_it_promises(noise: Noise) -> None:
    problem = Problem.of({"x": (1.0, MEANS)}, reward_noise=noise, cost_noise=noise)
    for option, means in enumerate(MEANS.values()):
        values = sample(problem, option)
        for column, mean in enumerate(means):
            seen, deviation = values[:, column], float(noise.deviation(np.array([mean]))[0])
            assert abs(seen.mean() - mean) <= 5 * deviation / math.sqrt(COUNT) + 1e-12
            error = np.sqrt((((seen - mean) ** 2 - deviation**2) ** 2).mean() / COUNT)  # of the sample variance
            assert abs(((seen - mean) ** 2).mean() - deviation**2) <= 5 * error + 1e-12


def test_observations_stay_where_their_family_lives() -> None:
    beta = Problem.of({"x": (1.0, MEANS)}, reward_noise=Noise("beta", sd=0.12), cost_noise=Noise("gamma", cv=2.0))
    for option in range(2):
        rewards, costs = sample(beta, option).T
        assert 0.0 < rewards.min() < rewards.max() < 1.0
        assert costs.min() > 0.0
    coins = Problem.of({"x": (1.0, MEANS)}, reward_noise=Noise("bernoulli"), cost_noise=Noise("lognormal", cv=2.0))
    rewards, costs = sample(coins, 1).T
    assert set(rewards) == {0.0, 1.0}
    assert costs.min() > 0.0


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
def test_generalised_bernoulli_observations_are_shares_of_wins_in_four_tosses(mean: float) -> None:
    offers = {"quarters": (mean, 1.0)}
    problem = Problem.of({"x": (1.0, offers)}, reward_noise=Noise("generalised-bernoulli"), cost_noise=Noise(sd=0.0))
    seen = Counter(sample(problem, 0)[:, 0].tolist())
    assert set(seen) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    for wins in range(5):
        chance = math.comb(4, wins) * mean**wins * (1.0 - mean) ** (4 - wins)
        error = math.sqrt(chance * (1.0 - chance) / COUNT)
        assert abs(seen[wins / 4] / COUNT - chance) <= 5 * error


@pytest.mark.parametrize("family", ["bernoulli", "generalised-bernoulli"])
def test_observations_of_a_discrete_family_rise_with_their_latent(family: str) -> None:
    world = synthetic(Problem.of({"x": (1.0, MEANS)}, reward_noise=Noise(family), cost_noise=Noise(family))).world
    scores = np.linspace(-9.0, 9.0, 2001)
    rewards = [world.feedback(0, 0, np.array([score, 0.0]))[0] for score in scores]
    assert rewards == sorted(rewards)
    assert (rewards[0], rewards[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.5, 1.0])
def test_gaussian_rewards_and_costs_have_the_correlation_asked_for(correlation: float) -> None:
    values = sample(Problem.of({"x": (1.0, MEANS)}, correlation=correlation), 0)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(correlation, abs=5 / math.sqrt(COUNT))


@pytest.mark.parametrize("family", FAMILIES[1:])
@pytest.mark.parametrize("correlation", [-0.7, 0.7])
def test_other_families_have_a_correlation_of_the_right_sign(family: str, correlation: float) -> None:
    noise = Noise(family, sd=None if family.endswith("bernoulli") else 0.1)
    problem = Problem.of({"x": (1.0, MEANS)}, reward_noise=noise, cost_noise=noise, correlation=correlation)
    signed = np.corrcoef(sample(problem, 1).T)[0, 1] * np.sign(correlation)
    assert 0.2 < signed < 0.75  # two coins of 0.7 and 0.8 cannot go below −0.33


def test_a_lucky_bernoulli_task_is_lucky_like_any_other() -> None:
    offers = {"coin": (0.5, 1.0)}
    problem = Problem.of({"x": (1.0, offers)}, reward_noise=Noise("bernoulli"), correlation=0.9)
    rewards, costs = sample(problem, 0).T
    assert np.corrcoef(rewards, costs)[0, 1] > 0.5


def test_a_problem_file_written_by_hand_says_what_it_means(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        """
name = "labels"
[units]
reward = "correct"
cost = "$"
[noise]
reward = { family = "bernoulli" }
cost = { family = "gamma", cv = 0.4 }
correlation = -0.2
[[kind]]
name = "easy"
arrival = 0.75
options = { crowd = { reward = 0.9, cost = 1 }, expert = { reward = 0.99, cost = 5.0 } }
[[kind]]
name = "hard"
arrival = 0.25
[kind.options]
expert = { reward = 0.8, cost = 7 }
"""
    )
    expected = Problem.of(
        {"easy": (0.75, {"crowd": (0.9, 1.0), "expert": (0.99, 5.0)}), "hard": (0.25, {"expert": (0.8, 7.0)})},
        name="labels",
        reward_noise=Noise("bernoulli"),
        cost_noise=Noise("gamma", cv=0.4),
        correlation=-0.2,
        reward_unit="correct",
        cost_unit="$",
    )
    assert read_problem(path) == expected
    assert expected.ratio_unit == "correct/$"
    assert np.array_equal(expected.offered, [[True, True], [False, True]])


def test_presets_are_the_papers_problems() -> None:
    assert read_problem("two-kinds-0.8") == two_kinds(0.8)
    assert read_problem("two-kinds-0.25") == two_kinds(0.25)
    assert read_problem("seven-kinds") == seven_kinds()
    assert seven_kinds().offered.sum() == 10
    assert seven_kinds().arrival.sum() == pytest.approx(1.0)


RANGES = {
    "unit": (0.1, 1.0, 0.1, 1.0),
    "train": (0.5, 0.98, 0.03, 4.3),
    "big": (50.0, 500.0, 5.0, 60.0),
    "dollars": (0.0, 0.98, 0.002, 0.034),
}


@pytest.mark.parametrize("family", list(RANGES))
def test_random_problems_repeat_and_keep_their_ranges(family: str) -> None:
    reward_min, reward_max, cost_min, cost_max = RANGES[family]
    drawn = [random_problem(family, seed) for seed in range(60)]
    for seed, problem in enumerate(drawn):
        rewards, costs = problem.reward[problem.offered], problem.cost[problem.offered]
        assert reward_min <= rewards.min() <= rewards.max() <= reward_max
        assert cost_min <= costs.min() <= costs.max() <= cost_max
        assert 2 <= len(problem.kinds) <= 11
        assert set(problem.offered.sum(axis=1)) <= set(range(2, 8))
        assert problem == random_problem(family, seed)
    assert {len(problem.kinds) for problem in drawn} == set(range(2, 12))
    assert drawn[0] != drawn[1]


class Nothing(NamedTuple):
    tasks: np.ndarray


class Recorder(NamedTuple):
    """Takes each option in turn, and writes down all that it is told."""

    log: list[tuple[Any, ...]]

    def init(self, kinds: int, options: int) -> Nothing:
        return Nothing(np.zeros(1))

    def choose(self, state: Nothing, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
        option = options[rng.task % len(options)]
        self.log.append(("choose", rng.task, (int(kind), int(option)), pending.tolist()))
        return Decision(option, float(rng.task), 0.5)

    def judge(self, state: Nothing, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 0.0)

    def learn(self, state: Nothing, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        assert made.reward_estimate == rng.task  # the task's own decision has travelled with it
        self.log.append(("learn", int(rng.task), (int(kind), int(made.option)), (float(reward), float(cost))))

    def observe(self, state: Nothing, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


def record(environment: Any, tasks: int, **settings: Any) -> list[tuple[Any, ...]]:
    """All that happens in one run."""
    log: list[tuple[Any, ...]] = []
    simulate(environment, {"recorder": Recorder(log)}, tasks, runs=1, threads=1, engine="python", **settings)
    return log


def silent(reward: float, cost: float = 1.0, share: float = 0.5) -> Problem:
    """Two kinds without noise whose second option is worth more."""
    rows = {"a": (reward, cost), "b": (3.0 * reward, 2.0 * cost)}
    still = Noise(sd=0.0)
    return Problem.of({"x": (share, rows), "y": (1.0 - share, rows)}, reward_noise=still, cost_noise=still)


def test_a_sudden_drift_happens_at_its_task() -> None:
    log = record(drifting([(0, silent(1.0, share=1.0)), (500, silent(10.0, share=0.0))]), 900)
    learned = [entry for entry in log if entry[0] == "learn"]
    assert len(learned) == 900
    for _, task, (kind, option), (reward, _) in learned:
        assert kind == (0 if task <= 500 else 1)
        assert reward == (1.0 if task <= 500 else 10.0) * (3.0 if option else 1.0)


def test_a_slow_drift_moves_in_equal_steps() -> None:
    stages = list(drifting([(0, silent(1.0, 1.0, 1.0)), (400, silent(9.0, 5.0, 0.0))], steps=4).stages())
    assert [start for start, _ in stages] == [0, 100, 200, 300, 400]
    assert [stage.problem.reward[0, 0] for _, stage in stages] == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert [stage.problem.cost[0, 0] for _, stage in stages] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [stage.problem.arrival[0] for _, stage in stages] == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_regret_is_measured_against_each_stages_own_optimum() -> None:
    calm, wild = silent(1.0), silent(10.0)
    result = simulate(
        drifting([(0, calm), (300, wild)]), ["fixed-option,option=a", "fixed-option,option=b"], 1000, 2, marks=[300]
    )
    # b is best: θ* is 1.5 and then 15, and a loses 3 − 1.5·2 − (1 − 1.5) = 0.5 and then 5 per task
    assert result.measure("regret")[0].tolist() == [[150.0, 150.0 + 700 * 5.0], [0.0, 0.0]]


def test_a_drift_of_more_steps_than_tasks_changes_with_every_task() -> None:
    stages = list(drifting([(0, silent(1.0)), (4, silent(5.0))], steps=100).stages())
    assert [start for start, _ in stages] == [0, 1, 2, 3, 4]
    assert [stage.problem.reward[0, 0] for _, stage in stages] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_stages_must_follow_each_other_and_agree_on_names() -> None:
    with pytest.raises(BadParameter, match=r"stages start at \[0, 300, 300\]"):
        drifting([(0, silent(1.0)), (300, silent(2.0)), (300, silent(3.0))])
    with pytest.raises(BadParameter, match=r"stages start at \[0, 500, 300\]"):
        drifting([(0, silent(1.0)), (500, silent(2.0)), (300, silent(3.0))])
    with pytest.raises(BadParameter, match="other kinds or options"):
        drifting([(0, silent(1.0)), (300, seven_kinds())])


@pytest.mark.parametrize("delay", [1, 7])
def test_a_fixed_delay_is_so_many_decisions(delay: int) -> None:
    log = record(seven_kinds(), 200, delay=delay)
    for task in range(1, 201 - delay):
        learned = next(place for place, entry in enumerate(log) if entry[:2] == ("learn", task))
        decisions = sum(1 for entry in log[:learned] if entry[0] == "choose")
        assert decisions == task + delay
    assert sum(1 for entry in log if entry[0] == "learn") == 200 - delay


@pytest.mark.parametrize("delay", [0, 5, (0, 30), (10, 20)])
def test_pending_counts_are_the_tasks_in_flight_and_feedback_counts_once(delay: int | tuple[int, int]) -> None:
    log = record(seven_kinds(), 400, delay=delay)
    flying: dict[int, tuple[int, int]] = {}
    for what, task, cell, told in log:
        if what == "choose":
            expected = Counter(option for kind, option in flying.values() if kind == cell[0])
            assert told == [expected[option] for option in range(2)]
            flying[task] = cell
        else:
            assert flying.pop(task) == cell
    most = delay if isinstance(delay, int) else delay[1]
    assert len(flying) <= most
    assert all(task > 400 - most for task in flying)


def test_random_delays_come_out_of_order() -> None:
    order = [task for what, task, *_ in record(two_kinds(), 300, delay=(0, 20)) if what == "learn"]
    assert order != sorted(order)
    assert len(set(order)) == len(order)


@pytest.mark.parametrize("delay", [3, (0, 12)])
def test_compiled_and_interpreted_runs_agree_with_delays(delay: int | tuple[int, int]) -> None:
    names = ["ratio-imed", "dol-rm", "bts"]
    one, other = (
        simulate(seven_kinds(), names, 1500, 2, seed=6, delay=delay, engine=engine) for engine in ("python", "compiled")
    )
    assert one.curves.tobytes() == other.curves.tobytes()
