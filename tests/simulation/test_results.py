"""Results: a tidy table, files that say where they come from, and never half a file."""

from __future__ import annotations

import csv
import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import worthwhile
from worthwhile import simulate
from worthwhile.errors import BadParameter
from worthwhile.problem import seven_kinds
from worthwhile.simulation.results import MEASURES, Results

COLUMNS = ["policy", "run", "task", *MEASURES]


@pytest.fixture(scope="module")
def result() -> Results:
    problem = replace(seven_kinds(), reward_unit="labels", cost_unit="$")
    return simulate(problem, ["dol-rm", "random-option"], tasks=2000, runs=5, seed=42, delay=(1, 3))


def test_the_table_is_tidy(result: Results) -> None:
    table = result.columns()
    assert list(table) == COLUMNS
    assert {len(column) for column in table.values()} == {5 * 2 * len(result.marks)}
    row = (table["policy"] == "random-option") & (table["run"] == 3) & (table["task"] == 2000)
    assert table["regret"][row].tolist() == [result.measure("regret")[3, 1, -1]]
    assert table["ratio"][row].tolist() == [table["reward"][row][0] / table["cost"][row][0]]


def test_measures_follow_their_definitions(result: Results) -> None:
    best = result.best
    expected = result.measure("regret") / (result.measure("expected_cost") * best.ratio)
    assert np.allclose(result.measure("loss"), expected, rtol=1e-12)
    lucky = 1.0 - result.measure("expected_ratio") / best.ratio  # the same, but for the luck of arrivals
    assert np.allclose(result.measure("loss")[:, :, -1], lucky[:, :, -1], atol=0.02)
    assert result.measure("price").shape == (5, 2, len(result.marks))
    regret = result.measure("regret")[:, 0, -1]
    assert result.mean("regret")["dol-rm"] == pytest.approx(regret.mean())
    assert result.error("regret")["dol-rm"] == pytest.approx(regret.std(ddof=1) / np.sqrt(5))
    with pytest.raises(BadParameter, match="no measure 'joy'; known: reward"):
        result.measure("joy")


def test_one_run_has_no_error_bar() -> None:
    single = simulate(seven_kinds(), ["optimum"], tasks=10, runs=1)
    assert np.isnan(single.error("reward")["optimum"])


def test_data_frames_take_results_as_they_are(result: Results) -> None:
    expected = result.columns()
    frame, other = pandas.DataFrame.from_arrow(result), polars.DataFrame(result)
    assert list(frame.columns) == other.columns == list(result.to_pandas().columns) == COLUMNS
    for name in COLUMNS:
        assert frame[name].tolist() == other[name].to_list() == expected[name].tolist() or name == "price"
    assert np.array_equal(frame["price"], expected["price"], equal_nan=True)
    assert np.array_equal(other["price"], expected["price"], equal_nan=True)


def check_provenance(about: dict[str, object]) -> None:
    """Version, seed, command, platform and units are all there."""
    assert about["worthwhile"] == worthwhile.__version__
    assert about["seed"] == 42
    assert about["command"] == " ".join(sys.argv)
    assert sys.platform in str(about["platform"]).lower() or sys.platform == "darwin"
    assert about["units"] == {"reward": "labels", "cost": "$"}
    assert (about["tasks"], about["runs"], about["delay"], about["finished_runs"]) == (2000, 5, [1, 3], 5)
    assert about["problem"] == "seven-kinds"


def test_parquet_carries_everything(result: Results, tmp_path: Path) -> None:
    assert result.save(tmp_path / "new" / "out.parquet") == [tmp_path / "new" / "out.parquet"]
    table = pyarrow.parquet.read_table(tmp_path / "new" / "out.parquet")
    check_provenance(json.loads(table.schema.metadata[b"worthwhile"]))
    assert table.column_names == COLUMNS
    for name, column in result.columns().items():
        found = table[name].to_numpy(zero_copy_only=False)
        assert found.tolist() == column.tolist() or found.tobytes() == column.tobytes(), name


def test_csv_reads_back_to_the_bit_and_has_its_story_beside_it(result: Results, tmp_path: Path) -> None:
    path, about = result.save(tmp_path / "out.csv")
    check_provenance(json.loads(about.read_text()))
    assert about.name == "out.csv.about.json"
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == COLUMNS
    for name, text in zip(header, zip(*rows, strict=True), strict=True):
        column = result.columns()[name]
        if name == "policy":
            assert list(text) == column.tolist()
        else:
            assert np.array(text, dtype=column.dtype).tobytes() == column.tobytes(), name


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """A disk that is full after so many bytes of one file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_leaves_the_old_file_and_no_half_file(result: Results, tmp_path: Path, name: str) -> None:
    saved = result.save(tmp_path / name)
    before = {path: path.read_bytes() for path in saved}
    with files_at_most(4096), pytest.raises(BadParameter, match=f"cannot write .*{name}"):
        result.save(tmp_path / name)
    assert {path: path.read_bytes() for path in saved} == before
    assert sorted(tmp_path.iterdir()) == sorted(saved)


def test_a_path_that_cannot_be_is_refused(result: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadParameter, match="cannot write"):
        result.save(tmp_path / "file" / "out.csv")
    with pytest.raises(BadParameter, match=r"saved as .parquet or .csv, not '.txt'"):
        result.save(tmp_path / "out.txt")
    assert (tmp_path / "file").read_text() == "mine"
