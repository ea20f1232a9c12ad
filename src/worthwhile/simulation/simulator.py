"""Many runs of many policies on the same random worlds, in threads, with curves at log-spaced marks.

Every run has one stream of tasks that all policies share (common random numbers). Tasks come in blocks, totals are read
at the marks only, so memory does not grow with the number of tasks.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.compiling import engine_named
from worthwhile.errors import BadParameter
from worthwhile.optimum import Optimum, solve
from worthwhile.optimum import value as worth
from worthwhile.policies.base import Known, Policy, checked, known
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.problem import Problem
from worthwhile.problem_files import read_problem
from worthwhile.simulation.environments.base import Drift, Environment, World
from worthwhile.simulation.environments.synthetic import synthetic
from worthwhile.simulation.loop import TOTALS, Block, Flight, Truth, engine_for, new_flight, truth_of
from worthwhile.simulation.progress import Progress
from worthwhile.simulation.results import Results
from worthwhile.state import Floats, price_in

log = logging.getLogger(__name__)

BLOCK = 1 << 16
MARKS_PER_DECADE = 10
MOST_TASKS = 1 << 48  # what random draws count to
PORTIONS = 64  # of a simulation that other processes do
LONGEST_DELAY = 10_000_000  # tasks under way are kept in memory
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


def simulate(
    environment: Environment | Drift | Problem | str,
    policies: Sequence[str] | Mapping[str, str | Policy] = (DEFAULT,),
    tasks: int = 10_000,
    runs: int = 20,
    seed: int = 0,
    delay: int | tuple[int, int] = 0,
    marks: Sequence[int] | None = None,
    threads: int | None = None,
    engine: str | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> Results:
    """Try policies on an environment: names, `package.module:Class`, or {label: policy}.

    Runs are spread over threads, or over the processes or the cluster of an executor, with the same numbers.
    Ctrl-C stops cleanly: the result then holds the runs that were finished, and `interrupted` is true.

    >>> from worthwhile.problem import two_kinds
    >>> result = simulate(two_kinds(0.8), ["oracle", "random-option"], tasks=1000, runs=5, engine="python")
    >>> bool(result.mean("regret")["oracle"] < result.mean("regret")["random-option"])
    True
    """
    if isinstance(environment, str):
        environment = read_problem(environment)
    if isinstance(environment, Problem):
        environment = synthetic(environment)
    check_counts(tasks=tasks, runs=runs, seed=seed, threads=threads)
    late, stages = delay_of(delay), stages_of(environment, tasks)
    chosen = policies_of(policies, known(environment.problem, tasks, stages[0].best))
    sweep = Sweep(environment, list(chosen.values()), tasks, engine, marks_of(marks, tasks), late, seed)
    job = Job(sweep, stages, Progress(tasks * runs * len(chosen), progress))
    if executor is None:
        job.compile(progress)
        finished, interrupted = run_all(job, runs, threads or os.cpu_count() or 1)
    else:
        finished, interrupted = run_elsewhere(sweep, runs, executor, job.progress)
    numbers = np.array(sorted(finished), dtype=np.int64)
    shape = len(numbers), len(chosen), len(sweep.marks), len(TOTALS) + 1
    curves = np.array([finished[number] for number in numbers.tolist()]).reshape(shape)
    settings = {"seed": seed, "tasks": tasks, "runs": runs, "delay": list(late)}
    return Results(
        environment.problem, overall(stages), tuple(chosen), sweep.marks, numbers, curves,
        optimum_at(sweep.marks, stages), settings, interrupted,
    )  # fmt: skip


def check_counts(tasks: int, runs: int, seed: int, threads: int | None) -> None:
    """Refuse what is no whole number, or too small or too large."""
    some = 1 if threads is None else threads
    for name, count, least in (("tasks", tasks, 1), ("runs", runs, 1), ("seed", seed, 0), ("threads", some, 1)):
        if not isinstance(count, int | np.integer) or count < least:
            raise BadParameter(f"{name} = {count!r}; it must be a whole number, at least {least}")
    if tasks >= MOST_TASKS:
        raise BadParameter(f"tasks = {tasks}; a run can have at most 2⁴⁸ − 1")


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
            [engine_for(policy, stage.world, sweep.engine, late) for policy in sweep.policies] for stage in stages
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
        return [Player(policy, kinds, options, self.sweep.delay.most) for policy in self.sweep.policies]

    def run(self, number: int) -> Floats | None:
        """One run of every policy: its totals and its price θ at every mark; None if it was stopped."""
        streams = np.random.SeedSequence(self.sweep.seed, spawn_key=(number,)).spawn(3)
        tasks, delays = (np.random.Generator(np.random.SFC64(stream)) for stream in streams[:2])
        seed_key, players, marks = int(streams[2].generate_state(1)[0]), self.players(), self.sweep.marks
        curves = np.empty((len(players), len(marks), len(TOTALS) + 1))
        for stage, engines in zip(self.stages, self.engines, strict=True):
            for start in range(stage.first, stage.end, BLOCK):
                count = min(BLOCK, stage.end - start)
                block = Block(*stage.world.draw(tasks, count), self.sweep.delay.draw(delays, count))
                for player, engine, curve in zip(players, engines, curves, strict=True):
                    if self.stop.is_set():
                        return None
                    player.play(stage, engine, block, start, seed_key, marks, curve)
                    self.progress.add(count)
        return curves


class Player:
    """One policy in one run: its state, its tasks under way, its totals."""

    def __init__(self, policy: Policy, kinds: int, options: int, longest_delay: int) -> None:
        self.policy = policy
        self.state = policy.init(kinds, options)
        self.flight: Flight = new_flight(kinds, options, longest_delay)
        self.totals = np.zeros(len(TOTALS))
        self.price = price_in(self.state)

    def play(
        self, stage: Stage, engine: Callable[..., None], block: Block, start: int, seed_key: int,
        marks: npt.NDArray[np.int64], curve: Floats,
    ) -> None:  # fmt: skip
        """Play a block, stopping at every mark in it to read the totals."""
        end = start + len(block.kinds)
        inside = np.flatnonzero((marks > start) & (marks <= end))
        begin = 0
        for mark in [*inside.tolist(), -1]:
            until = (int(marks[mark]) if mark >= 0 else end) - start
            run = self.policy, self.state, stage.world, stage.truth, self.flight, self.totals
            engine(*run, block, begin, until, seed_key, start)
            begin = until
            if mark >= 0:
                curve[mark, :-1] = self.totals
                curve[mark, -1] = math.nan if self.price is None else self.price[0]


def overall(stages: list[Stage]) -> Optimum:
    """The last stage's optimum, with the ratios that the optimum and per-kind greedy of all stages come to."""
    last = stages[-1].best
    if len(stages) == 1:
        return last
    tasks = np.array([stage.end - stage.first for stage in stages], dtype=float)
    best = tasks @ np.array([(stage.best.reward, stage.best.cost) for stage in stages])
    greedy = tasks @ np.array([worth(stage.problem, stage.best.greedy) for stage in stages])
    reward, cost = (best / tasks.sum()).tolist()
    return replace(last, ratio=reward / cost, reward=reward, cost=cost, greedy_ratio=float(greedy[0] / greedy[1]))


