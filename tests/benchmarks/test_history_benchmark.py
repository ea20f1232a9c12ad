"""The benchmark of history: its rows are those of the world, and its limits are judged as they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from history import COLD, ENTRANTS, GREEDY, ONE, REFERENCE, THREE, Losses, World, greedy_log, judge, measure, write
from history import rows_per_cell as rows_of
from worthwhile import Noise, Problem, read_problem, solve, two_kinds
from worthwhile.simulation.environments import synthetic


def world_of(problem: Problem) -> World:
    return World(synthetic(problem), solve(problem))


def test_every_cell_has_as_many_rows_as_are_asked_for() -> None:
    world = world_of(two_kinds())
    rows = rows_of(world, 3, np.random.default_rng(0))
    cells = [(kind, option) for kind, option, _, _ in rows]
    assert {cell: cells.count(cell) for cell in cells} == dict.fromkeys(world.cells, 3)
    assert rows == rows_of(world, 3, np.random.default_rng(0))
    assert len({reward for _, _, reward, _ in rows}) == len(rows)  # no item stands for two


def test_failures_go_through_the_file(tmp_path: Path) -> None:
    (tmp_path / "flaky.toml").write_text(
        'noise.cost = { family = "gamma", cv = 0.1 }\n[[kind]]\nname = "call"\narrival = 1.0\n'
        "options.steady = { reward = 1.0, cost = 1.0 }\n"
        "options.broken = { reward = 1.0, cost = 0.5, failure_rate = 1.0, failure_cost = 0.3 }\n"
    )
    problem = read_problem(tmp_path / "flaky.toml")
    rows = greedy_log(world_of(problem), (0,))
    assert len(rows) == 300
    lines = write(tmp_path / "old.csv", rows).read_text().splitlines()
    assert sum(line.endswith("True") for line in lines) == sum(np.isnan(row[2]) for row in rows) > 0


def test_history_saves_what_a_cold_start_loses() -> None:
    options = {f"option {number}": (1.0 + number, 1.0 + 2.0 * number) for number in range(12)}
    quiet = Noise("lognormal", cv=0.1)
    problem = Problem.of({"x": (0.5, options), "y": (0.5, options)}, reward_noise=quiet, cost_noise=quiet)
    losses = measure(world_of(problem), "ratio-imed", 60, 3, 0)
    assert tuple(losses) == ENTRANTS
    assert losses[REFERENCE] == pytest.approx(losses[COLD])
    assert losses[THREE].mean() < losses[COLD].mean()


def found(**changed: list[float]) -> dict[str, Losses]:
    """A table on which each entrant loses so much in two runs."""
    usual = {REFERENCE: [10.0, 10.0], COLD: [9.0, 9.0], ONE: [1.0, 1.0], THREE: [0.5, 0.5], GREEDY: [9.0, 9.0]}
    names = {"one": ONE, "greedy": GREEDY}
    values = usual | {names[name]: values for name, values in changed.items()}
    return {"table": {name: np.array(runs) for name, runs in values.items()}}


def test_limits_are_judged_as_they_read() -> None:
    def kept(**changed: list[float]) -> list[bool]:
        return [verdict.kept for verdict in judge(found(**changed))]

    assert kept() == [True, True, True]
    assert kept(one=[2.4, 2.6]) == [True, True, True]
    assert kept(one=[3.0, 3.0]) == [False, True, True]
    assert kept(one=[5.0, 5.0]) == [False, False, True]
    assert kept(greedy=[9.2, 9.2]) == [True, True, False]
    assert kept(greedy=[8.0, 10.5]) == [True, True, True]  # worse by less than a standard error
