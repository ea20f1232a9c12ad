"""The commands that run tasks: `work` calls a function of the user's, `train` trains networks."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from worthwhile.cli.arguments import INTERRUPTED, STORE, add_goal, count, goal_from, import_from_here, whole
from worthwhile.cli.help import add_parser
from worthwhile.cli.output import show
from worthwhile.errors import BadParameter, BadTask, did_you_mean
from worthwhile.execution.arrivals import Arrival
from worthwhile.execution.claims import LEASE
from worthwhile.execution.clusters import SYSTEMS, executor_on
from worthwhile.execution.metering import METERS
from worthwhile.execution.results import Finished, Worked, most_frequent
from worthwhile.execution.worker import work
from worthwhile.formatting import counted, digits, shown
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.validation import check_text, feature_text, option_texts, plain_options

MOST_CAUSES = 10  # of failures are shown
SHAPE = 'a task is a JSON object like {"kind": …, "options": […], "payload": …, "key": …, "features": {…}}'
WORK = """\
Calls your function, run(kind, option, payload), for every task, in other processes, and reports what it returns: a
reward, or a worthwhile.Outcome. Tasks are JSON objects, one per line:
{"kind": "weather", "options": [1, 5], "payload": null, "key": "a"}
A task with a key is done once. "features": {"clauses": 12000, "family": "crypto"} says what is known of it beside its
kind. A line of a file that has no key gets the file's name and the line's number as its key.

examples:
  worthwhile work jobs:train --store tasks.db --tasks jobs.jsonl
  worthwhile work jobs:train --store tasks.db --timeout 600 --slots 4 < jobs.jsonl
  worthwhile work jobs:train --store tasks.db --tasks jobs.jsonl --on dask --address tcp://scheduler:8786

Ctrl-C waits for the tasks that run, a second Ctrl-C does not; the exit code is 130, and the same command continues.
Every cause of failure is shown once; if all tasks failed, the exit code is 1.
The same command may run several times at once, on one machine or on many: each task is run by one of them.
"""
TRAIN = """\
Trains small networks on data that comes with scikit-learn, in other processes, and learns for each kind how many epochs
are worth their time. Everything goes into the folder --out: the scheduler's store, all outcomes as a table that
`worthwhile replay` reads, a report and a figure. The first line gives the address of a dashboard to watch while it
runs. If it is interrupted, the same command continues.

examples:
  worthwhile train --data bundled --tasks 600 --out results/train
  worthwhile replay results/train/outcomes.csv --cost-unit s

With a folder of images it runs the paper's real-world experiment instead (docs/training.md): five image classifiers in
Keras, a pilot that trains each to the end, its replay, and a stream of tasks that every policy trains:
  worthwhile train --data images --size 48 --steps 0.2 --tasks 20 --vgg19 none --out results/images
