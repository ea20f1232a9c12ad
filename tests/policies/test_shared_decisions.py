"""What kinds tell one another, seen from outside: which options the default tries in a kind, and when."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from worthwhile import Noise, Problem, Scheduler, simulate
from worthwhile import state as states
from worthwhile.live.engines import engine_of, offer_of
from worthwhile.live.totals import Folded, new_totals, no_features
from worthwhile.policies.imed import RatioImed, State
from worthwhile.policies.registry import DEFAULT

KEY = 77


class Player:
    """The default with a state of a size, as a live scheduler calls it."""

    def __init__(self, kinds: int, options: int, engine: str = "python", half_life: float = 0.0) -> None:
        self.policy, self.task, self.made = RatioImed(half_life=half_life), 0, (0, 0.0, 0.0)
        self.methods = engine_of(engine, self.policy, KEY)
        self.hold(Folded(new_totals(kinds, options), self.policy.init(kinds, options), no_features(kinds, options)))

    def hold(self, state: Folded) -> None:
        self.state = state
        self.methods.bind(state)

    @property
    def learned(self) -> State:
        learned: State = self.state.learned
        return learned

    def choose(self, kind: int, options: Iterable[int], running: Mapping[int, int] | None = None) -> int:
        self.task += 1
        self.made = self.methods.choose(offer_of(kind, [*options]), running or {}, self.task)
        return int(self.made[0])

    def report(self, kind: int, reward: float, cost: float) -> None:
        self.methods.learn(kind, *self.made, reward, cost, self.task)

    def fail(self, kind: int, cost: float) -> None:
        self.methods.seldom.fail(kind, *self.made, cost, self.task)

    def observe(self, kind: int, option: int, reward: float, cost: float) -> None:
        self.methods.observe(kind, option, reward, cost, self.task)

    def play(self, kinds: Iterable[int], reward: Any, cost: Any, luck: np.random.Generator, noise: float) -> list[int]:
        """Tasks of these kinds with the means of two tables; the options taken."""
        taken = []
        for kind in kinds:
            option = self.choose(kind, range(reward.shape[1]))
            taken.append(option)
            both = luck.normal(0.0, noise, 2).tolist()
            self.report(kind, float(reward[kind, option]) + both[0], float(cost[kind, option]) * math.exp(both[1]))
        return taken


@pytest.mark.parametrize("seed", range(4))
def test_a_second_kind_like_the_first_tries_fewer_of_many_options_and_later_ones_few(seed: int) -> None:
    """Measured with 12 seeds: 11 to 17 of 30, then 4 to 10, then 4 to 7."""
    luck = np.random.default_rng(seed)
    reward, cost = (np.tile(luck.uniform(0.5, 1.0, 30), (4, 1)) for _ in range(2))
    player = Player(4, 30)
    first = player.play([0] * 300, reward, cost, luck, 0.02)
    assert len({*first}) == 30  # a kind that is alone has to find out for itself
    worth = reward[0] / cost[0] / (reward[0] / cost[0]).max()
    for kind, most, at_first, on_average in ((1, 20, 0.85, 0.95), (2, 12, 0.98, 0.97), (3, 9, 0.98, 0.98)):
        taken = player.play([kind] * 100, reward, cost, luck, 0.02)
        assert len({*taken}) <= most  # nobody is trusted from the start: the second kind finds out whether to
        assert np.mean(worth[taken[:10]]) > at_first
        assert np.mean(worth[taken]) > on_average


@pytest.mark.parametrize("seed", range(4))
def test_where_names_mean_nothing_every_option_is_tried_in_every_kind(seed: int) -> None:
    luck = np.random.default_rng(seed)
    levels, cost = luck.uniform(0.2, 1.0, 6), np.full((5, 6), 0.7)
    reward, player = np.stack([luck.permutation(levels) for _ in range(5)]), Player(5, 6)
    player.play(luck.integers(0, 5, 400).tolist(), reward, cost, luck, 0.1)
    assert (player.learned.arms.pulls > 0.0).all()
    taken = player.play([0, 1, 2, 3, 4] * 20, reward, cost, luck, 0.1)
    earned = [reward[place % 5, option] / levels.max() for place, option in enumerate(taken)]
    assert np.mean(earned) > 0.93


def alike(kinds: int, options: int) -> tuple[Any, Any]:
    """Option 1 is best in every kind, and a higher kind brings more."""
    worth = np.array([0.5, 0.9, *[0.4] * (options - 2)])
    return worth + 0.05 * np.arange(kinds)[:, None], np.ones((kinds, options))


def test_an_option_that_is_new_everywhere_is_tried_at_once_and_then_known_to_all() -> None:
    luck, (reward, cost), player = np.random.default_rng(0), alike(6, 4), Player(6, 4)
    player.play(luck.integers(0, 5, 200).tolist(), reward[:, :3], cost, luck, 0.02)
    assert player.choose(3, range(4)) == 3
    player.report(3, 0.1, 1.0)
    assert [player.choose(kind, range(4)) for kind in (0, 1, 2, 4)] == [
        1,
        1,
        1,
        1,
    ]  # it is bad, which is enough to know


def test_a_new_kind_begins_with_the_option_that_is_best_elsewhere() -> None:
    luck, (reward, cost), player = np.random.default_rng(0), alike(6, 4), Player(6, 4)
    player.play(luck.integers(0, 5, 200).tolist(), reward, cost, luck, 0.02)
    assert player.learned.arms.pulls[5].sum() == 0.0
    assert player.choose(5, range(4)) == 1
    assert player.choose(5, [0, 2]) == 0  # the best of those on offer
    assert player.made[1] == pytest.approx(0.6, abs=0.15)  # what is expected of it: about as much as elsewhere
    assert player.made[2] == pytest.approx(1.0, abs=0.1)


def test_what_runs_in_a_kind_already_is_not_tried_there_a_second_time_before_it_has_reported() -> None:
    luck, (reward, cost), player = np.random.default_rng(0), alike(6, 4), Player(6, 4)
    player.play(luck.integers(0, 5, 200).tolist(), reward, cost, luck, 0.02)
    assert player.choose(5, range(4), {1: 1}) == 0  # a new kind: the second best
    assert player.choose(5, [1, 0]) == 1
    for _ in range(5):
        player.choose(5, [0])
        player.report(5, float(reward[5, 0]), 1.0)
    assert player.choose(5, [0, 1]) == 1
    assert player.choose(5, [0, 1], {1: 1}) == 0


def test_of_options_that_are_as_good_a_new_kind_takes_the_cheaper_by_the_price_of_all_kinds() -> None:
    player = Player(3, 2)
    for reward, cost in ((1.0, 1.0), (1.2, 2.0)) * 5:
        player.choose(0, [0 if cost == 1.0 else 1])
        player.report(0, reward, cost)
    assert player.learned.plug_in.price[0] == pytest.approx(1.0)
    assert player.choose(1, [0, 1]) == 0
    player.learned.plug_in.price[0] = 0.1
    assert player.choose(1, [0, 1]) == 1


@pytest.mark.parametrize("best", [0, 1, 2])
def test_side_observations_of_one_kind_steer_the_first_decision_in_another(best: int) -> None:
    player = Player(2, 3)
    for option in range(3):
        player.observe(0, option, 1.0 if option == best else 0.2, 1.0)
    assert player.choose(1, range(3)) == best


def test_a_live_scheduler_passes_on_what_it_observed_to_another_kind() -> None:
    with Scheduler(seed=1) as scheduler:
        task = scheduler.decide("small", ["a", "b", "c"])
        for option, reward in (("a", 0.1), ("b", 0.9), ("c", 0.2)):
            if option != task.option:
                task.observe(option, reward, 1.0)
        task.report({"a": 0.1, "b": 0.9, "c": 0.2}[task.option], 1.0)
        assert scheduler.decide("large", ["a", "b", "c"]).option == "b"
        assert scheduler.decide("larger", ["c", "a"]).option == "c"


def feedback(draw: random.Random, sort: str) -> tuple[float, float]:
    """A reward and a cost of an odd sort."""
    reward, cost = draw.uniform(-1.0, 2.0), draw.uniform(0.1, 2.0)
    if sort == "huge and tiny":
        return reward * 10.0 ** draw.choice([-99, 0, 99]), cost * 10.0 ** draw.choice([-99, 0, 99])
    if sort == "losses":
        return -abs(reward) - 0.1, cost
    if sort == "costs below 0":
        return reward, draw.choice([0.0, -cost, cost])
    return draw.choice([0.0, 1.0]), 1.0  # all or nothing, at one cost


def odd_run(sort: str, engine: str, seed: int, half_life: float) -> tuple[list[int], bytes, Player]:
    """Several kinds with other offers each, some tasks with side observations, some that fail."""
    draw, player, taken = random.Random(seed), Player(5, 6, engine, half_life), []
    for _ in range(150):
        kind = draw.randrange(5)
        offer = [option for option in range(6) if (option + kind) % 5 != 0]
        taken.append(player.choose(kind, offer))
        assert not any(map(math.isnan, player.made))
        if draw.random() < 0.1:
            player.fail(kind, abs(feedback(draw, sort)[1]))
        else:
            player.report(kind, *feedback(draw, sort))
        if draw.random() < 0.05:
            player.observe(kind, draw.choice(offer), *feedback(draw, sort))
    return taken, states.to_bytes(player.state), player


@pytest.mark.parametrize("half_life", [0.0, 3.0])
@pytest.mark.parametrize("sort", ["huge and tiny", "losses", "costs below 0", "all or nothing"])
def test_odd_feedback_makes_no_exception_nothing_undefined_and_the_same_bits_compiled(
    sort: str, half_life: float
) -> None:
    for seed in range(5):
        taken, kept, player = odd_run(sort, "python", seed, half_life)
        for name, array in states.arrays(player.learned.sharing):
            assert np.isfinite(array).all(), name
        same, bits, _ = odd_run(sort, "compiled", seed, half_life)
        assert taken == same
        assert kept == bits


def test_where_all_lose_the_price_is_negative_and_a_new_kind_begins_with_the_least_loss_per_cost() -> None:
    player = Player(2, 3)
    for _ in range(6):
        for option, reward, cost in ((0, -1.0, 1.0), (1, -1.0, 4.0), (2, -3.0, 1.0)):
            player.choose(0, [option])
            player.report(0, reward, cost)
    price = float(player.learned.plug_in.price[0])
    assert price < 0.0
    scores = [reward - price * cost for reward, cost in ((-1.0, 1.0), (-1.0, 4.0), (-3.0, 1.0))]
    assert player.choose(1, range(3)) == int(np.argmax(scores))


@pytest.mark.parametrize("half_life", [1.0, 4.0, 50.0])
def test_what_kinds_share_stays_finite_where_evidence_fades_and_weights_are_scaled_down(half_life: float) -> None:
    luck, (reward, cost), player = np.random.default_rng(0), alike(4, 5), Player(4, 5, half_life=half_life)
    scaled, heaviest = 0, 1.0
    taken: list[int] = []
    for _ in range(25):
        taken += player.play(luck.integers(0, 4, 100).tolist(), reward, cost, luck, 0.1)
        weight = float(player.learned.weight[0])
        scaled, heaviest = scaled + (weight < heaviest), weight
        assert all(np.isfinite(array).all() for _, array in states.arrays(player.learned.sharing))
    assert half_life > 4.0 or scaled > 0
    sharing, tried = player.learned.sharing, player.learned.arms.pulls > 0.0
    assert sharing.cells[0] == tried.sum()
    assert sharing.reward.total == pytest.approx(
        np.where(tried, sharing.reward.value - sharing.reward.kind[:, None], 0.0).sum(axis=0), abs=1e-6
    )
    share = taken[500:].count(1) / 2000  # that of a hundred tasks varies by ± 0.05
    assert share > {1.0: 0.25, 4.0: 0.45, 50.0: 0.8}[half_life]  # the less is kept in mind, the more is tried


def steps(seed: int, count: int) -> list[tuple[int, list[int]]]:
    """Tasks of more and more kinds with more and more options."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        kinds, options = 2 + 6 * number // count, 2 + 5 * number // count
        kind = draw.randrange(kinds)
        found.append((kind, sorted(draw.sample(range(options), draw.randint(1, options)))))
    return found


