"""The default with features: live, simulated, compiled, restored and rebuilt, it knows the same to the bit."""

from __future__ import annotations

import math
import random
import signal
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from live_worker import check_everything, start
from worthwhile import Problem, Scheduler
from worthwhile import state as states
from worthwhile.live.checking import find_damage
from worthwhile.policies import growing
from worthwhile.policies.features import MISSING, feature_number, room_for
from worthwhile.policies.forest import FILLING, ROWS, SPLITTING, TREES
from worthwhile.policies.imed import RatioImed
from worthwhile.simulation.environments.base import Environment
from worthwhile.simulation.loop import Block, engine_for
from worthwhile.simulation.runs import Delay, Player, stages_of
from worthwhile.state import Floats, Indices

TASKS, SEED, ITEMS = 320, 5, 200
KINDS, OPTIONS, COLOURS = ["k", "l"], ["a", "b", "c"], ["red", "green", "blue"]
NAMES = ["size", "colour", "draft", "seldom"]
Told = dict[str, Any]


class World(NamedTuple):
    """Items of which a number says whether the first option is best or the second; tasks fail now and then."""

    known: Floats  # (items, features)
    failing: float

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        latents = generator.random((count, 4))
        latents[0, 0] = 0.0  # the first item has all features, which gives them their numbers
        return generator.integers(2, size=count).astype(np.uint32), latents

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        small = self.known[int(latent[0] * len(self.known)), 0] < 0.0
        mean = 0.5 if option == 2 else (0.9 if (option == 0) == small else 0.2)
        if latent[3] < self.failing:
            return math.nan, 0.25
        return mean + 0.2 * latent[1], 0.5 + latent[2]

    def features(self, kind: int, latent: Floats) -> Floats:
        return self.known[int(latent[0] * len(self.known))]


def items() -> tuple[list[Told], Floats]:
    """Features of items as users give them, and as policies see them."""
    luck, told = random.Random(1), list[Told]()
    for item in range(ITEMS):
        features = {"size": luck.uniform(-1.0, 1.0), "colour": luck.choice(COLOURS), "draft": luck.random() < 0.5}
        told.append(features | ({"seldom": luck.random()} if item == 0 or luck.random() < 0.2 else {"seldom": None}))
    table = np.full((ITEMS, room_for(len(NAMES))), MISSING)
    for item, features in enumerate(told):
        table[item, : len(NAMES)] = [feature_number(features[name]) for name in NAMES]
    return told, table


TOLD, TABLE = items()
PROBLEM = Problem(
    "items", tuple(KINDS), tuple(OPTIONS), np.array([0.5, 0.5]), np.full((2, 3), 0.6), np.ones((2, 3)),
    failure_rate=np.full((2, 3), 0.1), failure_cost=np.full((2, 3), 0.25),
)  # fmt: skip


def world(failing: float = 0.1) -> World:
    return World(TABLE, failing)


def drawn(count: int = TASKS) -> tuple[Block, int]:
    """The first run's tasks and the key of its coins, as the simulator derives them."""
    streams = np.random.SeedSequence(SEED, spawn_key=(0,)).spawn(3)
    block = Block(*world().draw(np.random.Generator(np.random.SFC64(streams[0])), count), np.zeros(0, np.int64))
    return block, int(streams[2].generate_state(1)[0])


def simulated(policy: Any, engine: str = "python", late: int = 0, failing: float = 0.1, count: int = TASKS) -> Any:
    """The state that the simulator's run ends with."""
    block, key = drawn(count)
    block = block._replace(delay=Delay(late, late).draw(np.random.default_rng(0), count))
    [stage] = stages_of(Environment(PROBLEM, world(failing)), count)
    player = Player(policy, 2, 3, late, len(NAMES))
    play = engine_for(policy, stage.world, engine)
    player.play(stage, play, block, 0, key, np.zeros(0, np.int64), np.zeros((0, 8)))
    return player.state


