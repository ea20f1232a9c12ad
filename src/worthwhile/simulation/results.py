"""What a simulation found: curves per policy and run, as a tidy table, and in files that say where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadParameter, MissingExtra
from worthwhile.optimum import Optimum, loss
from worthwhile.problem import Problem
from worthwhile.simulation.loop import TOTALS
from worthwhile.state import Floats
from worthwhile.tables import provenance, replace_file

MEASURES = (*TOTALS, "price", "ratio", "expected_ratio", "loss")


@dataclass(frozen=True)
class Results:
    """Totals and θ of every policy in every run at every mark."""

    problem: Problem
    best: Optimum
    policies: tuple[str, ...]
    marks: npt.NDArray[np.int64]
    runs: npt.NDArray[np.int64]
    curves: Floats  # (runs, policies, marks, totals and θ)
    optimum: Floats  # (marks, 2): reward and cost of the optimum by then
    settings: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    goal: Optimum | None = None  # what is best where there is a floor or a budget to keep

    def measure(self, name: str) -> Floats:
        """(runs, policies, marks) of one measure: see MEASURES."""
        if name not in MEASURES:
            raise BadParameter(f"no measure {name!r}; known: {', '.join(MEASURES)}")
        with np.errstate(divide="ignore", invalid="ignore"):  # no cost drawn yet, or θ* = 0
            if name == "ratio":
                return self.measure("reward") / self.measure("cost")
            if name == "expected_ratio":
                return self.measure("expected_reward") / self.measure("expected_cost")
            if name == "loss":
                best = self.optimum[:, 0] / self.optimum[:, 1]
                return loss(best, best - self.measure("regret") / self.measure("expected_cost"))  # type: ignore[no-any-return]
        return self.curves[..., (*TOTALS, "price").index(name)]

    def mean(self, name: str) -> dict[str, float]:
        """The mean over runs at the last task, per policy."""
        return dict(zip(self.policies, self.measure(name)[:, :, -1].mean(axis=0).tolist(), strict=True))

    def error(self, name: str) -> dict[str, float]:
        """The standard error of `mean`."""
        last = self.measure(name)[:, :, -1]
        spread = last.std(axis=0, ddof=1) if len(last) > 1 else np.full(last.shape[1], np.nan)
        return dict(zip(self.policies, (spread / np.sqrt(len(last))).tolist(), strict=True))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """A tidy table: one row per policy, run and mark."""
        shape = self.curves.shape[:3]
        index = np.broadcast_to(np.arange(len(self.policies))[:, None], shape).ravel()
        table: dict[str, npt.NDArray[Any]] = {
            "policy": np.array(self.policies, dtype=object)[index],
            "run": np.broadcast_to(self.runs[:, None, None], shape).ravel(),
            "task": np.broadcast_to(self.marks, shape).ravel(),
        }
        return table | {name: self.measure(name).ravel() for name in MEASURES}

    @property
    def provenance(self) -> dict[str, Any]:
        """Version, seed, command, platform and units."""
        units = {"reward": self.problem.reward_unit, "cost": self.problem.cost_unit}
        done = {"problem": self.problem.name, "units": units, "finished_runs": len(self.runs)}
        return provenance({**self.settings, **done})

    def to_arrow(self) -> Any:
        """The tidy table as a pyarrow.Table, with its provenance in the schema."""
        try:
            import pyarrow
        except ImportError:
            raise MissingExtra("Arrow, Parquet and data frames", "tables") from None
        table = pyarrow.table(self.columns())
        return table.replace_schema_metadata({"worthwhile": json.dumps(self.provenance)})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's interchange protocol: pandas, Polars and DuckDB take a Results as it is."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The tidy table as a pandas.DataFrame."""
        return self.to_arrow().to_pandas()

    def save(self, path: str | Path) -> list[Path]:
        """Write .parquet or .csv; a CSV has no room for provenance, so that goes to `name.csv.about.json` beside it."""
        path = Path(path)
        if path.suffix == ".parquet":
            table = self.to_arrow()
            import pyarrow.parquet

            replace_file(path, lambda new: pyarrow.parquet.write_table(table, new))
            return [path]
        if path.suffix != ".csv":
            raise BadParameter(f"{path}: results are saved as .parquet or .csv, not {path.suffix!r}")
        beside = path.with_name(path.name + ".about.json")
        replace_file(path, self.write_csv)
        replace_file(beside, lambda new: new.write_text(json.dumps(self.provenance, indent=2) + "\n"))
        return [path, beside]

    def write_csv(self, path: Path) -> None:
        """The tidy table as text; numbers in full, so that they read back to the bit."""
        import csv

        columns = self.columns()
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
