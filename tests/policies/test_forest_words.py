"""What a forest says of a task to people: the parts of all splits, conditions, and which features matter."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from worthwhile.policies.features import CATEGORY, CHOICE, MISSING, NOTHING, TRY, Condition, feature_number
from worthwhile.policies.forest import gate, leaves_of, local_of
from worthwhile.policies.forest_words import Step, conditions_of, side_of, steps_to
from worthwhile.policies.imed import RatioImed, State
from worthwhile.policies.near import ahead
from worthwhile.rng import Rng, uniform

POLICY, OPTIONS = RatioImed(), np.arange(3, dtype=np.uint32)
IDLE = np.zeros(3, np.uint32)


def task(number: int) -> Any:
    """Size, a category, a number that says nothing, and a text that never comes again."""
    rng = Rng(7, number)
    size, family = uniform(rng, 0), "even" if uniform(rng, 1) < 0.5 else "odd"
    return np.array([size, feature_number(family), uniform(rng, 2), feature_number(f"job {number}")])


def result(features: Any, option: int, number: int) -> tuple[float, float]:
    """Option 1 is best for large tasks, option 2 in the family `even`, option 0 never changes."""
    even = features[1] == feature_number("even")
    reward = (0.5, 0.2 + 0.7 * (features[0] > 0.6), 0.2 + 0.5 * even)[option]
    return reward + 0.2 * (uniform(Rng(8, number), 0) - 0.5), 1.0


@cache
def learned(tasks: int = 1500) -> State:
    """What the default knows after so many of them."""
    state = POLICY.init(1, 3, 4)
    for number in range(tasks):
        features, rng = task(number), Rng(1, number)
        made = POLICY.choose_by_features(state, 0, features, OPTIONS, IDLE, rng)
        if number < 200:
            made = made._replace(option=np.uint32(number % 3))
        reward, cost = result(features, int(made.option), number)
        POLICY.learn_features(state, 0, features, int(made.option), reward, cost, rng)
        POLICY.learn(state, 0, made, reward, cost, rng)
    return state


def explained(features: Any, number: int = 10_000) -> tuple[int, Any]:
    state, rng = learned(), Rng(1, number)
    taken = int(POLICY.choose_by_features(state, 0, features, OPTIONS, IDLE, rng).option)
    return taken, POLICY.by_features(state, 0, features, OPTIONS, IDLE, taken, rng)


@pytest.mark.slow
def test_the_parts_of_all_splits_add_up_to_what_was_foretold() -> None:
    state, features = learned(), task(20_000)
    forest, price = state.forest, float(state.plug_in.price[0])
    leaves = leaves_of(forest, 0, features)
    one, other = (
        gate(forest.gates, 0, option, 1.0) * ahead(local_of(forest, leaves, option, 1.0), price) for option in (1, 2)
    )
    steps = list(steps_to(forest, leaves, price, 1.0, 0, features, 1, 2))
    assert math.fsum(step.part for step in steps) == pytest.approx(one - other)
    assert steps


def test_what_mattered_is_named_and_true_of_the_task() -> None:
    effects = set()
    for number in range(10_000, 10_200):
        features = task(number)
        taken, told = explained(features, number)
        effects.add(told.effect)
        assert (taken != told.usual) or told.effect == NOTHING
        for condition in told.conditions:
            value = features[condition.feature]
            assert condition.above is None or value > condition.above
            assert condition.up_to is None or value <= condition.up_to
            assert condition.feature != 3
        if told.effect == CHOICE:
            assert told.gain > -0.1
            assert told.like > 0
            assert told.conditions
    assert effects >= {CHOICE, NOTHING}


def test_the_feature_that_decides_comes_first() -> None:
    told = [explained(task(number), number)[1] for number in range(10_000, 10_200)]
    firsts = [one.conditions[0] for one in told if one.effect == CHOICE and one.usual == 1]  # best where size is large
    assert len(firsts) > 50
    assert {first.feature for first in firsts} == {0}
    assert 0.2 < np.median([first.up_to for first in firsts]) < 0.7  # trees split at random places up to 0.6


def test_a_try_at_a_random_place_is_called_that() -> None:
    tried = [told for number in range(10_000, 13_000) if (told := explained(task(number), number)[1]).effect == TRY]
    assert tried
    assert all(told.conditions == () for told in tried)


def test_before_there_are_trees_features_change_nothing() -> None:
    for state in (POLICY.init(1, 3, 4), learned(30)):
        told = POLICY.by_features(state, 0, task(1), OPTIONS, IDLE, 0, Rng(1, 1))
        assert told == (NOTHING, told.usual, (), 0.0, 0.0, 0.0)
        assert POLICY.beyond_usual(state, 0, task(1)) == []


def test_features_that_say_nothing_have_no_importance() -> None:
    so_far = POLICY.features_so_far(learned())
    size, family, noise, job = so_far.importance
    assert min(size, family) > 50 * max(noise, job, 1.0)
    assert so_far.believed > 0.5
    assert so_far.different[0] == so_far.different[2] == 0.0  # numbers
    assert so_far.different[1] < 0.1
    assert so_far.different[3] > 0.99


def test_what_is_expected_beyond_the_usual_option_is_nothing_for_itself_and_for_whom_nobody_knows() -> None:
    larger = POLICY.init(1, 4, 4)
    for new, old in zip(flat(larger), flat(learned()), strict=True):
        new[tuple(slice(0, length) for length in old.shape)] = old
    _, told = explained(task(10_000))
    beyond = POLICY.beyond_usual(larger, 0, task(10_000))
    assert beyond[told.usual] == beyond[3] == 0.0
    assert len(beyond) == 4
    assert any(beyond)


def flat(state: Any) -> list[Any]:
    return [array for part in state for array in (flat(part) if isinstance(part, tuple) else [part])]


@pytest.mark.parametrize(
    ("number", "value", "side"),
    [
        (2.0, 3.0, "up to"), (3.0, 3.0, "up to"), (4.0, 3.0, "above"), (MISSING, 3.0, "missing"),
        (MISSING, MISSING, "missing"), (3.0, MISSING, "known"), (CATEGORY, CATEGORY, "equal"),
        (1.5 * CATEGORY, CATEGORY, ""), (3.0, CATEGORY, ""), (CATEGORY, 3.0, ""),
    ],
)  # fmt: skip
def test_the_sides_of_a_split_have_words_if_they_are_known(number: float, value: float, side: str) -> None:
    assert side_of(number, value) == side


def test_splits_by_one_feature_become_one_interval_and_what_did_little_is_left_out() -> None:
    steps = [
        Step(5, "above", 1.0, 2.0), Step(5, "up to", 9.0, 1.0), Step(5, "above", 2.0, 3.0), Step(4, "equal", 7.0, 4.0),
        Step(3, "missing", 0.0, 2.0), Step(2, "known", 0.0, 1.5), Step(1, "above", 0.0, 0.5), Step(0, "", 0.0, 9.0),
        Step(6, "above", 0.0, -3.0),
    ]  # fmt: skip
    first = Condition(5, above=2.0), Condition(4, equal=True), Condition(3, missing=True)
    assert conditions_of(steps) == first
    assert conditions_of(steps[:2]) == (Condition(5, 1.0, 9.0),)
    assert conditions_of([steps[5]]) == (Condition(2, missing=False),)
    assert conditions_of([steps[-1]]) == conditions_of([]) == ()
