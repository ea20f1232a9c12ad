"""All experiments with their constants cut, run once for all tests of this folder; how to read what they left."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from worthwhile.cli.main import main
from worthwhile.experiments import (
    EXPERIMENTS,
    Outcome,
    changes,
    delays,
    fading,
    figure_4,
    figure_5,
    omega_benchmark,
    proof_terms,
    recorded_tables,
    sensitivity,
    sizes,
    theorem,
)
from worthwhile.experiments.base import Columns
from worthwhile.experiments.records import read_record

SEED = 1
PAPER: dict[ModuleType, Mapping[str, Any]] = {  # large enough for what the tests say of verdicts
    figure_4: {"QUICK_TASKS": (1_000, 3_000), "QUICK_RUNS": 20},
    figure_5: {"QUICK_TASKS": 2_000, "QUICK_RUNS": 20},
    theorem: {"QUICK_DRAWN_TASKS": 300_000, "QUICK_MOST_RUNS": 100},
    proof_terms: {"QUICK_DRAWN_TASKS": 300_000, "QUICK_STEPWISE_RUNS": 30},
}
BEYOND: dict[ModuleType, Mapping[str, Any]] = {  # as a researcher would change a constant and run one again
    sensitivity: {"QUICK_TASKS": 500, "QUICK_RUNS": 2, "QUICK_PROBLEMS": 2, "SCALES": (0.01, 100.0)},
    changes: {"QUICK_TASKS": 2000, "QUICK_RUNS": 2, "QUICK_PROBLEMS": 2},
    fading: {"QUICK_TASKS": 2000, "QUICK_PROBLEMS": 2},
    delays: {"QUICK_TASKS": 2000, "QUICK_RUNS": 2, "QUICK_PROBLEMS": 2, "DELAYS": (0, 300)},
    sizes: {"QUICK_TASKS": 500, "QUICK_PROBLEMS": (2, 2), "SIZES": (10, 50)},
    omega_benchmark: {"QUICK_TASKS": 300, "QUICK_PROBLEMS": 2, "OPTIONS": (3, 6)},
    recorded_tables: {"QUICK_TASKS": 1000, "QUICK_RUNS": 2},
}
DRAWN: dict[ModuleType, Mapping[str, Any]] = {  # where only the files matter
    figure_4: {"QUICK_TASKS": (200, 400), "QUICK_RUNS": 3},
    figure_5: {"QUICK_TASKS": 200, "QUICK_RUNS": 3},
}


@contextmanager
def cut(constants: Mapping[ModuleType, Mapping[str, Any]]) -> Iterator[None]:
    """Experiments of these sizes."""
    with pytest.MonkeyPatch.context() as patch:
        for module, values in constants.items():
            for name, value in values.items():
                patch.setattr(module, name, value)  # an error if there is none
        yield


def write_two_tables(folder: Path) -> Path:
    """Two recorded tables: in one the cheapest option is best, in the other it is not."""
    folder.mkdir(exist_ok=True)
    draw = random.Random(3)
    for name, least in (("cheap", 0.0), ("set-up", 3.0)):
        rows = [
            f"{kind},{item},{option},{1.0 - 0.5**option + draw.random() / 20},{least + option * (1 + kind)}"
            for kind in range(2)
            for item in range(30)
            for option in range(1, 5)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["task_type,item_id,option,reward,cost", *rows]) + "\n")
    (folder / "notes.txt").write_text("not a table\n")
    return folder


def run_everything(folder: Path, tables: Path, seed: int = SEED) -> None:
    """All of them, on the command line."""
    words = ["reproduce", "--quick", "--seed", str(seed), "--out", str(folder), "--tables", str(tables)]
    with cut(PAPER | BEYOND):
        assert main(words) == 0


def is_complete(folder: Path) -> bool:
    return len(list(folder.glob("*/outcome.json"))) == len(EXPERIMENTS)


def outcome_in(folder: Path, name: str) -> Outcome:
    """An experiment's words, claims and tables, as its files have them."""
    record = read_record(folder / name)
    tables = {table.removesuffix(".csv"): columns(folder / name / table) for table in record.tables}
    return Outcome(record.words, tables, {}, record.claims)


def columns(path: Path) -> Columns:
    """A CSV file with its numbers as numbers."""
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return {name: [plain(row[number]) for row in rows] for number, name in enumerate(names)}


def plain(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "False": False}.get(text, text)
