"""What is kept of an experiment: its tables as CSV, its figures as PNG and SVG, its words and verdicts as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadParameter, MissingExtra
from worthwhile.experiments.base import Claim, Columns, Experiment, Outcome, Scale
from worthwhile.plots import DOTS_PER_INCH, FORMATS
from worthwhile.tables import provenance, replace_file

RECORD = "outcome.json"


class Record(NamedTuple):
    """What `outcome.json` holds, and the names of the files beside it."""

    name: str
    title: str
    words: str
    claims: Sequence[Claim]
    tables: Sequence[str]  # NAME.csv
    figures: Sequence[str]  # NAME, for NAME.png and NAME.svg
    failure: str  # empty if all went well
    provenance: Mapping[str, Any]


def keep(experiment: Experiment, scale: Scale, outcome: Outcome, folder: Path) -> Record:
    """Write all files of an experiment, its record last, and remove what an earlier run of it left behind."""
    about = about_run(experiment, scale)
    remove_files(folder)
    for name, columns in outcome.data.items():
        replace_file(folder / f"{name}.csv", partial(write_csv, columns))
    for name, figure in outcome.figures.items():
        save_figure(figure, folder, name, {"Title": experiment.title, "Description": json.dumps(about)})
    tables, figures = [f"{name}.csv" for name in outcome.data], list(outcome.figures)
    record = Record(*experiment[:2], outcome.words, list(outcome.claims), tables, figures, "", about)
    write_record(record, folder)
    return record


def keep_failure(experiment: Experiment, scale: Scale, reason: str, folder: Path) -> Record:
    """Put on record that an experiment failed, so that no earlier result passes for this one."""
    remove_files(folder)
    record = Record(*experiment[:2], "", [], [], [], reason, about_run(experiment, scale))
    write_record(record, folder)
    return record


def about_run(experiment: Experiment, scale: Scale) -> dict[str, Any]:
    """Version, command, platform, and what decides the numbers."""
    tables = None if scale.tables is None else str(scale.tables)
    return provenance({"experiment": experiment.name, "seed": scale.seed, "quick": scale.quick, "tables": tables})


def write_csv(columns: Columns, path: Path) -> None:
    """A table as text; numbers in full, so that they read back to the bit."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(map(plain, column) for column in columns.values()), strict=True))


def plain(value: Any) -> Any:
    """A NumPy number as Python's own, which is written in full."""
    return value.item() if isinstance(value, np.generic) else value


def save_figure(figure: Any, folder: Path, name: str, about: Mapping[str, str]) -> None:
    """A figure in all formats; letters are drawn as outlines, so that it looks the same everywhere."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("a figure", "plot") from None
    with matplotlib.rc_context({"svg.hashsalt": "worthwhile", "svg.fonttype": "path"}):
        for suffix in FORMATS:
            metadata = {**about, "Date": None} if suffix == ".svg" else about  # matplotlib would write the time
            settings = {"format": suffix[1:], "metadata": metadata, "bbox_inches": "tight", "dpi": DOTS_PER_INCH}
            replace_file(folder / f"{name}{suffix}", partial(figure.savefig, **settings))


def write_record(record: Record, folder: Path) -> None:
    """The record as JSON."""
    text = json.dumps(as_facts(record), indent=2, ensure_ascii=False) + "\n"
    replace_file(folder / RECORD, lambda new: new.write_text(text, encoding="utf-8"))


def as_facts(record: Record) -> dict[str, Any]:
    """The record as plain dictionaries."""
    return {**record._asdict(), "claims": [claim._asdict() for claim in record.claims]}


def read_record(folder: Path) -> Record:
    """The record in an experiment's folder."""
    path = folder / RECORD
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return Record(**{**facts, "claims": [Claim(**claim) for claim in facts["claims"]]})
    except (OSError, ValueError, TypeError, KeyError) as reason:
        raise BadParameter(
            f"{path} is no record of an experiment ({reason}); remove it or name another folder"
        ) from None


def read_records(folder: Path, order: Sequence[str]) -> list[Record]:
    """All records below a folder: experiments in their usual order, then those that are no longer known."""
    found = [read_record(path.parent) for path in sorted(folder.glob(f"*/{RECORD}"))]
    place = {name: number for number, name in enumerate(order)}
    return sorted(found, key=lambda record: place.get(record.name, len(place)))


def remove_files(folder: Path) -> None:
    """Remove the files that the record in a folder names, and the record first of all."""
    if not (folder / RECORD).is_file():
        return
    old = read_record(folder)
    drawn = [f"{name}{suffix}" for name in old.figures for suffix in FORMATS]
    for name in [RECORD, *old.tables, *drawn]:
        (folder / name).unlink(missing_ok=True)
