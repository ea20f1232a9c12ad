"""Options that fail in kind after kind: they wait in all of them, and come back once they work."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from test_shared_decisions import Player

from worthwhile import Noise, Problem, Scheduler, simulate
from worthwhile.policies.registry import DEFAULT

KINDS, TASKS, BROKEN = 50, 5000, 2
REWARD = 0.5, 0.6, 0.9  # the option that may be broken would be the best
Fails = Callable[[int, int], bool]  # of a kind and an option


def everywhere(kind: int, option: int) -> bool:
    return option == BROKEN


def tasks_of(seed: int, count: int = TASKS) -> list[int]:
    kinds: list[int] = np.random.default_rng(seed).integers(0, KINDS, count).tolist()
    return kinds


def play(player: Player, kinds: list[int], fails: Fails) -> list[tuple[int, int]]:
    """What failed: the number of the task, from 0, and its kind."""
    failed = []
    for number, kind in enumerate(kinds):
        option = player.choose(kind, range(3))
        if fails(kind, option):
            failed.append((number, kind))
            player.fail(kind, 0.5)
        else:
            player.report(kind, REWARD[option], 1.0)
    return failed


def pulls(player: Player, kind: int) -> float:
    return float(player.learned.arms.pulls[kind, BROKEN])


def test_an_option_that_is_broken_in_all_of_fifty_kinds_fails_a_handful_of_times_with_waits_that_grow() -> None:
    """After its k-th failure it waits for 10 k² tasks: 10 (1 + 4 + … + 36) + 7 < 1 000 < 10 (1 + … + 49), and
    10 (1 + … + 100) + 11 < 5 000 < 10 (1 + … + 121), so that it fails 7 and 11 times."""
    failed = play(Player(KINDS, 3), tasks_of(0), everywhere)
    numbers = [number for number, _ in failed]
    assert len({kind for _, kind in failed}) == len(failed) <= 15
    assert (sum(number < 1000 for number in numbers), len(numbers)) == (7, 11)
    waits = np.diff(numbers).tolist()
    expected = [10 * failures**2 + 1 for failures in range(1, 1 + len(waits))]
    assert all(
        least <= wait <= least + 3 for wait, least in zip(waits, expected, strict=True)
    )  # for a kind that is due


def test_it_fails_as_seldom_live() -> None:
    kinds, failed = tasks_of(1), 0
    with Scheduler(seed=3) as scheduler:
        scheduler.announce([f"kind {kind}" for kind in range(KINDS)], [0, 1, 2])
        for kind in kinds:
            task = scheduler.decide(f"kind {kind}", [0, 1, 2])
            if task.option == BROKEN:
                task.fail(0.5)
                failed += 1
            else:
                task.report(REWARD[int(task.option or 0)], 1.0)
        assert 1 <= failed <= 15
        benched = [kind for kind in range(KINDS) if scheduler.decide(f"kind {kind}", [0, 1, 2]).option == BROKEN]
        assert benched == []
        scheduler.restore(BROKEN)
        assert scheduler.decide("kind 7", [0, 1, 2]).option == BROKEN
        assert scheduler.rebuild()


@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=pytest.mark.slow)])
def test_it_fails_as_seldom_in_simulations(engine: str) -> None:
    rate = np.tile([0.0, 0.0, 1.0], (KINDS, 1))
    names = tuple(f"kind {kind}" for kind in range(KINDS)), ("a", "b", "c")
    means = np.tile(REWARD, (KINDS, 1)), np.ones((KINDS, 3))
    silent = {"reward_noise": Noise(sd=0.0), "cost_noise": Noise(sd=0.0)}
    failing = {"failure_rate": rate, "failure_cost": np.full((KINDS, 3), 1000.0)}
    problem = Problem("broken", *names, np.full(KINDS, 1 / KINDS), *means, **silent, **failing)
    cost = simulate(problem, [DEFAULT], TASKS, 3, marks=[], engine=engine).measure("cost")[:, 0, -1]
    failed = (cost - TASKS) / 999.0
    assert ((failed >= 1.0) & (failed <= 15.0)).all()


def test_once_it_works_everywhere_it_is_found_within_the_time_that_it_was_broken() -> None:
    player, first = Player(KINDS, 3), tasks_of(2)
    play(player, first, everywhere)
    assert play(player, tasks_of(3, TASKS + 200), lambda kind, option: False) == []
    taken = [player.choose(kind, range(3)) for kind in range(KINDS)]
    assert taken.count(BROKEN) > 40


def test_once_it_works_in_one_kind_it_is_found_when_tasks_of_that_kind_come() -> None:
    player = Player(KINDS, 3)
    play(player, tasks_of(2), everywhere)
    play(player, [7] * (TASKS + 200), lambda kind, option: option == BROKEN and kind != 7)
    assert pulls(player, 7) > 10.0
    assert play(player, [7] * 100, everywhere) != []  # it is in use


@pytest.mark.parametrize("kind", [0, 7, 49])
def test_forgiven_in_a_kind_it_is_tried_there_at_once(kind: int) -> None:
    player = Player(KINDS, 3)
    play(player, tasks_of(2), everywhere)
    assert player.choose(kind, range(3)) != BROKEN
    player.methods.seldom.forgive(kind, BROKEN)
    assert player.choose(kind, range(3)) == BROKEN
    player.report(kind, REWARD[BROKEN], 1.0)
    assert [player.choose(kind, range(3)) for _ in range(3)] == [BROKEN] * 3


def test_forgiven_but_still_broken_it_soon_waits_everywhere_again() -> None:
    player = Player(KINDS, 3)
    play(player, tasks_of(2), everywhere)
    player.methods.seldom.forgive(7, BROKEN)
    assert len(play(player, tasks_of(3), everywhere)) <= 20


def test_an_option_that_works_in_the_first_kind_is_used_there_and_fails_in_others_no_more_than_each_kind_allows() -> (
    None
):
    player = Player(KINDS, 3)
    play(player, [0] * 20, lambda kind, option: False)
    kinds = tasks_of(4)
    failed = play(player, kinds, lambda kind, option: option == BROKEN and kind > 0)
    per_kind = np.bincount([kind for _, kind in failed], minlength=KINDS)
    own = [1 + sum(wait <= kinds.count(kind) for wait in (11, 40, 93, 174)) for kind in range(KINDS)]
    assert per_kind[0] == 0
    assert (per_kind <= own).all()
    assert pulls(player, 0) > 0.9 * kinds.count(0)


def test_the_more_kinds_it_failed_in_the_later_a_kind_tries_an_option_that_works_somewhere() -> None:
    """Trust is 0, as nothing was foretold: it is tried once its rival has ln m > ln ½ + ln(1 + failures/(works + 1)),
    which is m > (1 + failures/2)/2: it works in one kind."""
    for broken in (0, 5, 20, 28):
        player = Player(30, 2)
        for _ in range(3):
            for option, reward in ((0, 0.5), (1, 1.0)):
                player.choose(29, [option])
                player.report(29, reward, 1.0)
        for kind in range(broken):
            player.choose(kind, [1])
            player.fail(kind, 1.0)
        player.choose(28, [0])
        player.report(28, 0.5, 1.0)
        before = 1
        while player.choose(28, [0, 1]) == 0:
            player.report(28, 0.5, 1.0)
            before += 1
        assert before == math.floor((1 + broken / 2) / 2) + 1


def test_where_nothing_works_yet_no_option_waits_for_other_kinds() -> None:
    player = Player(3, 2)
    for kind in (0, 1, 2):
        assert player.choose(kind, [0]) == 0
        player.fail(kind, 1.0)
    assert not player.learned.failures.anywhere.next_try.any()
    assert player.choose(0, [0, 1]) == 1


def test_one_failure_in_one_kind_makes_a_new_option_wait_for_ten_reports_in_the_others() -> None:
    player = Player(3, 2)
    player.choose(0, [0])
    player.report(0, 1.0, 1.0)
    assert player.choose(0, [0, 1]) == 1
    player.fail(0, 1.0)
    tries = []
    for _ in range(11):
        tries.append(player.choose(1, [0, 1]))
        player.report(1, 1.0, 1.0)
    assert tries == [0] * 10 + [1]


def failed_in(kinds: int) -> Player:
    """Option 0 works in all of five kinds, and option 1 has failed once in each of the first `kinds`."""
    player = Player(5, 2)
    for kind in range(5):
        player.choose(kind, [0])
        player.report(kind, 1.0, 1.0)
    for kind in range(kinds):
        player.choose(kind, [1])
        player.fail(kind, 1.0)
    return player


@pytest.mark.parametrize("kinds", [1, 2])
def test_a_kind_that_was_not_alone_with_its_failure_waits_with_all_others(kinds: int) -> None:
    player = failed_in(kinds)
    player.learned.failures.anywhere.next_try[1] = 1e6
    player.learned.failures.reports[0] += 100.0  # its own wait is over
    assert player.choose(0, [0, 1]) == (1 if kinds == 1 else 0)


def test_failures_are_counted_once_a_kind_and_waits_grow_only_for_what_has_never_worked() -> None:
    player = failed_in(3)
    anywhere = player.learned.failures.anywhere
    for _ in range(4):
        player.choose(1, [1])
        player.fail(1, 1.0)
    assert anywhere.kinds.tolist() == [0.0, 3.0]
    assert anywhere.next_try[1] == 16.0  # five reports, the first failure, and ten more
    assert anywhere.tries[1] == 1.0  # the others failed before the wait was over: they may have been running already
    player.choose(4, [1])
    player.report(4, 1.0, 1.0)
    anywhere.next_try[1] = 0.0
    player.choose(3, [1])
    player.fail(3, 1.0)
    assert (anywhere.kinds[1], anywhere.tries[1], anywhere.next_try[1]) == (4.0, 1.0, 0.0)


def test_an_option_that_works_and_fails_in_its_own_kind_is_no_failure_of_a_new_kind() -> None:
    player = failed_in(0)
    player.choose(2, [0])
    player.fail(2, 1.0)
    assert player.learned.failures.anywhere.kinds.tolist() == [0.0, 0.0]


def test_an_option_that_works_in_one_of_ten_kinds_only_is_found_there() -> None:
    for seed in range(5):
        player, kinds = Player(10, 3), np.random.default_rng(seed).integers(0, 10, TASKS).tolist()
        play(player, kinds, lambda kind, option: option == BROKEN and kind != 9)
        assert pulls(player, 9) > 0.0
