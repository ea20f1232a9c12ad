"""What happens once in every process before its first task: not measured, not timed, and nothing runs without it."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import work_tasks
from waiting import NET, later_once
from worthwhile import Arrival, LocalExecutor, Scheduler, work
from worthwhile.errors import BadParameter, WarmUpFailed
from worthwhile.execution import executors
from worthwhile.execution.clusters import executor_on
from worthwhile.execution.results import Finished
from worthwhile.live.claims import RELEASED
from worthwhile.live.stores.base import TaskRow


def warmed(folder: Path) -> Counter[str]:
    """How often each process has warmed up."""
    return Counter(file.name.split()[0] for file in folder.iterdir())


def burnt(executor: Executor, folder: Path, payloads: list[Any], **more: Any) -> list[Finished]:
    """The results of tasks that need a warm-up; its thousand joules are no task's."""
    (folder / "warm").mkdir()
    (folder / "met").mkdir()
    seen: list[Finished] = []
    settings: dict[str, Any] = {"meter": work_tasks.joules, "after": seen.append, "lost_cost": 5.0, **more}
    settings["warm_up"] = partial(work_tasks.warm, str(folder / "warm"))
    with Scheduler() as scheduler:
        work(scheduler, [Arrival(str(folder / "met"), [1], payload) for payload in payloads], work_tasks.burn,
             executor=executor, **settings)  # fmt: skip
    return seen


def test_every_process_warms_up_once_and_so_does_one_that_replaces_another(tmp_path: Path) -> None:
    with LocalExecutor(2) as executor:
        seen = burnt(executor, tmp_path, ["meet", "meet", "", "die", "", "die", "", ""])
    good = [finished for finished in seen if finished.failure is None]
    assert (len(seen), len(good)) == (8, 6)
    assert all(finished.cost == 7.0 for finished in good)
    assert {str(int(finished.reward)) for finished in good} <= warmed(tmp_path / "warm").keys()
    assert set(warmed(tmp_path / "warm").values()) == {1}
    assert len(warmed(tmp_path / "warm")) in (3, 4)  # the last one that died may have left nothing to do


def test_a_slow_warm_up_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "warm"
    monkeypatch.setattr(executors, "time", later_once(lambda: folder.exists() and any(folder.iterdir())))
    with LocalExecutor(1) as executor:
        (finished,) = burnt(executor, tmp_path, [""], timeout=1000.0)
    assert (finished.failure, finished.cost) == (None, 7.0)


def test_a_process_pool_warms_up_once_per_process(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        seen = burnt(executor, tmp_path, ["meet", "meet", *[""] * 8])
    assert [finished.cost for finished in seen] == [7.0] * 10
    assert list(warmed(tmp_path / "warm").values()) == [1, 1]


@pytest.mark.parametrize(
    "system", [pytest.param("dask", marks=pytest.mark.slow), pytest.param("ray", marks=pytest.mark.long)]
)
def test_a_cluster_warms_up_once_per_process(system: str, tmp_path: Path) -> None:
    with executor_on(system, slots=2) as executor:
        seen = burnt(executor, tmp_path, ["meet", "meet", *[""] * 8])
        assert [finished.cost for finished in seen] == [7.0] * 10
        assert set(warmed(tmp_path / "warm").values()) == {1}
        with Scheduler() as scheduler, pytest.raises(WarmUpFailed, match="KeyError: 'cold'"):
            work(
                scheduler,
                [("x", [1])],
                work_tasks.double,
                executor=executor,
                warm_up=partial(work_tasks.stay_cold, "cold"),
            )


def test_threads_wait_for_the_one_that_warms_up() -> None:
    calls: list[int] = []
    begun = threading.Event()

    def warm() -> None:
        begun.wait(NET)
        calls.append(1)

    def run(kind: str, option: Any, payload: Any) -> float:
        return float(len(calls))

    with ThreadPoolExecutor(3) as executor, Scheduler() as scheduler:
        stream = (begun.set() if number == 2 else ("x", [1]) for number in range(12))
        done = work(scheduler, stream, run, executor=executor, warm_up=warm)
        assert (done.reported, done.reward, calls) == (11, 11.0, [1])


@pytest.mark.parametrize(
    ("how", "why"),
    [("die", "its process ended with code 3"), ("cold", "KeyError: 'cold'"), ("unspeakable", ": Unspeakable")],
)
def test_nothing_runs_if_the_warm_up_fails(how: str, why: str) -> None:
    stream = [Arrival("x", [1], number, str(number)) for number in range(3)]
    cold = partial(work_tasks.stay_cold, how)
    with Scheduler() as scheduler, LocalExecutor(1) as executor:
        for _ in range(2):
            with pytest.raises(WarmUpFailed, match=f"{why}.*; no task runs without it: mend it or leave it out"):
                work(scheduler, stream, work_tasks.double, executor=executor, warm_up=cold)
        assert (scheduler.summary().reports, scheduler.summary().failed) == (0, 0)
        assert {row.holder for row in rows_of(scheduler)} == {RELEASED}
        assert work(scheduler, stream, work_tasks.double, executor=executor).reported == 3


def rows_of(scheduler: Scheduler) -> list[TaskRow]:
    numbers = [int(line.task) for line in scheduler.latest(9)]
    return scheduler._transactor.do(lambda batch: batch.tx.tasks(batch.replica.id, numbers))


def test_a_task_without_a_key_does_not_stay_open_when_the_warm_up_fails() -> None:
    with Scheduler() as scheduler, ThreadPoolExecutor(1) as executor:
        with pytest.raises(WarmUpFailed):
            work(
                scheduler, [("x", [1])], work_tasks.double, executor=executor,
                warm_up=partial(work_tasks.stay_cold, "unspeakable"),
            )  # fmt: skip
        assert [line.state for line in scheduler.latest(9)] == ["cancelled"]
        assert scheduler.summary().running == 0


def test_an_error_without_words_is_a_failure_like_others() -> None:
    with Scheduler() as scheduler, LocalExecutor(1) as executor:
        done = work(scheduler, [("x", [1])], work_tasks.raise_unspeakable, executor=executor)
        assert done.reasons == {"Unspeakable": 1}
        with pytest.raises(Exception, match=r"^Unsendable$"):
            executor.submit(work_tasks.raise_unsendable).result()
        assert executor.submit(pow, 2, 3).result() == 8


def test_threads_fail_together_and_the_warm_up_is_not_tried_in_each() -> None:
    calls: list[int] = []

    def cold() -> None:
        calls.append(1)
        raise OSError("no network")

    with Scheduler() as scheduler, ThreadPoolExecutor(4) as executor:
        for times in (1, 2):
            with pytest.raises(WarmUpFailed, match="cold: OSError: no network"):
                work(scheduler, [("x", [1])] * 4, lambda *_: 1.0, executor=executor, warm_up=cold)
            assert len(calls) == times
        assert scheduler.summary().reports == 0


def test_a_warm_up_that_cannot_be_called_is_refused() -> None:
    with Scheduler() as scheduler:
        with pytest.raises(BadParameter, match="warm_up = 'jobs'; give a function without arguments"):
            work(scheduler, [], work_tasks.double, warm_up="jobs")  # type: ignore[arg-type]
        with pytest.raises(BadParameter, match=r"warm_up = .*cannot be sent to another process"):
            work(scheduler, [], work_tasks.double, warm_up=lambda: None)