def live(
    scheduler: Scheduler, first: int = 0, end: int = TASKS, late: int = 0, failing: float = 0.1,
    told: Callable[[int, Told], Told | None] = lambda number, features: features,
) -> list[str]:  # fmt: skip
    """The same tasks, one at a time, each reported `late` tasks later; `told` says what is said of their features."""
    block, _ = drawn()
    scheduler.announce(KINDS, OPTIONS)
    chosen, flying, here = [], deque[Any](), world(failing)
    for number in range(first, end):
        kind, latent = int(block.kinds[number]), block.latent[number]
        features = told(number, TOLD[int(latent[0] * ITEMS)])
        task = scheduler.decide(KINDS[kind], OPTIONS, features=features)
        chosen.append(str(task.option))
        flying.append((task, *here.feedback(kind, OPTIONS.index(task.option), latent)))
        if len(flying) > late:
            task, reward, cost = flying.popleft()
            task.fail(cost) if math.isnan(reward) else task.report(reward, cost)
    return chosen


def fold_of(scheduler: Scheduler) -> Any:
    return scheduler._transactor.do(lambda batch: batch.replica.fold)


def forest_of(scheduler: Scheduler) -> Any:
    return fold_of(scheduler).state.learned.forest


def knows(scheduler: Scheduler, state: Any, policy: Any) -> bool:
    """Whether it knows what a simulator's run knew, room to grow aside."""
    fold = fold_of(scheduler)
    return states.same(fold.state.learned, states.grow(policy, state, *fold.size))


FORGETFUL = RatioImed(half_life=1.0)  # its weights are scaled down on the way
ENGINES = ["python", pytest.param("compiled", marks=pytest.mark.slow)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", [RatioImed(), FORGETFUL])
@pytest.mark.parametrize("failing", [0.0, 0.1])
def test_a_live_run_is_the_simulators_run(policy: Any, engine: str, failing: float) -> None:
    with Scheduler(policy=policy, seed=SEED, engine=engine) as scheduler:
        live(scheduler, failing=failing)
        assert forest_of(scheduler).making.made[0] > TREES
        assert knows(scheduler, simulated(policy, failing=failing), policy)
        assert scheduler.rebuild()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [RatioImed(), FORGETFUL])
@pytest.mark.parametrize("late", [0, 7])
def test_a_compiled_simulation_is_the_same(policy: Any, late: int) -> None:
    assert states.same(simulated(policy, "python", late), simulated(policy, "compiled", late))


@pytest.mark.slow
def test_a_compiled_simulation_is_the_same_when_reports_have_to_make_room_for_others() -> None:
    interpreted, compiled = (simulated(RatioImed(), engine, count=4600) for engine in ("python", "compiled"))
    assert interpreted.forest.rows.seen[0] > interpreted.forest.rows.used[0] == ROWS
    assert states.same(interpreted, compiled)


