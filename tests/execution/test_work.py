"""Tasks that really run: measured, reported once, and no harm done when they raise, hang or die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import work_tasks
from waiting import NET, has_taken_signals, later_once, wait_until
from worthwhile import Arrival, LocalExecutor, Outcome, Scheduler, measure, work
from worthwhile.errors import AlreadyReported, BadFeedback, BadParameter, BadTask, TimedOut, WorkerLost
from worthwhile.execution import executors, running
from worthwhile.execution.claims import Claims
from worthwhile.execution.endings import Ending, Limits
from worthwhile.execution.results import Finished
from worthwhile.live.group_commit import Request

OPTIONS = work_tasks.OPTIONS


@pytest.fixture(scope="module")
def two() -> Iterator[LocalExecutor]:
    """Two slots, for tests that leave them in order."""
    with LocalExecutor(2) as executor:
        yield executor


def arrivals(count: int, payload: Any = None) -> list[Arrival]:
    return [Arrival(f"kind {number % 2}", OPTIONS, payload, f"job {number}") for number in range(count)]


def test_every_task_is_decided_run_measured_and_reported(address: str, two: LocalExecutor) -> None:
    seen: list[Finished] = []
    with Scheduler(address) as scheduler:
        done = work(scheduler, arrivals(12), work_tasks.double, executor=two, after=seen.append)
        summary, lines = scheduler.summary(), scheduler.latest(12)
        assert scheduler.rebuild()
    assert (done.reported, done.failed, done.skipped, done.dropped, done.interrupted) == (12, 0, 0, 0, False)
    assert (summary.reports, summary.running) == (12, 0)
    assert {line.key for line in lines} == {f"job {number}" for number in range(12)}
    assert all(line.reward == 2.0 * line.option and line.cost > 0.0 for line in lines)
    assert (done.reward, done.cost) == (pytest.approx(summary.reward), pytest.approx(summary.cost))
    assert len({finished.task.id for finished in seen}) == 12


def test_as_many_are_in_flight_as_the_executor_has_room() -> None:
    together = threading.Barrier(3)

    def run(kind: str, option: Any, payload: Any) -> float:
        together.wait(NET)  # three at once, or it breaks
        return 1.0

    with ThreadPoolExecutor(3) as executor, Scheduler() as scheduler:
        done = work(scheduler, arrivals(9), run, executor=executor)
        assert (done.reported, done.failed) == (9, 0)


def test_a_task_may_bring_its_own_cost_and_what_it_saw_of_shorter_ones(two: LocalExecutor) -> None:
    with Scheduler() as scheduler:
        scheduler.announce(options=OPTIONS)
        scheduler.change(policy="fixed-option,option=4")
        work(scheduler, arrivals(4), work_tasks.prefixes, executor=two)
        for kind in scheduler.summary().kinds:
            counts = {option.option: (option.pulls, option.observed) for option in kind.options}
            assert counts == {1: (0, 2), 2: (0, 2), 4: (2, 0)}
        assert scheduler.summary().cost == 16.0


def test_the_cost_is_what_the_meter_says() -> None:
    joules = [100.0]

    def burn(kind: str, option: Any, payload: Any) -> float:
        joules[0] += 7.0
        return 1.0

    with ThreadPoolExecutor(1) as executor, Scheduler() as scheduler:
        work(scheduler, arrivals(2), burn, executor=executor, meter=lambda: joules[0])
        assert scheduler.summary().cost == 14.0


def test_a_task_that_raises_hangs_or_dies_fails_alone(sqlite: str) -> None:
    kinds = {"raise": "ValueError: not today", "hang": "TimedOut", "die": "WorkerLost", "nonsense": "BadFeedback"}
    payloads = ["fine", "raise", "fine", "die", "nonsense", *["fine"] * 10, "die", "fine", "hang", "hang", "fine"]
    stream = [Arrival("x", OPTIONS, payload, f"{number} {payload}") for number, payload in enumerate(payloads)]
    seen: dict[str, Finished] = {}
    with Scheduler(sqlite) as scheduler, LocalExecutor(2) as executor:
        settings: dict[str, Any] = {"after": lambda finished: seen.update({finished.task.id: finished})}
        for tasks, limit, failed in ((stream[:-3], NET, 4), (stream[-3:-1], 0.5, 2), (stream[-1:], NET, 0)):
            done = work(scheduler, tasks, work_tasks.misbehave, executor=executor, timeout=limit, **settings)
            assert (done.reported, done.failed, sum(done.reasons.values())) == (len(tasks) - failed, failed, failed)
        lines = {line.task: line for line in scheduler.latest(100)}
        assert scheduler.summary().running == 0
    for task, finished in seen.items():
        payload = str(lines[task].key).split()[1]
        assert lines[task].state == ("reported" if payload == "fine" else "failed")
        assert (lines[task].reward, lines[task].cost) == (finished.reward, finished.cost)
        assert finished.cost > 0.0
        assert (finished.failure or "").startswith(kinds.get(payload, ""))
        assert finished.reward == (1.0 if payload == "fine" else None)
        assert (finished.failure is None) == (payload == "fine")
        assert payload != "hang" or finished.cost >= 0.5


def test_the_others_keep_their_processes_when_one_dies(tmp_path: Path) -> None:
    def both(name: str) -> set[int]:
        (tmp_path / name).mkdir()
        futures = [executor.submit(work_tasks.meet, str(tmp_path / name), 2) for _ in range(2)]
        return {future.result(NET) for future in futures}

    with LocalExecutor(2) as executor:
        pids = both("before")
        assert len(pids) == 2
        victim, other = pids
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not work_tasks.alive(victim), "the end of a process")
        after = both("after")
        assert other in after
        assert victim not in after
        assert len(after) == 2


def test_a_hung_task_is_killed_with_what_it_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "pids"
    monkeypatch.setattr(executors, "time", later_once(lambda: note.exists() and len(note.read_text().split()) == 2))
    with LocalExecutor(1) as executor:
        future = executor.submit_within(1000.0, work_tasks.hang_with_child, "x", 1, str(note))
        with pytest.raises(TimedOut, match="more than 1000 s"):
            future.result(NET)
        pids = [int(word) for word in note.read_text().split()]
        wait_until(lambda: not any(map(work_tasks.alive, pids)), "the end of both processes")
        assert executor.submit(pow, 2, 3).result() == 8


def test_the_executor_keeps_the_rules_of_executors(tmp_path: Path) -> None:
    executor, go = LocalExecutor(1), tmp_path / "go"
    assert list(executor.map(pow, [1, 2, 3], [2, 2, 2])) == [1, 4, 9]
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result()
    with pytest.raises(Exception, match=r"pickle|local object"):
        executor.submit(lambda: 1).result()
    with pytest.raises(WorkerLost, match="code -9"):
        executor.submit(work_tasks.misbehave, "x", 1, "die").result()
    running, waiting = (executor.submit(work_tasks.wait_for, str(go)) for _ in range(2))
    wait_until(running.running, "the first call")
    executor.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled()
    go.touch()
    executor.shutdown()
    assert running.result() == str(go)
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(pow, 1, 1)
    with pytest.raises(BadParameter, match="slots = 0"):
        LocalExecutor(0)


def test_an_executor_that_cannot_stop_a_task_gives_it_up_and_drops_what_comes_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, seen = threading.Event(), []

    def slow(kind: str, option: Any, payload: Any) -> float:
        if payload == 0:
            late.wait(NET)
        return 1.0

    monkeypatch.setattr(running, "time", later_once(lambda: len(seen) == 5))
    with ThreadPoolExecutor(2) as executor, Scheduler() as scheduler:
        stream = [Arrival("x", OPTIONS, number, f"job {number}") for number in range(6)]
        done = work(scheduler, stream, slow, executor=executor, timeout=1000.0, after=seen.append)
        late.set()
        assert (done.reported, done.failed) == (5, 1)
        executor.shutdown()
        assert (scheduler.summary().reports, scheduler.summary().failed) == (5, 1)
        assert sorted(line.state for line in scheduler.latest(6)) == ["failed", *["reported"] * 5]


@pytest.mark.parametrize("in_order", [True, False])
def test_reports_come_in_the_order_of_arrival_when_asked_for(in_order: bool) -> None:
    """The first task ends when the second has ended, or has reported if it may."""
    second = threading.Event()

    def run(kind: str, option: Any, payload: Any) -> float:
        if payload == 0:
            second.wait(NET)
        elif in_order:
            second.set()
        return 1.0

    def after(finished: Finished) -> None:
        seen.append(finished.task.id)
        second.set()

    seen: list[str] = []
    stream = [Arrival("x", OPTIONS, number) for number in range(5)]
    settings: dict[str, Any] = {"in_order": in_order, "after": after}
    with ThreadPoolExecutor(2) as executor, Scheduler() as scheduler:
        work(scheduler, stream, run, executor=executor, **settings)
    assert (seen == sorted(seen, key=int)) == in_order


def test_what_has_reported_is_not_run_again(sqlite: str, tmp_path: Path, two: LocalExecutor) -> None:
    file = str(tmp_path / "lines")
    for count, reported, skipped in ((5, 5, 0), (9, 4, 5), (9, 0, 9)):
        with Scheduler(sqlite) as scheduler:
            done = work(scheduler, work_tasks.stream(file, count), work_tasks.written_down, executor=two)
        assert (done.reported, done.skipped) == (reported, skipped)
    assert sorted(Path(file).read_text().split(), key=int) == [str(number) for number in range(9)]


@pytest.mark.slow
def test_a_killed_loop_goes_on_where_it_was(durable: str, tmp_path: Path) -> None:
    file, program = tmp_path / "lines", [sys.executable, work_tasks.__file__, durable, str(tmp_path / "lines"), "60"]
    killed = subprocess.Popen(program, stdout=subprocess.PIPE)
    assert killed.stdout is not None
    reported = [killed.stdout.readline() for _ in range(10)]
    workers = children(killed.pid)
    killed.kill()
    reported += killed.communicate()[0].splitlines()
    assert workers
    wait_until(lambda: not any(map(work_tasks.alive, workers)), "the end of its processes")
    Path(f"{file}.go").touch()
    with Scheduler(durable) as scheduler:
        before = {line.key for line in scheduler.latest(100) if line.state == "reported"}
    assert 10 <= len(reported) <= len(before) < 60
    runs_before = file.read_text().split()
    last = subprocess.run(program, capture_output=True, text=True, check=True, timeout=NET).stdout.splitlines()[-1]
    assert last == f"interrupted False reported {60 - len(before)} skipped {len(before)}"
    with Scheduler(durable) as scheduler:
        assert (scheduler.summary().tasks, scheduler.summary().reports, scheduler.summary().running) == (60, 60, 0)
        assert scheduler.rebuild()
    again = file.read_text().split()[len(runs_before) :]
    assert not {f"job {name}" for name in again} & before


def test_ctrl_c_lets_running_tasks_end_and_loses_nothing(sqlite: str, tmp_path: Path) -> None:
    file, program = tmp_path / "lines", [sys.executable, work_tasks.__file__, sqlite, str(tmp_path / "lines"), "500"]
    stopped = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert stopped.stdout is not None
    for _ in range(5):
        stopped.stdout.readline()
    stopped.send_signal(signal.SIGINT)
    wait_until(lambda: has_taken_signals(stopped.pid), "Ctrl-C")
    Path(f"{file}.go").touch()
    last = stopped.communicate(timeout=NET)[0].splitlines()[-1]
    assert stopped.returncode == 0
    assert last.startswith("interrupted True")
    lines = file.read_text().split()
    with Scheduler(sqlite) as scheduler:
        summary = scheduler.summary()
        assert (summary.running, summary.reports) == (0, len(lines))
        assert 5 <= summary.reports < 500


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


def test_a_stream_that_has_nothing_now_is_asked_again_while_tasks_end() -> None:
    seen: list[Finished] = []

    def stream() -> Iterator[Arrival | None]:
        yield Arrival("x", OPTIONS)
        while not seen:
            yield None
        yield Arrival("x", OPTIONS)

    with ThreadPoolExecutor(4) as executor, Scheduler() as scheduler:
        done = work(scheduler, stream(), lambda *_: 1.0, executor=executor, after=seen.append)
        assert done.reported == 2


def test_a_stream_that_breaks_still_reports_what_is_under_way() -> None:
    def stream() -> Iterator[Arrival]:
        yield Arrival("x", OPTIONS)
        raise OSError("the queue is gone")

    with ThreadPoolExecutor(4) as executor, Scheduler() as scheduler:
        with pytest.raises(OSError, match="the queue is gone"):
            work(scheduler, stream(), lambda *_: 1.0, executor=executor)
        assert scheduler.summary().reports == 1
        with pytest.raises(BadTask, match="no options"):
            work(scheduler, [("x", [1]), ("x", [])], lambda *_: 1.0, executor=executor)
        assert scheduler.summary().reports == 2
        with pytest.raises(BadTask, match="options = 5; give a list"):
            work(scheduler, [("x", [1]), ("x", 5), ("x", [1])], lambda *_: 1.0, executor=executor)
        assert scheduler.summary().reports == 4  # those that were taken with it, too
        for bad in (("x",), "xy", 5, {"kind": "x", "options": [1]}):
            with pytest.raises(BadTask, match=r"is no task; give Arrival\(kind, options, payload, key"):
                work(scheduler, [bad], lambda *_: 1.0, executor=executor)  # type: ignore[list-item]


def test_features_reach_the_decision_and_stay_with_every_attempt(address: str) -> None:
    def run(kind: str, option: Any, payload: Any) -> float:
        if payload == "fails" and option == OPTIONS[0]:
            raise KeyError(option)
        return 1.0

    known = {"clauses": 12000, "family": "crypto", "gpu": True, "age": None}
    tasks = [
        ("x", OPTIONS, "fails", "one", known),
        Arrival("x", OPTIONS, features={"size": np.int64(2)}),
        ("x", OPTIONS),
    ]
    with ThreadPoolExecutor(1) as executor, Scheduler(address, policy="fixed-option") as scheduler:
        scheduler.announce(options=OPTIONS)
        done = work(scheduler, tasks, run, executor=executor, attempts=2)
        assert (done.reported, done.tried_again) == (3, 1)
        first, second, third = (scheduler.explain(id) for id in "123")
        assert (first.features, len(first.attempts)) == ({"clauses": 12000, "family": "crypto", "gpu": True}, 1)
        assert (second.features, third.features) == ({"size": 2}, None)
        assert scheduler.rebuild()


def test_bad_features_end_the_stream_and_what_runs_is_reported() -> None:
    for features in ({"a": [1]}, "a=1", {1: 2}, {"a": "x" * 5000}, {"a": float("nan")}):
        bad = Arrival("x", OPTIONS, features=features)  # type: ignore[arg-type]
        with ThreadPoolExecutor(4) as executor, Scheduler() as scheduler:
            with pytest.raises(BadTask, match="feature"):
                work(scheduler, [Arrival("x", OPTIONS), bad], lambda *_: 1.0, executor=executor)
            assert scheduler.summary().reports == 1


def test_someone_elses_report_counts_and_ours_is_dropped() -> None:
    with ThreadPoolExecutor(1) as executor, Scheduler() as scheduler:

        def run(kind: str, option: Any, payload: Any) -> float:
            scheduler.report("1", reward=5.0, cost=1.0)
            return 1.0

        done = work(scheduler, arrivals(1), run, executor=executor)
        assert (done.reported, done.dropped) == (0, 1)
        assert scheduler.summary().reward == 5.0


def test_observing_what_was_not_on_offer_is_a_failure_of_that_task() -> None:
    with ThreadPoolExecutor(1) as executor, Scheduler() as scheduler:
        done = work(scheduler, arrivals(2), lambda *_: Outcome(1.0, 1.0, {99: (1.0, 1.0)}), executor=executor)
        assert (done.reported, done.failed, done.reward) == (0, 2, 0.0)
        assert all(option.observed == 0 for kind in scheduler.summary().kinds for option in kind.options)


def test_a_task_may_say_itself_that_it_failed_and_what_it_saw_before(two: LocalExecutor) -> None:
    seen: list[Finished] = []
    with Scheduler() as scheduler:
        scheduler.announce(options=OPTIONS)
        scheduler.change(policy="fixed-option,option=4")
        done = work(scheduler, arrivals(4), work_tasks.give_up, executor=two, after=seen.append)
        assert (done.reported, done.failed, done.cost, done.reasons) == (0, 4, 12.0, {"out of luck": 4})
        assert {(finished.reward, finished.cost, finished.failure) for finished in seen} == {(None, 3.0, "out of luck")}
        assert {line.state for line in scheduler.latest(4)} == {"failed"}
        for kind in scheduler.summary().kinds:
            assert {option.option: option.observed for option in kind.options} == {1: 2, 4: 0}
        assert scheduler.rebuild()


def test_failures_may_be_results_worth_a_number() -> None:
    def run(kind: str, option: Any, payload: Any) -> Outcome:
        return Outcome(failed=True, cost=2.0)

    for settings, more in (({"failed_reward": -1.0}, {}), ({}, {"failed_reward": -1.0})):
        seen: list[Finished] = []
        with Scheduler(**settings) as scheduler, ThreadPoolExecutor(1) as executor:
            done = work(scheduler, arrivals(3), run, executor=executor, after=seen.append, **more)
            assert (done.reported, done.failed, done.reward, done.cost) == (0, 3, -3.0, 6.0)
            assert {line.state for line in scheduler.latest(3)} == {"failed"}
            assert (scheduler.summary().reward, scheduler.summary().cost) == (-3.0, 6.0)
        assert {finished.failure for finished in seen} == {"the task did not say why"}


def test_a_failure_has_no_reward() -> None:
    with ThreadPoolExecutor(1) as executor, Scheduler() as scheduler:
        done = work(scheduler, arrivals(1), lambda *_: Outcome(1.0, failed=True), executor=executor)
        assert list(done.reasons) == ["BadFeedback: reward = 1.0 of a task that failed; leave out the one or the other"]
        done = work(scheduler, arrivals(2), lambda *_: Outcome(), executor=executor)
        assert list(done.reasons) == ["BadFeedback: reward = None; it must be a number"]


def test_a_failure_with_observations_that_cannot_be_stored_keeps_its_reason() -> None:
    def run(kind: str, option: Any, payload: Any) -> Outcome:
        return Outcome(cost=2.0, observed={99: (1.0, 1.0)}, failed=True, reason="mine")

    with ThreadPoolExecutor(1) as executor, Scheduler() as scheduler:
        assert work(scheduler, arrivals(2), run, executor=executor).reasons == {"mine": 2}


def test_what_cannot_work_is_refused_at_once() -> None:
    with Scheduler() as scheduler, ThreadPoolExecutor(1) as executor:
        with pytest.raises(BadParameter, match="cannot be sent to another process"):
            work(scheduler, arrivals(1), lambda *_: 1.0)
        with pytest.raises(BadParameter, match="timeout = -1"):
            work(scheduler, arrivals(1), work_tasks.double, timeout=-1)
        with pytest.raises(BadParameter, match="in_flight = 0"):
            work(scheduler, arrivals(1), work_tasks.double, in_flight=0)
        with pytest.raises(BadFeedback, match="failed_reward = nan"):
            work(scheduler, arrivals(1), work_tasks.double, failed_reward=float("nan"), executor=executor)


def test_a_process_pool_does_the_same() -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as executor, Scheduler() as scheduler:
        assert work(scheduler, arrivals(6), work_tasks.double, executor=executor).reported == 6


def test_only_the_measuring() -> None:
    before = time.perf_counter()
    with measure() as spent:
        assert spent.so_far() > 0.0
    assert 0.0 < spent.cost < time.perf_counter() - before
    joules = [100.0]

    @measure(lambda: joules[0])
    def train(rounds: int) -> float:
        """Trains."""
        joules[0] += 7.0
        return rounds / 10

    outcome = train(rounds=5)
    assert (outcome.reward, outcome.cost, train.__doc__) == (0.5, 7.0, "Trains.")


def test_report_and_observations_are_stored_together_or_not_at_all(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", [1])
        task = scheduler.decide("x", [1, 2, 3], key="second")
        other = next(option for option in (1, 2, 3) if option != task.option)

        def outcome(observed: dict[Any, tuple[float, float]]) -> Request:
            return Ending(Claims(scheduler, 60.0, lambda: None), task, Outcome(1.0, 1.0, observed), Limits())

        bad, good = outcome({other: (1.0, 1.0), 99: (1.0, 1.0)}), outcome({other: (0.5, 1.0)})
        scheduler._transactor.ask_all([bad])
        assert isinstance(bad.error, BadFeedback)
        assert scheduler.summary().reports == 0
        scheduler._transactor.ask_all([good])
        assert good.error is None
        scheduler._transactor.ask_all([good])  # again changes nothing
        assert good.error is None
        third = outcome({other: (0.7, 1.0)})
        scheduler._transactor.ask_all([third])
        assert isinstance(third.error, AlreadyReported)
        assert sum(option.observed for kind in scheduler.summary().kinds for option in kind.options) == 1


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from worthwhile import LocalExecutor, Scheduler, work\n"
        "def f(kind, option, payload):\n    return 1.0\n"
        "with Scheduler() as scheduler, LocalExecutor(slots=1) as executor:\n"
        "    work(scheduler, [('a', [1])] * 3, f, executor=executor)\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=NET, check=False)
    assert ended.returncode == 1
    assert "if __name__ == '__main__':" in ended.stderr.splitlines()[-1]