"""


def add_commands(commands: Any) -> None:
    """The commands that run tasks."""
    command = add_parser(commands, "work", WORK)
    add = command.add_argument
    add("function", metavar="MODULE:FUNCTION", help="called as run(kind, option, payload)")
    add("--store", required=True, metavar="STORE", help=STORE)
    add("--name", default="default", help="name of the scheduler (default)")
    add("--tasks", default="-", metavar="FILE", help="one JSON object per line (standard input)")
    add("--timeout", type=float, metavar="SECONDS", help="stop a task that runs longer; it counts as failed")
    add("--meter", default="wall", metavar="METER", help="what a task costs: wall, cpu or MODULE:FUNCTION (wall)")
    add("--attempts", type=whole, default=1, metavar="N", help="try a task that fails with other options, N in all (1)")
    add("--failed-reward", type=float, metavar="R", help="a task that fails is a result worth R (it is none)")
    add("--in-order", action="store_true", help="report tasks in the order in which they arrived")
    lease = f"take over a task if its process was not heard of for so long ({LEASE:g})"
    add("--lease", type=float, default=LEASE, metavar="SECONDS", help=lease)
    warm_up = "called without arguments, once in every process before its first task; not measured"
    add("--warm-up", metavar="MODULE:FUNCTION", help=warm_up)
    add_goal(command)
    add_executor(command)
    command.set_defaults(run=run_work)

    command = add_parser(commands, "train", TRAIN)
    add, out = command.add_argument, Path("results/train")
    add("--data", default="bundled", help="bundled (data that comes with scikit-learn), or a folder of images")
    add("--tasks", type=count, metavar="T", help="number of tasks (600; with images 100 per run)")
    add("--seed", type=count, default=0, metavar="S", help="seed of arrivals and trainings (0)")
    add("--policy", metavar="NAME", help="as for `worthwhile simulate` (the default policy)")
    add("--out", type=Path, default=out, metavar="FOLDER", help=f"where the results go ({out})")
    add("--no-dashboard", dest="dashboard", action="store_false", help="show progress in the terminal only")
    add("--port", type=whole, metavar="N", help="port of the dashboard (8080, or the next free one)")
    add_executor(command)
    add_images(command)
    command.set_defaults(run=run_train)


def add_images(command: Any) -> None:
    """What `train` needs to know of a folder of images."""
    add = command.add_argument_group("with a folder of images (docs/training.md)").add_argument
    add("--pilot", type=whole, default=3, metavar="N", help="full trainings of every kind that come first (3)")
    add("--runs", type=whole, default=1, metavar="N", help="streams of tasks that every policy trains (1)")
    add("--size", type=whole, metavar="PIXELS", help="width and height of all images (as in the paper)")
    add("--images", type=whole, metavar="N", help="at most so many images per class (as in the paper)")
    add("--steps", type=float, default=1.0, metavar="SHARE", help="share of the paper's steps per epoch (1)")
    add("--costs", default="0.05", metavar="F", help="costs normalised with this floor, or `seconds` (0.05)")
    add("--vgg19", default="imagenet", metavar="FILE", help="weights; imagenet: download them; none (imagenet)")
    add("--meter", choices=tuple(METERS), default="wall", help="which seconds to count (wall)")


def add_executor(command: Any, usual: str | None = "local") -> None:
    """Where tasks run."""
    words = f"where to run: processes of this machine, or a cluster ({usual or 'threads of this process'})"
    command.add_argument("--on", choices=SYSTEMS, default=usual, help=words)
    command.add_argument("--address", help="address of the cluster (none: one is started on this machine)")
    command.add_argument("--slots", type=whole, metavar="N", help="processes on this machine (one per core)")


def run_work(arguments: argparse.Namespace) -> int:
    """worthwhile work"""
    import_from_here()
    run, meter = imported(arguments.function), METERS.get(arguments.meter) or imported(arguments.meter)
    check_signature(run, arguments.function)
    with (
        Scheduler(arguments.store, arguments.name, goal=goal_from(arguments)) as scheduler,
        executor_on(arguments.on, arguments.address, arguments.slots) as executor,
    ):
        done = work(
            scheduler,
            arrivals_from(arguments.tasks),
            run,
            executor=executor,
            timeout=arguments.timeout,
            meter=meter,
            failed_reward=arguments.failed_reward,
            attempts=arguments.attempts,
            in_order=arguments.in_order,
            after=ShowFailures(),
            lease=arguments.lease,
            warm_up=None if arguments.warm_up is None else imported(arguments.warm_up),
        )
    show(asdict(done), done_text(done), arguments.json)
    if done.interrupted:
        return INTERRUPTED
    return int(done.failed > 0 and not done.reported)


class ShowFailures:
    """Called after every task: shows why it failed, each cause once."""

    def __init__(self) -> None:
        self.causes: set[str] = set()

    def __call__(self, finished: Finished) -> None:
        task = finished.task
        for option, cause in zip(finished.tried, finished.earlier, strict=True):
            self.show(f"task {task.id} ({task.kind}, {shown(option)}) failed and was tried again", cause)
        if finished.failure is not None:
            self.show(f"task {task.id} ({task.kind}, {shown(task.option)}) failed", finished.failure)

    def show(self, what: str, cause: str) -> None:
        if cause not in self.causes and len(self.causes) < MOST_CAUSES:
            self.causes.add(cause)
            last = " (no more reasons are shown)" * (len(self.causes) == MOST_CAUSES)
            sys.stderr.write(f"{what}: {cause}{last}\n")


def imported(path: str) -> Callable[..., Any]:
    """A function by MODULE:FUNCTION."""
    module, colon, name = path.partition(":")
    if not colon:
        raise BadParameter(f"{path!r} is no import path; write MODULE:FUNCTION, for instance jobs:train")
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except Exception as error:  # whatever a module may raise
        raise BadParameter(f"cannot import {path!r}: {type(error).__name__}: {error}") from None
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise BadParameter(f"{path!r} is {function!r}; name a function that is not async")
    return function


def check_signature(run: Callable[..., Any], path: str) -> None:
    """Refuse a function that cannot be called, before every task fails for that."""
    try:
        signature = inspect.signature(run)
    except (TypeError, ValueError):
        return  # some that are written in C do not say
    try:
        signature.bind("kind", "option", "payload")
    except TypeError as error:
        says = f"{path}{signature} cannot be called as run(kind, option, payload): {error}"
        raise BadParameter(f"{says}; write def {path.rpartition(':')[2]}(kind, option, payload)") from None


def arrivals_from(path: str) -> Iterator[Arrival]:
    """Tasks from a file with one JSON object per line, or from standard input."""
    if path == "-":
        yield from (arrival(text, f"standard input, line {line}", None) for line, text in enumerate(sys.stdin, 1))
        return
    try:
        with open(path, encoding="utf-8") as file:
            for line, text in enumerate(file, 1):
                yield arrival(text, f"{path}, line {line}", f"{Path(path).name}:{line}")
    except OSError as error:
        raise BadParameter(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadParameter(f"cannot read {path}: it is not UTF-8 ({error.reason})") from None


def arrival(text: str, where: str, key: str | None) -> Arrival:
    """A task from its line."""
    try:
        task = json.loads(text)
    except ValueError as error:
        raise BadTask(f"{where}: {error}; {SHAPE}") from None
    if not isinstance(task, dict):
        raise BadTask(f"{where}: {shortened(text)} is no object; {SHAPE}")
    for name in task:
        if name not in Arrival._fields:
            raise BadTask(f"{where}: a task has no {name!r}; {did_you_mean(name, Arrival._fields)}")
    for name in ("kind", "options"):
        if name not in task:
            raise BadTask(f"{where}: {name!r} is missing; {SHAPE}")
    try:
        check_text("kind", task["kind"])
        option_texts(plain_options(task["options"]))
        feature_text(task.get("features"))
    except BadTask as error:  # here, where its line is known
        raise BadTask(f"{where}: {error}") from None
    return Arrival(**{"key": key, **task})


def shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 40 else f"{text[:40]}…"


def done_text(done: Worked) -> str:
    """The answer to `worthwhile work`."""
    here, elsewhere = (" here", f", {done.elsewhere:,} done elsewhere") if done.elsewhere else ("", "")
    counts = f"{counted(done.done, 'task')} done{here}, {done.failed:,} of them failed{elsewhere}"
    counts += f", {done.skipped:,} were done before"
    if done.tried_again:
        counts += f", {done.tried_again:,} attempts followed a failed one"
    if done.dropped:
        counts += f", {done.dropped:,} were begun here and counted elsewhere"
    ratio = f", reward / cost of this run = {digits(done.reward / done.cost)}" if done.cost else ""
    interrupted = " (interrupted: run it again to go on)" if done.interrupted else ""
    why = f"\nmost frequent failure: {most_frequent(done.reasons)}" if done.reasons else ""
    return counts + ratio + interrupted + why


def run_train(arguments: argparse.Namespace) -> int:
    """worthwhile train"""
    if arguments.data != "bundled":
        from worthwhile.experiments.images import experiment

        return 0 if experiment.run(arguments, show) else INTERRUPTED
    from worthwhile.demo import bundled  # scikit-learn, which no other command needs

    arguments.tasks = 600 if arguments.tasks is None else arguments.tasks
    return train_all(bundled.stream(arguments.tasks, arguments.seed), bundled.train, arguments)


def check_seed(scheduler: Scheduler, seed: int, folder: Path) -> None:
    """Refuse a folder with another seed's tasks: two streams in one store would be counted as one."""
    for task in scheduler.latest(1):
        before = (task.key or "").removeprefix("bundled ").partition(".")[0]
        if before != str(seed):
            raise BadParameter(f"{folder} has the tasks of --seed {before}, not {seed}; name another folder with --out")


