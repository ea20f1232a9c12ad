"""The commands that run tasks: a function of one's own, or the bundled trainings."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from worthwhile.cli.arguments import count, whole
from worthwhile.cli.live import STORE, Show
from worthwhile.errors import BadParameter, BadTask
from worthwhile.execution.arrivals import Arrival
from worthwhile.execution.clusters import PLACES, executor_on
from worthwhile.execution.metering import Meter
from worthwhile.execution.worker import Finished, Worked, work
from worthwhile.formatting import digits, shown
from worthwhile.live.scheduler import Scheduler

METERS: dict[str, Meter] = {"wall": time.perf_counter, "cpu": time.process_time}
INTERRUPTED = 130  # 128 + SIGINT
MOST_REASONS = 10  # of failures
WORK = """\
Calls run(kind, option, payload) for every task, in other processes, and reports what it returns: a reward, or a
worthwhile.Outcome. Tasks are JSON, one per line: {"kind": "weather", "options": [1, 5], "payload": null, "key": "a"}.
A task with a key is done once. In a file, a line without a key gets the file's name and the line's number as its key.

examples:
  worthwhile work jobs:train --store tasks.db --tasks jobs.jsonl
  worthwhile work jobs:train --store tasks.db --timeout 600 --slots 4 < jobs.jsonl
  worthwhile work jobs:train --store tasks.db --tasks jobs.jsonl --on dask --address tcp://scheduler:8786

Ctrl-C lets running tasks end (a second one does not), the exit code is 130; the same command again goes on. Why tasks
failed is said once per reason; if none went well, the exit code is 1.
"""
TRAIN = """\
Trains small networks on the data that scikit-learn brings along, in other processes, and learns how many epochs are
worth their time for each kind. Everything goes into the folder --out: the scheduler's store, all outcomes as a table
that `worthwhile replay` reads, a report and a figure. A dashboard shows it while it runs, at the address that is said
first. The same command again goes on where it was.

examples:
  worthwhile train --data bundled --tasks 600 --out results/train
  worthwhile replay results/train/outcomes.csv --cost-unit s

With a folder of images it does the paper's real-world experiment instead: five classifiers in Keras, a pilot, its
replay, and a stream of tasks that several policies train (docs/training.md):
  worthwhile train --data images --size 48 --steps 0.2 --tasks 20 --vgg19 none --out results/images
"""


def add_commands(commands: Any, settings: dict[str, Any], show: Show) -> None:
    """The commands that run tasks."""
    one = commands.add_parser("work", help="run tasks and report them", epilog=WORK, **settings)
    one.add_argument("function", metavar="MODULE:FUNCTION", help="called as run(kind, option, payload)")
    one.add_argument("--store", required=True, metavar="STORE", help=STORE)
    one.add_argument("--name", default="default", help="of the scheduler (default)")
    one.add_argument("--tasks", default="-", metavar="FILE", help="one JSON object per line (standard input)")
    one.add_argument("--timeout", type=float, metavar="SECONDS", help="a task that runs longer has failed")
    one.add_argument("--meter", default="wall", metavar="METER", help="the cost: wall, cpu or MODULE:FUNCTION (wall)")
    one.add_argument("--failed-reward", type=float, default=0.0, metavar="R", help="of a task that fails (0)")
    one.add_argument("--in-order", action="store_true", help="report in the order of arrival")
    add_place(one)
    one.set_defaults(run=partial(run_work, show=show))

    one = commands.add_parser("train", help="trainings of real networks as tasks", epilog=TRAIN, **settings)
    one.add_argument("--data", default="bundled", help="bundled: what scikit-learn brings along, or a folder of images")
    one.add_argument("--tasks", type=count, metavar="T", help="(600; with images 100 per run)")
    one.add_argument("--seed", type=count, default=0, metavar="S", help="of arrivals and trainings (0)")
    one.add_argument("--policy", metavar="NAME", help="as for `worthwhile simulate` (the default policy)")
    one.add_argument("--out", type=Path, default=Path("results/train"), metavar="FOLDER", help="(results/train)")
    one.add_argument("--no-dashboard", dest="dashboard", action="store_false", help="in the terminal only")
    one.add_argument("--port", type=whole, metavar="N", help="of the dashboard (8080, or the next that is free)")
    add_place(one)
    add_images(one)
    one.set_defaults(run=partial(run_train, show=show))


def add_images(command: Any) -> None:
    """What `train` needs to know of a folder of images."""
    add = command.add_argument_group("with a folder of images (docs/training.md)").add_argument
    add("--pilot", type=whole, default=3, metavar="N", help="trainings of every kind to the end (3)")
    add("--runs", type=whole, default=1, metavar="N", help="streams of tasks that every policy trains (1)")
    add("--size", type=whole, metavar="PIXELS", help="of all images (as in the paper)")
    add("--images", type=whole, metavar="N", help="at most, per class (as in the paper)")
    add("--steps", type=float, default=1.0, metavar="SHARE", help="of the paper's steps per epoch (1)")
    add("--costs", default="0.05", metavar="F", help="normalised with this floor, or seconds (0.05)")
    add("--vgg19", default="imagenet", metavar="FILE", help="weights; imagenet: Keras' download; none (imagenet)")
    add("--meter", choices=("wall", "cpu"), default="wall", help="which seconds (wall)")


def add_place(command: Any, usual: str | None = "local") -> None:
    """Where tasks run."""
    words = f"processes here, or a cluster ({usual or 'threads of this process'})"
    command.add_argument("--on", choices=PLACES, default=usual, help=words)
    command.add_argument("--address", help="of the cluster (a local one is started)")
    command.add_argument("--slots", type=whole, metavar="N", help="local processes (one per core)")


def run_work(arguments: argparse.Namespace, show: Show) -> int:
    """worthwhile work"""
    sys.path.append(os.getcwd())  # last, so that no installed module is hidden
    run, meter = imported(arguments.function), METERS.get(arguments.meter) or imported(arguments.meter)
    with (
        Scheduler(arguments.store, arguments.name) as scheduler,
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
            in_order=arguments.in_order,
            after=Complaints(),
        )
    show(asdict(done), done_text(done), arguments.json)
    if done.interrupted:
        return INTERRUPTED
    return int(0 < done.reported == done.failed)  # 1 if none went well


class Complaints:
    """Says why tasks failed, every reason once."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def __call__(self, finished: Finished) -> None:
        reason = finished.failure
        if reason is not None and reason not in self.said and len(self.said) < MOST_REASONS:
            self.said.add(reason)
            task, last = finished.task, " (no more reasons are shown)" * (len(self.said) == MOST_REASONS)
            sys.stderr.write(f"task {task.id} ({task.kind}, {shown(task.option)}) failed: {reason}{last}\n")


