"""Nothing lost, nothing twice: the service really killed under load, its database really away."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from live_worker import all_rows
from service_process import ServiceProcess, store_at
from worthwhile import Client, Scheduler

ONE = "/v1/schedulers/default"
OPTIONS = [1, 5, 10]
AWAY = float(os.environ.get("DATABASE_AWAY", "3"))  # seconds; `make soak`: 30
KILLS = int(os.environ.get("SERVICE_KILLS", "3"))  # `make soak`: 50


class Load:
    """Threads that decide and report through clients that retry, and remember what was acknowledged."""

    def __init__(self, urls: list[str], threads: int) -> None:
        self.stop, self.errors = threading.Event(), []  # type: threading.Event, list[BaseException]
        self.decided: dict[str, Any] = {}
        self.reported: dict[str, tuple[float, float]] = {}
        self.threads = [threading.Thread(target=self.work, args=(urls[n % len(urls)],)) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self, url: str) -> None:
        try:
            with Client(url, timeout=5, patience=600) as client:  # a busy machine takes long to start it again
                while not self.stop.is_set():
                    task = client.decide("kind", OPTIONS)
                    assert self.decided.setdefault(task.id, task.option) is task.option
                    values = int(task.id) % 7 / 7, 1.0 + task.option / 4
                    task.report(*values)
                    self.reported[task.id] = values
        except BaseException as reason:
            self.errors.append(reason)

    def finish(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
        assert self.errors == []

    def check(self, url: str) -> None:
        """Everything acknowledged is in the store, and in the log once."""
        with Scheduler(url) as scheduler:
            tasks, log = all_rows(scheduler)
            assert len(self.reported) > 20
            for id, option in self.decided.items():
                assert OPTIONS[tasks[int(id)].option] == option
            for id, values in self.reported.items():
                assert (tasks[int(id)].reward, tasks[int(id)].cost) == values
            assert len({entry.task for entry in log}) == len(log) == scheduler.summary().reports
            assert len(log) == len(self.reported)
            assert scheduler.rebuild()


def test_killed_under_load_with_clients_that_retry(tmp_path: Path) -> None:
    store, luck = store_at(tmp_path), random.Random(3)
    service = ServiceProcess(store, "--no-access-log")
    load = Load([service.url], 4)
    for _ in range(KILLS):
        time.sleep(luck.uniform(0.3, 0.8))
        with service:
            service.kill()
        service = ServiceProcess(store, "--no-access-log", port=service.port)
    time.sleep(0.5)
    load.finish()
    with service:
        service.kill()
    load.check(store)


def test_told_to_stop_it_finishes_what_has_begun(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with ServiceProcess(store, "--no-access-log") as service:
        answers: list[int] = []
        body = {"tasks": [{"kind": "a", "options": [1, 2]}] * 1000}

        def decide(http: httpx.Client) -> None:
            with http:
                answers.append(http.post(f"{service.url}{ONE}/decide", json=body).status_code)

        callers = [threading.Thread(target=decide, args=(httpx.Client(timeout=30),)) for _ in range(6)]
        for caller in callers:
            caller.start()
        time.sleep(0.1)
        assert service.stop() in (0, -signal.SIGTERM)
        for caller in callers:
            caller.join(30)
    assert "Traceback" not in "".join(service.lines)
    assert answers.count(200) >= 1
    with Scheduler(store) as scheduler:
        assert scheduler.summary().tasks == 1000 * answers.count(200)


def test_two_services_on_one_postgresql_and_one_is_killed(postgres: str) -> None:
    with ServiceProcess(postgres, "--no-access-log") as first, ServiceProcess(postgres, "--no-access-log") as second:
        load = Load([first.url, second.url], 4)
        time.sleep(1.0)
        first.kill()
        with ServiceProcess(postgres, "--no-access-log", port=first.port):
            time.sleep(1.0)
            load.finish()
            counts = [httpx.get(f"http://127.0.0.1:{port}{ONE}/summary").json() for port in (first.port, second.port)]
    assert counts[0] == counts[1]
    load.check(postgres)


@pytest.mark.slow
def test_the_database_goes_away_and_comes_back(second_server: Any) -> None:
    server = second_server
    with ServiceProcess(server.get_uri(), "--no-access-log", "--patience", "1") as service:
        body = {"kind": "a", "options": [1, 2]}
        assert service.post(f"{ONE}/tasks", body).status_code == 200
        stop = [server.bin_path / "pg_ctl", "-w", "-D", server.pgdata, "-m", "immediate", "stop"]
        subprocess.run(stop, user=server.system_user, check=True, stdout=subprocess.DEVNULL)
        until, refused = time.monotonic() + AWAY, 0
        while time.monotonic() < until:
            answer = service.post(f"{ONE}/tasks", body | {"key": "same"})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "postgres" not in answer.text
            refused += 1
            time.sleep(0.2)
        assert refused > AWAY / 3
        assert service.get("/v1/ready").status_code == 503
        assert 'worthwhile_requests_total{method="POST"' in service.get("/metrics").text
        assert service.get("/v1/health").status_code == 200
        page = service.get("/")
        assert page.status_code == 503
        assert "cannot be reached at the moment" in page.text or "no answer from the store" in page.text
        server.ensure_postgres_running()
        with Client(service.url) as client:
            task = client.decide("a", [1, 2], key="same")
            task.report(1.0, 2.0)
            assert client.summary().tasks == int(task.id) == 2
        subprocess.run(stop, user=server.system_user, check=True, stdout=subprocess.DEVNULL)
        assert service.stop() in (0, -signal.SIGTERM)
        assert "Traceback" not in "".join(service.lines)