def train_all(tasks: Iterable[Arrival], run: Callable[..., Any], arguments: argparse.Namespace) -> int:
    """Train a stream of tasks while people watch, then compare what was earned with simple rules."""
    from worthwhile.demo.comparison import compare, save_comparison
    from worthwhile.demo.dashboard import dashboard
    from worthwhile.demo.view import View
    from worthwhile.execution.folder_lock import alone

    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    store, out = folder / "tasks.db", sys.stderr if arguments.json else sys.stdout
    with (
        Scheduler(str(store), policy=arguments.policy) as scheduler,
        alone(folder, partial(print, file=out), (other := View(scheduler, arguments.tasks, out)).draw, other.every),
        dashboard(store, arguments.port, out, arguments.policy) if arguments.dashboard else nullcontext(),
        executor_on(arguments.on, arguments.address, arguments.slots) as executor,
    ):
        check_seed(scheduler, arguments.seed, folder)
        view = View(scheduler, arguments.tasks, out)
        view.draw()
        done = work(scheduler, tasks, run, executor=executor, after=view)
        view.draw()
        scheduler.export(folder / "outcomes.csv")
    if not done.done + done.skipped:  # interrupted before the first, or none was asked for
        show(asdict(done), done_text(done), arguments.json)
        return INTERRUPTED if done.interrupted else 0
    comparison = compare(folder / "outcomes.csv")
    text, saved = save_comparison(comparison, done_text(done), folder)
    achieved, rules = float(comparison.so_far[-1]), dict(comparison.rules)
    facts = {**asdict(done), "achieved": achieved, "rules": rules, "saved": saved}
    show(facts, f"\n{text}\nsaved: {', '.join(saved)}", arguments.json)
    return INTERRUPTED if done.interrupted else 0
