"""Nothing lost, nothing twice: real processes, really killed; a server, really stopped; a disk that is really full."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from live_worker import OPTIONS, all_rows, check_everything, start
from power_cut import cut_power
from tampering import execute
from waiting import NET, wait_until
from worthwhile import Scheduler
from worthwhile.errors import StoreError
from worthwhile.live.stores.sqlite import SqliteStore


@pytest.mark.slow
def test_eight_processes_hammer_one_scheduler(durable: str) -> None:
    Scheduler(durable).close()
    workers = [start(durable, f"worker{number}", 6, threads=2) for number in range(8)]
    outputs = [worker.communicate(timeout=NET)[0].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert "failed" not in "".join(outputs)
    assert check_everything(durable, outputs) == (96, 96)


@pytest.mark.slow
@pytest.mark.parametrize("trial", [{}, {"baseline": 5, "holdout": 0.3, "explore": 0.1, "guard": 0.2}])
def test_what_was_acknowledged_survives_kill_minus_nine(durable: str, trial: dict[str, Any]) -> None:
    luck = random.Random(5)
    Scheduler(durable, **trial).close()
    outputs = []
    for round in range(4):
        workers = [start(durable, f"{round}.{number}", 100_000, threads=2) for number in range(2)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
            outputs += [worker.stdout.readline().decode() for _ in range(luck.randint(5, 80))]
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            output = worker.communicate()[0].decode()
            outputs.append(output[: output.rfind("\n") + 1])
    decided, reported = check_everything(durable, outputs)
    assert decided >= reported > 10


@pytest.mark.parametrize(("synchronous", "loses"), [("full", False), ("normal", True)])
def test_what_was_acknowledged_survives_power_cuts_if_asked_to(tmp_path: Path, synchronous: str, loses: bool) -> None:
    luck, acknowledged, lost = random.Random(7), 0, 0
    for cut in range(8):
        folder = tmp_path / str(cut)
        folder.mkdir()
        found = cut_power(folder, luck.randint(50, 5000), luck, synchronous)
        acknowledged, lost = acknowledged + found[0], lost + found[1]
    assert acknowledged > 100
    assert (lost > 0) == loses


def test_the_same_report_from_ten_clients_at_once_counts_once(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        task = scheduler.decide("x", OPTIONS)
        clients = [Scheduler(durable) for _ in range(10)]
        together, failures = threading.Barrier(10), []

        def send(client: Scheduler) -> None:
            try:
                together.wait()
                client.report(task.id, reward=1.0, cost=2.0)
            except Exception as reason:
                failures.append(reason)

        threads = [threading.Thread(target=send, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert {client.summary().reports for client in clients} == {1}
        for client in clients:
            client.close()


def test_reports_in_any_order_and_after_restarts_all_count_once(durable: str) -> None:
    luck = random.Random(3)
    with Scheduler(durable) as scheduler:
        tasks = {scheduler.decide(f"kind {number % 2}", OPTIONS).id: number / 10 for number in range(30)}
    parts = [(id, part) for id in tasks for part in ("reward", "cost", "both")]
    luck.shuffle(parts)
    for place in range(0, len(parts), 15):
        with Scheduler(durable) as scheduler:
            for id, part in parts[place : place + 15]:
                reward, cost = tasks[id] if part != "cost" else None, 2.0 if part != "reward" else None
                scheduler.report(id, reward, cost)
    with Scheduler(durable) as scheduler:
        assert scheduler.summary().reports == 30
        assert scheduler.summary().reward == pytest.approx(sum(tasks.values()))
        assert scheduler.rebuild()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_loses_nothing_and_is_forgotten_when_there_is_room(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk}/tasks.db"
    with Scheduler(url, seed=1) as scheduler:
        acknowledged = []
        with pytest.raises(StoreError, match=r"tasks.db: no space left on the disk; nothing was stored: free some"):
            fill(scheduler, acknowledged)
        assert len(acknowledged) > 30
        (small_disk / "filler").unlink()
        assert scheduler.summary().reports == len(acknowledged)
        scheduler.decide("after", OPTIONS).report(reward=1.0, cost=1.0)
        assert scheduler.rebuild()
    with Scheduler(url) as scheduler:
        tasks, log = all_rows(scheduler)
        assert all(tasks[int(id)].report is not None for id in acknowledged)
        assert len(log) == len({entry.task for entry in log})


def test_a_store_that_has_become_read_only_is_named_and_loses_nothing(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk}/tasks.db"
    with Scheduler(url) as scheduler:
        scheduler.decide("before", OPTIONS).report(reward=1.0, cost=1.0)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with (
        Scheduler(url) as scheduler,
        pytest.raises(StoreError, match=r"tasks.db: .*nothing was stored: .*make the file and its folder writable"),
    ):
        scheduler.decide("x", OPTIONS)
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    with Scheduler(url) as scheduler:
        assert scheduler.summary().reports == 1


def fill(scheduler: Scheduler, acknowledged: list[str]) -> None:
    """Use a scheduler until its disk is full; other things take part of it."""
    path = Path(str(scheduler._transactor.url).removeprefix("sqlite:///")).with_name("filler")
    path.write_bytes(bytes(2_000_000))
    for number in range(100_000):
        task = scheduler.decide(f"kind {number}" + "." * 150, OPTIONS)
        task.report(reward=1.0, cost=2.0)
        acknowledged.append(task.id)


def test_a_server_that_restarts_is_found_again(server: Any, postgres: str) -> None:
    with Scheduler(postgres) as scheduler:
        done, stop, failed = [], threading.Event(), []

        def work() -> None:
            while not stop.is_set():
                try:
                    task = scheduler.decide("x", OPTIONS, key=f"key {len(done)}")
                    task.report(reward=1.0, cost=1.0)
                    done.append(task.id)
                except StoreError as reason:
                    failed.append(str(reason))

        thread = threading.Thread(target=work)
        thread.start()
        wait_until(lambda: len(done) >= 5, "the first tasks")
        before = len(done)
        restart = [server.bin_path / "pg_ctl", "-w", "-D", server.pgdata, "-m", "immediate", "restart"]
        subprocess.run(restart, user=server.system_user, check=True, stdout=subprocess.DEVNULL)
        server.ensure_postgres_running()  # it notes who has to be stopped in the end
        wait_until(lambda: len(done) >= before + 20, "tasks after the restart")
        stop.set()
        thread.join()
        assert all("repeat it" in reason for reason in failed)
        tasks, log = all_rows(scheduler)
        assert all(tasks[int(id)].report is not None for id in done)
        assert len(log) == len({entry.task for entry in log})
        assert scheduler.rebuild()


def test_a_clock_that_goes_back_only_makes_leases_longer(durable: str) -> None:
    with Scheduler(durable, lease=60.0) as scheduler:
        early = [scheduler.decide("x", OPTIONS) for _ in range(3)]
        day = 86_400  # all that is stored is now a day ahead of the clock, as if that had been put back
        execute(durable, f"update tasks set decided = decided + {day}, lease_end = lease_end + {day}, checksum = null")
        assert scheduler.summary().running == 3
        late = scheduler.decide("x", OPTIONS)
        assert int(late.id) == 4
        for task in (late, *early):
            task.report(reward=1.0, cost=1.0)
        assert (scheduler.summary().reports, scheduler.summary().running) == (4, 0)
        assert [entry.task for entry in scheduler._transactor.entries(0, 10)] == [4, 1, 2, 3]
        assert scheduler.rebuild()


def test_another_process_that_holds_the_lock_too_long_is_named(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worthwhile.live.stores.sqlite.PATIENCE", 0.2)
    with Scheduler(sqlite) as scheduler:
        connection = apsw.Connection(sqlite.removeprefix("sqlite:///"))
        connection.execute("begin immediate")
        with pytest.raises(StoreError, match=r"other processes kept it locked for 0.2 s; nothing was stored"):
            scheduler.decide("x", OPTIONS)
        connection.execute("rollback")
        assert scheduler.decide("x", OPTIONS).id == "1"
        connection.close()


def test_an_interrupted_thread_leaves_the_others_to_go_on(sqlite: str) -> None:
    with Scheduler(sqlite) as scheduler:
        with pytest.raises(KeyboardInterrupt):
            scheduler._transactor.do(lambda batch: signal.raise_signal(signal.SIGINT))
        scheduler.decide("x", OPTIONS).report(reward=1.0, cost=1.0)
        assert scheduler.rebuild()


def test_ctrl_c_right_after_a_transaction_began_leaves_none_open(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler(sqlite) as scheduler, Scheduler(sqlite) as other:
        real = SqliteStore.run

        def interrupted(store: SqliteStore, sql: str) -> None:
            real(store, sql)
            if sql == "begin immediate":
                raise KeyboardInterrupt

        monkeypatch.setattr(SqliteStore, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scheduler.decide("x", OPTIONS)
        monkeypatch.undo()
        other.decide("x", OPTIONS).report(reward=1.0, cost=1.0)
        scheduler.decide("x", OPTIONS).report(reward=1.0, cost=1.0)
        assert scheduler.summary().reports == 2


def test_ctrl_c_at_any_moment_loses_nothing_and_blocks_nobody(address: str) -> None:
    """As at a prompt, which keeps the latest error with all its frames."""
    command = [sys.executable, "-c", INTERRUPTED, address]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=2 * NET)
    assert (ended.stdout, ended.returncode) == ("nothing lost\n", 0), ended.stderr


INTERRUPTED = """
import os, random, signal, sys, threading, time
from worthwhile import Scheduler

