"""States: stored to the bit, grown into a corner, frozen for real."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from worthwhile import state as states
from worthwhile.learning import Arms, new_arms, new_moments, record, record_moments
from worthwhile.state import Size

anything = st.floats(allow_nan=True, allow_infinity=True)  # a stored state keeps even these bits


class State(NamedTuple):
    arms: Arms
    tasks: np.ndarray
    known: np.ndarray


class Keeper(NamedTuple):
    """Knows how to make a state, nothing else."""

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(1, np.int64), np.zeros(kinds, np.uint32))


@st.composite
def filled(draw: st.DrawFn) -> tuple[State, Size]:
    """A state of any size with anything in it."""
    size = Size(draw(st.integers(1, 4)), draw(st.integers(1, 5)))
    arms = Arms(*(draw(arrays_of.arrays(np.float64, tuple(size), elements=anything)) for _ in Arms._fields))
    tasks = draw(arrays_of.arrays(np.int64, 1))
    return State(arms, tasks, draw(arrays_of.arrays(np.uint32, size.kinds))), size


@given(filled())
def test_storage_keeps_every_bit(made: tuple[State, Size]) -> None:
    state, size = made
    restored = states.from_bytes(Keeper(), states.to_bytes(state), size)
    assert states.same(state, restored)
    assert isinstance(restored.arms, Arms)


@given(filled(), st.integers(0, 3), st.integers(0, 3))
def test_growing_keeps_the_old_corner_and_starts_the_rest_afresh(
    made: tuple[State, Size], kinds: int, options: int
) -> None:
    state, size = made
    larger = Size(size.kinds + kinds, size.options + options)
    grown = states.grow(Keeper(), state, *larger)
    fresh = Keeper().init(*larger)
    for (_, new), (_, old), (_, empty) in zip(
        states.arrays(grown), states.arrays(state), states.arrays(fresh), strict=True
    ):
        corner = tuple(slice(0, length) for length in old.shape)
        assert new[corner].tobytes() == old.tobytes()
        new[corner] = empty[corner]
        assert new.tobytes() == empty.tobytes()


def test_arrays_are_named_by_their_path() -> None:
    names = [name for name, _ in states.arrays(Keeper().init(2, 3))]
    assert names == ["arms.pulls", "arms.mean_reward", "arms.mean_cost", "tasks", "known"]


def test_a_frozen_state_refuses_every_write() -> None:
    state = states.freeze(Keeper().init(2, 3))
    for _, array in states.arrays(state):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_states_differ_by_a_single_bit_or_a_type() -> None:
    one, other = Keeper().init(2, 3), Keeper().init(2, 3)
    assert states.same(one, other)
    other.arms.mean_cost[1, 2] = -0.0
    assert not states.same(one, other)
    assert not states.same(one, one._replace(tasks=np.zeros(1)))


observations = st.lists(st.tuples(st.floats(-100.0, 100.0), st.floats(0.01, 100.0)), min_size=1, max_size=40)


@given(observations)
def test_running_moments_are_those_of_the_whole_sample(pairs: list[tuple[float, float]]) -> None:
    arms, moments = new_arms(2, 2), new_moments(2, 2)
    for reward, cost in pairs:
        record(arms, 1, 0, reward, cost)
        record_moments(moments, 1, 0, reward, cost)
    rewards, costs = np.array(pairs).T
    for found in (arms, moments):
        assert found.pulls[1, 0] == len(pairs)
        assert found.mean_reward[1, 0] == pytest.approx(rewards.mean(), abs=1e-9)
        assert found.mean_cost[1, 0] == pytest.approx(costs.mean(), abs=1e-9)
        assert found.pulls.sum() == len(pairs)
    centred = rewards - rewards.mean(), costs - costs.mean()
    assert moments.reward_squares[1, 0] == pytest.approx((centred[0] ** 2).sum(), abs=1e-6)
    assert moments.cost_squares[1, 0] == pytest.approx((centred[1] ** 2).sum(), abs=1e-6)
    assert moments.products[1, 0] == pytest.approx((centred[0] * centred[1]).sum(), abs=1e-6)