def imported(path: str) -> Callable[..., Any]:
    """A function by MODULE:FUNCTION."""
    module, found, name = path.partition(":")
    if not found:
        raise BadParameter(f"{path!r} is no import path; write MODULE:FUNCTION, for instance jobs:train")
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except Exception as reason:  # whatever a module may raise
        raise BadParameter(f"cannot import {path!r}: {type(reason).__name__}: {reason}") from None
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise BadParameter(f"{path!r} is {function!r}; name a function that is not async")
    return function


def arrivals_from(path: str) -> Iterator[Arrival]:
    """Tasks from a file with one JSON object per line, or from standard input."""
    if path == "-":
        yield from (arrival(text, f"standard input, line {line}", None) for line, text in enumerate(sys.stdin, 1))
        return
    try:
        with open(path, encoding="utf-8") as file:
            for line, text in enumerate(file, 1):
                yield arrival(text, f"{path}, line {line}", f"{Path(path).name}:{line}")
    except OSError as reason:
        raise BadParameter(f"cannot read {path}: {reason.strerror}") from None
    except UnicodeDecodeError as reason:
        raise BadParameter(f"cannot read {path}: it is not UTF-8 ({reason.reason})") from None


def arrival(text: str, where: str, key: str | None) -> Arrival:
    """A task from its line."""
    try:
        one = {"key": key, **json.loads(text)}
        return Arrival(**one)
    except (ValueError, TypeError) as reason:
        shape = '{"kind": …, "options": […], "payload": …, "key": …}'
        raise BadTask(f"{where}: {reason}; a task is a JSON object like {shape}") from None


def done_text(done: Worked) -> str:
    """The answer to `worthwhile work`."""
    counts = f"{done.reported:,} tasks done, {done.failed:,} of them failed, {done.skipped:,} were done before"
    ratio = f", reward / cost of this run = {digits(done.reward / done.cost)}" if done.cost else ""
    return counts + ratio + (" (interrupted: run it again to go on)" if done.interrupted else "")


def run_train(arguments: argparse.Namespace, show: Show) -> int:
    """worthwhile train"""
    if arguments.data != "bundled":
        from worthwhile.experiments.images import experiment

        return experiment.run(arguments, show)
    arguments.tasks = 600 if arguments.tasks is None else arguments.tasks
    from worthwhile.demo import bundled  # scikit-learn, which no other command needs

    return train_all(bundled.stream(arguments.tasks, arguments.seed), bundled.train, arguments, show)


def check_seed(scheduler: Scheduler, seed: int, folder: Path) -> None:
    """Two streams in one folder would be counted as one."""
    for task in scheduler.latest(1):
        before = (task.key or "").removeprefix("bundled ").partition(".")[0]
        if before != str(seed):
            raise BadParameter(f"{folder} has the tasks of --seed {before}, not {seed}; name another folder with --out")


def train_all(tasks: Iterable[Arrival], run: Callable[..., Any], arguments: argparse.Namespace, show: Show) -> int:
    """Schedule a stream of trainings, watched on the way, and compare what came of it with simple rules."""
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
        dashboard(store, arguments.port, out) if arguments.dashboard else nullcontext(),
        executor_on(arguments.on, arguments.address, arguments.slots) as executor,
    ):
        check_seed(scheduler, arguments.seed, folder)
        view = View(scheduler, arguments.tasks, out)
        view.draw()
        done = work(scheduler, tasks, run, executor=executor, after=view)
        view.draw()
        scheduler.export(folder / "outcomes.csv")
    if not done.reported + done.skipped:  # interrupted before the first, or none was asked for
        show(asdict(done), done_text(done), arguments.json)
        return INTERRUPTED if done.interrupted else 0
    found = compare(folder / "outcomes.csv")
    text, saved = save_comparison(found, done_text(done), folder)
    facts = {**asdict(done), "achieved": float(found.so_far[-1]), "rules": dict(found.rules), "saved": saved}
    show(facts, f"\n{text}\nsaved: {', '.join(saved)}", arguments.json)
    return INTERRUPTED if done.interrupted else 0
