"""Equivalence: a live run through a store is the simulator's run, to the bit, for every policy."""

from __future__ import annotations

import math
import random
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile import Noise, Problem, simulate, synthetic
from worthwhile import state as states
from worthwhile.live.scheduler import Scheduler
from worthwhile.policies.base import Policy, known
from worthwhile.policies.registry import LIST, make
from worthwhile.simulation.environments.base import Environment
from worthwhile.simulation.loop import Block, play
from worthwhile.simulation.runs import Player, stages_of

TASKS, SEED = 400, 5
FORGETFUL = "ratio-imed,half_life=1"  # its weights are scaled down on the way
COMPILED = ["ratio-imed", FORGETFUL, "plug-in-dol", "reward-ts"]  # the default, a price, a posterior
PROBLEM = Problem.of(
    {
        "a": (0.5, {"x": (0.7, 0.5), "y": (0.6, 0.2), "z": (0.2, 0.1)}),
        "b": (0.3, {"z": (0.5, 0.3), "x": (0.9, 0.8)}),
        "c": (0.2, {"w": (0.4, 0.4), "y": (0.5, 0.7), "x": (0.1, 0.2)}),
    },
    reward_noise=Noise(sd=0.1),
    cost_noise=Noise("lognormal", cv=0.3),
)


MANY = Problem(  # so many that some are never tried: all that is known of these is what other kinds tell
    "many",
    tuple(f"k{kind}" for kind in range(12)),
    tuple(f"a{option}" for option in range(15)),
    np.full(12, 1 / 12),
    np.random.default_rng(1).uniform(0.2, 1.0, (1, 15)) + np.random.default_rng(2).uniform(0.0, 0.1, (12, 15)),
    np.full((12, 15), 0.5),
    reward_noise=Noise(sd=0.05),
    cost_noise=Noise("lognormal", cv=0.2),
)


def tasks(problem: Problem = PROBLEM) -> tuple[Block, int]:
    """The first run's tasks and the key of its coins, as the simulator derives them."""
    streams = np.random.SeedSequence(SEED, spawn_key=(0,)).spawn(3)
    world = synthetic(problem).world
    block = Block(*world.draw(np.random.Generator(np.random.SFC64(streams[0])), TASKS), np.zeros(0, np.int64))
    return block, int(streams[2].generate_state(1)[0])


class Failing(NamedTuple):
    """A world in which one option always fails, and the others do now and then."""

    world: Any

    def draw(self, generator: np.random.Generator, count: int) -> Any:
        return self.world.draw(generator, count)

    def feedback(self, kind: int, option: int, latent: Any) -> tuple[float, float]:
        reward, cost = self.world.feedback(kind, option, latent)
        return (math.nan if option == 0 or int(1e6 * cost) % 4 == 0 else reward), cost


WORLD = synthetic(PROBLEM).world


def live(
    scheduler: Scheduler, late: int = 0, world: Any = WORLD, problem: Problem = PROBLEM
) -> tuple[float, float, list[str]]:
    """The same tasks, one at a time, each reported `late` tasks later."""
    block, _ = tasks(problem)
    offered = problem.offered
    scheduler.announce(problem.kinds, problem.options)
    totals, chosen, flying = [0.0, 0.0], [], deque[Any]()
    for kind, latent in zip(block.kinds.tolist(), block.latent, strict=True):
        options = [option for place, option in enumerate(problem.options) if offered[kind, place]]
        task = scheduler.decide(problem.kinds[kind], options)
        reward, cost = world.feedback(kind, problem.options.index(task.option), latent)
        totals = [totals[0] + reward, totals[1] + cost]
        chosen.append(task.option)
        flying.append((task, reward, cost))
        if len(flying) > late:
            task, reward, cost = flying.popleft()
            task.fail(cost) if math.isnan(reward) else task.report(reward, cost)
    return totals[0], totals[1], chosen


def simulated(policy: Policy, world: Any = WORLD, problem: Problem = PROBLEM) -> Any:
    """The state that the simulator's run ends with."""
    block, key = tasks(problem)
    [stage] = stages_of(Environment(problem, world), TASKS)
    player = Player(policy, len(problem.kinds), len(problem.options), 0)
    player.play(stage, play, block, 0, key, np.zeros(0, np.int64), np.zeros((0, 8)))
    return player.state


