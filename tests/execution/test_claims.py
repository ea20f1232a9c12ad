"""Several `work` on one list: each task is run by one of them, also if some are killed, stopped or asleep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import work_tasks
from waiting import NET, has_taken_signals, wait_until
from worthwhile import Arrival, LocalExecutor, Scheduler, work
from worthwhile.errors import BadParameter, StoreError, WorkerLost
from worthwhile.execution.claims import Claims, beginning, is_gone, machine, new_holder
from worthwhile.live.claims import RELEASED, Claim, Claiming, Releasing, Renewing
from worthwhile.live.stores.base import TaskRow

TASKS = int(os.environ.get("WORK_TASKS", "60"))  # 2000 in `make soak`


def claim(scheduler: Scheduler, holder: str, lease: float = 1000.0, **more: Any) -> Claim:
    answer: Claim = scheduler._transactor.ask(Claiming(scheduler, "x", [1, 2], "a", lease, holder, **more))
    return answer


def row(scheduler: Scheduler, task: int = 1) -> TaskRow:
    return scheduler._transactor.do(lambda batch: batch.tx.tasks(batch.replica.id, [task]))[0]


def renew(scheduler: Scheduler, holder: str, lease: float = 1000.0) -> list[str]:
    lost: list[str] = scheduler._transactor.ask(Renewing(holder, ["1"], lease))
    return lost


def test_a_task_is_its_holders_until_the_lease_ends(address: str) -> None:
    with Scheduler(address) as scheduler:
        assert claim(scheduler, "ours", lease=0.0).holder == "ours"
        assert scheduler.summary().running == 0
        assert claim(scheduler, "ours").holder == "ours"
        assert scheduler.summary().running == 1
        assert claim(scheduler, "theirs").holder == "ours"
        assert renew(scheduler, "theirs") == ["1"]
        assert renew(scheduler, "ours", lease=0.0) == []
        assert (row(scheduler).holder, scheduler.summary().running) == ("ours", 0)
        assert claim(scheduler, "theirs").holder == "theirs"
        assert renew(scheduler, "ours") == ["1"]
        assert claim(scheduler, "ours", instead_of="others").holder == "theirs"
        assert claim(scheduler, "ours", instead_of="theirs").holder == "ours"
        assert scheduler.decide("x", [1, 2], key="a").id == "1"  # who only decides minds no claims
        assert scheduler.rebuild()


def test_who_takes_a_task_over_has_its_features(address: str) -> None:
    with Scheduler(address) as scheduler:
        claim(scheduler, "ours", lease=0.0, features={"size": 1})
        assert claim(scheduler, "theirs", features={"size": 2}).holder == "theirs"
        assert claim(scheduler, "others", instead_of="theirs").holder == "others"
        assert scheduler.tasks(["1"])[0].features == {"size": 1}


def test_what_was_given_back_or_has_ended_is_nobodys(address: str) -> None:
    with Scheduler(address) as scheduler:
        claim(scheduler, "ours")
        scheduler._transactor.ask(Releasing("theirs", ["1"]))
        assert row(scheduler).holder == "ours"
        scheduler._transactor.ask(Releasing("ours", ["1"]))
        assert (row(scheduler).holder, scheduler.summary().running) == (RELEASED, 1)
        assert claim(scheduler, "theirs").holder == "theirs"
        scheduler.report("1", reward=1.0, cost=1.0)
        assert renew(scheduler, "theirs") == ["1"]
        again = claim(scheduler, "ours")
        assert (again.holder, again.task.state, scheduler.summary().running) == ("theirs", "reported", 0)


def test_running_tasks_are_counted_right_within_a_batch(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler._transactor.ask(Claiming(scheduler, "x", [1], "a", 0.0, "theirs"))
        requests = [Claiming(scheduler, "x", [1], key, 1000.0, "ours") for key in ("a", "b", "c")]
        scheduler._transactor.ask_all(requests)
        assert [row(scheduler, task).pending for task in (2, 3)] == ["1", "2"]
        assert scheduler.summary().running == 3


def lines(folder: Path, count: int, payload: str) -> Path:
    file = folder / "tasks.jsonl"
    tasks = (
        {"kind": f"kind {number % 2}", "options": [1, 2], "payload": [payload, str(number)]} for number in range(count)
    )
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return file


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(function: str, store: str, tasks: Path, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "worthwhile", "work", f"work_tasks:{function}", "--store", store]
    options = ["--tasks", str(tasks), "--slots", "1", "--json", *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([*words, *options], stdout=subprocess.PIPE, text=True, env=environment)


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    done: dict[str, Any] = json.loads(process.communicate(timeout=NET)[0])
    return done


@pytest.mark.slow
def test_two_on_one_list_run_every_task_once_and_say_who_did_what(
    durable: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    ran = tmp_path / "ran"
    tasks = lines(tmp_path, TASKS, str(ran))
    started += [start("together", durable, tasks) for _ in range(2)]
    one, two = map(answer, started)
    assert sorted(int(line.split()[0]) for line in ran.read_text().splitlines()) == list(range(TASKS))
    assert one["reported"] + two["reported"] == TASKS
    assert min(one["reported"], two["reported"]) > 0
    for done in (one, two):
        assert done["reported"] + done["elsewhere"] + done["skipped"] == TASKS
        assert (done["failed"], done["dropped"]) == (0, 0)
    with Scheduler(durable) as scheduler:
        assert (scheduler.summary().reports, scheduler.summary().running) == (TASKS, 0)
        assert scheduler.rebuild()


@pytest.mark.slow
def test_tasks_of_a_killed_process_are_taken_over_at_once(
    sqlite: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    tasks = lines(tmp_path, 4, str(tmp_path))
    started.append(start("first_waits", sqlite, tasks, "--lease", "100000"))
    wait_until((tmp_path / "0").exists, "the first task")
    for name in ("1", "2", "3"):
        (tmp_path / name).touch()
    started.append(start("first_waits", sqlite, tasks))
    wait_until(lambda: reports(sqlite) == 3, "the tasks that nobody holds")
    started[0].kill()
    done = answer(started[1])
    assert (done["reported"], done["reward"], reports(sqlite)) == (4, 8.0, 4)


def reports(store: str) -> int:
    try:
        with Scheduler(store, create=False) as scheduler:
            return sum(line.state == "reported" for line in scheduler.latest(100))
    except StoreError:  # it is not there yet
        return 0


def stop_between_transactions(process: subprocess.Popen[str], store: str) -> None:
    """Not in the middle of one: then everybody would wait, which is not what is tried here."""
    while True:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: has_taken_signals(process.pid), "the stop")
        try:
            if store.startswith("sqlite"):
                with closing(apsw.Connection(store.removeprefix("sqlite:///"))) as connection:
                    connection.execute("begin immediate")
            else:
                with psycopg.connect(store) as other:
                    other.execute("select 1 from schedulers for update nowait")
            return
        except (apsw.BusyError, psycopg.errors.LockNotAvailable):
            process.send_signal(signal.SIGCONT)


@pytest.mark.slow
def test_a_process_that_was_stopped_for_too_long_notices_that_its_tasks_are_run_elsewhere(
    durable: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    tasks = lines(tmp_path, 1, str(tmp_path))
    started.append(start("first_waits", durable, tasks, "--lease", "1"))
    wait_until(lambda: (tmp_path / "0").exists() and (tmp_path / "0").read_text(), "the first task")
    stopped, worker = started[0], int((tmp_path / "0").read_text())
    stop_between_transactions(stopped, durable)
    started.append(start("first_waits", durable, tasks))
    done = answer(started[1])
    assert (done["reported"], done["reward"]) == (1, 2.0)
    assert work_tasks.alive(worker)
    stopped.send_signal(signal.SIGCONT)
    late = answer(stopped)
    assert (late["reported"], late["elsewhere"], late["dropped"]) == (0, 1, 1)
    assert not work_tasks.alive(worker)
    assert reports(durable) == 1


def test_leases_are_renewed_for_as_long_as_tasks_run(sqlite: str) -> None:
    ends: set[float] = set()

    def run(kind: str, option: Any, payload: Any) -> float:
        with Scheduler(sqlite) as other:
            wait_until(lambda: ends.add(row(other).lease_end) or len(ends) >= 3, "two renewals")
        return 1.0

    with Scheduler(sqlite) as scheduler, ThreadPoolExecutor(1) as executor:
        assert work(scheduler, [("x", [1])], run, executor=executor, lease=0.3).reported == 1
    assert sorted(ends)[-1] > sorted(ends)[0]


def test_a_claim_is_given_back_when_work_is_broken_off() -> None:
    def broken(finished: Any) -> None:
        raise RuntimeError("no more")

    stream = [Arrival("x", [1], number, str(number)) for number in range(3)]
    with Scheduler() as scheduler, ThreadPoolExecutor(3) as executor:
        with pytest.raises(RuntimeError, match="no more"):
            work(scheduler, stream, lambda *_: 1.0, executor=executor, after=broken)
        rows = [row(scheduler, task) for task in (1, 2, 3)]
        assert all(each.holder == RELEASED for each in rows if each.report is None)
        left = work(scheduler, stream, lambda *_: 1.0, executor=executor)
        assert left.reported + left.skipped == 3


def test_a_key_that_comes_twice_is_run_once() -> None:
    ran: list[Any] = []

    def run(kind: str, option: Any, payload: Any) -> float:
        ran.append(payload)
        return 1.0

    with Scheduler() as scheduler, ThreadPoolExecutor(2) as executor:
        done = work(scheduler, [Arrival("x", [1], number, "same") for number in range(2)], run, executor=executor)
    assert (done.reported, done.skipped, done.elsewhere, len(ran)) == (1, 1, 0, 1)


def test_a_store_that_is_away_for_a_moment_costs_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler() as scheduler:
        claims = Claims(scheduler, 1000.0, lambda: None)
        claims.tasks["1"] = None
        claim(scheduler, claims.holder)
        with monkeypatch.context() as away:
            away.setattr(scheduler._transactor.store, "gone", "away")
            claims.renew()
        claims.renew()
        assert claims.take_lost() == []
        scheduler.cancel("1")
        claims.renew()
        claims.renew()
        assert (claims.take_lost(), claims.take_lost()) == (["1"], [])


def test_whoever_has_ended_on_this_machine_is_gone_and_nobody_else() -> None:
    holder = new_holder()
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert machine()
    assert not is_gone(str(holder))
    assert is_gone(str(holder._replace(pid=str(ended.pid))))
    assert is_gone(str(holder._replace(began="1")))
    assert not is_gone(str(holder._replace(machine="another", pid=str(ended.pid))))
    assert not is_gone("somebody")
    assert beginning(str(ended.pid)) == ""


def test_one_call_is_stopped_and_the_next_one_is_made(tmp_path: Path) -> None:
    with LocalExecutor(1) as executor:
        future = executor.submit(work_tasks.first_waits, "x", 1, [str(tmp_path), "note"])
        wait_until((tmp_path / "note").exists, "the call")
        after = executor.submit(pow, 2, 3)
        executor.stop(after)  # which waits
        executor.stop(future)
        with pytest.raises(WorkerLost):
            future.result(NET)
        assert after.result(NET) == 8
        executor.stop(after)
        assert executor.submit(pow, 2, 4).result(NET) == 16


def test_what_cannot_hold_a_claim_is_refused() -> None:
    client: Any = object()
    with pytest.raises(BadParameter, match="a Client cannot claim what it runs"):
        work(client, [], work_tasks.double)
    with Scheduler() as scheduler, pytest.raises(BadParameter, match="lease = 0"):
        work(scheduler, [], work_tasks.double, lease=0)
