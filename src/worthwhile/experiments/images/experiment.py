"""The paper's real-world experiment: a pilot, its replay, and a stream of tasks that every policy really trains."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadParameter, Error
from worthwhile.execution.arrivals import Arrival
from worthwhile.execution.clusters import executor_on
from worthwhile.execution.folder_lock import alone
from worthwhile.execution.results import Finished
from worthwhile.execution.worker import work
from worthwhile.experiments import Experiment, Scale, figure_5, records
from worthwhile.experiments.figure_5_worlds import Counting, arrivals, world
from worthwhile.experiments.images import folders, networks, report
from worthwhile.experiments.images.pilot import Tell, pilot
from worthwhile.experiments.images.pilot import words as setting_words
from worthwhile.experiments.images.tasks import TASKS, Order, Setting, train
from worthwhile.experiments.normalisation import Scaling, scalings
from worthwhile.live.scheduler import Scheduler
from worthwhile.policies.base import known
from worthwhile.policies.registry import find, make
from worthwhile.problem import Problem
from worthwhile.state import Floats
from worthwhile.tables import read_table

SECONDS = "seconds"  # instead of a floor
TASKS_PER_RUN = 100


class Plan(NamedTuple):
    """What is to be done, and where it is kept."""

    setting: Setting
    tasks: Sequence[str]
    pilot: int
    length: int
    runs: int
    policies: Sequence[str]
    floor: float | None
    seed: int
    out: Path

    @property
    def real(self) -> Path:
        """Where the real runs are kept; others, with other costs or bounds, do not get in their way."""
        costs = SECONDS if self.floor is None else f"f{self.floor:g}"
        return self.out / "real" / f"{costs}-pilot{self.pilot}-tasks{self.length}-seed{self.seed}"


def run(arguments: argparse.Namespace, show: Any) -> bool:
    """worthwhile train --data FOLDER; False if Ctrl-C came."""
    tell = partial(print, file=sys.stderr if arguments.json else sys.stdout, flush=True)
    plan = plan_from(arguments)
    look_at(plan, tell)
    plan.out.mkdir(parents=True, exist_ok=True)
    with alone(plan.out, tell), executor_on(arguments.on, arguments.address, arguments.slots or 1) as executor:
        table = pilot(plan.out, plan.tasks, plan.pilot, plan.setting, executor, tell)
        replayed = replay(table, plan)
        tell(f"replayed: {plan.out / 'replayed'}")
        problem = world(table, Counting(plan.floor)).problem
        finished = really_train(plan, problem, table, executor, tell)
    facts = report.facts(plan, problem, table, replayed)
    text = report.text(facts)
    (plan.out / "report.txt").write_text(text + "\n", encoding="utf-8")
    show(facts, f"\n{text}\n\nsaved: {plan.out}", arguments.json)
    return finished


def plan_from(arguments: argparse.Namespace) -> Plan:
    """Check what was asked for."""
    for name, least in (("pilot", 1), ("runs", 1), ("size", 1), ("images", 2)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise BadParameter(f"--{name} {value}: at least {least}")
    if not 0.0 < arguments.steps <= 1.0:
        raise BadParameter(f"--steps {arguments.steps:g}: a share of the paper's steps, above 0 and at most 1")
    setting = Setting(
        str(arguments.data), arguments.size, arguments.images, arguments.steps, arguments.vgg19, arguments.meter
    )
    tasks = folders.tasks_in(Path(arguments.data), list(TASKS))
    policies = [arguments.policy] if arguments.policy else list(figure_5.REAL)
    for name in policies:
        find(name.split(",")[0])
    length = TASKS_PER_RUN if arguments.tasks is None else arguments.tasks
    floor = floor_from(arguments.costs)
    return Plan(setting, tasks, arguments.pilot, length, arguments.runs, policies, floor, arguments.seed, arguments.out)


def floor_from(text: str) -> float | None:
    """--costs: a floor, or seconds."""
    if text == SECONDS:
        return None
    try:
        floor = float(text)
    except ValueError:
        floor = 0.0
    if not 0.0 < floor < 1.0:
        raise BadParameter(f"--costs {text}: write a floor between 0 and 1 for the normalised cost, or {SECONDS}")
    return floor


def look_at(plan: Plan, tell: Tell) -> None:
    """Say what will be trained, and refuse what cannot be, before anything takes long."""
    setting = plan.setting
    for task in plan.tasks:
        networks.check_size(task, setting.size_of(task))
    k = networks.keras()
    tell(f"Keras {k.__version__} on {k.backend.backend()}; {setting_words(setting)}")
    missing = [task for task in TASKS if task not in plan.tasks]
    if missing:
        shares = ", ".join(f"{task} {share:.3g}" for task, share in arrivals(plan.tasks).items())
        tell(f"no data for {', '.join(missing)}: the others arrive with probabilities {shares}")
    for task in plan.tasks:
        files = setting.files(task)
        checked, size = folders.check(files), setting.size_of(task)
        counts = ", ".join(f"{len(part):,} for {split}ing" for split, part in files.paths.items())
        sizes = f"of {len(checked.sizes)} sizes" if len(checked.sizes) > 1 else "of one size"
        tell(f"{task}: {len(files.classes)} classes, {counts}, {sizes}; all are resized to {size} × {size}")
        if checked.corrupt:
            some = ", ".join(map(str, checked.corrupt[:3]))
            tell(f"warning: {task}: {len(checked.corrupt)} corrupt left out: {some}")
    if "weather" in plan.tasks:
        networks.build("weather", setting.size_of("weather"), setting.weights)
        if setting.weights == networks.NONE:
            tell("warning: weather: VGG19 without ImageNet weights: its frozen layers are random, unlike the paper's")


def replay(table: Path, plan: Plan) -> Any:
    """Compare the policies on the pilot's table, in seconds; kept as `worthwhile reproduce` keeps it."""
    scale = Scale(quick=True, seed=plan.seed, tables=table.parent)
    experiment = Experiment("figure-5", "Figure 5: replay of the pilot", figure_5.run)
    outcome = figure_5.run(scale)
    records.keep(experiment, scale, outcome, plan.out / "replayed")
    return outcome


