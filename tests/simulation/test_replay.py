"""Replay: the very item's row where the table is crossed, a random row of the cell elsewhere."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from worthwhile import Scheduler
from worthwhile.errors import BadTable
from worthwhile.optimum import solve
from worthwhile.simulation.environments import replay
from worthwhile.simulation.simulator import simulate
from worthwhile.tables import COLUMNS, Table, as_table, read_table
from worthwhile.testing import check_environment

Row = tuple[str, str, str, float, float]


def crossed_rows() -> list[Row]:
    """Items 0 … 11 of x and 0 … 3 of y, shuffled; the reward names item and option, the cost the option."""
    rows: list[Row] = []
    for kind, sign, items, options in (("x", 1, 12, ("1", "5", "10")), ("y", -1, 4, ("5", "20"))):
        for item in range(items):
            rows += [(kind, f"i{item}", each, sign * (item + 100.0 * int(each)), float(each)) for each in options]
    return [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]


def table_of(rows: list[Row]) -> Table:
    return as_table("made", dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def answers(table: Table, count: int = 4000, **settings: Any) -> list[tuple[int, list[tuple[float, float]]]]:
    """The kind of every task, and what each option of it would bring and cost."""
    environment = replay(table, **settings)
    kinds, latents = environment.world.draw(np.random.default_rng(3), count)
    offers = [np.flatnonzero(row).tolist() for row in environment.problem.offered]
    return [
        (int(kind), [environment.world.feedback(kind, option, latent) for option in offers[kind]])
        for kind, latent in zip(kinds, latents, strict=True)
    ]


def test_a_crossed_table_is_recognised() -> None:
    rows = crossed_rows()
    assert table_of(rows).crossed
    assert not table_of(rows[1:]).crossed
    assert not table_of([*rows, rows[0]]).crossed  # the same row twice
    assert table_of([row for row in rows if row[0] == "y"]).crossed


def test_the_same_item_answers_for_every_option() -> None:
    table, seen = table_of(crossed_rows()), set()
    for kind, pairs in answers(table):
        items = {abs(reward) % 100 for reward, _ in pairs}
        assert len(items) == 1, "one task was answered from the rows of two items"
        expected = (1, 5, 10) if kind == 0 else (5, 20)
        sign, item = (1 if kind == 0 else -1), items.pop()
        assert pairs == [(sign * (item + 100.0 * option), float(option)) for option in expected]
        seen.add((kind, item))
    assert seen == {(0, item) for item in range(12)} | {(1, item) for item in range(4)}


def test_cells_are_resampled_evenly_where_the_table_is_not_crossed() -> None:
    rows = [("x", f"i{item}", "a", float(item), 1.0) for item in range(5)]
    rows += [("x", f"j{item}", "b", 10.0 + item, 2.0) for item in range(3)]
    table = table_of(rows)
    assert not table.crossed
    rewards = np.array([[reward for reward, _ in pairs] for _, pairs in answers(table, 6000)])
    for column, values in enumerate((np.arange(5.0), 10.0 + np.arange(3.0))):
        found, counts = np.unique(rewards[:, column], return_counts=True)
        assert found.tolist() == values.tolist()
        share = 1.0 / len(values)
        assert np.abs(counts / 6000 - share).max() < 5 * math.sqrt(share * (1 - share) / 6000)


def test_kinds_arrive_as_their_share_of_items_or_as_told() -> None:
    table = table_of(crossed_rows())
    assert replay(table).problem.arrival.tolist() == [12 / 16, 4 / 16]
    assert replay(table, arrival={"x": 0.1, "y": 0.9}).problem.arrival.tolist() == [0.1, 0.9]
    kinds, _ = replay(table, arrival={"y": 1.0}).world.draw(np.random.default_rng(0), 1000)
    assert set(kinds) == {1}


def test_means_are_those_of_the_rows_and_the_added_cost_is_on_every_task() -> None:
    table = table_of(crossed_rows())
    plain, added = replay(table).problem, replay(table, added_cost=2.5)
    assert plain.options == ("1", "5", "10", "20")
    expected = [[105.5, 505.5, 1005.5, np.nan], [np.nan, -501.5, np.nan, -2001.5]]
    assert np.allclose(plain.reward, expected, equal_nan=True)
    assert np.allclose(added.problem.cost, plain.cost + 2.5, equal_nan=True)
    assert {cost for kind, pairs in answers(table, 50, added_cost=2.5) for _, cost in pairs} == {3.5, 7.5, 12.5, 22.5}


def test_options_that_are_numbers_are_sorted_by_size_and_names_by_letter() -> None:
    assert table_of(crossed_rows()).options == ("1", "5", "10", "20")
    named = [("x", "i", option, 1.0, 1.0) for option in ("b10", "b9", "a")]
    assert table_of(named).options == ("a", "b10", "b9")


def write_both(folder: Path, rows: list[Row]) -> tuple[Path, Path]:
    """The same rows as CSV and as Parquet, there with numbers for options."""
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    columns["option"] = tuple(int(option) for option in columns["option"])
    table = pyarrow.table({name: list(column) for name, column in columns.items()})
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.csv", folder / "t.parquet"


def test_csv_and_parquet_are_the_same_table(tmp_path: Path) -> None:
    rows = [(*row[:3], row[3] + 1 / 3, row[4]) for row in crossed_rows()]
    one, other = (read_table(path) for path in write_both(tmp_path, rows))
    for field in Table._fields:
        mine, its = getattr(one, field), getattr(other, field)
        assert np.array_equal(mine, its) if isinstance(mine, np.ndarray) else mine == its, field


def test_the_overhead_that_an_export_has_is_part_of_the_cost(tmp_path: Path) -> None:
    file = tmp_path / "tasks.csv"
    with Scheduler(overhead=5.0) as scheduler:
        for _ in range(4):
            task = scheduler.decide("x", ["small", "big"])
            task.report(*{"small": (1.0, 1.0), "big": (3.0, 4.0)}[str(task.option)])
        scheduler.export(file)
    table = read_table(file)
    assert {*table.cost} == {6.0, 9.0}


def test_a_file_is_replayed_by_the_simulator(tmp_path: Path) -> None:
    path, _ = write_both(tmp_path, crossed_rows())
    environment = replay(path, added_cost=1.0, reward_unit="points", cost_unit="s")
    result = simulate(environment, ["optimum", "random-option"], tasks=2000, runs=3)
    best = solve(environment.problem)
    assert result.mean("regret")["optimum"] == 0.0
    assert result.mean("expected_ratio")["optimum"] == pytest.approx(best.ratio, rel=0.05)
    assert result.provenance["units"] == {"reward": "points", "cost": "s"}


def test_an_option_without_rows_is_not_on_offer() -> None:
    table = table_of(crossed_rows())
    kept = table.option != 0
    part = {name: getattr(table, name)[kept] for name in ("kind", "option", "item", "reward", "cost")}
    problem = replay(table._replace(**part)).problem
    assert problem.options == table.options
    assert not problem.offered[:, 0].any()


def test_an_added_cost_may_not_eat_the_costs() -> None:
    with pytest.raises(BadTable, match=r"added cost -1 leaves costs at or below 0"):
        replay(table_of(crossed_rows()), added_cost=-1.0)


HEADER = "task_type,item_id,option,reward,cost,overhead,observed,outcome,attempt\n"
FAILURES = (
    "x,1,steady,1.0,2.0,0,False,result,0\nx,2,steady,3.0,2.0,0,False,result,0\n"
    "x,3,flaky,4.0,1.0,0,False,result,0\nx,4,flaky,,0.5,0,False,failed,0\n"
    "x,5,flaky,2.0,3.0,0,False,result,0\nx,6,flaky,,0.7,0,False,lost,0\n"
    "x,7,broken,,0.000005,0,False,failed,0\nx,7,flaky,,0.6,0,False,failed,1\n"
    "x,8,flaky,,9.9,0,False,lost,0\nx,8,flaky,3.0,2.0,0,False,result,0\n"  # it did report, if late
)


def exported(folder: Path, rows: str = FAILURES) -> Path:
    """A table as `export` writes it."""
    path = folder / "tasks.csv"
    path.write_text(HEADER + rows)
    return path


def test_failures_of_an_export_are_failures_of_the_problem(tmp_path: Path) -> None:
    environment = replay(exported(tmp_path))
    problem = environment.problem
    assert problem.options == ("broken", "flaky", "steady")
    assert problem.failure_rate is not None
    assert problem.failure_cost is not None
    assert problem.failure_rate.tolist() == [[1.0, 0.5, 0.0]]
    assert problem.reward.tolist() == [[0.0, 3.0, 2.0]]
    assert problem.cost.tolist() == [[5e-6, 2.0, 2.0]]
    assert problem.failure_cost.tolist() == [[5e-6, pytest.approx(0.6), 2.0]]
    best = solve(problem)  # flaky fails once for every success
    assert best.best.tolist() == [1]
    assert best.ratio == pytest.approx(3.0 / 2.6)
    assert best.cheapest_ratio == pytest.approx(2.0 / 2.0)
    check_environment(environment)
    check_environment(replay(exported(tmp_path), added_cost=0.5))
    assert replay(exported(tmp_path), added_cost=0.5).problem.failure_cost.tolist() == [  # type: ignore[union-attr]
        [pytest.approx(0.500005), pytest.approx(1.1), 2.5]
    ]


@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=pytest.mark.slow)])
def test_an_always_failing_option_earns_nothing_in_a_replay(tmp_path: Path, engine: str) -> None:
    environment = replay(exported(tmp_path))
    policies = ["ratio-imed", "kind-greedy", "optimum", "fixed-option,option=broken"]
    result = simulate(environment, policies, 3000, 4, engine=engine)
    assert np.isfinite(result.measure("ratio")).all()
    assert result.mean("loss")["ratio-imed"] < 0.1
    assert result.mean("loss")["optimum"] == pytest.approx(0.0, abs=1e-12)
    assert result.mean("ratio")["fixed-option,option=broken"] == 0.0


def test_kinds_in_which_nothing_succeeded_are_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hopeless = "".join(f"{kind},{kind}1,broken,,1.0,0,False,failed,0\n" for kind in ("a", "z"))
    path = exported(tmp_path, hopeless + FAILURES)
    environment = replay(path)
    assert "tasks: nothing of kinds 'a', 'z' ever succeeded" in caplog.text
    assert environment.problem.kinds == ("x",)
    check_environment(environment)
    assert np.isfinite(simulate(environment, ["kind-greedy"], 100, 2, engine="python").measure("ratio")).all()
    with pytest.raises(BadTable, match=r"kind 'z' has an arrival, but nothing of it ever succeeded; leave it out"):
        replay(path, arrival={"x": 0.5, "z": 0.5})
    with pytest.raises(BadTable, match=r"every task has failed"):
        replay(exported(tmp_path, hopeless))
