"""What the default does with features, report by report; see test_forest.py for the formulas below it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile import state as states
from worthwhile.decision import Decision
from worthwhile.live.engines import Engine, Interpreted, engine_of, offer_of
from worthwhile.live.totals import Folded, new_totals, no_features
from worthwhile.policies import forest as forests
from worthwhile.policies import growing, imed
from worthwhile.policies.features import MISSING, feature_number
from worthwhile.policies.forest import TREES
from worthwhile.policies.imed import RatioImed
from worthwhile.rng import Rng

SEED_KEY = 77
ROOM = 8


class Task(NamedTuple):
    """A task, and what each option makes of it, as a rule three; no reward is a failure."""

    kind: int
    features: Any
    rewards: Sequence[float]
    costs: Sequence[float]


def tasks(count: int, failing: float = 0.0, seed: int = 1) -> list[Task]:
    """Option 0 is good where feature 0 is below 0, option 1 elsewhere; 2 is in between, and costs more for the red."""
    luck, made = random.Random(seed), []
    for _ in range(count):
        x, colour = luck.uniform(-1.0, 1.0), luck.choice(["red", "blue"])
        features = np.full(ROOM, MISSING)
        features[:2] = x, feature_number(colour)
        if luck.random() < 0.3:
            features[2] = luck.random()
        means = (0.9, 0.2, 0.5) if x < 0.0 else (0.2, 0.9, 0.5)
        rewards = [mean + 0.2 * luck.random() if luck.random() >= failing else math.nan for mean in means]
        costs = [0.5 + luck.random() + (colour == "red") * (option == 2) for option in range(3)]
        made.append(Task(int(luck.random() * 2), features, rewards, costs))
    return made


class Run:
    """The default on some tasks, one after the other."""

    def __init__(self, policy: Any = None, engine: str = "python", features: int = ROOM, options: int = 3) -> None:
        self.policy = policy or RatioImed()
        self.folded = Folded(
            new_totals(2, options), states.empty(self.policy, 2, options, features), no_features(2, options)
        )
        self.engine: Engine = engine_of(engine, self.policy, SEED_KEY)
        self.engine.bind(self.folded)
        self.decided, self.number = list[Decision](), 0

    @property
    def state(self) -> Any:
        return self.folded.learned

    def play(self, these: Sequence[Task], looks: bool = True, learns: bool = True) -> Run:
        for task in these:
            self.number += 1
            told = task.features if looks else None
            made = Decision(
                *self.engine.choose(offer_of(task.kind, [*range(len(task.rewards))]), {}, self.number, told)
            )
            self.decided.append(made)
            if learns:
                self.report(task, made, self.number, told)
        return self

    def report(self, task: Task, made: Decision, number: int, told: Any) -> None:
        option = int(made.option)
        reward, cost = task.rewards[option], task.costs[option]
        if told is not None:
            self.engine.learn_features(task.kind, option, told, reward, cost, number)
        if math.isnan(reward):
            self.engine.seldom.fail(task.kind, option, *made[1:], cost, number)
        else:
            self.engine.learn(task.kind, option, *made[1:], reward, cost, number)

    @property
    def chosen(self) -> list[int]:
        return [int(made.option) for made in self.decided]


def right(these: Sequence[Task], chosen: Sequence[int]) -> float:
    """The share of tasks with the option that is best for them."""
    return sum(option == int(task.features[0] >= 0.0) for task, option in zip(these, chosen, strict=True)) / len(chosen)


def test_it_finds_out_what_features_say() -> None:
    these = tasks(500)
    looks, blind = Run().play(these), Run(features=0).play(these, looks=False)
    assert right(these[-150:], looks.chosen[-150:]) > 0.85
    assert right(these[-150:], blind.chosen[-150:]) < 0.6
    assert looks.state.forest.gates.importance.argmax() == 0


def test_it_needs_no_arrays_to_be_interpreted() -> None:
    """A policy that does more with arrays than index them is slower: it gets them as they are."""
    engine = Run().engine
    assert isinstance(engine, Interpreted)
    assert not engine.plain


def test_nothing_is_done_with_features_before_all_trees_are_there() -> None:
    these = tasks(120)
    looks, blind = Run(), Run(features=0)
    for task in these:
        if looks.state.forest.making.made[0] == TREES:
            break
        looks.play([task])
        blind.play([task], looks=False)
    assert 40 < looks.number < 100
    assert looks.decided == blind.decided
    assert states.same(looks.state[:-1][0], blind.state[:-1][0])


def test_without_features_it_is_the_same_to_the_bit_with_room_for_them_or_without() -> None:
    these = tasks(300, failing=0.2)
    with_room, without = Run().play(these, looks=False), Run(features=0).play(these, looks=False)
    assert with_room.decided == without.decided
    assert states.same(with_room.state, states.grow(RatioImed(), without.state, 2, 3, ROOM))
    assert states.same(with_room.state.forest, RatioImed().init(2, 3, ROOM).forest)


def test_decisions_change_nothing() -> None:
    """However many there are between two reports, and whether they are ever reported."""
    these = tasks(200)
    once, often = Run().play(these), Run()
    for task, made in zip(these, once.decided, strict=True):
        number = often.number
        often.play(these[number : number + 3], learns=False)
        often.number = number + 1
        often.report(task, made, often.number, task.features)
    assert states.same(once.folded, often.folded)
    assert once.state.forest.making.made[0] > TREES


def test_a_frozen_state_can_be_decided_on_at_any_time() -> None:
    run, policy = Run(), RatioImed()
    pending, options = np.zeros(3, np.uint32), np.arange(3, dtype=np.uint32)
    phases = set()
    for task in tasks(150):
        run.play([task])
        phases.add(int(run.state.forest.making.phase[0]))
        frozen = states.freeze(states.grow(policy, run.state, 2, 3, ROOM))
        made = policy.choose_by_features(frozen, task.kind, task.features, options, pending, Rng(SEED_KEY, run.number))
        assert np.isfinite(made[1:]).all()
    assert len(phases) > 1  # some in the middle of a tree


def test_a_failure_is_no_result_and_nothing_is_taken_off_it() -> None:
    run = Run().play(tasks(200))
    forest = run.state.forest
    task, seen = tasks(1, seed=9)[0], int(forest.rows.seen[0])
    taken_off = 0
    for option in range(3):
        run.engine.learn_features(task.kind, option, task.features, 0.5, 1.0, 201)
        taken_off += (forest.ahead_reward[0], forest.ahead_cost[0]) != (0.0, 1.0)
        run.engine.learn_features(task.kind, option, task.features, math.nan, 1.0, 201)
        assert (forest.ahead_reward[0], forest.ahead_cost[0]) == (0.0, 1.0)
        assert forest.rows.reward[forest.rows.youngest[option]] == 0.0
        run.engine.seldom.fail(task.kind, option, 0.0, 0.0, 1.0, 201)
        assert (forest.ahead_reward[0], forest.ahead_cost[0]) == (0.0, 1.0)
    assert taken_off > 0
    assert forest.rows.seen[0] == seen + 6


def test_what_is_taken_off_a_result_is_taken_off_once() -> None:
    run = Run().play(tasks(200))
    forest, taken_off = run.state.forest, 0
    for number, task in enumerate(tasks(6, seed=9), 201):
        for option in range(3):
            run.engine.learn_features(task.kind, option, task.features, 0.3, 1.0, number)
            off, times = float(forest.ahead_reward[0]), float(forest.ahead_cost[0])
            mean, pulls = run.state.arms.mean_reward[task.kind, option], run.state.arms.pulls[task.kind, option]
            cost = run.state.arms.mean_cost[task.kind, option]
            taken_off += off != 0.0
            if number % 2:
                run.engine.observe(task.kind, option, 0.3, 1.0, number)
            else:
                run.engine.learn(task.kind, option, 0.0, 0.0, 0.3, 1.0, number)
            assert (forest.ahead_reward[0], forest.ahead_cost[0]) == (0.0, 1.0)
            arm = task.kind, option
            assert run.state.arms.mean_reward[arm] == pytest.approx((pulls * mean + 0.3 - off) / (pulls + 1.0))
            assert run.state.arms.mean_cost[arm] == pytest.approx((pulls * cost + 1.0 / times) / (pulls + 1.0))
    assert taken_off > 5


def test_failures_are_learned_from_with_their_features() -> None:
    """Where x is below 0, option 1 fails: it is left to the rest, where it is best."""
    these = [
        task._replace(rewards=[0.5, math.nan if task.features[0] < 0.0 else 0.9, 0.4], costs=[1.0] * 3)
        for task in tasks(700)
    ]
    run = Run().play(these)
    failed = [math.isnan(task.rewards[option]) for task, option in zip(these, run.chosen, strict=True)]
    assert sum(failed[:200]) > 2 * sum(failed[-200:])
    assert right(these[-200:], run.chosen[-200:]) > 0.8


def works_for_some(count: int, share: float, seed: int, worth: float = 0.6) -> list[Task]:
    """Option 0 is best by far, for the share of tasks whose first feature is true, and fails for all others."""
    luck, made = random.Random(seed), []
    for _ in range(count):
        fits, features = luck.random() < share, np.full(ROOM, MISSING)
        features[:4] = float(fits), luck.random(), luck.random(), luck.random()
        rewards = [mean + 0.3 * (luck.random() - 0.5) for mean in (1.0, worth, worth - 0.1)]
        costs = [0.7 + 0.6 * luck.random() for _ in rewards]
        if not fits:
            rewards[0], costs[0] = math.nan, 0.5
        made.append(Task(0, features, rewards, costs))
    return made


def used(these: Sequence[Task], chosen: Sequence[int], fits: float) -> float:
    """The share of tasks with option 0, of those it fits, or of the others."""
    taken = [option == 0 for task, option in zip(these, chosen, strict=True) if task.features[0] == fits]
    return sum(taken) / len(taken)


@pytest.mark.parametrize("share", [0.2, pytest.param(0.1, marks=pytest.mark.long)])
def test_an_option_that_fails_for_most_tasks_is_used_where_it_works(share: float) -> None:
    """In three of four runs at least: it may take longer to find out."""
    found = 0
    for seed in range(1, 5):
        these = works_for_some(1500, share, seed)
        chosen = Run().play(these).chosen[-500:]
        found += used(these[-500:], chosen, 1.0) > 0.9
        assert used(these[-500:], chosen, 0.0) < 0.05
    assert found >= 3


def test_an_option_that_always_fails_is_hardly_tried_whatever_the_features() -> None:
    luck = random.Random(5)
    these = []
    for task in works_for_some(1000, 0.0, 5):
        task.features[:] = [float(luck.random() < 0.5) for _ in range(ROOM)]  # every task is unlike most others
        these.append(task)
    chosen = Run().play(these).chosen
    for count in (100, 300, 1000):
        assert chosen[:count].count(0) <= max(3, 0.05 * count)


def test_no_option_wins_by_failing_where_every_other_result_is_a_loss() -> None:
    """Kind 1 brings nothing and costs much: a cheap failure would be the smaller loss, but completes no task."""
    poor = [
        Task(1, task.features, [task.rewards[0], 0.01, 0.0], [task.costs[0], 2.0, 2.0])
        for task in works_for_some(800, 0.2, 6)
    ]
    rich = [task._replace(rewards=[0.0, 1.0, 0.9]) for task in works_for_some(800, 0.2, 7)]
    both = [task for pair in zip(poor, rich, strict=True) for task in pair]
    run = Run().play(both)
    assert used(poor[-400:], run.chosen[::2][-400:], 0.0) < 0.1
    assert used(poor[-400:], run.chosen[::2][-400:], 1.0) > 0.9


def test_weights_beyond_the_heaviest_change_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    these, policy, runs = tasks(450, failing=0.1), RatioImed(half_life=1.0), []
    for heaviest in (imed.HEAVIEST, 2.0**1000):
        monkeypatch.setattr(imed, "HEAVIEST", heaviest)
        runs.append(Run(policy).play(these))
    scaled, never = runs
    assert scaled.state.weight[0] < 2.0**100
    assert never.state.weight[0] > 2.0**400
    assert scaled.state.forest.making.made[0] > TREES
    assert scaled.chosen == never.chosen


def test_weights_that_are_scaled_down_change_nothing_to_the_bit() -> None:
    """By a power of 2, that is: by any other, the last bit may be another, and of two splits as good as equal, too."""
    these, policy = tasks(400, failing=0.1), RatioImed(half_life=30.0)
    scaled, never, scale = Run(policy).play(these[:250]), Run(policy).play(these), 2.0**-40
    state = scaled.state
    imed.scale_moments(state.arms, scale, imed.LIGHTEST)
    imed.scale_plug_in(state.plug_in, scale, imed.LIGHTEST)
    imed.scale_failures(state.failures, scale)
    imed.scale_forest(state.forest, scale)
    state.weight[0] *= scale
    scaled.play(these[250:])
    assert scaled.state.forest.gates.all_squares[0] > 0.0
    assert scaled.decided == never.decided
    imed.scale_forest(never.state.forest, scale)
    assert states.same(scaled.state.forest, never.state.forest)


@pytest.mark.parametrize("rows", [4096, 80])
def test_a_state_that_grows_while_a_tree_does_learns_the_same_to_the_bit(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "WORK", 150)
    for module in (forests, growing):
        monkeypatch.setattr(module, "ROWS", rows)  # when it is full, reports that a tree is made from are replaced
    these = tasks(200)
    small, large = Run(), Run(features=2 * ROOM, options=6)
    wide = [task._replace(features=np.append(task.features, np.full(ROOM, MISSING))) for task in these]
    wide[100:] = [
        task._replace(rewards=[*task.rewards, 0.3, 0.8, 0.1], costs=[*task.costs, 1.0, 1.0, 1.0]) for task in wide[100:]
    ]
    small.play(these[:100])
    assert small.state.forest.making.phase[0] > 0
    large.play(wide)
    grown = Run(features=2 * ROOM, options=6)
    grown.folded = Folded(
        states.grow(Totals(), small.folded.totals, 2, 6),
        states.grow(RatioImed(), small.state, 2, 6, 2 * ROOM),
        no_features(2, 6),
    )
    grown.engine.bind(grown.folded)
    grown.number = 100
    grown.play(wide[100:])
    assert small.chosen + grown.chosen == large.chosen
    assert large.state.forest.rows.used[0] == min(rows, 200)
    assert states.same(grown.state, large.state)


class Totals:
    def init(self, kinds: int, options: int) -> Any:
        return new_totals(kinds, options)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [RatioImed(), RatioImed(half_life=1.0)])
def test_interpreted_and_compiled_agree_to_the_bit(policy: Any) -> None:
    these = [*works_for_some(300, 0.2, 1), *tasks(600, failing=0.1)]
    interpreted, compiled = (Run(policy, engine).play(these) for engine in ("python", "compiled"))
    assert compiled.engine.with_features is not None  # type: ignore[attr-defined]
    assert interpreted.chosen == compiled.chosen
    assert states.same(interpreted.folded, compiled.folded)
