"""`simulate`: policies tried in an environment, many runs of each, all policies of a run on the same tasks.

What is asked is checked here and what came of it summed up; `runs` does the work, and `loop` is one run of one policy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadParameter
from worthwhile.goals.goal import Floor, Goal, goal_of
from worthwhile.optimum import Optimum, under, value
from worthwhile.policies.base import Known, Policy, checked, known
from worthwhile.policies.goal_imed import towards
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.problem import Problem
from worthwhile.problem_files import read_problem
from worthwhile.simulation.environments.base import Drift, Environment
from worthwhile.simulation.environments.synthetic import synthetic
from worthwhile.simulation.loop import TOTALS
from worthwhile.simulation.progress import Progress
from worthwhile.simulation.results import Results
from worthwhile.simulation.runs import Delay, Job, Stage, Sweep, run_all, run_elsewhere, stages_of
from worthwhile.state import Floats

log = logging.getLogger(__name__)

MARKS_PER_DECADE = 10
MOST_TASKS = 1 << 48  # what random draws count to
LONGEST_DELAY = 10_000_000  # tasks under way are kept in memory


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
    goal: str | Goal | None = None,
    floor: Floor | None = None,
    budget: float | None = None,
) -> Results:
    """Try policies on an environment: names, `package.module:Class`, or {label: policy}.

    With a goal, the default keeps its floor or budget; the others do as they always do.
    Runs are spread over threads, or over the processes or the cluster of an executor, with the same numbers.
    Ctrl-C stops cleanly: the result then holds the runs that were finished, and `interrupted` is true.

    >>> from worthwhile.problem import two_kinds
    >>> result = simulate(two_kinds(0.8), ["oracle", "random-option"], tasks=1000, runs=5, engine="python")
    >>> bool(result.mean("regret")["oracle"] < result.mean("regret")["random-option"])
    True
    """
    problem = read_problem(environment) if isinstance(environment, str) else environment
    environment = synthetic(problem) if isinstance(problem, Problem) else problem
    check_counts(tasks=tasks, runs=runs, seed=seed, threads=threads)
    late, stages = delay_of(delay), stages_of(environment, tasks)
    nothing_said = goal is None and floor is None and budget is None
    wanted = environment.problem.goal if nothing_said else goal_of(goal, floor, budget)
    chosen = policies_of(policies, known(environment.problem, tasks, stages[0].best), wanted, environment.problem)
    sweep = Sweep(environment, list(chosen.values()), tasks, engine, marks_of(marks, tasks), late, seed)
    job = Job(sweep, stages, Progress(tasks * runs * len(chosen), progress))
    if executor is None:
        job.compile(progress)
        finished, interrupted = run_all(job, runs, threads or os.cpu_count() or 1)
    else:
        finished, interrupted = run_elsewhere(sweep, runs, executor, job.progress)
    if interrupted:
        log.warning("interrupted: %d of %d runs are finished and kept", len(finished), runs)
    numbers = np.array(sorted(finished), dtype=np.int64)
    shape = len(numbers), len(chosen), len(sweep.marks), len(TOTALS) + 1
    curves = np.array([finished[number] for number in numbers.tolist()]).reshape(shape)
    settings = {"seed": seed, "tasks": tasks, "runs": runs, "delay": list(late)}
    return Results(
        environment.problem, overall(stages), tuple(chosen), sweep.marks, numbers, curves,
        optimum_at(sweep.marks, stages), settings, interrupted,
        under(overall(stages), wanted) if wanted.constrained else None,
    )  # fmt: skip


def check_counts(tasks: int, runs: int, seed: int, threads: int | None) -> None:
    """Refuse what is no whole number, or too small or too large."""
    some = 1 if threads is None else threads
    for name, count, least in (("tasks", tasks, 1), ("runs", runs, 1), ("seed", seed, 0), ("threads", some, 1)):
        if not isinstance(count, int | np.integer) or count < least:
            raise BadParameter(f"{name} = {count!r}; it must be a whole number, at least {least}")
    if tasks >= MOST_TASKS:
        raise BadParameter(f"tasks = {tasks}; a run can have at most 2⁴⁸ − 1")


def overall(stages: list[Stage]) -> Optimum:
    """The last stage's optimum, with the ratios that the optimum and per-kind greedy of all stages come to."""
    last = stages[-1].best
    if len(stages) == 1:
        return last
    tasks = np.array([stage.end - stage.first for stage in stages], dtype=float)
    best = tasks @ np.array([(stage.best.reward, stage.best.cost) for stage in stages])
    greedy = tasks @ np.array([value(stage.problem, stage.best.greedy) for stage in stages])
    (reward, cost), greedy_ratio = (best / tasks.sum()).tolist(), float(greedy[0] / greedy[1])
    ratio = reward / cost
    return replace(last, ratio=ratio, best_ratio=ratio, reward=reward, cost=cost, greedy_ratio=greedy_ratio)


def optimum_at(marks: npt.NDArray[np.int64], stages: list[Stage]) -> Floats:
    """(marks, 2): reward and cost by each mark of who takes every stage's optimum."""
    earned = np.zeros((len(marks), 2))
    for stage in stages:
        tasks = np.clip(marks - stage.first, 0, stage.end - stage.first)
        earned += np.outer(tasks, (stage.best.reward, stage.best.cost))
    return earned


def policies_of(
    policies: Sequence[str] | Mapping[str, str | Policy], told: Known, goal: Goal, problem: Problem
) -> dict[str, Policy]:
    """Labelled policies, those given by name told the truth about the problem, the default towards the goal."""
    if isinstance(policies, str):
        policies = [policies]
    labelled = policies if isinstance(policies, Mapping) else {name: name for name in policies}
    if not labelled:
        raise BadParameter("no policies; name at least one")
    goal.check_kinds(problem.kinds)
    numbers = {kind: number for number, kind in enumerate(problem.kinds)}
    made = {
        label: make(policy, told) if isinstance(policy, str) else checked(policy) for label, policy in labelled.items()
    }
    return {
        label: towards(policy, goal, numbers) if isinstance(policy, RatioImed) else policy
        for label, policy in made.items()
    }


def delay_of(delay: int | tuple[int, int]) -> Delay:
    """A fixed delay, or (least, most) of a random one."""
    try:
        least, most = (int(part) for part in ((delay, delay) if isinstance(delay, int) else delay))
    except (TypeError, ValueError):
        least, most = -1, -1
    if not 0 <= least <= most <= LONGEST_DELAY:
        allowed = f"0 ≤ least ≤ most ≤ {LONGEST_DELAY}"
        raise BadParameter(f"delay = {delay}; give a number of tasks, or (least, most) with {allowed}")
    return Delay(least, most)


def marks_of(marks: Sequence[int] | None, tasks: int) -> npt.NDArray[np.int64]:
    """When to read the totals: as given, or ten times per decade and at the end."""
    if marks is None:
        count = int(np.ceil(np.log10(tasks) * MARKS_PER_DECADE)) + 1
        marks = np.geomspace(1, tasks, count).round().astype(np.int64).tolist()
    points = np.unique(np.array([*marks, tasks], dtype=np.int64))
    if points[0] < 1 or points[-1] > tasks:
        raise BadParameter(f"marks from {points[0]} to {points[-1]}; they must be from 1 to {tasks} tasks")
    return points
