"""The simulator: the same world for every policy, the same bytes for every number of threads."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from waiting import NET
from worthwhile import simulate
from worthwhile.decision import Decision
from worthwhile.errors import BadParameter, BrokenRule
from worthwhile.policies.base import known
from worthwhile.policies.fixed import RandomOption
from worthwhile.policies.registry import make
from worthwhile.problem import seven_kinds, two_kinds
from worthwhile.rng import Rng
from worthwhile.simulation.environments import drifting
from worthwhile.simulation.runs import BLOCK


def test_the_same_policy_under_two_labels_gets_the_same_curves() -> None:
    result = simulate(seven_kinds(), {"one": "ratio-ts", "other": "ratio-ts"}, 3000, 3, seed=1)
    assert result.curves[:, 0].tobytes() == result.curves[:, 1].tobytes()


def test_a_policys_curve_does_not_depend_on_its_company() -> None:
    alone = simulate(seven_kinds(), ["ratio-imed"], 3000, 3, seed=1, delay=(0, 9))
    company = simulate(seven_kinds(), ["bts", "ratio-imed", "dol-rm"], 3000, 3, seed=1, delay=(0, 9))
    assert alone.curves[:, 0].tobytes() == company.curves[:, 1].tobytes()


def test_all_policies_meet_the_same_tasks() -> None:
    result = simulate(two_kinds(), ["optimum", "fixed-option,option=a2"], 1000, 3, seed=1)
    assert np.array_equal(result.measure("reward")[:, 0], result.measure("reward")[:, 1])  # they decide alike


def test_a_run_does_not_depend_on_the_number_of_runs_or_threads() -> None:
    one, two, more = (
        simulate(seven_kinds(), ["dol-rm", "ratio-ts"], 2000, runs, seed=9, threads=threads, delay=4)
        for runs, threads in ((4, 1), (4, 2), (7, 3))
    )
    assert one.curves.tobytes() == two.curves.tobytes() == more.curves[:4].tobytes()


def test_another_seed_is_another_world_and_runs_differ() -> None:
    one, other = (simulate(seven_kinds(), ["dol-rm"], 500, 2, seed=seed) for seed in (1, 2))
    assert one.measure("reward")[0, 0, -1] != other.measure("reward")[0, 0, -1]
    assert one.measure("reward")[0, 0, -1] != one.measure("reward")[1, 0, -1]


def test_marks_are_log_spaced_or_as_given() -> None:
    marks = simulate(two_kinds(), ["optimum"], 1000, 1).marks
    assert marks[[0, -1]].tolist() == [1, 1000]
    assert np.diff(marks).min() >= 1
    assert 20 < len(marks) <= 31
    given = simulate(two_kinds(), ["optimum"], 1000, 1, marks=[7, 300, 7])
    assert given.marks.tolist() == [7, 300, 1000]
    with pytest.raises(BadParameter, match="marks from 0 to 1000"):
        simulate(two_kinds(), ["optimum"], 1000, 1, marks=[0])


def test_totals_at_a_mark_do_not_depend_on_the_other_marks() -> None:
    few, many = (
        simulate(seven_kinds(), ["dol-rm"], 1000, 2, marks=marks).measure("cost") for marks in ([500], range(1, 1001))
    )
    assert np.allclose(few[:, 0, 0], many[:, 0, 499], rtol=1e-12)
    assert np.allclose(few[:, 0, -1], many[:, 0, -1], rtol=1e-12)


@pytest.mark.parametrize("marks", [[BLOCK - 1, BLOCK, BLOCK + 1], [1]])
def test_runs_cross_block_and_stage_boundaries(marks: list[int]) -> None:
    tasks = 2 * BLOCK + 100
    world = drifting([(0, two_kinds(0.8)), (BLOCK + 50, two_kinds(0.6))])
    result = simulate(world, ["fixed-option,option=a2", "optimum"], tasks, 2, marks=marks)
    assert result.marks.tolist() == sorted([*marks, tasks])
    costs = result.measure("expected_cost")[:, 0]
    assert np.allclose(costs, np.broadcast_to(result.marks, costs.shape))  # every decision costs 1: none is lost
    assert np.isfinite(result.measure("reward")).all()


def test_totals_are_sums_over_the_tasks() -> None:
    result = simulate(two_kinds(0.8), ["fixed-option,option=a2", "fixed-option,option=a1"], 4000, 4, seed=3)
    frugal, dear = (result.measure("regret")[:, place, -1] for place in (0, 1))
    assert frugal.tolist() == pytest.approx([0.0] * 4, abs=1e-9)
    second_kind = result.measure("expected_cost")[:, 1, -1] - 4000  # a1 costs the second kind one more
    assert np.allclose(dear, 0.6 * second_kind)
    assert np.allclose(result.measure("expected_reward")[:, 0, -1], 3 * 4000 - 2 * second_kind)
    noise = result.measure("reward")[:, 0, -1] - result.measure("expected_reward")[:, 0, -1]
    assert 0.0 < np.abs(noise).max() < 5 * np.sqrt(4000)


def test_the_price_is_that_of_the_policy_and_missing_where_it_has_none() -> None:
    result = simulate(two_kinds(0.8), ["optimum", "dol-rm", "ratio-imed", "reward-ts"], 500, 1)
    price = result.measure("price")[0]
    assert np.allclose(price[0], 2.6)
    assert ((price[1] >= 0.5) & (price[1] <= 3.0)).all()
    assert np.isfinite(price[2]).all()
    assert np.isnan(price[3]).all()


class Nothing(NamedTuple):
    tasks: np.ndarray


class Plain(NamedTuple):
    """Takes the first option; `do` is called with every task before that."""

    do: Any

    def init(self, kinds: int, options: int) -> Nothing:
        return Nothing(np.zeros(1))

    def choose(self, state: Nothing, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
        self.do(rng)
        return Decision(options[0], 0.0, 0.0)

    def judge(self, state: Nothing, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 0.0)

    def learn(self, state: Nothing, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        pass

    def observe(self, state: Nothing, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


def test_ctrl_c_keeps_the_finished_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, heard, runs = [], threading.Event(), 100_000  # type: list[int], threading.Event, int

    def interrupt_in_the_third_run(rng: Rng) -> None:
        if rng.seed_key not in keys:
            keys.append(rng.seed_key)
            if len(keys) == 3:
                os.kill(os.getpid(), signal.SIGINT)
                assert heard.wait(NET)

    def hear(*_: object) -> None:
        heard.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        result = simulate(
            two_kinds(), {"plain": Plain(interrupt_in_the_third_run)}, 200, runs, threads=1, engine="python"
        )
    finally:
        signal.signal(signal.SIGINT, before)
    count = len(result.runs)
    whole = simulate(two_kinds(), {"plain": Plain(lambda rng: None)}, 200, count, threads=1, engine="python")
    assert result.interrupted
    assert not whole.interrupted
    assert 2 <= count < runs
    assert result.runs.tolist() == list(range(count))
    assert result.provenance["finished_runs"] == count
    assert result.curves.tobytes() == whole.curves[:count].tobytes()


def test_an_error_in_a_policy_reaches_the_caller() -> None:
    def fail(rng: Rng) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(BrokenRule, match=r"Plain raised ZeroDivisionError: mine \(.*test_simulator.py, line \d+\)"):
        simulate(two_kinds(), {"plain": Plain(fail)}, 200, 20, engine="python")


class Stubborn(Plain):
    """Takes an option that the first kind does not offer."""

    def choose(self, state: Nothing, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
        return Decision(1, 0.0, 0.0)


def test_an_option_that_is_not_on_offer_is_refused() -> None:
    with pytest.raises(BrokenRule, match="Stubborn chose an option that is not on offer"):
        simulate(two_kinds(), {"stubborn": Stubborn(None)}, 100, 1, engine="python")


def test_policies_by_name_are_told_the_truth_and_instances_are_taken_as_they_are() -> None:
    by_name = simulate(two_kinds(), ["dol-rm"], 1000, 1)
    given = simulate(two_kinds(), {"mine": make("dol-rm", known(two_kinds(), 1000))}, 1000, 1)
    assert by_name.curves.tobytes() == given.curves.tobytes()
    assert by_name.policies == ("dol-rm",)
    assert given.policies == ("mine",)


class Counting(RandomOption):
    """Counts how often a run of it is set up."""

    started: ClassVar[list[int]] = []

    def init(self, kinds: int, options: int) -> Any:
        self.started.append(kinds)
        return super().init(kinds, options)


def test_the_interpreted_engine_sets_nothing_up_but_its_runs() -> None:
    simulate(two_kinds(), {"counting": Counting()}, tasks=5, runs=3, engine="python")
    assert Counting.started == [2, 2, 2]
