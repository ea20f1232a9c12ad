"""Tasks and sweeps on clusters that are really started, with a worker that is really killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import work_tasks
from worthwhile import Scheduler, simulate, two_kinds, work
from worthwhile.errors import BadParameter
from worthwhile.execution.clusters import executor_on

DASK = pytest.param("dask", marks=pytest.mark.slow)
RAY = pytest.param("ray", marks=pytest.mark.long)


@pytest.mark.parametrize("system", [DASK, RAY])
def test_a_cluster_that_loses_a_worker_does_every_task_and_reports_it_once(
    system: str, sqlite: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "lines")
    with Scheduler(sqlite) as scheduler, executor_on(system, slots=2) as executor:
        assert executor.slots == 2  # type: ignore[attr-defined]
        seen: list[Any] = []

        def after(finished: Any) -> None:
            seen.append(finished)
            if len(seen) == 10:
                os.kill(victim, signal.SIGKILL)
                Path(f"{file}.go").touch()

        victim = executor.submit(os.getpid).result()
        done = work(scheduler, work_tasks.stream(file, 60), work_tasks.written_down, executor=executor, after=after)
        assert (done.reported, done.failed) == (60, 0)
        assert (scheduler.summary().tasks, scheduler.summary().reports, scheduler.summary().running) == (60, 60, 0)
        assert scheduler.rebuild()
    assert set(Path(file).read_text().split()) == {str(number) for number in range(60)}
    assert not work_tasks.alive(victim)


@pytest.mark.parametrize("system", ["local", DASK, RAY])
def test_a_sweep_spread_over_processes_gives_the_same_numbers(system: str) -> None:
    problem, policies = two_kinds(0.8), ["ratio-imed", "reward-ts", "dol-rm"]
    settings: dict[str, Any] = {"tasks": 300, "runs": 5, "seed": 3, "delay": (0, 5), "engine": "python"}
    here = simulate(problem, policies, **settings)
    with executor_on(system, slots=2) as executor:
        there = simulate(problem, policies, executor=executor, **settings)
    assert np.array_equal(here.runs, there.runs)
    for measure in ("reward", "cost", "regret"):
        assert np.array_equal(here.measure(measure), there.measure(measure))


def test_systems_that_do_not_exist_are_refused() -> None:
    with pytest.raises(BadParameter, match="did you mean 'dask'"), executor_on("dsk"):
        pass
    with pytest.raises(BadParameter, match="local processes have none"), executor_on("local", "tcp://x"):
        pass