def optimum_at(marks: npt.NDArray[np.int64], stages: list[Stage]) -> Floats:
    """(marks, 2): reward and cost by each mark of who takes every stage's optimum."""
    earned = np.zeros((len(marks), 2))
    for stage in stages:
        tasks = np.clip(marks - stage.first, 0, stage.end - stage.first)
        earned += np.outer(tasks, (stage.best.reward, stage.best.cost))
    return earned


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

    with job.progress, ThreadPoolExecutor(min(threads, runs)) as pool:
        try:
            working = {pool.submit(work) for _ in range(min(threads, runs))}
            while working:  # wake up now and then: a signal may have reached another thread
                done, working = wait(working, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except KeyboardInterrupt:
            job.stop.set()
            pool.shutdown(wait=True)
            kept = dict(finished)
            log.warning("interrupted: %d of %d runs are finished and kept", len(kept), runs)
            return kept, True
        except BaseException:
            job.stop.set()
            raise
    return finished, False


def run_some(sweep: Sweep, numbers: Sequence[int]) -> dict[int, Floats]:
    """Some of the runs, wherever this is called."""
    job = Job(sweep, stages_of(sweep.environment, sweep.tasks), Progress(0, False))
    curves = {number: job.run(number) for number in numbers}
    return {number: curve for number, curve in curves.items() if curve is not None}


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
            log.warning("interrupted: %d of %d runs are finished and kept", len(finished), runs)
            return finished, True
        finally:
            for future in waiting:
                future.cancel()
    return finished, False


def policies_of(policies: Sequence[str] | Mapping[str, str | Policy], told: Known) -> dict[str, Policy]:
    """Labelled policies, those given by name told the truth about the problem."""
    if isinstance(policies, str):
        policies = [policies]
    labelled = policies if isinstance(policies, Mapping) else {name: name for name in policies}
    if not labelled:
        raise BadParameter("no policies; name at least one")
    return {
        label: make(policy, told) if isinstance(policy, str) else checked(policy) for label, policy in labelled.items()
    }


def stages_of(environment: Environment | Drift, tasks: int) -> list[Stage]:
    """Every stretch of the run, solved."""
    starts = [(first, stage) for first, stage in environment.stages() if first < tasks]
    ends = [first for first, _ in starts[1:]] + [tasks]
    stages = []
    for (first, stage), end in zip(starts, ends, strict=True):
        best = solve(stage.problem)
        stages.append(Stage(first, end, stage.problem, stage.world, truth_of(stage.problem, best), best))
    return stages


def delay_of(delay: int | tuple[int, int]) -> Delay:
    """A fixed delay, or (least, most) of a random one."""
    try:
        least, most = (int(part) for part in ((delay, delay) if isinstance(delay, int) else delay))
    except (TypeError, ValueError):
        least, most = -1, -1
    if not 0 <= least <= most <= LONGEST_DELAY:
        allowed = f"0 ≤ least ≤ most ≤ {LONGEST_DELAY}"
        raise BadParameter(f"delay = {delay}; give a number of tasks, or (least, most) with {allowed}")
    return Delay(int(least), int(most))


def marks_of(marks: Sequence[int] | None, tasks: int) -> npt.NDArray[np.int64]:
    """When to read the totals: as given, or ten times per decade and at the end."""
    if marks is None:
        count = int(np.ceil(np.log10(tasks) * MARKS_PER_DECADE)) + 1
        marks = np.geomspace(1, tasks, count).round().astype(np.int64).tolist()
    points = np.unique(np.array([*marks, tasks], dtype=np.int64))
    if points[0] < 1 or points[-1] > tasks:
        raise BadParameter(f"marks from {points[0]} to {points[-1]}; they must be from 1 to {tasks} tasks")
    return points