def really_train(plan: Plan, problem: Problem, table: Path, executor: Executor, tell: Tell) -> bool:
    """Every policy trains the same tasks in the same order, run by run; False if Ctrl-C came."""
    if not plan.length:
        return True
    seconds = world(table, Counting()).problem
    hours = float(seconds.arrival @ longest_of(seconds)) * plan.length * plan.runs * len(plan.policies) / 3600
    tell(
        f"now {plan.length} tasks × {plan.runs} runs × {len(plan.policies)} policies: {hours:.2g} h if all are longest"
    )
    scaling = {} if plan.floor is None else scalings(read_table(table), plan.floor)
    for number in range(plan.runs):
        for name in plan.policies:
            path = report.run_path(plan.real, name, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            policy = make(name, known(problem, plan.length))
            with Scheduler(str(path.with_suffix(".db")), policy=policy, seed=plan.seed + number) as scheduler:
                done = work(
                    scheduler,
                    stream(plan, number, scaling),
                    train,
                    executor=executor,
                    in_order=True,
                    lost_cost=float(longest_of(problem).max()),
                    after=watched(scheduler, f"{name}, run {number + 1}", plan.length, path, tell),
                )
                scheduler.export(path)
            if done.interrupted:
                return False
    return True


def stream(plan: Plan, run: int, scaling: Mapping[str, Scaling]) -> Iterator[Arrival]:
    """The tasks of a run, the same for all policies: each with its own seed and key."""
    generator, shares = np.random.default_rng([plan.seed, run]), arrivals(plan.tasks)
    kinds = generator.choice(list(shares), plan.length, p=list(shares.values())).tolist()
    for number, kind in enumerate(kinds):
        order = Order(plan.setting, int(generator.integers(1 << 31)), scaling.get(kind))
        yield Arrival(kind, TASKS[kind].epochs, order, f"{plan.seed}.{run}.{number}")


def longest_of(problem: Problem) -> Floats:
    """The mean cost of every kind's dearest option."""
    dearest: Floats = np.max(np.where(problem.offered, problem.cost, 0.0), axis=1)
    return dearest


def watched(scheduler: Scheduler, run: str, total: int, path: Path, tell: Tell) -> Callable[[Finished], None]:
    """To be called after every task: says what came of it, and stops everything at the first that failed."""

    def after(finished: Finished) -> None:
        task = f"{finished.task.kind}, {finished.task.option} epochs"
        if finished.failure is not None:
            again = f"remove {path.with_suffix('.db')} to begin that run again"
            raise Error(f"{run}: {task} failed ({finished.failure}); {again}")
        so_far = scheduler.summary()
        tell(f"{run}: {so_far.reports} of {total}: {task}, reward / cost so far {so_far.ratio:.3g}")

    return after
