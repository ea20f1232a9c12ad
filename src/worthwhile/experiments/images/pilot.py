"""The pilot: every task trained to the end several times, with what it was after fewer epochs, as a recorded table.

It gives the bounds of the normalisation, and a table on which policies can be compared in seconds.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from worthwhile.errors import BadParameter, Error
from worthwhile.execution.executors import LocalExecutor
from worthwhile.experiments.base import by_column
from worthwhile.experiments.figure_5_worlds import SETUP, TABLE
from worthwhile.experiments.images import networks
from worthwhile.experiments.images.tasks import TASKS, Curve, Setting, learn
from worthwhile.experiments.records import write_csv
from worthwhile.tables import provenance, replace_file

COLUMNS = ("task_type", "item_id", "option", "reward", "cost", SETUP)
SEEDS = 1000  # the pilot's trainings begin here, the stream's at the seed's own numbers
Tell = Callable[[str], None]
Rows = list[dict[str, Any]]


def pilot(folder: Path, tasks: Sequence[str], count: int, setting: Setting, executor: Executor, tell: Tell) -> Path:
    """Do the trainings that the table in the folder does not have yet; where the table is."""
    path = folder / f"{TABLE}.csv"
    rows = recorded(path, setting)
    done = {(row["task_type"], str(row["item_id"])) for row in rows}
    wanted = [(task, number) for number in range(count) for task in tasks if (task, str(number)) not in done]
    for ready, (task, number, curve) in enumerate(trainings(wanted, setting, executor), 1):
        rows += rows_of(task, number, curve)
        rows.sort(key=lambda row: (list(TASKS).index(row["task_type"]), int(row["item_id"]), int(row["option"])))
        keep(path, rows, setting)
        epochs, (area, seconds) = list(curve.points.items())[-1]
        words = f"{epochs} epochs, AUC {area:.3f}, {seconds:.1f} s after {curve.setup:.1f} s of set-up"
        tell(f"pilot {ready} of {len(wanted)}: {task}, {words}")
    return path


def trainings(
    wanted: Sequence[tuple[str, int]], setting: Setting, executor: Executor
) -> Iterator[tuple[str, int, Curve]]:
    """As they end; those that have not begun are dropped when something goes wrong."""
    futures: dict[Future[Curve], tuple[str, int]] = {}
    try:
        for task, number in wanted:
            futures[executor.submit(learn, task, TASKS[task].epochs[-1], SEEDS + number, setting)] = task, number
        for future in as_completed(futures):
            task, number = futures[future]
            try:
                curve = future.result()
            except Error:
                raise
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise Error(f"{task}: training {number} of the pilot failed ({why})") from None
            yield task, number, curve
    except BaseException:
        for future in futures:
            future.cancel()
        if isinstance(executor, LocalExecutor):
            executor.kill()  # what is running would not be recorded any more
        raise


def rows_of(task: str, number: int, curve: Curve) -> Rows:
    return [
        dict(zip(COLUMNS, (task, number, epochs, area, seconds, curve.setup), strict=True))
        for epochs, (area, seconds) in curve.points.items()
    ]


def recorded(path: Path, setting: Setting) -> Rows:
    """What an earlier pilot of the same setting has recorded."""
    if not path.is_file():
        return []
    beside = path.with_name(f"{path.name}.about.json")
    try:
        settings = json.loads(beside.read_text(encoding="utf-8"))["setting"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadParameter(f"{beside} does not say how {path.name} came about ({error}); use another --out") from None
    if settings != described(setting):
        other = ", ".join(f"{name} {value}" for name, value in settings.items())
        raise BadParameter(f"{path} is a pilot with other settings ({other}); use those, or another --out")
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def keep(path: Path, rows: Rows, setting: Setting) -> None:
    """Write the table, and beside it where it comes from."""
    about = provenance({"setting": described(setting), "words": words(setting), "cores": os.cpu_count()})
    beside = path.with_name(f"{path.name}.about.json")
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    replace_file(beside, lambda new: new.write_text(text, encoding="utf-8"))
    replace_file(path, partial(write_csv, by_column(COLUMNS, (row.values() for row in rows))))


def described(setting: Setting) -> dict[str, Any]:
    """What decides the numbers; not the folder, which may be moved, but what is in it."""
    k = networks.keras()
    facts = {name: value for name, value in setting._asdict().items() if name != "folder"}
    return {**facts, "data": fingerprint(Path(setting.folder)), "keras": k.__version__, "backend": k.backend.backend()}


def fingerprint(folder: Path) -> str:
    """Of the names and sizes of all images."""
    files = sorted(f"{path.relative_to(folder)} {path.stat().st_size}" for path in folder.glob("*/*/*"))
    return hashlib.sha256("\n".join(files).encode()).hexdigest()[:12]


def words(setting: Setting) -> str:
    """The setting in a sentence."""
    size = f"images of {setting.size} × {setting.size} pixels" if setting.size else "images of the paper's sizes"
    images = f"at most {setting.images} of each class" if setting.images else "all there are, up to the paper's number"
    steps = f"{'' if setting.steps == 1.0 else f'{setting.steps:g} × '}the paper's steps per epoch"
    weights = "VGG19 without ImageNet weights" if setting.weights == networks.NONE else "VGG19 with ImageNet weights"
    cost = {"wall": "wall-clock", "cpu": "CPU"}[setting.meter]
    return f"{size}, {images}, {steps}, {weights}; {cost} seconds"
