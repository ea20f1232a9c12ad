"""The fold of the log: what each entry does to the totals and to the policy, and what it does about bad ones."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from worthwhile import state as states
from worthwhile.decision import Decision
from worthwhile.live.fold import MOST_NAMED, ROOM, Fold, SetAside, fault
from worthwhile.live.stores.base import OWN, LogRow
from worthwhile.policies.dol_rm import DolRm
from worthwhile.policies.fixed import FixedOption
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.ucb import RewardUcb

NUMBER, SEED_KEY = 3, 99  # of the policy; of the draws
POLICY = DolRm(horizon=100, reward_max=5.0, cost_min=0.5, price_min=0.25, price_max=9.0)  # η = 1/(½·10) = 1/5


def new_fold(policy: Any = POLICY, kinds: int = 2, options: int = 3) -> Fold:
    fold = Fold(policy, NUMBER, SEED_KEY, "python")
    fold.fit(kinds, options)
    return fold


def entry(number: int, **fields: Any) -> LogRow:
    """A report of kind 1, option 2, by this policy, unless told otherwise."""
    given = LogRow(number, 10 * number, OWN, 1, 2, 2.0, 1.5, 0.5, 3.0, 1.0, NUMBER)
    return given._replace(**fields)


def learned(fold: Fold) -> list[float | None]:
    """Pulls, means and price of what `entry` reports."""
    return [*(float(array[1, 2]) for array in fold.state.learned.arms[:3]), fold.price]


def counted(fold: Fold) -> list[float]:
    return [float(array[1, 2]) for array in fold.state.totals[:4]]


def test_a_fold_starts_empty_with_room_to_grow() -> None:
    fold = Fold(POLICY, NUMBER, SEED_KEY, "python")
    assert (fold.position, fold.bad, fold.set_aside, fold.kinds, fold.options) == (0, 0, [], 0, 0)
    assert fold.size == ROOM == (8, 8, 0)
    assert fold.state.totals.pulls.shape == fold.state.learned.arms.pulls.shape == (8, 8)
    assert fold.price == 0.25
    assert Fold(RewardUcb(100), NUMBER, SEED_KEY, "python").price is None


def test_a_report_is_learned_with_its_overhead_and_the_estimates_it_was_decided_for() -> None:
    fold = new_fold()
    fold.take([entry(1), entry(2, reward=4.0, overhead=0.0)])
    first = 0.25 + 0.2 * (3.0 - 0.25 * 1.0)  # the row's estimates, Eq. (8)
    assert learned(fold) == pytest.approx([2.0, 3.0, 1.75, first + 0.2 * (3.0 - first)], rel=1e-14)
    assert counted(fold) == [2.0, 6.0, 3.5, 0.0]
    assert (fold.position, fold.bad) == (2, 0)


def test_another_policys_report_is_judged_anew() -> None:
    fold = new_fold()
    fold.take([entry(1, policy=NUMBER + 1)])
    assert learned(fold) == pytest.approx([1.0, 2.0, 2.0, 0.25 + 0.2 * (5.0 - 0.25 * 0.5)], rel=1e-14)  # r_max, c_min
    fold.take([entry(2, policy=0, reward_estimate=0.0, cost_estimate=0.0)])
    judged = POLICY.judge(new_fold_after_one().state.learned, 1, 2)
    price = 0.25 + 0.2 * (5.0 - 0.25 * 0.5)
    price += 0.2 * (judged.reward_estimate - price * judged.cost_estimate)
    assert fold.price == pytest.approx(price, rel=1e-14)
    assert counted(fold) == [2.0, 4.0, 4.0, 0.0]


def new_fold_after_one() -> Fold:
    fold = new_fold()
    fold.take([entry(1)])
    return fold


@pytest.mark.parametrize("observed", [0, 2])
def test_a_side_observation_moves_the_means_and_is_counted_apart(observed: int) -> None:
    fold = new_fold()
    fold.take([entry(1, observed=observed)])
    assert learned(fold) == [1.0, 2.0, 2.0, 0.25]
    assert counted(fold) == [0.0, 0.0, 0.0, 1.0]
    assert fold.position == 1


def test_the_policy_is_given_the_tasks_own_draws() -> None:
    seen: list[Any] = []

    class Noting(FixedOption):
        def learn(self, state: Any, kind: int, made: Decision, reward: float, cost: float, rng: Any) -> None:
            seen.append((kind, tuple(made), reward, cost, tuple(rng)))

        def observe(self, state: Any, kind: int, option: int, reward: float, cost: float, rng: Any) -> None:
            seen.append((kind, option, reward, cost, tuple(rng)))

    fold = new_fold(Noting())
    seen.clear()  # the engine has tried it
    fold.take([entry(1), entry(2, observed=2)])
    assert seen == [(1, (2, 3.0, 1.0), 2.0, 2.0, (SEED_KEY, 10)), (1, 2, 2.0, 2.0, (SEED_KEY, 20))]


def test_missing_entries_are_named_and_passed_over() -> None:
    fold = new_fold()
    fold.take([entry(1), entry(5), entry(6)])
    assert fold.position == 6
    assert fold.bad == 1
    assert fold.set_aside == [SetAside(2, "entries 2 to 4 are missing from the log")]
    assert counted(fold)[0] == 3.0
    other = new_fold()
    other.take([entry(3)])
    assert other.set_aside == [SetAside(1, "entries 1 to 2 are missing from the log")]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": 2}, "task 10: no kind has the number 2"),
        ({"kind": -1}, "task 10: no kind has the number -1"),
        ({"kind": 1.0}, "task 10: no kind has the number 1.0"),
        ({"option": 3}, "task 10: no option has the number 3"),
        ({"option": None}, "task 10: no option has the number None"),
        ({"reward": math.nan}, "task 10: reward = nan is not a finite number"),
        ({"reward": 2}, "task 10: reward = 2 is not a finite number"),
        ({"cost": math.inf}, "task 10: cost = inf is not a finite number"),
        ({"overhead": "0"}, "task 10: overhead = '0' is not a finite number"),
        ({"reward_estimate": None}, "task 10: reward_estimate = None is not a finite number"),
        ({"cost_estimate": -math.inf}, "task 10: cost_estimate = -inf is not a finite number"),
        ({"cost": 0.0}, "task 10: cost = 0.0 with overhead 0.5 is not above 0"),
        ({"cost": -1.0}, "task 10: cost = -1.0 with overhead 0.5 is not above 0"),
        ({"overhead": -0.25}, "task 10: cost = 1.5 with overhead -0.25 is not above 0"),
    ],
)
def test_an_entry_that_cannot_be_learned_from_is_set_aside(fields: dict[str, Any], why: str) -> None:
    assert fault(entry(1, **fields), 2, 3) == why
    fold = new_fold()
    fold.take([entry(1, **fields), entry(2)])
    assert fold.set_aside == [SetAside(1, why)]
    assert (fold.position, fold.bad) == (2, 1)
    assert counted(fold) == [1.0, 2.0, 2.0, 0.0]


@pytest.mark.parametrize("fields", [{}, {"kind": 0, "option": 0}, {"cost": 1e-300, "overhead": 0.0}, {"reward": -5.0}])
def test_a_sound_entry_has_no_fault(fields: dict[str, Any]) -> None:
    assert fault(entry(1, **fields), 2, 3) == ""


def test_what_a_policy_raises_sets_its_entry_aside() -> None:
    class Stumbling(FixedOption):
        def learn(self, state: Any, kind: int, made: Decision, reward: float, cost: float, rng: Any) -> None:
            if reward > 5.0:
                raise ZeroDivisionError("too good")

    fold = new_fold(Stumbling())
    fold.take([entry(1), entry(2, reward=6.0), entry(3)])
    assert fold.set_aside == [SetAside(2, "Stumbling raised ZeroDivisionError: too good")]
    assert (fold.position, fold.bad) == (3, 1)
    assert counted(fold)[0] == 2.0


def test_so_many_bad_entries_are_named_and_all_are_counted() -> None:
    fold = new_fold()
    fold.take([entry(number, cost=-1.0) for number in range(1, MOST_NAMED + 6)])
    assert MOST_NAMED == 100
    assert (fold.bad, len(fold.set_aside), fold.set_aside[-1].number) == (105, 100, 100)


def test_room_doubles_until_all_find_a_place_and_nothing_is_forgotten() -> None:
    fold = new_fold_after_one()
    rooms = {needed: fold.room_for(needed, 1) for needed in (0, 8, 9, 16, 17, 100)}
    assert rooms == {0: (8, 8, 0), 8: (8, 8, 0), 9: (16, 8, 0), 16: (16, 8, 0), 17: (32, 8, 0), 100: (128, 8, 0)}
    assert fold.room_for(1, 9) == (8, 16, 0)
    before = fold.state
    fold.fit(8, 8)
    assert fold.state is before
    assert (fold.kinds, fold.options) == (8, 8)
    fold.fit(9, 4)
    assert fold.size[:2] == (16, 8)
    assert (fold.kinds, fold.options) == (9, 4)
    fold.fit(9, 33)
    assert fold.size == fold.room_for(9, 33) == fold.room_for(1, 1) == (16, 64, 0)  # it never shrinks
    assert fold.state.totals.pulls.shape == fold.state.learned.arms.pulls.shape == (16, 64)
    fold.take([entry(2)])
    assert counted(fold) == [2.0, 4.0, 4.0, 0.0]
    assert learned(fold)[:3] == [2.0, 2.0, 2.0]
    assert fold.price == fold.state.learned.price[0] != 0.25


def test_a_snapshot_holds_everything_and_a_fold_goes_on_from_it() -> None:
    fold = new_fold(RatioImed(), kinds=9)
    fold.take([entry(1), entry(2, cost=-1.0), entry(4), entry(5, option=0, reward=1.0)])
    stored = fold.snapshot()
    assert (stored.number, stored.policy, stored.kinds, stored.options) == (5, NUMBER, 16, 8)
    why = "task 20: cost = -1.0 with overhead 0.5 is not above 0"
    assert json.loads(stored.set_aside) == [2, [[2, why], [3, "entries 3 to 3 are missing from the log"]]]
    again = new_fold(RatioImed())
    again.restore(stored)
    assert (again.position, again.bad, again.size) == (5, 2, (16, 8, 0))
    assert again.set_aside == fold.set_aside
    assert isinstance(again.set_aside[0], SetAside)
    assert again.price == fold.price
    assert again.same_as(fold)
    for each in (fold, again):
        each.fit(9, 3)
        each.take([entry(6, kind=8, reward=0.5), entry(7)])
    assert again.same_as(fold)
    assert states.same(again.state, fold.state)
    assert again.price == fold.price


def test_a_damaged_snapshot_changes_nothing() -> None:
    fold, other = new_fold_after_one(), new_fold_after_one()
    sound = new_fold().snapshot()
    for damaged, complaint in (
        (sound._replace(parts=[b"no"]), "the bytes end in the middle of totals.pulls"),
        (sound._replace(parts=[*sound.parts, b"more"]), "there are more bytes than the state has"),
        (
            sound._replace(parts=[b"".join(sound.parts)[:8] + b"\1" + b"".join(sound.parts)[9:]]),
            "its checksum does not fit",
        ),
        (sound._replace(set_aside="[1]"), "its checksum does not fit"),
        (sound._replace(number=2), "its checksum does not fit"),
        (sound._replace(kinds=3), "its checksum does not fit"),
        (sound._replace(kinds=0), "it has 0 kinds, 8 options and 0 features"),
        (sound._replace(kinds=1 << 60), "kinds, 8 options and 0 features"),
    ):
        with pytest.raises(ValueError, match=complaint):
            fold.restore(damaged)
        assert fold.same_as(other)
        assert (fold.position, fold.bad, fold.size) == (1, 0, (8, 8, 0))


def test_a_copy_is_left_alone_by_what_comes() -> None:
    fold = new_fold_after_one()
    fold.take([entry(2, cost=-1.0)])
    twin = fold.copy()
    assert twin.same_as(fold)
    fold.take([entry(3), entry(4, cost=-1.0)])
    assert (twin.position, twin.bad, len(twin.set_aside)) == (2, 1, 1)
    assert counted(twin) == [1.0, 2.0, 2.0, 0.0]
    assert learned(twin)[0] == 1.0
    assert not twin.same_as(fold)


def test_folds_are_the_same_by_their_bits_whatever_room_they_have() -> None:
    fold, larger, other = new_fold_after_one(), new_fold(kinds=20, options=9), new_fold()
    larger.take([entry(1)])
    assert fold.same_as(larger)
    assert larger.same_as(fold)
    other.take([entry(1, reward=np.nextafter(2.0, 3.0).item())])
    assert not fold.same_as(other)
    worse = new_fold_after_one()
    worse.take([entry(2, cost=-1.0)])
    assert not fold.same_as(worse)