@pytest.mark.slow
def test_a_run_through_any_store_is_the_simulators_run(address: str) -> None:
    with Scheduler(address, seed=SEED) as scheduler:
        chosen = live(scheduler)
        expected = simulated(RatioImed())
        assert knows(scheduler, expected, RatioImed())
        assert scheduler.rebuild()
        assert all(scheduler.explain(task).repeated for task in (TASKS, TASKS // 2))
    if address != "memory://":
        assert find_damage(address).damage == []
        with Scheduler(address) as again:  # another process would read the same
            assert knows(again, expected, RatioImed())
    with Scheduler(seed=SEED) as in_memory:
        assert live(in_memory) == chosen


def test_late_reports_are_learned_from_as_in_the_simulator() -> None:
    with Scheduler(seed=SEED) as scheduler:
        live(scheduler, late=7)
        assert knows(scheduler, simulated(RatioImed(), late=7), RatioImed())
        assert scheduler.rebuild()


HARD_TO_SCORE = 1, 8, 29, 37, 42  # but for the first, forecasts so far off that their squares are no numbers


def extremes(seed: int, engine: str) -> tuple[list[Any], Any]:
    """What is chosen and known after the largest and smallest feedback there may be."""
    draw, chosen = random.Random(seed), []
    scheduler = Scheduler(seed=seed, engine=engine, policy=RatioImed(half_life=30.0))
    for number in range(150):
        features = {"x": draw.random(), "c": draw.choice(COLOURS), "y": 10 ** draw.uniform(-99, 99)}
        task = scheduler.decide(KINDS[number % 2], [1, 2, 3, 4][: draw.randint(1, 4)], features=features)
        chosen.append(task.option)
        reward, cost = ((0.1 + draw.random()) * 10 ** (draw.uniform(-99, 99) * draw.randint(0, 1)) for _ in range(2))
        task.fail(cost) if draw.random() < 0.1 else task.report(reward * draw.choice([1, -1]), cost)
    return chosen, fold_of(scheduler)


def test_the_largest_and_smallest_feedback_leaves_finite_scores() -> None:
    for seed in HARD_TO_SCORE:
        fold = extremes(seed, "python")[1]
        assert fold.bad == 0
        assert all(np.isfinite(array).all() for array in fold.state.learned.forest.gates)


@pytest.mark.slow
def test_the_largest_and_smallest_feedback_gives_the_same_bits_compiled() -> None:
    for seed in HARD_TO_SCORE:
        interpreted, compiled = (extremes(seed, engine) for engine in ("python", "compiled"))
        assert interpreted[0] == compiled[0]
        assert interpreted[1].same_as(compiled[1])


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that take many reports to grow, and snapshots on the way."""
    monkeypatch.setattr(growing, "WORK", 150)
    monkeypatch.setattr("worthwhile.live.replica.SNAPSHOT_EVERY", 20)


@pytest.mark.usefixtures("slowly")
def test_a_snapshot_in_the_middle_of_a_tree_is_gone_on_from_to_the_bit(durable: str) -> None:
    chosen, phases = [], set()
    for first in range(0, TASKS, 16):
        with Scheduler(durable, seed=SEED) as scheduler:
            if first > 20:
                assert scheduler._transactor.do(lambda batch: batch.replica.saved) > 0
                phases.add(int(forest_of(scheduler).making.phase[0]))
            chosen += live(scheduler, first, first + 16)
    assert phases >= {SPLITTING, FILLING}
    with Scheduler(durable) as scheduler, Scheduler(seed=SEED) as other:
        assert live(other) == chosen
        assert fold_of(scheduler).same_as(fold_of(other))
        assert knows(scheduler, simulated(RatioImed()), RatioImed())


@pytest.mark.usefixtures("slowly")
def test_two_processes_that_take_turns_know_the_same(sqlite: str) -> None:
    with Scheduler(sqlite, seed=SEED) as one, Scheduler(sqlite) as other:
        for first in range(0, 200, 10):
            live((one, other)[first // 10 % 2], first, first + 10)
            assert fold_of(one).same_as(fold_of(other))
        assert one.rebuild()
        assert other.rebuild()


def later(number: int, features: Told) -> Told | None:
    """Some tasks have no features, and more of them appear as time goes by."""
    if number % 5 == 4:
        return None
    return features | {f"new {place}": number % (place + 2) for place in range(number // 16)}


@pytest.mark.parametrize("engine", ENGINES)
def test_features_that_appear_later_are_learned_from_as_if_they_had_always_been_there(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "python":  # machine code would have to be made anew
        monkeypatch.setattr(growing, "WORK", 150)
    with Scheduler(seed=SEED, engine=engine) as scheduler:
        rooms = set()
        for first in range(0, TASKS, 20):
            live(scheduler, first, first + 20, told=later)
            rooms.add((fold_of(scheduler).size.features, int(forest_of(scheduler).making.phase[0])))
            assert scheduler.rebuild()
        assert {features for features, _ in rooms} == {8, 16, 32}
        assert any(phase for features, phase in rooms if features == 16) or engine == "compiled"
        assert forest_of(scheduler).rows.known[0] == 4 + (TASKS - 1) // 16
        known = forest_of(scheduler).gates.importance.copy()
        assert known.argmax() == 0


@pytest.mark.usefixtures("slowly")
def test_options_and_kinds_that_appear_while_a_tree_grows_leave_no_trace() -> None:
    with Scheduler(seed=SEED) as scheduler:
        live(scheduler, 0, 80)
        assert forest_of(scheduler).making.phase[0] > 0
        scheduler.announce([f"kind {number}" for number in range(9)], [f"option {number}" for number in range(9)])
        assert fold_of(scheduler).size[:2] == (16, 16)
        assert scheduler.rebuild()
        for number in range(30):
            task = scheduler.decide(f"kind {number % 9}", [*OPTIONS, f"option {number % 9}"], features=TOLD[number])
            task.report(number % 3, 1.0)
        live(scheduler, 80, 160)
        assert scheduler.rebuild()


@pytest.mark.usefixtures("slowly")
def test_what_is_forgotten_is_as_if_it_had_never_been_told(sqlite: str) -> None:
    with Scheduler(sqlite, seed=SEED) as scheduler:
        live(scheduler, 0, 160)
        assert forest_of(scheduler).rows.seen[0] == 160
        before = fold_of(scheduler).copy()
        scheduler.forget(*range(50, 90))
        assert forest_of(scheduler).rows.seen[0] == 120
        assert not fold_of(scheduler).same_as(before)
        assert scheduler.rebuild()
        live(scheduler, 160, 200)
        assert scheduler.rebuild()
        known = fold_of(scheduler).copy()
    with Scheduler(sqlite) as again:
        assert fold_of(again).same_as(known)
    assert find_damage(sqlite).damage == []


def test_further_attempts_and_side_observations_have_features_too() -> None:
    with Scheduler(seed=SEED) as scheduler:
        for number in range(150):
            task = scheduler.decide(KINDS[number % 2], OPTIONS, features=TOLD[number])
            if number % 3 == 0:
                task.fail(0.5)
                task = task.again()
            task.report(number % 4, 1.0)
            if number % 4 == 0:
                task.observe(next(option for option in OPTIONS if option != task.option), 0.5, 1.0)
            assert (forest_of(scheduler).ahead_reward[0], forest_of(scheduler).ahead_cost[0]) == (0.0, 1.0)
        assert forest_of(scheduler).rows.seen[0] == 150 + 50 + 38
        assert scheduler.rebuild()


def test_loading_a_history_gives_the_state_of_who_made_it(tmp_path: Any) -> None:
    with Scheduler(seed=SEED) as scheduler, Scheduler(seed=SEED) as other:
        live(scheduler, 0, 120)
        scheduler.export(tmp_path / "log.jsonl")
        other.announce(KINDS, OPTIONS)
        other.load(tmp_path / "log.jsonl")
        assert states.same(forest_of(scheduler).rows, forest_of(other).rows)
        assert other.rebuild()


@pytest.mark.slow
def test_who_is_killed_in_the_middle_leaves_a_log_that_gives_the_same_bits(durable: str) -> None:
    luck = random.Random(3)
    Scheduler(durable, seed=SEED).close()
    outputs = []
    for round in range(3):
        worker = start(durable, f"{round}", 100_000, threads=2, features=True)
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        outputs += [worker.stdout.readline().decode() for _ in range(luck.randint(120, 200))]
        worker.send_signal(signal.SIGKILL)
        output = worker.communicate()[0].decode()
        outputs.append(output[: output.rfind("\n") + 1])
    decided, reported = check_everything(durable, outputs)
    assert decided >= reported > 100
    with Scheduler(durable) as scheduler:
        assert forest_of(scheduler).making.made[0] > TREES
        assert scheduler.rebuild()