def same_state(scheduler: Scheduler, policy: Policy, world: Any = WORLD, problem: Problem = PROBLEM) -> bool:
    """Whether the scheduler knows what the simulator's run knew, room to grow aside."""
    fold = scheduler._transactor.do(lambda batch: batch.replica.fold)
    return states.same(fold.state.learned, states.grow(policy, simulated(policy, world, problem), *fold.size))


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *((name, "python") for name in (*LIST, FORGETFUL)),
        *((name, "compiled") for name in COMPILED),
        *(pytest.param(name, "compiled", marks=pytest.mark.slow) for name in LIST if name not in COMPILED),
    ],
)
def test_a_live_run_is_the_simulators_run(name: str, engine: str) -> None:
    policy = make(name, known(PROBLEM, TASKS))
    result = simulate(PROBLEM, {name: policy}, TASKS, 1, SEED, marks=[TASKS], engine="python")
    with Scheduler(policy=policy, seed=SEED, engine=engine) as scheduler:
        reward, cost, _ = live(scheduler)
        assert reward == result.measure("reward")[0, 0, -1]
        assert cost == result.measure("cost")[0, 0, -1]
        assert same_state(scheduler, policy)
        assert scheduler.rebuild()


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("fails", [False, True])
def test_options_that_only_other_kinds_know_are_judged_as_in_the_simulator(engine: str, fails: bool) -> None:
    policy, world = make("ratio-imed", known(MANY, TASKS)), synthetic(MANY).world
    world = Failing(world) if fails else world
    with Scheduler(policy=policy, seed=SEED, engine=engine) as scheduler:
        live(scheduler, world=world, problem=MANY)
        assert same_state(scheduler, policy, world, MANY)
        assert scheduler.rebuild()
    learned = simulated(policy, world, MANY)
    untried = learned.arms.pulls == 0.0
    assert untried.mean() > 0.25  # of the cells, though every option works somewhere, but for the one that always fails
    assert (learned.sharing.option_cells > 0.0).sum() == 15 - fails


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("name", COMPILED)
def test_failures_are_those_of_the_simulator(name: str, engine: str) -> None:
    policy, world = make(name, known(PROBLEM, TASKS)), Failing(WORLD)
    with Scheduler(policy=policy, seed=SEED, engine=engine) as scheduler:
        live(scheduler, world=world)
        assert scheduler.summary().failed > TASKS / 20
        assert same_state(scheduler, policy, world)
        assert scheduler.rebuild()


@pytest.mark.parametrize("name", ["ratio-imed", FORGETFUL, "bts", "dol-rm-anytime"])
def test_a_live_run_through_a_store_is_the_simulators_run(durable: str, name: str) -> None:
    policy = make(name, known(PROBLEM, TASKS))
    with Scheduler(durable, policy=policy, seed=SEED) as scheduler:
        _, _, chosen = live(scheduler)
        assert same_state(scheduler, policy)
    with Scheduler(policy=policy, seed=SEED) as in_memory:
        assert live(in_memory)[2] == chosen
    with Scheduler(durable) as again:  # another process would read the same
        assert same_state(again, policy)


@pytest.mark.parametrize("name", ["ratio-imed", "ratio-ts", "omega-ucb"])
def test_late_reports_meet_the_same_running_tasks(name: str) -> None:
    policy = make(name, known(PROBLEM, TASKS))
    result = simulate(PROBLEM, {name: policy}, TASKS, 1, SEED, delay=7, marks=[TASKS], engine="python")
    with Scheduler(policy=policy, seed=SEED) as scheduler:
        reward, cost, _ = live(scheduler, late=7)
    assert reward == result.measure("reward")[0, 0, -1]
    assert cost == result.measure("cost")[0, 0, -1]


def test_the_largest_and_smallest_feedback_is_decided_on_and_gives_the_same_bits_compiled() -> None:
    def learned(engine: str, seed: int) -> bytes:
        draw, chosen = random.Random(seed), []
        scheduler = Scheduler(seed=seed, engine=engine)
        for number in range(60):
            task = scheduler.decide("ab"[number % 2], [1, 2, 3, 4][: draw.randint(1, 4)])
            chosen.append(task.option)
            reward, cost = (
                (0.1 + draw.random()) * 10 ** (draw.uniform(-99, 99) * draw.randint(0, 1)) for _ in range(2)
            )
            task.report(reward * draw.choice([1, -1]), cost)
        assert scheduler._transactor.replica is not None
        return repr(chosen).encode() + states.to_bytes(scheduler._transactor.replica.fold.state)

    for seed in range(40):
        assert learned("python", seed) == learned("compiled", seed)
