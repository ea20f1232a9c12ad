"""The runs of a simulation: each lets every policy meet the same tasks, and reads its totals at the marks.

Runs are spread over threads, or over the processes of an executor. Tasks come in blocks, so memory does not grow with
their number.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.compiling import engine_named
from worthwhile.errors import BadParameter
from worthwhile.optimum import Optimum, solve
from worthwhile.policies.base import Policy, has_goal, looks_at_features
from worthwhile.policies.features import room_for
from worthwhile.problem import Problem
from worthwhile.simulation.environments.base import Drift, Environment, World, features_in, fresh
from worthwhile.simulation.loop import TOTALS, Block, Truth, engine_for, new_flight, truth_of
from worthwhile.simulation.progress import Progress
from worthwhile.state import Floats, empty, price_in

BLOCK = 1 << 16
PORTIONS = 64  # of a simulation that other processes do
NO_DELAY = np.zeros(0, np.int64)


class Delay(NamedTuple):
    """Feedback comes so many tasks late: fixed (least = most), or uniformly random in between and so out of order."""

    least: int
    most: int

    def draw(self, generator: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        return generator.integers(self.least, self.most, size=count, endpoint=True) if self.most else NO_DELAY


class Stage(NamedTuple):
    """One stretch of a run in which nothing drifts."""

    first: int
    end: int
    problem: Problem
    world: World
    truth: Truth
    best: Optimum
    block: int  # of how many tasks are drawn at once


def stages_of(environment: Environment | Drift, tasks: int) -> list[Stage]:
    """Every stretch of the run, solved."""
    starts = [(first, stage) for first, stage in environment.stages() if first < tasks]
    ends = [first for first, _ in starts[1:]] + [tasks]
    stages = []
    for (first, stage), end in zip(starts, ends, strict=True):
        check_tasks(stage, end - first)
        best, block = solve(stage.problem, goal="ratio"), max(BLOCK, stage.most_tasks or 0)
        stages.append(Stage(first, end, stage.problem, stage.world, truth_of(stage.problem, best), best, block))
    check_features([stage.world for stage in stages])
    return stages


def check_tasks(environment: Environment, tasks: int) -> None:
    """Refuse more tasks than there are."""
    most = environment.most_tasks
    if most is not None and tasks > most:
        raise BadParameter(f"{tasks} tasks, but {environment.name!r} has only {most}, each to come once; ask for fewer")


def check_features(worlds: Sequence[World]) -> None:
    """Refuse stages that differ in how many features their tasks have."""
    numbers = [features_in(world) for world in worlds]
    if len(set(numbers)) > 1:
        raise BadParameter(f"the stages' tasks have {numbers} features; give all of them the same")


class Sweep(NamedTuple):
    """What every run of a simulation shares, and all that another process has to know to do one."""

    environment: Environment | Drift
    policies: list[Policy]
    tasks: int
    engine: str | None
    marks: npt.NDArray[np.int64]
    delay: Delay
    seed: int


class Job:
    """A sweep in this process: its stages are solved, and every policy has its loop in each of them."""

    def __init__(self, sweep: Sweep, stages: list[Stage], progress: Progress) -> None:
        self.sweep, self.stages, self.progress = sweep, stages, progress
        late = sweep.delay.most > 0
        self.engines = [
            [engine_for(policy, stage.world, sweep.engine, late, stage.problem.can_fail) for policy in sweep.policies]
            for stage in stages
        ]
        self.stop = threading.Event()

    def compile(self, progress: bool | None) -> None:
        """Let every loop play no tasks at all, which compiles it, or loads it from the cache."""
        if engine_named(self.sweep.engine) == "python":
            return
        stage, generator, no_marks = self.stages[0], np.random.default_rng(0), np.zeros(0, np.int64)
        block = Block(*stage.world.draw(generator, 0), self.sweep.delay.draw(generator, 0))
        with Progress(len(self.sweep.policies), progress, " policies compiled") as bar:
            for player, engine in zip(self.players(), self.engines[0], strict=True):
                player.play(stage, engine, block, 0, 0, no_marks, np.zeros((0, len(TOTALS) + 1)))
                bar.add(1)

    def players(self) -> list[Player]:
        """Every policy at its start."""
        kinds, options = self.stages[0].truth.worth.shape[:2]
        sizes = kinds, options, self.sweep.delay.most, features_in(self.stages[0].world)
        return [Player(policy, *sizes) for policy in self.sweep.policies]

    def run(self, number: int) -> Floats | None:
        """One run of every policy: its totals and its price θ at every mark; None if it was stopped."""
        streams = np.random.SeedSequence(self.sweep.seed, spawn_key=(number,)).spawn(3)
        tasks, delays = (np.random.Generator(np.random.SFC64(stream)) for stream in streams[:2])
        seed_key, players, marks = int(streams[2].generate_state(1)[0]), self.players(), self.sweep.marks
        curves = np.empty((len(players), len(marks), len(TOTALS) + 1))
        for stage, engines in zip(self.stages, self.engines, strict=True):
            for start in range(stage.first, stage.end, stage.block):
                count = min(stage.block, stage.end - start)
                block = Block(*stage.world.draw(tasks, count), self.sweep.delay.draw(delays, count))
                for player, engine, curve in zip(players, engines, curves, strict=True):
                    if self.stop.is_set():
                        return None
                    player.play(stage, engine, block, start, seed_key, marks, curve)
                    self.progress.add(count)
        return curves


class Player:
    """One policy in one run: its state, its tasks under way, its totals."""

    def __init__(self, policy: Policy, kinds: int, options: int, longest_delay: int, features: int = 0) -> None:
        self.policy, room = policy, room_for(features) if looks_at_features(policy) else 0
        self.state = empty(policy, kinds, options, room)
        self.flight = new_flight(kinds, options, longest_delay, room, has_goal(policy))
        self.totals = np.zeros(len(TOTALS))
        self.worlds: dict[int, World] = {}  # by the first task of their stage
        self.price = price_in(self.state)

    def play(
        self, stage: Stage, engine: Callable[..., None], block: Block, start: int, seed_key: int,
        marks: npt.NDArray[np.int64], curve: Floats,
    ) -> None:  # fmt: skip
        """Play a block, stopping at every mark in it to read the totals."""
        end = start + len(block.kinds)
        inside = np.flatnonzero((marks > start) & (marks <= end))
        begin, world = 0, self.world_of(stage)
        for mark in [*inside.tolist(), -1]:
            until = (int(marks[mark]) if mark >= 0 else end) - start
            run = self.policy, self.state, world, stage.truth, self.flight, self.totals
            engine(*run, block, begin, until, seed_key, start)
            begin = until
            if mark >= 0:
                curve[mark, :-1] = self.totals
                curve[mark, -1] = math.nan if self.price is None else self.price[0]

    def world_of(self, stage: Stage) -> World:
        """The world of a stage; one that remembers what was done in it begins anew for every policy and run."""
        if stage.first not in self.worlds:
            self.worlds[stage.first] = fresh(stage.world)
        return self.worlds[stage.first]


def run_all(job: Job, runs: int, threads: int) -> tuple[dict[int, Floats], bool]:
    """All runs, in threads that each take the next; what is finished when Ctrl-C comes is kept."""
    finished: dict[int, Floats] = {}
    numbers = iter(range(runs))

    def work() -> None:
        for number in numbers:  # shared: every run is taken once
            curves = job.run(number)
            if curves is None:
                return
            finished[number] = curves

    interrupted = False
    with job.progress, ThreadPoolExecutor(min(threads, runs)) as pool:
        try:
            working = {pool.submit(work) for _ in range(min(threads, runs))}
            while working:  # wake up now and then: a signal may have reached another thread
                done, working = wait(working, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            job.stop.set()
    return finished, interrupted


def run_elsewhere(sweep: Sweep, runs: int, executor: Executor, progress: Progress) -> tuple[dict[int, Floats], bool]:
    """All runs, in portions, by an executor; what is finished when Ctrl-C comes is kept."""
    portions = [range(runs)[first::PORTIONS] for first in range(min(runs, PORTIONS))]
    waiting = {executor.submit(run_some, sweep, list(portion)) for portion in portions}
    finished: dict[int, Floats] = {}
    with progress:
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    curves = future.result()
                    finished |= curves
                    progress.add(sweep.tasks * len(sweep.policies) * len(curves))
        except KeyboardInterrupt:
            return finished, True
        finally:
            for future in waiting:
                future.cancel()
    return finished, False


def run_some(sweep: Sweep, numbers: Sequence[int]) -> dict[int, Floats]:
    """Some of the runs, wherever this is called."""
    job = Job(sweep, stages_of(sweep.environment, sweep.tasks), Progress(0, False))
    curves = {number: job.run(number) for number in numbers}
    return {number: curve for number, curve in curves.items() if curve is not None}