def follow(player: Player, tasks: Sequence[tuple[int, list[int]]], draw: random.Random, grow: bool) -> list[int]:
    """Play them; a state that grows is given room only when it is needed."""
    taken = []
    for kind, offer in tasks:
        size = player.learned.arms.pulls.shape
        needed = max(size[0], kind + 1), max(size[1], offer[-1] + 1)
        if grow and needed != size:
            larger = Folded(
                new_totals(*needed), states.grow(player.policy, player.learned, *needed), no_features(*needed)
            )
            player.hold(larger)
        taken.append(player.choose(kind, offer))
        value, failed = draw.uniform(0.5, 1.5), draw.random() < 0.15
        if failed:
            player.fail(kind, value)
        else:
            player.report(kind, value - 0.1 * taken[-1], 2.0 - value)
    return taken


def test_a_state_that_grows_with_its_kinds_and_options_decides_as_one_that_had_room_from_the_start() -> None:
    tasks, small, large = steps(1, 500), Player(1, 1), Player(8, 7)
    assert follow(small, tasks, random.Random(2), grow=True) == follow(large, tasks, random.Random(2), grow=False)
    assert small.learned.arms.pulls.shape == (7, 6)
    assert states.same(states.grow(small.policy, small.learned, 8, 7), large.learned)


