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


def keep(experiment: Experiment, scale: Scale, outcome: Outcome, folder: Path, failure: str = "") -> Record:
    """Write all files of an experiment, its record last; what an earlier run left behind is removed first.

    A failed one is kept too, with nothing but its failure, so that no earlier result passes for this one.
    """
    tables = None if scale.tables is None else str(scale.tables)
    about = provenance({"experiment": experiment.name, "seed": scale.seed, "quick": scale.quick, "tables": tables})
    remove_files(folder)
    for name, columns in outcome.data.items():
        replace_file(folder / f"{name}.csv", partial(write_csv, columns))
    for name, figure in outcome.figures.items():
        save_figure(figure, folder, name, {"Title": experiment.title, "Description": json.dumps(about)})
    files, claims = [f"{name}.csv" for name in outcome.data], list(outcome.claims)
    record = Record(*experiment[:2], outcome.words, claims, files, list(outcome.figures), failure, about)
    text = json.dumps(as_facts(record), indent=2, ensure_ascii=False) + "\n"
    replace_file(folder / RECORD, lambda new: new.write_text(text, encoding="utf-8"))
    return record


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


def as_facts(record: Record) -> dict[str, Any]:
    """The record as plain dictionaries."""
    return {**record._asdict(), "claims": [claim._asdict() for claim in record.claims]}


def read_record(folder: Path) -> Record:
    """The record in an experiment's folder."""
    path = folder / RECORD
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return Record(**{**facts, "claims": [Claim(**claim) for claim in facts["claims"]]})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadParameter(
            f"{path} is no record of an experiment ({error}); remove it or name another folder"
        ) from None


def read_records(folder: Path, order: Sequence[str]) -> list[Record]:
    """All records below a folder: experiments in their usual order, then those that are no longer known."""
    records = [read_record(path.parent) for path in sorted(folder.glob(f"*/{RECORD}"))]
    rank = {name: number for number, name in enumerate(order)}
    return sorted(records, key=lambda record: rank.get(record.name, len(rank)))


def remove_files(folder: Path) -> None:
    """Remove the files that the record in a folder names, and the record first of all."""
    if not (folder / RECORD).is_file():
        return
    old = read_record(folder)
    drawn = [f"{name}{suffix}" for name in old.figures for suffix in FORMATS]
    for name in [RECORD, *old.tables, *drawn]:
        (folder / name).unlink(missing_ok=True)
