"""The conformance kit catches what it promises to catch, and names the rule."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from by_features import BySign
from worthwhile.decision import NOTHING, Decision
from worthwhile.errors import BrokenRule
from worthwhile.learning import Arms, new_arms, record
from worthwhile.policies.base import known
from worthwhile.policies.registry import DEFAULT, LIST, METHODS, make
from worthwhile.problem import Noise, Problem, seven_kinds, two_kinds
from worthwhile.random_problems import FAMILIES, random_problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments import Environment, drifting, replay, synthetic
from worthwhile.simulation.environments.synthetic import SyntheticWorld
from worthwhile.tables import as_table
from worthwhile.testing import check_environment, check_policy, rules

SLOW = [pytest.param(name, marks=pytest.mark.slow) if name == DEFAULT else name for name in LIST]  # it has features


@pytest.mark.parametrize("name", SLOW)
def test_every_listed_policy_keeps_every_rule(name: str) -> None:
    check_policy(name, compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LIST))
def test_every_listed_policy_compiles_and_learns_the_same_bits(name: str) -> None:
    check_policy(name)


def test_an_oracle_is_checked_at_the_size_of_the_means_it_was_given() -> None:
    check_policy(make("oracle", known(seven_kinds(), 100)), compiled=False)


class State(NamedTuple):
    arms: Arms
    tasks: np.ndarray


class Sound(NamedTuple):
    """A policy that keeps the rules; each broken one below is this one with one method replaced."""

    slack: float = 0.1

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(1))

    def choose(self, state: State, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
        best, best_score = NOTHING, -1e300
        for option in options:
            score = state.arms.mean_reward[kind, option] - self.slack * state.arms.pulls[kind, option]
            if score > best_score:
                best, best_score = Decision(option, score, state.arms.mean_cost[kind, option]), score
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)


def first(options: Any) -> Decision:
    return Decision(options[0], 0.0, 0.0)


def choose_that_writes(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    state.arms.pulls[kind, options[0]] += 1.0
    return first(options)


def judge_that_writes(self: Any, state: Any, kind: Any, option: Any) -> Decision:
    state.tasks[0] += 1.0
    return Decision(option, 0.0, 0.0)


def choose_that_sorts_the_options(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    options.sort()
    return first(options)


def choose_what_is_not_on_offer(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(0, 0.0, 0.0)


def choose_a_bare_number(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Any:
    return options[0]


def choose_at_random(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(random.choice(list(options)), 0.0, 0.0)


def choose_without_estimates(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(options[0], float("nan"), 0.0)


def choose_only_what_is_known(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    known_options = [option for option in options if state.arms.pulls[kind, option] > 0.0]
    return first(known_options)


def choose_only_from_arrays(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(options[0], 0.0, float(pending.sum()))


def choose_by_the_type_of_number(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(options[0], float(isinstance(kind, np.integer)), 0.0)


def choose_by_the_size_of_an_array(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(options[state.arms.pulls.shape[1] % len(options)], 0.0, 0.0)


def choose_beyond_numba(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    scores = {int(option): f"{state.arms.mean_reward[kind, option]:030.15f}" for option in options}
    return Decision(max(scores, key=scores.__getitem__), 0.0, 0.0)


NOTEBOOK: list[float] = []


def choose_from_a_notebook(self: Any, state: Any, kind: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(options[len(NOTEBOOK) % len(options)], 0.0, 0.0)


def learn_into_a_notebook(self: Any, state: Any, kind: Any, made: Any, reward: float, cost: Any, rng: Any) -> None:
    NOTEBOOK.append(reward)


def learn_by_returning(self: Any, state: Any, kind: Any, made: Any, reward: Any, cost: Any, rng: Any) -> Any:
    return state


def learn_at_random(self: Any, state: Any, kind: Any, made: Any, reward: float, cost: Any, rng: Any) -> None:
    state.arms.mean_reward[kind, made.option] = reward + random.random()


def learn_badly(self: Any, state: Any, kind: Any, made: Any, reward: float, cost: float, rng: Any) -> None:
    state.arms.mean_reward[kind, made.option] = reward if cost < 10.0 else float("inf")


def observe_a_task(self: Any, state: Any, kind: Any, option: Any, reward: float, cost: float, rng: Any) -> None:
    state.tasks[0] += 1.0


class Flat(NamedTuple):
    row: np.ndarray


class Named(NamedTuple):
    names: Any


def init_upside_down(self: Any, kinds: int, options: int) -> Any:
    return Flat(np.zeros((options, kinds)))


def init_of_one_size(self: Any, kinds: int, options: int) -> Any:
    return Flat(np.zeros(3))


def init_with_objects(self: Any, kinds: int, options: int) -> Any:
    return Named(np.array(["a"] * kinds, dtype=object))


def init_a_dictionary(self: Any, kinds: int, options: int) -> Any:
    return {"pulls": np.zeros((kinds, options))}


BROKEN: list[tuple[dict[str, Any], str, str]] = [
    ({"choose": choose_that_writes}, rules.NO_WRITING, "read-only"),
    ({"judge": judge_that_writes}, rules.NO_WRITING, "judge_that_writes raised"),
    ({"choose": choose_that_sorts_the_options}, rules.NO_WRITING, "read-only"),
    ({"choose": choose_what_is_not_on_offer}, rules.DECISION, "Decision(option=0"),
    ({"choose": choose_a_bare_number}, rules.DECISION, "on offer"),
    ({"choose": choose_at_random}, rules.SAME_DECISION, "Decision(option="),
    ({"choose": choose_without_estimates}, rules.FINITE, "nan"),
    ({"choose": choose_only_what_is_known}, rules.ANY_TASK, "IndexError"),
    ({"choose": choose_only_from_arrays}, rules.ANY_TASK, "AttributeError"),
    ({"choose": choose_by_the_type_of_number}, rules.PLAIN_NUMBERS, "reward_estimate=1.0"),
    ({"choose": choose_by_the_size_of_an_array}, rules.GROWTH, "Size(kinds=5, options=7)"),
    ({"choose": choose_beyond_numba}, rules.COMPILES, "engine='python'"),
    ({"choose": choose_from_a_notebook, "learn": learn_into_a_notebook}, rules.MEMORY, "after storage"),
    ({"learn": learn_by_returning}, rules.IN_PLACE, "learn_by_returning returned"),
    ({"learn": learn_at_random}, rules.SAME_DECISION, "it learned differently"),
    ({"learn": learn_badly}, rules.FINITE, "arms.mean_reward"),
    ({"observe": observe_a_task}, rules.SIDE, "tasks went from [1.] to [2.]"),
    ({"init": init_upside_down}, rules.STATE, "row has shape (4, 3)"),
    ({"init": init_of_one_size}, rules.STATE, "row has shape (3,) for Size(kinds=7"),
    ({"init": init_with_objects}, rules.STATE, "names = array"),
    ({"init": init_a_dictionary}, rules.STATE, "init returned {"),
    ({"observe": None}, rules.PARAMETERS, "no method observe"),
]


def words(value: Any) -> str:
    """A short name for an example: the function that breaks the rule, or nothing."""
    return "-".join(getattr(method, "__name__", "none") for method in value.values()) if isinstance(value, dict) else ""


def variant(methods: dict[str, Any]) -> Any:
    """A class that is Sound but for some methods."""
    return type("Mine", (Sound,), methods)


def test_a_sound_policy_passes() -> None:
    check_policy(Sound)
    check_policy(Sound(slack=0.5), compiled=False)


@pytest.mark.parametrize(("methods", "rule", "shown"), BROKEN, ids=words)
def test_a_broken_policy_is_told_its_rule(methods: dict[str, Any], rule: str, shown: str) -> None:
    with pytest.raises(BrokenRule) as caught:
        check_policy(variant(methods))
    assert str(caught.value).startswith(f"Mine breaks the rule “{rule}”: ")
    assert shown in str(caught.value)


def test_a_policy_beyond_numba_passes_if_it_need_not_compile() -> None:
    check_policy(variant({"choose": choose_beyond_numba}), compiled=False)


def look_and_write(self: Any, state: Any, kind: Any, features: Any, options: Any, pending: Any, rng: Any) -> Decision:
    state.count[options[0]] += 1.0
    return first(options)


def look_into_the_features(
    self: Any, state: Any, kind: Any, features: Any, options: Any, pending: Any, rng: Any
) -> Decision:
    features[0] = 0.0
    return first(options)


def look_at_the_room(self: Any, state: Any, kind: Any, features: Any, options: Any, pending: Any, rng: Any) -> Decision:
    return Decision(options[0], float(len(features)), 0.0)


def look_for_what_is_not_missing(
    self: Any, state: Any, kind: Any, features: Any, options: Any, pending: Any, rng: Any
) -> Decision:
    return Decision(options[0], features[3], 0.0)


def look_beyond_numba(
    self: Any, state: Any, kind: Any, features: Any, options: Any, pending: Any, rng: Any
) -> Decision:
    return Decision(options[0], float(f"{min(features[1], 9.0):.3f}"), 0.0)


def learn_features_by_returning(
    self: Any, state: Any, kind: Any, features: Any, option: Any, reward: Any, cost: Any, rng: Any
) -> Any:
    return state


def learn_infinite_features(
    self: Any, state: Any, kind: Any, features: Any, option: Any, reward: Any, cost: Any, rng: Any
) -> None:
    state.features[0, 1] = float("inf")


def learn_features_into_a_notebook(
    self: Any, state: Any, kind: Any, features: Any, option: Any, reward: float, cost: Any, rng: Any
) -> None:
    NOTEBOOK.append(reward)


def look_into_a_notebook(
    self: Any, state: Any, kind: Any, features: Any, options: Any, pending: Any, rng: Any
) -> Decision:
    return Decision(options[len(NOTEBOOK) % len(options)], 0.0, 0.0)


def learn_without_a_number(self: Any, state: Any, kind: Any, made: Any, reward: Any, cost: Any, rng: Any) -> None:
    state.reward[made.option] = float("nan")


def learn_more_with_more_room(
    self: Any, state: Any, kind: Any, features: Any, option: Any, reward: Any, cost: Any, rng: Any
) -> None:
    state.features[0, 0] += len(features)


def init_with_one_feature_more(self: Any, kinds: int, options: int, features: int = 0) -> Any:
    return Flat(np.zeros((features + 1, 4) if features else 0))


def init_a_table_without_room(self: Any, kinds: int, options: int, features: int = 0) -> Any:
    return Flat(np.zeros((99, 4)))


def init_other_types_with_features(self: Any, kinds: int, options: int, features: int = 0) -> Any:
    return Flat(np.zeros(features, np.int64 if features else np.float64))


def init_without_room_for_features(self: Any, kinds: int, options: int) -> Any:
    return Flat(np.zeros(options))


BROKEN_WITH_FEATURES: list[tuple[dict[str, Any], str, str]] = [
    ({"choose_by_features": look_and_write}, rules.NO_WRITING, "look_and_write raised ValueError"),
    ({"choose_by_features": look_into_the_features}, rules.NO_WRITING, "read-only"),
    ({"choose_by_features": look_at_the_room}, rules.GROWTH, "reward_estimate=8.0"),
    ({"choose_by_features": look_for_what_is_not_missing}, rules.FINITE, "reward_estimate=np.float64(nan)"),
    ({"choose_by_features": look_beyond_numba}, rules.COMPILES, "engine='python'"),
    ({"learn_features": learn_features_by_returning}, rules.IN_PLACE, "learn_features_by_returning returned"),
    ({"learn_features": learn_infinite_features}, rules.FINITE, "features is [["),
    (
        {"learn_features": learn_features_into_a_notebook, "choose_by_features": look_into_a_notebook},
        rules.MEMORY,
        "after storage",
    ),
    ({"learn_features": learn_more_with_more_room}, rules.GROWTH, "learns otherwise with room for"),
    ({"learn": learn_without_a_number}, rules.FINITE, "reward is ["),
    ({"init": init_with_one_feature_more}, rules.TABLES, "row is (9, 4) at (3, 4, 8), (17, 4) at (7, 11, 16)"),
    ({"init": init_a_table_without_room}, rules.STATE, "row has shape (99, 4)"),
    ({"init": init_other_types_with_features}, rules.TABLES, "of other types"),
    ({"init": init_without_room_for_features}, rules.TABLES, "TypeError"),
    ({"learn_features": None}, rules.PARAMETERS, "no method learn_features"),
]


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_sound_policy_that_looks_at_features_passes(compiled: bool) -> None:
    check_policy(BySign, compiled)


@pytest.mark.parametrize(("methods", "rule", "shown"), BROKEN_WITH_FEATURES, ids=words)
def test_a_broken_policy_that_looks_at_features_is_told_its_rule(
    methods: dict[str, Any], rule: str, shown: str
) -> None:
    with pytest.raises(BrokenRule) as caught:
        check_policy(type("Mine", (BySign,), methods), compiled=rule == rules.COMPILES)
    assert str(caught.value).startswith(f"Mine breaks the rule “{rule}”: ")
    assert shown in str(caught.value)


class Keeps(NamedTuple):
    notes: list[float]


class Wants(NamedTuple):
    budget: float


def test_parameters_must_be_numbers_that_the_kit_knows() -> None:
    keeps = type("Keeps", (Keeps,), {name: getattr(Sound, name) for name in METHODS})
    with pytest.raises(BrokenRule, match=r"NamedTuple of numbers .*notes = \[1.0\]"):
        check_policy(keeps([1.0]))
    with pytest.raises(BrokenRule, match="nothing is known about 'budget'; check an instance"):
        check_policy(Wants)
    with pytest.raises(BrokenRule, match="it is not a NamedTuple"):
        check_policy(type("Loose", (), {name: getattr(Sound, name) for name in METHODS})())


@pytest.mark.parametrize("family", list(FAMILIES))
def test_synthetic_environments_keep_every_rule(family: str) -> None:
    check_environment(random_problem(family, 11))


@pytest.mark.parametrize("noise", [Noise("beta", sd=0.1), Noise("gamma", cv=1.5), Noise("bernoulli")], ids=str)
def test_every_noise_keeps_every_rule(noise: Noise) -> None:
    offers = {"a": (0.2, 0.4), "b": (0.7, 0.6)}
    problem = Problem.of({"x": (0.3, offers), "y": (0.7, offers)}, reward_noise=noise, cost_noise=noise)
    check_environment(problem)


def test_drifting_and_recorded_environments_keep_every_rule() -> None:
    check_environment(drifting([(0, two_kinds(0.8)), (100, two_kinds(0.6))], steps=3))
    check_environment(replay(recorded(), added_cost=0.5))


def recorded() -> Any:
    """A table of which one cell has a single row that pays."""
    rows = [("x", item, option, float(item == 7), 1.0 + option) for item in range(500) for option in range(2)]
    rows += [("y", item, 1, -1.0, 3.0) for item in range(100)]
    names = ("task_type", "item_id", "option", "reward", "cost")
    return as_table("recorded", dict(zip(names, zip(*rows, strict=True), strict=True)))


def draw_short(self: Any, generator: Any, count: int) -> Any:
    kinds, latents = SyntheticWorld.draw(self, generator, count)
    return kinds[1:], latents


def draw_signed(self: Any, generator: Any, count: int) -> Any:
    kinds, latents = SyntheticWorld.draw(self, generator, count)
    return kinds.astype(np.int64), latents


def draw_too_many_kinds(self: Any, generator: Any, count: int) -> Any:
    kinds, latents = SyntheticWorld.draw(self, generator, count)
    return kinds + np.uint32(1), latents


def draw_its_own(self: Any, generator: Any, count: int) -> Any:
    return SyntheticWorld.draw(self, np.random.default_rng(), count)


def draw_other_shares(self: Any, generator: Any, count: int) -> Any:
    kinds, latents = SyntheticWorld.draw(self, generator, count)
    return np.where(latents[:, 0] > 2.0, 1, kinds).astype(np.uint32), latents


def feedback_at_random(self: Any, kind: int, option: int, latent: Any) -> tuple[float, float]:
    return random.random(), 1.0


def feedback_without_end(self: Any, kind: int, option: int, latent: Any) -> tuple[float, float]:
    return 1.0, float("inf") if latent[0] > 3.0 else 1.0


def feedback_that_fails(self: Any, kind: int, option: int, latent: Any) -> tuple[float, float]:
    return latent[0] + latent[2], 1.0


def feedback_that_pays_too_well(self: Any, kind: int, option: int, latent: Any) -> tuple[float, float]:
    return self.reward.mean[kind, option] + latent[0] + 0.05 * option, self.cost.mean[kind, option]


def feedback_beyond_numba(self: Any, kind: int, option: int, latent: Any) -> tuple[float, float]:
    return float(f"{latent[0]:.3f}"), 1.0


def feedback_of_negative_cost(self: Any, kind: int, option: int, latent: Any) -> tuple[float, float]:
    return self.reward.mean[kind, option], self.cost.mean[kind, option] + 2.0 * latent[1]


@pytest.mark.parametrize(
    ("methods", "rule", "shown"),
    [
        ({"draw": draw_short}, rules.DRAW, "(131071,)"),
        ({"draw": draw_signed}, rules.DRAW, "int64"),
        ({"draw": draw_too_many_kinds}, rules.DRAW, "kind 2 where there are 2 kinds"),
        ({"draw": draw_its_own}, rules.SAME_DRAW, "same seed"),
        ({"draw": draw_other_shares}, rules.ARRIVALS, "kind 'x': 0.78"),
        ({"feedback": feedback_at_random}, rules.SAME_DRAW, "option 'a1'"),
        ({"feedback": feedback_without_end}, rules.FEEDBACK, "inf"),
        ({"feedback": feedback_that_fails}, rules.FEEDBACK, "IndexError"),
        ({"feedback": feedback_that_pays_too_well}, rules.MEANS, "kind 'y', option 'a2': mean reward 1.0"),
        ({"feedback": feedback_beyond_numba}, rules.COMPILES, "format spec in f-strings not supported"),
        ({"feedback": feedback_of_negative_cost}, rules.COSTS, "cost -"),
        ({"feedback": None}, rules.WORLD, "no method feedback"),
    ],
    ids=words,
)
def test_a_broken_environment_is_told_its_rule(methods: dict[str, Any], rule: str, shown: str) -> None:
    problem = replace(two_kinds(0.8), cost_noise=Noise("gamma", cv=0.5))
    mine = type("Mine", (SyntheticWorld,), methods)
    world = mine(*synthetic(problem).world)  # type: ignore[misc]
    with pytest.raises(BrokenRule) as caught:
        check_environment(Environment(problem, world))
    assert str(caught.value).startswith(f"Mine breaks the rule “{rule}”: ")
    assert shown in str(caught.value)