def interrupt():
    luck = random.Random(3)
    for _ in range(60):  # fewer than a server lets in, should it still hold on to all of them
        time.sleep(luck.uniform(0.004, 0.012))
        os.kill(os.getpid(), signal.SIGINT)

def pair(scheduler):
    task = scheduler.decide("x", [1, 2, 3])
    task.report(reward=1.0, cost=1.0)
    return task.id

def once_in_a_while(*_):
    global armed
    if armed:  # nobody interrupts the handling of an interrupt
        armed = False
        raise KeyboardInterrupt

done, latest, armed, scheduler = [], None, False, Scheduler(sys.argv[1])
signal.signal(signal.SIGINT, once_in_a_while)
helper = threading.Thread(target=interrupt)
helper.start()
while helper.is_alive():
    try:
        armed = True
        while helper.is_alive():
            done.append(pair(scheduler))
        armed = False
    except KeyboardInterrupt as error:
        latest = error
signal.signal(signal.SIGINT, signal.SIG_IGN)
assert latest is not None
other = scheduler if sys.argv[1] == "memory://" else Scheduler(sys.argv[1])
for one in (scheduler, other):
    thread = threading.Thread(target=lambda: done.append(pair(one)), daemon=True)
    thread.start()
    thread.join(300)
    assert not thread.is_alive(), "somebody else waits for ever"
assert scheduler.rebuild()
assert all(line.reward == 1.0 for line in scheduler.tasks(done))
assert scheduler.summary().reports >= len(done)
print("nothing lost")
"""
