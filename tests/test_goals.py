"""A goal: what a user may say, what is completed, what is refused and why."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worthwhile.errors import BadParameter
from worthwhile.goals.goal import Goal, goal_of

numbers = st.floats(-1e6, 1e6)
floors = st.none() | numbers | st.dictionaries(st.text(min_size=1), numbers, min_size=1)
budgets = st.none() | st.floats(1e-6, 1e6)


def test_a_floor_alone_means_the_least_cost_and_a_budget_alone_the_most_reward() -> None:
    assert goal_of() == Goal("ratio", None, None)
    assert goal_of(floor=0.8) == Goal("cost", 0.8)
    assert goal_of(floor={"legal review": 0.9}) == Goal("cost", {"legal review": 0.9})
    assert goal_of(budget=0.05) == Goal("reward", None, 0.05)
    assert goal_of("ratio", floor=0.8, budget=0.05) == Goal("ratio", 0.8, 0.05)
    assert goal_of(Goal("cost", 0.8)) == Goal("cost", 0.8)


def test_numbers_of_any_sort_become_floats() -> None:
    goal = goal_of("ratio", floor={"x": 1, "y": np.float32(0.5)}, budget=np.int64(3))
    assert {type(value) for value in (*goal.floors.values(), goal.budget)} == {float}
    assert json.loads(json.dumps(goal.to_json())) == {"goal": "ratio", "floor": {"x": 1.0, "y": 0.5}, "budget": 3.0}


def test_a_goal_does_not_change_when_the_dictionary_that_it_was_given_does() -> None:
    said = {"x": 0.5}
    goal = goal_of(floor=said)
    said["x"] = 0.9
    assert goal.floors == {"x": 0.5}


def test_rewards_may_be_negative_and_so_may_floors() -> None:
    assert goal_of(floor=0).total_floor == 0.0
    assert goal_of(floor=-3.5).total_floor == -3.5


@given(st.sampled_from(["ratio", "cost", "reward"]), floors, budgets)
def test_a_goal_comes_back_from_json_as_it_was(aim: str, floor: Any, budget: Any) -> None:
    if (aim == "cost" and floor is None) or (aim == "reward" and budget is None):
        with pytest.raises(BadParameter, match=f"goal = '{aim}' needs a "):
            Goal(aim, floor, budget)
    else:
        goal = Goal(aim, floor, budget)
        assert Goal.from_json(json.loads(json.dumps(goal.to_json()))) == goal


no_numbers = [math.nan, math.inf, -math.inf, True, "0.8", [0.8], Decimal("0.8"), 10**400, 1j]


@pytest.mark.parametrize("number", [*no_numbers, pytest.param(10**9999, id="of too many digits to print")])
def test_what_is_no_finite_number_is_no_floor_and_no_budget(number: Any) -> None:
    with pytest.raises(BadParameter, match=r"^floor = .*; it must be a finite number, or \{kind: number\}$"):
        goal_of(floor=number)
    with pytest.raises(BadParameter, match=r"^floor of 'x' = .*; it must be a finite number$"):
        goal_of(floor={"x": number})
    with pytest.raises(BadParameter, match=r"^budget = .*; it must be a finite number above 0"):
        goal_of(budget=number)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"floor": 0.8, "budget": 0.05}, "floor = 0.8 and budget = 0.05 need a goal beside them: 'ratio' or 'cost'"),
        ({"goal": "cost"}, "goal = 'cost' needs a floor"),
        ({"goal": "cost", "budget": 1.0}, "goal = 'cost' needs a floor"),
        ({"goal": "reward"}, "goal = 'reward' needs a budget"),
        ({"goal": "reward", "floor": 0.5}, "goal = 'reward' needs a budget"),
        ({"goal": "costs", "floor": 0.5}, "goal = 'costs'; did you mean 'cost'?"),
        ({"goal": "profit"}, "goal = 'profit'; known: cost, ratio, reward"),
        ({"goal": 3}, "goal = 3; known: cost, ratio, reward"),
        ({"goal": ["ratio"]}, r"goal = \['ratio'\]; "),
        ({"budget": 0}, "budget = 0; it must be above 0: every task costs something"),
        ({"budget": -0.05}, "budget = -0.05; it must be above 0"),
        ({"floor": {}}, r"floor = \{\}; name at least one kind, or leave the floor out"),
        ({"floor": {"": 0.5}}, "floor of '': a kind is a text that is not empty"),
        ({"floor": {3: 0.5}}, "floor of 3: a kind is a text that is not empty"),
        ({"goal": Goal(), "floor": 0.5}, "has its floor and budget in it; do not give them again"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_remedy(said: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadParameter, match=complaint):
        goal_of(**said)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (0.8, "goal = 0.8; write {goal, floor, budget}"),
        ({"floors": 0.8}, "a goal has no 'floors'; did you mean 'floor'?"),
        ({"floor": 0.8, "budget": 0.5}, "need a goal beside them"),
        ({"goal": "cost", "floor": None}, "goal = 'cost' needs a floor"),
    ],
)
def test_json_that_is_no_goal_is_refused(content: Any, complaint: str) -> None:
    with pytest.raises(BadParameter, match=complaint):
        Goal.from_json(content)


def test_a_floor_for_a_kind_that_there_is_not_is_refused_by_name() -> None:
    goal = goal_of(floor={"legal reveiw": 0.9})
    with pytest.raises(BadParameter, match="floor of 'legal reveiw': there is no kind of that name; did you mean"):
        goal.check_kinds(["legal review", "summary"])
    goal_of(floor={"summary": 0.9}).check_kinds(["legal review", "summary"])
    goal_of(floor=0.9).check_kinds([])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "best ratio"),
        ({"floor": 0.8}, "least cost with mean reward ≥ 0.8"),
        ({"budget": 0.05}, "most reward with mean cost per task ≤ 0.05"),
        ({"goal": "ratio", "floor": 0.8}, "best ratio with mean reward ≥ 0.8"),
        ({"goal": "reward", "floor": 0, "budget": 2}, "most reward with mean reward ≥ 0 and mean cost per task ≤ 2"),
        ({"floor": {"a": 1}}, "least cost with mean reward of a ≥ 1"),
        ({"floor": {"a": 1, "b": 2}}, "least cost with mean reward of a ≥ 1 and b ≥ 2"),
        ({"floor": dict.fromkeys("abcde", 1)}, "least cost with mean reward of a ≥ 1, b ≥ 1, c ≥ 1 and 2 more kinds"),
        ({"floor": {"a\x1b": 1}}, "least cost with mean reward of a\\x1b ≥ 1"),
    ],
)
def test_a_goal_is_said_in_words(said: dict[str, Any], words: str) -> None:
    assert goal_of(**said).words() == words


def test_the_words_have_the_units() -> None:
    goal = goal_of("ratio", floor=0.8, budget=0.05)
    words = "best ratio with mean reward ≥ 0.8 AUC and mean cost per task ≤ 0.05 USD"
    assert goal.words("AUC", "USD") == words


def test_a_goal_knows_whether_there_is_anything_to_keep() -> None:
    assert not goal_of().constrained
    assert goal_of(floor=0.0).constrained
    assert goal_of(budget=1.0).constrained
    assert (goal_of(floor={"x": 1}).total_floor, goal_of(floor=1).floors) == (None, {})