def test_a_state_that_was_stored_goes_on_to_the_same_bits() -> None:
    tasks, through, stored = steps(3, 400), Player(8, 7), Player(8, 7)
    draw = random.Random(4)
    expected = follow(through, tasks, draw, grow=False)
    draw = random.Random(4)
    taken = follow(stored, tasks[:200], draw, grow=False)
    kept = states.from_bytes(stored.policy, states.to_bytes(stored.learned), states.Size(8, 7))
    stored.hold(Folded(new_totals(8, 7), kept, no_features(8, 7)))
    assert taken + follow(stored, tasks[200:], draw, grow=False) == expected
    assert states.same(stored.learned, through.learned)


def test_a_restarted_scheduler_with_many_kinds_knows_to_the_bit_what_they_share(
    durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.live.replica.SNAPSHOT_EVERY", 40)
    draw, tasks = random.Random(5), steps(6, 120)

    def live(scheduler: Scheduler, some: Sequence[tuple[int, list[int]]]) -> None:
        for kind, offer in some:
            task = scheduler.decide(f"kind {kind}", offer)
            task.report(draw.uniform(0.0, 1.0), 1.0) if draw.random() < 0.8 else task.fail(0.5)

    with Scheduler(durable, seed=2) as scheduler:
        live(scheduler, tasks[:70])
        known = scheduler._transactor.do(lambda batch: batch.replica.fold)
    with Scheduler(durable) as scheduler:
        assert scheduler._transactor.do(lambda batch: batch.replica.saved) > 0
        assert scheduler._transactor.do(lambda batch: batch.replica.fold.same_as(known))
        live(scheduler, tasks[70:])
        sharing = scheduler._transactor.do(lambda batch: batch.replica.fold.state.learned.sharing)
        assert sharing.kinds[0] > 5.0
        assert scheduler.rebuild()


@pytest.mark.slow
def test_kinds_that_are_alike_save_most_first_tries_also_in_simulations() -> None:
    luck = np.random.default_rng(8)
    level = luck.uniform(0.3, 1.0, 20)
    names = tuple(f"k{kind}" for kind in range(40)), tuple(f"a{option}" for option in range(20))
    noise = {"reward_noise": Noise(sd=0.02), "cost_noise": Noise("lognormal", cv=0.05)}
    means = np.tile(level, (40, 1)), np.full((40, 20), 0.5)
    together = Problem("alike", *names, np.full(40, 1 / 40), *means, **noise)
    shuffled = np.stack([luck.permutation(level) for _ in range(40)])
    apart = Problem("unlike", *names, np.full(40, 1 / 40), shuffled, means[1], **noise)
    lost = [simulate(one, [DEFAULT], 1000, 5, marks=[]).mean("loss")[DEFAULT] for one in (together, apart)]
    assert lost[0] < 0.05
    assert lost[1] > 0.2


def test_first_rewards_of_nothing_do_not_hide_the_best_option_of_a_kind_for_ever() -> None:
    """All or nothing at nearly equal costs: the first result of three cells is nothing, as it often is."""
    luck, player, chance = np.random.default_rng(1), Player(2, 2), np.array([[0.7, 0.0], [0.5, 0.95]])
    for kind, option in ((0, 0), (0, 1), (1, 0)):
        player.choose(kind, [option])
        player.report(kind, 0.0, luck.uniform(0.99, 1.01))
    for task in range(3000):
        option = player.choose(task % 2, [0, 1])
        player.report(task % 2, float(luck.random() < chance[task % 2, option]), luck.uniform(0.99, 1.01))
    assert player.learned.arms.pulls[1, 1] > 1000.0


def test_where_evidence_fades_every_option_is_still_tried_in_every_kind() -> None:
    """Pulls that fade would never outweigh a forecast that does not."""
    luck = np.random.default_rng(5)
    reward, cost = (np.tile(luck.uniform(0.5, 1.0, 8), (10, 1)) for _ in range(2))
    player = Player(10, 8, half_life=100.0)
    player.play(luck.integers(0, 10, 1500).tolist(), reward, cost, luck, 0.02)
    assert (player.learned.arms.pulls > 0.0).all()
